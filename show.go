package riverbed

import (
	"context"
	"sort"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/sql"
	"github.com/riverbed/riverbed/core/types"
)

// textRows makes a result of VARCHAR columns.
func textRows(names []string, rows [][]string) *Query {
	fields := make([]types.Field, len(names))
	cols := make([]arrow.Array, len(names))
	for c, n := range names {
		fields[c] = types.Field{Name: n, Type: types.String}
		vals := make([]types.Value, len(rows))
		for r := range rows {
			vals[r] = rows[r][c]
		}
		cols[c] = types.ArrayOf(vals, types.String)
	}
	return fixedQuery(fields, cols, len(rows))
}

func (s *Session) show(ctx context.Context, st *sql.Show) (*Query, error) {
	var rows [][]string
	add := func(kinds ...string) {
		for _, e := range s.cat.Load().list(kinds...) {
			rows = append(rows, []string{e.name})
		}
	}
	switch strings.ToUpper(st.What) {
	case "TABLES":
		return s.showTables(st)
	case "DATABASES":
		return textRows([]string{"database_name"}, [][]string{{database}}), nil
	case "SCHEMAS":
		for _, name := range append(s.cat.Load().objectNames(schemaObject), mainSchema) {
			rows = append(rows, []string{name})
		}
	case "VARIABLES":
		told, _ := tellVariables(&scopeCatalog{s: s}, nil)
		return rowsQuery("name VARCHAR, value VARCHAR, type VARCHAR", told)
	case "STREAMS":
		add("STREAM")
	case "VIEWS":
		add("VIEW")
	case "MATERIALIZED VIEWS":
		return s.showViews(ctx)
	case "SINKS":
		add("SINK")
	case "ALL TABLES":
		return s.showAllTables(ctx)
	case "FUNCTIONS":
		return s.showFunctions(), nil
	case "ALL":
		for _, k := range settings {
			rows = append(rows, []string{k.key, k.get(s.cfg.Load()), k.doc})
		}
		return textRows([]string{"name", "value", "description"}, rows), nil
	default:
		if name := splitName(st.At, st.What); s.cat.Load().hasRelation(name) { // SHOW t is DESCRIBE t
			cat := &scopeCatalog{s: s, cat: s.cat.Load(), ctx: ctx, reading: true}
			return s.describe(ctx, cat, &sql.Describe{At: st.At, Table: true, Query: &sql.Query{At: st.At, Body: everything(&sql.Table{At: st.At, Name: name})}}, "")
		}
		set := findSetting(st.What)
		if set == nil {
			return nil, unknownSettingAt(st.What, st.Position())
		}
		return textRows([]string{set.key}, [][]string{{set.get(s.cfg.Load())}}), nil
	}
	return textRows([]string{"name"}, rows), nil
}

