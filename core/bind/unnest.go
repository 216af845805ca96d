package bind

import (
	"math"
	"slices"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/sql"
	"github.com/riverbed/riverbed/core/types"
)

// unnestCall is one unnest(list) of a SELECT. Equal calls share one column.
type unnestCall struct {
	list   expr.Expr
	levels int // of lists within lists
	col    plan.Column
}

// unnestClauses are the places where unnest may stand. In GROUP BY it makes the rows that are grouped; elsewhere it
// multiplies the rows that are shown.
var unnestClauses = []string{selectClause.name, orderClause.name, "DISTINCT ON", groupClause.name}

// unnest binds unnest(list) inside an expression: the column that the block's Unnest will make.
func unnest(e *env, x *sql.Function) expr.Expr {
	v, depth := e.unnestArgs(x)
	levels, t := listLevels(v.Type(), depth)
	if levels == 0 {
		failHint(x.Pos, "write it as an item of its own in the select list", "unnest of %s makes several columns", t)
	}
	return e.unnested(v, levels, x.Pos)
}

// generateSubscripts binds generate_subscripts(list, 1): the numbers of the list's items.
func generateSubscripts(e *env, x *sql.Function) expr.Expr {
	args := e.positional(x)
	if len(args) == 0 || len(args) > 2 || len(args) == 2 && constant(args[1]) != int64(1) {
		fail(x.Pos, "generate_subscripts takes a list, and 1 for its dimension")
	}
	one := &expr.Lit{V: int64(1), T: types.Int64}
	return e.unnested(e.call(x.Pos, "generate_series", one, e.call(x.Pos, "len", args[0])), 1, x.Pos)
}

// unnestArgs binds the list of unnest, and says how many levels to take apart.
func (e *env) unnestArgs(x *sql.Function) (expr.Expr, int) {
	switch {
	case e.block == nil || !slices.Contains(unnestClauses, e.clause.name):
		failHint(x.Pos, "unnest in FROM or in a subquery", "unnest cannot stand in %s", e.clause.name)
	case e.inAgg:
		failHint(x.Pos, "unnest in a subquery and aggregate over it", "an aggregate cannot contain unnest")
	case e.inOver:
		failHint(x.Pos, "unnest in a subquery", "a window function cannot contain unnest")
	}
	var list expr.Expr
	depth := 1
	for _, a := range x.Args {
		switch {
		case a.Name.IsZero() && list == nil:
			refuseNested(a.Value)
			list = e.unnestable(e.bind(a.Value), x.Pos)
		case sameName(a.Name.Name, "recursive"):
			on, ok := constant(e.bind(a.Value)).(bool)
			if !ok {
				fail(a.Name.Pos, "recursive of unnest is true or false")
			}
			if on {
				depth = math.MaxInt
			}
		case sameName(a.Name.Name, "max_depth"):
			n, ok := constant(e.bind(a.Value)).(int64)
			if !ok || n < 1 {
				fail(a.Name.Pos, "max_depth of unnest is a whole number, at least 1")
			}
			depth = int(n)
		default:
			fail(x.Pos, "unnest takes one list, and recursive := true or max_depth := n")
		}
	}
	if list == nil {
		fail(x.Pos, "unnest takes a list")
	}
	return list, depth
}

func refuseNested(x sql.Expr) {
	sql.Inspect(x, func(n sql.Node) bool {
		if f, ok := n.(*sql.Function); ok && len(f.Name) == 1 && sameName(f.Name.Last().Name, "unnest") {
			failHint(f.Pos, "write unnest(x, recursive := true)", "unnest inside unnest")
		}
		_, isQuery := n.(*sql.Query)
		return !isQuery
	})
}

// unnestable refuses what is no list and no struct. NULL is a list without items.
func (e *env) unnestable(v expr.Expr, pos errs.Pos) expr.Expr {
	switch t := v.Type(); t.Kind {
	case types.List:
		if l := t; innermost(l).Kind == types.Null {
			return e.cast(v, withInnermost(l, types.Int32), pos)
		}
	case types.Struct:
	case types.Null:
		return &expr.Lit{T: types.ListOf(types.Int32)}
	default:
		fail(pos, "unnest takes a list, a struct or NULL, not %s", t)
	}
	return v
}

func innermost(t types.Type) types.Type {
	for t.Kind == types.List {
		t = *t.Elem
	}
	return t
}

func withInnermost(t, inner types.Type) types.Type {
	if t.Kind != types.List {
		return inner
	}
	return types.ListOf(withInnermost(*t.Elem, inner))
}

