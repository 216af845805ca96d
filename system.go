package riverbed

import (
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/sql"
	"github.com/riverbed/riverbed/core/types"
)

// What a session knows of itself is told by table functions and by the views of information_schema, with DuckDB's names and
// columns. Each tells what is so when a statement is planned, so none can stand in what runs incrementally.

// systemTable is such a relation.
type systemTable struct {
	*ArrowTable
	name string
}

// systemRelation declares one: where it is found, its columns, and its rows.
type systemRelation struct {
	name    string // of the table function, or schema.name
	table   bool   // it is a relation, not a function
	columns string // "name TYPE, name TYPE"
	rows    func(c *scopeCatalog, args []types.Value) ([][]types.Value, error)
}

const (
	database = "memory"
)

var systemRelations = []systemRelation{
	{"duckdb_tables", false, "database_name VARCHAR, schema_name VARCHAR, table_name VARCHAR, comment VARCHAR, internal BOOLEAN, temporary BOOLEAN, has_primary_key BOOLEAN, estimated_size BIGINT, column_count BIGINT, index_count BIGINT, check_constraint_count BIGINT, sql VARCHAR", tellTables},
	{"duckdb_views", false, "database_name VARCHAR, schema_name VARCHAR, view_name VARCHAR, comment VARCHAR, internal BOOLEAN, temporary BOOLEAN, column_count BIGINT, sql VARCHAR", tellViews},
	{"duckdb_columns", false, "database_name VARCHAR, schema_name VARCHAR, table_name VARCHAR, column_name VARCHAR, column_index INTEGER, comment VARCHAR, internal BOOLEAN, column_default VARCHAR, is_nullable BOOLEAN, data_type VARCHAR, is_generated BOOLEAN, generation_expression VARCHAR", tellColumns},
	{"duckdb_settings", false, "name VARCHAR, value VARCHAR, description VARCHAR, input_type VARCHAR, scope VARCHAR", tellSettings},
	{"duckdb_functions", false, "database_name VARCHAR, schema_name VARCHAR, function_name VARCHAR, alias_of VARCHAR, function_type VARCHAR, description VARCHAR, return_type VARCHAR, parameters VARCHAR[], parameter_types VARCHAR[], varargs VARCHAR, macro_definition VARCHAR, has_side_effects BOOLEAN, internal BOOLEAN, stability VARCHAR, categories VARCHAR[]", tellFunctions},
	{"duckdb_types", false, "database_name VARCHAR, schema_name VARCHAR, type_name VARCHAR, logical_type VARCHAR, internal BOOLEAN", tellTypes},
	{"duckdb_schemas", false, "database_name VARCHAR, schema_name VARCHAR, comment VARCHAR, internal BOOLEAN", tellSchemas},
	{"duckdb_databases", false, "database_name VARCHAR, path VARCHAR, internal BOOLEAN, type VARCHAR, readonly BOOLEAN", tellDatabases},
	{"duckdb_sequences", false, "database_name VARCHAR, schema_name VARCHAR, sequence_name VARCHAR, start_value BIGINT, min_value BIGINT, max_value BIGINT, increment_by BIGINT, cycle BOOLEAN, last_value BIGINT", tellSequences},
	{"duckdb_indexes", false, "database_name VARCHAR, schema_name VARCHAR, index_name VARCHAR, table_name VARCHAR, is_unique BOOLEAN, is_primary BOOLEAN", tellIndexes},
	{"duckdb_constraints", false, "database_name VARCHAR, schema_name VARCHAR, table_name VARCHAR, constraint_type VARCHAR, constraint_text VARCHAR, constraint_column_names VARCHAR[]", tellConstraints},
	{"duckdb_variables", false, "name VARCHAR, value VARCHAR, type VARCHAR", tellVariables},
	{"pragma_table_info", false, "cid INTEGER, name VARCHAR, type VARCHAR, notnull BOOLEAN, dflt_value VARCHAR, pk BOOLEAN", tellTableInfo},
	{"pragma_show_tables", false, "name VARCHAR", tellTableNames},
	{"pragma_show_databases", false, "database_name VARCHAR", func(*scopeCatalog, []types.Value) ([][]types.Value, error) { return [][]types.Value{{database}}, nil }},
	{"pragma_database_list", false, "seq BIGINT, name VARCHAR, file VARCHAR", func(*scopeCatalog, []types.Value) ([][]types.Value, error) {
		return [][]types.Value{{int64(1), database, nil}}, nil
	}},
	{"pragma_version", false, "library_version VARCHAR, source_id VARCHAR, codename VARCHAR", func(*scopeCatalog, []types.Value) ([][]types.Value, error) {
		return [][]types.Value{{"riverbed", "", ""}}, nil
	}},
	{"information_schema.tables", true, "table_catalog VARCHAR, table_schema VARCHAR, table_name VARCHAR, table_type VARCHAR, is_insertable_into VARCHAR, is_typed VARCHAR, TABLE_COMMENT VARCHAR", tellSchemaTables},
	{"information_schema.columns", true, "table_catalog VARCHAR, table_schema VARCHAR, table_name VARCHAR, column_name VARCHAR, ordinal_position INTEGER, column_default VARCHAR, is_nullable VARCHAR, data_type VARCHAR, is_generated VARCHAR, COLUMN_COMMENT VARCHAR", tellSchemaColumns},
	{"information_schema.schemata", true, "catalog_name VARCHAR, schema_name VARCHAR, schema_owner VARCHAR", tellSchemata},
}

