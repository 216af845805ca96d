package riverbed

import (
	"context"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/core/bind"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/hashtable"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/sql"
	"github.com/riverbed/riverbed/core/types"
)

// A DML statement is a query whose rows say what changes: INSERT's is the one written, UPDATE's gives the row numbers
// and the new values, DELETE's the row numbers. What it changed is a delta for the views over the table.

// tableDelta is rows that came to a table or left it.
type tableDelta struct {
	table *memTable
	rows  arrow.RecordBatch // all fields, rowid last
	sign  int64
}

// source is the table as the binder sees it: one for all scans, so that an incremental run reads the table once. The
// session is locked.
func (t *memTable) source() *plan.Source {
	if t.src == nil {
		t.src = &plan.Source{Name: t.name, Relation: t, Fields: t.fields, Keys: append(t.uniqueKeys(), []int{len(t.columns)}), Table: true}
	}
	return t.src
}

func (t *memTable) uniqueKeys() [][]int {
	var out [][]int
	for _, k := range t.keys {
		solid := true
		for _, c := range k {
			solid = solid && t.notNull[c] // UNIQUE allows several NULLs
		}
		if solid {
			out = append(out, k)
		}
	}
	return out
}

func (s *Session) target(n sql.Name) (*entry, error) {
	name, err := plainName(n)
	if err != nil {
		return nil, err
	}
	e := s.cat.get(name)
	if e == nil {
		return nil, errs.E(errs.Schema, "bind", n.Position(), "no table %q", name).WithHint("%s", errs.DidYouMean(name, (&scopeCatalog{s: s}).Names()))
	}
	return e, nil
}

func (s *Session) targetTable(n sql.Name) (*memTable, error) {
	e, err := s.target(n)
	if err != nil {
		return nil, err
	}
	if e.table == nil {
		return nil, errs.E(errs.Schema, "bind", n.Position(), "%q is a %s; only in-memory tables can be changed", e.name, strings.ToLower(e.kind()))
	}
	return e.table, nil
}

func countResult(n int64) *Query {
	f := []types.Field{{Name: "Count", Type: types.Int64}}
	return fixedQuery(f, []arrow.Array{types.ArrayOf([]types.Value{n}, types.Int64)}, 1)
}

func noReturning(items []sql.SelectItem) error {
	if len(items) > 0 {
		return errs.E(errs.Unsupported, "plan", items[0].Expr.Position(), "RETURNING is not supported yet")
	}
	return nil
}

func (s *Session) insert(ctx context.Context, cat *scopeCatalog, st *sql.Insert, text string) (*Query, error) {
	e, err := s.target(st.Table)
	if err != nil {
		return nil, err
	}
	if err := noReturning(st.Returning); err != nil {
		return nil, err
	}
	if st.With != nil && st.Query != nil && st.Query.With == nil {
		q := *st.Query
		q.With = st.With
		st.Query = &q
	}
	switch {
	case e.sink != nil:
		return s.insertIntoSink(ctx, cat, e, st, text)
	case e.table != nil:
		return s.insertIntoTable(ctx, cat, e.table, st, text)
	}
	return nil, errs.E(errs.Schema, "bind", st.Table.Position(), "%q is a %s; rows go into tables and sinks", e.name, strings.ToLower(e.kind()))
}

// insertColumns maps the query's columns to the table's: for each table column its position in the query, or -1.
func insertColumns(t *memTable, st *sql.Insert, given []types.Field) ([]int, error) {
	at := make([]int, len(t.columns))
	for i := range at {
		at[i] = -1
	}
	find := func(name string, pos errs.Pos) (int, error) {
		var names []string
		for i, f := range t.columns {
			if strings.EqualFold(f.Name, name) {
				return i, nil
			}
			names = append(names, f.Name)
		}
		return 0, errs.E(errs.Schema, "bind", pos, "table %q has no column %q", t.name, name).WithHint("%s", errs.DidYouMean(name, names))
	}
	switch {
	case st.ByName:
		for k, f := range given {
			i, err := find(f.Name, st.Position())
			if err != nil {
				return nil, err
			}
			at[i] = k
		}
	case len(st.Columns) > 0:
		if len(given) != len(st.Columns) {
			return nil, errs.E(errs.Schema, "bind", st.Position(), "the column list names %d columns, but the rows have %d values", len(st.Columns), len(given))
		}
		for k, c := range st.Columns {
			i, err := find(c.Name, c.Pos)
			if err != nil {
				return nil, err
			}
			if at[i] >= 0 {
				return nil, errs.E(errs.Schema, "bind", c.Pos, "column %q is named twice", c.Name)
			}
			at[i] = k
		}
	default:
		if len(given) != len(t.columns) {
			return nil, errs.E(errs.Schema, "bind", st.Position(), "table %q has %d columns, but the rows have %d values", t.name, len(t.columns), len(given))
		}
		for i := range at {
			at[i] = i
		}
	}
	return at, nil
}

