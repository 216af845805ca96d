package riverbed

import (
	"context"
	"slices"
	"strings"

	"github.com/riverbed/riverbed/core/bind"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/sql"
	"github.com/riverbed/riverbed/core/types"
)

// A new entry takes the place of an old one only when it is whole: CREATE OR REPLACE that fails leaves the old one, and
// its query may read the old one.

// vacant finds out whether a new entry may take a name: old is what it replaces. exists reports that IF NOT EXISTS
// leaves nothing to do.
func (s *Session) vacant(n sql.Name, kind string, replace, ifNotExists bool) (name string, exists bool, err error) {
	name, err = plainName(n)
	if err != nil {
		return "", false, err
	}
	if ifNotExists && s.cat.get(name) != nil {
		return name, true, nil
	}
	if err := s.free(name, kind, replace); err != nil {
		e := errs.As(err)
		e.Pos = n.Position()
		return "", false, e
	}
	return name, false, nil
}

// free reports an error when a name is taken and may not be replaced by an entry of the kind.
func (s *Session) free(name, kind string, replace bool) error {
	e := s.cat.get(name)
	switch {
	case e == nil:
		return nil
	case !replace:
		return errs.New(errs.Schema, "create", "%s %q exists already", strings.ToLower(e.kind()), e.name).WithHint("use CREATE OR REPLACE, or drop it first")
	case e.kind() != kind:
		return errs.New(errs.Schema, "create", "%q is a %s, which a %s cannot replace", e.name, strings.ToLower(e.kind()), strings.ToLower(kind)).
			WithHint("write DROP %s %s first", e.kind(), e.name)
	}
	return s.unread(e)
}

// unread reports an error when a materialized view reads the entry.
func (s *Session) unread(e *entry) error {
	for _, v := range s.views {
		if e.mat != v && v.reads(e) {
			return errs.New(errs.Schema, "drop", "%s %q is read by the materialized view %q", strings.ToLower(e.kind()), e.name, v.name).
				WithHint("drop the view first")
		}
	}
	return nil
}

// install puts an entry under its name, which is vacant.
func (s *Session) install(e *entry) {
	if old := s.cat.get(e.name); old != nil {
		s.forget(old)
	}
	if e.mat != nil {
		s.views = append(s.views, e.mat)
	}
	s.cat.put(e)
}

// forget takes an entry out of the catalog and ends what it runs.
func (s *Session) forget(e *entry) {
	if e.mat != nil {
		e.mat.close()
		s.views = slices.DeleteFunc(slices.Clone(s.views), func(v *matView) bool { return v == e.mat })
	}
	s.cat.drop(e.name)
}

func (s *Session) createTable(ctx context.Context, cat *scopeCatalog, st *sql.CreateTable, text string) error {
	name, exists, err := s.vacant(st.Name, "TABLE", st.OrReplace, st.IfNotExists)
	if err != nil || exists {
		return err
	}
	if len(st.With) > 0 {
		stream := StreamSpec{}
		if stream.ConnectorSpec, err = s.connectorSpec(st.With); err != nil {
			return err
		}
		if err := s.streamColumns(&stream, &st.Relation); err != nil {
			return err
		}
		return s.createSource(ctx, name, stream, false, st.OrReplace)
	}
	var t *memTable
	if st.Query != nil {
		t, err = s.tableAs(ctx, cat, st, name, text)
	} else {
		t, err = s.tableOf(name, &st.Relation, text)
	}
	if err != nil {
		return err
	}
	s.install(&entry{name: name, temp: st.Temp, table: t, sql: sql.Print(st)})
	return nil
}

