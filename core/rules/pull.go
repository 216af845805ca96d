package rules

import (
	"maps"
	"slices"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/types"
)

// pulled is a subquery without its correlated parts: for each outer row, its result is the rows of plan for which
// preds hold, then (for one: that row, or a row of NULLs if none) those for which post holds, with the
// columns of subst computed.
//
//	plan   reads nothing of the outer query; it may have more columns than the subquery had
//	preds  conditions over plan's and outer columns
//	one    an aggregate without groups: there is always one row. Its groups are now the correlation's, and an outer
//	       row without a group must see what the aggregate says of no rows: count 0, else NULL
//	post   conditions to apply after the row of NULLs was filled in (HAVING)
//	subst  columns that are computed after the join, over plan's and outer columns
type pulled struct {
	plan  plan.Node
	preds []expr.Expr
	one   bool
	post  []expr.Expr
	subst map[expr.ColID]expr.Expr
}

func (p *pulled) apply(e expr.Expr) expr.Expr {
	if e == nil || len(p.subst) == 0 {
		return e
	}
	return expr.Substitute(e, p.subst)
}

func (p *pulled) applyAll(es []expr.Expr) []expr.Expr {
	out := make([]expr.Expr, len(es))
	for i, e := range es {
		out[i] = p.apply(e)
	}
	return out
}

// simple reports whether nothing waits for the join but preds.
func (p *pulled) simple() bool { return !p.one && len(p.post) == 0 && len(p.subst) == 0 }

func reads(e expr.Expr, cols plan.ColSet) bool {
	return e != nil && plan.Overlap(plan.ExprColumns(e), cols)
}

// pull takes the correlated parts out of a subquery; nil when it cannot, and then the domain way is taken. It must
// not pull a condition through an aggregate, a limit or a window unless the condition fixes whole groups: an
// equality of an inner value with an outer one does, once the inner value is one of the keys; a < does not.
func (d *decorrelator) pull(n plan.Node, outer plan.ColSet) *pulled {
	if !plan.Overlap(plan.Free(n), outer) {
		return &pulled{plan: n, subst: map[expr.ColID]expr.Expr{}}
	}
	switch n := n.(type) {
	case *plan.Filter:
		return d.pullFilter(n, outer)
	case *plan.Project:
		return d.pullProject(n, outer)
	case *plan.Aggregate:
		return d.pullAggregate(n, outer)
	case *plan.Distinct:
		p := d.pull(n.Input, outer)
		if p == nil || !p.simple() {
			return nil
		}
		keys, ok := p.keyColumns(outer)
		extra := plan.SetOf(p.plan.Columns())
		for _, c := range n.Columns() {
			delete(extra, c.ID)
		}
		if !ok || !plan.Subset(extra, plan.SetOf(keys)) {
			return nil
		}
		p.plan = &plan.Distinct{Input: p.plan}
		return p
	case *plan.Sort:
		return d.pull(n.Input, outer) // the order of a subquery's rows is not seen without a limit
	case *plan.Limit:
		if top, ok := topNode(n).(*plan.Limit); !ok || top != n {
			return d.pull(topNode(n), outer)
		}
		return d.pullLimit(n.Input, nil, nil, n.Limit, n.Offset, outer)
	case *plan.TopN:
		return d.pullLimit(n.Input, n.Keys, n.Tie, n.Limit, n.Offset, outer)
	case *plan.GroupTopN:
		p, keys := d.pullGrouped(n, n.Input, outer)
		if p == nil {
			return nil
		}
		m := *n
		m.Input, m.Part = p.plan, append(slices.Clone(n.Part), refs(keys)...)
		p.plan = &m
		return p
	case *plan.Window:
		p, keys := d.pullGrouped(n, n.Input, outer)
		if p == nil {
			return nil
		}
		m := *n
		m.Input, m.Funcs = p.plan, slices.Clone(n.Funcs)
		for i := range m.Funcs {
			m.Funcs[i].Part = append(slices.Clone(m.Funcs[i].Part), refs(keys)...)
		}
		p.plan = &m
		return p
	case *plan.TimeWindow:
		p := d.pull(n.Input, outer)
		if p == nil || !p.simple() || readsAny(n.Exprs(), outer) || n.Kind == plan.Session {
			return nil
		}
		p.plan = n.With([]plan.Node{p.plan})
		return p
	case *plan.Unnest:
		return d.pullUnnest(n, outer)
	case *plan.Join:
		return d.pullJoin(n, outer)
	}
	return nil
}

