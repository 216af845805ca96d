package rules

import (
	"maps"
	"slices"

	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/types"
)

// pushFilters moves conditions towards the sources, into scans where they arrive there, and makes join keys of
// equalities on the way. It must not move
//
//	through Limit and TopN        they would take other rows
//	through GroupTopN and Window  except conditions on partition keys, which keep or drop whole partitions
//	through Aggregate             except conditions on keys; and nothing below an aggregate without keys, which has a row anyway
//	through Normalize             except conditions on the key alone, which hold for all that becomes of a key or for none of it
//	past the Start and End of a TimeWindow
//	to the padded side of an outer join: the padded row would survive the condition
//	what may fail, or is volatile, below a join: it would meet rows that the join drops
//
// An outer join becomes an inner one only when a condition above cannot be true for the padded row. IS NULL above an
// outer join never makes an anti join of it: a matched row may carry that NULL too.
func pushFilters(c *rewriter, root plan.Node) (plan.Node, error) {
	return c.push(root, nil), nil
}

// push returns n with the conditions applied somewhere at or below it.
func (c *rewriter) push(n plan.Node, preds []expr.Expr) plan.Node {
	switch n := n.(type) {
	case *plan.Filter:
		return c.push(n.Input, append(expr.Conjuncts(n.Cond), preds...))
	case *plan.Project:
		return c.pushProject(n, preds)
	case *plan.Aggregate:
		return c.pushAggregate(n, preds)
	case *plan.TimeWindow:
		if n.Kind == plan.Session { // rows that other keys have do not tell sessions apart
			down, up := split(preds, within(plainColumns(n.Keys)))
			return where(rebuild(n, c.push(n.Input, down)), up)
		}
		preds = edgesKnown(n, preds)
		down, up := split(preds, func(e expr.Expr) bool {
			cols := plan.ExprColumns(e)
			return !cols[n.Start.ID] && !cols[n.End.ID] && !volatile(e)
		})
		return where(rebuild(n, c.push(n.Input, down)), up)
	case *plan.Unnest:
		return c.pushUnnest(n, preds)
	case *plan.Join:
		return c.pushJoin(n, preds)
	case *plan.Sort:
		return rebuild(n, c.push(n.Input, preds))
	case *plan.Distinct:
		down, up := split(preds, func(e expr.Expr) bool { return !volatile(e) })
		return where(rebuild(n, c.push(n.Input, down)), up)
	case *plan.GroupTopN:
		part := plainColumns(n.Part)
		down, up := split(preds, within(part))
		return where(rebuild(n, c.push(n.Input, down)), up)
	case *plan.Window:
		var part plan.ColSet
		for i, f := range n.Funcs {
			p := plainColumns(f.Part)
			if i > 0 {
				for id := range part {
					if !p[id] {
						delete(part, id)
					}
				}
				continue
			}
			part = p
		}
		down, up := split(preds, within(part))
		return where(rebuild(n, c.push(n.Input, down)), up)
	case *plan.Normalize:
		key := bitwise(n.Key, n.Columns())
		down, up := split(preds, func(e expr.Expr) bool { return within(key)(e) && !stuck(e) })
		return where(rebuild(n, c.push(n.Input, down)), up)
	case *plan.SetOp:
		return c.pushSetOp(n, preds)
	case *plan.Scan:
		return pushScan(n, preds)
	case *plan.Values:
		return c.pushValues(n, preds)
	}
	children := n.Children()
	out := make([]plan.Node, len(children))
	for i, x := range children {
		out[i] = c.push(x, nil)
	}
	return where(rebuild(n, out...), preds)
}

// edgesKnown asks about the time of a row instead of whether an edge of its window is NULL.
func edgesKnown(w *plan.TimeWindow, preds []expr.Expr) []expr.Expr {
	if stuck(w.Time) {
		return preds
	}
	out := slices.Clone(preds)
	for i, e := range preds {
		if is, ok := e.(*expr.IsNull); ok && (isColumn(is.Arg, w.Start.ID) || isColumn(is.Arg, w.End.ID)) {
			out[i] = &expr.IsNull{Arg: w.Time, Negate: is.Negate}
		}
	}
	return out
}

// rebuild is With that returns n itself when nothing changed, so that an idle rule leaves the plan as it is.
func rebuild(n plan.Node, children ...plan.Node) plan.Node {
	if slices.Equal(n.Children(), children) {
		return n
	}
	return n.With(children)
}

func volatile(e expr.Expr) bool { return expr.Purity(e) == fn.Volatile }