// listLevels counts the lists within lists, at most depth, and returns the type below them.
func listLevels(t types.Type, depth int) (int, types.Type) {
	n := 0
	for t.Kind == types.List && n < depth {
		t, n = *t.Elem, n+1
	}
	return n, t
}

// unnested gives the column of the items.
func (e *env) unnested(list expr.Expr, levels int, pos errs.Pos) expr.Expr {
	if e.block == nil || !slices.Contains(unnestClauses, e.clause.name) || e.inAgg || e.inOver || e.lambda != nil {
		failHint(pos, "use it in FROM or in a subquery", "what makes several rows cannot stand in %s", e.clause.name)
	}
	bl := e.block
	equal := func(c unnestCall) bool { return c.levels == levels && same(c.list, list) }
	if i := slices.IndexFunc(bl.unnestsBelow, equal); i >= 0 {
		return bl.unnestsBelow[i].col.Ref()
	}
	calls := &bl.unnests
	if e.clause.name == groupClause.name {
		calls = &bl.unnestsBelow
	} else if i := slices.IndexFunc(bl.unnests, equal); i >= 0 {
		return bl.unnests[i].col.Ref()
	}
	_, t := listLevels(list.Type(), levels)
	c := unnestCall{list, levels, bl.b.column("unnest", t)}
	*calls = append(*calls, c)
	if calls == &bl.unnestsBelow {
		bl.input = bl.b.unnestOver(bl.input, []unnestCall{c}, pos)
	}
	return c.col.Ref()
}

// unnestOver puts the Unnest of some calls over a node. Lists within lists are taken apart from the outside; the last level of
// each call stands side by side with those of the others.
func (b *Binder) unnestOver(node plan.Node, calls []unnestCall, pos errs.Pos) plan.Node {
	most := 0
	lists := make([]expr.Expr, len(calls))
	for i, c := range calls {
		lists[i], most = c.list, max(most, c.levels)
	}
	for level := most; level > 0; level-- {
		u := &plan.Unnest{Input: node, Pass: node.Columns(), Pos: pos}
		for i, c := range calls {
			if c.levels < level {
				continue
			}
			col := c.col
			if level > 1 {
				col = b.column("unnest", *lists[i].Type().Elem)
			}
			u.Lists = append(u.Lists, plan.Item{Expr: lists[i], Col: col})
			lists[i] = col.Ref()
		}
		node = u
	}
	return node
}

// unnestItem binds an item of the select list that is unnest(x): with a STRUCT at its end it becomes a column of each field.
func (bl *block) unnestItem(it item, x *sql.Function) []item {
	e := bl.env(selectClause)
	v, depth := e.unnestArgs(x)
	levels, t := listLevels(v.Type(), depth)
	if levels > 0 {
		v = e.unnested(v, levels, x.Pos)
	}
	if depth -= levels; depth == 0 || t.Kind != types.Struct {
		it.value = v
		return []item{it}
	}
	return e.fieldItems(v, depth, x.At)
}

// fieldItems are the fields of a struct as items, those of structs in it too as far as depth goes.
func (e *env) fieldItems(v expr.Expr, depth int, at sql.At) []item {
	var out []item
	for _, f := range v.Type().Fields {
		value := e.field(v, sql.Ident{At: at, Name: f.Name})
		if f.Type.Kind == types.Struct && depth > 1 {
			out = append(out, e.fieldItems(value, depth-1, at)...)
			continue
		}
		out = append(out, item{value: value, name: f.Name})
	}
	return out
}

// unnestOf returns the call that an item of the select list is, if it is unnest.
func unnestOf(x sql.Expr) *sql.Function {
	f, ok := x.(*sql.Function)
	if ok && len(f.Name) == 1 && sameName(f.Name.Last().Name, "unnest") && f.Over == nil {
		return f
	}
	return nil
}

// unnestAbove puts the Unnest of the select list over the node.
func (bl *block) unnestAbove(node plan.Node, up func(expr.Expr) expr.Expr) plan.Node {
	if len(bl.unnests) == 0 {
		return node
	}
	calls := slices.Clone(bl.unnests)
	for i := range calls {
		calls[i].list = up(calls[i].list)
	}
	return bl.b.unnestOver(node, calls, bl.sel.Pos)
}

// groupUnnests moves the calls of the select list below the grouping: with GROUP BY ALL their columns are keys.
func (bl *block) groupUnnests() {
	if len(bl.unnests) == 0 {
		return
	}
	bl.input = bl.b.unnestOver(bl.input, bl.unnests, bl.sel.Pos)
	bl.unnestsBelow, bl.unnests = append(bl.unnestsBelow, bl.unnests...), nil
}
