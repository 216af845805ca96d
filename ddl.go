package riverbed

import (
	"context"
	"strings"

	"github.com/riverbed/riverbed/core/bind"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/sql"
	"github.com/riverbed/riverbed/core/types"
)

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

// free reports an error when a name is taken and may not be replaced.
func (s *Session) free(name string, replace bool) error {
	e := s.cat.get(name)
	if e == nil {
		return nil
	}
	if !replace {
		return errs.New(errs.Schema, "create", "%s %q exists already", strings.ToLower(e.kind()), e.name).WithHint("use CREATE OR REPLACE, or drop it first")
	}
	return s.dropEntry(e)
}