func readsAny(es []expr.Expr, cols plan.ColSet) bool {
	return slices.ContainsFunc(es, func(e expr.Expr) bool { return reads(e, cols) })
}

func refs(cols []plan.Column) []expr.Expr {
	out := make([]expr.Expr, len(cols))
	for i, c := range cols {
		out[i] = c.Ref()
	}
	return out
}

func (d *decorrelator) pullFilter(n *plan.Filter, outer plan.ColSet) *pulled {
	p := d.pull(n.Input, outer)
	if p == nil {
		return nil
	}
	conds := p.applyAll(expr.Conjuncts(n.Cond))
	if p.one {
		p.post = append(p.post, conds...)
		return p
	}
	var own []expr.Expr
	for _, e := range conds {
		if reads(e, outer) {
			p.preds = append(p.preds, e)
		} else {
			own = append(own, e)
		}
	}
	p.plan = where(p.plan, own)
	return p
}

func (d *decorrelator) pullProject(n *plan.Project, outer plan.ColSet) *pulled {
	p := d.pull(n.Input, outer)
	if p == nil {
		return nil
	}
	later := map[expr.ColID]expr.Expr{}
	var items []plan.Item
	for _, it := range n.Items {
		e := p.apply(it.Expr)
		if p.one || reads(e, outer) {
			later[it.Col.ID] = e
		} else {
			items = append(items, plan.Item{Expr: e, Col: it.Col})
		}
	}
	p.subst = later
	if p.one {
		return p
	}
	p.plan = d.keep(p, items)
	return p
}

// keep projects to items and the columns that the pulled parts still read.
func (d *decorrelator) keep(p *pulled, items []plan.Item) plan.Node {
	need := plan.ColSet{}
	for _, es := range [][]expr.Expr{p.preds, p.post, slices.Collect(maps.Values(p.subst))} {
		for _, e := range es {
			maps.Copy(need, plan.ExprColumns(e))
		}
	}
	for _, it := range items {
		delete(need, it.Col.ID)
	}
	for _, c := range p.plan.Columns() {
		if need[c.ID] {
			items = append(items, plan.Item{Expr: c.Ref(), Col: c})
		}
	}
	return &plan.Project{Input: p.plan, Items: items}
}

// keyColumns returns the plan's columns that preds set equal to outer values; false when some pred is something else.
func (p *pulled) keyColumns(outer plan.ColSet) ([]plan.Column, bool) {
	var keys []plan.Column
	for _, e := range p.preds {
		inner, ok := innerSide(e, outer)
		if !ok {
			return nil, false
		}
		c, ok := inner.(*expr.Col)
		if !ok {
			return nil, false
		}
		if !slices.ContainsFunc(keys, func(k plan.Column) bool { return k.ID == c.ID }) {
			keys = append(keys, plan.Column{ID: c.ID, Name: c.Name, Type: c.T})
		}
	}
	return keys, true
}

// innerSide returns the side of an equality that reads only the subquery; the other must read only the outer query.
func innerSide(e expr.Expr, outer plan.ColSet) (expr.Expr, bool) {
	l, r, _, ok := plan.Equality(e)
	if !ok {
		return nil, false
	}
	lc, rc := plan.ExprColumns(l), plan.ExprColumns(r)
	switch {
	case plan.Subset(lc, outer) && !plan.Overlap(rc, outer) && len(rc) > 0:
		return r, true
	case plan.Subset(rc, outer) && !plan.Overlap(lc, outer) && len(lc) > 0:
		return l, true
	}
	return nil, false
}

// plainKeys gives every equality of preds a plain column as its inner side, adding a projection where it computes one.
func (d *decorrelator) plainKeys(p *pulled, outer plan.ColSet) bool {
	var items []plan.Item
	for i, e := range p.preds {
		inner, ok := innerSide(e, outer)
		if !ok {
			return false
		}
		if _, plain := inner.(*expr.Col); plain {
			continue
		}
		col := d.column("key", inner.Type())
		items = append(items, plan.Item{Expr: inner, Col: col})
		args := slices.Clone(e.Children())
		for k := range args {
			if args[k] == inner {
				args[k] = col.Ref()
			}
		}
		p.preds[i] = e.With(args)
	}
	if len(items) > 0 {
		p.plan = &plan.Project{Input: p.plan, Items: append(pass(p.plan.Columns()), items...)}
	}
	return true
}

