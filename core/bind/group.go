package bind

import (
	"fmt"
	"slices"

	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/sql"
)

// groupKey is one key of GROUP BY over the columns of FROM.
type groupKey struct {
	expr expr.Expr
	name string
	out  plan.Column // above the aggregation
}

func (bl *block) isKey(x expr.Expr) bool {
	return slices.ContainsFunc(bl.keys, func(k groupKey) bool { return same(k.expr, x) })
}

// addKey adds a key, or finds the equal one, and returns its position.
func (bl *block) addKey(x expr.Expr, name string) int {
	for i, k := range bl.keys {
		if same(k.expr, x) {
			return i
		}
	}
	bl.keys = append(bl.keys, groupKey{expr: x, name: name})
	return len(bl.keys) - 1
}

var groupClause = clause{name: "GROUP BY", aliases: true}

// maxSets bounds the grouping sets of one GROUP BY: CUBE doubles with every expression.
const maxSets = 4096

// groupBy binds the keys and the grouping sets, whose items multiply.
func (bl *block) groupBy() {
	g := bl.sel.GroupBy
	if g == nil {
		return
	}
	bl.grouped = true
	if g.All {
		return
	}
	sets, plain := [][]int{{}}, true
	for _, it := range g.Items {
		var out [][]int
		more := bl.groupSets(it)
		if len(sets)*len(more) > maxSets {
			fail(it.Pos, "GROUP BY has more than %d grouping sets", maxSets)
		}
		for _, s := range sets {
			for _, t := range more {
				out = append(out, union(s, t))
			}
		}
		sets = out
		plain = plain && it.Kind == sql.GroupSet
	}
	if !plain {
		bl.sets = sets
	}
	bl.sessionKeys()
}

// sessionKeys tells a SESSION window the other keys, by which sessions are told apart.
func (bl *block) sessionKeys() {
	if bl.time == nil || bl.time.Kind != plan.Session {
		return
	}
	if bl.sets != nil {
		failUnsupported(bl.time.Pos, "SESSION with grouping sets")
	}
	bl.time.Keys = nil
	for _, k := range bl.keys {
		if !same(k.expr, bl.time.Start.Ref()) && !same(k.expr, bl.time.End.Ref()) {
			bl.time.Keys = append(bl.time.Keys, k.expr)
		}
	}
}

func union(a, b []int) []int {
	out := slices.Clone(a)
	for _, x := range b {
		if !slices.Contains(out, x) {
			out = append(out, x)
		}
	}
	return out
}

// groupSets lists the grouping sets of one item, as positions of keys.
func (bl *block) groupSets(g sql.GroupItem) [][]int {
	switch g.Kind {
	case sql.GroupSet:
		set := []int{}
		for _, x := range g.Exprs {
			set = union(set, bl.key(x, true))
		}
		return [][]int{set}
	case sql.GroupingSets:
		var out [][]int
		for _, s := range g.Sets {
			out = append(out, bl.groupSets(s)...)
		}
		return out
	}
	parts := make([][]int, len(g.Sets))
	for i, s := range g.Sets {
		parts[i] = bl.groupSets(s)[0]
	}
	var out [][]int
	if g.Kind == sql.Rollup {
		for n := len(parts); n >= 0; n-- {
			set := []int{}
			for _, p := range parts[:n] {
				set = union(set, p)
			}
			out = append(out, set)
		}
		return out
	}
	if len(parts) > 12 {
		fail(g.Pos, "CUBE of more than 12 expressions")
	}
	for mask := 1<<len(parts) - 1; mask >= 0; mask-- {
		set := []int{}
		for i, p := range parts {
			if mask>>(len(parts)-1-i)&1 == 1 {
				set = union(set, p)
			}
		}
		out = append(out, set)
	}
	return out
}

// key binds one expression of GROUP BY: a position in the select list, a column, an alias when there is no such column,
// a time window, or any other expression. What a name or a position stands for is not looked up again.
func (bl *block) key(x sql.Expr, names bool) []int {
	name := ""
	if names { // what a name or a position stands for is no position itself
		bl.refuseNegative(x, groupClause.name)
	}
	if l, ok := x.(*sql.Literal); ok && l.Kind == sql.LitInt && names {
		it := bl.ordinal(l, "GROUP BY")
		if it.x == nil {
			return []int{bl.addKey(it.value, it.name)}
		}
		x, name, names = it.x, it.name, false
	} else if c, ok := x.(*sql.ColumnRef); ok && len(c.Parts) == 1 {
		name = c.Parts[0].Name
		if _, used := bl.scope.lookup(c.Parts); used == 0 && names {
			for _, it := range bl.items {
				if it.x != nil && it.alias != "" && sameName(it.alias, name) {
					x, names = it.x, false
					break
				}
			}
		}
	}
	e := bl.env(groupClause)
	if f, ok := x.(*sql.Function); ok && f.Over == nil {
		if kind, _ := isTimeWindow(lower(f.Name.Last().Name)); kind != 0 {
			bl.setTime(e, f, kind)
			return []int{bl.addKey(bl.time.Start.Ref(), ""), bl.addKey(bl.time.End.Ref(), "")}
		}
	}
	if row, ok := x.(*sql.Row); ok {
		var out []int
		for _, r := range row.Items {
			out = union(out, bl.key(r, names))
		}
		return out
	}
	if name == "" {
		name = displayName(x, bl.windowSpec)
	}
	return []int{bl.addKey(e.bind(x), name)}
}

// ordinal finds an item of the select list by its number.
func (bl *block) ordinal(l *sql.Literal, where string) *item {
	n, ok := number(l, false).V.(int64)
	if !ok || n < 1 || n > int64(len(bl.items)) {
		fail(l.Pos, "%s %s is out of range: the select list has %d items", where, l.Text, len(bl.items))
	}
	return &bl.items[n-1]
}

