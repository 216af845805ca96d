package kernels

import (
	"math"
	"math/big"
	"math/bits"
)

// Moments keeps rows, the exact sum and the exact sum of squares of floats, per group: what variances are made of. A
// variance is the rounded value of an exact fraction, a standard deviation that of its exact square root.
type Moments struct {
	Sums    FloatSums
	squares []squareAcc
	wide    []wideSum
	free    []uint32
}

// squareAcc is a window of 256 bits: the integer words, two's complement, times 2^(2(base-1075)), where the positions
// count in halves of base: field is the lowest bit's position in the wide sum plus squareBias.
type squareAcc struct {
	words [4]uint64
	field int32 // 0: empty; -1: words[0] is an index into wide
}

const (
	squareBias   = 256
	squareLow    = 50
	squareSpread = 101 // above it 106 bits of a square, 48 to carry into, a sign
)

// Resize makes room for n groups.
func (m *Moments) Resize(n int) {
	m.Sums.Resize(n)
	if n > len(m.squares) {
		m.squares = append(m.squares, make([]squareAcc, n-len(m.squares))...)
	}
}

// Bytes is the memory held.
func (m *Moments) Bytes() int64 {
	return m.Sums.Bytes() + int64(40*cap(m.squares)+len(m.wide)*(8*squareLimbs+64))
}

// Add is FloatSums.Add, for both sums.
func (m *Moments) Add(groups []uint32, vals []float64, valid []byte, weights []int64) {
	m.Sums.Add(groups, vals, valid, weights)
	g, w := uint32(0), int64(1)
	for i, x := range vals {
		if valid != nil && !Bit(valid, i) {
			continue
		}
		if groups != nil {
			g = groups[i]
		}
		if weights != nil {
			w = weights[i]
		}
		m.addSquare(&m.squares[g], x, w)
	}
}

func (m *Moments) addSquare(a *squareAcc, x float64, w int64) {
	b := math.Float64bits(x)
	e, f := int(b>>52&0x7FF), b&mantissaMask
	switch {
	case e == 0x7FF:
		return // the sum knows
	case e == 0:
		e = 1
	default:
		f |= implicitBit
	}
	p := 2 * (e - 1)
	hi, lo := bits.Mul64(f, f)
	if w == 1 || w == -1 {
		m.addAt(a, p, hi, lo, w < 0)
		return
	}
	mag := magnitude(w)
	h1, l1 := bits.Mul64(lo, mag)
	h2, l2 := bits.Mul64(hi, mag)
	m.addAt(a, p, h1, l1, w < 0)
	m.addAt(a, p+64, h2, l2, w < 0)
}

// addAt adds or takes away hi:lo at position p.
func (m *Moments) addAt(a *squareAcc, p int, hi, lo uint64, negative bool) {
	if hi|lo == 0 {
		return
	}
	if a.field < 0 {
		m.wide[a.words[0]].add(p, hi, lo, negative)
		return
	}
	if a.field == 0 {
		a.field = int32(p - squareLow + squareBias)
	}
	sh := p + squareBias - int(a.field)
	if sh < 0 || sh+len128(hi, lo) > squareSpread+106 {
		m.widen(a).add(p, hi, lo, negative)
		return
	}
	i, d := sh>>6, uint(sh&63)
	var w [6]uint64
	w[i], w[i+1], w[i+2] = lo<<d, lo>>1>>(63-d)|hi<<d, hi>>1>>(63-d)
	var c uint64
	for k := range a.words {
		if negative {
			a.words[k], c = bits.Sub64(a.words[k], w[k], c)
		} else {
			a.words[k], c = bits.Add64(a.words[k], w[k], c)
		}
	}
}

func (a *squareAcc) abs() ([4]uint64, bool) {
	w := a.words
	if int64(w[3]) >= 0 {
		return w, false
	}
	var c uint64
	for k := range w {
		w[k], c = bits.Sub64(0, w[k], c)
	}
	return w, true
}

func (m *Moments) widen(a *squareAcc) *wideSum {
	if a.field < 0 {
		return &m.wide[a.words[0]]
	}
	var at uint32
	if n := len(m.free); n > 0 {
		at = m.free[n-1]
		m.free = m.free[:n-1]
	} else {
		at = uint32(len(m.wide))
		m.wide = append(m.wide, wideSum{limbs: make([]int64, squareLimbs)})
	}
	w := &m.wide[at]
	if a.field != 0 {
		mag, negative := a.abs()
		for k, x := range mag {
			q := int(a.field) - squareBias + 64*k
			if q < 0 {
				x, q = x>>uint(-q), 0 // zeros: nothing is below the smallest square
			}
			w.add(q, 0, x, negative)
		}
	}
	*a = squareAcc{field: -1}
	a.words[0] = uint64(at)
	return w
}

// Merge adds o's group i to this one's group into[i].
func (m *Moments) Merge(o *Moments, into []uint32) {
	m.Sums.Merge(&o.Sums, into)
	for i := range o.squares[:min(len(into), len(o.squares))] {
		m.mergeOne(&m.squares[into[i]], o, &o.squares[i])
	}
}

func (m *Moments) mergeOne(a *squareAcc, o *Moments, b *squareAcc) {
	switch {
	case b.field < 0:
		m.widen(a).merge(&o.wide[b.words[0]])
	case b.field == 0:
	case a.field == 0:
		*a = *b
	default:
		mag, negative := b.abs()
		for k, x := range mag {
			if x != 0 {
				p := int(b.field) - squareBias + 64*k
				if p < 0 {
					x, p = x>>uint(-p), 0
				}
				m.addAt(a, p, 0, x, negative)
			}
		}
	}
}

