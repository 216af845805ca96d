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
	"github.com/riverbed/riverbed/core/types"
)

var testDecl = Decl{Name: "test_rows", Version: 1, Key: RowKey, Values: []string{"weight", "name"}, About: "key → weight, name"}

// testTable has a weight and a name per key. badHash makes every key collide.
type testTable struct {
	*Table
	weight *Int64s
	name   Values
	hash   func(string) uint64
}

func newTestTable(hash func(string) uint64) *testTable {
	t := &testTable{weight: &Int64s{}, name: NewValues(types.String), hash: hash}
	t.Table = NewTable(testDecl, t.weight, t.name)
	return t
}

func goodHash(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}

func (t *testTable) keys(ks ...string) Keys {
	k := Keys{Offsets: []uint32{0}}
	for _, s := range ks {
		k.Data = append(k.Data, s...)
		k.Offsets = append(k.Offsets, uint32(len(k.Data)))
		k.Hash = append(k.Hash, t.hash(s))
		k.Group = append(k.Group, uint8(t.hash(s)))
	}
	return k
}

func (t *testTable) put(weight int64, ks ...string) {
	slots := make([]uint32, len(ks))
	t.Upsert(t.keys(ks...), slots)
	t.Before(slots)
	b := array.NewStringBuilder(memory.DefaultAllocator)
	for i, s := range slots {
		t.weight.V[s] += weight
		if weight%2 == 0 {
			b.AppendNull()
		} else {
			b.Append("name of " + ks[i])
		}
	}
	t.name.Put(slots, b.NewArray(), iota32(len(slots)))
	t.Touch(slots)
}

func (t *testTable) drop(ks ...string) {
	slots := make([]uint32, len(ks))
	t.Find(t.keys(ks...), slots)
	t.Delete(slots)
}

func (t *testTable) String() string {
	slots := t.All()
	names, _ := t.name.Save(slots)
	var rows []string
	for i, s := range slots {
		rows = append(rows, fmt.Sprintf("%s=%d:%s", t.Key(s), t.weight.V[s], names.ValueStr(i)))
	}
	slices.Sort(rows)
	return strings.Join(rows, " ")
}

func TestTableAgainstMap(t *testing.T) {
	for name, hash := range map[string]func(string) uint64{"good hash": goodHash, "all collide": func(string) uint64 { return 7 }} {
		t.Run(name, func(t *testing.T) {
			tab, model := newTestTable(hash), map[string]int64{}
			r := clock.NewRand(3)
			for round := range 2000 {
				k := fmt.Sprintf("key %d", r.IntN(60))
				if _, ok := model[k]; ok && r.IntN(3) == 0 {
					tab.drop(k)
					delete(model, k)
				} else {
					w := int64(r.IntN(9) + 1)
					tab.put(w, k)
					model[k] += w
				}
				if tab.Len() != len(model) {
					t.Fatalf("round %d: %d rows, want %d", round, tab.Len(), len(model))
				}
				probe := fmt.Sprintf("key %d", r.IntN(60))
				slot := make([]uint32, 1)
				tab.Find(tab.keys(probe), slot)
				w, ok := model[probe]
				if ok != (slot[0] != NoSlot) || ok && tab.weight.V[slot[0]] != w {
					t.Fatalf("round %d: %q has slot %d, want present=%v weight %d", round, probe, slot[0], ok, w)
				}
			}
		})
	}
}

func TestSnapshotRestoresEachGroupOnce(t *testing.T) {
	tab := newTestTable(goodHash)
	for i := range 500 {
		tab.put(int64(i), fmt.Sprintf("k%d", i))
	}
	tab.drop("k3", "k400")
	part, err := tab.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for instance := range 3 {
		to := newTestTable(goodHash)
		if err := to.Restore(part, func(g uint8) bool { return int(g)*3/Groups == instance }); err != nil {
			t.Fatal(err)
		}
		all = append(all, strings.Fields(strings.ReplaceAll(to.String(), "name of ", "name_of_"))...)
	}
	slices.Sort(all)
	if got, want := strings.Join(all, " "), strings.ReplaceAll(tab.String(), "name of ", "name_of_"); got != want {
		t.Fatalf("got  %s\nwant %s", got, want)
	}
}

func TestDirtyHoldsWhatChanged(t *testing.T) {
	tab := newTestTable(goodHash)
	tab.Track()
	tab.put(1, "a", "b", "c")
	first, _ := tab.Dirty(0)
	e := tab.Cut()
	tab.put(3, "b", "d")
	tab.drop("a", "c")
	tab.put(5, "c") // gone and back: a row
	tab.put(1, "x") // came and went: a deletion at most
	tab.drop("x")
	second, _ := tab.Dirty(e)

	to := newTestTable(goodHash)
	for _, p := range []Part{first, second} {
		if err := to.Restore(p, func(uint8) bool { return true }); err != nil {
			t.Fatal(err)
		}
	}
	if to.String() != tab.String() {
		t.Fatalf("got  %s\nwant %s", to, tab)
	}
	tab.Forget(tab.Cut())
	if p, _ := tab.Dirty(0); p.Rows.NumRows() != 0 {
		t.Fatalf("%d rows are dirty after all are durable", p.Rows.NumRows())
	}
}

