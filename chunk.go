package riverbed

import (
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/kernels"
)

// chunkRows is the most rows of a chunk: large enough to cost nothing, small enough to share and to skip.
const chunkRows = 64 << 10

// chunk is rows in memory that never change, and what is known of their columns. A DELETE makes another chunk over the same
// rows, which knows which of them are left: to move the others costs more than to leave some out, until many have gone.
type chunk struct {
	rows   arrow.RecordBatch // as they came
	left   []byte            // a bit for each row, set when it has not gone; nil: all are left
	count  int               // of the rows that are left
	ranges []columnRange     // by column; of the rows as they came
}

func newChunk(rows arrow.RecordBatch) *chunk {
	return &chunk{rows: rows, count: int(rows.NumRows()), ranges: make([]columnRange, rows.NumCols())}
}

// chunksOf cuts batches to chunks.
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

// denseRows is the size below which a chunk is made anew rather than that rows are left out of it.
const denseRows = 1 << 10

// without is the chunk less some of its rows, given in rising order; nil when none is left.
func (c *chunk) without(gone []int32) *chunk {
	n := int(c.rows.NumRows())
	out := &chunk{rows: c.rows, count: c.count - len(gone), ranges: c.ranges}
	if out.count == 0 {
		return nil
	}
	if c.left != nil {
		out.left = slices.Clone(c.left)
	} else {
		out.left = slices.Repeat([]byte{0xff}, (n+7)/8)
	}
	for _, r := range gone {
		out.left[r>>3] &^= 1 << (r & 7)
	}
	if n < denseRows || out.count < n-n/4 {
		return newChunk(out.present())
	}
	return out
}

func (c *chunk) has(row int32) bool { return c.left == nil || c.left[row>>3]>>(row&7)&1 != 0 }

// leftRows are the numbers of the rows that are left; all of them when none has gone.
func (c *chunk) leftRows() (rows []int32, all bool) {
	if c.left == nil {
		return nil, true
	}
	return kernels.SelectTrue(kernels.NewBools(int(c.rows.NumRows()), c.left, nil))
}

// present is the rows that are left.
func (c *chunk) present() arrow.RecordBatch {
	rows, all := c.leftRows()
	if all {
		return c.rows
	}
	return takeBatch(c.rows, rows)
}

// narrowed are the rows that are left and pass the stages, of the given columns. Stages see rows that have gone, too, which
// only pure ones may.
func (c *chunk) narrowed(cols []arrow.Array, narrow *flow.Narrowing, worker int) ([]arrow.Array, int, error) {
	rows, all := []int32(nil), true
	for _, st := range narrow.Stages {
		in, n := make([]arrow.Array, len(st.Columns)), int(c.rows.NumRows())
		for i, k := range st.Columns {
			if in[i] = cols[k]; !all {
				in[i] = narrow.Take(in[i], rows)
			}
		}
		if !all {
			n = len(rows)
		}
		passed, everyone, err := st.Select(worker, in, n)
		switch {
		case err != nil:
			return nil, 0, err
		case everyone:
		case all:
			rows, all = slices.DeleteFunc(slices.Clone(passed), func(r int32) bool { return !c.has(r) }), false
		default:
			for i, p := range passed {
				rows[i] = rows[p]
			}
			rows = rows[:len(passed)]
		}
	}
	if all {
		rows, _ = c.leftRows()
	}
	return kernels.TakeBatch(cols, rows), len(rows), nil
}

// presentOf are the rows that are left in chunks.
func presentOf(chunks []*chunk) []arrow.RecordBatch {
	out := make([]arrow.RecordBatch, len(chunks))
	for i, c := range chunks {
		out[i] = c.present()
	}
	return out
}

func takeBatch(b arrow.RecordBatch, rows []int32) arrow.RecordBatch {
	return array.NewRecordBatch(b.Schema(), kernels.TakeBatch(b.Columns(), rows), int64(len(rows)))
}

// concatBatches puts batches of one schema together.
func concatBatches(parts ...arrow.RecordBatch) arrow.RecordBatch {
	if len(parts) == 1 {
		return parts[0]
	}
	cols := make([]arrow.Array, parts[0].NumCols())
	rows := int64(0)
	for i := range cols {
		pieces := make([]arrow.Array, len(parts))
		for k, p := range parts {
			pieces[k] = p.Column(i)
		}
		cols[i] = kernels.Concat(pieces)
	}
	for _, p := range parts {
		rows += p.NumRows()
	}
	return array.NewRecordBatch(parts[0].Schema(), cols, rows)
}
