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

// chunk is rows in memory, and what is known of their columns.
type chunk struct {
	rows   arrow.RecordBatch
	ranges []columnRange // by column
}

func newChunk(rows arrow.RecordBatch) *chunk {
	return &chunk{rows: rows, ranges: make([]columnRange, rows.NumCols())}
}

// chunksOf cuts batches to chunks of a size that scans hand out and skip.
func chunksOf(batches []arrow.RecordBatch) []*chunk {
	var out []*chunk
	for _, b := range batches {
		if n := b.NumRows(); n > 0 && n <= chunkRows {
			out = append(out, newChunk(b))
			continue
		}
		for from := int64(0); from < b.NumRows(); from += chunkRows {
			out = append(out, newChunk(b.NewSlice(from, min(from+chunkRows, b.NumRows()))))
		}
	}
	return out
}

// batchesOf are the rows of chunks.
func batchesOf(chunks []*chunk) []arrow.RecordBatch {
	out := make([]arrow.RecordBatch, len(chunks))
	for i, c := range chunks {
		out[i] = c.rows
	}
	return out
}

// ArrowTable is a relation over batches that the caller holds.
type ArrowTable struct {
	fields []types.Field
	chunks []*chunk
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
	return &ArrowTable{fields: fields, chunks: chunksOf(batches)}, nil
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
		s.places = func(chunk int) *flow.Places { return rowPlaces(rowIDs(s.chunks[chunk].rows)) }
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

// chunkRows is the most rows of a chunk: large enough to cost nothing, small enough to share and to skip.
const chunkRows = 64 << 10

// chunkScan hands out chunks, columns picked. Chunks in which no row can satisfy the conditions are left out.
type chunkScan struct {
	schema *arrow.Schema
	at     []int
	chunks []*chunk
	before []int64 // rows before each chunk, when places are asked for
	next   atomic.Int64
	places func(chunk int) *flow.Places // nil: not asked for
}

func newChunkScan(chunks []*chunk, fields []types.Field, req flow.ScanRequest) *chunkScan {
	picked := make([]types.Field, len(req.Columns))
	for i, c := range req.Columns {
		picked[i] = fields[c]
	}
	s := &chunkScan{schema: types.ArrowSchema(picked), at: req.Columns}
	row := int64(0)
	for _, c := range chunks {
		if c.canMatch(req.Filters, fields) {
			s.chunks = append(s.chunks, c)
			if req.Places {
				s.before = append(s.before, row)
			}
		}
		row += c.rows.NumRows()
	}
	if req.Places {
		s.places = s.counted
	}
	return s
}

// counted numbers the rows from the table's first on.
func (s *chunkScan) counted(chunk int) *flow.Places {
	return &flow.Places{Unit: flow.RowNumber, Runs: []flow.Run{{At: s.before[chunk] + 1}}}
}

func (s *chunkScan) Next(context.Context, int) (*flow.Morsel, error) {
	i := s.next.Add(1) - 1
	if i >= int64(len(s.chunks)) {
		return nil, nil
	}
	b := s.chunks[i].rows
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
