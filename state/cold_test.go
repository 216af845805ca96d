package state

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/riverbed/riverbed/core/clock"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/rowkey"
	"github.com/riverbed/riverbed/core/types"
)

// partRows prints the rows of a part, sorted.
func partRows(t *testing.T, p Part, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	rows := make([]string, p.Rows.NumRows())
	for i := range rows {
		for c := range p.Rows.Columns() {
			rows[i] += p.Rows.Column(c).ValueStr(i) + " "
		}
	}
	slices.Sort(rows)
	return strings.Join(rows, "\n")
}

// coldTest is a table whose rows leave memory beside one whose rows stay.
type coldTest struct {
	cold, plain *testTable
	store       *Memory
	opened      int
}

func newColdTest(hash func(string) uint64, pack bool) *coldTest {
	x := &coldTest{cold: newTestTable(hash), plain: newTestTable(hash), store: NewMemory()}
	if pack {
		p := rowkey.NewPacking([]types.Type{types.Int64, types.String}, false)
		x.cold.Pack(p)
		x.plain.Pack(p)
	}
	x.cold.Limit(NewCold(func() (Store, error) { x.opened++; return x.store, nil }), "0/1", 1)
	return x
}

// TestColdRowsAreNotToldApart: a table whose rows leave memory at any time shows what one in memory shows: rows, snapshots, changes, restores.
func TestColdRowsAreNotToldApart(t *testing.T) {
	for _, c := range []struct {
		name string
		hash func(string) uint64
		pack bool
	}{
		{"bytes", goodHash, false}, {"all collide", func(string) uint64 { return 7 }, false}, {"words and a text", goodHash, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			for seed := range uint64(30) {
				coldAgainstPlain(t, newColdTest(c.hash, c.pack), c.pack, clock.NewRand(seed))
			}
		})
	}
}

func coldAgainstPlain(t *testing.T, x *coldTest, pack bool, r clock.Rand) {
	key := func() string {
		n := r.IntN(60)
		if pack {
			a := array.NewInt64Builder(memory.DefaultAllocator)
			b := array.NewStringBuilder(memory.DefaultAllocator)
			a.Append(int64(n))
			if n%7 == 0 {
				b.AppendNull()
			} else {
				b.Append(fmt.Sprint("text ", n%5))
			}
			return string(rowkey.Encode([]arrow.Array{a.NewArray(), b.NewArray()}, []types.Type{types.Int64, types.String}, nil, 1).Row(0))
		}
		return fmt.Sprintf("key %d", n)
	}
	if r.IntN(2) == 0 {
		x.cold.Track()
		x.plain.Track()
	}
	since, earlier := uint64(0), Part{}
	for round := range 150 {
		ks := make([]string, r.IntN(6))
		for i := range ks {
			ks[i] = key()
		}
		mustDo(t, x.cold.Fetch(x.cold.keys(ks...)))
		switch r.IntN(4) {
		case 0:
			slices.Sort(ks)
			ks = slices.Compact(ks)
			ks = slices.DeleteFunc(ks, func(k string) bool {
				slot := make([]uint32, 1)
				x.plain.Find(x.plain.keys(k), slot)
				return slot[0] == NoSlot
			})
			x.cold.drop(ks...)
			x.plain.drop(ks...)
		default:
			w := int64(r.IntN(9) + 1)
			x.cold.put(w, ks...)
			x.plain.put(w, ks...)
		}
		if x.cold.Len() != x.plain.Len() {
			t.Fatalf("round %d: %d rows, not %d", round, x.cold.Len(), x.plain.Len())
		}
		switch r.IntN(6) {
		case 0:
			mustDo(t, x.cold.Evict(0))
			if x.cold.n > 0 && !x.cold.tracking {
				t.Fatalf("round %d: %d rows stay in memory", round, x.cold.n)
			}
		case 1:
			mustDo(t, x.cold.Evict(x.cold.Bytes()*int64(r.IntN(10))/10))
		case 2:
			got, err := x.cold.Snapshot()
			have := partRows(t, got, err)
			plain, err := x.plain.Snapshot()
			if want := partRows(t, plain, err); have != want {
				t.Fatalf("round %d: snapshot\ngot\n%s\nwant\n%s", round, have, want)
			}
			if r.IntN(3) == 0 { // read it back, in another table
				y := newColdTest(x.cold.hash, pack)
				mustDo(t, y.cold.Restore(got, func(g uint8) bool { return true }))
				mustDo(t, y.cold.Evict(0))
				p, err := y.cold.Snapshot()
				if again := partRows(t, p, err); again != have {
					t.Fatalf("round %d: restored\ngot\n%s\nwant\n%s", round, again, have)
				}
			}
		case 3:
			if !x.cold.tracking {
				break
			}
			got, err := x.cold.Dirty(since)
			have := partRows(t, got, err)
			plain, err := x.plain.Dirty(since)
			if want := partRows(t, plain, err); have != want {
				t.Fatalf("round %d: changes\ngot\n%s\nwant\n%s", round, have, want)
			}
			a, b := x.cold.Cut(), x.plain.Cut()
			if r.IntN(2) == 0 { // the epoch is durable
				x.cold.Forget(a)
				x.plain.Forget(b)
				since = a
			}
		case 4: // the rows of an earlier run over those that are there
			if x.cold.tracking {
				break
			}
			p, err := x.plain.part(x.plain.All()[:x.plain.Len()/2], nil, nil)
			mustDo(t, err)
			if earlier.Rows != nil {
				for _, y := range []*testTable{x.cold, x.plain} {
					mustDo(t, y.Restore(earlier, func(g uint8) bool { return g%2 == 0 }))
				}
			}
			earlier = p
		}
	}
	n := 0
	for more := true; more; { // all rows, in parts
		n += len(x.cold.All())
		x.cold.Delete(x.cold.All())
		var err error
		more, err = x.cold.More()
		mustDo(t, err)
	}
	if n += len(x.cold.All()); n != x.plain.Len() {
		t.Fatalf("%d rows come back, not %d", n, x.plain.Len())
	}
}

