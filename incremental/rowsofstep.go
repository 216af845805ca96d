package incremental

import (
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/kernels"
)

// rowsOfStep is a batch whose rows may be stored at the step's end.
type rowsOfStep struct {
	cols     []arrow.Array // the row's; nil: late has it
	late     *lateBatch
	computed []arrow.Array
	order    orderOfBatch
}

func (b *rowsOfStep) column(i int) arrow.Array {
	if c := b.cols[i]; c != nil {
		return c
	}
	return b.late.Column(i)
}

// take narrows the batch to some rows; their order is not asked for any more.
func (b *rowsOfStep) take(rows []int32) rowsOfStep {
	out := rowsOfStep{cols: make([]arrow.Array, len(b.cols)), computed: kernels.TakeBatch(b.computed, rows)}
	for i := range out.cols {
		if c := b.cols[i]; c != nil {
			out.cols[i] = kernels.Take(c, rows)
		} else {
			out.cols[i] = b.late.some(i, rows)
		}
	}
	return out
}