// split parts conditions into those for which down holds and the rest. The order among the ones that may fail is
// kept, and none of them goes down once an earlier condition, perhaps its guard, has stayed.
func split(preds []expr.Expr, can func(expr.Expr) bool) (down, up []expr.Expr) {
	for _, e := range preds {
		if can(e) && (len(up) == 0 || !stuck(e)) {
			down = append(down, e)
		} else {
			up = append(up, e)
		}
	}
	return down, up
}

// within accepts conditions that read at least one column, and only columns of the set.
func within(set plan.ColSet) func(expr.Expr) bool {
	return func(e expr.Expr) bool {
		cols := plan.ExprColumns(e)
		return len(cols) > 0 && plan.Subset(cols, set) && !volatile(e)
	}
}

// bitwise picks those columns of a key whose values are equal only when they are the same: 0.0 and -0.0 are one key, and a
// condition may tell them apart.
func bitwise(key []expr.ColID, cols []plan.Column) plan.ColSet {
	s := plan.ColSet{}
	for _, c := range cols {
		same := c.Type.IsInteger() || c.Type.IsTimestamp() || slices.Contains([]types.Kind{types.Varchar, types.Blob, types.Boolean, types.Date, types.UUID}, c.Type.Kind)
		if same && slices.Contains(key, c.ID) {
			s[c.ID] = true
		}
	}
	return s
}

func plainColumns(es []expr.Expr) plan.ColSet {
	s := plan.ColSet{}
	for _, e := range es {
		if col, ok := e.(*expr.Col); ok {
			s[col.ID] = true
		}
	}
	return s
}

func (c *rewriter) pushProject(n *plan.Project, preds []expr.Expr) plan.Node {
	made := make(map[expr.ColID]expr.Expr, len(n.Items))
	random := plan.ColSet{}
	for _, it := range n.Items {
		made[it.Col.ID] = it.Expr
		if volatile(it.Expr) {
			random[it.Col.ID] = true // computed again below it would be another value
		}
	}
	down, up := split(preds, func(e expr.Expr) bool { return !plan.Overlap(plan.ExprColumns(e), random) })
	for i, e := range down {
		down[i] = simplifyExpr(c, expr.Substitute(e, made))
	}
	return where(rebuild(n, c.push(n.Input, down)), up)
}

func (c *rewriter) pushAggregate(n *plan.Aggregate, preds []expr.Expr) plan.Node {
	keys := plan.ColSet{}
	made := map[expr.ColID]expr.Expr{}
	if n.Sets == nil {
		for _, k := range n.Keys {
			keys[k.Col.ID], made[k.Col.ID] = true, k.Expr
		}
	}
	down, up := split(preds, within(keys))
	for i, e := range down {
		down[i] = expr.Substitute(e, made)
	}
	return where(rebuild(n, c.push(n.Input, down)), up)
}

func (c *rewriter) pushSetOp(n *plan.SetOp, preds []expr.Expr) plan.Node {
	down, up := split(preds, func(e expr.Expr) bool { return !volatile(e) })
	side := func(in plan.Node) plan.Node {
		made := map[expr.ColID]expr.Expr{}
		for i, col := range in.Columns() {
			made[n.Cols[i].ID] = col.Ref()
		}
		want := in.Columns()
		own := make([]expr.Expr, len(down))
		for i, e := range down {
			own[i] = expr.Substitute(e, made)
		}
		return exactly(c.push(in, own), want)
	}
	return where(rebuild(n, side(n.Left), side(n.Right)), up)
}

func pushScan(n *plan.Scan, preds []expr.Expr) plan.Node {
	down, up := split(preds, func(e expr.Expr) bool { return !volatile(e) && !plan.IsBool(e, false) && !plan.IsNullLit(e) })
	filters := distinctExprs(append(slices.Clone(n.Filters), down...))
	if len(filters) == len(n.Filters) {
		return where(n, up)
	}
	if !slices.ContainsFunc(filters, stuck) {
		slices.SortStableFunc(filters, func(a, b expr.Expr) int { return effort(a) - effort(b) })
	}
	m := *n
	m.Filters = filters
	return where(&m, up)
}

// effort ranks conditions by what a row costs, so that the dear ones see fewer rows.
func effort(e expr.Expr) int {
	switch e := e.(type) {
	case *expr.IsNull:
		return 0
	case *expr.In:
		return 3
	case *expr.Call:
		if _, l, r, ok := plan.Comparison(e); ok {
			_, isCol := l.(*expr.Col)
			switch {
			case isCol && l.Type().Kind == types.Varchar:
				return 2
			case isCol && !notLit(r):
				return 0
			case isCol:
				return 1
			}
		}
	}
	return 4
}

func (c *rewriter) pushValues(n *plan.Values, preds []expr.Expr) plan.Node {
	for _, e := range preds {
		if plan.IsBool(e, false) || plan.IsNullLit(e) {
			return &plan.Values{Cols: n.Cols}
		}
	}
	return where(n, preds)
}

