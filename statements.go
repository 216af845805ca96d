package riverbed

import (
	"context"
	"fmt"
	"sort"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/bind"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/sql"
	"github.com/riverbed/riverbed/core/types"
)

// statement runs one statement, or plans it when it is a query.
func (s *Session) statement(ctx context.Context, st sql.Statement, text string, locals map[string]flow.Relation, last bool) (*Query, error) {
	cat := &scopeCatalog{s: s, ctx: ctx, locals: locals, reading: true}
	switch st := st.(type) {
	case *sql.Query:
		return s.planQuery(ctx, cat, st, text)
	case *sql.Explain:
		return s.explain(ctx, cat, st, text)
	case *sql.CreateTable:
		return nil, s.createTable(ctx, cat, st, text)
	case *sql.CreateStream:
		return nil, s.createStream(ctx, st)
	case *sql.CreateView:
		return nil, s.createView(ctx, cat, st, text)
	case *sql.CreateSink:
		return nil, s.createSink(ctx, st)
	case *sql.Drop:
		return nil, s.dropStatement(st)
	case *sql.Insert:
		return s.insert(ctx, cat, st, text)
	case *sql.Update:
		return s.update(ctx, cat, st, text)
	case *sql.Delete:
		return s.delete(ctx, cat, st, text)
	case *sql.Truncate:
		return s.truncate(ctx, st)
	case *sql.Copy:
		return s.copy(ctx, cat, st, text)
	case *sql.Set:
		return nil, s.set(st)
	case *sql.Reset:
		return nil, s.reset(st)
	case *sql.Show:
		return s.show(st)
	case *sql.Describe:
		return s.describe(ctx, cat, st, text)
	case *sql.Transaction:
		return nil, s.transactionStatement(ctx, st)
	}
	return nil, errs.E(errs.Unsupported, "plan", st.Position(), "%s is not supported yet", strings.ToUpper(strings.TrimPrefix(fmt.Sprintf("%T", st), "*sql.")))
}

func plainName(n sql.Name) (string, error) {
	if !qualified(identStrings(n)) {
		return "", errs.E(errs.Schema, "bind", n.Position(), "there is no schema or catalog %q", n[:len(n)-1].String()).WithHint("a session has one schema, main")
	}
	return n.Last().Name, nil
}

func (s *Session) createTable(ctx context.Context, cat *scopeCatalog, st *sql.CreateTable, text string) error {
	name, err := plainName(st.Name)
	if err != nil {
		return err
	}
	if st.IfNotExists && s.cat.get(name) != nil {
		return nil
	}
	if len(st.With) > 0 {
		spec, err := s.connectorSpec(st.With)
		if err != nil {
			return err
		}
		stream := StreamSpec{ConnectorSpec: spec}
		if err := s.streamColumns(&stream, &st.Relation); err != nil {
			return err
		}
		return s.createSource(ctx, name, stream, false, st.OrReplace)
	}
	if err := s.free(name, st.OrReplace); err != nil {
		return err
	}
	if st.Query != nil {
		return s.createTableAs(ctx, cat, st, name, text)
	}
	t, err := s.tableOf(name, &st.Relation, text)
	if err != nil {
		return err
	}
	t.temp = st.Temp
	s.cat.put(&entry{name: name, temp: st.Temp, table: t, sql: sql.Print(st)})
	return nil
}

func (s *Session) createTableAs(ctx context.Context, cat *scopeCatalog, st *sql.CreateTable, name, text string) error {
	q, err := s.planQuery(ctx, cat, st.Query, text)
	if err != nil {
		return err
	}
	batches, err := q.all(ctx)
	if err != nil {
		return err
	}
	fields := append([]types.Field{}, q.fields()...)
	for i := range fields {
		if i < len(st.Columns) {
			fields[i].Name = st.Columns[i].Name.Name
		}
		if fields[i].Type.Kind == types.Null { // as DuckDB: a column of NULLs alone is INTEGER
			fields[i].Type = types.Int32
		}
	}
	if err := distinctNames(fields); err != nil {
		return err
	}
	t := newMemTable(name, fields)
	t.temp = st.Temp
	for _, b := range batches {
		cols, err := conform(b.Columns(), fields)
		if err != nil {
			return err
		}
		t.append(cols, int(b.NumRows()))
	}
	s.cat.put(&entry{name: name, temp: st.Temp, table: t, sql: sql.Print(st)})
	return nil
}

