package exec

import (
	"context"
	"slices"

	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/kernels"
)

// maxTopRows is the greatest LIMIT and OFFSET for which the first rows are picked out as they come.
const maxTopRows = 1 << 20

// topPool is the rows that one worker keeps of a top-N.
type topPool struct {
	top  *kernels.TopN
	kept []*flow.Morsel
	rows int
}

// topRows keeps, per worker, the rows that were among the first N when they came; what they hold together is cut to
// the first N by the sort that follows.
func (s *sorted) topRows(ctx context.Context) ([]*flow.Morsel, error) {
	keep := int(s.offset + s.limit)
	if s.limit == 0 {
		return nil, nil
	}
	pools := make([]topPool, s.env.Workers)
	err := drain(ctx, s.input, s.env.Workers, func(w int, m *flow.Morsel) error {
		p := &pools[w]
		if p.top == nil {
			p.top = kernels.NewTopN(s.order.types, s.order.keys, keep)
		}
		n := int(m.Batch.NumRows())
		keys, err := s.order.prog.EvalArrays(s.env.Fn, m.Batch.Columns(), n)
		if err != nil {
			return err
		}
		rows := p.top.Offer(keys, n)
		if len(rows) == 0 {
			return nil
		}
		p.kept = append(p.kept, morsel(s.input.Schema(), m.Seq, kernels.TakeBatch(m.Batch.Columns(), rows), len(rows)))
		if p.rows += len(rows); p.rows > 2*keep+blockRows {
			return s.cut(p, keep)
		}
		return nil
	})
	var all []*flow.Morsel
	for _, p := range pools {
		all = append(all, p.kept...)
	}
	return all, err
}

// cut drops the rows of a pool that are no longer among the first. Equal rows keep their order.
func (s *sorted) cut(p *topPool, keep int) error {
	d := joinMorsels(s.input.Schema(), p.kept)
	keys, err := s.order.prog.EvalArrays(s.env.Fn, d.cols, d.rows)
	if err != nil {
		return err
	}
	perm := kernels.SortIndices(keys, s.order.keys, d.rows)[:keep]
	p.top.Bound(keys, int(perm[keep-1]))
	slices.Sort(perm)
	p.kept = append(p.kept[:0], morsel(s.input.Schema(), 0, kernels.TakeBatch(d.cols, perm), len(perm)))
	p.rows = len(perm)
	return nil
}