// pushJoin distributes conditions by the kind of join.
func (c *rewriter) pushJoin(n *plan.Join, preds []expr.Expr) plan.Node {
	j := *n
	lc, rc := plan.SetOf(j.Left.Columns()), plan.SetOf(j.Right.Columns())
	j.Kind = strengthen(j.Kind, preds, lc, rc)
	on := expr.Conjuncts(j.On)
	var left, right, up, keep []expr.Expr
	leftOnly := func(e expr.Expr) bool { return onlyReads(e, lc) && !stuck(e) }
	rightOnly := func(e expr.Expr) bool { return onlyReads(e, rc) && !stuck(e) }

	switch j.Kind {
	case plan.Inner:
		var all []expr.Expr
		all, up = split(preds, func(e expr.Expr) bool { return !stuck(e) })
		for _, e := range append(on, all...) {
			switch {
			case leftOnly(e) && rightOnly(e): // no columns at all
				left, right = append(left, e), append(right, e)
			case leftOnly(e):
				left = append(left, e)
			case rightOnly(e):
				right = append(right, e)
			default:
				keep = append(keep, e)
				left, right = implied(left, right, e, lc, rc)
			}
		}
	case plan.Left, plan.Single:
		left, up = split(preds, leftOnly)
		for _, e := range on {
			if rightOnly(e) {
				right = append(right, e)
			} else {
				keep = append(keep, e)
			}
		}
	case plan.Right:
		right, up = split(preds, rightOnly)
		for _, e := range on {
			if leftOnly(e) {
				left = append(left, e)
			} else {
				keep = append(keep, e)
			}
		}
	case plan.Semi, plan.Anti:
		left, up = split(preds, leftOnly)
		for _, e := range on {
			switch {
			case rightOnly(e):
				right = append(right, e)
			case leftOnly(e) && j.Kind == plan.Semi:
				left = append(left, e)
			default:
				keep = append(keep, e)
			}
		}
	case plan.Mark: // its ON may be NULL and mean it, so nothing of it moves
		if m := c.asked(n, preds); m != nil {
			return c.push(m, preds)
		}
		left, up = split(preds, leftOnly)
		keep = on
	case plan.Full:
		up, keep = preds, on
	}
	if j.Kind != plan.Mark {
		keep = joinKeys(&j, keep, lc, rc)
	}
	left, right = c.transfer(&j, left, right)
	j.On = expr.Conjunction(keep)
	j.Left, j.Right = c.push(j.Left, left), c.push(j.Right, right)
	if j.Left == n.Left && j.Right == n.Right && j.Kind == n.Kind && expr.Equal(j.On, n.On) && len(j.Keys) == len(n.Keys) {
		return where(n, up)
	}
	return where(&j, up)
}

// asked makes a semi join of a mark join where a condition asks for the mark alone, and an anti join where one asks for
// its opposite and the mark is never NULL. Who reads the mark above finds a constant.
func (c *rewriter) asked(j *plan.Join, preds []expr.Expr) plan.Node {
	known := maps.Clone(c.facts.Of(j.Left).NotNull)
	maps.Copy(known, c.facts.Of(j.Right).NotNull)
	never := j.On == nil || plan.NeverNull(j.On, known)
	for _, k := range j.Keys {
		never = never && (k.NullSafe || plan.NeverNull(k.Left, known) && plan.NeverNull(k.Right, known))
	}
	for _, e := range preds {
		not, negated := e.(*expr.Not)
		if negated {
			e = not.Arg
		}
		if col, ok := e.(*expr.Col); !ok || col.ID != j.Mark.ID || negated && !never {
			continue
		}
		m := &plan.Join{Kind: plan.Semi, Left: j.Left, Right: j.Right, Keys: j.Keys, On: j.On}
		mark := plan.True
		if negated {
			m.Kind, mark = plan.Anti, plan.False
		}
		return &plan.Project{Input: m, Items: append(pass(j.Left.Columns()), plan.Item{Expr: mark, Col: j.Mark})}
	}
	return nil
}

func onlyReads(e expr.Expr, cols plan.ColSet) bool { return plan.Subset(plan.ExprColumns(e), cols) }

// strengthen makes an outer join stricter where a condition above rejects its padded rows.
func strengthen(kind plan.JoinKind, preds []expr.Expr, lc, rc plan.ColSet) plan.JoinKind {
	rejects := func(cols plan.ColSet) bool {
		return slices.ContainsFunc(preds, func(e expr.Expr) bool { return plan.Overlap(plan.ExprColumns(e), cols) && plan.Rejects(e, cols) })
	}
	if (kind == plan.Left || kind == plan.Full) && rejects(rc) {
		if kind == plan.Left {
			return plan.Inner
		}
		kind = plan.Right
	}
	if (kind == plan.Right || kind == plan.Full) && rejects(lc) {
		if kind == plan.Right {
			return plan.Inner
		}
		kind = plan.Left
	}
	return kind
}

