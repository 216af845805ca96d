package kernels

import (
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Relabel gives an array another type of the same layout; the buffers are shared.
func Relabel(a arrow.Array, dt arrow.DataType) arrow.Array {
	d := a.Data()
	return array.MakeFromData(array.NewData(dt, d.Len(), d.Buffers(), d.Children(), d.NullN(), d.Offset()))
}

// WithValid gives an array another validity, bits from row 0; the values are shared.
func WithValid(a arrow.Array, valid []byte) arrow.Array {
	d := a.Data()
	if d.DataType().ID() == arrow.NULL {
		return a
	}
	n := d.Len()
	nulls := n - countBits(valid, n)
	if off := d.Offset(); off != 0 {
		moved := make([]byte, BitBytes(off+n))
		copyBits(moved, off, valid, 0, n)
		valid = moved
	}
	buffers := slices.Clone(d.Buffers())
	if buffers[0] = nil; nulls > 0 {
		buffers[0] = memory.NewBufferBytes(valid)
	}
	return array.MakeFromData(array.NewData(d.DataType(), n, buffers, d.Children(), nulls, d.Offset()))
}

// Widen converts whole numbers to a wider type, or to a float.
func Widen[F, T Integer | Float](out []T, v []F) {
	v = v[:len(out)]
	for i := range out {
		out[i] = T(v[i])
	}
}

// Narrow converts whole numbers and reports whether any changed.
func Narrow[F, T Integer](out []T, v []F) (outside bool) {
	var bad byte
	v = v[:len(out)]
	for i := range out {
		x := v[i]
		y := T(x)
		out[i] = y
		bad |= bit(F(y) != x || (y < 0) != (x < 0))
	}
	return bad != 0
}
