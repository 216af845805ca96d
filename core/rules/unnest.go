package rules

import (
	"slices"

	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/plan"
)

// What the rules know of UNNEST: rows below it become several, one row by itself.

// graft turns a dependent join whose right side computes rows from one left row alone, as FROM t, unnest(t.l) does, into
// operators over the left: no join is left. Nil where the right side does more than that.
//
// It must not go through a node that looks at several rows, and a left join whose right side may drop rows keeps to the
// domain way: the rows that it lost could not be brought back here.
func (d *decorrelator) graft(a *plan.Apply) plan.Node {
	if a.Kind != plan.Inner && a.Kind != plan.Left || len(a.Args) > 0 {
		return nil
	}
	outer := a.Kind == plan.Left
	if outer && a.On != nil && !isTrue(a.On) {
		return nil
	}
	n := d.over(a.Right, a.Left, outer)
	if n == nil {
		return nil
	}
	n = exactly(n, append(slices.Clone(a.Left.Columns()), a.Right.Columns()...))
	if outer {
		return n
	}
	return where(n, expr.Conjuncts(a.On))
}

func isTrue(e expr.Expr) bool {
	l, ok := e.(*expr.Lit)
	return ok && l.V == true
}

// over is n computed over rows of left, whose columns pass through; nil when n is no function of one row.
func (d *decorrelator) over(n, left plan.Node, outer bool) plan.Node {
	switch n := n.(type) {
	case *plan.Values:
		if len(n.Rows) != 1 {
			return nil
		}
		p := &plan.Project{Input: left, Items: pass(left.Columns())}
		for i, c := range n.Cols {
			p.Items = append(p.Items, plan.Item{Expr: n.Rows[0][i], Col: c})
		}
		if len(n.Cols) == 0 {
			return left
		}
		return p
	case *plan.Project:
		for _, it := range n.Items {
			if _, plain := it.Expr.(*expr.Col); outer && !plain {
				return nil // of the row that has no items nothing is computed
			}
		}
		in := d.over(n.Input, left, outer)
		if in == nil {
			return nil
		}
		return &plan.Project{Input: in, Items: append(slices.Clone(n.Items), pass(left.Columns())...)}
	case *plan.Filter:
		if outer {
			return nil
		}
		in := d.over(n.Input, left, outer)
		if in == nil {
			return nil
		}
		return &plan.Filter{Input: in, Cond: n.Cond}
	case *plan.Unnest:
		if _, lowest := n.Input.(*plan.Values); outer && !lowest {
			return nil
		}
		in := d.over(n.Input, left, false)
		if in == nil {
			return nil
		}
		m := *n
		m.Input, m.Pass, m.Outer = in, append(slices.Clone(left.Columns()), n.Pass...), n.Outer || outer
		return &m
	}
	return nil
}

// pullUnnest pulls from below an UNNEST whose lists read nothing of the outer query.
func (d *decorrelator) pullUnnest(n *plan.Unnest, outer plan.ColSet) *pulled {
	p := d.pull(n.Input, outer)
	if p == nil || !p.simple() || readsAny(n.Exprs(), outer) || n.Outer {
		return nil
	}
	m := *n
	m.Input, m.Pass = p.plan, p.plan.Columns()
	p.plan = &m
	return p
}

// unnest computes the lists for every row of D.
func (x *domain) unnest(n *plan.Unnest) (plan.Node, cols) {
	in, m := x.push(n.Input)
	if x.err != nil {
		return n, nil
	}
	u := *m.node(n, in).(*plan.Unnest)
	u.Pass = append(slices.Clone(u.Pass), x.list(m)...)
	return &u, m
}

// pushUnnest moves conditions below: they may read only what is handed on.
func (c *rewriter) pushUnnest(n *plan.Unnest, preds []expr.Expr) plan.Node {
	below := plan.SetOf(n.Pass)
	down, up := split(preds, func(e expr.Expr) bool { return plan.Subset(plan.ExprColumns(e), below) && !volatile(e) && !stuck(e) })
	return where(rebuild(n, c.push(n.Input, down)), up)
}

// pruneUnnest hands on only what is used: a column is repeated for each item.
func (c *rewriter) pruneUnnest(n *plan.Unnest, need plan.ColSet) plan.Node {
	m := *n
	m.Pass = []plan.Column{}
	below := plan.Reads(n)
	for _, col := range n.Pass {
		if need[col.ID] {
			m.Pass = append(m.Pass, col)
			below[col.ID] = true
		}
	}
	if n.Ordinality != nil && !need[n.Ordinality.ID] {
		m.Ordinality = nil
	}
	if m.Input = c.prune(n.Input, below); m.Input == n.Input && len(m.Pass) == len(n.Pass) && m.Ordinality == n.Ordinality {
		return n
	}
	return &m
}
