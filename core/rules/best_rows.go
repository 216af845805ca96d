package rules

import (
	"slices"

	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/types"
)

// bestRows finds the rows of a relation that are first of their group without computing the relation twice:
//
//	Join(r, Aggregate(r) by g max(v) AS m) on r.g = g AND r.v >= m  →  GroupTopN(r, rank = 1 by g order v desc)
//
// for max and min, =, >= and <=, inner and semi joins, and for groups that are windows of time which the join names by their
// bounds: r.t >= start AND r.t < end. Of windows that overlap a row is in several, as an inner join gives it, but a semi join
// does not. The relation may stand below joins, projections and filters of the left side, with
// which a condition on its own rows commutes. In the rows that stay, g and m are r.g and r.v, so where they
// are shown equal values must be alike (types.Type.Alike).
//
// In batch mode the relation must be more than the rows of a scan: those are cheaper read twice, since the join lets the scan leave out what
// has no match before it decodes the other columns. In incremental mode rows must only get better (plan.KeepsBest): a top-N of others keeps all of them in order, which is dearer than
// the join.
func bestRows(c *rewriter, root plan.Node) (plan.Node, error) {
	if c.opts.Divert || !readsTwice(root) {
		return root, nil
	}
	shown := func(j *plan.Join) plan.ColSet {
		out := plan.SetOf(root.Columns())
		plan.Walk(root, func(n plan.Node) bool {
			if n != plan.Node(j) {
				for id := range plan.Reads(n) {
					out[id] = true
				}
			}
			return true
		})
		return out
	}
	return plan.Transform(root, func(n plan.Node) plan.Node {
		j, ok := n.(*plan.Join)
		if !ok || j.Kind != plan.Inner && j.Kind != plan.Semi {
			return n
		}
		if x := c.extremeOf(j); x != nil {
			if m := x.instead(shown(j)); m != nil {
				return m
			}
		}
		if j.Kind == plan.Inner {
			if x := c.extremeOf(exchanged(j)); x != nil {
				if m := x.instead(shown(j)); m != nil {
					return exactly(m, j.Columns())
				}
			}
		}
		return n
	}), nil
}

// extreme is a join whose right side is a maximum or minimum by groups.
type extreme struct {
	c    *rewriter
	j    *plan.Join
	agg  *plan.Aggregate
	made map[expr.ColID]expr.Expr // the right side's columns, over the aggregate's
	max  bool
	from []origin // what is aggregated
	same sharing

	// What the join says, over the left side's columns.
	groups   []expr.Expr // equal to each group key; nil for the bounds of a window
	nullSafe []bool
	value    expr.Expr   // not behind the extreme
	within   []expr.Expr // not before the start, before the end of a window
	rest     []expr.Expr
}

// origin is the aggregate's input, seen through projections or a window of time; groups and value are over it.
type origin struct {
	node   plan.Node
	groups []expr.Expr
	value  expr.Expr
	window *plan.TimeWindow
	key    string
}

// extremeOf is nil when j is no such join.
func (c *rewriter) extremeOf(j *plan.Join) *extreme {
	x := &extreme{c: c, j: j, same: sharing{c: c}}
	right := j.Right
	for _, col := range right.Columns() {
		if x.made == nil {
			x.made = map[expr.ColID]expr.Expr{}
		}
		x.made[col.ID] = col.Ref()
	}
	for {
		p, ok := right.(*plan.Project)
		if !ok {
			break
		}
		for id, e := range x.made {
			x.made[id] = substitute(e, p)
		}
		right = p.Input
	}
	agg, ok := right.(*plan.Aggregate)
	if !ok || agg.Sets != nil || len(agg.Aggs) != 1 {
		return nil
	}
	a := &agg.Aggs[0]
	if a.Fn.Name != "max" && a.Fn.Name != "min" || len(a.Args) != 1 || a.Filter != nil || !a.Col.Type.Equal(a.Args[0].Type()) {
		return nil
	}
	x.agg, x.max = agg, a.Fn.Name == "max"
	r := origin{node: agg.Input, value: a.Args[0]}
	for _, k := range agg.Keys {
		r.groups = append(r.groups, k.Expr)
	}
	for {
		x.from = append(x.from, r)
		p, ok := r.node.(*plan.Project)
		if !ok {
			break
		}
		below := origin{node: p.Input, value: substitute(r.value, p)}
		for _, e := range r.groups {
			below.groups = append(below.groups, substitute(e, p))
		}
		r = below
	}
	if w, ok := r.node.(*plan.TimeWindow); ok && w.Kind != plan.Session {
		r.node, r.window = w.Input, w
		x.from = append(x.from, r)
	}
	if !x.listen(r) {
		return nil
	}
	return x
}

// substitute gives an expression over a projection's columns as one over its input's.
func substitute(e expr.Expr, p *plan.Project) expr.Expr {
	made := make(map[expr.ColID]expr.Expr, len(p.Items))
	for _, it := range p.Items {
		made[it.Col.ID] = it.Expr
	}
	return expr.Substitute(e, made)
}

