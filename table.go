package riverbed

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/types"
)

// rowIDColumn is the hidden last column of an in-memory table.
const rowIDColumn = "rowid"

// memTable is an in-memory table: immutable chunks with a row number per row. A statement replaces the list of
// chunks; a scan keeps the list that it began with.
type memTable struct {
	name     string
	columns  []types.Field // what the user declared
	fields   []types.Field // columns and rowid
	defaults []expr.Expr   // per column; nil is NULL
	notNull  []bool
	keys     [][]int
	temp     bool
	src      *plan.Source // once it is asked for

	mu     sync.RWMutex
	chunks []arrow.RecordBatch // fields, rowid last
	next   int64
}

func newMemTable(name string, columns []types.Field) *memTable {
	return &memTable{name: name, columns: columns, fields: append(append([]types.Field{}, columns...), types.Field{Name: rowIDColumn, Type: types.Int64}),
		defaults: make([]expr.Expr, len(columns)), notNull: make([]bool, len(columns))}
}

// Fields implements flow.Relation.
func (t *memTable) Fields() []types.Field { return t.fields }

func (t *memTable) snapshot() []arrow.RecordBatch {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.chunks
}

// Stats implements flow.Relation.
func (t *memTable) Stats() flow.Stats { return chunkStats(t.snapshot(), t.fields) }

// chunkStats counts rows and, for columns of whole numbers, finds the range; the planner needs little more.
func chunkStats(chunks []arrow.RecordBatch, fields []types.Field) flow.Stats {
	s := flow.Stats{Exact: true, Columns: map[int]flow.ColumnStats{}}
	for _, c := range chunks {
		s.Rows += c.NumRows()
	}
	return s
}

// append adds rows of the declared columns and returns them with their row numbers.
func (t *memTable) append(cols []arrow.Array, n int) arrow.RecordBatch {
	t.mu.Lock()
	defer t.mu.Unlock()
	ids := make([]types.Value, n)
	for i := range ids {
		ids[i] = t.next + int64(i)
	}
	t.next += int64(n)
	b := array.NewRecordBatch(types.ArrowSchema(t.fields), append(append([]arrow.Array{}, cols...), types.ArrayOf(ids, types.Int64)), int64(n))
	t.chunks = append(t.chunks[:len(t.chunks):len(t.chunks)], b)
	return b
}

// remove takes away the rows with the given numbers and returns them.
func (t *memTable) remove(ids map[int64]bool) []arrow.RecordBatch {
	t.mu.Lock()
	defer t.mu.Unlock()
	var kept, gone []arrow.RecordBatch
	for _, c := range t.chunks {
		rowids := c.Column(len(t.columns)).(*array.Int64).Int64Values()
		var stay, leave []int32
		for i, id := range rowids {
			if ids[id] {
				leave = append(leave, int32(i))
			} else {
				stay = append(stay, int32(i))
			}
		}
		if len(leave) == 0 {
			kept = append(kept, c)
			continue
		}
		if len(stay) > 0 {
			kept = append(kept, takeBatch(c, stay))
		}
		gone = append(gone, takeBatch(c, leave))
	}
	t.chunks = kept
	return gone
}

// restore puts back an earlier list of chunks (ROLLBACK, a failed statement).
func (t *memTable) restore(chunks []arrow.RecordBatch, next int64) {
	t.mu.Lock()
	t.chunks, t.next = chunks, next
	t.mu.Unlock()
}

func takeBatch(b arrow.RecordBatch, rows []int32) arrow.RecordBatch {
	cols := make([]arrow.Array, b.NumCols())
	for i := range cols {
		cols[i] = kernels.Take(b.Column(i), rows)
	}
	return array.NewRecordBatch(b.Schema(), cols, int64(len(rows)))
}

// Scan implements flow.Relation.
func (t *memTable) Scan(_ context.Context, req flow.ScanRequest) (flow.Scan, error) {
	return newChunkScan(t.snapshot(), t.fields, req), nil
}

// chunkScan hands out batches that lie in memory, columns picked, big ones cut.
type chunkScan struct {
	schema *arrow.Schema
	at     []int
	chunks []arrow.RecordBatch
	next   atomic.Int64
}

const memoryMorsel = 64 << 10

func newChunkScan(chunks []arrow.RecordBatch, fields []types.Field, req flow.ScanRequest) *chunkScan {
	picked := make([]types.Field, len(req.Columns))
	for i, c := range req.Columns {
		picked[i] = fields[c]
	}
	s := &chunkScan{schema: types.ArrowSchema(picked), at: req.Columns}
	for _, c := range chunks {
		for from := int64(0); from < c.NumRows(); from += memoryMorsel {
			s.chunks = append(s.chunks, c.NewSlice(from, min(from+memoryMorsel, c.NumRows())))
		}
	}
	return s
}

func (s *chunkScan) Next(context.Context, int) (*flow.Morsel, error) {
	i := s.next.Add(1) - 1
	if i >= int64(len(s.chunks)) {
		return nil, nil
	}
	b := s.chunks[i]
	cols := make([]arrow.Array, len(s.at))
	for k, c := range s.at {
		cols[k] = b.Column(c)
	}
	return &flow.Morsel{Seq: i, Batch: array.NewRecordBatch(s.schema, cols, b.NumRows())}, nil
}

func (s *chunkScan) Close() error { return nil }