func (s *Session) insertIntoTable(ctx context.Context, cat *scopeCatalog, t *memTable, st *sql.Insert, text string) (*Query, error) {
	var batches []arrow.RecordBatch
	var given []types.Field
	if st.Query == nil { // DEFAULT VALUES: one row of no columns
		batches = []arrow.RecordBatch{array.NewRecordBatch(arrow.NewSchema(nil, nil), nil, 1)}
		st.Columns, st.ByName = nil, true
	} else {
		q, err := s.planQuery(ctx, cat, st.Query, text)
		if err != nil {
			return nil, err
		}
		given = q.fields()
		if batches, err = q.all(ctx); err != nil {
			return nil, err
		}
	}
	at, err := insertColumns(t, st, given)
	if err != nil {
		return nil, err
	}
	before, next := t.chunks, t.next
	var deltas []tableDelta
	count := int64(0)
	for _, b := range batches {
		cols, err := s.tableColumns(t, b, given, at)
		if err != nil {
			t.restore(before, next)
			return nil, err
		}
		count += b.NumRows()
		deltas = append(deltas, tableDelta{t, t.append(cols, int(b.NumRows())), 1})
	}
	if err := t.checkKeys(); err != nil {
		t.restore(before, next)
		return nil, err
	}
	return countResult(count), s.applied(ctx, t, before, deltas)
}

// tableColumns gives a batch the table's columns: chosen, cast, defaults filled in, NOT NULL checked.
func (s *Session) tableColumns(t *memTable, b arrow.RecordBatch, given []types.Field, at []int) ([]arrow.Array, error) {
	n := int(b.NumRows())
	env := s.fnEnv(s.clock.Now())
	cols := make([]arrow.Array, len(t.columns))
	for i, f := range t.columns {
		var err error
		switch {
		case at[i] >= 0:
			cols[i], err = castColumn(env, b.Column(at[i]), given[at[i]].Type, f)
		case t.defaults[i] != nil:
			var p *expr.Program
			if p, err = expr.Compile(t.defaults[i], nil); err == nil {
				cols[i], err = p.EvalArray(env, nil, n)
			}
		default:
			cols[i] = kernels.Nulls(f.Type.Arrow(), n)
		}
		if err != nil {
			return nil, err
		}
		if t.notNull[i] && cols[i].NullN() > 0 {
			return nil, errs.New(errs.Data, "insert", "column %q of table %q is NOT NULL, but a row has NULL there", f.Name, t.name)
		}
	}
	return cols, nil
}

// castColumn converts a column to a field's type, as an assignment does.
func castColumn(env *fn.Env, a arrow.Array, from types.Type, to types.Field) (arrow.Array, error) {
	if from.Equal(to.Type) {
		return a, nil
	}
	if a.DataType().ID() == arrow.NULL {
		return kernels.Nulls(to.Type.Arrow(), a.Len()), nil
	}
	p, err := expr.Compile(expr.CastTo(&expr.Col{ID: 0, Name: to.Name, T: from}, to.Type, errs.Pos{}), map[expr.ColID]int{0: 0})
	if err != nil {
		return nil, err
	}
	out, err := p.EvalArray(env, []arrow.Array{a}, a.Len())
	if err != nil {
		e := errs.As(err)
		e.Msg = "column \"" + to.Name + "\": " + e.Msg
		return nil, e
	}
	return out, nil
}

// conform replaces columns of bare NULLs by columns of the fields' types.
func conform(cols []arrow.Array, fields []types.Field) ([]arrow.Array, error) {
	out := append([]arrow.Array{}, cols...)
	for i, c := range out {
		if c.DataType().ID() == arrow.NULL && fields[i].Type.Kind != types.Null {
			out[i] = kernels.Nulls(fields[i].Type.Arrow(), c.Len())
		}
	}
	return out, nil
}