// showViews tells of each materialized view how many steps it has taken and what its state is. Whoever steps a view has the turn.
func (s *Session) showViews(ctx context.Context) (*Query, error) {
	_, release, err := s.takeTurn(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	names := []string{"steps", "state_rows", "state_bytes", "state_touched"}
	fields := []types.Field{{Name: "name", Type: types.String}}
	for _, n := range names {
		fields = append(fields, types.Field{Name: n, Type: types.Int64})
	}
	vals := make([][]types.Value, len(fields))
	entries := s.cat.Load().list("MATERIALIZED VIEW")
	for _, e := range entries {
		st := e.mat.stats()
		for i, v := range []types.Value{e.name, st.Steps, st.StateRows, st.StateBytes, st.StateTouched} {
			vals[i] = append(vals[i], v)
		}
	}
	cols := make([]arrow.Array, len(fields))
	for i, f := range fields {
		cols[i] = types.ArrayOf(vals[i], f.Type)
	}
	return fixedQuery(fields, cols, len(entries)), nil
}

// showTables lists what can be read in a schema, the current one when none is named.
func (s *Session) showTables(st *sql.Show) (*Query, error) {
	cat := s.cat.Load()
	schema := cat.schema
	if st.In != nil {
		schema = strings.ToLower(st.In.Last().Name)
		if schema == database {
			schema = mainSchema
		}
		if schema != mainSchema && cat.object(schemaObject, schema) == nil {
			return nil, errs.E(errs.Schema, "show", st.In.Position(), "there is no schema or catalog %q", st.In.String())
		}
	}
	var rows [][]string
	for _, e := range cat.list("TABLE", "VIEW", "MATERIALIZED VIEW", "STREAM") {
		if at, name := cat.place(e.name); at == schema {
			rows = append(rows, []string{name})
		}
	}
	return textRows([]string{"name"}, rows), nil
}

// showAllTables has DuckDB's columns, and behind them what an entry is.
func (s *Session) showAllTables(ctx context.Context) (*Query, error) {
	c := &scopeCatalog{s: s, cat: s.cat.Load(), ctx: ctx, reading: true}
	var rows [][]types.Value
	for _, e := range c.cat.list("TABLE", "VIEW", "MATERIALIZED VIEW", "STREAM", "SINK") {
		schema, name := c.cat.place(e.name)
		names, kinds := []types.Value{}, []types.Value{}
		for _, f := range c.columnsOf(e) {
			names, kinds = append(names, f.Name), append(kinds, f.Type.String())
		}
		rows = append(rows, []types.Value{database, schema, name, names, kinds, e.temp, e.kind()})
	}
	return rowsQuery("database VARCHAR, schema VARCHAR, name VARCHAR, column_names VARCHAR[], column_types VARCHAR[], temporary BOOLEAN, kind VARCHAR", rows)
}

func splitName(at sql.At, name string) sql.Name {
	var out sql.Name
	for part := range strings.SplitSeq(name, ".") {
		out = append(out, sql.Ident{At: at, Name: part})
	}
	return out
}

// hasRelation reports whether a name means something that can be read.
func (c *catalog) hasRelation(n sql.Name) bool {
	key, ok := c.key(partsOf(n))
	e := c.get(key)
	return ok && e != nil && e.sink == nil
}

func (s *Session) showFunctions() *Query {
	var rows [][]string
	for _, f := range fn.All {
		rows = append(rows, []string{f.Name, "scalar", string(f.Category), f.Summary})
	}
	for _, f := range fn.Aggregates {
		rows = append(rows, []string{f.Name, "aggregate", string(f.Category), f.Summary})
	}
	sort.Slice(rows, func(i, j int) bool { return rows[i][0] < rows[j][0] })
	return textRows([]string{"name", "kind", "category", "summary"}, rows)
}

func (s *Session) describe(ctx context.Context, cat *scopeCatalog, st *sql.Describe, text string) (*Query, error) {
	if st.Query == nil {
		return s.show(ctx, &sql.Show{At: st.At, What: "ALL TABLES"})
	}
	if st.Summarize {
		return s.summarize(ctx, cat, st, text)
	}
	q, err := s.planQuery(ctx, cat, st.Query, text)
	if err != nil {
		return nil, err
	}
	e := cat.cat.described(st)
	var rows [][]types.Value
	for i, f := range q.columns {
		k := columnFacts{nullable: true}
		if e != nil && i < len(e.columns()) {
			k = e.facts(i)
		}
		nullable := "YES"
		if !k.nullable {
			nullable = "NO"
		}
		def := k.def
		if k.computed != "" {
			def = k.computed
		}
		rows = append(rows, []types.Value{f.Name, f.Type.String(), nullable, orNull(k.key), orNull(def), nil})
	}
	return rowsQuery("column_name VARCHAR, column_type VARCHAR, null VARCHAR, key VARCHAR, default VARCHAR, extra VARCHAR", rows)
}

// described is the table that DESCRIBE t means; nil for a query.
func (c *catalog) described(st *sql.Describe) *entry {
	if !st.Table {
		return nil
	}
	sel, _ := st.Query.Body.(*sql.Select)
	if sel == nil {
		return nil
	}
	t, ok := sel.From[0].(*sql.Table)
	if !ok {
		return nil
	}
	key, _ := c.key(partsOf(t.Name))
	return c.get(key)
}