// Reset empties groups.
func (m *Moments) Reset(groups []uint32) {
	m.Sums.Reset(groups)
	for _, g := range groups {
		if a := &m.squares[g]; a.field < 0 {
			m.wide[a.words[0]].reset()
			m.free = append(m.free, uint32(a.words[0]))
		}
		m.squares[g] = squareAcc{}
	}
}

// Save appends a group as bytes.
func (m *Moments) Save(dst []byte, g uint32) []byte {
	var tmp Moments
	tmp.Resize(1)
	tmp.Sums.mergeOne(&tmp.Sums.acc[0], &m.Sums, &m.Sums.acc[g])
	tmp.mergeOne(&tmp.squares[0], m, &m.squares[g])
	dst = tmp.Sums.widen(&tmp.Sums.acc[0]).save(dst)
	return tmp.widen(&tmp.squares[0]).save(dst)
}

// Load adds what Save wrote to a group.
func (m *Moments) Load(g uint32, saved []byte) {
	rest := m.Sums.Load(g, saved)
	w := wideSum{limbs: make([]int64, squareLimbs)}
	w.load(rest)
	from, to := w.extent()
	if to-from > 6 || to > squareLimbs-5 {
		m.widen(&m.squares[g]).merge(&w)
		return
	}
	for i := from; i < to; i++ {
		m.addAt(&m.squares[g], 32*i, 0, magnitude(w.limbs[i]), w.limbs[i] < 0)
	}
}

// Variance is the sum of squared distances from the mean, divided by the rows less ddof. There must be more rows than ddof.
func (m *Moments) Variance(g uint32, ddof int64) float64 {
	num, den, exp, finite := m.fraction(g, ddof)
	if !finite {
		return math.NaN()
	}
	return roundFraction(num, den, exp)
}

// Deviation is the square root of Variance, rounded once from the exact value.
func (m *Moments) Deviation(g uint32, ddof int64) float64 {
	num, den, exp, finite := m.fraction(g, ddof)
	if !finite {
		return math.NaN()
	}
	return roundRoot(num, den, exp)
}

// fraction is the variance as num/den * 2^exp.
func (m *Moments) fraction(g uint32, ddof int64) (num, den *big.Int, exp int, finite bool) {
	sum, sumExp, finite := m.Sums.exact(g)
	if !finite {
		return nil, nil, 0, false
	}
	var squares *big.Int
	a := &m.squares[g]
	squareExp := -2 * 1074
	if a.field < 0 {
		squares = m.wide[a.words[0]].integer()
	} else {
		mag, negative := a.abs()
		squares = bigOf(mag[:], negative)
		squareExp += int(a.field) - squareBias
	}
	n := m.Sums.Rows(g)
	rows := big.NewInt(n)
	// n * Σx² - (Σx)², over n (n - ddof)
	exp = min(squareExp, 2*sumExp)
	num = new(big.Int).Mul(rows, squares)
	num.Lsh(num, uint(squareExp-exp))
	sum.Mul(sum, sum)
	num.Sub(num, sum.Lsh(sum, uint(2*sumExp-exp)))
	return num, rows.Mul(rows, big.NewInt(n-ddof)), exp, true
}

// exact is the sum as an integer times 2^exp.
func (s *FloatSums) exact(g uint32) (v *big.Int, exp int, finite bool) {
	a := &s.acc[g]
	if a.meta&fieldMask == promoted {
		w := &s.wide[a.lo]
		if _, special := w.notFinite(); special {
			return nil, 0, false
		}
		return w.integer(), -1074, true
	}
	mag, negative := abs192(a.lo, a.mid, uint64(a.hi))
	return bigOf(mag[:], negative), int(a.meta&fieldMask) - windowBias - 1075, true
}

// roundFraction rounds num/den * 2^exp; den is positive.
func roundFraction(num, den *big.Int, exp int) float64 {
	if num.Sign() == 0 {
		return 0
	}
	negative := num.Sign() < 0
	q := new(big.Int).Abs(num)
	if sh := 66 + den.BitLen() - q.BitLen(); sh > 0 {
		q.Lsh(q, uint(sh))
		exp -= sh
	}
	q, r := q.QuoRem(q, den, new(big.Int))
	return roundBig(q, r.Sign() != 0, exp, negative)
}

// roundRoot rounds the square root of num/den * 2^exp, which is not negative.
func roundRoot(num, den *big.Int, exp int) float64 {
	if num.Sign() <= 0 {
		return 0
	}
	q := new(big.Int).Set(num)
	sh := max(0, 134+den.BitLen()-q.BitLen())
	if (exp-sh)&1 != 0 {
		sh++
	}
	q.Lsh(q, uint(sh))
	exp -= sh
	q, r := q.QuoRem(q, den, new(big.Int))
	root := new(big.Int).Sqrt(q)
	sticky := r.Sign() != 0 || new(big.Int).Mul(root, root).Cmp(q) != 0
	return roundBig(root, sticky, exp/2, false)
}

// roundBig rounds v * 2^exp; v is positive.
func roundBig(v *big.Int, sticky bool, exp int, negative bool) float64 {
	if cut := v.BitLen() - 64; cut > 0 {
		sticky = sticky || int(v.TrailingZeroBits()) < cut
		v = new(big.Int).Rsh(v, uint(cut))
		exp += cut
	}
	m := v.Uint64()
	sh := bits.LeadingZeros64(m)
	return roundFloat(m<<sh, sticky, exp-sh, negative)
}

// RoundFraction rounds num/den to the nearest float, ties to even; den is positive.
func RoundFraction(num, den *big.Int) float64 { return roundFraction(num, den, 0) }
