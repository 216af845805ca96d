package rules

import (
	"math"
	"slices"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/plan"
)

// byDomain is the general way (Neumann and Kemper, "Unnesting Arbitrary Queries"): the distinct values D of the outer
// columns that the right side reads are computed from a copy of the left, the right side is computed once for
// each of them, and the left is joined to that by null-safe equality.
//
// D must be distinct, or rows of the right would be repeated; and the equality must be null-safe, or outer rows with
// a NULL in a column that the subquery reads would lose their result.
func (d *decorrelator) byDomain(a *plan.Apply) plan.Node {
	left := plan.SetOf(a.Left.Columns())
	dom := &domain{decorrelator: d, left: a.Left, pos: a.Pos}
	for _, id := range plan.IDs(plan.Free(a.Right)) {
		if left[id] {
			dom.outer = append(dom.outer, id)
		}
	}
	right, at := dom.push(a.Right)
	if d.err != nil {
		return a
	}
	j := &plan.Join{Kind: a.Kind, Left: a.Left, Right: right, On: a.On, Mark: a.Mark}
	for _, id := range dom.outer {
		c := at[id]
		j.Keys = append(j.Keys, plan.EquiKey{Left: (&plan.Column{ID: id, Name: c.Name, Type: c.Type}).Ref(), Right: c.Ref(), NullSafe: true})
	}
	j.Keys = append(j.Keys, a.Args...)
	if a.Kind == plan.Single && d.facts.Of(right).Unique(plan.SetOf(dom.list(at))) {
		j.Kind = plan.Left
	}
	switch a.Kind {
	case plan.Semi, plan.Anti, plan.Mark:
		return j
	}
	return exactly(j, append(slices.Clone(a.Left.Columns()), a.Right.Columns()...))
}

// domain pushes D down to where the outer columns are read.
type domain struct {
	*decorrelator
	left  plan.Node
	outer []expr.ColID
	pos   errs.Pos
}

// cols says under which column each outer column is found in a plan that D was joined into.
type cols map[expr.ColID]plan.Column

func (m cols) apply(e expr.Expr) expr.Expr {
	if e == nil {
		return nil
	}
	subst := make(map[expr.ColID]expr.Expr, len(m))
	for id, c := range m {
		subst[id] = c.Ref()
	}
	return expr.Substitute(e, subst)
}

func (m cols) node(n plan.Node, children ...plan.Node) plan.Node {
	es := n.Exprs()
	for i := range es {
		es[i] = m.apply(es[i])
	}
	return n.With(children).WithExprs(es)
}

func (x *domain) list(m cols) []plan.Column {
	out := make([]plan.Column, len(x.outer))
	for i, id := range x.outer {
		out[i] = m[id]
	}
	return out
}

// values returns a new copy of D.
func (x *domain) values() (plan.Node, cols) {
	copied, to := x.copyOf(x.left)
	m := cols{}
	p := &plan.Project{Input: copied}
	for _, c := range copied.Columns() {
		for _, id := range x.outer {
			if to[id] == c.ID {
				m[id] = c
				p.Items = append(p.Items, plan.Item{Expr: c.Ref(), Col: c})
			}
		}
	}
	return &plan.Distinct{Input: p}, m
}

// equal joins two plans that both hold D on its columns.
func (x *domain) equal(a, b cols) []plan.EquiKey {
	var keys []plan.EquiKey
	for _, id := range x.outer {
		keys = append(keys, plan.EquiKey{Left: a[id].Ref(), Right: b[id].Ref(), NullSafe: true})
	}
	return keys
}

func (x *domain) correlated(n plan.Node) bool {
	free := plan.Free(n)
	return slices.ContainsFunc(x.outer, func(id expr.ColID) bool { return free[id] })
}

