package checkpoint

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/core/clock"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/objstore"
)

func objectsOf(sizes ...int64) []Object {
	var out []Object
	for i, n := range sizes {
		out = append(out, Object{Name: fmt.Sprint(i), Epochs: [2]flow.Epoch{flow.Epoch(i), flow.Epoch(i)}, Size: n,
			Sections: []SectionIndex{{Kind: State, Owner: "a", Length: n}}})
	}
	return out
}

func TestNeighboursOfSimilarSizeAreMerged(t *testing.T) {
	for _, c := range []struct {
		sizes    []int64
		from, to int
	}{
		{[]int64{10, 10}, 0, 0},
		{[]int64{10, 6, 4}, 0, 3},
		{[]int64{10, 6, 3}, 0, 0},
		{[]int64{10, 1, 1}, 0, 0},
		{[]int64{1000, 600, 400, 1}, 0, 4},
		{[]int64{1000, 10, 10, 10, 10, 10, 10, 10}, 0, 0},
		{[]int64{1000, 10, 10, 10, 10, 10, 10, 10, 10}, 1, 9},
		{[]int64{1000, 80, 10, 10, 10, 10, 10, 10, 10}, 0, 0},
		{[]int64{1000, 10, 10, 10, 10, 10, 10, 10, 10, 1}, 1, 9}, // the newest is too small to bring on a merge of the others by itself
	} {
		if from, to := mergeable(objectsOf(c.sizes...)); from != c.from || to != c.to {
			t.Errorf("%v: %d to %d", c.sizes, from, to)
		}
	}
	held := func(at ...int) []Object {
		out := objectsOf(10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10)
		for _, i := range at {
			out[i].Sections = append(out[i].Sections, SectionIndex{Kind: Once, Owner: "sink"})
		}
		return out
	}
	for _, c := range []struct{ at, from, to int }{{11, 0, 11}, {3, 0, 3}, {2, 4, 12}, {0, 1, 12}} {
		at := []int{c.at}
		if c.at == 2 {
			at = []int{2, 3}
		}
		if from, to := mergeable(held(at...)); from != c.from || to != c.to {
			t.Errorf("beside an object %v with held rows: %d to %d", at, from, to)
		}
	}
}

// TestARowIsRewrittenSeldom counts what merges write: each row a logarithmic number of times, and objects stay few.
func TestARowIsRewrittenSeldom(t *testing.T) {
	for name, key := range map[string]func(r *rand.Rand, epoch, i int) string{
		"new keys":  func(_ *rand.Rand, epoch, i int) string { return fmt.Sprintf("%d-%d", epoch, i) },
		"hot keys":  func(_ *rand.Rand, _, i int) string { return fmt.Sprint(i) },
		"some keys": func(r *rand.Rand, _, _ int) string { return fmt.Sprint(r.IntN(20000)) },
	} {
		t.Run(name, func(t *testing.T) {
			const epochs, rows = 256, 100
			d := objstore.NewDouble()
			s := open(t, testOptions(d, newHasty()))
			m := epoch(t, s, nil, nil)
			r := rand.New(rand.NewPCG(1, 1))
			written, merged, most := int64(0), int64(0), 0
			seen := map[string]bool{}
			model := map[string]bool{}
			for n := range epochs {
				var changes []change
				for i := range rows {
					k := key(r, n, i)
					model["a/t/"+k] = true
					changes = append(changes, change{k, n})
				}
				m = epoch(t, s, m, nil, stateOf("a", "t", changes...))
				for _, o := range m.Objects {
					if seen[o.Name] {
						continue
					}
					seen[o.Name] = true
					for _, sec := range o.Sections {
						if o.Epochs[0] == o.Epochs[1] {
							written += sec.Rows
						} else {
							merged += sec.Rows
						}
					}
				}
				most = max(most, len(m.Objects))
			}
			times := float64(merged) / float64(written)
			t.Logf("%d rows written, each %.1f times again; at most %d objects", written, times, most)
			if limit := math.Log2(epochs); times > limit {
				t.Errorf("each row was written %.1f times again; %.1f would be logarithmic", times, limit)
			}
			if most > 24 {
				t.Errorf("%d objects", most)
			}
			if got := contentOf(t, s, m); len(got.state) != len(model) {
				t.Errorf("%d rows, not %d", len(got.state), len(model))
			}
		})
	}
}

