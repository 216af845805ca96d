package rules

import (
	"slices"

	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/plan"
)

// guardRows finds, for on_error = 'bad', what is computed of a source's rows while each still is one row of that source, and
// lets the scan judge it (plan.Guard). Going up from a scan these are
//
//	Filter, Project, TimeWindow, Sort, UNION ALL   their expressions; what is above them is looked at too
//	Aggregate, TopN, GroupTopN, Distinct, …        their own expressions, and nothing above
//	Join                                           what each side's columns alone decide, and conditions above it likewise
//
// It stands behind the rules that are the same in both modes and before those that are not, so both judge alike: whatever a
// later rule moves, a row that could fail has been dropped below it. What is volatile is not judged, nor what stands above a
// volatile condition: nobody can say which rows would get there.
func guardRows(c *rewriter, root plan.Node) (plan.Node, error) {
	if !c.opts.Divert {
		return root, nil
	}
	root, err := prune(c, root) // what nobody reads is not computed, and fails nowhere
	if err != nil {
		return nil, err
	}
	g := &guards{c: c}
	return g.under(root, judged{}), nil
}

// tellOnce lets one of the scans that a rule has copied tell its bad rows.
func tellOnce(root plan.Node) plan.Node {
	told := map[int]bool{}
	return plan.Transform(root, func(n plan.Node) plan.Node {
		s, ok := n.(*plan.Scan)
		if !ok || s.Guard == nil {
			return n
		}
		first := !told[s.Guard.ID]
		told[s.Guard.ID] = true
		if first {
			return n
		}
		m, g := *s, *s.Guard
		g.Quiet, m.Guard = true, &g
		return &m
	})
}

type guards struct {
	c    *rewriter
	made int
}

// judged is what is asked of a node's rows: the conditions that they must meet above, and what is computed of them.
type judged struct{ keep, values []expr.Expr }

// value adds expressions that may fail.
func (j *judged) value(es ...expr.Expr) {
	for _, e := range es {
		if expr.Fallible(e) && !volatile(e) && !doomed(e) {
			j.values = append(j.values, e)
		}
	}
}

// below restates what is asked of a projection's output for its input.
func (g *guards) below(j judged, made map[expr.ColID]expr.Expr) judged {
	var out judged
	for _, e := range j.keep {
		if e = simplifyExpr(g.c, expr.Substitute(e, made)); volatile(e) {
			return judged{}
		}
		out.keep = append(out.keep, e)
	}
	for _, e := range j.values {
		out.value(simplifyExpr(g.c, expr.Substitute(e, made)))
	}
	return out
}

// doomed reports whether e fails for every row: then no row is at fault, and it stays an error of the query. What has no
// columns and could be computed was folded.
func doomed(e expr.Expr) bool {
	if len(plan.ExprColumns(e)) == 0 {
		return expr.Fallible(e) && expr.Purity(e) == fn.Immutable
	}
	args := e.Children()
	switch e.(type) {
	case *expr.And, *expr.Or, *expr.Case, *expr.Coalesce:
		args = args[:1] // a row need not get to the others
	}
	return slices.ContainsFunc(args, doomed)
}

// within is the part that reads some columns alone.
func (j judged) within(cols plan.ColSet) (out judged) {
	inside := func(e expr.Expr) bool { return sideOf(e, cols) }
	for _, e := range j.keep {
		if inside(e) {
			out.keep = append(out.keep, e)
		}
	}
	for _, e := range j.values {
		if inside(e) {
			out.values = append(out.values, e)
		}
	}
	return out
}