// pullGrouped pulls from below an operator that works on groups; the correlation's columns join the group keys.
func (d *decorrelator) pullGrouped(n plan.Node, input plan.Node, outer plan.ColSet) (*pulled, []plan.Column) {
	p := d.pull(input, outer)
	if p == nil || !p.simple() || readsAny(n.Exprs(), outer) || !d.plainKeys(p, outer) {
		return nil, nil
	}
	keys, _ := p.keyColumns(outer)
	return p, keys
}

func (d *decorrelator) pullLimit(input plan.Node, order []plan.SortItem, tie []expr.ColID, limit, offset int64, outer plan.ColSet) *pulled {
	top := &plan.GroupTopN{Input: input, Keys: order, Tie: tie, Rank: "row_number", Limit: limit + offset}
	if p := d.pull(input, outer); p != nil && p.one && limit > 0 && offset == 0 {
		return p // there is but one row
	}
	if limit < 0 {
		return nil
	}
	cols := input.Columns()
	p, keys := d.pullGrouped(top, input, outer)
	if p == nil {
		return nil
	}
	if order == nil && tie == nil {
		for _, c := range cols {
			top.Tie = append(top.Tie, c.ID)
		}
	}
	top.Input, top.Part = p.plan, refs(keys)
	p.plan = d.skip(top, offset)
	return p
}

// skip drops the first rows of each group of a top-N.
func (d *decorrelator) skip(top *plan.GroupTopN, offset int64) plan.Node {
	if offset == 0 {
		return top
	}
	rn := d.column("row_number", types.Int64)
	top.RowNumber = &rn
	return &plan.Filter{Input: top, Cond: d.call(">", errs.Pos{}, rn.Ref(), &expr.Lit{V: offset, T: types.Int64})}
}

func (d *decorrelator) pullAggregate(n *plan.Aggregate, outer plan.ColSet) *pulled {
	if n.Sets != nil {
		return nil
	}
	p := d.pull(n.Input, outer)
	if p == nil || p.one || len(p.post) > 0 {
		return nil
	}
	m := n.WithExprs(p.applyAll(n.Exprs())).(*plan.Aggregate)
	if readsAny(m.Exprs(), outer) {
		return nil
	}
	if m == n {
		k := *n
		m = &k
	}
	p.subst = map[expr.ColID]expr.Expr{}
	if len(p.preds) == 0 {
		m.Input = p.plan
		p.plan = m
		return p
	}
	if !d.plainKeys(p, outer) {
		return nil
	}
	m.Input = p.plan
	keys, _ := p.keyColumns(outer)
	m.Keys = slices.Clone(m.Keys)
	named := map[expr.ColID]expr.Expr{}
	for _, k := range keys {
		at := slices.IndexFunc(m.Keys, func(it plan.Item) bool { c, ok := it.Expr.(*expr.Col); return ok && c.ID == k.ID })
		if at < 0 {
			at = len(m.Keys)
			m.Keys = append(m.Keys, plan.Item{Expr: k.Ref(), Col: k})
		}
		named[k.ID] = m.Keys[at].Col.Ref()
	}
	for i, e := range p.preds {
		p.preds[i] = expr.Substitute(e, named)
	}
	p.plan = m
	if len(n.Keys) == 0 {
		p.one = true
		p.subst = d.countsToZero(m)
	}
	return p
}

// countsToZero gives the counts of an aggregate new columns, and says what the old ones are where the aggregate's
// row may be missing.
func (d *decorrelator) countsToZero(m *plan.Aggregate) map[expr.ColID]expr.Expr {
	subst := map[expr.ColID]expr.Expr{}
	m.Aggs = slices.Clone(m.Aggs)
	for i := range m.Aggs {
		a := &m.Aggs[i]
		if plan.NeverNullAgg(a) {
			raw := d.column(a.Col.Name, a.Col.Type)
			subst[a.Col.ID] = &expr.Coalesce{Args: []expr.Expr{raw.Ref(), zero(raw.Type)}, T: raw.Type}
			a.Col = raw
		}
	}
	return subst
}

