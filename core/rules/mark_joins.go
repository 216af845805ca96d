package rules

import (
	"maps"

	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/types"
)

// markJoins gives mark joins a form made of joins that can be maintained, for incremental mode; in batch mode, where
// operators compare keys and take ON as a filter, only those whose ON may be NULL and mean it (x < ANY …):
//
//	EXISTS         left join with the distinct keys; the mark is whether there was a partner
//	x IN (one y)   also ask, by two more such joins, whether the set has a row at all, and one where y is NULL
//	otherwise      UNION ALL of the rows whose mark is true (semi join), NULL (semi join on "unknown") and false
//
// It must not read "no partner" as false in the second form: with a NULL in the set, or x NULL, the answer is unknown
// unless the set is empty.
func markJoins(c *rewriter, root plan.Node) (plan.Node, error) {
	m := &marker{decorrelator{rewriter: c}}
	n := plan.Transform(root, func(n plan.Node) plan.Node {
		j, ok := n.(*plan.Join)
		if !ok || j.Kind != plan.Mark || c.mode == Batch && !m.unknownOn(j) {
			return n
		}
		return exactly(m.rewrite(j), j.Columns())
	})
	return n, m.err
}

type marker struct{ decorrelator }

// unknownOn reports whether the join's ON can be NULL.
func (m *marker) unknownOn(j *plan.Join) bool {
	if j.On == nil {
		return false
	}
	known := maps.Clone(m.facts.Of(j.Left).NotNull)
	maps.Copy(known, m.facts.Of(j.Right).NotNull)
	return !plan.NeverNull(j.On, known)
}

func (m *marker) rewrite(j *plan.Join) plan.Node {
	var same, in []plan.EquiKey
	for _, k := range j.Keys {
		if k.NullSafe {
			same = append(same, k)
		} else {
			in = append(in, k)
		}
	}
	switch {
	case j.On != nil || len(in) > 1:
		return m.union(j, same, in)
	case len(in) == 0:
		n, found := m.ask(j.Left, j.Right, same)
		return m.marked(j, n, found)
	}
	return m.in(j, same, in[0])
}

func (m *marker) marked(j *plan.Join, n plan.Node, mark expr.Expr) plan.Node {
	return &plan.Project{Input: n, Items: append(pass(j.Left.Columns()), plan.Item{Expr: mark, Col: j.Mark})}
}

// ask joins the left rows to the distinct keys of the right ones; the condition returned tells which rows have a partner.
func (m *marker) ask(left, right plan.Node, keys []plan.EquiKey) (plan.Node, expr.Expr) {
	p := &plan.Project{Input: right}
	j := &plan.Join{Kind: plan.Left, Left: left}
	for _, k := range keys {
		col := m.column("key", k.Right.Type())
		p.Items = append(p.Items, plan.Item{Expr: k.Right, Col: col})
		j.Keys = append(j.Keys, plan.EquiKey{Left: k.Left, Right: col.Ref(), NullSafe: k.NullSafe})
	}
	matched := m.column("matched", types.Bool)
	p.Items = append(p.Items, plan.Item{Expr: plan.True, Col: matched})
	j.Right = &plan.Distinct{Input: p}
	return j, &expr.IsNull{Arg: matched.Ref(), Negate: true}
}

// in is x IN (SELECT y …) with the correlation's keys in same.
func (m *marker) in(j *plan.Join, same []plan.EquiKey, k plan.EquiKey) plan.Node {
	member, found := m.again(j.Left, j.Right, append([]plan.EquiKey{k}, same...), &expr.IsNull{Arg: k.Right, Negate: true})
	whens := []expr.When{{Cond: found, Then: plan.True}}
	xNull := !plan.NeverNull(k.Left, m.facts.Of(j.Left).NotNull)
	yNull := !plan.NeverNull(k.Right, m.facts.Of(j.Right).NotNull)
	if xNull {
		any, has := m.again(member, j.Right, same, nil)
		member = any
		whens = append(whens, expr.When{Cond: &expr.Not{Arg: has}, Then: plan.False},
			expr.When{Cond: &expr.IsNull{Arg: k.Left}, Then: plan.Null})
	}
	if yNull { // a set with a NULL is not empty, so this needs no other question
		null, has := m.again(member, j.Right, same, &expr.IsNull{Arg: k.Right})
		member = null
		whens = append(whens, expr.When{Cond: has, Then: plan.Null})
	}
	return m.marked(j, member, &expr.Case{Whens: whens, Else: plan.False, T: types.Bool})
}