// implied adds what a condition over both sides says of each alone: (a.x = 1 AND b.y = 2) OR (a.x = 2 AND b.y = 1)
// says that a.x is 1 or 2. The condition itself stays where it is.
func implied(left, right []expr.Expr, e expr.Expr, lc, rc plan.ColSet) ([]expr.Expr, []expr.Expr) {
	alts := disjuncts(e)
	if len(alts) < 2 {
		return left, right
	}
	side := func(cols plan.ColSet) expr.Expr {
		parts := make([]expr.Expr, len(alts))
		for i, a := range alts {
			own := slices.DeleteFunc(slices.Clone(expr.Conjuncts(a)), func(x expr.Expr) bool { return !onlyReads(x, cols) || stuck(x) })
			if len(own) == 0 {
				return nil
			}
			parts[i] = expr.Conjunction(own)
		}
		return simplifyOr(&expr.Or{Args: parts})
	}
	if x := side(lc); x != nil {
		left = append(left, x)
	}
	if x := side(rc); x != nil {
		right = append(right, x)
	}
	return left, right
}

// joinKeys takes equalities of the two sides out of conditions and makes keys of them. A side that may fail is asked about
// all its rows then, not only about those that have a partner: so ON does, and so joins judge rows (docs/operator-semantics.md).
func joinKeys(j *plan.Join, conds []expr.Expr, lc, rc plan.ColSet) []expr.Expr {
	var rest []expr.Expr
	keys := slices.Clone(j.Keys)
	for _, e := range conds {
		l, r, nullSafe, ok := plan.Equality(e)
		switch {
		case !ok || expr.Volatile(e):
		case sideOf(l, lc) && sideOf(r, rc):
			keys = append(keys, plan.EquiKey{Left: l, Right: r, NullSafe: nullSafe})
			continue
		case sideOf(r, lc) && sideOf(l, rc):
			keys = append(keys, plan.EquiKey{Left: r, Right: l, NullSafe: nullSafe})
			continue
		}
		rest = append(rest, e)
	}
	j.Keys = keys[:0:0]
	for _, k := range keys {
		if !slices.ContainsFunc(j.Keys, func(o plan.EquiKey) bool {
			return o.NullSafe == k.NullSafe && expr.Equal(o.Left, k.Left) && expr.Equal(o.Right, k.Right)
		}) {
			j.Keys = append(j.Keys, k)
		}
	}
	return rest
}

func sideOf(e expr.Expr, cols plan.ColSet) bool {
	used := plan.ExprColumns(e)
	return len(used) > 0 && plan.Subset(used, cols)
}

// transfer carries comparisons with constants over the keys: a.k = b.k AND a.k = 5 says b.k = 5. A side that is
// preserved is not filtered so, nor the right of a mark join, whose emptiness and NULLs are part of the answer.
func (c *rewriter) transfer(j *plan.Join, left, right []expr.Expr) ([]expr.Expr, []expr.Expr) {
	toRight := j.Kind != plan.Right && j.Kind != plan.Full && j.Kind != plan.Mark
	toLeft := j.Kind == plan.Inner || j.Kind == plan.Semi || j.Kind == plan.Right
	var addLeft, addRight []expr.Expr
	for _, k := range j.Keys {
		l, okL := k.Left.(*expr.Col)
		r, okR := k.Right.(*expr.Col)
		if !okL || !okR || !l.T.Equal(r.T) {
			continue
		}
		if toRight {
			addRight = append(addRight, carried(left, l, r)...)
		}
		if toLeft {
			addLeft = append(addLeft, carried(right, r, l)...)
		}
	}
	return append(left, addLeft...), append(right, addRight...)
}

// carried rewrites the conditions that compare from with constants to read to.
func carried(conds []expr.Expr, from, to *expr.Col) []expr.Expr {
	var out []expr.Expr
	for _, e := range conds {
		if !constantTest(e, from.ID) {
			continue
		}
		out = append(out, expr.Substitute(e, map[expr.ColID]expr.Expr{from.ID: to}))
	}
	return out
}

func constantTest(e expr.Expr, id expr.ColID) bool {
	reads := func(x expr.Expr) bool { c, ok := x.(*expr.Col); return ok && c.ID == id }
	if in, ok := e.(*expr.In); ok {
		return reads(in.Arg) && !in.Negate && !slices.ContainsFunc(in.List, notLit)
	}
	_, l, r, ok := plan.Comparison(e)
	return ok && reads(l) && !notLit(r)
}
