package rules

import (
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/types"
)

// decorrelate turns every subquery into a dependent join (Apply) below the node whose expression holds it, and every
// dependent join into ordinary ones: by pulling the correlated conditions up (pull.go) where that is possible, and by
// computing the right side once per distinct outer value (domain.go) where it is not.
//
//	WHERE EXISTS, IN          → semi join       WHERE NOT EXISTS  → anti join
//	WHERE NOT IN              → mark join and NOT mark; anti join where neither side can be NULL
//	EXISTS, IN elsewhere      → mark join       scalar            → single join, left join where one row is certain
//
// Inner subqueries go first, so that an outer one meets only joins. It must not turn NOT IN into a plain anti join:
// one NULL on the right makes every answer unknown.
func decorrelate(c *rewriter, root plan.Node) (plan.Node, error) {
	d := &decorrelator{rewriter: c}
	n := d.node(root)
	return n, d.err
}

type decorrelator struct {
	*rewriter
	err error
}

func (d *decorrelator) refuse(pos errs.Pos, format string, args ...any) {
	if d.err == nil {
		d.err = errs.E(errs.Unsupported, "plan", pos, format, args...)
	}
}

func (d *decorrelator) node(n plan.Node) plan.Node {
	if children := n.Children(); len(children) > 0 {
		changed := false
		out := make([]plan.Node, len(children))
		for i, c := range children {
			out[i] = d.node(c)
			changed = changed || out[i] != c
		}
		if changed {
			n = n.With(out)
		}
	}
	if d.err != nil {
		return n
	}
	if a, ok := n.(*plan.Apply); ok {
		return d.apply(a)
	}
	has := false
	for _, e := range n.Exprs() {
		has = has || hasSubquery(e)
	}
	if !has {
		return n
	}
	switch n := n.(type) {
	case *plan.Filter:
		return d.filter(n)
	case *plan.Join:
		return d.join(n)
	case *plan.Values:
		return d.values(n)
	}
	children := n.Children()
	if len(children) != 1 {
		return n // refused by the check at the end
	}
	want := n.Columns()
	input, es := d.attach(children[0], n.Exprs())
	return exactly(n.With([]plan.Node{input}).WithExprs(es), want)
}

// filter tells conjuncts, which only ask for true, from subqueries within larger expressions.
func (d *decorrelator) filter(f *plan.Filter) plan.Node {
	want := f.Columns()
	input := f.Input
	var rest []expr.Expr
	for _, e := range expr.Conjuncts(f.Cond) {
		if not, ok := e.(*expr.Not); ok {
			e = simplifyNot(not)
		}
		if s, ok := e.(*expr.Subquery); ok {
			var cond expr.Expr
			input, cond = d.subquery(input, s, true)
			if cond != nil {
				rest = append(rest, cond)
			}
			continue
		}
		if hasSubquery(e) {
			var es []expr.Expr
			input, es = d.attach(input, []expr.Expr{e})
			e = es[0]
		}
		rest = append(rest, e)
	}
	return exactly(where(input, rest), want)
}

// join moves subqueries out of ON: of an inner join to a filter above, of an outer join to the side they read.
func (d *decorrelator) join(j *plan.Join) plan.Node {
	want := j.Columns()
	if j.Kind == plan.Inner {
		m := *j
		var keep, move []expr.Expr
		for _, e := range expr.Conjuncts(j.On) {
			if hasSubquery(e) {
				move = append(move, e)
			} else {
				keep = append(keep, e)
			}
		}
		m.Keys = nil
		for _, k := range j.Keys {
			if hasSubquery(k.Left) || hasSubquery(k.Right) {
				move = append(move, d.equality(k))
			} else {
				m.Keys = append(m.Keys, k)
			}
		}
		m.On = expr.Conjunction(keep)
		return d.filter(&plan.Filter{Input: &m, Cond: expr.Conjunction(move)})
	}
	left, right := j.Left, j.Right
	lc, rc := plan.SetOf(left.Columns()), plan.SetOf(right.Columns())
	es := j.Exprs()
	for i, e := range es {
		if !hasSubquery(e) {
			continue
		}
		es[i] = expr.Transform(e, func(x expr.Expr) expr.Expr {
			s, ok := x.(*expr.Subquery)
			if !ok || d.err != nil {
				return x
			}
			used := plan.ExprColumns(s)
			out := x
			switch {
			case !plan.Overlap(used, rc):
				left, out = d.subquery(left, s, false)
			case !plan.Overlap(used, lc):
				right, out = d.subquery(right, s, false)
			default:
				d.refuse(s.Pos, "a subquery that reads both sides is not supported in the ON clause of a %s JOIN, in batch and incremental mode", j.Kind)
			}
			return out
		})
	}
	if d.err != nil {
		return j
	}
	return exactly(j.With([]plan.Node{left, right}).WithExprs(es), want)
}

