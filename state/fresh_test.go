package state

import (
	"slices"
	"testing"
)

// A checkpoint is restored in many pieces, none of which has a key of another: they are what the whole is.
func TestFreshPiecesAreTheWhole(t *testing.T) {
	l := newTestLog()
	l.Add(rowsOf(0, 50))
	whole, err := l.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	want, _ := apply(t, whole)
	var pieces []Part
	for i := range whole.Rows.NumRows() {
		pieces = append(pieces, Part{Table: whole.Table, Version: whole.Version, Rows: whole.Rows.NewSlice(i, i+1), Fresh: true})
	}
	if got, n := apply(t, pieces...); !slices.Equal(got, want) || n != 50 {
		t.Errorf("%d rows: %v", n, got)
	}

	decl := Decl{Name: "test_log", Version: 1, Key: Sequence, Values: []string{"n"}}
	a := NewTable(decl, &Int64s{})
	a.Append(make([]uint8, 20), make([]uint32, 20))
	all, err := a.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	b := NewTable(decl, &Int64s{})
	for i := range all.Rows.NumRows() {
		if err := b.Restore(Part{Table: all.Table, Version: all.Version, Rows: all.Rows.NewSlice(i, i+1), Fresh: true}, func(uint8) bool { return true }); err != nil {
			t.Fatal(err)
		}
	}
	// A later part finds what fresh ones brought.
	if err := b.Restore(all, func(uint8) bool { return true }); err != nil {
		t.Fatal(err)
	}
	if b.Len() != 20 {
		t.Errorf("%d rows", b.Len())
	}
}
