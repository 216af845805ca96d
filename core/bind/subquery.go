package bind

import (
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/sql"
	"github.com/riverbed/riverbed/core/types"
)

// plan binds a query that stands in an expression; its names may mean columns here.
func (e *env) plan(q *sql.Query) (plan.Node, []expr.ColID) {
	node := e.b.subquery(q, e.scope, e.ctes)
	return node, plan.IDs(plan.Free(node))
}

func (e *env) scalarSubquery(x *sql.Subquery) expr.Expr {
	if x.Array {
		failUnsupported(x.Pos, "ARRAY(query)")
	}
	node, outer := e.plan(x.Query)
	cols := node.Columns()
	if len(cols) != 1 {
		fail(x.Pos, "a subquery used as a value must have one column, not %d", len(cols))
	}
	return &expr.Subquery{Kind: expr.ScalarSub, Plan: node, Outer: outer, T: cols[0].Type, Pos: x.Pos}
}

func (e *env) exists(x *sql.Exists) expr.Expr {
	node, outer := e.plan(x.Query)
	return &expr.Subquery{Kind: expr.ExistsSub, Plan: node, Outer: outer, T: types.Bool, Pos: x.Pos}
}

// inSubquery binds x IN (query). A row on the left is compared with as many columns; both sides are cast to the types in
// which they are compared.
func (e *env) inSubquery(x *sql.In) expr.Expr {
	var left []expr.Expr
	if row, ok := x.X.(*sql.Row); ok {
		left = e.bindAll(row.Items)
	} else {
		left = []expr.Expr{e.bind(x.X)}
	}
	node, outer := e.plan(x.Query)
	left, node = e.comparePlan(left, node, x.Pos, "IN")
	return &expr.Subquery{Kind: expr.InSub, Plan: node, Args: left, Negate: x.Not, Outer: outer, T: types.Bool, Pos: x.Pos}
}

func (e *env) comparePlan(left []expr.Expr, node plan.Node, pos errs.Pos, what string) ([]expr.Expr, plan.Node) {
	cols := node.Columns()
	if len(cols) != len(left) {
		fail(pos, "%s compares %d values with a subquery of %d columns", what, len(left), len(cols))
	}
	to := make([]plan.Column, len(cols))
	out := make([]expr.Expr, len(left))
	for i, c := range cols {
		t, ok := types.Comparison(left[i].Type(), constant(left[i]), c.Type, nil)
		if !ok {
			failHint(pos, "cast one side", "%s cannot compare %s with %s", what, left[i].Type(), c.Type)
		}
		to[i] = plan.Column{Type: t}
		out[i] = e.cast(left[i], t, pos)
	}
	return out, e.b.castColumns(node, to, pos)
}

// quantified binds x op ANY (query) and x op ALL (query); = ANY is IN and <> ALL is NOT IN.
func (e *env) quantified(x *sql.Quantified) expr.Expr {
	if x.Query == nil {
		if x.Op == sql.OpEq && !x.All {
			return e.call(x.Pos, "list_contains", e.bind(x.Set), e.bind(x.X))
		}
		failUnsupported(x.Pos, "ANY and ALL of a list value, but = ANY")
	}
	if x.Op == sql.OpEq && !x.All || x.Op == sql.OpNe && x.All {
		return e.inSubquery(&sql.In{At: x.At, X: x.X, Not: x.All, Query: x.Query})
	}
	left := []expr.Expr{e.bind(x.X)}
	node, outer := e.plan(x.Query)
	left, node = e.comparePlan(left, node, x.Pos, string(x.Op))
	kind := expr.AnySub
	if x.All {
		kind = expr.AllSub
	}
	return &expr.Subquery{Kind: kind, Plan: node, Args: left, Op: string(x.Op), Outer: outer, T: types.Bool, Pos: x.Pos}
}
