package incremental

import "github.com/riverbed/riverbed/core/flow"

// unionAll gives the rows of both inputs: the sum of two Z-sets.
//
//	in:    any weights        out: the same rows
//	state: none
//	time:  the lesser watermark
type unionAll struct{}

func (unionAll) Process(ctx *Ctx, _ int, in Batch) error { return ctx.Emit(in.Cols, in.N, in.W) }
func (unionAll) Advance(*Ctx, flow.Watermark) error      { return nil }
