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
	e.noLambda(q.Position())
	node := e.b.subquery(q, e.scope, e.ctes)
	return node, plan.IDs(plan.Free(node))
}

// source tells equal subqueries: the same text, whose names mean the same.
type source struct {
	scope *scope
	text  string
}

func (e *env) source(q *sql.Query) source { return source{e.scope, sql.Print(q)} }

func (e *env) scalarSubquery(x *sql.Subquery) expr.Expr {
	node, outer := e.plan(x.Query)
	if x.Array {
		node = e.arrayOf(node, x.Pos)
		outer = plan.IDs(plan.Free(node))
	}
	cols := node.Columns()
	if len(cols) != 1 {
		fail(x.Pos, "a subquery used as a value must have one column, not %d", len(cols))
	}
	return &expr.Subquery{Kind: expr.ScalarSub, Plan: node, Outer: outer, T: cols[0].Type, Pos: x.Pos, Source: e.source(x.Query)}
}

func (e *env) exists(x *sql.Exists) expr.Expr {
	node, outer := e.plan(x.Query)
	return &expr.Subquery{Kind: expr.ExistsSub, Plan: node, Outer: outer, T: types.Bool, Pos: x.Pos, Source: e.source(x.Query)}
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
	return &expr.Subquery{Kind: expr.InSub, Plan: node, Args: left, Negate: x.Not, Outer: outer, T: types.Bool, Pos: x.Pos, Source: e.source(x.Query)}
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
		return e.quantifiedList(x)
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
	return &expr.Subquery{Kind: kind, Plan: node, Args: left, Op: string(x.Op), Outer: outer, T: types.Bool, Pos: x.Pos, Source: e.source(x.Query)}
}

// quantifiedList binds x op ANY (list) and x op ALL (list). A list that is written out becomes a chain of comparisons.
func (e *env) quantifiedList(x *sql.Quantified) expr.Expr {
	left := e.bind(x.X)
	if l, ok := x.Set.(*sql.List); ok && len(l.Items) > 0 {
		var all []expr.Expr
		for _, item := range l.Items {
			all = append(all, e.binary(&sql.Binary{At: x.At, Op: x.Op}, left, e.bind(item)))
		}
		if x.All {
			return allOf(all)
		}
		return anyOf(all)
	}
	if !comparisons[x.Op] {
		failHint(x.Pos, "write the list out", "%s ANY and %s ALL take no list value", x.Op, x.Op)
	}
	name := "any_of"
	if x.All {
		name = "all_of"
	}
	return e.call(x.Pos, name, left, &expr.Lit{V: string(x.Op), T: types.String}, e.bind(x.Set))
}
