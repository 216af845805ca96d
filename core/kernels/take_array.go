package kernels

import (
	"math/bits"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Values returns the values of a fixed-width array as T, which must have the array's width and no pointers, its offset
// applied: a DATE may be read as int32, a TIMESTAMP as int64. It is a view: read only.
func Values[T any](a arrow.Array) []T { return fixed[T](a.Data()) }

// Spans returns the n+1 offsets and the bytes of a string or binary array, the array's own offset applied; read only.
func Spans(a arrow.Array) (offs []int32, data []byte) {
	d := a.Data()
	if b := d.Buffers()[2]; b != nil {
		data = b.Bytes()
	}
	return spans(d), data
}

// ListSpans returns the n+1 offsets of a list or map array into its child, the array's own offset applied; read only.
func ListSpans(a arrow.Array) []int32 { return spans(a.Data()) }

// NewFixed makes an array of a fixed-width type over values and a validity bitmap (nil: no NULLs). It takes both over.
func NewFixed[T any](dt arrow.DataType, v []T, valid []byte) arrow.Array {
	return newArray(dt, len(v), valid, buffer(v))
}

// NewBytes makes a string or binary array over its offsets, bytes and validity bitmap (nil: no NULLs). It takes them over.
func NewBytes(dt arrow.DataType, offs []int32, data, valid []byte) arrow.Array {
	return newArray(dt, len(offs)-1, valid, buffer(offs), memory.NewBufferBytes(data))
}

// NewBools makes a boolean array over bitmaps of values and validity (nil: no NULLs). It takes both over.
func NewBools(n int, vals, valid []byte) *array.Boolean {
	return newArray(arrow.FixedWidthTypes.Boolean, n, valid, memory.NewBufferBytes(vals)).(*array.Boolean)
}

func newArray(dt arrow.DataType, n int, valid []byte, bufs ...*memory.Buffer) arrow.Array {
	nulls := 0
	if valid != nil {
		nulls = n - countBits(valid, n)
	}
	return array.MakeFromData(array.NewData(dt, n, append([]*memory.Buffer{validBuffer(valid)}, bufs...), nil, nulls, 0))
}

// countBits counts the set bits of the first n.
func countBits(b []byte, n int) int {
	c, i := 0, 0
	for ; i+64 <= n; i += 64 {
		c += bits.OnesCount64(*(*uint64)(unsafe.Pointer(&b[i>>3 : i>>3+8][0]))) // AIDEV-NOTE: unsafe; the reslice checks the bounds
	}
	for ; i < n; i++ {
		c += int(b[i>>3] >> (i & 7) & 1)
	}
	return c
}

// Slice returns rows from to to of a, sharing its buffers.
func Slice(a arrow.Array, from, to int) arrow.Array { return array.NewSlice(a, int64(from), int64(to)) }
