package incremental

import (
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/exec"
	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/plan"
)

// scan picks a source's columns and applies the filters that were pushed down to it.
//
//	in:    rows of the source stage     out: the columns of this scan
//	state: none
//	time:  the source's watermark
type scan struct {
	at     []int
	guard  *exec.Guard // nil: none
	filter *exec.Filter
}

func newScan(n *plan.Scan, src *source) (Operator, error) {
	s := &scan{}
	var err error
	if s.guard, err = exec.NewGuard(n); err != nil {
		return nil, err
	}
	for _, pos := range n.At {
		s.at = append(s.at, src.position(pos))
	}
	if n.Source.Upsert != nil {
		s.at = append(s.at, len(src.columns)) // the split, for the normalize above
	}
	if cond := expr.Conjunction(n.Filters); cond != nil {
		f, err := exec.NewFilter(cond, n.Cols)
		if err != nil {
			return nil, err
		}
		s.filter = f
	}
	return s, nil
}

func (s *scan) Process(ctx *Ctx, _ int, in Batch) error {
	cols := make([]arrow.Array, len(s.at), len(s.at)+1)
	for i, at := range s.at {
		cols[i] = in.Cols[at]
	}
	if s.guard != nil {
		if err := s.judge(ctx, &in, cols); err != nil {
			return err
		}
		cols = in.Cols
	}
	if s.filter == nil {
		return ctx.Emit(cols, in.N, in.W)
	}
	cols, weighted := withWeights(Batch{Cols: cols, N: in.N, W: in.W})
	cols, n, err := s.filter.Apply(ctx.Env, cols, in.N)
	if err != nil {
		return err
	}
	return emitWeighted(ctx, cols, n, weighted)
}

// judge leaves out the bad rows, and tells those that come. One that goes was told when it came.
func (s *scan) judge(ctx *Ctx, in *Batch, cols []arrow.Array) error {
	pass, all, bad, err := s.guard.Judge(ctx.Env, cols, in.N)
	if err != nil {
		return err
	}
	rows := s.guard.Rows(cols, in.Places, bad, ctx.Env.Now)
	for i, b := range rows {
		for range max(in.weight(bad[i].Row), 0) {
			ctx.left = append(ctx.left, b)
		}
	}
	in.Cols = cols
	if !all {
		*in = in.take(pass)
	}
	return nil
}

func (s *scan) Advance(*Ctx, flow.Watermark) error { return nil }
