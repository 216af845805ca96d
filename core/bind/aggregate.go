package bind

import (
	"slices"
	"strings"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/sql"
	"github.com/riverbed/riverbed/core/types"
)

// aggregate binds an aggregate call. It belongs to the SELECT whose columns it reads: sum(t.a) in a subquery, where t is
// of the outer query, is one of the outer query's aggregates.
func (e *env) aggregate(x *sql.Function, name string) expr.Expr {
	if e.inAgg {
		failHint(x.Pos, "compute the inner one in a subquery", "aggregates cannot be nested: %s is inside another aggregate", name)
	}
	in := *e
	in.inAgg = true
	item := in.aggItem(x, name)
	home, at := e.block, e
	if e.block == nil || !e.block.scopeOwns(item) {
		if outer := e.outerHome(item); outer != nil {
			home = outer
			at = &env{b: e.b, block: outer, clause: outer.at}
		}
	}
	if home == nil || !at.clause.aggs {
		clause := at.clause.name
		failHint(x.Pos, havingHint(clause), "%s cannot contain the aggregate %s", clause, name)
	}
	return home.addAggregate(item)
}

func havingHint(clause string) string {
	if clause == "WHERE" {
		return "a condition on an aggregate belongs into HAVING"
	}
	return "compute it in a subquery"
}

// aggItem binds the parts of an aggregate call over the rows that it gathers.
func (e *env) aggItem(x *sql.Function, name string) plan.AggItem {
	if x.Nulls != sql.NullsUnstated {
		failUnsupported(x.Pos, "IGNORE NULLS in an aggregate")
	}
	item := plan.AggItem{Distinct: x.Distinct, Pos: x.Pos}
	order := x.OrderBy
	switch {
	case len(x.Args) == 1 && isStar(x.Args[0].Value):
		if name != "count" || x.Distinct {
			fail(x.Pos, "* is an argument of count alone")
		}
	case len(x.WithinGroup) > 0:
		item.Args, name = e.withinGroup(x, name)
		order = nil
	default:
		item.Args = e.positional(x)
	}
	if name == "count" && len(item.Args) == 0 {
		name = "count_star"
		if !isAggregate(name) {
			name = "count"
		}
	}
	for i := 1; i < len(item.Args); i++ { // what comes after the value may have to be a constant, such as [0.5, 0.1]
		item.Args[i] = expr.Fold(item.Args[i])
	}
	ts, vs := typesOf(item.Args)
	agg, sig, overload, err := fn.ResolveAggregate(name, ts, vs)
	if err != nil {
		raise(err, x.Pos)
	}
	item.Fn, item.Sig, item.Overload = agg, sig, overload
	for i := range item.Args {
		item.Args[i] = e.cast(item.Args[i], sig.Args[i], x.Pos)
	}
	if x.Filter != nil {
		item.Filter = e.bindCondition(x.Filter, "the condition of FILTER")
	}
	if agg.Ordering { // the others do not depend on the order
		item.Order = e.sortItems(order)
		if item.Distinct {
			item.Order = distinctOrder(item.Args, item.Order, order)
		}
	}
	if len(item.Args) == 0 {
		item.Distinct = false
	}
	item.Col = plan.Column{Name: strings.ToLower(name), Type: sig.Returns}
	return item
}

func isStar(x sql.Expr) bool {
	s, ok := x.(*sql.Star)
	return ok && len(s.Qualifier) == 0 && len(s.Exclude)+len(s.Replace)+len(s.Rename) == 0
}

// withinGroup turns percentile_cont(0.5) WITHIN GROUP (ORDER BY x) into quantile_cont(x, 0.5).
func (e *env) withinGroup(x *sql.Function, name string) ([]expr.Expr, string) {
	if len(x.WithinGroup) != 1 || x.WithinGroup[0].All || x.WithinGroup[0].Desc {
		failUnsupported(x.Pos, "WITHIN GROUP with more than one key, or descending")
	}
	names := map[string]string{"percentile_cont": "quantile_cont", "percentile_disc": "quantile_disc", "mode": "mode"}
	if names[name] == "" || !isAggregate(names[name]) {
		failUnsupported(x.Pos, name+" WITHIN GROUP")
	}
	return append([]expr.Expr{e.bind(x.WithinGroup[0].Expr)}, e.positional(x)...), names[name]
}

// distinctOrder completes the order of an aggregate with DISTINCT: equal arguments are one value, so the order may depend on
// nothing else, and the arguments themselves make it total.
func distinctOrder(args []expr.Expr, bound []plan.SortItem, written []sql.OrderItem) []plan.SortItem {
	for i, o := range bound {
		if !slices.ContainsFunc(args, func(a expr.Expr) bool { return expr.Equal(a, o.Expr) }) {
			failHint(written[i].Expr.Position(), "order by an argument, or leave out DISTINCT", "an aggregate with DISTINCT can be ordered by its arguments only")
		}
	}
	for _, a := range args {
		bound = append(bound, plan.SortItem{Expr: a})
	}
	return bound
}

