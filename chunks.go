package riverbed

import (
	"context"
	"slices"
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
		s.places = func(chunk int) *flow.Places { return rowPlaces(rowIDs(s.chunks[chunk].present())) }
	}
	return s, nil
}

// chunkScan hands out chunks, columns picked. Chunks in which no row can satisfy the conditions are left out.
type chunkScan struct {
	schema *arrow.Schema
	at     []int
	chunks []*chunk
	before []int64 // rows before each chunk, when places are asked for
	next   atomic.Int64
	narrow *flow.Narrowing              // nil: none that rows which have gone may be shown to
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
		row += int64(c.count)
	}
	if req.Places {
		s.places = s.counted
	}
	if n := req.Narrow; n != nil && !slices.ContainsFunc(n.Stages, func(st flow.Stage) bool { return !st.Pure }) {
		s.narrow = n
	}
	return s
}

// counted numbers the rows from the table's first on.
func (s *chunkScan) counted(chunk int) *flow.Places {
	return &flow.Places{Unit: flow.RowNumber, Runs: []flow.Run{{At: s.before[chunk] + 1}}}
}

func (s *chunkScan) Next(_ context.Context, worker int) (*flow.Morsel, error) {
	i := s.next.Add(1) - 1
	if i >= int64(len(s.chunks)) {
		return nil, nil
	}
	c := s.chunks[i]
	cols := make([]arrow.Array, len(s.at))
	for k, column := range s.at {
		cols[k] = c.rows.Column(column)
	}
	n, narrowed, err := c.count, c.left != nil && s.narrow != nil, error(nil)
	switch {
	case narrowed:
		cols, n, err = c.narrowed(cols, s.narrow, worker)
	case c.left != nil:
		rows, _ := c.leftRows()
		cols = kernels.TakeBatch(cols, rows)
	}
	if err != nil {
		return nil, err
	}
	m := &flow.Morsel{Seq: i, Batch: array.NewRecordBatch(s.schema, cols, int64(n)), Narrowed: narrowed}
	if s.places != nil {
		m.Places = s.places(int(i))
	}
	return m, nil
}

func (s *chunkScan) Close() error { return nil }
