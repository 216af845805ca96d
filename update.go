package riverbed

import (
	"context"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/sql"
)

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
