package bind

import (
	"slices"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/sql"
)

// joins binds a chain of joins from the left, in a loop: see sql.Node.
func (b *Binder) joins(j *sql.Join, around *scope, ctes *cte) (plan.Node, *scope) {
	var spine []*sql.Join
	var first sql.TableRef = j
	for {
		x, ok := first.(*sql.Join)
		if !ok {
			break
		}
		spine = append(spine, x)
		first = x.Left
	}
	node, tables := b.tableRef(first, around, ctes)
	for i := len(spine) - 1; i >= 0; i-- {
		node, tables = b.join(spine[i], node, tables, around, ctes)
	}
	return node, tables
}

var joinKinds = map[sql.JoinKind]plan.JoinKind{sql.InnerJoin: plan.Inner, sql.CrossJoin: plan.Inner, sql.LeftJoin: plan.Left,
	sql.RightJoin: plan.Right, sql.FullJoin: plan.Full, sql.SemiJoin: plan.Semi, sql.AntiJoin: plan.Anti}

func (b *Binder) join(j *sql.Join, left plan.Node, ltabs, around *scope, ctes *cte) (plan.Node, *scope) {
	if j.AsOf {
		failUnsupported(j.Pos, "ASOF JOIN")
	}
	right, rtabs := b.tableRef(j.Right, &scope{tables: ltabs.tables, merged: ltabs.merged, parent: around}, ctes)
	kind := joinKinds[j.Kind]
	node, tables := b.joined(kind, left, right, ltabs, rtabs, j.Pos)
	if j.On == nil && len(j.Using) == 0 && !j.Natural {
		return node, tables
	}
	e := &env{b: b, scope: &scope{tables: tables.tables, merged: tables.merged, parent: around}, ctes: ctes, clause: clause{name: "ON"}}
	if kind == plan.Semi || kind == plan.Anti { // ON sees both sides, what follows only the left one
		both := ltabs.join(rtabs)
		e.scope.tables, e.scope.merged = both.tables, both.merged
	}
	var on expr.Expr
	if j.On != nil {
		on = e.bindCondition(j.On, "ON")
	} else {
		on = e.using(j, kind, ltabs, rtabs, tables)
	}
	setCondition(node, on, plan.SetOf(left.Columns()), plan.SetOf(right.Columns()))
	return node, tables
}

// joined makes the join node without its condition; a right side that reads columns of the left one makes it an Apply.
func (b *Binder) joined(kind plan.JoinKind, left, right plan.Node, ltabs, rtabs *scope, pos errs.Pos) (plan.Node, *scope) {
	tables := ltabs.join(rtabs)
	if kind == plan.Semi || kind == plan.Anti {
		tables = ltabs
	}
	mine := plan.SetOf(left.Columns())
	var outer []expr.ColID
	for _, id := range plan.IDs(plan.Free(right)) {
		if mine[id] {
			outer = append(outer, id)
		}
	}
	if outer == nil {
		return &plan.Join{Kind: kind, Left: left, Right: right}, tables
	}
	if kind != plan.Inner && kind != plan.Left {
		fail(pos, "the right side of a %s JOIN cannot read columns of its left side", kind)
	}
	return &plan.Apply{Kind: kind, Left: left, Right: right, Outer: outer, Pos: pos}, tables
}

// setCondition splits the condition of a join into keys, left = right, and the rest.
func setCondition(node plan.Node, on expr.Expr, left, right plan.ColSet) {
	if a, ok := node.(*plan.Apply); ok {
		a.On = on
		return
	}
	j := node.(*plan.Join)
	var rest []expr.Expr
	for _, c := range expr.Conjuncts(on) {
		if k, ok := equiKey(c, left, right); ok {
			j.Keys = append(j.Keys, k)
		} else {
			rest = append(rest, c)
		}
	}
	j.On = expr.Conjunction(rest)
}

// notDistinct is the registry's name of IS NOT DISTINCT FROM.
const notDistinct = "is not distinct from"

