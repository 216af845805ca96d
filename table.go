package riverbed

import (
	"context"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/sql"
	"github.com/riverbed/riverbed/core/types"
)

// rowIDColumn is the hidden last column of an in-memory table.
const rowIDColumn = "rowid"

// memTable is an in-memory table: immutable chunks with a row number per row. A statement replaces the list of
// chunks; a scan keeps the list that it began with. Only statements write, one at a time.
type memTable struct {
	name     string
	columns  []types.Field // what the user declared
	fields   []types.Field // columns and rowid
	defaults []sql.Expr    // per column; nil is NULL
	notNull  []bool
	keys     []*tableKey
	src      *plan.Source // once it is asked for

	mu     sync.RWMutex
	chunks []arrow.RecordBatch // fields, rowid last
	stats  *flow.Stats         // of chunks; nil: not asked for yet
	next   int64               // row number; never reused, so that a row keeps its number through a ROLLBACK
}

// tableDelta is rows that came to a table or left it.
type tableDelta struct {
	table *memTable
	rows  arrow.RecordBatch // all fields, rowid last
	sign  int64
}

func newMemTable(name string, columns []types.Field) *memTable {
	return &memTable{name: name, columns: columns, fields: append(append([]types.Field{}, columns...), types.Field{Name: rowIDColumn, Type: types.Int64}),
		defaults: make([]sql.Expr, len(columns)), notNull: make([]bool, len(columns))}
}

// source is the table as the binder sees it: one for all scans, so that an incremental run reads the table once. The
// session is locked.
func (t *memTable) source() *plan.Source {
	if t.src == nil {
		t.src = &plan.Source{Name: t.name, Relation: t, Fields: t.fields, Keys: append(t.uniqueKeys(), []int{len(t.columns)}), Table: true}
	}
	return t.src
}

// Fields implements flow.Relation.
func (t *memTable) Fields() []types.Field { return t.fields }

func (t *memTable) snapshot() []arrow.RecordBatch {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.chunks
}

// Stats implements flow.Relation.
func (t *memTable) Stats() flow.Stats {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stats == nil {
		s := chunkStats(t.chunks, t.fields)
		t.stats = &s
	}
	return *t.stats
}

// mergeRows is the size up to which small chunks are put together: single-row INSERTs would make a list of chunks that
// is slow to copy and to scan. A chunk is merged only into one of its own size or less, so a row moves a few times.
const mergeRows = 16 << 10

// append adds rows of the declared columns and returns them with their row numbers.
func (t *memTable) append(cols []arrow.Array, n int) arrow.RecordBatch {
	t.mu.Lock()
	defer t.mu.Unlock()
	ids := make([]int64, n)
	for i := range ids {
		ids[i] = t.next + int64(i)
	}
	t.next += int64(n)
	b := array.NewRecordBatch(types.ArrowSchema(t.fields), append(append([]arrow.Array{}, cols...), kernels.NewFixed(arrow.PrimitiveTypes.Int64, ids, nil)), int64(n))
	chunks, tail := t.chunks, b
	for len(chunks) > 0 && tail.NumRows() < mergeRows && chunks[len(chunks)-1].NumRows() <= tail.NumRows() {
		tail = concatBatches(chunks[len(chunks)-1], tail)
		chunks = chunks[:len(chunks)-1]
	}
	t.chunks, t.stats = append(chunks[:len(chunks):len(chunks)], tail), nil
	return b
}

// remove takes away the rows with the given numbers and returns them.
func (t *memTable) remove(ids map[int64]bool) []arrow.RecordBatch {
	t.mu.Lock()
	defer t.mu.Unlock()
	var kept, gone []arrow.RecordBatch
	for _, c := range t.chunks {
		var stay, leave []int32
		for i, id := range rowIDs(c) {
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
	t.chunks, t.stats = kept, nil
	t.forgetKeys()
	return gone
}

// clear takes away all rows and returns them.
func (t *memTable) clear() []arrow.RecordBatch {
	t.mu.Lock()
	defer t.mu.Unlock()
	gone := t.chunks
	t.chunks, t.stats = nil, nil
	t.forgetKeys()
	return gone
}

// restore puts back an earlier list of chunks (ROLLBACK, a failed statement).
func (t *memTable) restore(chunks []arrow.RecordBatch) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.chunks, t.stats = chunks, nil
	t.forgetKeys()
}

// rowIDs of a batch of a table's fields.
func rowIDs(b arrow.RecordBatch) []int64 {
	return b.Column(int(b.NumCols()) - 1).(*array.Int64).Int64Values()
}

// Scan implements flow.Relation.
func (t *memTable) Scan(_ context.Context, req flow.ScanRequest) (flow.Scan, error) {
	return newChunkScan(t.snapshot(), t.fields, req), nil
}