// listen takes the join's conditions apart. It reports whether they tell every group and the value.
func (x *extreme) listen(deepest origin) bool {
	x.groups, x.nullSafe = make([]expr.Expr, len(x.agg.Keys)), make([]bool, len(x.agg.Keys))
	for _, k := range x.j.Keys {
		if x.heard("=", k.Left, k.Right, k.NullSafe, deepest) {
			continue
		}
		name := "="
		if k.NullSafe {
			name = "is not distinct from"
		}
		e, err := expr.NewCall(name, x.agg.Aggs[0].Pos, k.Left, k.Right)
		if err != nil {
			return false
		}
		x.rest = append(x.rest, e)
	}
	for _, e := range expr.Conjuncts(x.j.On) {
		op, l, r, ok := plan.Comparison(e)
		if !ok || !x.heard(op, l, r, false, deepest) && !x.heard(plan.Flip(op), r, l, false, deepest) {
			x.rest = append(x.rest, e)
		}
	}
	if w := deepest.window; w != nil && len(x.within) == 2 && x.within[0] != nil && x.within[1] != nil {
		if x.j.Kind == plan.Semi && overlap(w) { // a row best in two windows is one row of the join, two of the top-N
			return false
		}
		for k, e := range deepest.groups {
			if x.groups[k] == nil && !isColumn(e, w.Start.ID) && !isColumn(e, w.End.ID) {
				return false
			}
		}
		return x.value != nil
	}
	return x.within == nil && x.value != nil && !slices.Contains(x.groups, nil)
}

// heard takes a condition l op r as one on a column of the aggregate, if it is.
func (x *extreme) heard(op string, l, r expr.Expr, nullSafe bool, deepest origin) bool {
	col, ok := expr.Substitute(r, x.made).(*expr.Col)
	if !ok || stuck(instant(l)) || !onlyReads(l, plan.SetOf(x.j.Left.Columns())) {
		return false
	}
	if col.ID == x.agg.Aggs[0].Col.ID {
		if x.value != nil || nullSafe || stuck(l) || op != "=" && (op != ">=" || !x.max) && (op != "<=" || x.max) {
			return false
		}
		x.value = l
		return true
	}
	k := slices.IndexFunc(x.agg.Keys, func(it plan.Item) bool { return it.Col.ID == col.ID })
	if k < 0 {
		return false
	}
	bound := func(at int) bool {
		if x.within == nil {
			x.within = make([]expr.Expr, 2)
		}
		if x.within[at] != nil {
			return false
		}
		x.within[at] = l
		return true
	}
	switch w := deepest.window; {
	case op == "=" && x.groups[k] == nil && !stuck(l):
		x.groups[k], x.nullSafe[k] = l, nullSafe
		return true
	case op == ">=" && w != nil && isColumn(deepest.groups[k], w.Start.ID):
		return bound(0)
	case op == "<" && w != nil && isColumn(deepest.groups[k], w.End.ID):
		return bound(1)
	}
	return false
}

// overlap reports whether a time may lie in several of the windows.
func overlap(w *plan.TimeWindow) bool { return w.Kind != plan.Tumble && w.Size != w.Slide }

func isColumn(e expr.Expr, id expr.ColID) bool {
	c, ok := e.(*expr.Col)
	return ok && c.ID == id
}

// instead returns what stands for the join; nil when its left side does not hold the relation.
func (x *extreme) instead(shown plan.ColSet) plan.Node {
	for _, e := range x.rest {
		for id := range plan.ExprColumns(e) {
			shown[id] = true
		}
	}
	for _, col := range x.j.Right.Columns() {
		if shown[col.ID] && !col.Type.Alike() {
			return nil
		}
	}
	for i := range x.from {
		r := &x.from[i]
		if (r.window != nil) != (x.within != nil) {
			continue
		}
		r.key = x.same.key(r.node)
		left, window := x.place(x.j.Left, r, x.groups, x.value, x.within)
		if left == nil {
			continue
		}
		mean := map[expr.ColID]expr.Expr{x.agg.Aggs[0].Col.ID: x.value}
		for k, it := range x.agg.Keys {
			switch {
			case x.groups[k] != nil:
				mean[it.Col.ID] = x.groups[k]
			case isColumn(r.groups[k], r.window.Start.ID):
				mean[it.Col.ID] = window.Start.Ref()
			default:
				mean[it.Col.ID] = window.End.Ref()
			}
		}
		top := &plan.Project{Input: left, Items: pass(x.j.Left.Columns())}
		for _, col := range x.j.Right.Columns() {
			top.Items = append(top.Items, plan.Item{Expr: expr.Substitute(x.made[col.ID], mean), Col: col})
		}
		x.c.note("the best rows of each group: %s", plan.Describe(x.agg))
		return exactly(where(top, x.rest), x.j.Columns())
	}
	return nil
}