// tableAs makes a table of a query's rows.
func (s *Session) tableAs(ctx context.Context, cat *scopeCatalog, st *sql.CreateTable, name, text string) (*memTable, error) {
	q, err := s.planQuery(ctx, cat, st.Query, text)
	if err != nil {
		return nil, err
	}
	fields := slices.Clone(q.columns)
	if len(st.Columns) > len(fields) {
		return nil, errs.E(errs.Schema, "create table", st.Columns[len(fields)].Position(), "%d columns are named, but the query has %d", len(st.Columns), len(fields))
	}
	for i, c := range st.Columns {
		fields[i].Name = c.Name.Name
	}
	if err := distinctNames(fields); err != nil {
		return nil, err
	}
	batches, err := q.all(ctx)
	if err != nil {
		return nil, err
	}
	t := newMemTable(name, fields)
	for _, b := range batches {
		t.append(b.Columns(), int(b.NumRows()))
	}
	return t, nil
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
			t.keys = append(t.keys, &tableKey{columns: []int{i}})
		}
		if c.Default != nil {
			if _, err := bind.New(&scopeCatalog{s: s}, bind.Options{SQL: text}).Expr(c.Default, nil, fields[i].Type); err != nil {
				return nil, err
			}
			t.defaults[i] = c.Default
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
		t.keys = append(t.keys, &tableKey{columns: key})
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
	name, exists, err := s.vacant(st.Name, "STREAM", st.OrReplace, st.IfNotExists)
	if err != nil || exists {
		return err
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

func (s *Session) createSink(st *sql.CreateSink) error {
	name, exists, err := s.vacant(st.Name, "SINK", st.OrReplace, st.IfNotExists)
	if err != nil || exists {
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
	s.install(&entry{name: name, sink: &sinkEntry{spec, fields}, sql: sql.Print(st)})
	return nil
}

func (s *Session) createView(ctx context.Context, cat *scopeCatalog, st *sql.CreateView, text string) error {
	kind := "VIEW"
	if st.Materialized {
		kind = "MATERIALIZED VIEW"
	}
	name, exists, err := s.vacant(st.Name, kind, st.OrReplace, st.IfNotExists)
	if err != nil || exists {
		return err
	}
	e := &entry{name: name, temp: st.Temp, sql: sql.Print(st)}
	view := &bind.View{Name: name, Query: st.Query, SQL: text}
	for _, c := range st.Columns {
		view.Columns = append(view.Columns, c.Name)
	}
	if st.Materialized {
		if s.txn != nil {
			return errs.E(errs.Usage, "create view", st.Position(), "a materialized view cannot be created while a transaction is open").WithHint("COMMIT or ROLLBACK first")
		}
		e.mat, err = s.newMatView(ctx, cat, view, st.Query, text)
	} else {
		// Binding now finds mistakes now; the plan is made again wherever the view is used.
		e.view = view
		_, err = bind.New(cat, bind.Options{SQL: text}).Query(st.Query)
	}
	if err != nil {
		return err
	}
	if old := s.cat.get(name); old != nil && old.table == nil && slices.Contains(cat.used, old) {
		if e.mat != nil {
			e.mat.close()
		}
		return errs.E(errs.Schema, "create view", st.Name.Position(), "the view %q would read itself", name)
	}
	s.install(e)
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
		return errs.E(errs.Schema, "drop", st.Name.Position(), "no %s %q", strings.ToLower(string(st.Kind)), name).
			WithHint("%s", errs.DidYouMean(name, s.cat.names()))
	}
	if e.kind() != string(st.Kind) {
		return errs.E(errs.Schema, "drop", st.Name.Position(), "%q is a %s", e.name, strings.ToLower(e.kind())).WithHint("write DROP %s %s", e.kind(), e.name)
	}
	if e.mat != nil && s.txn != nil {
		return errs.E(errs.Usage, "drop", st.Position(), "a materialized view cannot be dropped while a transaction is open").WithHint("COMMIT or ROLLBACK first")
	}
	if st.Cascade && s.txn == nil {
		for _, v := range slices.Clone(s.views) {
			if v.reads(e) {
				s.forget(s.cat.get(v.name))
			}
		}
	}
	if err := s.unread(e); err != nil {
		er := errs.As(err)
		er.Pos = st.Name.Position()
		return er
	}
	s.forget(e)
	return nil
}
