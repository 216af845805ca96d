package riverbed

import (
	"context"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/core/bind"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/sql"
	"github.com/riverbed/riverbed/core/types"
)

// A DML statement is a query whose rows say what changes: INSERT's is the one written, UPDATE's gives the row numbers
// and the new values, DELETE's the row numbers. What it changed is a delta for the views over the table.

func (c *catalog) target(n sql.Name) (*entry, error) {
	name, err := c.read(n)
	if err != nil {
		return nil, err
	}
	e := c.get(name)
	if e == nil {
		return nil, errs.E(errs.Schema, "bind", n.Position(), "no table %q", name).WithHint("%s", errs.DidYouMean(name, c.names()))
	}
	return e, nil
}

func (c *catalog) targetTable(n sql.Name) (*memTable, error) {
	e, err := c.target(n)
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

func (s *Session) insert(ctx context.Context, cat *scopeCatalog, st *sql.Insert, text string) (*Query, error) {
	e, err := cat.cat.target(st.Table)
	if err != nil {
		return nil, err
	}
	if st.With != nil && st.Query != nil && st.Query.With == nil {
		q := *st.Query
		q.With = st.With
		st.Query = &q
	}
	switch {
	case e.sink != nil:
		if len(st.Returning) > 0 || st.Or != "" || st.Conflict != nil {
			return nil, errs.E(errs.Schema, "bind", st.Position(), "RETURNING and ON CONFLICT belong to tables; %q is a sink", e.name).
				WithHint("a sink that is kept equal by key takes a key of its own; see docs/connectors")
		}
		return s.insertIntoSink(ctx, cat, e, st, text)
	case e.table != nil:
		return s.insertIntoTable(ctx, cat, e.table, st, text)
	}
	return nil, errs.E(errs.Schema, "bind", st.Table.Position(), "%q is a %s; rows go into tables and sinks", e.name, strings.ToLower(e.kind()))
}

// column finds a column of the table by name.
func (t *memTable) column(name string, pos errs.Pos) (int, error) {
	names := make([]string, len(t.columns))
	for i, f := range t.columns {
		if strings.EqualFold(f.Name, name) {
			return i, nil
		}
		names[i] = f.Name
	}
	return 0, errs.E(errs.Schema, "bind", pos, "table %q has no column %q", t.name, name).WithHint("%s", errs.DidYouMean(name, names))
}

// insertOrder gives for each column of the rows the table's column that it goes to.
func insertOrder(t *memTable, st *sql.Insert, names []string) ([]int, error) {
	var to []int
	add := func(name string, pos errs.Pos) error {
		i, err := t.column(name, pos)
		if err == nil {
			err = t.notGenerated(i, pos)
		}
		if err == nil && slices.Contains(to, i) {
			err = errs.E(errs.Schema, "bind", pos, "column %q is named twice", name)
		}
		to = append(to, i)
		return err
	}
	switch {
	case st.ByName:
		for _, n := range names {
			if err := add(n, st.Position()); err != nil {
				return nil, err
			}
		}
	case len(st.Columns) > 0:
		for _, c := range st.Columns {
			if err := add(c.Name, c.Pos); err != nil {
				return nil, err
			}
		}
	default:
		to = t.plain()
	}
	return to, nil
}

// withDefaults replaces DEFAULT in VALUES by what the column's default is.
func (t *memTable) withDefaults(q *sql.Query, to []int) *sql.Query {
	v, ok := q.Body.(*sql.Values)
	if !ok {
		return q
	}
	out, values := *q, *v
	values.Rows = make([][]sql.Expr, len(v.Rows))
	for r, row := range v.Rows {
		values.Rows[r] = slices.Clone(row)
		for c, x := range row {
			if d, ok := x.(*sql.Default); ok && c < len(to) {
				values.Rows[r][c] = t.defaultOf(to[c], d)
			}
		}
	}
	out.Body = &values
	return &out
}

// defaultOf is the expression that DEFAULT stands for.
func (t *memTable) defaultOf(column int, at *sql.Default) sql.Expr {
	if x := t.defaults[column]; x != nil {
		return x
	}
	return &sql.Literal{At: at.At, Kind: sql.LitNull}
}

func (s *Session) insertIntoTable(ctx context.Context, cat *scopeCatalog, t *memTable, st *sql.Insert, text string) (*Query, error) {
	var batches []arrow.RecordBatch
	var given []types.Field
	var to []int
	if st.Query == nil { // DEFAULT VALUES: one row of no columns
		batches = []arrow.RecordBatch{array.NewRecordBatch(arrow.NewSchema(nil, nil), nil, 1)}
	} else {
		query := st.Query
		if !st.ByName {
			var err error
			if to, err = insertOrder(t, st, nil); err != nil {
				return nil, err
			}
			query = t.withDefaults(query, to)
			for _, c := range to {
				cat.values = append(cat.values, t.columns[c].Type)
			}
		}
		q, err := s.planQuery(ctx, cat, query, text)
		if err != nil {
			return nil, err
		}
		given = q.assigned()
		if st.ByName {
			names := make([]string, len(given))
			for i, f := range given {
				names[i] = f.Name
			}
			if to, err = insertOrder(t, st, names); err != nil {
				return nil, err
			}
		}
		switch {
		case len(given) == len(to):
		case len(st.Columns) > 0:
			return nil, errs.E(errs.Schema, "bind", st.Position(), "the column list names %d columns, but the rows have %d values", len(to), len(given))
		default:
			return nil, errs.E(errs.Schema, "bind", st.Position(), "table %q has %d columns, but the rows have %d values", t.name, len(to), len(given))
		}
		if batches, err = q.all(ctx); err != nil {
			return nil, err
		}
	}
	at := make([]int, len(t.columns)) // for each column of the table its position in the rows, or -1
	for i := range at {
		at[i] = slices.Index(to, i)
	}
	added := make([][]arrow.Array, len(batches))
	count := int64(0)
	for i, b := range batches {
		var err error
		if added[i], err = s.tableColumns(ctx, t, b, given, at); err != nil {
			return nil, placed(err, st.Position())
		}
		count += b.NumRows()
	}
	if st.Or != "" || st.Conflict != nil {
		return s.insertOrChange(ctx, cat, t, st, to, added, text)
	}
	edit := t.edit()
	var rows []arrow.RecordBatch
	for i, cols := range added {
		if n := int(batches[i].NumRows()); n > 0 {
			rows = append(rows, edit.append(cols, n))
		}
	}
	if err := edit.checkKeys(rows); err != nil {
		t.forgetKeys()
		return nil, placed(err, st.Position())
	}
	return s.finish(ctx, cat, edit, insertTarget(st), st.Returning, rows, count, text)
}

func deltasOf(t *memTable, chunks []*chunk, sign int64) []tableDelta {
	out := make([]tableDelta, len(chunks))
	for i, c := range chunks {
		out[i] = tableDelta{t, c.present(), sign}
	}
	return out
}

// placed gives an error of a row the place of its statement, where it has none of its own.
func placed(err error, pos errs.Pos) error {
	e := errs.As(err)
	if !e.Pos.Valid() {
		e.Pos = pos
	}
	return e
}

// tableColumns gives a batch the table's columns: chosen, cast, defaults filled in, NOT NULL checked.
func (s *Session) tableColumns(ctx context.Context, t *memTable, b arrow.RecordBatch, given []types.Field, at []int) ([]arrow.Array, error) {
	n := int(b.NumRows())
	env := s.fnEnv(ctx)
	cols := make([]arrow.Array, len(t.columns))
	for i, f := range t.columns {
		var err error
		switch {
		case t.generated[i] != nil:
			continue
		case at[i] >= 0:
			cols[i], err = castColumn(env, b.Column(at[i]), given[at[i]].Type, f)
		case t.defaults[i] != nil:
			cols[i], err = s.defaultColumn(env, t.defaults[i], f, n)
		default:
			cols[i] = kernels.Nulls(f.Type.Arrow(), n)
		}
		if err != nil {
			return nil, err
		}
	}
	if err := s.generate(env, t, cols, n); err != nil {
		return nil, err
	}
	for i, f := range t.columns {
		if t.notNull[i] && cols[i].NullN() > 0 {
			return nil, errs.New(errs.Data, "insert", "column %q of table %q is NOT NULL, but a row has NULL there", f.Name, t.name)
		}
	}
	return cols, s.check(env, t, cols, n)
}

// defaultColumn evaluates a DEFAULT for n rows; each row gets a value of its own.
func (s *Session) defaultColumn(env *fn.Env, x sql.Expr, f types.Field, n int) (arrow.Array, error) {
	e, err := bind.New(s.scope(), bind.Options{}).Expr(x, nil, f.Type)
	if err != nil {
		return nil, err
	}
	p, err := expr.Compile(e, nil)
	if err != nil {
		return nil, err
	}
	return p.EvalArray(env, nil, n)
}

// castColumn converts a column to a field's type, as an assignment does.
func castColumn(env *fn.Env, a arrow.Array, from types.Type, to types.Field) (arrow.Array, error) {
	if from.Equal(to.Type) {
		return a, nil
	}
	if from.Kind == types.Null || a.DataType().ID() == arrow.NULL {
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