// place puts the top-N over the relation within n, whose columns groups, value and within read.
func (x *extreme) place(n plan.Node, r *origin, groups []expr.Expr, value expr.Expr, within []expr.Expr) (plan.Node, *plan.TimeWindow) {
	if best, w := x.over(n, r, groups, value, within); best != nil {
		return best, w
	}
	below := func(child plan.Node) (plan.Node, *plan.TimeWindow) { return x.place(child, r, groups, value, within) }
	switch m := n.(type) {
	case *plan.Project:
		sub := func(es []expr.Expr) []expr.Expr {
			out := slices.Clone(es)
			for i, e := range es {
				if e != nil {
					out[i] = substitute(e, m)
				}
			}
			return out
		}
		in, w := x.place(m.Input, r, sub(groups), substitute(value, m), sub(within))
		if in == nil {
			return nil, nil
		}
		p := &plan.Project{Input: in, Items: m.Items}
		if w != nil {
			p.Items = append(slices.Clip(m.Items), pass([]plan.Column{w.Start, w.End})...)
		}
		return p, w
	case *plan.Filter:
		if in, w := below(m.Input); in != nil && !expr.Volatile(m.Cond) {
			return &plan.Filter{Input: in, Cond: m.Cond}, w
		}
	case *plan.Join:
		reads := plan.ColSet{}
		for _, e := range slices.Concat(groups, within, []expr.Expr{value}) {
			if e != nil {
				for id := range plan.ExprColumns(e) {
					reads[id] = true
				}
			}
		}
		switch {
		case (m.Kind == plan.Inner || m.Kind == plan.Left || m.Kind == plan.Semi || m.Kind == plan.Anti) && plan.Subset(reads, plan.SetOf(m.Left.Columns())):
			if in, w := below(m.Left); in != nil {
				return m.With([]plan.Node{in, m.Right}), w
			}
		case m.Kind == plan.Inner && plan.Subset(reads, plan.SetOf(m.Right.Columns())):
			if in, w := below(m.Right); in != nil {
				return m.With([]plan.Node{m.Left, in}), w
			}
		}
	}
	return nil, nil
}

// over is the top-N over n, if n is the relation and the join compares what is aggregated.
func (x *extreme) over(n plan.Node, r *origin, groups []expr.Expr, value expr.Expr, within []expr.Expr) (plan.Node, *plan.TimeWindow) {
	cols, theirs := n.Columns(), r.node.Columns()
	if x.c.mode == Batch && scansOnly(n) {
		return nil, nil
	}
	if len(cols) != len(theirs) || x.same.key(n) != r.key {
		return nil, nil
	}
	to := map[expr.ColID]expr.ColID{}
	for i, col := range theirs {
		to[col.ID] = cols[i].ID
	}
	is := func(e, theirs expr.Expr) bool {
		return !expr.Volatile(e) && expr.Key(e) == expr.Key(renamed(theirs, to))
	}
	if !is(value, r.value) {
		return nil, nil
	}
	g := &plan.GroupTopN{Limit: 1, Rank: "rank", Keys: []plan.SortItem{{Expr: value, Key: fn.SortKey{Desc: x.max}}}}
	known := x.c.facts.Of(n).NotNull
	var conds []expr.Expr
	some := func(e expr.Expr) {
		if !plan.NeverNull(e, known) {
			conds = append(conds, &expr.IsNull{Arg: e, Negate: true})
		}
	}
	some(value)
	for k, e := range groups {
		if e == nil {
			continue
		}
		if !is(e, r.groups[k]) {
			return nil, nil
		}
		if !x.nullSafe[k] {
			some(e)
		}
		g.Part = append(g.Part, e)
	}
	var w *plan.TimeWindow
	if r.window == nil {
		g.Input = where(n, conds)
	} else {
		for _, e := range within {
			if !is(instant(e), instant(r.window.Time)) {
				return nil, nil
			}
		}
		some(instant(within[0]))
		m := *r.window
		w = &m
		w.Input, w.Time = where(n, conds), renamed(w.Time, to)
		w.Start, w.End = x.c.column(w.Start.Name, w.Start.Type), x.c.column(w.End.Name, w.End.Type)
		g.Input, g.Part = w, append(g.Part, w.End.Ref())
		if w.Size.Months != 0 || w.Slide.Months != 0 { // else the end tells the start
			g.Part = append(g.Part, w.Start.Ref())
		}
	}
	if x.c.mode == Incremental && !plan.KeepsBest(g, plan.EmitImmediate) {
		return nil, nil
	}
	return g, w
}

// scansOnly reports whether n gives the rows of a scan.
func scansOnly(n plan.Node) bool {
	switch n := n.(type) {
	case *plan.Scan:
		return true
	case *plan.Project:
		return scansOnly(n.Input)
	case *plan.Filter:
		return scansOnly(n.Input)
	case *plan.TimeWindow:
		return scansOnly(n.Input)
	}
	return false
}

// instant looks through casts to finer timestamps. What they refuse, assigning windows refuses too.
func instant(e expr.Expr) expr.Expr {
	whole := func(t types.Type) bool {
		return t.Kind == types.TimestampS || t.Kind == types.TimestampMS || t.Kind == types.Timestamp
	}
	if c, ok := e.(*expr.Cast); ok && whole(c.T) && whole(c.Arg.Type()) && c.T.Kind >= c.Arg.Type().Kind {
		return instant(c.Arg)
	}
	return e
}
