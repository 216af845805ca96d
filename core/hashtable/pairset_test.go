package hashtable

import (
	"math/rand/v2"
	"testing"
)

// TestPairSet compares with a Go map: few and many different pairs, parts that take repetitions out and parts that gave it up,
// sets of one and of several goroutines, and a Union that is used again.
func TestPairSet(t *testing.T) {
	var u Union
	for _, c := range []struct {
		bits                     uint
		sets, rows, words, group int
	}{
		{0, 1, 0, 1, 1}, {0, 1, 1000, 1 << 40, 1}, {6, 2, 300000, 1 << 40, 100}, {6, 3, 300000, 50, 20}, {6, 2, 300000, 20000, 1}, {0, 1, 50000, 3000, 7}, {2, 2, 100000, 2, 50000},
	} {
		r := rand.New(rand.NewPCG(1, uint64(c.rows)))
		want := map[Pair]bool{}
		sets, into := make([]*PairSet, c.sets), make([][]uint32, c.sets)
		for k := range sets {
			sets[k] = NewPairSet(c.bits)
			if k > 0 { // groups are called otherwise here
				for g := range c.group {
					into[k] = append(into[k], uint32(c.group-1-g))
				}
			}
			groups, words := make([]uint32, c.rows), make([]uint64, c.rows)
			own := map[Pair]bool{}
			for i := range words {
				groups[i], words[i] = uint32(r.IntN(c.group)), r.Uint64N(uint64(c.words))<<20
				own[Pair{words[i], groups[i]}] = true
				g := groups[i]
				if into[k] != nil {
					g = into[k][g]
				}
				want[Pair{words[i], g}] = true
			}
			for from := 0; from < c.rows; from += 7000 {
				to := min(from+7000, c.rows)
				sets[k].Add(groups[from:to], words[from:to])
			}
			got := map[Pair]bool{}
			_ = sets[k].Each(func(groups []uint32, words []uint64) error {
				for i, w := range words {
					got[Pair{w, groups[i]}] = true
				}
				return nil
			})
			if len(got) != len(own) {
				t.Fatalf("%+v: Each gave %d pairs, want %d", c, len(got), len(own))
			}
			for p := range own {
				if !got[p] {
					t.Fatalf("%+v: Each lost %v", c, p)
				}
			}
			if least := int64(16 * len(own) / 2); sets[k].Bytes() < least {
				t.Fatalf("%+v: %d bytes, at least %d are held", c, sets[k].Bytes(), least)
			}
			if c.words*c.group < 2000 && sets[k].Bytes() > 8<<20 {
				t.Fatalf("%+v: %d bytes for few pairs", c, sets[k].Bytes())
			}
		}
		got := map[Pair]bool{}
		for p := range sets[0].Parts() {
			_ = u.Part(sets, into, p, func(groups []uint32, words []uint64) error {
				for i, w := range words {
					if p := (Pair{w, groups[i]}); got[p] || !want[p] {
						t.Fatalf("%+v: %v came twice or never was", c, p)
					}
					got[Pair{w, groups[i]}] = true
				}
				return nil
			})
		}
		if len(got) != len(want) {
			t.Fatalf("%+v: %d pairs, want %d", c, len(got), len(want))
		}
	}
}
