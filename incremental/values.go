package incremental

import (
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/plan"
)

// values gives rows of constants, all in the first step.
//
//	in:    none               out: the rows, once
//	state: none; the graph knows whether its first step is behind it
//	time:  its input has ended: +∞
type values struct {
	node *plan.Values
	done bool
}

func (v *values) Process(*Ctx, int, Batch) error { return nil }

func (v *values) Advance(ctx *Ctx, _ flow.Watermark) error {
	if v.done {
		return nil
	}
	v.done = true
	cols := make([]arrow.Array, len(v.node.Cols))
	for c := range cols {
		parts := make([]arrow.Array, len(v.node.Rows))
		for r, row := range v.node.Rows {
			p, err := expr.Compile(row[c], nil)
			if err != nil {
				return err
			}
			if parts[r], err = p.EvalArray(ctx.Env, nil, 1); err != nil {
				return err
			}
		}
		if len(parts) == 0 {
			return nil
		}
		cols[c] = kernels.Concat(parts)
	}
	return ctx.Emit(cols, len(v.node.Rows), nil)
}
