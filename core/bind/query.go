package bind

import (
	"fmt"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/sql"
	"github.com/riverbed/riverbed/core/types"
)

// query binds a query inside scope outer, which is nil at the top.
func (b *Binder) query(q *sql.Query, outer *scope, ctes *cte) plan.Node {
	ctes = b.with(q.With, outer, ctes)
	if sel, ok := q.Body.(*sql.Select); ok {
		return b.selectQuery(sel, q, outer, ctes)
	}
	node := b.body(q.Body, outer, ctes)
	visible := len(node.Columns())
	node, keys := b.outputOrder(node, q.OrderBy, outer, ctes)
	return finish(node, keys, b.limit(q, ctes), visible)
}

// subquery binds a query below the top of the statement.
func (b *Binder) subquery(q *sql.Query, outer *scope, ctes *cte) plan.Node {
	refuseEmit(q)
	return b.query(q, outer, ctes)
}

func (b *Binder) body(x sql.Body, outer *scope, ctes *cte) plan.Node {
	switch x := x.(type) {
	case *sql.Select:
		return b.selectQuery(x, &sql.Query{}, outer, ctes)
	case *sql.Values:
		return b.values(x, outer, ctes)
	case *sql.SetOp:
		return b.setOps(x, outer, ctes)
	case *sql.Query:
		return b.query(x, outer, ctes)
	}
	panic(errs.Bug("bind", "no rule for %T", x))
}

// values binds VALUES; the columns are col0, col1, ….
func (b *Binder) values(x *sql.Values, outer *scope, ctes *cte) plan.Node {
	e := &env{b: b, scope: &scope{parent: outer}, ctes: ctes, clause: clause{name: "VALUES"}}
	out := &plan.Values{}
	for r, row := range x.Rows {
		if r > 0 && len(row) != len(x.Rows[0]) {
			fail(row[0].Position(), "the rows of VALUES have %d and %d columns", len(x.Rows[0]), len(row))
		}
		out.Rows = append(out.Rows, e.bindAll(row))
	}
	for i := range x.Rows[0] {
		column := make([]expr.Expr, len(out.Rows))
		for r, row := range out.Rows {
			column[r] = row[i]
		}
		var t types.Type
		if x == b.filling && i < len(b.opts.Values) {
			t = b.opts.Values[i]
			for r := range column {
				column[r] = e.assign(column[r], t, x.Rows[r][i].Position(), fmt.Sprintf("value %d", i+1))
			}
		} else {
			column, t = e.branches(column, x.Rows[0][i].Position(), fmt.Sprintf("column %d of VALUES", i+1))
		}
		for r := range out.Rows {
			out.Rows[r][i] = column[r]
		}
		out.Cols = append(out.Cols, b.column(fmt.Sprintf("col%d", i), t))
	}
	return out
}

// setOps binds a chain of set operations from the left, in a loop: see sql.Node.
func (b *Binder) setOps(x *sql.SetOp, outer *scope, ctes *cte) plan.Node {
	var spine []*sql.SetOp
	var first sql.Body = x
	for {
		op, ok := first.(*sql.SetOp)
		if !ok {
			break
		}
		spine = append(spine, op)
		first = op.Left
	}
	node := b.branch(first, outer, ctes)
	for i := len(spine) - 1; i >= 0; i-- {
		node = b.setOp(spine[i], node, b.branch(spine[i].Right, outer, ctes))
	}
	return node
}

func (b *Binder) branch(x sql.Body, outer *scope, ctes *cte) plan.Node {
	if q, ok := x.(*sql.Query); ok {
		refuseEmit(q)
	}
	return b.body(x, outer, ctes)
}

func (b *Binder) setOp(x *sql.SetOp, left, right plan.Node) plan.Node {
	if x.ByName {
		left, right = b.byName(x, left, right)
	}
	l, r := left.Columns(), right.Columns()
	if len(l) != len(r) {
		fail(x.Pos, "the two sides of %s have %d and %d columns", x.Kind, len(l), len(r))
	}
	kind := map[sql.SetKind]plan.SetKind{sql.Union: plan.Union, sql.Intersect: plan.Intersect, sql.Except: plan.Except}[x.Kind]
	out := &plan.SetOp{Kind: kind, All: x.All}
	for i := range l {
		t, ok := stacked(l[i].Type, r[i].Type)
		if !ok {
			failHint(x.Pos, "cast one of them", "column %q of %s has types that do not unify: %s and %s", l[i].Name, x.Kind, l[i].Type, r[i].Type)
		}
		out.Cols = append(out.Cols, b.column(l[i].Name, t))
	}
	out.Left, out.Right = b.castColumns(left, out.Cols, x.Pos), b.castColumns(right, out.Cols, x.Pos)
	return out
}