func mustDo(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestNoStoreWithoutNeed: a store is opened by the first row that leaves.
func TestNoStoreWithoutNeed(t *testing.T) {
	x := newColdTest(goodHash, false)
	x.cold.put(1, "a", "b")
	mustDo(t, x.cold.Evict(1<<30))
	mustDo(t, x.cold.Fetch(x.cold.keys("a", "c")))
	if x.opened != 0 {
		t.Fatal("a store was opened for rows that fit")
	}
	mustDo(t, x.cold.Evict(0))
	if x.opened != 1 || x.cold.Out() != 2 || len(x.cold.All()) != 0 {
		t.Fatalf("opened %d, %d rows out", x.opened, x.cold.Out())
	}
}

// TestDirtyRowsStay: what the next checkpoint has to copy does not leave; rows whose copy was taken may.
func TestDirtyRowsStay(t *testing.T) {
	x := newColdTest(goodHash, false)
	x.cold.Track()
	x.cold.put(1, "a", "b")
	mustDo(t, x.cold.Evict(0))
	if x.cold.Out() != 0 {
		t.Fatal("a dirty row left")
	}
	x.cold.Forget(x.cold.Cut())
	x.cold.put(1, "b")
	mustDo(t, x.cold.Evict(0))
	if x.cold.Out() != 1 || x.cold.String() != "b=2:name of b" {
		t.Fatalf("%d rows out, and %s", x.cold.Out(), x.cold)
	}
}

// TestRowsInUseStay: the hand lets rows stay that were asked for since it came by.
func TestRowsInUseStay(t *testing.T) {
	x := newColdTest(goodHash, false)
	for i := range 1000 {
		x.cold.put(1, fmt.Sprint("key ", i))
	}
	mustDo(t, x.cold.Evict(x.cold.Bytes()/2))
	hot := x.cold.keys("key 3", "key 700", "key 999")
	for i := range 300 {
		mustDo(t, x.cold.Fetch(hot))
		x.cold.put(1, fmt.Sprint("new ", i))
		mustDo(t, x.cold.Evict(x.cold.Bytes()/2))
		slots := make([]uint32, hot.Len())
		if x.cold.Find(hot, slots); slices.Contains(slots, NoSlot) {
			t.Fatalf("round %d: a row in use left: %v", i, slots)
		}
	}
}

// failing is a store that has no room.
type failing struct{ *Memory }

func (failing) Apply([]Pair) error { return errs.New(errs.State, "state store", "no space left") }

func TestAStoreThatFails(t *testing.T) {
	x := newTestTable(goodHash)
	x.Limit(NewCold(func() (Store, error) { return failing{NewMemory()}, nil }), "0", 1)
	x.put(1, "a")
	if err := x.Evict(0); !errs.Is(err, errs.State) || x.String() != "a=1:name of a" {
		t.Fatalf("%v, and %s is left", err, x)
	}
}

// TestSeenIsOfRowsThatAreThere: rows that leave and are dropped for ever do not make the table hold more and more.
func TestSeenIsOfRowsThatAreThere(t *testing.T) {
	x := newColdTest(goodHash, false)
	for i := range 60 {
		ks := make([]string, 1000)
		for j := range ks {
			ks[j] = fmt.Sprintf("key %d %d", i, j)
		}
		keys := x.cold.keys(ks...)
		mustDo(t, x.cold.Fetch(keys))
		x.cold.put(1, ks...)
		mustDo(t, x.cold.Evict(0))
		mustDo(t, x.cold.Fetch(keys))
		if x.cold.Out() != 0 {
			t.Fatalf("round %d: %d rows do not come back", i, x.cold.Out())
		}
		x.cold.drop(ks...)
	}
	if n := x.cold.cold.seen.bytes(); n > 8*seenWords {
		t.Fatalf("%d bytes for keys that are gone", n)
	}
}
