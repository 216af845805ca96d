package flow

import "testing"

func TestPlaces(t *testing.T) {
	p := &Places{Split: "a.csv", Kind: File, Unit: RowNumber}
	for row, at := range []int64{4, 5, 7, 8, 12} { // records 6 and 9 to 11 did not decode
		p.Add(row, at)
	}
	if len(p.Runs) != 3 {
		t.Fatalf("%d runs: %v", len(p.Runs), p.Runs)
	}
	for row, want := range []string{"row 4", "row 5", "row 7", "row 8", "row 12", "row 13"} {
		if have := p.Position(row); have != want {
			t.Errorf("row %d: %q, not %q", row, have, want)
		}
	}
	q := p.Pick([]int32{1, 1, 2, 4})
	for row, want := range []string{"row 5", "row 5", "row 7", "row 12"} {
		if have := q.Position(row); have != want {
			t.Errorf("picked row %d: %q, not %q", row, have, want)
		}
	}
	for _, c := range []struct {
		p    *Places
		want string
	}{
		{nil, "a row of t"},
		{&Places{}, "a row of t"},
		{&Places{Unit: RowID, Runs: []Run{{0, 9}}}, "rowid 10 of t"},
		{&Places{Split: "data/a.csv", Kind: File, Unit: RowNumber, Runs: []Run{{0, 9}}}, "row 10 of data/a.csv"},
		{&Places{Split: "3", Kind: Partition, Unit: Offset, Runs: []Run{{0, 9}}}, "offset 10 of partition 3 of t"},
		{&Places{Split: "0", Kind: PushSplit, Unit: RowNumber, Runs: []Run{{0, 9}}}, "row 10 of split 0 of t"},
	} {
		if have := c.p.Words("t", 1); have != c.want {
			t.Errorf("%q, not %q", have, c.want)
		}
	}
	if have := (&Places{Unit: Offset, Runs: []Run{{0, 9}}}).Position(1); have != "10" {
		t.Error(have)
	}
}
