package kernels

import (
	"github.com/apache/arrow-go/v18/arrow/decimal128"
)

// DECIMALs of up to 18 digits as 64-bit integers.

// PackDecimals writes the low words of v. most is a bound of the values' magnitudes, at most about twice the greatest.
// ok is false when a value needs more than 63 bits.
func PackDecimals(out []int64, v []decimal128.Num) (most uint64, ok bool) {
	v = v[:len(out)]
	var beyond int64
	var bits uint64
	for i := range out {
		x := int64(v[i].LowBits())
		s := x >> 63
		out[i] = x
		beyond |= v[i].HighBits() ^ s
		bits |= uint64(x ^ s)
	}
	return bits + 1, beyond == 0
}

// MostOf is the bound that PackDecimals gives, of values that are narrow already.
func MostOf(v []int64) uint64 {
	var bits uint64
	for _, x := range v {
		bits |= uint64(x ^ x>>63)
	}
	return bits + 1
}

// UnpackDecimals turns PackDecimals back.
func UnpackDecimals(out []decimal128.Num, v []int64) {
	v = v[:len(out)]
	for i := range out {
		x := v[i]
		out[i] = decimal128.New(x>>63, uint64(x))
	}
}

// MulFitting multiplies where the products are known to fit. An argument of length 1 stands for every row.
func MulFitting(out, a, b []int64) {
	if len(a) == 1 {
		a, b = b, a
	}
	if len(b) == 1 {
		c := b[0]
		a = a[:len(out)]
		for i := range out {
			out[i] = a[i] * c
		}
		return
	}
	a, b = a[:len(out)], b[:len(out)]
	for i := range out {
		out[i] = a[i] * b[i]
	}
}

// SmallSum is a sum of 64-bit integers in two halves, neither of which overflows within 2^31 rows, and the rows.
type SmallSum struct{ Low, High, Rows int64 }

// MaxSmall is for how many groups SumFew is made.
const MaxSmall = 64

// SumFew adds v to the sums of few groups. Two sets of sums take turns, so that rows of one group in a row do not wait for each other.
func SumFew[T Integer](sums *[2][MaxSmall]SmallSum, groups []uint32, v []T) {
	even, odd := &sums[0], &sums[1]
	v = v[:len(groups)]
	i := 0
	for ; i+1 < len(groups); i += 2 {
		x, y := int64(v[i]), int64(v[i+1])
		a, b := &even[groups[i]%MaxSmall], &odd[groups[i+1]%MaxSmall]
		a.Low += x & 0xFFFFFFFF
		a.High += x >> 32
		a.Rows++
		b.Low += y & 0xFFFFFFFF
		b.High += y >> 32
		b.Rows++
	}
	if i < len(groups) {
		x, a := int64(v[i]), &even[groups[i]%MaxSmall]
		a.Low += x & 0xFFFFFFFF
		a.High += x >> 32
		a.Rows++
	}
}