// system finds a system relation by name.
func (c *scopeCatalog) system(name string, table bool, args []types.Value) (*plan.Source, error) {
	for _, r := range systemRelations {
		if r.name != name || table && !r.table && !strings.HasPrefix(name, "duckdb_") || !table && r.table {
			continue
		}
		rows, err := r.rows(c, args)
		if err != nil {
			return nil, err
		}
		fields, err := declaredFields(r.columns)
		if err != nil {
			return nil, err
		}
		rel := &systemTable{arrowRows(fields, rows), name}
		return &plan.Source{Name: name, Relation: rel, Fields: fields}, nil
	}
	return nil, nil
}

// declaredFields reads "name TYPE, name TYPE".
func declaredFields(columns string) ([]types.Field, error) {
	var out []types.Field
	for part := range strings.SplitSeq(columns, ", ") {
		name, typ, _ := strings.Cut(part, " ")
		list := strings.HasSuffix(typ, "[]")
		t, err := types.ParseType(strings.TrimSuffix(typ, "[]"), nil)
		if err != nil {
			return nil, err
		}
		if list {
			t = types.ListOf(t)
		}
		out = append(out, types.Field{Name: name, Type: t})
	}
	return out, nil
}

// arrowRows is a relation of rows that are written out.
func arrowRows(fields []types.Field, rows [][]types.Value) *ArrowTable {
	return &ArrowTable{fields: fields, chunks: chunksOf([]arrow.RecordBatch{rowBatch(fields, rows)})}
}

func rowBatch(fields []types.Field, rows [][]types.Value) arrow.RecordBatch {
	cols := make([]arrow.Array, len(fields))
	for i, f := range fields {
		vals := make([]types.Value, len(rows))
		for r := range rows {
			vals[r] = rows[r][i]
		}
		cols[i] = types.ArrayOf(vals, f.Type)
	}
	return array.NewRecordBatch(types.ArrowSchema(fields), cols, int64(len(rows)))
}

// rowsQuery is a result of rows that are written out.
func rowsQuery(columns string, rows [][]types.Value) (*Query, error) {
	fields, err := declaredFields(columns)
	if err != nil {
		return nil, err
	}
	return &Query{columns: fields, fixed: []arrow.RecordBatch{rowBatch(fields, rows)}}, nil
}

// refuseSystem refuses a query over what a session knows of itself where it would have to be kept up to date.
func (q *Query) refuseSystem() error {
	for _, src := range plan.Sources(q.live.Root) {
		if t, ok := src.Relation.(*systemTable); ok {
			return errs.New(errs.Unsupported, "plan", "%s tells what is so when a statement is planned; nothing keeps it up to date", t.name).WithHint("query it in batch, or make a table of it: CREATE TABLE … AS")
		}
	}
	return nil
}

// place is the schema of an entry and its name there.
func (c *catalog) place(name string) (schema, base string) {
	if s, b, ok := strings.Cut(name, "."); ok && c.object(schemaObject, s) != nil {
		return s, b
	}
	return mainSchema, name
}

// relations are the entries that can be read, by name.
func (c *scopeCatalog) relations() []*entry {
	return c.cat.list("TABLE", "VIEW", "MATERIALIZED VIEW", "STREAM")
}