// checkKeys finds two rows with the same key. NULLs are never equal here.
func (t *memTable) checkKeys() error {
	chunks := t.snapshot()
	for _, key := range t.keys {
		ts := make([]types.Type, len(key))
		for k, c := range key {
			ts[k] = t.columns[c].Type
		}
		seen := hashtable.NewGroups(ts)
		for _, b := range chunks {
			var sel []int32
			for r := 0; r < int(b.NumRows()); r++ {
				null := false
				for _, c := range key {
					null = null || b.Column(c).IsNull(r)
				}
				if !null {
					sel = append(sel, int32(r))
				}
			}
			cols := make([]arrow.Array, len(key))
			for k, c := range key {
				cols[k] = kernels.Take(b.Column(c), sel)
			}
			ids := make([]uint32, len(sel))
			next := uint32(seen.Len())
			seen.FindOrAdd(cols, len(sel), ids)
			for r, id := range ids {
				if id != next {
					var names, vals []string
					for k, c := range key {
						names = append(names, t.columns[c].Name)
						vals = append(vals, types.Format(types.ValueAt(cols[k], r, ts[k]), ts[k]))
					}
					return errs.New(errs.Data, "insert", "duplicate key: table %q has a row with (%s) = (%s) already", t.name, strings.Join(names, ", "), strings.Join(vals, ", "))
				}
				next++
			}
		}
	}
	return nil
}

func ref(table *sql.Table, column string) *sql.ColumnRef {
	name := table.Alias.Name
	if name.IsZero() {
		name = table.Name.Last()
	}
	return &sql.ColumnRef{At: table.At, Parts: sql.Name{name, sql.Ident{At: table.At, Name: column}}}
}

// changedRows runs the query of an UPDATE or DELETE: row numbers first, then the new values.
func (s *Session) changedRows(ctx context.Context, cat *scopeCatalog, table *sql.Table, with *sql.With, items []sql.SelectItem, from []sql.TableRef, where sql.Expr, text string) (*Query, []arrow.RecordBatch, error) {
	q := &sql.Query{At: table.At, With: with, Body: &sql.Select{
		At:    table.At,
		Items: append([]sql.SelectItem{{Expr: ref(table, rowIDColumn)}}, items...),
		From:  append([]sql.TableRef{table}, from...),
		Where: where,
	}}
	planned, err := s.planQuery(ctx, cat, q, text)
	if err != nil {
		return nil, nil, err
	}
	batches, err := planned.all(ctx)
	return planned, batches, err
}

func (s *Session) delete(ctx context.Context, cat *scopeCatalog, st *sql.Delete, text string) (*Query, error) {
	t, err := s.targetTable(st.Table.Name)
	if err != nil {
		return nil, err
	}
	if err := noReturning(st.Returning); err != nil {
		return nil, err
	}
	_, batches, err := s.changedRows(ctx, cat, st.Table, st.With, nil, st.Using, st.Where, text)
	if err != nil {
		return nil, err
	}
	ids := map[int64]bool{}
	for _, b := range batches {
		for _, id := range b.Column(0).(*array.Int64).Int64Values() {
			ids[id] = true
		}
	}
	return s.remove(ctx, t, ids)
}

func (s *Session) remove(ctx context.Context, t *memTable, ids map[int64]bool) (*Query, error) {
	before := t.chunks
	var deltas []tableDelta
	for _, b := range t.remove(ids) {
		deltas = append(deltas, tableDelta{t, b, -1})
	}
	return countResult(int64(len(ids))), s.applied(ctx, t, before, deltas)
}

func (s *Session) truncate(ctx context.Context, st *sql.Truncate) (*Query, error) {
	t, err := s.targetTable(st.Table)
	if err != nil {
		return nil, err
	}
	ids := map[int64]bool{}
	for _, b := range t.snapshot() {
		for _, id := range b.Column(len(t.columns)).(*array.Int64).Int64Values() {
			ids[id] = true
		}
	}
	return s.remove(ctx, t, ids)
}