// values with subqueries become projections of one row each, put together.
func (d *decorrelator) values(v *plan.Values) plan.Node {
	var out plan.Node
	for i, row := range v.Rows {
		input, es := d.attach(&plan.Values{Rows: [][]expr.Expr{{}}}, row)
		p := &plan.Project{Input: input}
		for k, e := range es {
			col := v.Cols[k]
			if len(v.Rows) > 1 {
				col = d.column(col.Name, col.Type)
			}
			p.Items = append(p.Items, plan.Item{Expr: e, Col: col})
		}
		if i == 0 {
			out = p
			continue
		}
		cols := v.Cols
		if i < len(v.Rows)-1 {
			cols = nil
			for _, c := range v.Cols {
				cols = append(cols, d.column(c.Name, c.Type))
			}
		}
		out = &plan.SetOp{Kind: plan.Union, All: true, Left: out, Right: p, Cols: cols}
	}
	return out
}

// attach replaces the subqueries of expressions by columns that joins over input make.
func (d *decorrelator) attach(input plan.Node, es []expr.Expr) (plan.Node, []expr.Expr) {
	out := make([]expr.Expr, len(es))
	for i, e := range es {
		out[i] = expr.Transform(e, func(x expr.Expr) expr.Expr {
			if s, ok := x.(*expr.Subquery); ok && d.err == nil {
				input, x = d.subquery(input, s, false)
			}
			return x
		})
	}
	return input, out
}

// subquery joins one subquery to input and returns what stands for it. As a conjunct of a WHERE clause it may be
// settled by the join alone; then the expression is nil.
func (d *decorrelator) subquery(input plan.Node, s *expr.Subquery, conjunct bool) (plan.Node, expr.Expr) {
	// IN's left side may hold subqueries itself; Transform has replaced them where it came from attach.
	args := s.Args
	if conjunct {
		input, args = d.attach(input, s.Args)
	}
	right := d.node(s.Plan.(plan.Node))
	if d.err != nil {
		return input, s
	}
	a := &plan.Apply{Left: input, Right: right, Pos: s.Pos}
	cols := right.Columns()
	switch s.Kind {
	case expr.ScalarSub:
		a.Kind = plan.Single
		return d.apply(a), cols[0].Ref()
	case expr.ExistsSub:
		a.Right = bare(right)
		switch {
		case conjunct && s.Negate:
			a.Kind = plan.Anti
			return d.apply(a), nil
		case conjunct:
			a.Kind = plan.Semi
			return d.apply(a), nil
		}
	default:
		op := s.Op
		negate := s.Negate
		if s.Kind == expr.InSub {
			op = "="
		}
		if s.Kind == expr.AllSub { // x op ALL (S) is NOT (x opposite ANY (S))
			op, negate = plan.Opposites[op], !negate
		}
		if op == "=" {
			for i, e := range args {
				a.Args = append(a.Args, plan.EquiKey{Left: e, Right: cols[i].Ref()})
			}
		} else {
			a.On = d.compare(op, args, cols, s.Pos)
		}
		switch {
		case conjunct && !negate:
			a.Kind = plan.Semi
			return d.apply(a), nil
		case conjunct && len(a.Args) > 0 && d.neverNull(a):
			a.Kind = plan.Anti
			return d.apply(a), nil
		}
		s = &expr.Subquery{Negate: negate}
	}
	a.Kind, a.Mark = plan.Mark, d.column("mark", types.Bool)
	var mark expr.Expr = a.Mark.Ref()
	if s.Negate {
		mark = &expr.Not{Arg: mark}
	}
	return d.apply(a), mark
}

// neverNull reports whether neither side of an IN can be NULL, so that NOT IN is an anti join.
func (d *decorrelator) neverNull(a *plan.Apply) bool {
	l, r := d.facts.Of(a.Left), d.facts.Of(a.Right)
	for _, k := range a.Args {
		if !plan.NeverNull(k.Left, l.NotNull) || !plan.NeverNull(k.Right, r.NotNull) {
			return false
		}
	}
	return true
}