func (d *decorrelator) pullJoin(n *plan.Join, outer plan.ColSet) *pulled {
	l := d.pull(n.Left, outer)
	if l == nil {
		return nil
	}
	r := &pulled{plan: n.Right}
	if n.Kind == plan.Inner {
		r = d.pull(n.Right, outer)
	} else if plan.Overlap(plan.Free(n.Right), outer) || n.Kind == plan.Right || n.Kind == plan.Full {
		return nil
	}
	if r == nil || l.one || r.one || len(l.post) > 0 || len(r.post) > 0 {
		return nil
	}
	p := &pulled{preds: append(slices.Clone(l.preds), r.preds...), subst: map[expr.ColID]expr.Expr{}}
	maps.Copy(p.subst, l.subst)
	maps.Copy(p.subst, r.subst)
	m := *n
	m.Left, m.Right, m.Keys = l.plan, r.plan, nil
	var on []expr.Expr
	for _, k := range n.Keys {
		k.Left, k.Right = p.apply(k.Left), p.apply(k.Right)
		if reads(k.Left, outer) || reads(k.Right, outer) {
			on = append(on, d.equality(k))
		} else {
			m.Keys = append(m.Keys, k)
		}
	}
	var own []expr.Expr
	for _, e := range append(on, p.applyAll(expr.Conjuncts(n.On))...) {
		if reads(e, outer) {
			p.preds = append(p.preds, e)
		} else {
			own = append(own, e)
		}
	}
	if n.Kind != plan.Inner && len(p.preds) > len(l.preds) {
		return nil // what decides about padding cannot move above the padding
	}
	m.On = expr.Conjunction(own)
	p.plan = &m
	return p
}

// joinPulled joins the outer rows to a pulled subquery.
func (d *decorrelator) joinPulled(a *plan.Apply, p *pulled) plan.Node {
	if p.one {
		return d.joinOne(a, p)
	}
	inner := plan.SetOf(p.plan.Columns())
	j := &plan.Join{Kind: a.Kind, Left: a.Left, Mark: a.Mark}
	var on []expr.Expr
	for _, k := range a.Args {
		k.Right = p.apply(k.Right)
		if plan.Subset(plan.ExprColumns(k.Right), inner) {
			j.Keys = append(j.Keys, k)
		} else {
			on = append(on, d.equality(k)) // the subquery's value is computed from the outer row
		}
	}
	on = append(on, p.applyAll(expr.Conjuncts(a.On))...)
	preds := append(slices.Clone(p.preds), p.post...)
	if a.Kind == plan.Mark {
		return d.joinMark(a, p, j, on, preds)
	}
	j.On = expr.Conjunction(append(on, preds...))
	j.Right = p.plan
	switch a.Kind {
	case plan.Semi, plan.Anti:
		return j
	case plan.Inner:
		return d.restore(j, a, p.subst)
	}
	if keys, ok := p.keyColumns(plan.SetOf(a.Left.Columns())); ok && a.Kind == plan.Single && d.facts.Of(p.plan).Unique(plan.SetOf(keys)) {
		j.Kind = plan.Left
	}
	// A padded row must not compute columns: SELECT (SELECT 1 FROM … no row) is NULL.
	guarded := map[expr.ColID]expr.Expr{}
	var marker *plan.Column
	for _, id := range slices.Sorted(maps.Keys(p.subst)) {
		e := p.subst[id]
		if !plan.NullWhenNull(e, inner) {
			if marker == nil {
				m := d.column("matched", types.Bool)
				marker = &m
				j.Right = &plan.Project{Input: p.plan, Items: append(pass(p.plan.Columns()), plan.Item{Expr: plan.True, Col: m})}
			}
			e = &expr.Case{Whens: []expr.When{{Cond: &expr.IsNull{Arg: marker.Ref(), Negate: true}, Then: e}}, T: e.Type()}
		}
		guarded[id] = e
	}
	return d.restore(j, a, guarded)
}

// restore gives the columns that the dependent join had.
func (d *decorrelator) restore(n plan.Node, a *plan.Apply, subst map[expr.ColID]expr.Expr) plan.Node {
	items := pass(a.Left.Columns())
	for _, c := range a.Right.Columns() {
		e, ok := subst[c.ID]
		if !ok {
			e = c.Ref()
		}
		items = append(items, plan.Item{Expr: e, Col: c})
	}
	return &plan.Project{Input: n, Items: items}
}