func (s *Session) update(ctx context.Context, cat *scopeCatalog, st *sql.Update, text string) (*Query, error) {
	t, err := s.targetTable(st.Table.Name)
	if err != nil {
		return nil, err
	}
	if err := noReturning(st.Returning); err != nil {
		return nil, err
	}
	newValue := make([]sql.Expr, len(t.columns))
	for _, a := range st.Set {
		found := false
		for i, f := range t.columns {
			if strings.EqualFold(f.Name, a.Column.Name) {
				if newValue[i] != nil {
					return nil, errs.E(errs.Schema, "bind", a.Column.Pos, "column %q is set twice", a.Column.Name)
				}
				newValue[i], found = a.Value, true
			}
		}
		if !found {
			var names []string
			for _, f := range t.columns {
				names = append(names, f.Name)
			}
			return nil, errs.E(errs.Schema, "bind", a.Column.Pos, "table %q has no column %q", t.name, a.Column.Name).WithHint("%s", errs.DidYouMean(a.Column.Name, names))
		}
	}
	items := make([]sql.SelectItem, len(t.columns))
	for i, f := range t.columns {
		items[i].Expr = newValue[i]
		if newValue[i] == nil {
			items[i].Expr = ref(st.Table, f.Name)
		}
	}
	q, batches, err := s.changedRows(ctx, cat, st.Table, st.With, items, st.From, st.Where, text)
	if err != nil {
		return nil, err
	}
	at := make([]int, len(t.columns))
	for i := range at {
		at[i] = i + 1
	}
	ids := map[int64]bool{}
	before, next := t.chunks, t.next
	var added [][]arrow.Array
	var counts []int
	for _, b := range batches {
		var sel []int32 // a row that FROM matches several times changes once, by its first match
		for r, id := range b.Column(0).(*array.Int64).Int64Values() {
			if !ids[id] {
				ids[id] = true
				sel = append(sel, int32(r))
			}
		}
		if len(sel) < int(b.NumRows()) {
			b = takeBatch(b, sel)
		}
		cols, err := s.tableColumns(t, b, q.fields(), at)
		if err != nil {
			return nil, err
		}
		added, counts = append(added, cols), append(counts, len(sel))
	}
	var deltas []tableDelta
	for _, b := range t.remove(ids) {
		deltas = append(deltas, tableDelta{t, b, -1})
	}
	for i, cols := range added {
		if counts[i] > 0 {
			deltas = append(deltas, tableDelta{t, t.append(cols, counts[i]), 1})
		}
	}
	if err := t.checkKeys(); err != nil {
		t.restore(before, next)
		return nil, err
	}
	return countResult(int64(len(ids))), s.applied(ctx, t, before, deltas)
}

// transaction gathers the changes between BEGIN and COMMIT: the views see them as one step.
type transaction struct {
	before map[*memTable][]arrow.RecordBatch
	deltas []tableDelta
}

// applied hands what a statement changed to the views, now or at COMMIT.
func (s *Session) applied(ctx context.Context, t *memTable, before []arrow.RecordBatch, deltas []tableDelta) error {
	if s.txn == nil {
		return s.stepViews(ctx, deltas)
	}
	if _, ok := s.txn.before[t]; !ok {
		s.txn.before[t] = before
	}
	s.txn.deltas = append(s.txn.deltas, deltas...)
	return nil
}

func (s *Session) transactionStatement(ctx context.Context, st *sql.Transaction) error {
	if (s.txn == nil) != (st.Kind == sql.Begin) {
		if st.Kind == sql.Begin {
			return errs.E(errs.Usage, "transaction", st.Position(), "a transaction is open already").WithHint("COMMIT or ROLLBACK it first")
		}
		return errs.E(errs.Usage, "transaction", st.Position(), "no transaction is open")
	}
	switch st.Kind {
	case sql.Begin:
		s.txn = &transaction{before: map[*memTable][]arrow.RecordBatch{}}
	case sql.Commit:
		txn := s.txn
		s.txn = nil
		return s.stepViews(ctx, txn.deltas)
	case sql.Rollback:
		for t, chunks := range s.txn.before {
			t.restore(chunks, t.next)
		}
		s.txn = nil
	}
	return nil
}

// constant evaluates an expression that reads no column.
func (s *Session) constant(x sql.Expr) (types.Value, types.Type, error) {
	e, err := bind.New(&scopeCatalog{s: s}, bind.Options{}).Expr(x, nil, types.Type{})
	if err != nil {
		return nil, types.Type{}, err
	}
	p, err := expr.Compile(e, nil)
	if err != nil {
		return nil, types.Type{}, err
	}
	a, err := p.EvalArray(s.fnEnv(s.clock.Now()), nil, 1)
	if err != nil {
		return nil, types.Type{}, err
	}
	return types.ValueAt(a, 0, e.Type()), e.Type(), nil
}

func exprColumns(e expr.Expr, into map[int]bool) {
	set := map[expr.ColID]bool{}
	expr.Columns(e, set)
	for id := range set {
		into[int(id)] = true
	}
}
