package riverbed

import (
	"context"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/exec"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/rules"
	"github.com/riverbed/riverbed/core/types"
	"github.com/riverbed/riverbed/incremental"
)

// A row that an expression fails on ends the query with an error that names it, or, with on_error = 'bad', is left out and
// stands in __bad. Both come from the guards of scans (rules.guardRows): a query that runs to fail has none, and pays
// nothing; once it has failed, its rows are judged again to find the one.

// ruleOptions are what the rules need to know of the query.
func (q *Query) ruleOptions() rules.Options { return rules.Options{Divert: q.divert} }

// env is the session's for a batch run of the query, and what is to be called behind the end of that.
func (q *Query) env(ctx context.Context) (env *exec.Env, ended func()) {
	env = q.s.env(ctx)
	if !q.divert {
		return env, func() {}
	}
	q.bad.Store(0)
	name := q.s.runs.name("query")
	env.Bad = func(rows []flow.BadRow) {
		q.bad.Add(int64(len(rows)))
		q.s.bad.add(name, q.badRows(name, rows))
	}
	return env, func() { q.s.endKept(name, false) }
}

// BadRows is how many rows the last batch run has left out so far (on_error = 'bad').
func (q *Query) BadRows() int64 { return q.bad.Load() }

// badRows are rows of __bad. Those of an expression name the query's text.
func (q *Query) badRows(run string, rows []flow.BadRow) [][]types.Value {
	out := make([][]types.Value, len(rows))
	for i, b := range rows {
		out[i] = []types.Value{run, b.Source, b.Split, b.Position, b.Error, nil, b.Time.UnixMicro(), nil, nil, nil}
		if b.Row == "" {
			out[i][5], out[i][9] = b.Raw, bytesOrNull(b.Key)
		} else {
			out[i][7], out[i][8] = b.Row, q.text
		}
	}
	return out
}

func bytesOrNull(b []byte) types.Value {
	if b == nil {
		return nil
	}
	return b
}

// failedOn names the row in an error of a batch run.
func (q *Query) failedOn(ctx context.Context, err error) error {
	return q.onRow(err, rules.Batch, func(scans []*plan.Scan, e *errs.Error) *errs.Row {
		env := q.s.env(ctx)
		for _, n := range scans {
			if row, _ := exec.FindRow(ctx, n, env, e); row != nil { // that it cannot be found again changes nothing
				return row
			}
		}
		return nil
	})
}

// failedStep names the row in an error of a step.
func (q *Query) failedStep(g *incremental.Graph, in incremental.Input, err error) error {
	return q.onRow(err, rules.Incremental, func(scans []*plan.Scan, e *errs.Error) *errs.Row { return g.FindRow(in, scans, e) })
}

func (q *Query) onRow(err error, mode rules.Mode, find func([]*plan.Scan, *errs.Error) *errs.Row) error {
	e := errs.As(err)
	if e == nil || e.Row == nil || !e.Pos.Valid() {
		return err
	}
	named := *e
	if row := find(q.guards(mode, e), e); row != nil {
		named.Row = row
	} else if q.divert {
		named.Row = &errs.Row{Of: e.Row.Of + ", which on_error = 'bad' does not leave out", Values: e.Row.Values}
	}
	return &named
}

// guards are the scans that judge the expression that failed.
func (q *Query) guards(mode rules.Mode, e *errs.Error) []*plan.Scan {
	bound := q.bound
	if mode == rules.Incremental {
		bound = q.live
	}
	opt, _, err := rules.Optimize(bound, mode, rules.Options{Divert: true})
	if err != nil {
		return nil
	}
	var out []*plan.Scan
	plan.Walk(opt.Root, func(n plan.Node) bool {
		if s, ok := n.(*plan.Scan); ok && s.Guard != nil && s.Guard.Has(e.Pos) {
			out = append(out, s)
		}
		return true
	})
	return out
}
