package riverbed

import (
	"context"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/sql"
	"github.com/riverbed/riverbed/core/types"
)

// A DML statement is a query whose rows say what changes: INSERT's is the one written, UPDATE's gives the row numbers
// and the new values, DELETE's the row numbers. What it changed is a delta for the views over the table.

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
