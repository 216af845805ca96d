package riverbed

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/types"
)

// Changes wait until somebody looks, but not too many, and what is seen is what a map counts.
func TestChangesWait(t *testing.T) {
	fields := []types.Field{{Name: "k", Type: types.Int64}}
	z := newZset(fields)
	schema := flow.WithWeights(types.ArrowSchema(fields))
	r := rand.New(rand.NewPCG(1, 2))
	model := map[int64]int64{}
	for step := range 60 {
		n := r.IntN(20_000)
		keys, weights := make([]int64, n), make([]int64, n)
		for i := range keys {
			keys[i], weights[i] = r.Int64N(500), 1
			if model[keys[i]] > 0 && r.IntN(2) == 0 {
				weights[i] = -1
			}
			model[keys[i]] += weights[i]
		}
		cols := []arrow.Array{kernels.NewFixed(arrow.PrimitiveTypes.Int64, keys, nil), kernels.NewFixed(arrow.PrimitiveTypes.Int64, weights, nil)}
		z.add(flow.Delta{Batch: array.NewRecordBatch(schema, cols, int64(n))})
		if z.rows > waitingRows {
			t.Fatalf("%d rows wait", z.rows)
		}
		if step < 40 && step%7 != 0 { // at the end more than may wait
			continue
		}
		if step > 40 && step < 59 {
			continue
		}
		var got, want []int64
		for _, b := range z.batches() {
			got = append(got, b.Column(0).(*array.Int64).Int64Values()...)
		}
		for k, w := range model {
			for ; w > 0; w-- {
				want = append(want, k)
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Fatalf("step %d: %d rows, not %d", step, len(got), len(want))
		}
		if len(z.waiting) > 0 || z.rows != 0 {
			t.Error("some still wait")
		}
	}
}