// push returns n computed for every row of D, with D's columns among its own.
func (x *domain) push(n plan.Node) (plan.Node, cols) {
	if x.err != nil {
		return n, nil
	}
	if !x.correlated(n) {
		v, m := x.values()
		if one, ok := n.(*plan.Values); ok && len(one.Rows) == 1 && len(one.Cols) == 0 {
			return v, m // the one row of no columns that a SELECT without FROM has
		}
		return &plan.Join{Kind: plan.Inner, Left: n, Right: v}, m
	}
	switch n := n.(type) {
	case *plan.Filter:
		in, m := x.push(n.Input)
		return m.node(n, in), m
	case *plan.Project:
		in, m := x.push(n.Input)
		p := m.node(n, in).(*plan.Project)
		return &plan.Project{Input: in, Items: append(slices.Clone(p.Items), pass(x.list(m))...)}, m
	case *plan.Aggregate:
		return x.aggregate(n)
	case *plan.TimeWindow:
		in, m := x.push(n.Input)
		w := *m.node(n, in).(*plan.TimeWindow)
		if w.Kind == plan.Session {
			w.Keys = append(slices.Clone(w.Keys), refs(x.list(m))...)
		}
		return &w, m
	case *plan.Distinct:
		in, m := x.push(n.Input)
		return &plan.Distinct{Input: in}, m
	case *plan.Sort:
		return x.push(n.Input)
	case *plan.Limit:
		if top := topNode(n); top != plan.Node(n) {
			return x.push(top)
		}
		var tie []expr.ColID
		for _, c := range n.Columns() {
			tie = append(tie, c.ID)
		}
		return x.limit(n.Input, nil, tie, n.Limit, n.Offset)
	case *plan.TopN:
		return x.limit(n.Input, n.Keys, n.Tie, n.Limit, n.Offset)
	case *plan.GroupTopN:
		in, m := x.push(n.Input)
		g := *m.node(n, in).(*plan.GroupTopN)
		g.Part = append(slices.Clone(g.Part), refs(x.list(m))...)
		return &g, m
	case *plan.Window:
		in, m := x.push(n.Input)
		w := *m.node(n, in).(*plan.Window)
		w.Funcs = slices.Clone(w.Funcs)
		for i := range w.Funcs {
			w.Funcs[i].Part = append(slices.Clone(w.Funcs[i].Part), refs(x.list(m))...)
		}
		return &w, m
	case *plan.Unnest:
		return x.unnest(n)
	case *plan.Join:
		return x.join(n)
	case *plan.SetOp:
		return x.setOp(n)
	case *plan.Values:
		return x.rows(n)
	}
	x.refuse(x.pos, "a correlated subquery over %s is not supported in batch and incremental mode", plan.OpOf(n).Name)
	return n, nil
}

func (x *domain) limit(input plan.Node, order []plan.SortItem, tie []expr.ColID, limit, offset int64) (plan.Node, cols) {
	in, m := x.push(input)
	top := &plan.GroupTopN{Input: in, Part: refs(x.list(m)), Tie: tie, Rank: "row_number", Limit: limit + offset}
	if limit < 0 {
		top.Limit = math.MaxInt64
	}
	for _, k := range order {
		top.Keys = append(top.Keys, plan.SortItem{Expr: m.apply(k.Expr), Key: k.Key})
	}
	return x.skip(top, offset), m
}

// aggregate groups by D's columns too. Without keys every row of D must have its one row, so D is joined once more.
func (x *domain) aggregate(n *plan.Aggregate) (plan.Node, cols) {
	in, m := x.push(n.Input)
	if x.err != nil {
		return n, nil
	}
	a := *m.node(n, in).(*plan.Aggregate)
	a.Keys = append(slices.Clone(a.Keys), pass(x.list(m))...)
	if n.Sets != nil {
		a.Sets = nil
		for _, set := range n.Sets {
			if len(set) == 0 {
				x.refuse(x.pos, "a correlated subquery with a grand total (ROLLUP, CUBE, an empty grouping set) is not supported in batch and incremental mode")
				return n, nil
			}
			set = slices.Clone(set)
			for i := range x.outer {
				set = append(set, len(n.Keys)+i)
			}
			a.Sets = append(a.Sets, set)
		}
		return &a, m
	}
	if len(n.Keys) > 0 {
		return &a, m
	}
	subst := x.countsToZero(&a)
	all, every := x.values()
	j := &plan.Join{Kind: plan.Left, Left: all, Right: &a, Keys: x.equal(every, m)}
	p := &plan.Project{Input: j}
	for _, agg := range n.Aggs {
		var e expr.Expr = agg.Col.Ref()
		if s, ok := subst[agg.Col.ID]; ok {
			e = s
		}
		p.Items = append(p.Items, plan.Item{Expr: e, Col: agg.Col})
	}
	p.Items = append(p.Items, pass(x.list(every))...)
	return p, every
}