// compare is row op row: of one value the operator itself; of several, <> is OR of <>, order is lexicographic.
func (d *decorrelator) compare(op string, args []expr.Expr, cols []plan.Column, pos errs.Pos) expr.Expr {
	one := func(op string, i int) expr.Expr { return d.call(op, pos, args[i], cols[i].Ref()) }
	if len(args) == 1 {
		return one(op, 0)
	}
	if op == "<>" {
		or := &expr.Or{}
		for i := range args {
			or.Args = append(or.Args, one("<>", i))
		}
		return or
	}
	last := len(args) - 1
	out := one(op, last)
	for i := last - 1; i >= 0; i-- {
		out = &expr.Or{Args: []expr.Expr{one(op[:1], i), &expr.And{Args: []expr.Expr{one("=", i), out}}}}
	}
	return out
}

func (d *decorrelator) call(op string, pos errs.Pos, args ...expr.Expr) expr.Expr {
	e, err := expr.NewCall(op, pos, args...)
	if err != nil {
		if d.err == nil {
			d.err = err
		}
		return plan.Null
	}
	return e
}

func (d *decorrelator) equality(k plan.EquiKey) expr.Expr {
	if k.NullSafe {
		return d.call("is not distinct from", errs.Pos{}, k.Left, k.Right)
	}
	return d.call("=", errs.Pos{}, k.Left, k.Right)
}

// bare strips what does not change whether a subquery has rows.
func bare(n plan.Node) plan.Node {
	for {
		switch m := n.(type) {
		case *plan.Project:
			n = m.Input
		case *plan.Sort:
			n = m.Input
		case *plan.Distinct:
			n = m.Input
		case *plan.Limit:
			if m.Limit == 0 || m.Offset > 0 {
				return n
			}
			n = m.Input
		case *plan.Aggregate:
			if len(m.Keys) == 0 || m.Sets != nil {
				return n
			}
			n = m.Input
		default:
			return n
		}
	}
}

// apply turns a dependent join into ordinary ones.
func (d *decorrelator) apply(a *plan.Apply) plan.Node {
	if d.err != nil {
		return a
	}
	outer := plan.SetOf(a.Left.Columns())
	if !plan.Overlap(plan.Free(a.Right), outer) {
		return d.independent(a)
	}
	if n := d.graft(a); n != nil {
		return n
	}
	if p := d.pull(a.Right, outer); p != nil {
		return d.joinPulled(a, p)
	}
	if d.err != nil {
		return a
	}
	return d.byDomain(a)
}

// independent joins a right side that reads nothing of the left.
func (d *decorrelator) independent(a *plan.Apply) plan.Node {
	j := &plan.Join{Kind: a.Kind, Left: a.Left, Right: a.Right, Keys: a.Args, On: a.On, Mark: a.Mark}
	if a.Kind == plan.Single && d.facts.Of(a.Right).One() {
		j.Kind = plan.Left
		if always(a.Right) {
			j.Kind = plan.Inner
		}
	}
	return j
}

// always reports whether a plan of at most one row has exactly one: an aggregate without groups, or a row of constants.
func always(n plan.Node) bool {
	switch n := n.(type) {
	case *plan.Aggregate:
		return len(n.Keys) == 0 && n.Sets == nil
	case *plan.Project:
		return always(n.Input)
	case *plan.Sort:
		return always(n.Input)
	case *plan.Values:
		return len(n.Rows) == 1
	case *plan.Join:
		return (n.Kind == plan.Inner && n.On == nil && len(n.Keys) == 0 && always(n.Right) || n.Kind == plan.Left || n.Kind == plan.Single) && always(n.Left)
	}
	return false
}

// zero is the value of a count over no rows.
func zero(t types.Type) *expr.Lit {
	switch {
	case t.Kind == types.HugeInt || t.Kind == types.UHugeInt || t.Kind == types.Decimal:
		return &expr.Lit{V: decimal128.Num{}, T: t}
	case t.IsFloat():
		return &expr.Lit{V: float64(0), T: t}
	case t.IsInteger() && !t.IsSigned():
		return &expr.Lit{V: uint64(0), T: t}
	}
	return &expr.Lit{V: int64(0), T: t}
}
