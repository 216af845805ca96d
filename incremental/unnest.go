package incremental

import (
	"github.com/riverbed/riverbed/core/exec"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/plan"
)

// unnest makes a row of each item of lists. It is linear: the rows of a retracted row are retracted.
//
//	in:    any weights        out: one row per item, with the weight of its row
//	state: none
//	time:  watermarks pass through
type unnest struct{ u *exec.Unnest }

func newUnnest(n *plan.Unnest) (Operator, error) {
	u, err := exec.NewUnnest(n)
	if err != nil {
		return nil, err
	}
	return &unnest{u}, nil
}

func (u *unnest) Process(ctx *Ctx, _ int, in Batch) error {
	for items := u.u.Of(ctx.Env, in.Cols, in.N); ; {
		cols, rows, err := items.Next()
		if err != nil || rows == nil {
			return err
		}
		if err := ctx.Emit(cols, len(rows), pickRows(in.W, rows)); err != nil {
			return err
		}
	}
}

func (u *unnest) Advance(*Ctx, flow.Watermark) error { return nil }
