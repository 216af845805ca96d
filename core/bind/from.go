package bind

import (
	"slices"
	"strings"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/sql"
	"github.com/riverbed/riverbed/core/types"
)

// from binds the items of FROM, which commas join.
func (b *Binder) from(list []sql.TableRef, outer *scope, ctes *cte) (plan.Node, *scope) {
	node, tables := b.tableRef(list[0], outer, ctes)
	for _, t := range list[1:] {
		right, more := b.tableRef(t, &scope{tables: tables.tables, merged: tables.merged, parent: outer}, ctes)
		node, tables = b.joined(plan.Inner, node, right, tables, more, t.Position())
	}
	return node, tables
}

// maxRelations bounds a plan: each use of a common table expression or view is bound anew, so that a chain of them that
// use the one before twice doubles at each step.
const maxRelations = 20_000

// tableRef binds one item of FROM. around is what a LATERAL item sees: the items before it, and the outer queries.
func (b *Binder) tableRef(t sql.TableRef, around *scope, ctes *cte) (plan.Node, *scope) {
	if b.size++; b.size > maxRelations {
		failHint(t.Position(), "store an intermediate result in a table or a materialized view", "the query reads more than %d relations once its common table expressions and views are written out", maxRelations)
	}
	switch t := t.(type) {
	case *sql.Table:
		return b.named(t, ctes)
	case *sql.FileTable:
		src, err := b.cat.ResolveFile(t.Path)
		if err != nil {
			raise(err, t.Pos)
		}
		return b.scan(src, t.Alias, []string{fileTableName(t.Path)}, t.Pos)
	case *sql.TableFunction:
		return b.tableFunction(t, around, ctes)
	case *sql.WindowTable:
		return b.windowTable(t, around, ctes)
	case *sql.StatementTable:
		return b.statementTable(t)
	case *sql.SubqueryTable:
		node := b.subquery(t.Query, around, ctes)
		return node, one(t.Alias, []string{"unnamed_subquery"}, node.Columns())
	case *sql.Join:
		return b.joins(t, around, ctes)
	case *sql.MatchRecognize:
		failUnsupported(t.Pos, "MATCH_RECOGNIZE")
	}
	panic(errs.Bug("bind", "no rule for %T", t))
}

