package kernels

import (
	"github.com/apache/arrow-go/v18/arrow"
)

// Merge takes each row from one of several arrays: row i of the result is the next unused row of parts[which[i]], or NULL
// where which[i] is -1. So parts[k] has as many rows as which has ks: the branches of a CASE, each computed over its rows alone.
// dt is the type of all parts; parts may be empty.
func Merge(dt arrow.DataType, parts []arrow.Array, which []int32) arrow.Array {
	rows, starts := cat(dt, parts)
	idx := make([]int32, len(which))
	for i, k := range which {
		idx[i] = -1
		if k >= 0 {
			idx[i] = starts[k]
			starts[k]++
		}
	}
	return Take(rows, idx)
}

// Pick takes row i from row i of parts[which[i]], or NULL where which[i] is -1. All parts have as many rows as which.
func Pick(dt arrow.DataType, parts []arrow.Array, which []int32) arrow.Array {
	rows, starts := cat(dt, parts)
	idx := make([]int32, len(which))
	for i, k := range which {
		idx[i] = -1
		if k >= 0 {
			idx[i] = starts[k] + int32(i)
		}
	}
	return Take(rows, idx)
}

// Scatter puts row i of a at position at[i] of a result of n rows; positions that nothing reaches are NULL.
func Scatter(a arrow.Array, at []int32, n int) arrow.Array {
	idx := make([]int32, n)
	for i := range idx {
		idx[i] = -1
	}
	for i, p := range at {
		idx[p] = int32(i)
	}
	return Take(a, idx)
}

// cat appends the parts and says where each starts.
func cat(dt arrow.DataType, parts []arrow.Array) (arrow.Array, []int32) {
	starts := make([]int32, len(parts))
	at := int32(0)
	for i, p := range parts {
		starts[i] = at
		at += int32(p.Len())
	}
	if len(parts) == 0 {
		return Nulls(dt, 0), starts
	}
	return Concat(parts), starts
}
