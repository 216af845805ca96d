package kernels

import (
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// fixed returns the values of fixed-width array data as T, which has the data's width and no pointers, its offset applied.
func fixed[T any](d arrow.ArrayData) []T {
	buf := d.Buffers()[1]
	if buf == nil || buf.Len() == 0 {
		return make([]T, d.Len()) // an array of NULLs may come without values
	}
	return cast[T](buf.Bytes())[d.Offset() : d.Offset()+d.Len()]
}

// cast reads bytes as values.
//
// AIDEV-NOTE: unsafe. T holds no pointers; the element count is rounded down, so no byte beyond b is read; buffers from
// foreign memory may be aligned to less than T, which amd64 and arm64 read all the same.
func cast[T any](b []byte) []T {
	var z T
	if len(b) == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(z)))
}

// bytesOf is the inverse of cast.
//
// AIDEV-NOTE: unsafe, as cast.
func bytesOf[T any](v []T) []byte {
	var z T
	if len(v) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), len(v)*int(unsafe.Sizeof(z)))
}

func buffer[T any](v []T) *memory.Buffer { return memory.NewBufferBytes(bytesOf(v)) }

// validBuffer wraps a validity bitmap; nil stays nil.
func validBuffer(valid []byte) *memory.Buffer {
	if valid == nil {
		return nil
	}
	return memory.NewBufferBytes(valid)
}

var zeroOffset = []int32{0}

// spans returns the n+1 offsets of a string, binary, list or map array, its offset applied.
func spans(d arrow.ArrayData) []int32 {
	buf := d.Buffers()[1]
	if d.Len() == 0 || buf == nil || buf.Len() == 0 {
		if d.Len() > 0 {
			return make([]int32, d.Len()+1) // NULLs without offsets
		}
		return zeroOffset
	}
	return cast[int32](buf.Bytes())[d.Offset() : d.Offset()+d.Len()+1]
}

// copyBits sets the bits [at, at+n) of dst, which are clear, to the bits of src from off on.
func copyBits(dst []byte, at int, src []byte, off, n int) {
	i := 0
	if at&7 == off&7 {
		for ; i < n && (at+i)&7 != 0; i++ {
			dst[(at+i)>>3] |= src[(off+i)>>3] >> ((off + i) & 7) & 1 << ((at + i) & 7)
		}
		i += 8 * copy(dst[(at+i)>>3:], src[(off+i)>>3:(off+i)>>3+(n-i)>>3])
	}
	for ; i < n; i++ {
		dst[(at+i)>>3] |= src[(off+i)>>3] >> ((off + i) & 7) & 1 << ((at + i) & 7)
	}
}

// setBits sets the bits [at, at+n) of dst.
func setBits(dst []byte, at, n int) {
	for ; n > 0 && at&7 != 0; at, n = at+1, n-1 {
		dst[at>>3] |= 1 << (at & 7)
	}
	for ; n >= 8; at, n = at+8, n-8 {
		dst[at>>3] = 0xFF
	}
	for ; n > 0; at, n = at+1, n-1 {
		dst[at>>3] |= 1 << (at & 7)
	}
}
