package incremental

import (
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/exec"
	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/plan"
)

// FindRow looks among the rows of a step that failed for the first one that fails as e says; nil when the row was none of a
// source's. The scans have guards and belong to the query that the graph was made of.
func (g *Graph) FindRow(in Input, scans []*plan.Scan, e *errs.Error) *errs.Row {
	env := &fn.Env{Now: in.Now, TimeZone: g.opts.TimeZone, Rand: g.opts.Rand, Ctx: g.ctx}
	for _, n := range scans {
		guard, err := exec.NewGuard(n)
		if err != nil {
			continue
		}
		for _, p := range in.Pushes {
			if p.Source >= len(g.sources) || g.sources[p.Source].src != n.Source || p.Batch == nil {
				continue
			}
			s := g.sources[p.Source]
			d, err := s.accept(p.Batch, p.Places)
			if err != nil || d.Rows() == 0 {
				continue
			}
			at := make([]int, len(n.At))
			for i, field := range n.At {
				at[i] = s.position(field)
			}
			if slices.Contains(at, -1) { // the graph computes less than the guard judges
				continue
			}
			cols, whole := make([]arrow.Array, len(at)), d.Columns()
			for i, c := range at {
				cols[i] = whole[c]
			}
			if row, _ := guard.Find(env, cols, d.Rows(), d.Places, e); row != nil {
				return row
			}
		}
	}
	return nil
}
