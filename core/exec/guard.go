package exec

import (
	"context"
	"slices"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/types"
)

// Guard finds the bad rows of a scan (plan.Guard). It serves both modes.
type Guard struct {
	source string
	quiet  bool
	keep   []*expr.Program
	values *expr.Program // nil: none
	show   []types.Field
	at     []int // of show, in the scan's columns
}

// NewGuard compiles the guard of a scan; nil without one.
func NewGuard(n *plan.Scan) (*Guard, error) {
	if n.Guard == nil {
		return nil, nil
	}
	layout := layoutOf(n.Cols)
	g := &Guard{source: n.Source.Name, quiet: n.Guard.Quiet}
	for _, e := range n.Guard.Keep {
		p, err := expr.Compile(e, layout)
		if err != nil {
			return nil, err
		}
		g.keep = append(g.keep, p)
	}
	for _, c := range n.Guard.Show {
		g.show, g.at = append(g.show, types.Field{Name: c.Name, Type: c.Type}), append(g.at, layout[c.ID])
	}
	if len(n.Guard.Values) == 0 {
		return g, nil
	}
	var err error
	g.values, err = expr.CompileAll(n.Guard.Values, layout)
	return g, err
}

// Judge returns the rows that pass, or all, and the bad ones. A row that fails in one condition is judged by the others
// too: when one of them drops it, it is not bad, in whatever order they were written.
func (g *Guard) Judge(env *fn.Env, cols []arrow.Array, n int) (pass []int32, all bool, bad []fn.RowError, err error) {
	rows := identity(n) // not dropped so far
	failed := map[int32]error{}
	narrow := func(to []int32) { // positions in rows
		if len(to) < len(rows) {
			cols = kernels.TakeBatch(cols, to)
			rows = pick(rows, to)
		}
	}
	for _, p := range g.keep {
		sel, every, fails, err := p.EvalFilterDivert(env, cols, len(rows))
		if err != nil {
			return nil, false, nil, err
		}
		if every {
			continue
		}
		for _, f := range fails {
			if r := rows[f.Row]; failed[r] == nil || before(f.Err, failed[r]) {
				failed[r] = f.Err
			}
			sel = append(sel, int32(f.Row))
		}
		slices.Sort(sel)
		narrow(sel)
	}
	if len(failed) > 0 {
		var good []int32
		for i, r := range rows {
			if err := failed[r]; err != nil {
				bad = append(bad, fn.RowError{Row: int(r), Err: err})
			} else {
				good = append(good, int32(i))
			}
		}
		narrow(good)
	}
	if g.values != nil && len(rows) > 0 {
		_, fails, err := g.values.EvalDivert(env, cols, len(rows))
		if err != nil {
			return nil, false, nil, err
		}
		if len(fails) > 0 {
			var good []int32
			for i, r := range rows {
				if len(fails) > 0 && fails[0].Row == i {
					bad, fails = append(bad, fn.RowError{Row: int(r), Err: fails[0].Err}), fails[1:]
				} else {
					good = append(good, r)
				}
			}
			rows = good
		}
	}
	slices.SortFunc(bad, func(a, b fn.RowError) int { return a.Row - b.Row })
	return rows, len(rows) == n, bad, nil
}

// before orders the errors of one row by their place in the text, so that no order of evaluation is seen.
func before(a, b error) bool { return errs.As(a).Pos.Offset < errs.As(b).Pos.Offset }

func identity(n int) []int32 {
	rows := make([]int32, n)
	for i := range rows {
		rows[i] = int32(i)
	}
	return rows
}

// Rows are the bad rows of a batch as __bad holds them; none when the guard is quiet.
func (g *Guard) Rows(cols []arrow.Array, places *flow.Places, bad []fn.RowError, at time.Time) []flow.BadRow {
	if g.quiet {
		return nil
	}
	out := make([]flow.BadRow, len(bad))
	for i, b := range bad {
		out[i] = flow.BadRow{Source: g.source, Position: places.Position(b.Row), Row: g.text(cols, b.Row), Error: reason(b.Err), Time: at}
		if places != nil {
			out[i].Split = places.Split
		}
	}
	return out
}

// reason is an error without the hint, which is for whoever writes the query.
func reason(err error) string {
	e := *errs.As(err)
	e.Hint = ""
	return e.Error()
}

func (g *Guard) text(cols []arrow.Array, row int) string {
	shown := make([]arrow.Array, len(g.at))
	for i, at := range g.at {
		shown[i] = cols[at]
	}
	return expr.RowText(g.show, shown, row)
}

// Find looks for a row of a batch that fails as e says and puts it in words.
func (g *Guard) Find(env *fn.Env, cols []arrow.Array, n int, places *flow.Places, e *errs.Error) (*errs.Row, error) {
	_, _, bad, err := g.Judge(env, cols, n)
	for _, b := range bad {
		if f := errs.As(b.Err); f.Pos == e.Pos && f.Msg == e.Msg {
			return &errs.Row{Of: places.Words(g.source, b.Row), Values: g.text(cols, b.Row)}, nil
		}
	}
	return nil, err
}

// FindRow reads a scan with a guard until it finds a row that fails as e says, to name the first such row. Nobody keeps
// places while a query runs; one that has failed can take the time.
func FindRow(ctx context.Context, n *plan.Scan, env *Env, e *errs.Error) (*errs.Row, error) {
	g, err := NewGuard(n)
	if err != nil || g == nil || n.Source.Relation == nil {
		return nil, err
	}
	in, err := n.Source.Relation.Scan(ctx, flow.ScanRequest{Columns: n.At, Filters: plan.Predicates(n), Workers: 1, Places: true})
	if err != nil {
		return nil, err
	}
	defer func() { _ = in.Close() }()
	for {
		m, err := in.Next(ctx, 0)
		if err != nil || m == nil {
			return nil, err
		}
		row, err := g.Find(env.Fn, m.Batch.Columns(), int(m.Batch.NumRows()), m.Places, e)
		if row != nil || err != nil {
			return row, err
		}
	}
}
