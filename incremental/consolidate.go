package incremental

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/rowkey"
	"github.com/riverbed/riverbed/core/types"
)

// concat joins deltas to one; weights are nil when none has any.
func concat(deltas []flow.Delta) Batch {
	if len(deltas) == 1 {
		return batchOf(deltas[0])
	}
	var out Batch
	if len(deltas) == 0 {
		return out
	}
	weighted := false
	for _, d := range deltas {
		out.N += d.Rows()
		weighted = weighted || d.Weighted()
	}
	for c := range deltas[0].Columns() {
		parts := make([]arrow.Array, len(deltas))
		for i, d := range deltas {
			parts[i] = d.Columns()[c]
		}
		out.Cols = append(out.Cols, kernels.Concat(parts))
	}
	if weighted {
		out.W = make([]int64, 0, out.N)
		for _, d := range deltas {
			if w := d.Weights(); w != nil {
				out.W = append(out.W, w...)
			} else {
				out.W = append(out.W, ones(d.Rows())...)
			}
		}
	}
	return out
}

// consolidate sums equal rows and drops those whose weights cancel. The result has an order of its own, retractions
// first, so that it does not depend on parallelism.
func consolidate(ts []types.Type, deltas []flow.Delta) Batch {
	in := concat(deltas)
	if in.W == nil && in.N > 0 {
		in.W = ones(in.N)
	}
	if in.N == 0 {
		return in
	}
	keys := rowkey.Encode(in.Cols, ts, exactKeys(len(ts)), in.N)
	order := make([]sortable, in.N)
	for i := range order {
		order[i] = sortable{prefix(keys.Row(i)), int32(i)}
	}
	slices.SortFunc(order, func(a, b sortable) int {
		if c := cmp.Compare(a.prefix, b.prefix); c != 0 {
			return c
		}
		if c := bytes.Compare(keys.Row(int(a.row)), keys.Row(int(b.row))); c != 0 {
			return c
		}
		return cmp.Compare(a.row, b.row)
	})
	var minus, plus []int32
	var minusW, plusW []int64
	for i := 0; i < len(order); {
		first := order[i].row
		sum := int64(0)
		for ; i < len(order) && bytes.Equal(keys.Row(int(order[i].row)), keys.Row(int(first))); i++ {
			sum += in.W[order[i].row]
		}
		switch {
		case sum < 0:
			minus, minusW = append(minus, first), append(minusW, sum)
		case sum > 0:
			plus, plusW = append(plus, first), append(plusW, sum)
		}
	}
	rows := append(minus, plus...)
	return Batch{Cols: kernels.TakeBatch(in.Cols, rows), N: len(rows), W: append(minusW, plusW...)}
}

type sortable struct {
	prefix uint64
	row    int32
}

func prefix(key []byte) uint64 {
	if len(key) >= 8 {
		return binary.BigEndian.Uint64(key)
	}
	var b [8]byte
	copy(b[:], key)
	return binary.BigEndian.Uint64(b[:])
}
