package kernels

import (
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
)

// DECIMAL and HUGEINT arithmetic on their 128-bit integers. An argument of length 1 stands for every row. Each kernel
// reports whether any row left the 128 bits; a DECIMAL's own width is checked by TooWide.

// AddWide adds.
func AddWide(out, a, b []decimal128.Num) (overflow bool) {
	var bad int64
	am, bm := Mask(a), Mask(b)
	for i := range out {
		x, y := a[i&am], b[i&bm]
		lo, carry := bits.Add64(x.LowBits(), y.LowBits(), 0)
		h, _ := bits.Add64(uint64(x.HighBits()), uint64(y.HighBits()), carry)
		hi := int64(h)
		out[i] = decimal128.New(hi, lo)
		bad |= (x.HighBits() ^ hi) & (y.HighBits() ^ hi)
	}
	return bad < 0
}

// SubWide subtracts.
func SubWide(out, a, b []decimal128.Num) (overflow bool) {
	var bad int64
	am, bm := Mask(a), Mask(b)
	for i := range out {
		x, y := a[i&am], b[i&bm]
		lo, borrow := bits.Sub64(x.LowBits(), y.LowBits(), 0)
		h, _ := bits.Sub64(uint64(x.HighBits()), uint64(y.HighBits()), borrow)
		hi := int64(h)
		out[i] = decimal128.New(hi, lo)
		bad |= (x.HighBits() ^ y.HighBits()) & (x.HighBits() ^ hi)
	}
	return bad < 0
}

// MulWide multiplies; slow is asked where a factor does not fit 64 bits.
func MulWide(out, a, b []decimal128.Num, slow func(x, y decimal128.Num) (decimal128.Num, bool)) (overflow bool) {
	am, bm := Mask(a), Mask(b)
	for i := range out {
		x, y := a[i&am], b[i&bm]
		xl, yl := int64(x.LowBits()), int64(y.LowBits())
		if x.HighBits() == xl>>63 && y.HighBits() == yl>>63 {
			hi, lo := mulHigh(xl, yl)
			out[i] = decimal128.New(hi, uint64(lo))
			continue
		}
		p, ok := slow(x, y)
		out[i] = p
		overflow = overflow || !ok
	}
	return overflow
}

// MulNarrow multiplies numbers that all fit 64 bits.
func MulNarrow(out, a, b []decimal128.Num) {
	am, bm := Mask(a), Mask(b)
	for i := range out {
		hi, lo := mulHigh(int64(a[i&am].LowBits()), int64(b[i&bm].LowBits()))
		out[i] = decimal128.New(hi, uint64(lo))
	}
}

// MulInts multiplies whole numbers by DECIMALs that fit 64 bits.
func MulInts(out []decimal128.Num, a []int64, b []decimal128.Num) {
	am, bm := Mask(a), Mask(b)
	if bm == 0 && am != 0 {
		y := int64(b[0].LowBits())
		a = a[:len(out)]
		for i := range out {
			hi, lo := mulHigh(a[i], y)
			out[i] = decimal128.New(hi, uint64(lo))
		}
		return
	}
	for i := range out {
		hi, lo := mulHigh(a[i&am], int64(b[i&bm].LowBits()))
		out[i] = decimal128.New(hi, uint64(lo))
	}
}

// TooWide reports whether a value is not between -limit and limit, both exclusive.
func TooWide(v []decimal128.Num, limit decimal128.Num) bool {
	var bad byte
	lh, ll := uint64(limit.HighBits()), limit.LowBits()
	for _, x := range v {
		s := uint64(x.HighBits() >> 63)
		lo, borrow := bits.Sub64(x.LowBits()^s, s, 0) // |x|
		hi, _ := bits.Sub64(uint64(x.HighBits())^s, s, borrow)
		_, borrow = bits.Sub64(lo, ll, 0)
		_, borrow = bits.Sub64(hi, lh, borrow)
		bad |= byte(1 - borrow)
	}
	return bad != 0
}
