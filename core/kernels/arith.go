package kernels

import (
	"math/bits"
	"unsafe"
)

// Arithmetic, element by element. An argument of length 1 stands for every row. Integer kernels report whether any row
// overflowed; which ones, Overflows tells, on the rare path.

// Integer is the whole-number types of up to 64 bits.
type Integer interface {
	~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64
}

// Float is REAL and DOUBLE.
type Float interface{ ~float32 | ~float64 }

// Op is an arithmetic operation.
type Op uint8

// The operations that Overflows knows.
const (
	OpAdd Op = iota
	OpSub
	OpMul
)

func bit(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// Overflows reports whether a op b leaves the type.
func Overflows[T Integer](op Op, a, b T) bool {
	out := []T{0}
	switch op {
	case OpAdd:
		return Add(out, []T{a}, []T{b})
	case OpSub:
		return Sub(out, []T{a}, []T{b})
	}
	return Mul(out, []T{a}, []T{b})
}

// Add adds. The test holds for signed and unsigned numbers: the sum is below a exactly when b is negative.
func Add[T Integer](out, a, b []T) (overflow bool) {
	var bad byte
	if len(a) == 1 {
		a, b = b, a
	}
	if len(b) == 1 {
		c := b[0]
		a = a[:len(out)]
		for i := range out {
			x := a[i]
			s := x + c
			out[i] = s
			bad |= bit((s < x) != (c < 0))
		}
		return bad != 0
	}
	a, b = a[:len(out)], b[:len(out)]
	for i := range out {
		x, y := a[i], b[i]
		s := x + y
		out[i] = s
		bad |= bit((s < x) != (y < 0))
	}
	return bad != 0
}

// Sub subtracts.
func Sub[T Integer](out, a, b []T) (overflow bool) {
	var bad byte
	n := len(out)
	switch {
	case len(b) == 1:
		c := b[0]
		a = a[:n]
		for i := range out {
			x := a[i]
			d := x - c
			out[i] = d
			bad |= bit((d > x) != (c < 0))
		}
	case len(a) == 1:
		c := a[0]
		b = b[:n]
		for i := range out {
			y := b[i]
			d := c - y
			out[i] = d
			bad |= bit((d > c) != (y < 0))
		}
	default:
		a, b = a[:n], b[:n]
		for i := range out {
			x, y := a[i], b[i]
			d := x - y
			out[i] = d
			bad |= bit((d > x) != (y < 0))
		}
	}
	return bad != 0
}

// Mul multiplies.
func Mul[T Integer](out, a, b []T) (overflow bool) {
	var z T
	if unsafe.Sizeof(z) < 8 { // AIDEV-NOTE: unsafe.Sizeof reads no memory; the branch is decided when T is
		return mulNarrow(out, a, b)
	}
	if z--; z > 0 {
		return mulUnsigned(out, a, b)
	}
	return mulSigned(out, a, b)
}

func mulNarrow[T Integer](out, a, b []T) bool {
	var bad byte
	if len(a) == 1 {
		a, b = b, a
	}
	if len(b) == 1 {
		c := int64(b[0])
		a = a[:len(out)]
		for i := range out {
			p := int64(a[i]) * c
			out[i] = T(p)
			bad |= bit(int64(T(p)) != p)
		}
		return bad != 0
	}
	a, b = a[:len(out)], b[:len(out)]
	for i := range out {
		p := int64(a[i]) * int64(b[i])
		out[i] = T(p)
		bad |= bit(int64(T(p)) != p)
	}
	return bad != 0
}

func mulSigned[T Integer](out, a, b []T) bool {
	var bad uint64
	if len(a) == 1 {
		a, b = b, a
	}
	if len(b) == 1 {
		c := int64(b[0])
		a = a[:len(out)]
		for i := range out {
			hi, lo := mulHigh(int64(a[i]), c)
			out[i] = T(lo)
			bad |= uint64(hi ^ lo>>63)
		}
		return bad != 0
	}
	a, b = a[:len(out)], b[:len(out)]
	for i := range out {
		hi, lo := mulHigh(int64(a[i]), int64(b[i]))
		out[i] = T(lo)
		bad |= uint64(hi ^ lo>>63)
	}
	return bad != 0
}

// mulHigh is the signed product of 128 bits.
func mulHigh(x, y int64) (hi, lo int64) {
	h, l := bits.Mul64(uint64(x), uint64(y))
	return int64(h) - x>>63&y - y>>63&x, int64(l)
}

func mulUnsigned[T Integer](out, a, b []T) bool {
	var bad uint64
	am, bm := Mask(a), Mask(b)
	for i := range out {
		hi, lo := bits.Mul64(uint64(a[i&am]), uint64(b[i&bm]))
		out[i] = T(lo)
		bad |= hi
	}
	return bad != 0
}

// Mask makes an index reach a slice of one value or of all rows alike: v[i&Mask(v)].
func Mask[T any](v []T) int {
	if len(v) == 1 {
		return 0
	}
	return -1
}

// AddFloat adds.
func AddFloat[T Float](out, a, b []T) {
	n := len(out)
	switch {
	case len(b) == 1:
		c := b[0]
		a = a[:n]
		for i := range out {
			out[i] = a[i] + c
		}
	case len(a) == 1:
		c := a[0]
		b = b[:n]
		for i := range out {
			out[i] = c + b[i]
		}
	default:
		a, b = a[:n], b[:n]
		for i := range out {
			out[i] = a[i] + b[i]
		}
	}
}

// SubFloat subtracts.
func SubFloat[T Float](out, a, b []T) {
	n := len(out)
	switch {
	case len(b) == 1:
		c := b[0]
		a = a[:n]
		for i := range out {
			out[i] = a[i] - c
		}
	case len(a) == 1:
		c := a[0]
		b = b[:n]
		for i := range out {
			out[i] = c - b[i]
		}
	default:
		a, b = a[:n], b[:n]
		for i := range out {
			out[i] = a[i] - b[i]
		}
	}
}

// MulFloat multiplies.
func MulFloat[T Float](out, a, b []T) {
	n := len(out)
	switch {
	case len(b) == 1:
		c := b[0]
		a = a[:n]
		for i := range out {
			out[i] = a[i] * c
		}
	case len(a) == 1:
		c := a[0]
		b = b[:n]
		for i := range out {
			out[i] = c * b[i]
		}
	default:
		a, b = a[:n], b[:n]
		for i := range out {
			out[i] = a[i] * b[i]
		}
	}
}

// DivFloat divides; by zero it gives an infinity or NaN, as IEEE 754 does.
func DivFloat[T Float](out, a, b []T) {
	n := len(out)
	switch {
	case len(b) == 1:
		c := b[0]
		a = a[:n]
		for i := range out {
			out[i] = a[i] / c
		}
	case len(a) == 1:
		c := a[0]
		b = b[:n]
		for i := range out {
			out[i] = c / b[i]
		}
	default:
		a, b = a[:n], b[:n]
		for i := range out {
			out[i] = a[i] / b[i]
		}
	}
}