// columnsOf are an entry's columns; of a view that no longer binds there are none.
func (c *scopeCatalog) columnsOf(e *entry) []types.Field {
	if e.view == nil {
		return e.columns()
	}
	schema, base := c.cat.place(e.name)
	at := sql.Name{{Name: schema}, {Name: base}}
	q, err := c.s.planQuery(c.ctx, &scopeCatalog{s: c.s, cat: c.cat, ctx: c.ctx, reading: true}, &sql.Query{Body: everything(&sql.Table{Name: at})}, "")
	if err != nil {
		return nil
	}
	return q.columns
}

func orNull(s string) types.Value {
	if s == "" {
		return nil
	}
	return s
}

func tellTables(c *scopeCatalog, _ []types.Value) ([][]types.Value, error) {
	var rows [][]types.Value
	for _, e := range c.cat.list("TABLE", "STREAM") {
		schema, name := c.cat.place(e.name)
		indexes, checks, size, primary := int64(0), int64(0), int64(0), false
		if t := e.table; t != nil {
			checks, size = int64(len(t.checks)), t.Stats().Rows
			for _, k := range t.keys {
				primary = primary || k.primary
			}
			for _, key := range c.cat.objectNames(indexObject) {
				if ix := c.cat.object(indexObject, key).(*index); ix.table == t {
					indexes++
				}
			}
		}
		rows = append(rows, []types.Value{database, schema, name, orNull(c.cat.comment("TABLE", e.name)), false, e.temp, primary, size, int64(len(e.columns())), indexes, checks, e.sql})
	}
	return rows, nil
}

func tellViews(c *scopeCatalog, _ []types.Value) ([][]types.Value, error) {
	var rows [][]types.Value
	for _, e := range c.cat.list("VIEW", "MATERIALIZED VIEW") {
		schema, name := c.cat.place(e.name)
		rows = append(rows, []types.Value{database, schema, name, orNull(c.cat.comment("VIEW", e.name)), false, e.temp, int64(len(c.columnsOf(e))), e.sql})
	}
	return rows, nil
}

// columnFacts are what is known of a column beside its type.
type columnFacts struct {
	nullable           bool
	key, def, computed string // PRI or UNI; the default and the expression of a generated column as text
}

func (e *entry) facts(i int) columnFacts {
	f := columnFacts{nullable: true}
	t := e.table
	if t == nil {
		return f
	}
	f.nullable = !t.notNull[i]
	for _, k := range t.keys {
		switch {
		case k.index || !slices.Contains(k.columns, i):
		case k.primary:
			f.key = "PRI"
		case f.key == "":
			f.key = "UNI"
		}
	}
	if t.defaults[i] != nil {
		f.def = sql.Print(t.defaults[i])
	}
	if t.generated[i] != nil {
		f.computed = sql.Print(t.generated[i])
	}
	return f
}

func tellColumns(c *scopeCatalog, _ []types.Value) ([][]types.Value, error) {
	var rows [][]types.Value
	for _, e := range c.relations() {
		schema, name := c.cat.place(e.name)
		for i, f := range c.columnsOf(e) {
			k := e.facts(i)
			rows = append(rows, []types.Value{database, schema, name, f.Name, int64(i + 1), orNull(c.cat.comment("COLUMN", e.name+"."+f.Name)), false, orNull(k.def), k.nullable, f.Type.String(), k.computed != "", orNull(k.computed)})
		}
	}
	return rows, nil
}

func tellSettings(c *scopeCatalog, _ []types.Value) ([][]types.Value, error) {
	var rows [][]types.Value
	cfg := c.s.cfg.Load()
	for _, k := range settings {
		rows = append(rows, []types.Value{k.key, k.get(cfg), k.doc, "VARCHAR", "GLOBAL"})
	}
	for _, g := range ignoredSettings {
		rows = append(rows, []types.Value{g.name, orNull(cfg.ignored[g.name]), "accepted without effect: " + g.why, "VARCHAR", "GLOBAL"})
	}
	slices.SortFunc(rows, func(a, b []types.Value) int { return strings.Compare(a[0].(string), b[0].(string)) })
	return rows, nil
}

