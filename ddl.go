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

// A new entry is made whole, without a lock, and then put under its name if that is still vacant. So CREATE OR REPLACE
// that fails leaves the old entry, its query may read the old entry, and of two statements that make the same name at
// the same time the second to be ready is told so.

// claim is a name that a statement wants for its entry.
type claim struct {
	name                 string
	pos                  errs.Pos
	kind                 string
	replace, ifNotExists bool
	uses                 []*entry       // what a materialized view was made of
	origin               *ConnectorSpec // of a stream over a connector
}

// vacant claims a name; exists reports that IF NOT EXISTS leaves nothing to do.
func (s *Session) vacant(n sql.Name, kind string, replace, ifNotExists bool) (c claim, exists bool, err error) {
	name, err := s.cat.Load().name(n)
	if err != nil {
		return c, false, err
	}
	c = claim{name: name, pos: n.Position(), kind: kind, replace: replace, ifNotExists: ifNotExists}
	s.mu.Lock()
	defer s.mu.Unlock()
	exists, err = s.taken(c)
	return c, exists, err
}

// taken finds out whether the claimed name may be given: exists is true when nothing is to be done, and err says when it
// cannot. The session is locked.
func (s *Session) taken(c claim) (exists bool, err error) {
	e := s.cat.Load().get(c.name)
	if c.kind == "MATERIALIZED VIEW" && s.txn != nil {
		return false, errs.E(errs.Usage, "create view", c.pos, "a materialized view cannot be created while a transaction is open").WithHint("COMMIT or ROLLBACK first")
	}
	for _, u := range c.uses {
		if s.cat.Load().get(u.name) != u {
			return false, errs.E(errs.Schema, "create view", c.pos, "another statement changed the %s %q while the materialized view %q was being made of it", strings.ToLower(u.kind()), u.name, c.name).
				WithHint("create the view again")
		}
	}
	switch {
	case e == nil:
		return false, nil
	case c.ifNotExists:
		return true, nil
	case !c.replace:
		return false, errs.E(errs.Schema, "create", c.pos, "%s %q exists already", strings.ToLower(e.kind()), e.name).WithHint("use CREATE OR REPLACE, or drop it first")
	case e.kind() != c.kind:
		return false, errs.E(errs.Schema, "create", c.pos, "%q is a %s, which a %s cannot replace", e.name, strings.ToLower(e.kind()), strings.ToLower(c.kind)).
			WithHint("write DROP %s %s first", e.kind(), e.name)
	}
	return false, s.unread(e, c.pos)
}

// unread reports an error when a materialized view reads the entry. The session is locked.
func (s *Session) unread(e *entry, pos errs.Pos) error {
	for _, v := range s.views {
		if e.mat != v && v.reads(e) {
			return errs.E(errs.Schema, "drop", pos, "%s %q is read by the materialized view %q", strings.ToLower(e.kind()), e.name, v.name).
				WithHint("drop the view first")
		}
	}
	return nil
}

// install puts an entry under the claimed name.
func (s *Session) install(c claim, e *entry) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(); err != nil {
		return err
	}
	exists, err := s.taken(c)
	if err != nil || exists {
		return err
	}
	if old := s.cat.Load().get(c.name); old != nil {
		s.forget(old)
	}
	if e.mat != nil {
		s.views = append(slices.Clip(s.views), e.mat)
	}
	s.cat.Store(s.cat.Load().with(e))
	return nil
}

// installView puts a materialized view under the claimed name. From then on whoever changes a table steps the view too,
// and so it takes what it missed first, with the turn.
func (s *Session) installView(ctx context.Context, c claim, e *entry) error {
	v := e.mat
	defer func() {
		if s.cat.Load().get(c.name) != e {
			v.close()
		}
	}()
	if v.run == nil {
		inside, release, err := s.takeTurn(ctx)
		if err != nil {
			s.loaded(v)
			return err
		}
		defer release()
		defer s.loaded(v) // before the turn ends: a later change is stepped, and no longer left with the view
		if err := v.catchUp(inside); err != nil {
			return err
		}
	}
	c.uses = v.used
	return s.install(c, e)
}

// forget takes an entry out of the catalog and ends what it runs. The session is locked.
func (s *Session) forget(e *entry) {
	if e.mat != nil {
		e.mat.close()
		s.views = slices.DeleteFunc(slices.Clone(s.views), func(v *matView) bool { return v == e.mat })
	}
	s.cat.Store(s.cat.Load().without(e.name))
}

