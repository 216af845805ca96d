package riverbed

import (
	"context"
	"slices"
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

// memTable is an in-memory table: immutable chunks with a row number per row. A statement makes another list of chunks
// (tableEdit) and puts it in the place of the old one when the whole statement stands; a scan keeps the list that it began
// with. Only statements that have the session's turn edit.
type memTable struct {
	name      string
	columns   []types.Field // what the user declared
	fields    []types.Field // columns and rowid
	defaults  []sql.Expr    // per column; nil is NULL
	generated []sql.Expr    // per column; nil is a column that statements write
	inTurn    []int         // the generated columns, each behind those that it reads
	checks    []sql.Expr
	notNull   []bool
	keys      []*tableKey
	src       *plan.Source // as the binder sees it: one for all scans, so that an incremental run reads the table once
	next      int64        // row number; never reused, so that a row keeps its number through a ROLLBACK

	mu  sync.RWMutex
	now *ArrowTable // fields, rowid last
}

// tableDelta is rows that came to a table or left it.
type tableDelta struct {
	table *memTable
	rows  arrow.RecordBatch // all fields, rowid last
	sign  int64
}

func newMemTable(name string, columns []types.Field) *memTable {
	t := &memTable{name: name, columns: columns, fields: append(append([]types.Field{}, columns...), types.Field{Name: rowIDColumn, Type: types.Int64}),
		defaults: make([]sql.Expr, len(columns)), generated: make([]sql.Expr, len(columns)), notNull: make([]bool, len(columns))}
	t.replace(nil)
	return t
}

// source is the table as the binder sees it, once its keys are declared.
func (t *memTable) source() *plan.Source {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.src == nil {
		t.src = &plan.Source{Name: t.name, Relation: t, Fields: t.fields, Keys: append(t.uniqueKeys(), []int{len(t.columns)}), Table: true}
	}
	return t.src
}

// Fields implements flow.Relation.
func (t *memTable) Fields() []types.Field { return t.fields }

// present is the table as it is now.
func (t *memTable) present() *ArrowTable {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.now
}

func (t *memTable) snapshot() []*chunk { return t.present().chunks }

// Stats implements flow.Relation.
func (t *memTable) Stats() flow.Stats { return t.present().Stats() }

// hold implements held.
func (t *memTable) hold() (flow.Relation, error) { return t.present(), nil }

// mergeRows is the size up to which small chunks are put together: single-row INSERTs would make a list of chunks that
// is slow to copy and to scan. A chunk is merged only into one of its own size or less, so a row moves a few times.
const mergeRows = 16 << 10

// tableEdit is a change of a table that nobody else sees yet.
type tableEdit struct {
	t      *memTable
	chunks []*chunk
	deltas []tableDelta
}

// edit begins a change; the caller has the session's turn.
func (t *memTable) edit() *tableEdit { return &tableEdit{t: t, chunks: t.snapshot()} }

// append adds rows of the declared columns and returns them with their row numbers.
func (e *tableEdit) append(cols []arrow.Array, n int) arrow.RecordBatch {
	ids := make([]int64, n)
	for i := range ids {
		ids[i] = e.t.next + int64(i)
	}
	e.t.next += int64(n)
	b := array.NewRecordBatch(types.ArrowSchema(e.t.fields), append(append([]arrow.Array{}, cols...), kernels.NewFixed(arrow.PrimitiveTypes.Int64, ids, nil)), int64(n))
	chunks, tail := e.chunks, b
	for len(chunks) > 0 && tail.NumRows() < mergeRows && int64(chunks[len(chunks)-1].count) <= tail.NumRows() {
		tail = concatBatches(chunks[len(chunks)-1].present(), tail)
		chunks = chunks[:len(chunks)-1]
	}
	e.chunks = append(chunks[:len(chunks):len(chunks)], chunksOf([]arrow.RecordBatch{tail})...)
	e.deltas = append(e.deltas, tableDelta{e.t, b, 1})
	return b
}

// remove takes away the rows with the given numbers, which are in rising order. So are those of the table: rows are only ever
// put behind the others.
func (e *tableEdit) remove(ids []int64) {
	chunks := make([]*chunk, 0, len(e.chunks))
	var removed []arrow.RecordBatch
	for _, c := range e.chunks {
		numbers := rowIDs(c.rows)
		within, _ := slices.BinarySearch(ids, numbers[len(numbers)-1]+1)
		gone := make([]int32, 0, within)
		at := 0
		for _, id := range ids[:within] {
			k, ok := slices.BinarySearch(numbers[at:], id)
			if at += k; ok && c.has(int32(at)) {
				gone = append(gone, int32(at))
			}
		}
		ids = ids[within:]
		if len(gone) == 0 {
			chunks = append(chunks, c)
			continue
		}
		removed = append(removed, takeBatch(c.rows, gone))
		if c = c.without(gone); c != nil {
			chunks = append(chunks, c)
		}
	}
	e.chunks = chunks
	if len(removed) > 0 {
		e.deltas = append(e.deltas, tableDelta{e.t, concatBatches(removed...), -1})
		e.t.forgetKeys()
	}
}

// clear takes away all rows and returns how many they were.
func (e *tableEdit) clear() (rows int64) {
	for _, c := range e.chunks {
		rows += int64(c.count)
	}
	e.deltas = append(e.deltas, deltasOf(e.t, e.chunks, -1)...)
	e.chunks = nil
	e.t.forgetKeys()
	return rows
}

// replace puts a list of chunks in the place of the present one.
func (t *memTable) replace(chunks []*chunk) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.now = &ArrowTable{fields: t.fields, chunks: chunks, rowIDs: true}
}

// rowIDs of a batch of a table's fields.
func rowIDs(b arrow.RecordBatch) []int64 {
	return b.Column(int(b.NumCols()) - 1).(*array.Int64).Int64Values()
}

// Scan implements flow.Relation.
func (t *memTable) Scan(ctx context.Context, req flow.ScanRequest) (flow.Scan, error) {
	return t.present().Scan(ctx, req)
}

// rowPlaces are places by the rows' own numbers.
func rowPlaces(ids []int64) *flow.Places {
	p := &flow.Places{Unit: flow.RowID}
	for i, id := range ids {
		p.Add(i, id)
	}
	return p
}
