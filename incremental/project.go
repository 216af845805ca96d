package incremental

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/core/exec"
	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/plan"
)

// project computes columns. It is linear: weights ride along.
//
//	in:    any weights        out: one row per row, weights as they are
//	state: none
//	time:  watermarks pass through
type project struct {
	p  *exec.Project
	at []int // where the columns lie in the input; nil: some are computed
}

func newProject(n *plan.Project) (Operator, error) {
	p, err := exec.NewProject(n.Items, n.Input.Columns())
	if err != nil {
		return nil, err
	}
	at := make([]int, len(n.Items))
	layout := layoutOf(n.Input.Columns())
	for i, it := range n.Items {
		c, ok := it.Expr.(*expr.Col)
		if !ok {
			return &project{p: p}, nil
		}
		at[i] = layout[c.ID]
	}
	return &project{p, at}, nil
}

func (p *project) Process(ctx *Ctx, _ int, in Batch) error {
	cols, err := p.p.Apply(ctx.Env, in.Cols, in.N)
	if err != nil {
		return err
	}
	return ctx.Emit(cols, in.N, in.W)
}

// passLate hands on columns that nobody has asked for yet.
func (p *project) passLate(ctx *Ctx, b *lateBatch) error {
	out := b.columns(ctx.schema, p.at)
	return ctx.emitLate(b.n, out.gather)
}

func (p *project) Advance(*Ctx, flow.Watermark) error { return nil }

func weightsOf(a arrow.Array) []int64 { return a.(*array.Int64).Int64Values() }
