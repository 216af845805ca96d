package riverbed

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/checkpoint"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/types"
	"github.com/riverbed/riverbed/incremental"
)

// A pipeline that reads an in-memory table has the table's changes in its epochs. When it is started again the table of the session counts, as a script
// has made it anew: what differs from what the checkpoints know is the run's first change. So a script that is run again changes nothing, and one that was
// edited changes what it says.

// tableOwner has the changes of in-memory tables, each under its table's name.
const tableOwner = "tables"

// took notes changes of tables that a step takes.
func (d *durable) took(changes []tableDelta) {
	if d != nil {
		d.kept.tables = append(d.kept.tables, changes...)
	}
}

// tableSections are the changes of tables as sections.
func tableSections(changes []tableDelta) []checkpoint.Section {
	var out []checkpoint.Section
	at := map[string]int{}
	for _, c := range changes {
		i, ok := at[c.table.name]
		if !ok {
			i = len(out)
			at[c.table.name] = i
			out = append(out, checkpoint.Section{Kind: checkpoint.Log, Owner: tableOwner, Table: c.table.name})
		}
		out[i].Rows = append(out[i].Rows, signed(c.rows, c.sign))
	}
	return out
}

// tablesLogged is up to how many changes of a table are never put together.
var tablesLogged int64 = 1 << 16

// consolidate puts what the checkpoints have of a table together, and the epoch's own changes with it, where the changes since that was done last are more
// than the rows then: so a table that changes for ever takes as much room as it has rows, and each change is written about twice. It runs behind the loop.
func (d *durable) consolidate(ctx context.Context, b *barrier) error {
	for i := range b.sections {
		own := &b.sections[i]
		if own.Owner != tableOwner || own.Kind != checkpoint.Log {
			continue
		}
		rows, changes := d.last.Rows(checkpoint.Whole, tableOwner, own.Table), d.last.Rows(checkpoint.Log, tableOwner, own.Table)
		if changes <= max(rows, tablesLogged) {
			continue
		}
		fields := d.r.fieldsOf(own.Table)
		if fields == nil {
			continue
		}
		all := make([]flow.Delta, 0, len(own.Rows))
		for _, rows := range own.Rows {
			all = append(all, flow.Delta{Batch: rows})
		}
		if err := d.store.ReadRows(ctx, d.last, tableOwner, own.Table, func(s checkpoint.Section) error {
			for _, rows := range s.Rows {
				all = append(all, flow.Delta{Batch: rows})
			}
			return nil
		}); err != nil {
			return err
		}
		own.Kind, own.Rows = checkpoint.Whole, nil
		if now := incremental.Consolidated(fields, all); now != nil {
			own.Rows = []arrow.RecordBatch{now}
		}
	}
	return nil
}

// fieldsOf are the columns of a table that the run reads.
func (r *runner) fieldsOf(table string) []types.Field {
	for _, in := range r.inputs {
		if t, ok := in.info.Source.Relation.(*memTable); ok && t.name == table {
			return t.fields
		}
	}
	return nil
}

// signed is a batch with the same weight for each row.
func signed(rows arrow.RecordBatch, sign int64) arrow.RecordBatch {
	weights := make([]int64, rows.NumRows())
	for i := range weights {
		weights[i] = sign
	}
	cols := append(append([]arrow.Array{}, rows.Columns()...), kernels.NewFixed(arrow.PrimitiveTypes.Int64, weights, nil))
	return array.NewRecordBatch(flow.WithWeights(rows.Schema()), cols, rows.NumRows())
}

// differs gives the changes that make of the rows that the checkpoints know those that the table has.
func (d *durable) differs(t *memTable, has []tableDelta) []tableDelta {
	if d == nil || len(d.tables[t.name]) == 0 {
		return has
	}
	known := d.tables[t.name]
	delete(d.tables, t.name)
	var both []flow.Delta
	for _, c := range has {
		both = append(both, flow.Delta{Batch: signed(c.rows, c.sign)})
	}
	for _, b := range known {
		both = append(both, flow.Delta{Batch: negated(b)})
	}
	changes := incremental.Consolidated(t.fields, both)
	if changes == nil {
		return nil
	}
	var rows [2][]int32 // those that go and those that come
	for i, w := range (flow.Delta{Batch: changes}).Weights() {
		side, sign := 0, int64(-1)
		if w > 0 {
			side, sign = 1, 1
		}
		for ; w != 0; w -= sign {
			rows[side] = append(rows[side], int32(i))
		}
	}
	var out []tableDelta
	for side, picked := range rows {
		if len(picked) == 0 {
			continue
		}
		cols := make([]arrow.Array, len(t.fields))
		for i := range cols {
			cols[i] = kernels.Take(changes.Column(i), picked)
		}
		schema := arrow.NewSchema(changes.Schema().Fields()[:len(cols)], nil)
		out = append(out, tableDelta{t, array.NewRecordBatch(schema, cols, int64(len(picked))), int64(2*side - 1)})
	}
	return out
}

// knew keeps what the checkpoints know of a table until the run begins.
func (d *durable) knew(s checkpoint.Section) error {
	for _, in := range d.r.inputs {
		if t, ok := in.info.Source.Relation.(*memTable); ok && t.name == s.Table {
			if err := sameColumns(t, s.Rows); err != nil {
				return err
			}
		}
	}
	if d.tables == nil {
		d.tables = map[string][]arrow.RecordBatch{}
	}
	d.tables[s.Table] = append(d.tables[s.Table], s.Rows...)
	return nil
}

// sameColumns refuses rows of a table that had other columns.
func sameColumns(t *memTable, known []arrow.RecordBatch) error {
	for _, b := range known {
		same := int(b.NumCols()) == len(t.fields)+1
		for i := 0; same && i < len(t.fields); i++ {
			same = arrow.TypeEqual(b.Column(i).DataType(), t.fields[i].Type.Arrow())
		}
		if !same {
			return errs.New(errs.State, "restore", "the table %q has other columns than when the checkpoints were written", t.name).
				WithHint("make it with the columns that it had, or begin anew with another id")
		}
	}
	return nil
}

// negated is a batch with weights turned round.
func negated(b arrow.RecordBatch) arrow.RecordBatch {
	last := int(b.NumCols()) - 1
	weights := append([]int64{}, b.Column(last).(*array.Int64).Int64Values()...)
	for i := range weights {
		weights[i] = -weights[i]
	}
	cols := append(append([]arrow.Array{}, b.Columns()[:last]...), kernels.NewFixed(arrow.PrimitiveTypes.Int64, weights, nil))
	return array.NewRecordBatch(b.Schema(), cols, b.NumRows())
}
