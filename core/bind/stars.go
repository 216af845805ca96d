package bind

import (
	"regexp"
	"strings"

	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/sql"
)

func lower(s string) string { return strings.ToLower(s) }

// expandItems lists the output columns: * and COLUMNS become the columns that they stand for. Their values are bound;
// the other items wait until GROUP BY is known.
func (bl *block) expandItems() {
	for _, it := range bl.sel.Items {
		switch x := it.Expr.(type) {
		case *sql.Star:
			for _, c := range bl.star(x) {
				bl.items = append(bl.items, item{x: c.x, value: c.value, name: c.name})
			}
			continue
		case *sql.Columns:
			for _, c := range bl.columns(x) {
				if !it.Alias.IsZero() {
					c.name = it.Alias.Name
				}
				bl.items = append(bl.items, item{x: c.x, value: c.value, name: c.name, alias: it.Alias.Name})
			}
			continue
		}
		if inner := columnsInside(it.Expr); inner != nil {
			for _, c := range bl.columns(inner) {
				x := replaceColumns(it.Expr, inner, c)
				bl.items = append(bl.items, item{x: x, name: c.name, alias: it.Alias.Name})
			}
			continue
		}
		name := it.Alias.Name
		if name == "" {
			name = bl.outputName(it.Expr)
		}
		bl.items = append(bl.items, item{x: it.Expr, name: name, alias: it.Alias.Name})
	}
	if len(bl.items) == 0 {
		fail(bl.sel.Pos, "the select list is empty: every column is excluded")
	}
}

// starColumn is one column that * stands for.
type starColumn struct {
	name  string
	col   plan.Column
	table *table
	value expr.Expr
	x     sql.Expr // REPLACE (x AS name)
}

// visible lists what * shows: a column of USING once, where it stands first; hidden columns not at all.
func (bl *block) visible(only *table) []starColumn {
	var out []starColumn
	shown := map[*merged]bool{}
	for _, t := range bl.scope.tables {
		if only != nil && t != only {
			continue
		}
		for _, c := range t.cols {
			if bl.b.rowID[c.ID] {
				continue
			}
			h := hit{table: t, col: c}
			if m := bl.scope.mergedFor(c.ID); m != nil && only == nil {
				if shown[m] {
					continue
				}
				shown[m] = true
				h.value = m.value
			}
			out = append(out, starColumn{name: c.Name, col: c, table: t, value: bl.env(selectClause).refer(h, sql.Name{{At: bl.sel.At, Name: c.Name}})})
		}
	}
	return out
}

func (bl *block) star(x *sql.Star) []starColumn {
	if len(bl.scope.tables) == 0 {
		failHint(x.Pos, "add FROM, or name what you want", "* needs a FROM clause")
	}
	var only *table
	if len(x.Qualifier) > 0 {
		var q, names []string
		for _, p := range x.Qualifier {
			q = append(q, p.Name)
		}
		if only = bl.scope.tableNamed(q); only == nil {
			if out := bl.structStar(x); out != nil {
				return out
			}
			for _, t := range bl.scope.tables {
				names = append(names, t.alias)
			}
			failHint(x.Pos, candidates("tables here", x.Qualifier.Last().Name, names), "no table %q in FROM, for %s.*", x.Qualifier, x.Qualifier)
		}
	}
	cols := bl.visible(only)
	find := func(n sql.Name, what string) []int {
		var at []int
		for i, c := range cols {
			if sameName(c.col.Name, n.Last().Name) && (len(n) == 1 || sameName(c.table.alias, n[0].Name)) {
				at = append(at, i)
			}
		}
		if at == nil {
			var names []string
			for _, c := range cols {
				names = append(names, c.col.Name)
			}
			failHint(n.Position(), candidates("columns", n.Last().Name, names), "no column %q to %s", n, what)
		}
		return at
	}
	drop := map[int]bool{}
	for _, n := range x.Exclude {
		for _, i := range find(n, "exclude") {
			drop[i] = true
		}
	}
	for _, r := range x.Replace {
		for _, i := range find(sql.Name{r.Name}, "replace") {
			cols[i].x, cols[i].value, cols[i].name = r.Expr, nil, r.Name.Name
		}
	}
	for _, r := range x.Rename {
		for _, i := range find(r.From, "rename") {
			cols[i].name = r.To.Name
		}
	}
	var out []starColumn
	for i, c := range cols {
		if !drop[i] {
			out = append(out, c)
		}
	}
	return out
}