func distinctNames(fields []types.Field) error {
	seen := map[string]bool{}
	for _, f := range fields {
		low := strings.ToLower(f.Name)
		if seen[low] {
			return errs.New(errs.Schema, "create table", "two columns are named %q", f.Name).WithHint("give one of them another name with AS")
		}
		if low == rowIDColumn || flow.Reserved(f.Name) {
			return errs.New(errs.Schema, "create table", "a column may not be named %q", f.Name)
		}
		seen[low] = true
	}
	return nil
}

// tableOf makes an empty table of a column list.
func (s *Session) tableOf(name string, r *sql.Relation, text string) (*memTable, error) {
	fields, err := s.columnFields(r.Columns)
	if err != nil {
		return nil, err
	}
	if len(fields) == 0 {
		return nil, errs.E(errs.Schema, "create table", r.Name.Position(), "table %q has no columns", name)
	}
	if err := distinctNames(fields); err != nil {
		return nil, err
	}
	t := newMemTable(name, fields)
	at := map[string]int{}
	for i, c := range r.Columns {
		at[strings.ToLower(c.Name.Name)] = i
		if c.Generated != nil || len(c.Checks) > 0 {
			return nil, errs.E(errs.Unsupported, "create table", c.Position(), "generated columns and CHECK constraints are not supported yet")
		}
		t.notNull[i] = c.NotNull || c.PrimaryKey
		if c.PrimaryKey || c.Unique {
			t.keys = append(t.keys, []int{i})
		}
		if c.Default != nil {
			e, err := bind.New(&scopeCatalog{s: s}, bind.Options{SQL: text}).Expr(c.Default, nil, fields[i].Type)
			if err != nil {
				return nil, err
			}
			t.defaults[i] = e
		}
	}
	for _, c := range r.Constraints {
		if c.Kind == sql.Check {
			return nil, errs.E(errs.Unsupported, "create table", c.Position(), "CHECK constraints are not supported yet")
		}
		var key []int
		for _, id := range c.Columns {
			i, ok := at[strings.ToLower(id.Name)]
			if !ok {
				return nil, errs.E(errs.Schema, "create table", id.Pos, "the key names no column %q", id.Name)
			}
			key = append(key, i)
			if c.Kind == sql.PrimaryKey {
				t.notNull[i] = true
			}
		}
		t.keys = append(t.keys, key)
	}
	return t, nil
}

func (s *Session) columnFields(defs []sql.ColumnDef) ([]types.Field, error) {
	fields := make([]types.Field, len(defs))
	for i, c := range defs {
		if c.Type == nil {
			return nil, errs.E(errs.Schema, "create", c.Position(), "column %q has no type", c.Name.Name)
		}
		t, err := bind.Type(c.Type)
		if err != nil {
			return nil, err
		}
		fields[i] = types.Field{Name: c.Name.Name, Type: t}
	}
	return fields, nil
}

// connectorSpec reads WITH (connector = '…', option = value, …).
func (s *Session) connectorSpec(with []sql.Option) (ConnectorSpec, error) {
	spec := ConnectorSpec{Options: map[string]string{}}
	for _, o := range with {
		v, err := s.optionValue(o)
		if err != nil {
			return spec, err
		}
		if key := strings.ToLower(o.Key); key == "connector" {
			spec.Connector = strings.ToLower(v)
		} else {
			spec.Options[key] = v
		}
	}
	if spec.Connector == "" {
		pos := errs.Pos{}
		if len(with) > 0 {
			pos = with[0].Position()
		}
		return spec, errs.E(errs.Usage, "create", pos, "WITH (…) names no connector").WithHint("write connector = 'kafka', or another of: %s", strings.Join(sourceNames(), ", "))
	}
	return spec, nil
}

// optionValue evaluates the value of an option to text.
func (s *Session) optionValue(o sql.Option) (string, error) {
	if o.Value == nil {
		return "true", nil
	}
	v, t, err := s.constant(o.Value)
	if err != nil {
		return "", err
	}
	if str, ok := v.(string); ok {
		return str, nil
	}
	if list, ok := v.([]types.Value); ok {
		return optionText(list), nil
	}
	return types.Format(v, t), nil
}