// sortItems binds the ORDER BY of an aggregate or a window.
func (e *env) sortItems(order []sql.OrderItem) []plan.SortItem {
	var out []plan.SortItem
	for _, o := range order {
		if o.All {
			failUnsupported(o.Pos, "ORDER BY ALL here")
		}
		out = append(out, plan.SortItem{Expr: e.bind(o.Expr), Key: sortKey(o)})
	}
	return out
}

func sortKey(o sql.OrderItem) fn.SortKey {
	return fn.SortKey{Desc: o.Desc, NullsFirst: o.Nulls == sql.NullsFirst}
}

// aggExprs are all expressions of an aggregate call.
func aggExprs(a *plan.AggItem) []expr.Expr {
	out := slices.Clone(a.Args)
	if a.Filter != nil {
		out = append(out, a.Filter)
	}
	for _, o := range a.Order {
		out = append(out, o.Expr)
	}
	return out
}

// scopeOwns reports whether the aggregate reads a column of this SELECT, or none at all.
func (bl *block) scopeOwns(a plan.AggItem) bool {
	set := plan.ColSet{}
	for _, x := range aggExprs(&a) {
		expr.Columns(x, set)
	}
	if len(set) == 0 {
		return true
	}
	return plan.Overlap(set, bl.scope.ids())
}

// outerHome finds the innermost outer SELECT whose column the aggregate reads.
func (e *env) outerHome(a plan.AggItem) *block {
	set := plan.ColSet{}
	for _, x := range aggExprs(&a) {
		expr.Columns(x, set)
	}
	for s := e.scope; s != nil; s = s.parent {
		if s.block != nil && s.block != e.block && plan.Overlap(set, s.ids()) {
			return s.block
		}
	}
	return nil
}

// addAggregate gives the column of an aggregate; equal calls share one.
func (bl *block) addAggregate(item plan.AggItem) expr.Expr {
	bl.grouped = true
	for i := range bl.aggs {
		if sameAgg(&bl.aggs[i], &item) {
			return bl.aggs[i].Col.Ref()
		}
	}
	item.Col.ID = bl.b.id()
	bl.aggs = append(bl.aggs, item)
	return item.Col.Ref()
}

func sameAgg(a, b *plan.AggItem) bool {
	if a.Fn != b.Fn || a.Distinct != b.Distinct || len(a.Order) != len(b.Order) || (a.Filter == nil) != (b.Filter == nil) {
		return false
	}
	for i := range a.Order {
		if a.Order[i].Key != b.Order[i].Key {
			return false
		}
	}
	return sameList(aggExprs(a), aggExprs(b))
}

// grouping binds GROUPING(a, b): bits that tell which keys the grouping set leaves out, the first argument highest.
func grouping(e *env, x *sql.Function) expr.Expr {
	bl := e.block
	if bl == nil || !e.clause.aggs || len(bl.keys) == 0 {
		fail(x.Pos, "%s needs GROUP BY", strings.ToUpper(x.Name.Last().Name))
	}
	args := e.positional(x)
	if len(args) == 0 {
		for _, k := range bl.keys {
			args = append(args, k.expr)
		}
	}
	var out expr.Expr
	for i, a := range args {
		at := slices.IndexFunc(bl.keys, func(k groupKey) bool { return same(k.expr, a) })
		if at < 0 {
			fail(x.Args[i].Value.Position(), "the arguments of GROUPING must be expressions of GROUP BY")
		}
		bit := e.groupingBit(bl, at, len(args)-1-i, x.Pos)
		if out == nil {
			out = bit
		} else {
			out = e.call(x.Pos, "|", out, bit)
		}
	}
	return out
}

// groupingBit moves the bit of one key to its place.
func (e *env) groupingBit(bl *block, key, place int, pos errs.Pos) expr.Expr {
	long := func(n int) expr.Expr { return &expr.Lit{V: int64(n), T: types.Int64} }
	if bl.sets == nil {
		return long(0)
	}
	if bl.groupingID == nil {
		c := bl.b.column("grouping_id", types.Int64)
		bl.groupingID = &c
	}
	bit := e.call(pos, "&", e.call(pos, ">>", bl.groupingID.Ref(), long(len(bl.keys)-1-key)), long(1))
	if place == 0 {
		return bit
	}
	return e.call(pos, "<<", bit, long(place))
}
