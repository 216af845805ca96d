package types

import (
	"math"
	"math/big"
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
)

// Whole numbers of 128 bits, for HUGEINT, UHUGEINT and DECIMAL. ok is false when the result leaves the range of the type.

// Wide makes a 128-bit number of an int64.
func Wide(v int64) decimal128.Num { return decimal128.New(v>>63, uint64(v)) }

// AddWide adds signed numbers.
func AddWide(a, b decimal128.Num) (sum decimal128.Num, ok bool) {
	lo, carry := bits.Add64(a.LowBits(), b.LowBits(), 0)
	hi, _ := bits.Add64(uint64(a.HighBits()), uint64(b.HighBits()), carry)
	x, y, z := a.HighBits(), b.HighBits(), int64(hi)
	return decimal128.New(z, lo), (x^z)&(y^z) >= 0
}

// SubWide subtracts signed numbers.
func SubWide(a, b decimal128.Num) (diff decimal128.Num, ok bool) {
	lo, borrow := bits.Sub64(a.LowBits(), b.LowBits(), 0)
	hi, _ := bits.Sub64(uint64(a.HighBits()), uint64(b.HighBits()), borrow)
	x, y, z := a.HighBits(), b.HighBits(), int64(hi)
	return decimal128.New(z, lo), (x^y)&(x^z) >= 0
}

// NegWide negates a signed number.
func NegWide(a decimal128.Num) (decimal128.Num, bool) { return SubWide(decimal128.Num{}, a) }

// magnitude is |a| as an unsigned number.
func magnitude(a decimal128.Num) (hi, lo uint64) {
	hi, lo = uint64(a.HighBits()), a.LowBits()
	if a.HighBits() < 0 {
		var borrow uint64
		lo, borrow = bits.Sub64(0, lo, 0)
		hi, _ = bits.Sub64(0, hi, borrow)
	}
	return hi, lo
}

// signed puts a sign on a magnitude.
func signed(neg bool, hi, lo uint64) (decimal128.Num, bool) {
	if !neg {
		return decimal128.New(int64(hi), lo), hi>>63 == 0
	}
	nlo, borrow := bits.Sub64(0, lo, 0)
	nhi, _ := bits.Sub64(0, hi, borrow)
	return decimal128.New(int64(nhi), nlo), hi < 1<<63 || hi == 1<<63 && lo == 0
}

// MulWide multiplies signed numbers.
func MulWide(a, b decimal128.Num) (decimal128.Num, bool) {
	ah, al := magnitude(a)
	bh, bl := magnitude(b)
	hi, lo, ok := mulUnsigned(ah, al, bh, bl)
	n, fits := signed((a.HighBits() < 0) != (b.HighBits() < 0), hi, lo)
	return n, ok && fits
}

func mulUnsigned(ah, al, bh, bl uint64) (hi, lo uint64, ok bool) {
	if ah != 0 && bh != 0 {
		return 0, 0, false
	}
	hi, lo = bits.Mul64(al, bl)
	c1, x := bits.Mul64(ah, bl)
	c2, y := bits.Mul64(al, bh)
	hi, k1 := bits.Add64(hi, x, 0)
	hi, k2 := bits.Add64(hi, y, 0)
	return hi, lo, c1|c2|k1|k2 == 0
}

// DivWide divides signed numbers towards zero; the remainder has the sign of a. b is not zero. ok is false for the one
// quotient that does not fit.
func DivWide(a, b decimal128.Num) (q, r decimal128.Num, ok bool) {
	ah, al := magnitude(a)
	bh, bl := magnitude(b)
	qh, ql, rh, rl := divUnsigned(ah, al, bh, bl)
	q, ok = signed((a.HighBits() < 0) != (b.HighBits() < 0), qh, ql)
	r, _ = signed(a.HighBits() < 0, rh, rl)
	return q, r, ok
}

func divUnsigned(ah, al, bh, bl uint64) (qh, ql, rh, rl uint64) {
	if bh == 0 {
		qh = ah / bl
		ql, rl = bits.Div64(ah%bl, al, bl)
		return qh, ql, 0, rl
	}
	// The quotient fits 64 bits. Divide the normalised numbers' tops; the guess is at most two too large.
	s := uint(bits.LeadingZeros64(bh))
	top := bh<<s | bl>>(64-s)
	if s == 0 {
		top = bh
	}
	guess, _ := bits.Div64(ah>>1, ah<<63|al>>1, top)
	ql = guess >> (63 - s)
	if ql > 0 {
		ql--
	}
	h, l := bits.Mul64(ql, bl)
	h += ql * bh
	rl, borrow := bits.Sub64(al, l, 0)
	rh, _ = bits.Sub64(ah, h, borrow)
	for rh > bh || rh == bh && rl >= bl {
		ql++
		rl, borrow = bits.Sub64(rl, bl, 0)
		rh, _ = bits.Sub64(rh, bh, borrow)
	}
	return 0, ql, rh, rl
}

var pow10 = func() (p [39]decimal128.Num) {
	p[0] = Wide(1)
	for i := 1; i < len(p); i++ {
		p[i], _ = MulWide(p[i-1], Wide(10))
	}
	return p
}()