// castColumns casts a node's columns to the types of others, by position.
func (b *Binder) castColumns(node plan.Node, to []plan.Column, pos errs.Pos) plan.Node {
	e := &env{b: b}
	cols := node.Columns()
	values, changed := make([]expr.Expr, len(cols)), false
	for i, c := range cols {
		values[i] = e.cast(c.Ref(), to[i].Type, pos)
		changed = changed || !c.Type.Equal(to[i].Type)
	}
	if !changed {
		return node
	}
	return b.project(node, values, columnNames(cols))
}

// byName brings the columns of both sides into one order; a column that a side lacks is NULL there.
func (b *Binder) byName(x *sql.SetOp, left, right plan.Node) (plan.Node, plan.Node) {
	if x.Kind != sql.Union {
		failUnsupported(x.Pos, string(x.Kind)+" BY NAME")
	}
	l, r := left.Columns(), right.Columns()
	names := columnNames(l)
	for _, c := range r {
		if columnNamed(l, c.Name) < 0 {
			names = append(names, c.Name)
		}
	}
	order := func(node plan.Node, cols, other []plan.Column) plan.Node {
		values := make([]expr.Expr, len(names))
		for i, n := range names {
			if at := columnNamed(cols, n); at >= 0 {
				values[i] = cols[at].Ref()
			} else {
				values[i] = &expr.Lit{T: other[columnNamed(other, n)].Type}
			}
		}
		return b.project(node, values, names)
	}
	return order(left, l, r), order(right, r, l)
}

func columnNamed(cols []plan.Column, name string) int {
	for i, c := range cols {
		if sameName(c.Name, name) {
			return i
		}
	}
	return -1
}

// cte is a common table expression and those it can see. It is bound anew for each use.
type cte struct {
	def    *sql.CTE
	outer  *scope
	before *cte
	self   bool         // WITH RECURSIVE: the name means itself inside its query
	work   *plan.Source // while the second part of a recursion is bound: the rows of the time before
}

func (b *Binder) with(w *sql.With, outer *scope, ctes *cte) *cte {
	if w == nil {
		return ctes
	}
	for i := range w.CTEs {
		for j := range i {
			if sameName(w.CTEs[i].Name.Name, w.CTEs[j].Name.Name) {
				fail(w.CTEs[i].Name.Pos, "WITH names %q twice", w.CTEs[i].Name.Name)
			}
		}
		ctes = &cte{def: &w.CTEs[i], outer: outer, before: ctes, self: w.Recursive}
	}
	return ctes
}

func (c *cte) find(name string) *cte {
	for ; c != nil; c = c.before {
		if sameName(c.def.Name.Name, name) {
			return c
		}
	}
	return nil
}

// use binds the query of a CTE where it is read. Rows that an order and a limit choose must be the same in every use, so
// all its columns count as used.
func (b *Binder) use(c *cte, at sql.Ident) (plan.Node, []plan.Column) {
	if c.work != nil {
		node, _ := b.scan(c.work, sql.Alias{}, []string{c.def.Name.Name}, at.Pos)
		return node, node.Columns()
	}
	if b.busy[c] {
		failHint(at.Pos, "WITH RECURSIVE r AS (first UNION ALL SELECT … FROM r)", "a recursive query reads itself in the second part of a UNION alone")
	}
	if op, ok := c.readsItself(); ok {
		return b.recursive(c, op)
	}
	seen := c.before
	if c.self {
		seen = c
		b.busy[c] = true
		defer delete(b.busy, c)
	}
	node := b.subquery(c.def.Query, c.outer, seen)
	b.whole[node] = true
	return node, renamed(node.Columns(), c.def.Columns, c.def.Name.Name)
}

// renamed gives columns the names of a list, which may be shorter, and makes equal names differ as DuckDB does: a, a_1.
func renamed(cols []plan.Column, names []sql.Ident, of string) []plan.Column {
	if len(names) > len(cols) {
		fail(names[len(cols)].Pos, "%s has %d columns, and %d names are given", of, len(cols), len(names))
	}
	out := make([]plan.Column, len(cols))
	seen := types.Distinct{}
	for i, c := range cols {
		if i < len(names) {
			c.Name = names[i].Name
		}
		c.Name = seen.Name(c.Name)
		out[i] = c
	}
	return out
}
