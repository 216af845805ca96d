package kernels

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Nulls returns n NULLs of a type.
func Nulls(dt arrow.DataType, n int) arrow.Array {
	return array.MakeArrayOfNull(memory.DefaultAllocator, dt, n)
}

// Repeat returns n copies of row i of a.
func Repeat(a arrow.Array, i, n int) arrow.Array {
	idx := make([]int32, n)
	for k := range idx {
		idx[k] = int32(i)
	}
	return Take(a, idx)
}
