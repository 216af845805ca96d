package state

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/riverbed/riverbed/core/clock"
)

// TestDueComesInOrder: keys come once their time is up, the earliest first, each once, and not those of another table; the ends of time and times before 1970
// stand in the same order.
func TestDueComesInOrder(t *testing.T) {
	store := NewMemory()
	in := NewCold(func() (Store, error) { return store, nil })
	d, other := NewDue(in), NewDue(in)
	tab := newTestTable(goodHash)
	r := clock.NewRand(1)
	want := map[string]int64{}
	edges := []int64{math.MinInt64, -1, 0, 1, math.MaxInt64}
	for i := range 300 {
		name, at := fmt.Sprint("key ", i), int64(r.IntN(50)-25)
		if i < len(edges) {
			at = edges[i]
		}
		want[name] = at
		tab.put(1, name)
		slot := make([]uint32, 1)
		tab.Find(tab.keys(name), slot)
		mustDo(t, d.Add(tab.Table, slot, []int64{at}))
		mustDo(t, other.Add(tab.Table, slot, []int64{math.MinInt64}))
		mustDo(t, d.Add(tab.Table, slot, []int64{at})) // again
	}
	for _, now := range []int64{math.MinInt64, -30, -5, 0, 0, 1, 60, math.MaxInt64} {
		last := int64(math.MinInt64)
		for {
			k, err := d.Take(now)
			mustDo(t, err)
			if k.Len() == 0 {
				break
			}
			for i := range k.Len() {
				at, ok := want[string(k.At(i))]
				if !ok || at > now || at < last || k.Hash[i] != goodHash(string(k.At(i))) {
					t.Fatalf("now %d: %q of time %d comes behind time %d", now, k.At(i), at, last)
				}
				last = at
				delete(want, string(k.At(i)))
			}
		}
		for name, at := range want {
			if at <= now {
				t.Fatalf("now %d: %q of time %d has not come", now, name, at)
			}
		}
	}
}

// TestDropBegins: of the rows that have left those go whose keys begin so, as deletions.
func TestDropBegins(t *testing.T) {
	one := func(string) uint64 { return 3 }
	x := newColdTest(one, false)
	x.cold.Track()
	var left []uint32
	x.cold.OnLeave(func(slots []uint32) error { left = append(left, slots...); return nil })
	x.cold.put(1, "a1", "a2", "a\xff", "b", "a3")
	x.cold.Forget(x.cold.Cut())
	slots := make([]uint32, 4)
	x.cold.Find(x.cold.keys("a1", "a2", "a\xff", "b"), slots)
	mustDo(t, x.cold.Leave(slots))
	if !slices.Equal(left, slots) || x.cold.Out() != 4 {
		t.Fatalf("%v leave, %v were told so", slots, left)
	}
	mustDo(t, x.cold.DropBegins([]uint8{x.cold.keys("a").Group[0]}, [][]byte{[]byte("a")}))
	if x.cold.Len() != 2 || x.cold.Out() != 1 {
		t.Fatalf("%d rows stay, %d of them in the store", x.cold.Len(), x.cold.Out())
	}
	p, err := x.cold.Dirty(0)
	mustDo(t, err)
	if p.Rows.NumRows() != 3 {
		t.Fatalf("%d deletions are listed", p.Rows.NumRows())
	}
	mustDo(t, x.cold.Fetch(x.cold.keys("a1", "a2", "a3", "b")))
	if got := x.cold.String(); got != "a3=1:name of a3 b=1:name of b" {
		t.Fatal(got)
	}
	x.cold.Forget(x.cold.Cut())
	mustDo(t, x.cold.Evict(0))
	mustDo(t, x.cold.DropOut())
	if x.cold.Len() != 0 {
		t.Fatalf("%d rows stay", x.cold.Len())
	}
}
