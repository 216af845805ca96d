package incremental

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/plan"
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

// settledOnce reports whether what n emits in a step is consolidated as it is: its operator judges every row once, in Advance,
// against what it had shown, and what stands above keeps rows apart.
func settledOnce(n plan.Node) bool {
	switch n := n.(type) {
	case *plan.Aggregate, *plan.TopN, *plan.GroupTopN:
		return true
	case *plan.SetOp:
		return n.Kind != plan.Union || !n.All
	case *plan.Filter:
		return settledOnce(n.Input)
	case *plan.Project:
		kept := plan.ColSet{}
		for _, it := range n.Items {
			if c, ok := it.Expr.(*expr.Col); ok {
				kept[c.ID] = true
			}
		}
		return plan.Subset(plan.SetOf(n.Input.Columns()), kept) && settledOnce(n.Input)
	}
	return false
}

// retractionsFirst joins deltas of which no two rows are equal. Most have their retractions first already, and are put together piece by
// piece.
func retractionsFirst(deltas []flow.Delta) Batch {
	var minus, plus []flow.Delta
	for _, d := range deltas {
		n, first := d.Rows(), firstInsert(d.Weights())
		if first < 0 {
			return sortedBySign(concat(deltas))
		}
		if first > 0 {
			minus = append(minus, flow.Delta{Batch: d.Batch.NewSlice(0, int64(first))})
		}
		if first < n {
			plus = append(plus, flow.Delta{Batch: d.Batch.NewSlice(int64(first), int64(n))})
		}
	}
	if len(deltas) == 1 {
		return batchOf(deltas[0])
	}
	return concat(append(minus, plus...))
}

// firstInsert is where the inserts begin; -1: some retraction stands behind one.
func firstInsert(w []int64) int {
	first := slices.IndexFunc(w, func(w int64) bool { return w >= 0 })
	switch {
	case first < 0:
		return len(w)
	case slices.ContainsFunc(w[first:], func(w int64) bool { return w < 0 }):
		return -1
	}
	return first
}

// sortedBySign puts the retractions first.
func sortedBySign(in Batch) Batch {
	var minus, plus []int32
	for i, w := range in.W {
		if w < 0 {
			minus = append(minus, int32(i))
		} else {
			plus = append(plus, int32(i))
		}
	}
	return in.take(append(minus, plus...))
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
	order := sortedRows(keys, in.N)
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

// Consolidated sums the changes of several steps: equal rows once, with their weights, those that cancel not at all. fields are the
// columns without the weight.
func Consolidated(fields []types.Field, deltas []flow.Delta) arrow.RecordBatch {
	ts := make([]types.Type, len(fields))
	for i, f := range fields {
		ts[i] = f.Type
	}
	b := consolidate(ts, deltas)
	if b.N == 0 {
		return nil
	}
	weights := kernels.NewFixed(arrow.PrimitiveTypes.Int64, b.W, nil)
	return array.NewRecordBatch(flow.WithWeights(types.ArrowSchema(fields)), append(b.Cols, weights), int64(b.N))
}

// sortable is a row with the eight bytes of its key that follow what all keys begin with.
type sortable struct {
	prefix uint64
	row    int32
}

// radixFrom is the number of rows from which counting bytes beats comparing.
const radixFrom = 256

// sortedRows orders rows by their keys, equal ones by their position.
func sortedRows(keys rowkey.Rows, n int) []sortable {
	first := keys.Row(0)
	common := len(first)
	for i := 1; i < n; i++ {
		k := keys.Row(i)
		for common = min(common, len(k)); !bytes.Equal(k[:common], first[:common]); {
			common--
		}
	}
	order := make([]sortable, n)
	for i := range order {
		order[i] = sortable{prefix(keys.Row(i)[common:]), int32(i)}
	}
	rest := func(a, b sortable) int {
		if c := bytes.Compare(keys.Row(int(a.row)), keys.Row(int(b.row))); c != 0 {
			return c
		}
		return cmp.Compare(a.row, b.row)
	}
	if n < radixFrom {
		slices.SortFunc(order, func(a, b sortable) int {
			if c := cmp.Compare(a.prefix, b.prefix); c != 0 {
				return c
			}
			return rest(a, b)
		})
		return order
	}
	order = radix(order)
	for i := 0; i < n; {
		j := i + 1
		for j < n && order[j].prefix == order[i].prefix {
			j++
		}
		if j-i > 1 {
			slices.SortFunc(order[i:j], rest)
		}
		i = j
	}
	return order
}

// radix sorts by prefix, byte by byte from the last; what is equal keeps its order.
func radix(from []sortable) []sortable {
	var counts [8][256]int32
	for _, s := range from {
		for d := range counts {
			counts[d][byte(s.prefix>>(8*d))]++
		}
	}
	to := make([]sortable, len(from))
	for d := range counts {
		at := &counts[d]
		if at[byte(from[0].prefix>>(8*d))] == int32(len(from)) {
			continue // one byte for all
		}
		sum := int32(0)
		for b, n := range at {
			at[b], sum = sum, sum+n
		}
		for _, s := range from {
			b := byte(s.prefix >> (8 * d))
			to[at[b]] = s
			at[b]++
		}
		from, to = to, from
	}
	return from
}

func prefix(key []byte) uint64 {
	if len(key) >= 8 {
		return binary.BigEndian.Uint64(key)
	}
	var b [8]byte
	copy(b[:], key)
	return binary.BigEndian.Uint64(b[:])
}
