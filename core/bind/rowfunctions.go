package bind

import (
	"slices"

	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/sql"
	"github.com/riverbed/riverbed/core/types"
)

// rowFunction finds one of the functions in FROM that compute rows from their arguments alone: it is an UNNEST of a list, so its
// arguments may be columns of the tables before it.
func rowFunction(name string) func(*env, *sql.TableFunction) (lists []expr.Expr, names []string) {
	switch name {
	case "unnest":
		return unnestRows
	case "range", "generate_series":
		return seriesRows
	case "generate_subscripts":
		return subscriptRows
	case "repeat", "repeat_row":
		return repeatRows
	case "json_each", "json_tree":
		return jsonRows
	}
	return nil
}

// rowFunction binds one. The row that it computes from is that of the tables before it: the rules put it over them.
func (b *Binder) rowFunction(t *sql.TableFunction, around *scope, ctes *cte) (plan.Node, *scope) {
	name := lower(t.Call.Name.Last().Name)
	e := &env{b: b, scope: &scope{parent: around, macro: around.expansion()}, ctes: ctes, clause: clause{name: "the arguments of " + name}}
	lists, names := rowFunction(name)(e, t)
	u := &plan.Unnest{Input: &plan.Values{Rows: [][]expr.Expr{{}}}, Pos: t.Pos}
	var fields []expr.Expr
	for i, l := range lists {
		u.Lists = append(u.Lists, plan.Item{Expr: l, Col: b.column(names[min(i, len(names)-1)], *l.Type().Elem)})
	}
	var node plan.Node = u
	if t.Ordinality {
		c := b.column("ordinality", types.Int64)
		u.Ordinality = &c
	}
	switch name {
	case "json_each", "json_tree": // one list of structs, whose fields are the columns
		row := u.Lists[0].Col.Ref()
		for _, f := range row.T.Fields {
			fields = append(fields, e.field(row, sql.Ident{At: t.At, Name: f.Name}))
		}
	case "repeat", "repeat_row": // the list counts, the arguments are the row
		args := e.repeated(t)
		fields = append(fields, args[:len(args)-1]...)
		if len(fields) == 0 {
			fail(t.Pos, "%s takes values to repeat", name)
		}
	}
	if fields != nil {
		if t.Ordinality {
			fields, names = append(fields, u.Ordinality.Ref()), append(slices.Clip(names), "ordinality")
		}
		node = b.project(node, fields, names)
	}
	tables := one(t.Alias, []string{name}, node.Columns())
	first := tables.tables[0]
	if len(first.cols)-btoi(t.Ordinality) == 1 && !t.Alias.Name.IsZero() && len(t.Alias.Columns) == 0 && fields == nil {
		first.cols[0].Name, first.function = t.Alias.Name.Name, name
	}
	return node, tables
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func unnestRows(e *env, t *sql.TableFunction) ([]expr.Expr, []string) {
	var lists []expr.Expr
	names := []string{}
	for _, a := range t.Call.Args {
		if !a.Name.IsZero() {
			failHint(a.Name.Pos, "SELECT unnest(x, recursive := true)", "unnest in FROM has no argument named %q", a.Name.Name)
		}
		refuseNested(a.Value)
		v := e.unnestable(e.bind(a.Value), t.Pos)
		if v.Type().Kind != types.List {
			failHint(t.Pos, "SELECT unnest(x) makes a column of each field", "unnest in FROM takes lists, not %s", v.Type())
		}
		lists, names = append(lists, v), append(names, "unnest")
	}
	if len(lists) == 0 {
		fail(t.Pos, "unnest takes a list")
	}
	return lists, names
}

func seriesRows(e *env, t *sql.TableFunction) ([]expr.Expr, []string) {
	name := lower(t.Call.Name.Last().Name)
	return []expr.Expr{e.call(t.Pos, name, e.positional(t.Call)...)}, []string{name}
}

func subscriptRows(e *env, t *sql.TableFunction) ([]expr.Expr, []string) {
	args := e.positional(t.Call)
	if len(args) == 0 || len(args) > 2 || len(args) == 2 && constant(args[1]) != int64(1) {
		fail(t.Pos, "generate_subscripts takes a list, and 1 for its dimension")
	}
	one := &expr.Lit{V: int64(1), T: types.Int64}
	return []expr.Expr{e.call(t.Pos, "generate_series", one, e.call(t.Pos, "len", args[0]))}, []string{"generate_subscripts"}
}

// repeated are the values of repeat(value, n) or repeat_row(values …, num_rows := n), and the number behind them.
func (e *env) repeated(t *sql.TableFunction) []expr.Expr {
	var values []expr.Expr
	var n expr.Expr
	byName := sameName(t.Call.Name.Last().Name, "repeat_row")
	for _, a := range t.Call.Args {
		switch {
		case a.Name.IsZero():
			values = append(values, e.bind(a.Value))
		case byName && sameName(a.Name.Name, "num_rows"):
			n = e.bind(a.Value)
		default:
			fail(a.Name.Pos, "%s has no argument named %q", t.Call.Name, a.Name.Name)
		}
	}
	if !byName {
		if len(values) != 2 {
			fail(t.Pos, "repeat in FROM takes a value and how often")
		}
		return values
	}
	if n == nil {
		fail(t.Pos, "repeat_row takes num_rows := n")
	}
	return append(values, n)
}

func repeatRows(e *env, t *sql.TableFunction) ([]expr.Expr, []string) {
	args := e.repeated(t)
	last := len(args) - 1
	names := make([]string, last)
	for i, a := range args[:last] {
		names[i] = "column" + string(rune('0'+i%10))
		if l, ok := a.(*expr.Lit); ok && sameName(t.Call.Name.Last().Name, "repeat") {
			if names[i] = "NULL"; l.V != nil {
				names[i] = types.Format(l.V, l.T)
			}
		}
	}
	return []expr.Expr{e.call(t.Pos, "range", e.cast(args[last], types.Int64, t.Pos))}, names
}

// jsonRows are the elements of a JSON value: json_each(value, path), json_tree(value, path).
func jsonRows(e *env, t *sql.TableFunction) ([]expr.Expr, []string) {
	name := lower(t.Call.Name.Last().Name) + "_rows"
	if _, ok := fn.Lookup(name); !ok {
		failUnsupported(t.Pos, lower(t.Call.Name.Last().Name))
	}
	list := e.call(t.Pos, name, e.positional(t.Call)...)
	var names []string
	for _, f := range list.Type().Elem.Fields {
		names = append(names, f.Name)
	}
	return []expr.Expr{list}, names
}