func (s *Session) createTable(ctx context.Context, cat *scopeCatalog, st *sql.CreateTable, text string) error {
	c, exists, err := s.vacant(st.Name, "TABLE", st.OrReplace, st.IfNotExists)
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
		return s.createSource(ctx, c, stream)
	}
	var t *memTable
	if st.Query != nil {
		t, err = s.tableAs(ctx, cat, st, c.name, text)
	} else {
		t, err = s.tableOf(c.name, &st.Relation, text)
	}
	if err != nil {
		return err
	}
	return s.install(c, &entry{name: c.name, temp: st.Temp, table: t, sql: sql.Print(st)})
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
	fields = types.DistinctNames(fields)
	if err := distinctNames(fields); err != nil {
		return nil, err
	}
	batches, err := q.all(ctx)
	if err != nil {
		return nil, err
	}
	t := newMemTable(name, fields)
	e := t.edit()
	for _, b := range batches {
		e.append(b.Columns(), int(b.NumRows()))
	}
	t.replace(e.chunks)
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
	if err := s.generatedTypes(r, text); err != nil {
		return nil, err
	}
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
		t.notNull[i] = c.NotNull || c.PrimaryKey
		if c.PrimaryKey || c.Unique {
			t.keys = append(t.keys, &tableKey{columns: []int{i}, primary: c.PrimaryKey})
		}
		if c.Default != nil {
			if _, err := bind.New(s.scope(), bind.Options{SQL: text}).Expr(c.Default, nil, fields[i].Type); err != nil {
				return nil, err
			}
			t.defaults[i] = c.Default
		}
	}
	for _, c := range r.Constraints {
		if c.Kind == sql.Check {
			continue
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
		t.keys = append(t.keys, &tableKey{columns: key, primary: c.Kind == sql.PrimaryKey})
	}
	return t, s.addRules(t, r, text)
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
	c, exists, err := s.vacant(st.Name, "STREAM", st.OrReplace, st.IfNotExists)
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
	return s.createSource(ctx, c, spec)
}

func (s *Session) createSink(st *sql.CreateSink) error {
	c, exists, err := s.vacant(st.Name, "SINK", st.OrReplace, st.IfNotExists)
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
	return s.install(c, &entry{name: c.name, sink: &sinkEntry{spec, fields}, sql: sql.Print(st)})
}

func (s *Session) createView(ctx context.Context, cat *scopeCatalog, st *sql.CreateView, text string) error {
	kind := "VIEW"
	if st.Materialized {
		kind = "MATERIALIZED VIEW"
	}
	c, exists, err := s.vacant(st.Name, kind, st.OrReplace, st.IfNotExists)
	if err != nil || exists {
		return err
	}
	e := &entry{name: c.name, temp: st.Temp, sql: sql.Print(st)}
	view := &bind.View{Name: c.name, Query: st.Query, SQL: text, Params: cat.params}
	for _, col := range st.Columns {
		view.Columns = append(view.Columns, col.Name)
	}
	if st.Materialized {
		if e.mat, err = s.newMatView(ctx, cat, c, view, st.Query, text); err != nil {
			return err
		}
		return s.installView(ctx, c, e)
	}
	// Binding now finds mistakes now; the plan is made again wherever the view is used.
	e.view = view
	if _, err = bind.New(cat, bind.Options{SQL: text, Params: cat.params}).Query(st.Query); err != nil {
		return err
	}
	if err := c.notOf(cat); err != nil {
		return err
	}
	return s.install(c, e)
}

// notOf refuses a view whose query names the entry that the view would replace.
func (c claim) notOf(cat *scopeCatalog) error {
	if old := cat.cat.get(c.name); old != nil && old.table == nil && slices.Contains(cat.used, old) {
		return errs.E(errs.Schema, "create view", c.pos, "the view %q would read itself", c.name)
	}
	return nil
}

func (s *Session) dropStatement(st *sql.Drop) error {
	switch st.Kind {
	case sql.DropMacro, sql.DropMacroTable:
		return s.dropMacro(st)
	case sql.DropIndex:
		return s.dropIndex(st)
	case sql.DropSequence:
		return s.dropSequence(st)
	case sql.DropSchema:
		return s.dropSchema(st)
	}
	name, err := s.cat.Load().read(st.Name)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.cat.Load().get(name)
	if e == nil {
		if st.IfExists {
			return nil
		}
		return errs.E(errs.Schema, "drop", st.Name.Position(), "no %s %q", strings.ToLower(string(st.Kind)), name).
			WithHint("%s", errs.DidYouMean(name, s.cat.Load().names()))
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
				s.forget(s.cat.Load().get(v.name))
			}
		}
	}
	if err := s.unread(e, st.Name.Position()); err != nil {
		return err
	}
	s.forget(e)
	return nil
}
