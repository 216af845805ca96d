package delta_test

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	ct "github.com/riverbed/riverbed/connectors/connectortest"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/kernels"
)

// narrowed asks for the even values of the first column while it is decoded, behind a vector.
func narrowed(t *testing.T, r flow.Relation) {
	t.Helper()
	even := flow.Stage{Columns: []int{1}, Pure: true, Select: func(_ int, cols []arrow.Array, n int) (rows []int32, all bool, err error) {
		for i := range n {
			if cols[0].(*array.Int64).Value(i)%2 == 0 {
				rows = append(rows, int32(i))
			}
		}
		return rows, len(rows) == n, nil
	}}
	narrow := &flow.Narrowing{Take: kernels.Take, Kept: make([]flow.Kept, 1), Stages: []flow.Stage{even}}
	s, err := r.Scan(t.Context(), flow.ScanRequest{Columns: []int{1, 0}, Workers: 1, BatchRows: 3, Narrow: narrow})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	var got []string
	for {
		m, err := s.Next(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		if m == nil {
			break
		}
		if !m.Narrowed {
			t.Fatal("a file of the table's own columns was not narrowed")
		}
		for row := range int(m.Batch.NumRows()) {
			got = append(got, ct.Row(m.Batch, row))
		}
	}
	want(t, got, "c|2", "e|4", "g|6", "i|8")
}