// Deletions stay as long as something older may have their key, and then go.
func TestDeletionsGoInTheOldestObject(t *testing.T) {
	s := open(t, testOptions(objstore.NewDouble(), newHasty()))
	m := epoch(t, s, nil, nil)
	var many []change
	for i := range 2000 {
		many = append(many, change{fmt.Sprint(i), i})
	}
	m = epoch(t, s, m, nil, stateOf("a", "t", many...))
	rowsOf := func(m *Manifest, i int) int64 { return m.Objects[i].Sections[0].Rows }
	for i := range 9 {
		m = epoch(t, s, m, nil, stateOf("a", "t", change{fmt.Sprint(i), nil}))
	}
	if len(m.Objects) < 2 || m.Objects[1].Epochs != [2]flow.Epoch{2, 9} || rowsOf(m, 1) != 8 {
		t.Fatalf("eight deletions above the rows that they delete: %+v", m.Objects)
	}
	if got := contentOf(t, s, m); len(got.state) != 1991 {
		t.Errorf("%d rows", len(got.state))
	}
	for range 3 {
		for i := range many {
			many[i].value = nil
		}
		m = epoch(t, s, m, nil, stateOf("a", "t", many...))
	}
	for range 3 {
		m = epoch(t, s, m, nil, stateOf("b", "t", change{"x", 1}))
	}
	if got := contentOf(t, s, m); len(got.state) != 1 {
		t.Errorf("%d rows", len(got.state))
	}
	if first := m.Objects[0].Epochs[0]; first <= 10 {
		t.Errorf("all rows of epoch 1 were deleted in epoch 11, and are still there with their deletions: %+v", m.Objects[0])
	}
}

// A table whose rows have other columns now is not put together with what is there.
func TestRowsOfAnotherSchemaStayApart(t *testing.T) {
	s := open(t, testOptions(objstore.NewDouble(), newHasty()))
	m := epoch(t, s, nil, nil)
	wide := func(c ...change) Section {
		b := rows(c...)
		fields := append(slices.Clone(b.Schema().Fields()), arrow.Field{Name: "more", Type: arrow.BinaryTypes.String, Nullable: true})
		return Section{Kind: State, Owner: "a", Table: "t", Version: 1,
			Rows: []arrow.RecordBatch{array.NewRecordBatch(arrow.NewSchema(fields, nil), append(slices.Clone(b.Columns()), b.Column(4)), b.NumRows())}}
	}
	m = epoch(t, s, m, nil, stateOf("a", "t", change{"x", 1}, change{"y", 1}))
	m = epoch(t, s, m, nil, wide(change{"y", nil}, change{"z", 3}))
	m = epoch(t, s, m, nil, wide(change{"x", 4}), stateOf("a", "t", change{"q", 1}))
	m = epoch(t, s, m, nil)
	if len(m.Objects) != 1 || len(m.Objects[0].Sections) < 3 {
		t.Fatalf("%+v", m.Objects)
	}
	want := map[string]string{"a/t/x": "4", "a/t/z": "3", "a/t/q": "1"}
	if got := contentOf(t, s, m); !got.equal(content{want, nil}) {
		t.Errorf("got %v", got)
	}
}

func TestDroppedOwnersStayAway(t *testing.T) {
	s := open(t, testOptions(objstore.NewDouble(), newHasty()))
	m := epoch(t, s, nil, nil)
	for i := range 3 { // a merge of them is ready for the next epoch
		m = epoch(t, s, m, nil, stateOf("a", "t", change{"x", i}), stateOf("b", "t", change{"x", i}))
	}
	m = m.Drop("b")
	m = epoch(t, s, m, nil, stateOf("a", "t", change{"y", 9}))
	if m.Objects[0].Epochs != [2]flow.Epoch{1, 3} || len(m.Objects[0].Sections) != 1 {
		t.Fatalf("%+v", m.Objects)
	}
	if got := contentOf(t, s, m); !got.equal(content{map[string]string{"a/t/x": "2", "a/t/y": "9"}, nil}) {
		t.Errorf("got %v", got)
	}
}

// Merges and collection run beside the epochs; nothing that is named goes.
func TestBesideARunningPipeline(t *testing.T) {
	o := testOptions(objstore.NewDouble(), clock.Wall{})
	o.Inline = false
	s, ctx, sc := open(t, o), context.Background(), newScript(1)
	m := &Manifest{Pipeline: "p", Sinks: []Sink{{Name: "sink"}}}
	if err := s.Publish(ctx, m); err != nil {
		t.Fatal(err)
	}
	for range 200 {
		next, sections := sc.next(m)
		if err := s.Write(ctx, m, next, sections); err != nil {
			t.Fatal(err)
		}
		if err := s.Publish(ctx, next); err != nil {
			t.Fatal(err)
		}
		m = next
		if m.Epoch%20 == 0 {
			sc.check(t, s, m)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if n := len(m.Objects); n > 40 {
		t.Errorf("%d objects", n)
	}
	o.Inline = true
	s = open(t, o)
	sc.check(t, s, m)
}