func tellFunctions(c *scopeCatalog, _ []types.Value) ([][]types.Value, error) {
	var rows [][]types.Value
	add := func(name, alias, kind, about, category string, args []types.Type, returns types.Type, volatile bool) {
		var params, kinds []types.Value
		for i, a := range args {
			params, kinds = append(params, "arg"+string(rune('0'+i%10))), append(kinds, a.String())
		}
		result, stability := types.Value(nil), "CONSISTENT"
		if returns.Kind != types.Invalid {
			result = returns.String()
		}
		if volatile {
			stability = "VOLATILE"
		}
		rows = append(rows, []types.Value{"system", mainSchema, name, orNull(alias), kind, about, result, params, kinds, nil, nil, volatile, true, stability, []types.Value{category}})
	}
	for _, f := range fn.All {
		for _, name := range append([]string{f.Name}, f.Aliases...) {
			alias := ""
			if name != f.Name {
				alias = f.Name
			}
			for _, o := range f.Overloads {
				add(name, alias, "scalar", f.Summary, string(f.Category), o.Args, o.Returns, f.Purity == fn.Volatile)
			}
		}
	}
	for _, f := range fn.Aggregates {
		for _, name := range append([]string{f.Name}, f.Aliases...) {
			alias := ""
			if name != f.Name {
				alias = f.Name
			}
			for _, o := range f.Overloads {
				add(name, alias, "aggregate", f.Summary, string(f.Category), o.Args, o.Returns, false)
			}
		}
	}
	for _, kind := range []objectKind{macroObject, tableMacro} {
		for _, key := range c.cat.objectNames(kind) {
			rows = append(rows, c.tellMacro(kind, key)...)
		}
	}
	return rows, nil
}

var typeNames = strings.Fields("BIGINT BLOB BOOLEAN DATE DECIMAL DOUBLE FLOAT HUGEINT INTEGER INTERVAL JSON SMALLINT TIME TIMESTAMP TIMESTAMP_MS TIMESTAMP_NS TIMESTAMP_S TIMESTAMPTZ TINYINT UBIGINT UHUGEINT UINTEGER USMALLINT UTINYINT UUID VARCHAR")

func tellTypes(*scopeCatalog, []types.Value) ([][]types.Value, error) {
	var rows [][]types.Value
	for _, name := range typeNames {
		logical := name
		if t, err := types.ParseType(name, nil); err == nil {
			logical = t.String()
		}
		rows = append(rows, []types.Value{database, mainSchema, strings.ToLower(name), logical, true})
	}
	return rows, nil
}

func tellSchemas(c *scopeCatalog, _ []types.Value) ([][]types.Value, error) {
	rows := [][]types.Value{{database, mainSchema, nil, true}}
	for _, name := range c.cat.objectNames(schemaObject) {
		rows = append(rows, []types.Value{database, name, orNull(c.cat.comment("SCHEMA", name)), false})
	}
	return rows, nil
}

func tellDatabases(*scopeCatalog, []types.Value) ([][]types.Value, error) {
	return [][]types.Value{{database, nil, false, "riverbed", false}}, nil
}

func tellSequences(c *scopeCatalog, _ []types.Value) ([][]types.Value, error) {
	var rows [][]types.Value
	for _, key := range c.cat.objectNames(sequenceObject) {
		schema, name := c.cat.place(key)
		q := c.cat.object(sequenceObject, key).(*sequence)
		var last types.Value
		if v, err := q.current(name); err == nil {
			last = v
		}
		rows = append(rows, []types.Value{database, schema, name, q.start, q.low, q.high, q.increment, q.cycle, last})
	}
	return rows, nil
}

func tellIndexes(c *scopeCatalog, _ []types.Value) ([][]types.Value, error) {
	var rows [][]types.Value
	for _, key := range c.cat.objectNames(indexObject) {
		schema, name := c.cat.place(key)
		ix := c.cat.object(indexObject, key).(*index)
		rows = append(rows, []types.Value{database, schema, name, ix.table.name, ix.key != nil, false})
	}
	return rows, nil
}

func tellConstraints(c *scopeCatalog, _ []types.Value) ([][]types.Value, error) {
	var rows [][]types.Value
	for _, e := range c.cat.list("TABLE") {
		t := e.table
		if t == nil {
			continue
		}
		schema, name := c.cat.place(e.name)
		names := func(columns []int) []types.Value {
			var out []types.Value
			for _, i := range columns {
				out = append(out, t.columns[i].Name)
			}
			return out
		}
		add := func(kind, about string, columns []int) {
			rows = append(rows, []types.Value{database, schema, name, kind, about, names(columns)})
		}
		for _, k := range t.keys {
			kind := "UNIQUE"
			if k.primary {
				kind = "PRIMARY KEY"
			}
			if !k.index {
				var list []string
				for _, i := range k.columns {
					list = append(list, t.columns[i].Name)
				}
				add(kind, kind+"("+strings.Join(list, ", ")+")", k.columns)
			}
		}
		for _, x := range t.checks {
			add("CHECK", "CHECK("+sql.Print(x)+")", t.readBy(x))
		}
		for i, solid := range t.notNull {
			if solid {
				add("NOT NULL", "NOT NULL", []int{i})
			}
		}
	}
	return rows, nil
}

