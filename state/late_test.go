package state

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/riverbed/riverbed/core/clock"
	"github.com/riverbed/riverbed/core/errs"
)

// TestLateCopies: a copy that is made piece by piece, while rows come, change, go and leave memory, has the rows of its barrier, each once.
func TestLateCopies(t *testing.T) {
	for _, c := range []struct {
		name string
		hash func(string) uint64
		cold bool
	}{
		{"in memory", goodHash, false}, {"all collide", func(string) uint64 { return 7 }, false}, {"rows leave memory", goodHash, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			for seed := range uint64(50) {
				lateAgainstPlain(t, c.hash, c.cold, clock.NewRand(seed))
			}
		})
	}
}

func lateAgainstPlain(t *testing.T, hash func(string) uint64, cold bool, r clock.Rand) {
	late, plain := newTestTable(hash), newTestTable(hash)
	late.CopyLate()
	late.Track()
	plain.Track()
	if cold {
		late.Limit(NewCold(func() (Store, error) { return NewMemory(), nil }), "0/1", 1)
	}
	var want string
	var have []Part
	copying := false
	for round := range 400 {
		ks := make([]string, r.IntN(8))
		for i := range ks {
			ks[i] = fmt.Sprintf("key %d", r.IntN(300))
		}
		mustDo(t, late.Fetch(late.keys(ks...)))
		switch r.IntN(4) {
		case 0:
			slices.Sort(ks)
			ks = slices.DeleteFunc(slices.Compact(ks), func(k string) bool {
				slot := make([]uint32, 1)
				plain.Find(plain.keys(k), slot)
				return slot[0] == NoSlot
			})
			late.drop(ks...)
			plain.drop(ks...)
		default:
			w := int64(r.IntN(9) + 1)
			late.put(w, ks...)
			plain.put(w, ks...)
		}
		if r.IntN(4) == 0 {
			mustDo(t, late.Evict(late.Bytes()*int64(r.IntN(10))/10))
		}
		more := true
		if copying && r.IntN(3) == 0 {
			parts, left, err := late.Copy(r.IntN(20))
			mustDo(t, err)
			have, more = append(have, parts...), left
		}
		if copying && !more {
			copying = false
			var rows []string
			for _, p := range have {
				if text := partRows(t, p, nil); text != "" {
					rows = append(rows, strings.Split(text, "\n")...)
				}
			}
			slices.Sort(rows)
			if got := strings.Join(rows, "\n"); got != want {
				t.Fatalf("round %d: copied late\n%s\nat the barrier\n%s", round, got, want)
			}
			have = nil
		}
		if !copying && r.IntN(8) == 0 {
			p, err := plain.Dirty(0)
			want = partRows(t, p, err)
			plain.Forget(plain.Cut())
			begun, err := late.Begin(0)
			if mustDo(t, err); !begun {
				t.Fatal("the table copies at the barrier")
			}
			late.Forget(late.Cut())
			copying = true
		}
	}
}

// TestUnsaidWritesAreFound: who writes to a row that is still to be copied, and has not said so, is found, and the copy is an error.
func TestUnsaidWritesAreFound(t *testing.T) {
	x := newTestTable(goodHash)
	x.CopyLate()
	x.Track()
	x.put(1, "a", "b", "c")
	if _, err := x.Begin(0); err != nil {
		t.Fatal(err)
	}
	x.Forget(x.Cut())
	slots := make([]uint32, 1)
	x.Find(x.keys("b"), slots)
	func() {
		defer func() {
			if e := recover(); e == nil {
				t.Error("nobody noticed")
			}
		}()
		x.weight.V[slots[0]] = 9
		x.Touch(slots)
	}()
	if _, _, err := x.Copy(10); errs.As(err).Kind != errs.Internal {
		t.Errorf("the copy went well: %v", err)
	}
}
