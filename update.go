package riverbed

import (
	"context"
	"maps"
	"slices"

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
	planned.divert = false // a row that is neither changed nor told would be lost
	batches, err := planned.all(ctx)
	return planned, batches, err
}

func (s *Session) delete(ctx context.Context, cat *scopeCatalog, st *sql.Delete, text string) (*Query, error) {
	t, err := cat.cat.targetTable(st.Table.Name)
	if err != nil {
		return nil, err
	}
	_, batches, err := s.changedRows(ctx, cat, st.Table, st.With, nil, st.Using, st.Where, text)
	if err != nil {
		return nil, err
	}
	var ids []int64
	for _, b := range batches {
		ids = append(ids, b.Column(0).(*array.Int64).Int64Values()...)
	}
	ids = distinctIDs(ids)
	edit := t.edit()
	edit.remove(ids)
	return s.finish(ctx, cat, edit, st.Table, st.Returning, edit.removed(), int64(len(ids)), text)
}

// distinctIDs are the row numbers in rising order, each once: USING and FROM may match a row several times.
func distinctIDs(ids []int64) []int64 {
	if !slices.IsSorted(ids) {
		slices.Sort(ids)
	}
	return slices.Compact(ids)
}

func (s *Session) truncate(ctx context.Context, cat *scopeCatalog, st *sql.Truncate) (*Query, error) {
	t, err := cat.cat.targetTable(st.Table)
	if err != nil {
		return nil, err
	}
	edit := t.edit()
	count := edit.clear()
	return countResult(count), s.apply(ctx, edit)
}

// newValues is what each column gets: the expression that SET gives, or the column itself.
func (t *memTable) newValues(st *sql.Update) ([]sql.SelectItem, error) {
	items := make([]sql.SelectItem, len(t.columns))
	for _, a := range st.Set {
		i, err := t.column(a.Column.Name, a.Column.Pos)
		if err != nil {
			return nil, err
		}
		if err := t.notGenerated(i, a.Column.Pos); err != nil {
			return nil, err
		}
		if items[i].Expr != nil {
			return nil, errs.E(errs.Schema, "bind", a.Column.Pos, "column %q is set twice", a.Column.Name)
		}
		items[i].Expr = a.Value
		if d, ok := a.Value.(*sql.Default); ok {
			items[i].Expr = t.defaultOf(i, d)
		}
	}
	for i, f := range t.columns {
		if items[i].Expr == nil {
			items[i].Expr = ref(st.Table, f.Name)
		}
	}
	return items, nil
}

func (s *Session) update(ctx context.Context, cat *scopeCatalog, st *sql.Update, text string) (*Query, error) {
	t, err := cat.cat.targetTable(st.Table.Name)
	if err != nil {
		return nil, err
	}
	edit := t.edit()
	count, err := s.changeRows(ctx, cat, edit, st, text)
	if err != nil {
		return nil, err
	}
	written := edit.written()
	if err := edit.checkKeys(written); err != nil {
		t.forgetKeys()
		return nil, placed(err, st.Position())
	}
	return s.finish(ctx, cat, edit, st.Table, st.Returning, written, count, text)
}

// changeRows puts what an UPDATE makes of rows into an edit and returns how many they are.
func (s *Session) changeRows(ctx context.Context, cat *scopeCatalog, edit *tableEdit, st *sql.Update, text string) (int64, error) {
	t := edit.t
	items, err := t.newValues(st)
	if err != nil {
		return 0, err
	}
	q, batches, err := s.changedRows(ctx, cat, st.Table, st.With, items, st.From, st.Where, text)
	if err != nil {
		return 0, err
	}
	at := make([]int, len(t.columns))
	for i := range at {
		at[i] = i + 1
	}
	ids := map[int64]bool{}
	var changed [][]arrow.Array
	for _, b := range batches {
		var sel []int32 // a row that FROM matches several times changes once, by its first match
		for r, id := range b.Column(0).(*array.Int64).Int64Values() {
			if !ids[id] {
				ids[id] = true
				sel = append(sel, int32(r))
			}
		}
		if len(sel) == 0 {
			continue
		}
		cols, err := s.tableColumns(ctx, t, takeBatch(b, sel), q.assigned(), at)
		if err != nil {
			return 0, placed(err, st.Position())
		}
		changed = append(changed, cols)
	}
	edit.remove(slices.Sorted(maps.Keys(ids)))
	for _, cols := range changed {
		edit.append(cols, cols[0].Len())
	}
	return int64(len(ids)), nil
}
