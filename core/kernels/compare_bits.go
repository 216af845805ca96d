package kernels

import (
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow"
)

// BitBytes is the number of bytes that n bits take.
func BitBytes(n int) int { return (n + 7) / 8 }

// Valid returns the validity of an array as bits from 0, or nil when it holds no NULL. The result may share the array's
// buffer: it is read only.
func Valid(arr arrow.Array) []byte {
	if arr.DataType().ID() == arrow.NULL {
		return make([]byte, BitBytes(arr.Len()))
	}
	if arr.NullN() == 0 {
		return nil
	}
	return AlignBits(arr.Data().Buffers()[0].Bytes(), arr.Data().Offset(), arr.Len())
}

// IsNull reports whether row i is NULL, also in an array of the type NULL, which has no bitmap.
func IsNull(a arrow.Array, i int) bool { return a.DataType().ID() == arrow.NULL || a.IsNull(i) }

// BoolBits returns the values of a BOOLEAN array as bits from 0; read only.
func BoolBits(arr arrow.Array) []byte {
	d := arr.Data()
	if d.Len() == 0 || d.Buffers()[1] == nil {
		return make([]byte, BitBytes(d.Len()))
	}
	return AlignBits(d.Buffers()[1].Bytes(), d.Offset(), d.Len())
}

// AlignBits returns n bits starting at bit off, as bits from 0. It copies only when off is inside a byte.
func AlignBits(b []byte, off, n int) []byte {
	if off%8 == 0 {
		return b[off/8 : off/8+BitBytes(n)]
	}
	out := make([]byte, BitBytes(n))
	b = b[off/8:]
	shift := uint(off % 8)
	for i := range out {
		out[i] = b[i] >> shift
		if i+1 < len(b) {
			out[i] |= b[i+1] << (8 - shift)
		}
	}
	return out
}

// Bit reports bit i.
func Bit(b []byte, i int) bool { return b[i>>3]&(1<<(i&7)) != 0 }

// SetBit sets bit i.
func SetBit(b []byte, i int) { b[i>>3] |= 1 << (i & 7) }

// ClearBit clears bit i.
func ClearBit(b []byte, i int) { b[i>>3] &^= 1 << (i & 7) }

// CountBits counts the bits set among the first n.
func CountBits(b []byte, n int) int { return countBits(b, n) }

// Ones returns n set bits; the bits behind them are clear.
func Ones(n int) []byte {
	b := make([]byte, BitBytes(n))
	for i := range b {
		b[i] = 0xff
	}
	TrimBits(b, n)
	return b
}

// TrimBits clears the bits behind the first n.
func TrimBits(b []byte, n int) {
	if n%8 != 0 {
		b[len(b)-1] &= 1<<(n%8) - 1
	}
}

// AndBits intersects validities; nil means all set. It returns one of its arguments when the other is nil.
func AndBits(a, b []byte) []byte {
	if a == nil {
		return b
	}
	if b == nil {
		return a
	}
	out := make([]byte, len(a))
	for i := range out {
		out[i] = a[i] & b[i]
	}
	return out
}

// Select returns the numbers of the bits set among the first n, appended to sel.
func Select(sel []int32, b []byte, n int) []int32 {
	i := 0
	for ; i+64 <= n; i += 64 {
		w := uint64(b[i/8]) | uint64(b[i/8+1])<<8 | uint64(b[i/8+2])<<16 | uint64(b[i/8+3])<<24 |
			uint64(b[i/8+4])<<32 | uint64(b[i/8+5])<<40 | uint64(b[i/8+6])<<48 | uint64(b[i/8+7])<<56
		for ; w != 0; w &= w - 1 {
			sel = append(sel, int32(i+bits.TrailingZeros64(w)))
		}
	}
	for ; i < n; i++ {
		if Bit(b, i) {
			sel = append(sel, int32(i))
		}
	}
	return sel
}