// again asks about the right rows for which cond holds, over a copy with columns of its own.
func (m *marker) again(left, right plan.Node, keys []plan.EquiKey, cond expr.Expr) (plan.Node, expr.Expr) {
	copied, to := m.copyOf(right)
	if cond != nil {
		copied = where(copied, []expr.Expr{renamed(cond, to)})
	}
	moved := make([]plan.EquiKey, len(keys))
	for i, k := range keys {
		moved[i] = plan.EquiKey{Left: k.Left, Right: renamed(k.Right, to), NullSafe: k.NullSafe}
	}
	return m.ask(left, copied, moved)
}

// union takes the left rows apart by their mark.
func (m *marker) union(j *plan.Join, same, in []plan.EquiKey) plan.Node {
	test := []expr.Expr{}
	for _, k := range in {
		test = append(test, m.equality(k))
	}
	test = append(test, expr.Conjuncts(j.On)...)
	cond := expr.Conjunction(test)
	// split returns the left rows with (Semi) or without (Anti) a right row for which on holds.
	split := func(kind plan.JoinKind, left plan.Node, on expr.Expr) plan.Node {
		return &plan.Join{Kind: kind, Left: left, Right: j.Right, Keys: same, On: on}
	}
	rest := split(plan.Anti, j.Left, cond)
	parts := []struct {
		n    plan.Node
		mark *expr.Lit
	}{
		{split(plan.Semi, j.Left, cond), plan.True},
		{split(plan.Semi, rest, &expr.IsNull{Arg: cond}), plan.Null},
		{split(plan.Anti, rest, &expr.IsNull{Arg: cond}), plan.False},
	}
	var out plan.Node
	for i, p := range parts {
		n, _ := m.fresh(p.n)
		row := &plan.Project{Input: n, Items: append(pass(n.Columns()), plan.Item{Expr: p.mark, Col: m.column("mark", types.Bool)})}
		if out == nil {
			out = row
			continue
		}
		cols := append(append([]plan.Column{}, j.Left.Columns()...), j.Mark)
		if i < len(parts)-1 {
			for k := range cols {
				cols[k] = m.column(cols[k].Name, cols[k].Type)
			}
		}
		out = &plan.SetOp{Kind: plan.Union, All: true, Left: out, Right: row, Cols: cols}
	}
	return out
}

// fresh copies a plan in which one input stands twice, so that each use gets its own columns.
func (m *marker) fresh(n plan.Node) (plan.Node, map[expr.ColID]expr.ColID) {
	j := n.(*plan.Join)
	left, lm := j.Left, map[expr.ColID]expr.ColID{}
	if inner, ok := left.(*plan.Join); ok && inner.Right == j.Right {
		left, lm = m.fresh(left)
	} else {
		left, lm = m.copyOf(left)
	}
	right, rm := m.copyOf(j.Right)
	move := func(id expr.ColID) expr.ColID {
		if to, ok := lm[id]; ok {
			return to
		}
		if to, ok := rm[id]; ok {
			return to
		}
		return id
	}
	// Only the join's own expressions move here; its inputs have their new columns already.
	shell := plan.Map(&plan.Join{Kind: j.Kind, Left: &plan.Values{}, Right: &plan.Values{}, Keys: j.Keys, On: j.On}, move)
	return shell.With([]plan.Node{left, right}), lm
}