func tellVariables(c *scopeCatalog, _ []types.Value) ([][]types.Value, error) {
	var rows [][]types.Value
	for name, v := range *c.s.variables.Load() {
		shown := types.Value(nil)
		if v.V != nil {
			shown = types.Format(v.V, v.T)
		}
		rows = append(rows, []types.Value{name, shown, v.T.String()})
	}
	slices.SortFunc(rows, func(a, b []types.Value) int { return strings.Compare(a[0].(string), b[0].(string)) })
	return rows, nil
}

// tellTableInfo is PRAGMA table_info('t').
func tellTableInfo(c *scopeCatalog, args []types.Value) ([][]types.Value, error) {
	name, ok := "", len(args) == 1
	if ok {
		name, ok = args[0].(string)
	}
	if !ok {
		return nil, errs.New(errs.Schema, "bind", "table_info takes the name of a table")
	}
	key, _ := c.cat.key(strings.Split(name, "."))
	e := c.cat.get(key)
	if e == nil {
		return nil, errs.New(errs.Schema, "bind", "no table %q", name).WithHint("%s", errs.DidYouMean(name, c.cat.names()))
	}
	var rows [][]types.Value
	for i, f := range c.columnsOf(e) {
		k := e.facts(i)
		rows = append(rows, []types.Value{int64(i), f.Name, f.Type.String(), !k.nullable, orNull(k.def), k.key == "PRI"})
	}
	return rows, nil
}

func tellTableNames(c *scopeCatalog, _ []types.Value) ([][]types.Value, error) {
	var rows [][]types.Value
	for _, e := range c.relations() {
		if schema, name := c.cat.place(e.name); schema == c.cat.schema {
			rows = append(rows, []types.Value{name})
		}
	}
	return rows, nil
}

func tellSchemaTables(c *scopeCatalog, _ []types.Value) ([][]types.Value, error) {
	var rows [][]types.Value
	for _, e := range c.relations() {
		schema, name := c.cat.place(e.name)
		kind, writable := "BASE TABLE", "YES"
		switch {
		case e.view != nil || e.mat != nil:
			kind, writable = "VIEW", "NO"
		case e.temp:
			kind = "LOCAL TEMPORARY"
		}
		if e.table == nil {
			writable = "NO"
		}
		rows = append(rows, []types.Value{database, schema, name, kind, writable, "NO", orNull(c.cat.comment("TABLE", e.name))})
	}
	return rows, nil
}

func tellSchemaColumns(c *scopeCatalog, _ []types.Value) ([][]types.Value, error) {
	var rows [][]types.Value
	for _, e := range c.relations() {
		schema, name := c.cat.place(e.name)
		for i, f := range c.columnsOf(e) {
			k := e.facts(i)
			nullable, computed := "YES", "NEVER"
			if !k.nullable {
				nullable = "NO"
			}
			if k.computed != "" {
				computed = "ALWAYS"
			}
			rows = append(rows, []types.Value{database, schema, name, f.Name, int64(i + 1), orNull(k.def), nullable, f.Type.String(), computed, orNull(c.cat.comment("COLUMN", e.name+"."+f.Name))})
		}
	}
	return rows, nil
}

func tellSchemata(c *scopeCatalog, _ []types.Value) ([][]types.Value, error) {
	rows := [][]types.Value{{database, mainSchema, "riverbed"}}
	for _, name := range c.cat.objectNames(schemaObject) {
		rows = append(rows, []types.Value{database, name, "riverbed"})
	}
	return rows, nil
}

// StatementRows implements bind.SessionCatalog.
func (c *scopeCatalog) StatementRows(st sql.Statement) (*plan.Source, error) {
	var q *Query
	var err error
	inner := *c
	switch st := st.(type) {
	case *sql.Describe:
		q, err = c.s.describe(c.ctx, &inner, st, "")
	case *sql.Show:
		q, err = c.s.show(c.ctx, st)
	default:
		err = errs.E(errs.Unsupported, "bind", st.Position(), "this statement cannot stand in FROM")
	}
	if err != nil {
		return nil, err
	}
	rel := &systemTable{&ArrowTable{fields: q.columns, chunks: chunksOf(q.fixed)}, "a statement in FROM"}
	return &plan.Source{Name: "statement", Relation: rel, Fields: q.columns}, nil
}
