package incremental

import (
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/exec"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/plan"
)

// filter keeps rows whose condition is true. It is linear: weights ride along.
//
//	in:    any weights        out: the kept rows, weights as they are
//	state: none
//	time:  watermarks pass through
type filter struct{ f *exec.Filter }

func newFilter(n *plan.Filter) (Operator, error) {
	f, err := exec.NewFilter(n.Cond, n.Input.Columns())
	if err != nil {
		return nil, err
	}
	return &filter{f}, nil
}

func (f *filter) Process(ctx *Ctx, _ int, in Batch) error {
	cols, weighted := withWeights(in)
	cols, n, err := f.f.Apply(ctx.Env, cols, in.N)
	if err != nil {
		return err
	}
	return emitWeighted(ctx, cols, n, weighted)
}

func (f *filter) Advance(*Ctx, flow.Watermark) error { return nil }

// withWeights puts the weights behind the columns, for functions that carry further columns along.
func withWeights(in Batch) ([]arrow.Array, bool) {
	if in.W == nil {
		return in.Cols, false
	}
	return append(append(make([]arrow.Array, 0, len(in.Cols)+1), in.Cols...), int64Array(in.W)), true
}

func emitWeighted(ctx *Ctx, cols []arrow.Array, n int, weighted bool) error {
	if !weighted {
		return ctx.Emit(cols, n, nil)
	}
	last := len(cols) - 1
	return ctx.Emit(cols[:last], n, weightsOf(cols[last]))
}