// structStar is s.*, the fields of a STRUCT column.
func (bl *block) structStar(x *sql.Star) []starColumn {
	h, used := bl.scope.lookup(x.Qualifier)
	if used == 0 {
		return nil
	}
	e := bl.env(selectClause)
	v := e.fields(e.refer(h, x.Qualifier), x.Qualifier[used:])
	var out []starColumn
	for _, f := range v.Type().Fields {
		out = append(out, starColumn{name: f.Name, col: plan.Column{Name: f.Name}, table: h.table, value: e.field(v, sql.Ident{At: x.At, Name: f.Name})})
	}
	return out
}

// columns resolves COLUMNS(*), COLUMNS('regex'), COLUMNS([names]) and COLUMNS(lambda).
func (bl *block) columns(x *sql.Columns) []starColumn {
	all := bl.visible(nil)
	var keep func(name string) bool
	switch a := x.Arg.(type) {
	case *sql.Star:
		return bl.star(a)
	case *sql.Literal:
		re, err := regexp.Compile(a.Text)
		if a.Kind != sql.LitString || err != nil {
			fail(a.Pos, "COLUMNS wants a regular expression: %q", a.Text)
		}
		keep = re.MatchString
	case *sql.List:
		keep = func(name string) bool {
			for _, n := range a.Items {
				if l, ok := n.(*sql.Literal); ok && sameName(l.Text, name) {
					return true
				}
			}
			return false
		}
	case *sql.Lambda:
		names := make([]string, len(all))
		for i, c := range all {
			names[i] = c.name
		}
		kept := bl.env(selectClause).namesWhere(a, names)
		keep = func(name string) bool { return kept[name] }
	default:
		failUnsupported(x.Pos, "COLUMNS with anything but *, a pattern or a list of names")
	}
	var out []starColumn
	for _, c := range all {
		if keep(c.name) {
			out = append(out, c)
		}
	}
	if out == nil {
		fail(x.Pos, "COLUMNS matches no column")
	}
	return out
}

// columnsInside finds COLUMNS in an expression, as in max(COLUMNS(*)).
func columnsInside(x sql.Expr) *sql.Columns {
	var found *sql.Columns
	sql.Inspect(x, func(n sql.Node) bool {
		switch n := n.(type) {
		case *sql.Query:
			return false
		case *sql.Columns:
			if found != nil {
				failUnsupported(n.Pos, "COLUMNS twice in one expression")
			}
			found = n
			return false
		}
		return true
	})
	return found
}

// replaceColumns copies the path to COLUMNS with one column in its place. It knows the places where COLUMNS is of use.
func replaceColumns(x sql.Expr, at *sql.Columns, c starColumn) sql.Expr {
	if x == sql.Expr(at) {
		if c.x != nil {
			return c.x
		}
		parts := sql.Name{{At: at.At, Name: c.col.Name}}
		if c.table != nil && c.table.alias != "" {
			parts = append(sql.Name{{At: at.At, Name: c.table.alias}}, parts...)
		}
		return &sql.ColumnRef{At: at.At, Parts: parts}
	}
	if columnsInside(x) == nil {
		return x
	}
	sub := func(y sql.Expr) sql.Expr { return replaceColumns(y, at, c) }
	switch x := x.(type) {
	case *sql.Function:
		f := *x
		f.Args = nil
		for _, a := range x.Args {
			f.Args = append(f.Args, sql.Arg{Name: a.Name, Value: sub(a.Value)})
		}
		return &f
	case *sql.Binary:
		return &sql.Binary{At: x.At, Op: x.Op, Left: sub(x.Left), Right: sub(x.Right)}
	case *sql.Unary:
		return &sql.Unary{At: x.At, Op: x.Op, X: sub(x.X)}
	case *sql.Cast:
		return &sql.Cast{At: x.At, X: sub(x.X), Type: x.Type, Try: x.Try}
	case *sql.Is:
		return &sql.Is{At: x.At, X: sub(x.X), Not: x.Not, What: x.What}
	}
	failUnsupported(at.Pos, "COLUMNS at this place of an expression")
	return nil
}
