package incremental

import (
	"github.com/riverbed/riverbed/core/exec"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/plan"
)

// timeWindow gives each row the start and end of its windows, and repeats it where there are several. It is linear.
//
//	in:    any weights        out: one row per row and window, weights as they are
//	state: none
//	time:  watermarks pass through; the edges are bound to them (plan.TimeColumns)
type timeWindow struct{ w *exec.TimeWindow }

func newTimeWindow(n *plan.TimeWindow) (Operator, error) {
	w, err := exec.NewTimeWindow(n)
	if err != nil {
		return nil, err
	}
	return &timeWindow{w}, nil
}

func (t *timeWindow) Process(ctx *Ctx, _ int, in Batch) error {
	cols, weighted := withWeights(in)
	cols, n, err := t.w.Apply(ctx.Env, cols, len(in.Cols), in.N)
	if err != nil {
		return err
	}
	return emitWeighted(ctx, cols, n, weighted)
}

func (t *timeWindow) Advance(*Ctx, flow.Watermark) error { return nil }