// fileTableName is the name of FROM 'dir/orders.csv': orders. The files of a pattern are called by the folder that they are in.
func fileTableName(file string) string {
	parts := strings.Split(strings.ReplaceAll(file, `\`, "/"), "/")
	for _, part := range slices.Backward(parts) {
		if name, _, _ := strings.Cut(part, "."); name != "" && !strings.ContainsAny(part, "*?[{=") {
			return name
		}
	}
	return "files"
}

// one is the scope of one relation under its alias, or under the last part of its own name.
func one(a sql.Alias, name []string, cols []plan.Column) *scope {
	t := &table{alias: name[len(name)-1], path: name}
	if !a.Name.IsZero() {
		t.alias, t.path = a.Name.Name, nil
	}
	t.cols = renamed(cols, a.Columns, t.alias)
	return &scope{tables: []*table{t}}
}

// named binds a name in FROM: a common table expression, or what the catalog knows.
func (b *Binder) named(t *sql.Table, ctes *cte) (plan.Node, *scope) {
	if t.AsOf != nil {
		failUnsupported(t.AsOf.Pos, "AS OF")
	}
	var name []string
	for _, p := range t.Name {
		name = append(name, p.Name)
	}
	if len(name) == 1 {
		if c := ctes.find(name[0]); c != nil {
			node, cols := b.use(c, t.Name[0])
			return node, one(t.Alias, name, cols)
		}
	}
	r, err := b.cat.Resolve(name)
	if err != nil {
		raise(err, t.Pos)
	}
	switch {
	case r == nil:
		b.failNoTable(t, ctes)
	case r.View != nil:
		return b.view(r.View, t, name)
	}
	return b.scan(r.Source, t.Alias, name, t.Pos)
}

func (b *Binder) failNoTable(t *sql.Table, ctes *cte) {
	names := b.cat.Names()
	for c := ctes; c != nil; c = c.before {
		names = append(names, c.def.Name.Name)
	}
	hint := candidates("known", t.Name.String(), names)
	if hint == "" {
		hint = "nothing is declared yet; a file is read with FROM 'path.parquet'"
	}
	failHint(t.Pos, hint, "there is no table, stream or view %q", t.Name)
}

// view binds a view's query where the view is used. Its positions belong to another text, so an error names the view.
func (b *Binder) view(v *View, t *sql.Table, name []string) (plan.Node, *scope) {
	for _, busy := range b.views {
		if sameName(busy, v.Name) {
			fail(t.Pos, "view %q reads itself", v.Name)
		}
	}
	b.views = append(b.views, v.Name)
	params, macros, text := b.params, b.macros, b.text
	b.params, b.macros, b.text = v.Params, v.Macros, v.SQL
	defer func() { b.views, b.params, b.macros, b.text = b.views[:len(b.views)-1], params, macros, text }()
	node := func() plan.Node {
		defer func() {
			if r := recover(); r != nil {
				e := errs.Recovered("bind", r).WithSQL(v.SQL)
				if !strings.HasPrefix(e.Msg, "in view ") {
					e.Msg = "in view " + v.Name + ": " + e.Msg
				}
				panic(e)
			}
		}()
		return b.query(v.Query, nil, nil)
	}()
	b.whole[node] = true
	columns := make([]sql.Ident, len(v.Columns))
	for i, c := range v.Columns {
		columns[i].Name = c
	}
	return node, one(t.Alias, name, renamed(node.Columns(), columns, v.Name))
}

// scan reads a source. The rowid of an in-memory table is hidden.
func (b *Binder) scan(src *plan.Source, alias sql.Alias, name []string, pos errs.Pos) (plan.Node, *scope) {
	s := &plan.Scan{Source: src, Pos: pos}
	for i, f := range src.Fields {
		s.Cols = append(s.Cols, b.column(f.Name, f.Type))
		s.At = append(s.At, i)
	}
	if n := len(s.Cols); src.Table && n > 0 && sameName(s.Cols[n-1].Name, RowIDColumn) {
		b.rowID[s.Cols[n-1].ID] = true
	}
	tables := one(alias, name, s.Cols)
	s.Alias = tables.tables[0].alias
	if src.Upsert == nil {
		return s, tables
	}
	n := &plan.Normalize{Input: s}
	for _, at := range src.Upsert {
		n.Key = append(n.Key, s.Cols[at].ID)
	}
	return n, tables
}

// tableFunction binds a function in FROM. Its arguments are constants.
func (b *Binder) tableFunction(t *sql.TableFunction, around *scope, ctes *cte) (plan.Node, *scope) {
	if node, tables := b.macroTable(t, around, ctes); node != nil {
		return node, tables
	}
	name := lower(t.Call.Name.Last().Name)
	e := &env{b: b, scope: &scope{macro: around.expansion()}, ctes: ctes, clause: clause{name: "the arguments of a table function"}}
	if rowFunction(name) != nil {
		if node, tables := b.constantRows(t, e); node != nil {
			return node, tables
		}
		return b.rowFunction(t, around, ctes)
	}
	if t.Ordinality {
		failUnsupported(t.Pos, "WITH ORDINALITY of "+name)
	}
	var args []types.Value
	var argTypes []types.Type
	named := map[string]types.Value{}
	for _, a := range t.Call.Args {
		l, ok := e.constantOf(e.bind(a.Value))
		if !ok {
			failUnsupported(a.Value.Position(), "an argument of "+name+" in FROM that is not a constant")
		}
		if a.Name.IsZero() {
			args, argTypes = append(args, l.V), append(argTypes, l.T)
		} else {
			named[lower(a.Name.Name)] = l.V
		}
	}
	src, err := b.cat.TableFunction(name, args, argTypes, named)
	if err != nil {
		raise(err, t.Pos)
	}
	if src == nil {
		failHint(t.Pos, candidates("table functions", name, b.cat.TableFunctions()), "there is no table function %q", name)
	}
	node, tables := b.scan(src, t.Alias, []string{name}, t.Pos)
	nameByAlias(t.Alias, name, tables.tables[0])
	return node, tables
}

// nameByAlias gives the one column of range(3) AS i the name i, as DuckDB does; i.range is the same.
func nameByAlias(a sql.Alias, function string, t *table) {
	if len(t.cols) == 1 && sameName(t.cols[0].Name, function) && !a.Name.IsZero() && len(a.Columns) == 0 {
		t.cols[0].Name, t.function = a.Name.Name, function
	}
}

// constantRows are the rows of functions whose arguments are written out: a list becomes VALUES, a series of whole numbers is
// made as it is read. Nil for all others.
func (b *Binder) constantRows(t *sql.TableFunction, e *env) (plan.Node, *scope) {
	name := lower(t.Call.Name.Last().Name)
	if t.Ordinality || !constantArgs(t.Call) {
		return nil, nil
	}
	if name == "unnest" {
		var list *sql.List
		if len(t.Call.Args) == 1 {
			list, _ = t.Call.Args[0].Value.(*sql.List)
		}
		if list == nil || len(list.Items) == 0 {
			return nil, nil
		}
		items, typ := e.branches(e.bindAll(list.Items), list.Pos, "the list")
		if typ.Kind == types.Null {
			return nil, nil
		}
		v := &plan.Values{Cols: []plan.Column{b.column("unnest", typ)}}
		for _, x := range items {
			v.Rows = append(v.Rows, []expr.Expr{x})
		}
		tables := one(t.Alias, []string{"unnest"}, v.Cols)
		nameByAlias(t.Alias, "unnest", tables.tables[0])
		return v, tables
	}
	if name != "range" && name != "generate_series" {
		return nil, nil
	}
	var args []types.Value
	var argTypes []types.Type
	for _, a := range e.positional(t.Call) {
		l, ok := e.constantOf(a)
		if !ok || !l.T.IsInteger() {
			return nil, nil
		}
		if _, whole := l.V.(int64); !whole {
			return nil, nil
		}
		args, argTypes = append(args, l.V), append(argTypes, l.T)
	}
	src, err := b.cat.TableFunction(name, args, argTypes, nil)
	if err != nil {
		raise(err, t.Pos)
	}
	if src == nil {
		return nil, nil
	}
	node, tables := b.scan(src, t.Alias, []string{name}, t.Pos)
	nameByAlias(t.Alias, name, tables.tables[0])
	return node, tables
}

// constantArgs reports whether no argument reads a column or a query.
func constantArgs(f *sql.Function) bool {
	constant := true
	for _, a := range f.Args {
		sql.Inspect(a.Value, func(n sql.Node) bool {
			switch n.(type) {
			case *sql.ColumnRef, *sql.Query, *sql.Param:
				constant = false
			}
			return constant
		})
	}
	return constant
}

// windowTable binds TUMBLE(t, ts, size) in FROM: the table's columns and window_start, window_end.
func (b *Binder) windowTable(t *sql.WindowTable, around *scope, ctes *cte) (plan.Node, *scope) {
	node, in := b.tableRef(t.Input, around, ctes)
	kind, _ := isTimeWindow(lower(t.Kind))
	e := &env{b: b, scope: &scope{tables: in.tables, merged: in.merged}, ctes: ctes, clause: clause{name: kind.String()}}
	w := e.timeWindowOf(kind, t.Pos, e.bind(t.Time), t.Args)
	if len(t.PartitionBy) > 0 && kind != plan.Session {
		failUnsupported(t.Pos, "PARTITION BY in "+kind.String())
	}
	w.Keys = e.bindAll(t.PartitionBy)
	w.Input = node
	w.Start, w.End = b.column("window_start", windowType(w.Time)), b.column("window_end", windowType(w.Time))
	name := []string{"window"}
	var cols []plan.Column
	for _, x := range in.tables {
		name = []string{x.alias}
		cols = append(cols, x.cols...)
	}
	tables := one(t.Alias, name, append(cols, w.Start, w.End))
	tables.tables[0].last = e.lastTime(w, t.Pos)
	return w, tables
}
