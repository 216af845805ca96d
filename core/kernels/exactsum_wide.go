package kernels

import (
	"encoding/binary"
	"math"
	"math/big"
	"math/bits"
)

// wideSum is a sum over the whole range of floats, or of their squares: limbs of 32 bits in 64-bit integers, which take
// 2^30 additions before a carry must move on. NaN and the infinities are counted, so that they can be taken back.
type wideSum struct {
	limbs               []int64 // limb i counts 2^(32 i) times the lowest bit
	pending             int     // additions since the last carry
	rows                int64
	nan, posInf, negInf int64
}

const (
	// Positions run to 2045 for floats (2^-1074 to 2^971 as the last bit), and a product of mantissa and weight has 128 bits.
	sumLimbs = (2046+128)/32 + 4
	// A product has its last bit at the sum of two positions.
	productLimbs = (2*2046+192)/32 + 4
)

// add adds or takes away hi:lo at bit position p.
func (w *wideSum) add(p int, hi, lo uint64, negative bool) {
	if w.pending++; w.pending >= 1<<29 {
		w.carry()
	}
	d := uint(p & 31)
	a, b, c := lo<<d, lo>>1>>(63-d)|hi<<d, hi>>1>>(63-d)
	l := w.limbs[p>>5 : p>>5+5]
	if negative {
		l[0] -= int64(a & 0xFFFFFFFF)
		l[1] -= int64(a >> 32)
		l[2] -= int64(b & 0xFFFFFFFF)
		l[3] -= int64(b >> 32)
		l[4] -= int64(c)
		return
	}
	l[0] += int64(a & 0xFFFFFFFF)
	l[1] += int64(a >> 32)
	l[2] += int64(b & 0xFFFFFFFF)
	l[3] += int64(b >> 32)
	l[4] += int64(c)
}

func (w *wideSum) special(x float64, n int64) {
	w.rows += n
	switch {
	case x != x:
		w.nan += n
	case x > 0:
		w.posInf += n
	default:
		w.negInf += n
	}
}

// carry leaves every limb but the last between 0 and 2^32: the one form of a value.
func (w *wideSum) carry() {
	last := len(w.limbs) - 1
	for i := range last {
		w.limbs[i+1] += w.limbs[i] >> 32
		w.limbs[i] &= 0xFFFFFFFF
	}
	w.pending = 0
}

func (w *wideSum) merge(o *wideSum) {
	w.carry()
	o.carry()
	for i, l := range o.limbs {
		w.limbs[i] += l
	}
	w.pending = 1
	w.rows += o.rows
	w.nan += o.nan
	w.posInf += o.posInf
	w.negInf += o.negInf
}

func (w *wideSum) reset() {
	clear(w.limbs)
	*w = wideSum{limbs: w.limbs}
}

// notFinite is the sum when NaN or an infinity is among the values.
func (w *wideSum) notFinite() (float64, bool) {
	switch {
	case w.nan != 0 || w.posInf != 0 && w.negInf != 0:
		return math.NaN(), true
	case w.posInf != 0:
		return math.Inf(1), true
	case w.negInf != 0:
		return math.Inf(-1), true
	}
	return 0, false
}

// words is the magnitude as 64-bit words.
func (w *wideSum) words(buf []uint64) ([]uint64, bool) {
	w.carry()
	negative := w.limbs[len(w.limbs)-1] < 0
	borrow := uint64(0)
	for i := 0; i < len(w.limbs); i += 2 {
		x := uint64(w.limbs[i])
		if i+1 < len(w.limbs) {
			x |= uint64(w.limbs[i+1]) << 32
		}
		if negative {
			x, borrow = bits.Sub64(0, x, borrow)
		}
		buf = append(buf, x)
	}
	if n := len(w.limbs); negative && n&1 != 0 {
		buf[n/2] &= 0xFFFFFFFF // the last limb stood alone
	}
	return buf, negative
}

// quotient is the value, of which the lowest bit is 2^exp, divided by n and rounded once.
func (w *wideSum) quotient(n uint64, exp int) float64 {
	if x, ok := w.notFinite(); ok {
		return x
	}
	var buf [productLimbs/2 + 1]uint64
	words, negative := w.words(buf[:0])
	return quotient(words, n, exp, negative)
}

// integer is the value in units of the lowest bit.
func (w *wideSum) integer() *big.Int {
	var buf [productLimbs/2 + 1]uint64
	words, negative := w.words(buf[:0])
	return bigOf(words, negative)
}

func bigOf(words []uint64, negative bool) *big.Int {
	b := make([]byte, 8*len(words))
	for i, x := range words {
		binary.BigEndian.PutUint64(b[len(b)-8*(i+1):], x)
	}
	v := new(big.Int).SetBytes(b)
	if negative {
		v.Neg(v)
	}
	return v
}

// extent is the limbs from the first to behind the last that is not zero.
func (w *wideSum) extent() (from, to int) {
	to = len(w.limbs)
	for from < to && w.limbs[from] == 0 {
		from++
	}
	for to > from && w.limbs[to-1] == 0 {
		to--
	}
	return from, to
}

// save appends rows, specials and the limbs that are not zero, as varints.
func (w *wideSum) save(dst []byte) []byte {
	w.carry()
	for _, v := range []int64{w.rows, w.nan, w.posInf, w.negInf} {
		dst = binary.AppendVarint(dst, v)
	}
	from, to := w.extent()
	// A negative value has ones up to its last limb: they are written as the limb where they begin.
	if to == len(w.limbs) && w.limbs[to-1] == -1 {
		for to--; to > from && w.limbs[to-1] == 0xFFFFFFFF; to-- {
		}
		dst = binary.AppendUvarint(dst, uint64(from)<<1|1)
	} else {
		dst = binary.AppendUvarint(dst, uint64(from)<<1)
	}
	dst = binary.AppendUvarint(dst, uint64(to-from))
	for _, l := range w.limbs[from:to] {
		dst = binary.AppendVarint(dst, l)
	}
	return dst
}

// load adds what save wrote and returns what follows it.
func (w *wideSum) load(b []byte) []byte {
	next := func() int64 {
		v, n := binary.Varint(b)
		b = b[max(n, 0):]
		return v
	}
	w.rows += next()
	w.nan += next()
	w.posInf += next()
	w.negInf += next()
	u, n := binary.Uvarint(b)
	b = b[n:]
	from, ones := int(u>>1), u&1 != 0
	count, n := binary.Uvarint(b)
	b = b[n:]
	for i := range int(count) {
		w.limbs[from+i] += next()
	}
	if ones { // the value is the limbs read, less 1 at the place behind them
		w.limbs[from+int(count)]--
	}
	w.pending++
	return b
}