func (x *domain) join(n *plan.Join) (plan.Node, cols) {
	left, right := x.correlated(n.Left), x.correlated(n.Right)
	var own bool // the condition itself reads outer columns
	for _, e := range n.Exprs() {
		for _, id := range x.outer {
			own = own || plan.ExprColumns(e)[id]
		}
	}
	l, r := n.Left, n.Right
	var lm, rm cols
	switch {
	case n.Kind == plan.Full || left && right:
		l, lm = x.push(n.Left)
		r, rm = x.push(n.Right)
	case n.Kind == plan.Right:
		r, rm = x.push(n.Right)
		if left {
			l, lm = x.push(n.Left)
		}
	case n.Kind == plan.Inner && right:
		r, rm = x.push(n.Right)
	default: // what decides about the left's rows must see each of them once per row of D
		l, lm = x.push(n.Left)
		if right {
			r, rm = x.push(n.Right)
		}
	}
	if x.err != nil {
		return n, nil
	}
	m := lm
	if m == nil || n.Kind == plan.Right {
		m = rm
	}
	j := *m.node(n, l, r).(*plan.Join)
	if lm != nil && rm != nil {
		j.Keys = append(slices.Clone(j.Keys), x.equal(lm, rm)...)
	}
	if n.Kind != plan.Full {
		return &j, m
	}
	if own {
		x.refuse(x.pos, "outer columns in the ON clause of a FULL JOIN are not supported in batch and incremental mode")
		return n, nil
	}
	out := cols{}
	p := &plan.Project{Input: &j, Items: pass(n.Columns())}
	for _, id := range x.outer {
		c := x.column(lm[id].Name, lm[id].Type)
		out[id] = c
		p.Items = append(p.Items, plan.Item{Expr: &expr.Coalesce{Args: []expr.Expr{lm[id].Ref(), rm[id].Ref()}, T: c.Type}, Col: c})
	}
	return p, out
}

func (x *domain) setOp(n *plan.SetOp) (plan.Node, cols) {
	l, lm := x.push(n.Left)
	r, rm := x.push(n.Right)
	if x.err != nil {
		return n, nil
	}
	s := *n
	s.Left = exactly(l, append(slices.Clone(n.Left.Columns()), x.list(lm)...))
	s.Right = exactly(r, append(slices.Clone(n.Right.Columns()), x.list(rm)...))
	s.Cols = slices.Clone(n.Cols)
	m := cols{}
	for _, id := range x.outer {
		m[id] = x.column(lm[id].Name, lm[id].Type)
		s.Cols = append(s.Cols, m[id])
	}
	return &s, m
}

// rows turns rows of expressions over outer columns into one projection of D each.
func (x *domain) rows(n *plan.Values) (plan.Node, cols) {
	var out plan.Node
	var all []plan.Column
	var m cols
	for _, row := range n.Rows {
		v, vm := x.values()
		p := &plan.Project{Input: v}
		for i, e := range row {
			c := n.Cols[i]
			p.Items = append(p.Items, plan.Item{Expr: vm.apply(e), Col: x.column(c.Name, c.Type)})
		}
		p.Items = append(p.Items, pass(x.list(vm))...)
		if out == nil {
			out = p
		} else {
			var cs []plan.Column
			for _, c := range p.Columns() {
				cs = append(cs, x.column(c.Name, c.Type))
			}
			out = &plan.SetOp{Kind: plan.Union, All: true, Left: out, Right: p, Cols: cs}
		}
		all, m = out.Columns(), cols{}
	}
	top := &plan.Project{Input: out}
	for i, c := range n.Cols {
		top.Items = append(top.Items, plan.Item{Expr: all[i].Ref(), Col: c})
	}
	for i, id := range x.outer {
		c := all[len(n.Cols)+i]
		m[id] = c
		top.Items = append(top.Items, plan.Item{Expr: c.Ref(), Col: c})
	}
	return top, m
}
