package incremental

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/state"
)

// someKeys are n keys of few values; keys with one hash are not all equal.
func someKeys(r *rand.Rand, n, values int) state.Keys {
	k := state.Keys{Offsets: []uint32{0}}
	for range n {
		v := r.IntN(values)
		k.Data = fmt.Appendf(k.Data, "key %d", v)
		k.Offsets = append(k.Offsets, uint32(len(k.Data)))
		k.Hash = append(k.Hash, uint64(v/2)*hashMix)
	}
	k.Group = groupsOf(k.Hash, nil)
	return k
}

func TestALogFindsWhatAnIndexWould(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		l := newRowLog()
		type stored struct {
			key  string
			slot uint32
			at   int64
		}
		var rows []stored
		w, slot := int64(0), uint32(0)
		for range 1 + r.IntN(6) {
			k := someKeys(r, r.IntN(50), 1+r.IntN(20))
			slots, closes := make([]uint32, k.Len()), make([]int64, k.Len())
			for i := range slots {
				slots[i], closes[i] = slot, w+r.Int64N(5<<20)
				if r.IntN(9) == 0 {
					closes[i] = never
				}
				rows = append(rows, stored{string(k.At(i)), slot, coarseOrNever(closes[i])})
				slot++
			}
			l.add(k, slots, closes)
			w += r.Int64N(3 << 20)
			gone := l.expire(flow.Watermark(w))
			rows = slices.DeleteFunc(rows, func(s stored) bool {
				if s.at > w {
					return false
				}
				if !slices.Contains(gone, s.slot) {
					t.Fatalf("the row %d that closes at %d stays at %d", s.slot, s.at, w)
				}
				gone = slices.DeleteFunc(gone, func(g uint32) bool { return g == s.slot })
				return true
			})
			if len(gone) > 0 {
				t.Fatalf("the rows %d went too early", gone)
			}
			probe := someKeys(r, r.IntN(30), 25)
			var got, want []string
			err := l.find(probe, make([]pair, 0, 1+r.IntN(8)), func(pairs []pair) error {
				for _, p := range pairs {
					got = append(got, fmt.Sprint(p.row, p.slot))
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			for i := range probe.Len() {
				for _, s := range rows {
					if s.key == string(probe.At(i)) {
						want = append(want, fmt.Sprint(i, s.slot))
					}
				}
			}
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Fatalf("got %v, want %v", got, want)
			}
		}
	}
}
