package exec

import (
	"cmp"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/kernels"
)

func sortBySeq(ms []*flow.Morsel) {
	slices.SortStableFunc(ms, func(a, b *flow.Morsel) int { return cmp.Compare(a.Seq, b.Seq) })
}

// joinMorsels concatenates batches column by column. It drops each column's parts as soon as they are joined, so that not all
// of them stand beside the result.
func joinMorsels(s *arrow.Schema, ms []*flow.Morsel) collected {
	out := collected{cols: make([]arrow.Array, s.NumFields())}
	parts := make([][]arrow.Array, len(out.cols))
	for _, m := range ms {
		out.rows += int(m.Batch.NumRows())
		for c := range parts {
			parts[c] = append(parts[c], m.Batch.Column(c))
		}
	}
	clear(ms)
	for c := range out.cols {
		if len(parts[c]) == 0 {
			out.cols[c] = kernels.Nulls(s.Field(c).Type, 0)
			continue
		}
		out.cols[c] = kernels.Concat(parts[c])
		parts[c] = nil
	}
	return out
}

// batchBytes is the memory of a batch's buffers, slices counted as what they show.
func batchBytes(b arrow.RecordBatch) int64 {
	var n int64
	for _, c := range b.Columns() {
		n += arrayBytes(c.Data())
	}
	return n
}

func columnBytes(b arrow.RecordBatch, cols []int) int64 {
	var n int64
	for _, c := range cols {
		n += arrayBytes(b.Column(c).Data())
	}
	return n
}

func arrayBytes(d arrow.ArrayData) int64 {
	var n int64
	if f, ok := d.DataType().(arrow.FixedWidthDataType); ok {
		n += int64(d.Len()*f.BitWidth()) / 8
	} else {
		for _, b := range d.Buffers() {
			if b != nil {
				n += int64(b.Len())
			}
		}
	}
	for _, c := range d.Children() {
		n += arrayBytes(c)
	}
	return n
}