func (s *Session) streamColumns(spec *StreamSpec, r *sql.Relation) error {
	fields, err := s.columnFields(r.Columns)
	if err != nil {
		return err
	}
	for _, f := range fields {
		spec.Columns = append(spec.Columns, ColumnSpec{f.Name, f.Type.String()})
	}
	if r.Watermark != nil {
		spec.Watermark = sql.Print(r.Watermark.Expr)
		spec.EventTime = r.Watermark.Column.Name
	}
	return nil
}

func (s *Session) createStream(ctx context.Context, st *sql.CreateStream) error {
	name, err := plainName(st.Name)
	if err != nil {
		return err
	}
	if st.IfNotExists && s.cat.get(name) != nil {
		return nil
	}
	spec := StreamSpec{}
	if spec.ConnectorSpec, err = s.connectorSpec(st.With); err != nil {
		return err
	}
	if err := s.streamColumns(&spec, &st.Relation); err != nil {
		return err
	}
	return s.createSource(ctx, name, spec, true, st.OrReplace)
}

func (s *Session) createSink(_ context.Context, st *sql.CreateSink) error {
	name, err := plainName(st.Name)
	if err != nil {
		return err
	}
	if st.IfNotExists && s.cat.get(name) != nil {
		return nil
	}
	if err := s.free(name, st.OrReplace); err != nil {
		return err
	}
	spec, err := s.connectorSpec(st.With)
	if err != nil {
		return err
	}
	fields, err := s.columnFields(st.Columns)
	if err != nil {
		return err
	}
	if _, _, err := parseSink(spec); err != nil {
		return err
	}
	s.cat.put(&entry{name: name, sink: &sinkEntry{spec, fields}, sql: sql.Print(st)})
	return nil
}

func (s *Session) createView(ctx context.Context, cat *scopeCatalog, st *sql.CreateView, text string) error {
	name, err := plainName(st.Name)
	if err != nil {
		return err
	}
	if st.IfNotExists && s.cat.get(name) != nil {
		return nil
	}
	view := &bind.View{Name: name, Query: st.Query, SQL: text}
	for _, c := range st.Columns {
		view.Columns = append(view.Columns, c.Name)
	}
	// Binding now finds mistakes now; the plan is made again wherever the view is used.
	cat.reading = !st.Materialized
	if _, err := bind.New(cat, bind.Options{SQL: text}).Query(st.Query); err != nil {
		return err
	}
	if err := s.free(name, st.OrReplace); err != nil {
		return err
	}
	if st.Materialized {
		return s.createMatView(ctx, view, st, text)
	}
	s.cat.put(&entry{name: name, temp: st.Temp, view: view, sql: sql.Print(st)})
	return nil
}

func (s *Session) dropStatement(st *sql.Drop) error {
	name, err := plainName(st.Name)
	if err != nil {
		return err
	}
	e := s.cat.get(name)
	if e == nil {
		if st.IfExists {
			return nil
		}
		er := errs.E(errs.Schema, "drop", st.Name.Position(), "no %s %q", strings.ToLower(string(st.Kind)), name)
		return er.WithHint("%s", errs.DidYouMean(name, (&scopeCatalog{s: s}).Names()))
	}
	if e.kind() != string(st.Kind) {
		return errs.E(errs.Schema, "drop", st.Name.Position(), "%q is a %s", e.name, strings.ToLower(e.kind())).WithHint("write DROP %s %s", e.kind(), e.name)
	}
	return s.dropEntry(e)
}

// dropEntry removes a name, unless a materialized view reads it.
func (s *Session) dropEntry(e *entry) error {
	for _, v := range s.views {
		if e.mat != v && v.reads(e) {
			return errs.New(errs.Schema, "drop", "%s %q is read by the materialized view %q", strings.ToLower(e.kind()), e.name, v.name).WithHint("drop the view first")
		}
	}
	if e.mat != nil {
		e.mat.close()
		kept := s.views[:0:0]
		for _, v := range s.views {
			if v != e.mat {
				kept = append(kept, v)
			}
		}
		s.views = kept
	}
	s.cat.drop(e.name)
	return nil
}

func (s *Session) set(st *sql.Set) error {
	v, err := s.optionValue(sql.Option{At: st.At, Key: st.Name, Value: st.Value})
	if err != nil {
		return err
	}
	return s.setting(st.Name, v, st.Position())
}

