package incremental

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/core/exec"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/plan"
)

// project computes columns. It is linear: weights ride along.
//
//	in:    any weights        out: one row per row, weights as they are
//	state: none
//	time:  watermarks pass through
type project struct{ p *exec.Project }

func newProject(n *plan.Project) (Operator, error) {
	p, err := exec.NewProject(n.Items, n.Input.Columns())
	if err != nil {
		return nil, err
	}
	return &project{p}, nil
}

func (p *project) Process(ctx *Ctx, _ int, in Batch) error {
	cols, err := p.p.Apply(ctx.Env, in.Cols, in.N)
	if err != nil {
		return err
	}
	return ctx.Emit(cols, in.N, in.W)
}

func (p *project) Advance(*Ctx, flow.Watermark) error { return nil }

func weightsOf(a arrow.Array) []int64 { return a.(*array.Int64).Int64Values() }
