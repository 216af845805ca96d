package riverbed

import (
	"context"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/flow"
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

// Scan implements flow.Relation.
func (t *memTable) Scan(_ context.Context, req flow.ScanRequest) (flow.Scan, error) {
	return newChunkScan(t.snapshot(), t.fields, req), nil
}

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
