package incremental

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/kernels"
)

// lateBatch is a batch whose columns are gathered when somebody asks for them, for a reader that soon drops most of its rows: it takes
// those that it keeps, and gathers their columns alone. What it gathers from stays as it is until the step has ended.
type lateBatch struct {
	schema *arrow.Schema
	n      int
	cols   []arrow.Array // those that were asked for
	gather gatherer
}

// gatherer makes a column of some rows, nil for all.
type gatherer func(col int, rows []int32) arrow.Array

func newLateBatch(schema *arrow.Schema, n int, g gatherer) *lateBatch {
	return &lateBatch{schema: schema, n: n, cols: make([]arrow.Array, schema.NumFields()), gather: g}
}

// some makes a column of some rows.
func (b *lateBatch) some(col int, rows []int32) arrow.Array {
	if c := b.cols[col]; c != nil {
		return kernels.Take(c, rows)
	}
	return b.gather(col, rows)
}

// take narrows the batch to some rows.
func (b *lateBatch) take(rows []int32) *lateBatch {
	return newLateBatch(b.schema, len(rows), func(col int, of []int32) arrow.Array {
		if of == nil {
			return b.some(col, rows)
		}
		return b.some(col, pickRows(rows, of))
	})
}

// columns are some columns of the batch under another schema.
func (b *lateBatch) columns(schema *arrow.Schema, at []int) *lateBatch {
	return newLateBatch(schema, b.n, func(col int, rows []int32) arrow.Array {
		if rows == nil {
			return b.Column(at[col])
		}
		return b.some(at[col], rows)
	})
}

// late is the batch of a delta, where it is one.
func late(d flow.Delta) *lateBatch {
	b, _ := d.Batch.(*lateBatch)
	return b
}

// The rest makes it an arrow.RecordBatch, so that any reader may have one.

func (b *lateBatch) Schema() *arrow.Schema { return b.schema }
func (b *lateBatch) NumRows() int64        { return int64(b.n) }
func (b *lateBatch) NumCols() int64        { return int64(len(b.cols)) }

func (b *lateBatch) Column(i int) arrow.Array {
	if b.cols[i] == nil {
		b.cols[i] = b.gather(i, nil)
	}
	return b.cols[i]
}

func (b *lateBatch) Columns() []arrow.Array {
	for i := range b.cols {
		b.Column(i)
	}
	return b.cols
}

func (b *lateBatch) whole() arrow.RecordBatch {
	return array.NewRecordBatch(b.schema, b.Columns(), int64(b.n))
}

func (b *lateBatch) ColumnName(i int) string { return b.schema.Field(i).Name }
func (b *lateBatch) SetColumn(i int, c arrow.Array) (arrow.RecordBatch, error) {
	return b.whole().SetColumn(i, c)
}
func (b *lateBatch) NewSlice(i, j int64) arrow.RecordBatch { return b.whole().NewSlice(i, j) }
func (b *lateBatch) MarshalJSON() ([]byte, error)          { return b.whole().MarshalJSON() }
func (b *lateBatch) String() string                        { return "late batch of " + b.schema.String() }
func (b *lateBatch) Retain()                               {}
func (b *lateBatch) Release()                              {}
