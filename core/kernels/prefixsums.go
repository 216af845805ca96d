package kernels

import (
	"math"
	"math/bits"
)

// Wide is the two's complement integer of 128 bits, the low word first.
type Wide = [2]uint64

// diffWide is a − b.
func diffWide(a, b Wide) Wide {
	lo, c := bits.Sub64(a[0], b[0], 0)
	hi, _ := bits.Sub64(a[1], b[1], c)
	return Wide{lo, hi}
}

// FixedSums are running sums of floats as whole multiples of one power of two, which the sum of any run of them is exactly.
type FixedSums struct {
	sums []Wide // of the values before each row
	exp  int
}

// NewFixedSums adds up the values whose bit in valid (nil: all) is set. ok is false where their exponents are too far apart
// for 128 bits, or one is not finite.
func NewFixedSums(vals []float64, valid []byte) (f *FixedSums, ok bool) {
	low, high := math.MaxInt, 0
	for i, x := range vals {
		e := int(math.Float64bits(x) >> 52 & 0x7FF)
		if e == 0x7FF && (valid == nil || Bit(valid, i)) {
			return nil, false
		}
		if x == 0 || valid != nil && !Bit(valid, i) {
			continue
		}
		e = max(e, 1)
		low, high = min(low, e), max(high, e)
	}
	if high == 0 { // nothing but zeros
		low, high = 1, 1
	}
	if high-low+53+bits.Len(uint(len(vals)))+1 > 128 {
		return nil, false
	}
	f = &FixedSums{sums: make([]Wide, len(vals)+1), exp: low - 1075}
	var lo, hi uint64
	sums := f.sums[1:]
	for i, x := range vals {
		b := math.Float64bits(x)
		e, m := int(b>>52&0x7FF), b&mantissaMask
		if e == 0 {
			e = 1
		} else {
			m |= implicitBit
		}
		if m != 0 && (valid == nil || Bit(valid, i)) {
			sh := uint(e - low)
			var vlo, vhi uint64
			if sh < 64 {
				vlo, vhi = m<<sh, m>>1>>(63-sh)
			} else {
				vhi = m << (sh - 64)
			}
			sign := uint64(int64(b) >> 63)
			var c uint64
			lo, c = bits.Add64(lo, vlo^sign, sign&1)
			hi, _ = bits.Add64(hi, vhi^sign, c)
		}
		sums[i] = Wide{lo, hi}
	}
	return f, true
}

// Over is the sum of the rows [from, to), added to sum.
func (f *FixedSums) Over(sum Wide, from, to int32) Wide {
	d := diffWide(f.sums[to], f.sums[from])
	lo, c := bits.Add64(sum[0], d[0], 0)
	hi, _ := bits.Add64(sum[1], d[1], c)
	return Wide{lo, hi}
}

// Quotient rounds a sum over n, once.
func (f *FixedSums) Quotient(sum Wide, n uint64) float64 {
	negative := int64(sum[1]) < 0
	if negative {
		sum = diffWide(Wide{}, sum)
	}
	return quotient(sum[:], n, f.exp, negative)
}

// PrefixCounts counts, for each row and behind the last, the set bits before it.
func PrefixCounts(mask []byte, n int) []int32 {
	out := make([]int32, n+1)
	c := int32(0)
	for i := range n {
		c += int32(mask[i>>3] >> (i & 7) & 1)
		out[i+1] = c
	}
	return out
}

// PrefixSums are running sums of integers that cannot overflow 64 bits: each is of the rows before it.
func PrefixSums[T Integer](v []T, mask []byte) []int64 {
	out := make([]int64, len(v)+1)
	s := int64(0)
	if mask == nil {
		sums := out[1:][:len(v)]
		for i, x := range v {
			s += int64(x)
			sums[i] = s
		}
		return out
	}
	for i, x := range v {
		s += int64(x) & -int64(mask[i>>3]>>(i&7)&1)
		out[i+1] = s
	}
	return out
}
