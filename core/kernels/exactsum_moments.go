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
	squares Products
	fixed   []fixedMoment // nil: not used yet
	unit    uint64
}

// Resize makes room for n groups.
func (m *Moments) Resize(n int) {
	m.Sums.Resize(n)
	m.squares.Resize(n)
	if m.fixed != nil && n > len(m.fixed) {
		m.fixed = append(m.fixed, make([]fixedMoment, n-len(m.fixed))...)
	}
}

// Bytes is the memory held.
func (m *Moments) Bytes() int64 {
	return m.Sums.Bytes() + m.squares.Bytes() + int64(48*cap(m.fixed))
}

// Add is FloatSums.Add, for both sums.
func (m *Moments) Add(groups []uint32, vals []float64, valid []byte, weights []int64) {
	if weights == nil {
		m.addFixed(groups, vals, valid)
		return
	}
	g := uint32(0)
	for i, x := range vals {
		if valid != nil && !Bit(valid, i) {
			continue
		}
		if groups != nil {
			g = groups[i]
		}
		m.addOne(g, x, weights[i])
	}
}

// addOne adds any value, w times.
func (m *Moments) addOne(g uint32, x float64, w int64) {
	m.Sums.addSlow(&m.Sums.acc[g], x, w)
	m.squares.Add(g, x, x, w)
}

// Rows is the sum of the weights of a group's rows.
func (m *Moments) Rows(g uint32) int64 {
	m.settle(g)
	return m.Sums.Rows(g)
}

// Merge adds o's group i to this one's group into[i].
func (m *Moments) Merge(o *Moments, into []uint32) {
	o.Settle()
	m.Sums.Merge(&o.Sums, into)
	m.squares.Merge(&o.squares, into)
}

// Reset empties groups.
func (m *Moments) Reset(groups []uint32) {
	m.Sums.Reset(groups)
	m.squares.Reset(groups)
	if m.fixed != nil {
		for _, g := range groups {
			m.fixed[g] = fixedMoment{}
		}
	}
}

// Save appends a group as bytes.
func (m *Moments) Save(dst []byte, g uint32) []byte {
	m.settle(g)
	return m.squares.Save(m.Sums.Save(dst, g), g)
}

// Load adds what Save wrote to a group.
func (m *Moments) Load(g uint32, saved []byte) { m.squares.Load(g, m.Sums.Load(g, saved)) }

// Variance is the sum of squared distances from the mean, divided by the rows less ddof. There must be more rows than ddof.
func (m *Moments) Variance(g uint32, ddof int64) float64 {
	m.settle(g)
	v, finite := spread(&m.Sums, &m.Sums, &m.squares, g)
	if !finite {
		return math.NaN()
	}
	return v.DivInt(m.Sums.Rows(g)).DivInt(m.Sums.Rows(g) - ddof).Round()
}

// Deviation is the square root of Variance, rounded once from the exact value.
func (m *Moments) Deviation(g uint32, ddof int64) float64 {
	m.settle(g)
	v, finite := spread(&m.Sums, &m.Sums, &m.squares, g)
	if !finite {
		return math.NaN()
	}
	return v.DivInt(m.Sums.Rows(g)).DivInt(m.Sums.Rows(g) - ddof).Root()
}

// Comoments keeps what covariances, correlations and regressions of pairs (x, y) are made of.
type Comoments struct {
	X, Y         FloatSums
	xx, yy, xy   Products
	fixed        []fixedPair // nil: not used yet
	unitX, unitY uint64
}

// Resize makes room for n groups.
func (m *Comoments) Resize(n int) {
	m.X.Resize(n)
	m.Y.Resize(n)
	m.xx.Resize(n)
	m.yy.Resize(n)
	m.xy.Resize(n)
	if m.fixed != nil && n > len(m.fixed) {
		m.fixed = append(m.fixed, make([]fixedPair, n-len(m.fixed))...)
	}
}

// Bytes is the memory held.
func (m *Comoments) Bytes() int64 {
	return m.X.Bytes() + m.Y.Bytes() + m.xx.Bytes() + m.yy.Bytes() + m.xy.Bytes() + int64(112*cap(m.fixed))
}

// Add adds pairs as FloatSums.Add adds values.
func (m *Comoments) Add(groups []uint32, x, y []float64, valid []byte, weights []int64) {
	if weights == nil {
		m.addFixed(groups, x, y, valid)
		return
	}
	for i, g := range groups {
		if valid == nil || Bit(valid, i) {
			m.addOne(g, x[i], y[i], weights[i])
		}
	}
}

// addOne adds any pair, w times.
func (m *Comoments) addOne(g uint32, x, y float64, w int64) {
	m.X.addSlow(&m.X.acc[g], x, w)
	m.Y.addSlow(&m.Y.acc[g], y, w)
	m.xx.Add(g, x, x, w)
	m.yy.Add(g, y, y, w)
	m.xy.Add(g, x, y, w)
}

