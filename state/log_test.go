package state

import (
	"fmt"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/core/clock"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/types"
)

func newTestLog() *Log {
	return NewLog(Decl{Name: "rows", Version: 1, Key: Sequence, Values: []string{"v", "text", "one"}}, []types.Type{types.Int64, types.String}, 1)
}

// rowsOf are n rows from a number on; each third text is NULL.
func rowsOf(from, n int) (cols, keys []arrow.Array, rows int) {
	var vs, texts []types.Value
	for i := from; i < from+n; i++ {
		vs = append(vs, int64(i))
		if i%3 == 0 {
			texts = append(texts, nil)
		} else {
			texts = append(texts, fmt.Sprint("row ", i))
		}
	}
	v := types.ArrayOf(vs, types.Int64)
	return []arrow.Array{v, types.ArrayOf(texts, types.String)}, []arrow.Array{v}, n
}

// apply gives the rows that parts make, and how many rows the parts have.
func apply(t *testing.T, parts ...Part) (rows []int64, written int) {
	t.Helper()
	l := newTestLog()
	for _, p := range parts {
		written += int(p.Rows.NumRows())
		if err := l.Restore(p, func(uint8) bool { return true }); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range l.Segments() {
		for i, v := range s.Cols[0].(*array.Int64).Int64Values() {
			text := s.Cols[1].(*array.String)
			if text.IsNull(i) != (v%3 == 0) || text.IsValid(i) && text.Value(i) != fmt.Sprint("row ", v) {
				t.Fatalf("row %d has the text %q", v, text.Value(i))
			}
			rows = append(rows, v)
		}
	}
	slices.Sort(rows)
	if len(rows) != l.Len() {
		t.Fatalf("%d rows of %d", len(rows), l.Len())
	}
	return rows, written
}

func held(l *Log) (rows []int64) {
	for _, s := range l.Segments() {
		rows = append(rows, s.Cols[0].(*array.Int64).Int64Values()...)
	}
	slices.Sort(rows)
	return rows
}

func dirty(t *testing.T, l *Log) Part {
	t.Helper()
	p, err := l.Dirty(0)
	if err != nil {
		t.Fatal(err)
	}
	l.Forget(l.Cut())
	return p
}

func TestALogWritesWhatChanged(t *testing.T) {
	l := newTestLog()
	l.Track()
	a, b := l.Add(rowsOf(0, 5)), l.Add(rowsOf(5, 5))
	first := dirty(t, l)
	b = l.Merge(a, b)
	b = l.Narrow(b, []int32{1, 2, 8})
	gone := l.Add(rowsOf(10, 4))
	l.Add(rowsOf(14, 2))
	l.Drop(gone)
	second := dirty(t, l)
	if got, n := apply(t, first, second); !slices.Equal(got, []int64{1, 2, 8, 14, 15}) || !slices.Equal(got, held(l)) || n != 10+7+2 {
		t.Errorf("%d rows were written: %v", n, got)
	}
	if got, n := apply(t, first, second, dirty(t, l)); n != 19 || len(got) != 5 {
		t.Errorf("without a change %d rows were written: %v", n, got)
	}
	l.Drop(b)
	third := dirty(t, l)
	if got, _ := apply(t, first, second, third); !slices.Equal(got, []int64{14, 15}) {
		t.Errorf("%v", got)
	}
	whole, err := l.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if got, n := apply(t, whole); !slices.Equal(got, []int64{14, 15}) || n != 2 {
		t.Errorf("%v", got)
	}
	l.Clear()
	if got, _ := apply(t, whole, dirty(t, l)); len(got) != 0 || l.Len() != 0 {
		t.Errorf("%v", got)
	}
}

// An epoch whose object is being written is listed until it is durable.
func TestALogListsEpochsUntilTheyAreDurable(t *testing.T) {
	l := newTestLog()
	l.Track()
	a := l.Add(rowsOf(0, 3))
	one := l.Cut()
	l.Drop(a)
	l.Add(rowsOf(3, 2))
	two := l.Cut()
	l.Add(rowsOf(5, 1))
	for _, c := range []struct {
		since uint64
		want  int64 // rows in the part
	}{{0, 3}, {one, 6}, {two, 1}} {
		p, err := l.Dirty(c.since)
		if err != nil || p.Rows.NumRows() != c.want {
			t.Errorf("since %d: %d rows, %v", c.since, p.Rows.NumRows(), err)
		}
	}
	l.Forget(one)
	if p, err := l.Dirty(one); err != nil || p.Rows.NumRows() != 6 {
		t.Errorf("%d rows, %v", p.Rows.NumRows(), err)
	}
}

// A restored log goes on with numbers that are not taken, and what it was restored with is not written again.
func TestARestoredLogGoesOn(t *testing.T) {
	l := newTestLog()
	l.Track()
	l.Add(rowsOf(0, 100))
	first := dirty(t, l)
	for half := range 2 {
		m := newTestLog()
		m.Track()
		if err := m.Restore(first, func(g uint8) bool { return int(g)&1 == half }); err != nil {
			t.Fatal(err)
		}
		keys := func(cols []arrow.Array, _ int) ([]arrow.Array, error) { return cols[:1], nil }
		if err := m.Rearrange(7, keys); err != nil {
			t.Fatal(err)
		}
		for _, s := range m.Segments() {
			if s.Len() > 7 {
				t.Errorf("a segment of %d rows", s.Len())
			}
		}
		m.Add(rowsOf(100+10*half, 10))
		p := dirty(t, m)
		if p.Rows.NumRows() != 10 {
			t.Errorf("%d rows are written", p.Rows.NumRows())
		}
		if got, _ := apply(t, first, p); len(got) != 110 {
			t.Errorf("%d rows", len(got))
		}
	}
	if err := l.Restore(Part{Table: "other", Rows: first.Rows}, nil); err == nil {
		t.Error("the part of another table was taken")
	}
}

// A restored log holds about the memory of the one that was written, into however many segments its rows are cut.
func TestARestoredLogHoldsItsRowsOnce(t *testing.T) {
	const segments, rows = 32, 4096
	l := newTestLog()
	for i := range segments {
		l.Add(rowsOf(i*rows, rows))
	}
	whole, err := l.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	m := newTestLog()
	if err := m.Restore(whole, func(uint8) bool { return true }); err != nil {
		t.Fatal(err)
	}
	if err := m.Rearrange(rows, func(cols []arrow.Array, _ int) ([]arrow.Array, error) { return cols[:1], nil }); err != nil {
		t.Fatal(err)
	}
	if len(m.Segments()) != segments {
		t.Fatalf("%d segments", len(m.Segments()))
	}
	if before, after := l.Bytes(), m.Bytes(); after > 2*before {
		t.Errorf("%d bytes before, %d after", before, after)
	}
}

// What the log counts along is what a walk over its segments finds, whatever was done.
func TestALogCountsItsBytes(t *testing.T) {
	rnd := clock.NewRand(9)
	keys := func(cols []arrow.Array, _ int) ([]arrow.Array, error) { return cols[:1], nil }
	l := newTestLog()
	var saved []Part
	for step := range 2000 {
		segments := l.Segments()
		some := func() *Segment { return segments[rnd.IntN(len(segments))] }
		switch op := rnd.IntN(12); {
		case op < 5 || len(segments) == 0:
			cols, ks, n := rowsOf(step, 1+rnd.IntN(200))
			if op == 0 {
				ks = []arrow.Array{cols[1], cols[1]}
			}
			l.Add(cols, ks, n)
		case op == 5:
			l.Drop(some())
		case op == 6 && len(segments) > 1:
			if at := rnd.IntN(len(segments) - 1); len(segments[at].Keys) == len(segments[at+1].Keys) {
				l.Merge(segments[at], segments[at+1])
			}
		case op == 7:
			s := some()
			var rows []int32
			for i := range s.Len() {
				if rnd.IntN(2) == 0 {
					rows = append(rows, int32(i))
				}
			}
			if len(rows) > 0 {
				l.Narrow(s, rows)
			}
		case op == 8:
			l.Track()
			l.Forget(l.Cut() - uint64(rnd.IntN(2)))
		case op == 9 && rnd.IntN(20) == 0:
			l.Clear()
		case op == 10:
			p, err := l.Dirty(0)
			if err != nil {
				t.Fatal(err)
			}
			saved = append(saved, p)
		case op == 11 && rnd.IntN(5) == 0:
			l = newTestLog()
			for _, p := range saved {
				if err := l.Restore(p, func(g uint8) bool { return g%8 != 0 }); err != nil {
					t.Fatal(err)
				}
			}
			if err := l.Rearrange(100, keys); err != nil {
				t.Fatal(err)
			}
			saved = nil
		}
		var want int64
		for _, s := range l.segments {
			want += s.held()
		}
		for _, g := range l.gone {
			want += g.held()
		}
		if l.Bytes() != want {
			t.Fatalf("step %d: %d bytes are counted, %d are held", step, l.Bytes(), want)
		}
	}
	alone := newTestLog()
	cols, _, n := rowsOf(0, 1000)
	alone.Add(cols, nil, n)
	shared := newTestLog()
	shared.Add(cols, []arrow.Array{cols[1], cols[0]}, n)
	if alone.Bytes() != shared.Bytes() || alone.Bytes() == 0 {
		t.Errorf("%d bytes without keys, %d with keys that are columns", alone.Bytes(), shared.Bytes())
	}
}

// A part whose keys are no numbers is an error, not a panic and not fewer rows.
func TestSequencesHaveKeysOfEightBytes(t *testing.T) {
	named := newTestTable(goodHash)
	named.put(1, "key", "more bytes")
	p, err := named.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	numbered := testDecl
	numbered.Key = Sequence
	to := []Stored{NewTable(numbered, &Int64s{}, NewValues(types.String)), NewLog(numbered, []types.Type{types.Int64, types.String})}
	for _, s := range to {
		if err := s.Restore(p, func(uint8) bool { return true }); !errs.Is(err, errs.State) {
			t.Errorf("%T: %v", s, err)
		}
	}
}
