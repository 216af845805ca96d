package kernels

import (
	"bytes"
	"container/heap"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/rowkey"
	"github.com/riverbed/riverbed/core/types"
)

// TopN keeps the encoded keys of the first limit rows seen so far, so that a scan can drop the rows that cannot be among
// the first: what Offer returns, over all batches, holds the answer, and is little more than that for data in any order
// but the reverse one.
type TopN struct {
	limit int
	types []types.Type
	enc   *rowkey.Encoder
	keep  keyHeap
}

// NewTopN orders columns of these types by keys, which may be shorter.
func NewTopN(ts []types.Type, keys []SortKey, limit int) *TopN {
	ks := make([]rowkey.Key, len(keys))
	for i, k := range keys {
		ks[i] = rowkey.Key{Desc: k.Desc, NullsFirst: k.NullsFirst, Exact: k.Exact}
	}
	return &TopN{limit: limit, types: ts, enc: rowkey.NewEncoder(ts, ks)}
}

// Offer returns the rows of a batch that were among the first limit rows when they came.
func (t *TopN) Offer(cols []arrow.Array, n int) []int32 {
	if t.limit <= 0 {
		return nil
	}
	var sel []int32
	rows := t.enc.Encode(cols, n)
	for i := range n {
		k := rows.Row(i)
		switch {
		case len(t.keep) < t.limit:
			heap.Push(&t.keep, bytes.Clone(k))
		case bytes.Compare(k, t.keep[0]) < 0:
			t.keep[0] = append(t.keep[0][:0], k...)
			heap.Fix(&t.keep, 0)
		default:
			continue
		}
		sel = append(sel, int32(i))
	}
	return sel
}

// keyHeap has the greatest key at its top.
type keyHeap [][]byte

func (h keyHeap) Len() int           { return len(h) }
func (h keyHeap) Less(i, j int) bool { return bytes.Compare(h[i], h[j]) > 0 }
func (h keyHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *keyHeap) Push(x any)        { *h = append(*h, x.([]byte)) }
func (h *keyHeap) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}