// refuseNegative refuses -1, which can only be meant as a position, as DuckDB does.
func (bl *block) refuseNegative(x sql.Expr, where string) {
	u, ok := x.(*sql.Unary)
	if !ok {
		return
	}
	if l, negative := signed(u); l != nil && l.Kind == sql.LitInt && negative {
		fail(u.Pos, "%s -%s is out of range: the select list has %d items", where, l.Text, len(bl.items))
	}
}

// groupByAll makes every item without an aggregate a key.
func (bl *block) groupByAll() {
	if bl.sel.GroupBy == nil || !bl.sel.GroupBy.All {
		return
	}
	bl.groupUnnests()
	for _, it := range bl.items {
		if _, isConstant := it.value.(*expr.Lit); !isConstant && !bl.holdsAggregate(it.value) && !bl.holdsWindow(it.value) {
			bl.addKey(it.value, it.name)
		}
	}
	bl.sessionKeys()
}

// aggregation builds the nodes below and including the Aggregate, and returns what rewrites an expression over the
// columns of FROM into one over the groups.
func (bl *block) aggregation() (plan.Node, func(expr.Expr) expr.Expr) {
	node := bl.input
	if bl.time != nil {
		bl.time.Input = node
		node = bl.time
	}
	agg := &plan.Aggregate{Aggs: bl.aggs, Sets: bl.sets, GroupingID: bl.groupingID}
	node, inputs := bl.computeKeys(node)
	agg.Input = node
	for i, in := range inputs {
		k := &bl.keys[i]
		k.out = in
		if bl.sets != nil { // a set that leaves the key out makes it NULL: another column
			k.out.ID = bl.b.id()
		}
		agg.Keys = append(agg.Keys, plan.Item{Expr: in.Ref(), Col: k.out})
	}
	own := bl.scope.ids()
	for _, u := range bl.unnestsBelow {
		own[u.col.ID] = true
	}
	return agg, func(x expr.Expr) expr.Expr { return bl.overGroups(x, own) }
}

// computeKeys projects keys that are more than a column, beside the columns that the aggregates read.
func (bl *block) computeKeys(node plan.Node) (plan.Node, []plan.Column) {
	available := map[expr.ColID]plan.Column{}
	for _, c := range node.Columns() {
		available[c.ID] = c
	}
	used, plain := plan.ColSet{}, true
	for i := range bl.aggs {
		for _, x := range aggExprs(&bl.aggs[i]) {
			expr.Columns(x, used)
		}
	}
	out := make([]plan.Column, len(bl.keys))
	for i, k := range bl.keys {
		if c, ok := k.expr.(*expr.Col); ok {
			if col, ok := available[c.ID]; ok {
				out[i] = col
				used[c.ID] = true
				continue
			}
		}
		plain = false
		out[i] = bl.b.column(k.name, k.expr.Type())
	}
	if plain {
		return node, out
	}
	p := &plan.Project{Input: node}
	for _, c := range node.Columns() {
		if used[c.ID] {
			p.Items = append(p.Items, plan.Item{Expr: c.Ref(), Col: c})
		}
	}
	for i, k := range bl.keys {
		if _, ok := available[out[i].ID]; !ok {
			p.Items = append(p.Items, plan.Item{Expr: k.expr, Col: out[i]})
		}
	}
	return p, out
}

// overGroups replaces the keys in x by the Aggregate's columns. What then still reads a column of FROM is an error.
func (bl *block) overGroups(x expr.Expr, own plan.ColSet) expr.Expr {
	for _, k := range bl.keys {
		if same(k.expr, x) {
			return k.out.Ref()
		}
	}
	switch x := x.(type) {
	case *expr.Col:
		if own[x.ID] {
			bl.failUngrouped(x)
		}
		return x
	case *expr.Subquery:
		s := *x
		s.Args = bl.eachOverGroups(x.Args, own)
		s.Plan = mapPlan(x.Plan.(plan.Node), func(y expr.Expr) expr.Expr { return bl.overGroups(y, own) })
		s.Outer = plan.IDs(plan.Free(s.Plan.(plan.Node)))
		return &s
	}
	children := x.Children()
	if len(children) == 0 {
		return x
	}
	return x.With(bl.eachOverGroups(children, own))
}

func (bl *block) eachOverGroups(xs []expr.Expr, own plan.ColSet) []expr.Expr {
	out := make([]expr.Expr, len(xs))
	for i, x := range xs {
		out[i] = bl.overGroups(x, own)
	}
	return out
}

func (bl *block) failUngrouped(c *expr.Col) {
	r, ok := bl.b.refs[c]
	if !ok {
		r = ref{pos: bl.sel.Pos, name: c.Name}
	}
	hint := fmt.Sprintf("add it to GROUP BY, or take any of its values with any_value(%s)", r.name)
	if bl.sel.GroupBy == nil {
		hint = fmt.Sprintf("add GROUP BY %s, or take any of its values with any_value(%s)", r.name, r.name)
	}
	failHint(r.pos, hint, "column %q must be in GROUP BY or inside an aggregate", r.name)
}

// mapPlan rewrites the expressions of a plan; nodes in which nothing changes stay the same.
func mapPlan(n plan.Node, f func(expr.Expr) expr.Expr) plan.Node {
	return plan.Transform(n, func(m plan.Node) plan.Node {
		es := m.Exprs()
		changed := false
		for i, x := range es {
			if y := f(x); !same(x, y) {
				es[i], changed = y, true
			}
		}
		if !changed {
			return m
		}
		return m.WithExprs(es)
	})
}