// under puts guards on the scans below n, whose rows are asked for j.
func (g *guards) under(n plan.Node, j judged) plan.Node {
	switch n := n.(type) {
	case *plan.Scan:
		return g.scan(n, j)
	case *plan.Filter:
		if volatile(n.Cond) {
			j = judged{}
		} else {
			j.keep = append(expr.Conjuncts(n.Cond), j.keep...)
		}
		return rebuild(n, g.under(n.Input, j))
	case *plan.Project:
		made := make(map[expr.ColID]expr.Expr, len(n.Items))
		for _, it := range n.Items {
			made[it.Col.ID] = it.Expr
		}
		j = g.below(j, made)
		for _, it := range n.Items {
			j.value(it.Expr)
		}
		return rebuild(n, g.under(n.Input, j))
	case *plan.TimeWindow:
		own := j.within(plan.SetOf(n.Input.Columns())) // a condition on the edges drops windows, not rows
		if n.Kind == plan.Session && len(j.keep) > 0 {
			own = judged{} // rows that are dropped above count in their sessions
		}
		own.value(n.Time)
		for _, k := range n.Keys {
			own.value(k)
		}
		return rebuild(n, g.under(n.Input, own))
	case *plan.Unnest:
		own := j.within(plan.SetOf(n.Pass)) // a condition on the items drops items, not rows
		for _, it := range n.Lists {
			own.value(it.Expr)
		}
		return rebuild(n, g.under(n.Input, own))
	case *plan.Sort:
		for _, k := range n.Keys {
			j.value(k.Expr)
		}
		return rebuild(n, g.under(n.Input, j))
	case *plan.SetOp:
		if n.Kind != plan.Union || !n.All {
			j = judged{}
		}
		side := func(in plan.Node) plan.Node {
			made := make(map[expr.ColID]expr.Expr, len(n.Cols))
			for i, col := range in.Columns() {
				made[n.Cols[i].ID] = col.Ref()
			}
			return g.under(in, g.below(j, made))
		}
		return rebuild(n, side(n.Left), side(n.Right))
	case *plan.Join:
		left, right := joinSides(n, j.keep)
		return rebuild(n, g.under(n.Left, left), g.under(n.Right, right))
	}
	var own judged
	own.value(n.Exprs()...)
	children := n.Children()
	out := make([]plan.Node, len(children))
	for i, in := range children {
		out[i] = g.under(in, own)
	}
	return rebuild(n, out...)
}

// joinSides says what a join and the conditions above it ask of each side's rows. A side whose rows come out of the join
// whatever its ON says is not dropped by ON, and one that is padded is not dropped from above.
func joinSides(n *plan.Join, above []expr.Expr) (left, right judged) {
	lc, rc := plan.SetOf(n.Left.Columns()), plan.SetOf(n.Right.Columns())
	ask := func(e expr.Expr, dropsLeft, dropsRight bool) {
		put := func(side *judged, drops bool) {
			if drops {
				side.keep = append(side.keep, e)
			} else {
				side.value(e)
			}
		}
		switch _, l, r, ok := plan.Comparison(e); {
		case volatile(e):
		case sideOf(e, lc):
			put(&left, dropsLeft)
		case sideOf(e, rc):
			put(&right, dropsRight)
		case ok:
			for _, x := range []expr.Expr{l, r} {
				switch {
				case sideOf(x, lc):
					left.value(x)
				case sideOf(x, rc):
					right.value(x)
				}
			}
		}
	}
	for _, e := range expr.Conjuncts(n.On) {
		ask(e, n.Kind == plan.Inner || n.Kind == plan.Right || n.Kind == plan.Semi,
			slices.Contains([]plan.JoinKind{plan.Inner, plan.Left, plan.Semi, plan.Anti, plan.Single}, n.Kind))
	}
	for _, k := range n.Keys {
		left.value(k.Left)
		right.value(k.Right)
	}
	for _, e := range above {
		switch {
		case volatile(e):
		case sideOf(e, lc) && n.Kind != plan.Right && n.Kind != plan.Full:
			left.keep = append(left.keep, e)
		case sideOf(e, rc) && (n.Kind == plan.Inner || n.Kind == plan.Right):
			right.keep = append(right.keep, e)
		case n.Kind == plan.Inner:
			ask(e, true, true)
		}
	}
	return left, right
}

func (g *guards) scan(n *plan.Scan, j judged) plan.Node {
	keep := slices.DeleteFunc(append(slices.Clone(n.Filters), j.keep...), doomed)
	guard := &plan.Guard{Keep: distinctExprs(keep), Values: distinctExprs(j.values), Show: n.Cols}
	if !slices.ContainsFunc(guard.Keep, expr.Fallible) && len(guard.Values) == 0 {
		return n
	}
	g.made++
	guard.ID = g.made
	m := *n
	m.Guard = guard
	return &m
}
