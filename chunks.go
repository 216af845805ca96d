package riverbed

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/types"
)

// ArrowTable is a relation over batches that the caller holds.
type ArrowTable struct {
	fields []types.Field
	chunks []arrow.RecordBatch
	rowIDs bool // the last column numbers the rows

	counted sync.Once
	stats   flow.Stats
}

// NewArrowTable makes a relation of batches; they must have the Arrow forms of types.Type.Arrow.
func NewArrowTable(schema *arrow.Schema, batches []arrow.RecordBatch) (*ArrowTable, error) {
	fields, err := types.Schema(schema)
	if err != nil {
		return nil, err
	}
	for _, f := range fields {
		if flow.Reserved(f.Name) {
			return nil, errs.New(errs.Schema, "register", "a column may not be named %q", f.Name)
		}
	}
	return &ArrowTable{fields: fields, chunks: batches}, nil
}

// Fields implements flow.Relation.
func (t *ArrowTable) Fields() []types.Field { return t.fields }

// Stats implements flow.Relation.
func (t *ArrowTable) Stats() flow.Stats {
	t.counted.Do(func() { t.stats = chunkStats(t.chunks, t.fields) })
	return t.stats
}

// Scan implements flow.Relation.
func (t *ArrowTable) Scan(_ context.Context, req flow.ScanRequest) (flow.Scan, error) {
	s := newChunkScan(t.chunks, t.fields, req)
	if t.rowIDs && req.Places {
		s.places = func(chunk int) *flow.Places { return rowPlaces(rowIDs(s.chunks[chunk])) }
	}
	return s, nil
}

func takeBatch(b arrow.RecordBatch, rows []int32) arrow.RecordBatch {
	cols := make([]arrow.Array, b.NumCols())
	for i := range cols {
		cols[i] = kernels.Take(b.Column(i), rows)
	}
	return array.NewRecordBatch(b.Schema(), cols, int64(len(rows)))
}

// concatBatches puts two batches of one schema together.
func concatBatches(a, b arrow.RecordBatch) arrow.RecordBatch {
	cols := make([]arrow.Array, a.NumCols())
	for i := range cols {
		cols[i] = kernels.Concat([]arrow.Array{a.Column(i), b.Column(i)})
	}
	return array.NewRecordBatch(a.Schema(), cols, a.NumRows()+b.NumRows())
}

// memoryMorsel is the most rows of a batch that a scan hands out: large enough to cost nothing, small enough to share.
const memoryMorsel = 64 << 10

// chunkScan hands out batches that lie in memory, columns picked, big ones cut.
type chunkScan struct {
	schema *arrow.Schema
	at     []int
	chunks []arrow.RecordBatch
	next   atomic.Int64
	places func(chunk int) *flow.Places // nil: not asked for
}

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
	if req.Places {
		s.places = s.counted
	}
	return s
}

// counted numbers the rows from the first chunk on.
func (s *chunkScan) counted(chunk int) *flow.Places {
	first := int64(1)
	for _, c := range s.chunks[:chunk] {
		first += c.NumRows()
	}
	return &flow.Places{Unit: flow.RowNumber, Runs: []flow.Run{{At: first}}}
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
	m := &flow.Morsel{Seq: i, Batch: array.NewRecordBatch(s.schema, cols, b.NumRows())}
	if s.places != nil {
		m.Places = s.places(int(i))
	}
	return m, nil
}

func (s *chunkScan) Close() error { return nil }
