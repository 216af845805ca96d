package riverbed

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/bind"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/sql"
)

// rowsOf is rows of a table as a relation under the table's name.
func (t *memTable) rowsOf(batches []arrow.RecordBatch) *bind.Relation {
	rel := &ArrowTable{fields: t.fields, chunks: chunksOf(batches), rowIDs: true}
	return &bind.Relation{Source: &plan.Source{Name: t.name, Relation: rel, Fields: t.fields, Table: true}}
}

// returning computes RETURNING over the rows that a statement changed, before the change stands: an error in it leaves all as it
// was.
func (s *Session) returning(ctx context.Context, cat *scopeCatalog, t *memTable, target *sql.Table, items []sql.SelectItem, changed []arrow.RecordBatch, text string) (*Query, error) {
	for _, it := range items {
		var err error
		sql.Inspect(it.Expr, func(n sql.Node) bool {
			if q, ok := n.(*sql.Query); ok {
				err = errs.E(errs.Schema, "bind", q.Pos, "RETURNING looks at the changed rows; it cannot contain a subquery")
			}
			return err == nil
		})
		if err != nil {
			return nil, err
		}
	}
	inner := *cat
	inner.instead = map[string]*bind.Relation{cat.cat.entryKey(target.Name): t.rowsOf(changed)}
	table := &sql.Table{At: target.At, Name: target.Name, Alias: target.Alias}
	q, err := s.planQuery(ctx, &inner, &sql.Query{At: target.At, Body: &sql.Select{At: target.At, Items: items, From: []sql.TableRef{table}}}, text)
	if err != nil {
		return nil, err
	}
	batches, err := q.all(ctx)
	if err != nil {
		return nil, err
	}
	return &Query{columns: q.columns, fixed: batches}, nil
}

// finish applies a change and answers with what RETURNING asks for, or with the number of rows.
func (s *Session) finish(ctx context.Context, cat *scopeCatalog, edit *tableEdit, target *sql.Table, items []sql.SelectItem, changed []arrow.RecordBatch, count int64, text string) (*Query, error) {
	out := countResult(count)
	if len(items) > 0 {
		var err error
		if out, err = s.returning(ctx, cat, edit.t, target, items, changed, text); err != nil {
			edit.t.forgetKeys()
			return nil, err
		}
	}
	return out, s.apply(ctx, edit)
}
