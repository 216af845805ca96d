package bind

import (
	"slices"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/sql"
)

// block is one SELECT while it is bound. Expressions of all clauses are bound over the columns of FROM; aggregates
// and window functions become columns that do not exist yet. assemble then puts the nodes below them and rewrites
// what stands above the aggregation in terms of its keys.
type block struct {
	b     *Binder
	sel   *sql.Select
	scope *scope
	ctes  *cte
	at    clause // the clause being bound, for aggregates that belong here and stand in a subquery
	input plan.Node

	items      []item
	keys       []groupKey
	sets       [][]int
	grouped    bool
	aggs       []plan.AggItem
	groupingID *plan.Column
	time       *plan.TimeWindow
	windows    []plan.WindowItem

	unnests      []unnestCall // of the select list, above all else
	unnestsBelow []unnestCall // of GROUP BY
}

// item is one output column.
type item struct {
	x     sql.Expr  // nil when * made it
	value expr.Expr // nil until bound
	name  string
	alias string // as given with AS; only these can be referred to
	busy  bool   // being bound, to find an alias that means itself
}

// ref is where and how a column was written.
type ref struct {
	pos  errs.Pos
	name string
}

func (bl *block) env(c clause) *env {
	bl.at = c
	return &env{b: bl.b, scope: bl.scope, ctes: bl.ctes, block: bl, clause: c}
}

// selectQuery binds a SELECT with the ORDER BY and LIMIT that follow it.
func (b *Binder) selectQuery(sel *sql.Select, q *sql.Query, outer *scope, ctes *cte) plan.Node {
	bl := &block{b: b, sel: sel, ctes: ctes, scope: &scope{parent: outer}}
	bl.from()
	bl.expandItems()
	if sel.Where != nil {
		bl.input = &plan.Filter{Input: bl.input, Cond: bl.env(clause{name: "WHERE", aliases: true}).bindCondition(sel.Where, "WHERE")}
	}
	bl.groupBy()
	bl.bindItems()
	bl.groupByAll()
	having := bl.conditionOf(sel.Having, clause{name: "HAVING", aggs: true, aliases: true})
	if having != nil {
		bl.grouped = true
	}
	qualify := bl.conditionOf(sel.Qualify, clause{name: "QUALIFY", aggs: true, windows: true, aliases: true})
	on, order := bl.distinctOn(), bl.orderBy(q.OrderBy)
	return bl.assemble(having, qualify, on, order, b.limit(q, ctes))
}

func (bl *block) from() {
	if len(bl.sel.From) == 0 {
		bl.input = &plan.Values{Rows: [][]expr.Expr{{}}}
	} else {
		var tables *scope
		bl.input, tables = bl.b.from(bl.sel.From, bl.scope.parent, bl.ctes)
		bl.scope.tables, bl.scope.merged = tables.tables, tables.merged
	}
	bl.scope.block = bl
}

func (bl *block) conditionOf(x sql.Expr, c clause) expr.Expr {
	if x == nil {
		return nil
	}
	return bl.env(c).bindCondition(x, c.name)
}

var selectClause = clause{name: "SELECT", aggs: true, windows: true, aliases: true}

func (bl *block) bindItems() {
	for i := 0; i < len(bl.items); i++ {
		it := &bl.items[i]
		if it.value != nil {
			continue
		}
		if f := unnestOf(it.x); f != nil {
			more := bl.unnestItem(*it, f)
			bl.items = slices.Replace(bl.items, i, i+1, more...)
			i += len(more) - 1
			continue
		}
		it.value = bl.env(selectClause).bind(it.x)
	}
}

// alias finds a name of the select list. Clauses before SELECT bind the item where they stand; SELECT itself sees the
// items to its left.
func (e *env) alias(name sql.Ident) (expr.Expr, bool) {
	if e.block == nil || !e.clause.aliases {
		return nil, false
	}
	for i := range e.block.items {
		it := &e.block.items[i]
		if it.alias == "" || !sameName(it.alias, name.Name) || it.busy {
			continue
		}
		if it.value != nil {
			e.checkAlias(it, name)
			return it.value, true
		}
		if e.clause.name == selectClause.name {
			continue
		}
		it.busy = true
		v := e.bind(it.x)
		it.busy = false
		return v, true
	}
	return nil, false
}

// checkAlias refuses what an alias stands for where it could not stand itself.
func (e *env) checkAlias(it *item, name sql.Ident) {
	if (e.inAgg || !e.clause.aggs) && e.block.holdsAggregate(it.value) {
		fail(name.Pos, "%q stands for an aggregate, which cannot be used here", name.Name)
	}
	if (e.inAgg || e.inOver || !e.clause.windows) && e.block.holdsWindow(it.value) {
		fail(name.Pos, "%q stands for a window function, which cannot be used in %s", name.Name, e.clause.name)
	}
}

func (e *env) aliasNames() []string {
	var out []string
	if e.block != nil && e.clause.aliases {
		for _, it := range e.block.items {
			if it.alias != "" {
				out = append(out, it.alias)
			}
		}
	}
	return out
}