// Merge adds o's group i to this one's group into[i].
func (m *Comoments) Merge(o *Comoments, into []uint32) {
	o.Settle()
	m.X.Merge(&o.X, into)
	m.Y.Merge(&o.Y, into)
	m.xx.Merge(&o.xx, into)
	m.yy.Merge(&o.yy, into)
	m.xy.Merge(&o.xy, into)
}

// Reset empties groups.
func (m *Comoments) Reset(groups []uint32) {
	m.X.Reset(groups)
	m.Y.Reset(groups)
	m.xx.Reset(groups)
	m.yy.Reset(groups)
	m.xy.Reset(groups)
	if m.fixed != nil {
		for _, g := range groups {
			m.fixed[g] = fixedPair{}
		}
	}
}

// Save appends a group as bytes.
func (m *Comoments) Save(dst []byte, g uint32) []byte {
	m.settle(g)
	dst = m.Y.Save(m.X.Save(dst, g), g)
	return m.xy.Save(m.yy.Save(m.xx.Save(dst, g), g), g)
}

// Load adds what Save wrote to a group.
func (m *Comoments) Load(g uint32, saved []byte) {
	saved = m.Y.Load(g, m.X.Load(g, saved))
	m.xy.Load(g, m.yy.Load(g, m.xx.Load(g, saved)))
}

// Rows is the sum of the weights of a group's pairs.
func (m *Comoments) Rows(g uint32) int64 {
	m.settle(g)
	return m.X.Rows(g)
}

// Spreads returns n times the sums of squared distances of x and y from their means, and of their products, with n the
// number of pairs; ok is false when NaN or an infinity is among the values.
func (m *Comoments) Spreads(g uint32) (xx, yy, xy Exact, ok bool) {
	m.settle(g)
	xx, ok1 := spread(&m.X, &m.X, &m.xx, g)
	yy, ok2 := spread(&m.Y, &m.Y, &m.yy, g)
	if !ok1 || !ok2 {
		return xx, yy, xy, false
	}
	xy, _ = spread(&m.X, &m.Y, &m.xy, g)
	return xx, yy, xy, true
}

// Exact is the fraction num/den * 2^exp; den is positive.
type Exact struct {
	num, den *big.Int
	exp      int
}

// spread is n Σxy - Σx Σy.
func spread(x, y *FloatSums, products *Products, g uint32) (Exact, bool) {
	sx, ex, ok1 := x.exact(g)
	sy, ey, ok2 := y.exact(g)
	if !ok1 || !ok2 {
		return Exact{}, false
	}
	p, ep := products.exact(g)
	exp := min(ep, ex+ey)
	p.Mul(p, big.NewInt(x.Rows(g)))
	p.Lsh(p, uint(ep-exp))
	s := new(big.Int).Mul(sx, sy)
	p.Sub(p, s.Lsh(s, uint(ex+ey-exp)))
	return Exact{p, big.NewInt(1), exp}, true
}

// DivInt divides by a positive integer.
func (v Exact) DivInt(n int64) Exact {
	return Exact{v.num, new(big.Int).Mul(v.den, big.NewInt(n)), v.exp}
}

// Mul multiplies.
func (v Exact) Mul(o Exact) Exact {
	return Exact{new(big.Int).Mul(v.num, o.num), new(big.Int).Mul(v.den, o.den), v.exp + o.exp}
}

// Sub subtracts.
func (v Exact) Sub(o Exact) Exact {
	a, b := new(big.Int).Mul(v.num, o.den), new(big.Int).Mul(o.num, v.den)
	exp := min(v.exp, o.exp)
	a.Lsh(a, uint(v.exp-exp))
	return Exact{a.Sub(a, b.Lsh(b, uint(o.exp-exp))), new(big.Int).Mul(v.den, o.den), exp}
}

// Div divides by what is positive.
func (v Exact) Div(o Exact) Exact {
	return Exact{new(big.Int).Mul(v.num, o.den), new(big.Int).Mul(v.den, o.num), v.exp - o.exp}
}

// Sign is -1, 0 or 1.
func (v Exact) Sign() int { return v.num.Sign() }

// Round is the nearest float.
func (v Exact) Round() float64 { return roundFraction(v.num, v.den, v.exp) }

// Root is the square root of what is not negative, rounded once.
func (v Exact) Root() float64 { return roundRoot(v.num, v.den, v.exp) }

// Exact is the sum of a group without NaN and infinities.
func (s *FloatSums) Exact(g uint32) Exact {
	v, exp, _ := s.exact(g)
	return Exact{v, big.NewInt(1), exp}
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