// joinMark keeps correlation and comparison apart: a NULL in the correlation means "not in the set", a NULL in the
// comparison means "unknown". So correlation keys are null-safe over rows that are not NULL.
func (d *decorrelator) joinMark(a *plan.Apply, p *pulled, j *plan.Join, on, preds []expr.Expr) plan.Node {
	outer := plan.SetOf(a.Left.Columns())
	right := p.plan
	for _, e := range preds {
		l, r, nullSafe, isEq := plan.Equality(e)
		inner, ok := innerSide(e, outer)
		if !isEq || !ok {
			on = append(on, &expr.Coalesce{Args: []expr.Expr{e, plan.False}, T: types.Bool})
			continue
		}
		if l == inner {
			l, r = r, l
		}
		if !nullSafe {
			right = where(right, []expr.Expr{&expr.IsNull{Arg: r, Negate: true}})
		}
		j.Keys = append(j.Keys, plan.EquiKey{Left: l, Right: r, NullSafe: true})
	}
	j.On, j.Right = expr.Conjunction(on), right
	return j
}

// joinOne joins a subquery that always has its one row: a left join, whose padding is then filled in.
func (d *decorrelator) joinOne(a *plan.Apply, p *pulled) plan.Node {
	if len(p.post) > 0 || a.On != nil {
		d.rename(a, p)
	}
	base := &plan.Join{Kind: plan.Left, Left: a.Left, Right: p.plan, On: expr.Conjunction(p.preds)}
	conds := append(slices.Clone(p.post), p.applyAll(expr.Conjuncts(a.On))...)
	var equal []expr.Expr
	for _, k := range a.Args {
		k.Right = p.apply(k.Right)
		equal = append(equal, d.equality(k))
	}
	left := a.Left.Columns()
	switch a.Kind {
	case plan.Semi:
		return exactly(where(base, append(conds, equal...)), left)
	case plan.Anti:
		cond := expr.Conjunction(append(conds, equal...))
		if cond == nil {
			cond = plan.True
		}
		not := &expr.Not{Arg: &expr.Coalesce{Args: []expr.Expr{cond, plan.False}, T: types.Bool}}
		return exactly(&plan.Filter{Input: base, Cond: not}, left)
	case plan.Mark:
		mark := expr.Conjunction(append(p.applyAll(expr.Conjuncts(a.On)), equal...))
		if mark == nil {
			mark = plan.True
		}
		if len(p.post) > 0 {
			mark = &expr.Case{Whens: []expr.When{{Cond: expr.Conjunction(p.post), Then: mark}}, Else: plan.False, T: types.Bool}
		}
		return &plan.Project{Input: base, Items: append(pass(left), plan.Item{Expr: mark, Col: a.Mark})}
	case plan.Inner:
		return d.restore(where(base, conds), a, p.subst)
	}
	subst := map[expr.ColID]expr.Expr{}
	for _, c := range a.Right.Columns() {
		e, ok := p.subst[c.ID]
		if !ok {
			e = c.Ref()
		}
		if len(conds) > 0 {
			e = &expr.Case{Whens: []expr.When{{Cond: expr.Conjunction(conds), Then: e}}, T: c.Type}
		}
		subst[c.ID] = e
	}
	return d.restore(base, a, subst)
}

// rename gives the subquery's columns that its plan makes other IDs there, because what stands above the join under
// the old IDs has other values: NULL where HAVING took the row away.
func (d *decorrelator) rename(a *plan.Apply, p *pulled) {
	result := plan.SetOf(a.Right.Columns())
	to := map[expr.ColID]expr.Expr{}
	var items []plan.Item
	for _, c := range p.plan.Columns() {
		col := c
		if result[c.ID] {
			col = d.column(c.Name, c.Type)
			to[c.ID] = col.Ref()
		}
		items = append(items, plan.Item{Expr: c.Ref(), Col: col})
	}
	if len(to) == 0 {
		return
	}
	p.plan = &plan.Project{Input: p.plan, Items: items}
	for _, es := range [][]expr.Expr{p.preds, p.post} {
		for i, e := range es {
			es[i] = expr.Substitute(e, to)
		}
	}
	for id, e := range p.subst {
		p.subst[id] = expr.Substitute(e, to)
	}
	for id, e := range to {
		if p.subst[id] == nil {
			p.subst[id] = e
		}
	}
}