// yields reports whether a found column gives way to an alias of the same name: above the aggregation, a column that is
// no key cannot be meant.
func (e *env) yields(h hit) bool {
	bl := e.block
	if bl == nil || e.inAgg || !e.clause.aggs || e.clause.name == selectClause.name || !bl.grouped || h.col.Name == "" {
		return false
	}
	return !bl.isKey(h.expr())
}

func (bl *block) holdsAggregate(x expr.Expr) bool {
	for _, a := range bl.aggs {
		if reads(x, a.Col.ID) {
			return true
		}
	}
	return false
}

func (bl *block) holdsWindow(x expr.Expr) bool {
	for _, w := range bl.windows {
		if reads(x, w.Col.ID) {
			return true
		}
	}
	return false
}

func reads(x expr.Expr, id expr.ColID) bool {
	set := plan.ColSet{}
	expr.Columns(x, set)
	return set[id]
}

// assemble stacks the nodes of the block, in the order in which SQL gives meaning to its clauses.
func (bl *block) assemble(having, qualify expr.Expr, on, order []term, limit *plan.Limit) plan.Node {
	node := bl.input
	up := func(x expr.Expr) expr.Expr { return x }
	if bl.grouped {
		node, up = bl.aggregation()
		if having != nil {
			node = &plan.Filter{Input: node, Cond: up(having)}
		}
	}
	if len(bl.windows) > 0 {
		node = bl.window(node, up)
	}
	if qualify != nil {
		node = &plan.Filter{Input: node, Cond: up(qualify)}
	}
	node = bl.unnestAbove(node, up)

	var values []expr.Expr
	var names []string
	for _, it := range bl.items {
		values, names = append(values, up(it.value)), append(names, it.name)
	}
	visible := len(values)
	place := func(terms []term) []int { // where each term is in the projection
		out := make([]int, len(terms))
		for i, t := range terms {
			if t.item >= 0 {
				out[i] = t.item
				continue
			}
			v := up(t.value)
			out[i] = -1
			for j, w := range values {
				if same(v, w) {
					out[i] = j
					break
				}
			}
			if out[i] < 0 {
				out[i] = len(values)
				values, names = append(values, v), append(names, "")
			}
		}
		return out
	}
	onAt, orderAt := place(on), place(order)

	node = bl.b.project(node, values, names)
	cols := node.Columns()
	keys := make([]plan.SortItem, len(order))
	for i, t := range order {
		keys[i] = plan.SortItem{Expr: cols[orderAt[i]].Ref(), Key: t.key}
	}
	switch {
	case len(on) > 0:
		part := make([]expr.Expr, len(on))
		for i := range on {
			part[i] = cols[onAt[i]].Ref()
		}
		node = &plan.GroupTopN{Input: node, Part: part, Keys: keys, Limit: 1, Rank: "row_number"}
	case bl.sel.Distinct && len(values) > visible:
		// Ordered by something that is not shown: the first of each row's copies counts.
		part := make([]expr.Expr, visible)
		for i := range part {
			part[i] = cols[i].Ref()
		}
		node = &plan.GroupTopN{Input: node, Part: part, Keys: keys, Limit: 1, Rank: "row_number"}
	case bl.sel.Distinct:
		node = &plan.Distinct{Input: node}
	}
	return finish(node, keys, limit, visible)
}

// finish orders, cuts and drops the columns that only the order needed.
func finish(node plan.Node, keys []plan.SortItem, limit *plan.Limit, visible int) plan.Node {
	if len(keys) > 0 {
		node = &plan.Sort{Input: node, Keys: keys}
	}
	if limit != nil {
		l := *limit
		l.Input = node
		node = &l
	}
	cols := node.Columns()
	if visible == len(cols) {
		return node
	}
	p := &plan.Project{Input: node}
	for _, c := range cols[:visible] {
		p.Items = append(p.Items, plan.Item{Expr: c.Ref(), Col: c})
	}
	return p
}

// project computes columns; a plain column of the input keeps its ID.
func (b *Binder) project(node plan.Node, values []expr.Expr, names []string) plan.Node {
	free := plan.SetOf(node.Columns())
	p := &plan.Project{Input: node}
	for i, v := range values {
		c := plan.Column{Name: names[i], Type: v.Type()}
		if col, ok := v.(*expr.Col); ok && free[col.ID] {
			c.ID = col.ID
			delete(free, col.ID)
		} else {
			c.ID = b.id()
		}
		p.Items = append(p.Items, plan.Item{Expr: v, Col: c})
	}
	return p
}

// window puts the window functions over the node.
func (bl *block) window(node plan.Node, up func(expr.Expr) expr.Expr) plan.Node {
	w := &plan.Window{Input: node, Funcs: bl.windows}
	es := w.Exprs()
	for i, x := range es {
		es[i] = up(x)
	}
	return w.WithExprs(es)
}
