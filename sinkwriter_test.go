package riverbed

import (
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/types"
)

// Rows that only come are committed in the order in which they came; of those that may go, what came and went is left out.
func TestOrderOfHeldRows(t *testing.T) {
	fields := []types.Field{{Name: "v", Type: types.Int64}}
	delta := func(weight int64, values ...types.Value) flow.Delta {
		weights := make([]types.Value, len(values))
		for i := range weights {
			weights[i] = weight
		}
		cols := []arrow.Array{types.ArrayOf(values, types.Int64), types.ArrayOf(weights, types.Int64)}
		return flow.Delta{Batch: array.NewRecordBatch(flow.WithWeights(types.ArrowSchema(fields)), cols, int64(len(values)))}
	}
	for _, c := range []struct {
		updates bool
		deltas  []flow.Delta
		want    []int64
	}{
		{false, []flow.Delta{delta(1, int64(5), int64(3)), delta(1, int64(4), int64(1))}, []int64{5, 3, 4, 1}},
		{true, []flow.Delta{delta(1, int64(5), int64(3)), delta(-1, int64(5))}, []int64{3}},
	} {
		s := &connectorSink{fields: fields, held: true, exactly: true, updates: c.updates}
		for _, d := range c.deltas {
			if err := s.write(t.Context(), d); err != nil {
				t.Fatal(err)
			}
		}
		st, err := s.stage(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		var got []int64
		for _, b := range st.rows {
			got = append(got, b.Column(0).(*array.Int64).Int64Values()...)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("updates %t: %v, and should be %v", c.updates, got, c.want)
		}
	}
}