func (s *Session) setting(name, v string, pos errs.Pos) error {
	set := findSetting(strings.ReplaceAll(name, "threads", "parallelism"))
	if set == nil {
		e := errs.As(unknownSetting(name))
		e.Pos = pos
		return e
	}
	c := *s.cfg
	if err := set.set(&c, v); err != nil {
		e := errs.As(err)
		e.Pos = pos
		return e
	}
	zone, err := loadZone(c.timeZone)
	if err != nil {
		return err
	}
	if c.memoryLimit != s.cfg.memoryLimit {
		s.memory.SetLimit(c.memoryLimit)
	}
	s.cfg, s.zone = &c, zone
	return nil
}

func (s *Session) reset(st *sql.Reset) error {
	fresh, err := newConfig(nil)
	if err != nil {
		return err
	}
	set := findSetting(st.Name)
	if set == nil {
		return unknownSetting(st.Name)
	}
	return s.setting(st.Name, currentSetting(fresh, set.key), st.Position())
}

// currentSetting prints the value of a key.
func currentSetting(c *config, key string) string {
	switch key {
	case "state_dir":
		return c.stateDir
	case "checkpoint_url":
		return c.checkpointURL
	case "checkpoint_interval_ms":
		return fmt.Sprint(c.checkpointMS)
	case "max_watermark_lag_ms":
		return fmt.Sprint(c.maxWatermarkLag)
	case "max_split_lead_ms":
		return fmt.Sprint(c.maxSplitLead)
	case "idle_timeout_ms":
		return fmt.Sprint(c.idleTimeout)
	case "parallelism":
		return fmt.Sprint(c.parallelism)
	case "memory_limit":
		return fmt.Sprint(c.memoryLimit)
	case "log_level":
		return c.logLevel
	case "telemetry":
		return fmt.Sprint(c.telemetry)
	case "kafka_brokers":
		return c.kafkaBrokers
	case "aws_region":
		return c.awsRegion
	case "timezone":
		return c.timeZone
	case "step_rows":
		return fmt.Sprint(c.stepRows)
	case "strict_retractions":
		return fmt.Sprint(c.strictRetraction)
	}
	return ""
}

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

func (s *Session) show(st *sql.Show) (*Query, error) {
	var rows [][]string
	add := func(kinds ...string) {
		for _, e := range s.cat.list(kinds...) {
			rows = append(rows, []string{e.name})
		}
	}
	switch strings.ToUpper(st.What) {
	case "TABLES":
		add("TABLE", "VIEW", "MATERIALIZED VIEW", "STREAM")
	case "STREAMS":
		add("STREAM")
	case "VIEWS":
		add("VIEW")
	case "MATERIALIZED VIEWS":
		add("MATERIALIZED VIEW")
	case "SINKS":
		add("SINK")
	case "ALL TABLES":
		for _, e := range s.cat.list("TABLE", "VIEW", "MATERIALIZED VIEW", "STREAM", "SINK") {
			rows = append(rows, []string{e.name, e.kind(), columnList(e.columns())})
		}
		return textRows([]string{"name", "kind", "columns"}, rows), nil
	case "FUNCTIONS":
		return s.showFunctions(), nil
	case "ALL":
		for _, k := range settings {
			rows = append(rows, []string{k.key, currentSetting(s.cfg, k.key), k.doc})
		}
		return textRows([]string{"name", "value", "description"}, rows), nil
	default:
		set := findSetting(st.What)
		if set == nil {
			e := errs.As(unknownSetting(st.What))
			e.Pos = st.Position()
			return nil, e
		}
		return textRows([]string{set.key}, [][]string{{currentSetting(s.cfg, set.key)}}), nil
	}
	return textRows([]string{"name"}, rows), nil
}

func columnList(fields []types.Field) string {
	parts := make([]string, len(fields))
	for i, f := range fields {
		parts[i] = f.Name + " " + f.Type.String()
	}
	return strings.Join(parts, ", ")
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
		return s.show(&sql.Show{At: st.At, What: "ALL TABLES"})
	}
	if st.Summarize {
		return nil, errs.E(errs.Unsupported, "plan", st.Position(), "SUMMARIZE is not supported yet").WithHint("DESCRIBE lists the columns")
	}
	q, err := s.planQuery(ctx, cat, st.Query, text)
	if err != nil {
		return nil, err
	}
	var rows [][]string
	for _, f := range q.fields() {
		rows = append(rows, []string{f.Name, f.Type.String(), "YES"})
	}
	return textRows([]string{"column_name", "column_type", "null"}, rows), nil
}