// Pow10 is 10 to the n, n from 0 to 38.
func Pow10(n int) decimal128.Num { return pow10[n] }

// FitsWidth reports whether a has at most width digits.
func FitsWidth(a decimal128.Num, width int) bool {
	h, l := magnitude(a)
	p := pow10[width]
	return h < uint64(p.HighBits()) || h == uint64(p.HighBits()) && l < p.LowBits()
}

// Rescale changes the number of digits behind the point, rounding half away from zero.
func Rescale(a decimal128.Num, from, to int) (decimal128.Num, bool) {
	switch {
	case from == to:
		return a, true
	case from < to:
		return MulWide(a, pow10[to-from])
	}
	h, l := magnitude(a)
	p := pow10[from-to]
	ph, pl := uint64(p.HighBits()), p.LowBits()
	qh, ql, rh, rl := divUnsigned(h, l, ph, pl)
	// 2r >= p rounds up; p is even, so compare r with p/2.
	hh, hl := ph>>1, pl>>1|ph<<63
	if rh > hh || rh == hh && rl >= hl {
		var c uint64
		ql, c = bits.Add64(ql, 1, 0)
		qh += c
	}
	return signed(a.HighBits() < 0, qh, ql)
}

// AppendWide writes a signed number with scale digits behind the point.
func AppendWide(dst []byte, a decimal128.Num, scale int) []byte {
	if a.HighBits() < 0 {
		dst = append(dst, '-')
	}
	h, l := magnitude(a)
	return appendUnsigned(dst, h, l, scale)
}

func appendUnsigned(dst []byte, h, l uint64, scale int) []byte {
	var buf [48]byte
	at := len(buf)
	digit := func(d byte) {
		if scale > 0 && len(buf)-at == scale {
			at--
			buf[at] = '.'
		}
		at--
		buf[at] = d
	}
	for h != 0 {
		var chunk uint64
		const ten19 = 10_000_000_000_000_000_000
		qh := h / ten19
		l, chunk = bits.Div64(h%ten19, l, ten19)
		h = qh
		for range 19 {
			digit('0' + byte(chunk%10))
			chunk /= 10
		}
	}
	digits := len(buf) - at
	if scale > 0 && digits > scale {
		digits--
	}
	for ; l != 0 || digits <= scale; digits++ {
		digit('0' + byte(l%10))
		l /= 10
	}
	return append(dst, buf[at:]...)
}

// AppendUWide writes an unsigned number, as UHUGEINT holds it.
func AppendUWide(dst []byte, a decimal128.Num) []byte {
	return appendUnsigned(dst, uint64(a.HighBits()), a.LowBits(), 0)
}

// WideToFloat is the DOUBLE nearest to a signed number divided by 10^scale.
func WideToFloat(a decimal128.Num, scale int) float64 {
	h, l := magnitude(a)
	var f float64
	switch {
	case h == 0 && l < 1<<53 && scale <= 22:
		f = float64(l) / exact10[scale] // both exact, so the one division rounds rightly
	case scale == 0:
		f, _ = new(big.Float).SetInt(unsignedBig(h, l)).Float64()
	default:
		f, _ = new(big.Rat).SetFrac(unsignedBig(h, l), pow10[scale].BigInt()).Float64()
	}
	if a.HighBits() < 0 {
		return -f
	}
	return f
}

// UWideToFloat is the DOUBLE nearest to an unsigned number.
func UWideToFloat(a decimal128.Num) float64 {
	f, _ := new(big.Float).SetInt(unsignedBig(uint64(a.HighBits()), a.LowBits())).Float64()
	return f
}

func unsignedBig(h, l uint64) *big.Int {
	n := new(big.Int).SetUint64(h)
	return n.Or(n.Lsh(n, 64), new(big.Int).SetUint64(l))
}

var exact10 = [...]float64{1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22}

// FloatToWide is the whole number f, which must have no fraction. unsigned asks for the range of UHUGEINT.
func FloatToWide(f float64, unsigned bool) (decimal128.Num, bool) {
	if f != f || f >= 0x1p128 || !unsigned && (f >= 0x1p127 || f < -0x1p127) || unsigned && f < 0 {
		return decimal128.Num{}, false
	}
	m := math.Abs(f)
	hi := uint64(m / 0x1p64)
	lo := uint64(m - float64(float64(hi)*0x1p64))
	if unsigned {
		return decimal128.New(int64(hi), lo), true
	}
	return signed(f < 0, hi, lo)
}

// MulUWide multiplies unsigned numbers.
func MulUWide(a, b decimal128.Num) (decimal128.Num, bool) {
	hi, lo, ok := mulUnsigned(uint64(a.HighBits()), a.LowBits(), uint64(b.HighBits()), b.LowBits())
	return decimal128.New(int64(hi), lo), ok
}

// DivUWide divides unsigned numbers; b is not zero.
func DivUWide(a, b decimal128.Num) (q, r decimal128.Num) {
	qh, ql, rh, rl := divUnsigned(uint64(a.HighBits()), a.LowBits(), uint64(b.HighBits()), b.LowBits())
	return decimal128.New(int64(qh), ql), decimal128.New(int64(rh), rl)
}