func TestSequenceKeysStayUniqueAcrossRestores(t *testing.T) {
	decl := Decl{Name: "test_log", Version: 1, Key: Sequence, Values: []string{"n"}}
	make1 := func() (*Table, *Int64s) { c := &Int64s{}; return NewTable(decl, c), c }
	a, an := make1()
	slots := make([]uint32, 3)
	a.Append([]uint8{1, 1, 2}, slots)
	for i, s := range slots {
		an.V[s] = int64(i)
	}
	p, _ := a.Snapshot()
	b, _ := make1()
	if err := b.Restore(p, func(uint8) bool { return true }); err != nil {
		t.Fatal(err)
	}
	b.Append([]uint8{1, 2, 3}, slots)
	seen := map[string]bool{}
	for _, s := range b.All() {
		seen[fmt.Sprint(b.Group(s), b.Key(s))] = true
	}
	if len(seen) != 6 {
		t.Fatalf("%d distinct keys of 6 rows", len(seen))
	}
}

func TestRestoreRefusesAnotherVersion(t *testing.T) {
	p, _ := newTestTable(goodHash).Snapshot()
	p.Version = 9
	if err := newTestTable(goodHash).Restore(p, func(uint8) bool { return true }); err == nil {
		t.Fatal("restored a version it cannot read")
	}
}

func TestValuesOfEveryType(t *testing.T) {
	for _, c := range []struct {
		t    types.Type
		json string
	}{
		{types.Bool, `[true, null, false]`},
		{types.Int8, `[1, null, -3]`},
		{types.Int16, `[1, null, -3]`},
		{types.Int32, `[1, null, -3]`},
		{types.Int64, `[1, null, -3]`},
		{types.Int128, `["1", null, "-3"]`},
		{types.Float64, `[1.5, null, -0.0]`},
		{types.String, `["", null, "länger"]`},
		{types.TsUS, `["2024-01-01", null, "0001-01-01"]`},
		{types.NullType, `[null, null, null]`},
		{types.ListOf(types.Int32), `[[1, null], null, []]`},
		{types.StructOf(types.Field{Name: "a", Type: types.String}), `[{"a": "x"}, null, {"a": null}]`},
	} {
		t.Run(c.t.String(), func(t *testing.T) {
			in, _, err := array.FromJSON(memory.DefaultAllocator, c.t.Arrow(), strings.NewReader(c.json))
			if err != nil {
				t.Fatal(err)
			}
			v := NewValues(c.t)
			v.Resize(5)
			v.Put([]uint32{4, 0, 2}, in, []int32{0, 1, 2})
			v.Put([]uint32{1}, in, []int32{2})
			v.Reset([]uint32{1})
			out, err := v.Save([]uint32{4, 0, 2, NoSlot})
			if err != nil {
				t.Fatal(err)
			}
			if !array.Equal(array.NewSlice(out, 0, 3), in) || !out.IsNull(3) && c.t.Kind != types.Null {
				t.Fatalf("got %v, want %v and NULL", out, in)
			}
			// A slot that held NULL takes a value, and a slice is read at its offset.
			v.Put([]uint32{0}, array.NewSlice(in, 2, 3), []int32{0})
			out, _ = v.Save([]uint32{0})
			if !array.Equal(out, array.NewSlice(in, 2, 3)) {
				t.Fatalf("got %v, want %v", out, array.NewSlice(in, 2, 3))
			}
			var _ arrow.Array = out
		})
	}
}

func BenchmarkUpsert(b *testing.B) {
	tab := newTestTable(goodHash)
	var names []string
	for i := range 10000 {
		names = append(names, fmt.Sprintf("key %d", i%5000))
	}
	k, slots := tab.keys(names...), make([]uint32, len(names))
	b.ReportAllocs()
	for b.Loop() {
		tab.Upsert(k, slots)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(names)), "ns/key")
}

func TestRestoreRefusesOtherColumns(t *testing.T) {
	from := newTestTable(goodHash)
	from.put(1, "a")
	p, err := from.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	decl := testDecl
	decl.Values = decl.Values[:1]
	err = NewTable(decl, &Int64s{}).Restore(p, func(uint8) bool { return true })
	if !errs.Is(err, errs.State) || errs.As(err).Hint == "" {
		t.Fatalf("restored columns that it has not, or does not say what to do: %v", err)
	}
}
