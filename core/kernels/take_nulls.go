package kernels

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Nulls returns n NULLs of a type, whatever it is made of. Arrow's own MakeArrayOfNull panics at a type that holds NULL.
func Nulls(dt arrow.DataType, n int) arrow.Array { return array.MakeFromData(nullData(dt, n)) }

func nullData(dt arrow.DataType, n int) arrow.ArrayData {
	var valid *memory.Buffer
	if n > 0 {
		valid = memory.NewBufferBytes(make([]byte, BitBytes(n)))
	}
	switch t := dt.(type) {
	case *arrow.NullType:
		return array.NewData(dt, n, []*memory.Buffer{nil}, nil, n, 0)
	case *arrow.StructType:
		children := make([]arrow.ArrayData, t.NumFields())
		for i := range children {
			children[i] = nullData(t.Field(i).Type, n)
		}
		return array.NewData(dt, n, []*memory.Buffer{valid}, children, n, 0)
	case *arrow.ListType:
		return array.NewData(dt, n, []*memory.Buffer{valid, buffer(make([]int32, n+1))}, []arrow.ArrayData{nullData(t.Elem(), 0)}, n, 0)
	case *arrow.MapType:
		return array.NewData(dt, n, []*memory.Buffer{valid, buffer(make([]int32, n+1))}, []arrow.ArrayData{nullData(t.Elem(), 0)}, n, 0)
	}
	a := array.MakeArrayOfNull(memory.DefaultAllocator, dt, n) // a type without parts
	return a.Data()
}

// Repeat returns n copies of row i of a.
func Repeat(a arrow.Array, i, n int) arrow.Array {
	idx := make([]int32, n)
	for k := range idx {
		idx[k] = int32(i)
	}
	return Take(a, idx)
}