// equiKey reads l = r and l IS NOT DISTINCT FROM r where l reads only the left side and r only the right side.
func equiKey(x expr.Expr, left, right plan.ColSet) (plan.EquiKey, bool) {
	c, ok := x.(*expr.Call)
	if !ok || len(c.Args) != 2 || c.Fn.Name != "=" && c.Fn.Name != notDistinct || holdsSubquery(x) {
		return plan.EquiKey{}, false
	}
	l, r := plan.ExprColumns(c.Args[0]), plan.ExprColumns(c.Args[1])
	k := plan.EquiKey{Left: c.Args[0], Right: c.Args[1], NullSafe: c.Fn.Name != "="}
	switch {
	case len(l) == 0 || len(r) == 0:
		return k, false
	case plan.Subset(l, left) && plan.Subset(r, right):
		return k, true
	case plan.Subset(l, right) && plan.Subset(r, left):
		k.Left, k.Right = k.Right, k.Left
		return k, true
	}
	return k, false
}

func holdsSubquery(x expr.Expr) bool {
	found := false
	expr.Walk(x, func(y expr.Expr) bool {
		_, ok := y.(*expr.Subquery)
		found = found || ok
		return !found
	})
	return found
}

// using binds USING and NATURAL: the named columns of both sides are equal and become one column.
func (e *env) using(j *sql.Join, kind plan.JoinKind, left, right, tables *scope) expr.Expr {
	names := j.Using
	if j.Natural {
		names = e.commonNames(left, right)
		if len(names) == 0 {
			failHint(j.Pos, "write JOIN … ON, or CROSS JOIN", "NATURAL JOIN finds no column that both sides have")
		}
	}
	var conds []expr.Expr
	for _, n := range names {
		l, ok := left.find(nil, n.Name, n.Pos)
		if !ok {
			failHint(n.Pos, candidates("columns of the left side", n.Name, left.names()), "no column %q on the left side of the join", n.Name)
		}
		r, ok := right.find(nil, n.Name, n.Pos)
		if !ok {
			failHint(n.Pos, candidates("columns of the right side", n.Name, right.names()), "no column %q on the right side of the join", n.Name)
		}
		conds = append(conds, e.compare("=", l.expr(), r.expr(), n.Pos))
		if kind == plan.Semi || kind == plan.Anti {
			continue
		}
		m := &merged{members: map[expr.ColID]bool{l.col.ID: true, r.col.ID: true}}
		switch kind {
		case plan.Right:
			m.value = r.expr()
		case plan.Full:
			both, t := e.branches([]expr.Expr{l.expr(), r.expr()}, n.Pos, "USING")
			m.value = &expr.Coalesce{Args: both, T: t}
		default:
			m.value = l.expr()
		}
		for _, side := range []*scope{left, right} {
			for _, id := range []expr.ColID{l.col.ID, r.col.ID} {
				if old := side.mergedFor(id); old != nil { // USING over USING
					for id := range old.members {
						m.members[id] = true
					}
					tables.merged = slices.DeleteFunc(slices.Clone(tables.merged), func(x *merged) bool { return x == old })
				}
			}
		}
		tables.merged = append(tables.merged, m)
	}
	return expr.Conjunction(conds)
}

func (e *env) commonNames(left, right *scope) []sql.Ident {
	var out []sql.Ident
	seen := map[string]bool{}
	for _, t := range left.tables {
		for _, c := range t.cols {
			if e.b.rowID[c.ID] || seen[lower(c.Name)] {
				continue
			}
			seen[lower(c.Name)] = true
			if h, ok := right.find(nil, c.Name, errs.Pos{}); ok && !e.b.rowID[h.col.ID] {
				out = append(out, sql.Ident{Name: c.Name})
			}
		}
	}
	return out
}

func (s *scope) names() []string {
	var out []string
	for _, t := range s.tables {
		out = append(out, suggestions(t.cols)...)
	}
	return out
}
