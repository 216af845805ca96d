package kernels

import (
	"math"
	"math/big"
	"sync"
)

// The elementary functions. Go's own differ by platform in the last bit (assembly on some, fused multiply-add on others), and
// results must be the same bits everywhere. These compute with pairs of floats, about 106 bits, by operations that IEEE 754
// defines exactly (math.FMA is exact on every platform), and round once; so they also agree with a correctly rounded libm
// in all but very rare cases. They cost a few hundred nanoseconds.

// pairF is the unevaluated sum hi + lo with |lo| at most half an ulp of hi.
type pairF struct{ hi, lo float64 }

func two(a, b float64) pairF {
	s := a + b
	bb := s - a
	return pairF{s, (a - (s - bb)) + (b - bb)}
}

func quick(a, b float64) pairF {
	s := a + b
	return pairF{s, b - (s - a)}
}

func prod(a, b float64) pairF {
	p := float64(a * b)
	return pairF{p, math.FMA(a, b, -p)}
}

func (a pairF) add(b pairF) pairF {
	s, t := two(a.hi, b.hi), two(a.lo, b.lo)
	v := quick(s.hi, s.lo+t.hi)
	return quick(v.hi, t.lo+v.lo)
}

func (a pairF) neg() pairF        { return pairF{-a.hi, -a.lo} }
func (a pairF) sub(b pairF) pairF { return a.add(b.neg()) }

func (a pairF) mul(b pairF) pairF {
	p := prod(a.hi, b.hi)
	return quick(p.hi, p.lo+(float64(a.hi*b.lo)+float64(a.lo*b.hi)))
}

func (a pairF) scale(f float64) pairF { return pairF{float64(a.hi * f), float64(a.lo * f)} } // f is a power of two

func (a pairF) div(b pairF) pairF {
	q1 := a.hi / b.hi
	r := a.sub(b.mul(pairF{q1, 0}))
	q2 := r.hi / b.hi
	r = r.sub(b.mul(pairF{q2, 0}))
	q3 := r.hi / b.hi
	q := quick(q1, q2)
	return q.add(pairF{q3, 0})
}

func (a pairF) sqrt() pairF {
	if a.hi <= 0 {
		return pairF{}
	}
	x := math.Sqrt(a.hi)
	r := a.sub(prod(x, x))
	return quick(x, r.hi/(2*x))
}

func (a pairF) round() float64 { return a.hi + a.lo }

// TimesDown is x·m, where a product that only rounding makes a whole number and a half is brought back below the half, so
// that 2.675 (which is a little less) times 100 rounds to 267.
func TimesDown(x, m float64) float64 {
	p := prod(x, m)
	if math.Abs(p.hi-math.Trunc(p.hi)) == 0.5 && p.lo != 0 && (p.lo < 0) == (p.hi > 0) {
		return math.Trunc(p.hi)
	}
	return p.hi
}

// split cuts a decimal constant into floats that add up to it.
func split(digits string, n int) []float64 {
	x, _, err := big.ParseFloat(digits, 10, 400, big.ToNearestEven)
	if err != nil {
		panic(err) // AIDEV-NOTE: panics at start, on a mistake in a constant below
	}
	out := make([]float64, n)
	for i := range out {
		out[i], _ = x.Float64()
		x.Sub(x, new(big.Float).SetFloat64(out[i]))
	}
	return out
}

func splitPair(digits string) pairF { p := split(digits, 2); return pairF{p[0], p[1]} }

const piDigits = "3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534211706798214808651"

var (
	ln2     = split("0.6931471805599453094172321214581765680755001343602552541206800094933936219696947156058633269964186875", 3)
	ln10    = splitPair("2.302585092994045684017991454684364207601101488628772976033327900967572609677352480235997205089598298")
	piParts = split(piDigits, 4)
	piPair  = pairF{piParts[0], piParts[1]}
	one     = pairF{1, 0}
	odds    = func() (f [24]pairF) { // 1/(2n+1)
		for i := range f {
			f[i] = one.div(pairF{float64(2*i + 1), 0})
		}
		return f
	}()
	inverses = func() (f [32]pairF) { // 1/n!
		n := one
		for i := range f {
			if i > 0 {
				n = n.mul(pairF{float64(i), 0})
			}
			f[i] = one.div(n)
		}
		return f
	}()
)

// expPair is e^x = result · 2^k, for |x| below 800.
func expPair(x pairF) (pairF, int) {
	k := math.RoundToEven(x.hi / ln2[0])
	r := x.sub(prod(k, ln2[0])).sub(prod(k, ln2[1])).sub(pairF{k * ln2[2], 0})
	const halvings = 6
	r = r.scale(1.0 / (1 << halvings))
	s := inverses[12]
	for i := 11; i >= 1; i-- {
		s = s.mul(r).add(inverses[i])
	}
	s = s.mul(r) // e^r − 1, which squaring keeps exact: (1+s)² − 1 = s² + 2s
	for range halvings {
		s = s.mul(s).add(s.scale(2))
	}
	return s.add(one), int(k)
}

func finishExp(p pairF, k int) float64 { return math.Ldexp(p.round(), k) }

// Exp is e^x.
func Exp(x float64) float64 {
	switch {
	case x != x || math.IsInf(x, 1):
		return x
	case x > 709.79:
		return math.Inf(1)
	case x < -745.2:
		return 0
	}
	return finishExp(expPair(pairF{x, 0}))
}

// logPair is ln x for finite x > 0.
func logPair(x float64) pairF {
	m, e := math.Frexp(x) // m in [½, 1)
	if m < math.Sqrt2/2 {
		m, e = 2*m, e-1
	}
	l := logMantissa(pairF{m, 0})
	return l.add(prod(float64(e), ln2[0])).add(prod(float64(e), ln2[1]))
}

// logMantissa is ln m near 1, by 2 artanh((m−1)/(m+1)).
func logMantissa(m pairF) pairF {
	s := m.sub(one).div(m.add(one))
	q := s.mul(s)
	sum := pairF{}
	for i := 45; i >= 1; i -= 2 {
		sum = sum.mul(q).add(odds[i/2])
	}
	return sum.mul(s).scale(2)
}

// Log is the natural logarithm.
func Log(x float64) float64 {
	if v, done := logSpecial(x); done {
		return v
	}
	return logPair(x).round()
}

func logSpecial(x float64) (float64, bool) {
	switch {
	case x != x || math.IsInf(x, 1):
		return x, true
	case x < 0:
		return math.NaN(), true
	case x == 0:
		return math.Inf(-1), true
	case x == 1:
		return 0, true
	}
	return 0, false
}

// Log10 is the logarithm to base 10.
func Log10(x float64) float64 {
	if v, done := logSpecial(x); done {
		return v
	}
	return logPair(x).div(ln10).round()
}

// Log2 is the logarithm to base 2.
func Log2(x float64) float64 {
	if v, done := logSpecial(x); done {
		return v
	}
	m, e := math.Frexp(x)
	if m < math.Sqrt2/2 {
		m, e = 2*m, e-1
	}
	return logMantissa(pairF{m, 0}).div(pairF{ln2[0], ln2[1]}).add(pairF{float64(e), 0}).round()
}

// Pow is x to the y, with the special cases of IEEE 754.
func Pow(x, y float64) float64 {
	odd := func() bool { return math.Abs(y) < 1<<53 && math.Mod(y, 2) != 0 }
	switch {
	case y == 0 || x == 1:
		return 1
	case x != x || y != y:
		return math.NaN()
	case x == 0:
		switch {
		case y < 0 && math.Signbit(x) && y == math.Trunc(y) && odd():
			return math.Inf(-1)
		case y < 0:
			return math.Inf(1)
		case math.Signbit(x) && y == math.Trunc(y) && odd():
			return x
		}
		return 0
	case math.IsInf(y, 0):
		switch {
		case x == -1:
			return 1
		case (math.Abs(x) < 1) == (y > 0):
			return 0
		}
		return math.Inf(1)
	case math.IsInf(x, 0):
		if x < 0 {
			return Pow(math.Copysign(0, -1), -y)
		}
		if y < 0 {
			return 0
		}
		return math.Inf(1)
	case x < 0 && y != math.Trunc(y):
		return math.NaN()
	}
	sign := 1.0
	if x < 0 {
		x = -x
		if odd() {
			sign = -1
		}
	}
	if x == 1 {
		return sign
	}
	l := logPair(x)
	switch p := l.hi * y; {
	case p > 709.79:
		return sign * math.Inf(1)
	case p < -745.2:
		return sign * 0
	}
	t := prod(l.hi, y)
	t = quick(t.hi, t.lo+float64(l.lo*y))
	return sign * finishExp(expPair(t))
}

// Cbrt is the cube root.
func Cbrt(x float64) float64 {
	if x == 0 || x != x || math.IsInf(x, 0) {
		return x
	}
	p, k := expPair(logPair(math.Abs(x)).div(pairF{3, 0}))
	return math.Copysign(finishExp(p, k), x)
}

// reduce writes x as quadrant·π/2 + r, |r| at most π/4.
func reduce(x float64) (r pairF, quadrant int) {
	if math.Abs(x) < 1<<28 {
		k := math.RoundToEven(x / (piParts[0] / 2))
		r = pairF{x, 0}
		for _, p := range piParts {
			r = r.sub(prod(k, p/2))
		}
		return r, int(int64(k) & 3)
	}
	bigPi := longPi()
	half := new(big.Float).SetPrec(bigPi.Prec()).Quo(bigPi, big.NewFloat(2))
	v := new(big.Float).SetPrec(bigPi.Prec()).SetFloat64(x)
	k, _ := new(big.Float).SetPrec(bigPi.Prec()).Quo(v, half).Int(nil)
	v.Sub(v, new(big.Float).SetPrec(bigPi.Prec()).Mul(half, new(big.Float).SetPrec(bigPi.Prec()).SetInt(k)))
	// v has the sign of x and is below π/2; bring it to π/4.
	q := int(new(big.Int).And(k, big.NewInt(3)).Int64())
	quarter := piParts[0] / 4
	f, _ := v.Float64()
	if f > quarter {
		v.Sub(v, half)
		q++
	} else if f < -quarter {
		v.Add(v, half)
		q--
	}
	hi, _ := v.Float64()
	lo, _ := v.Sub(v, big.NewFloat(hi)).Float64()
	return pairF{hi, lo}, q & 3
}

// longPi has enough digits to reduce any float: Machin's formula in fixed point.
var longPi = sync.OnceValue(func() *big.Float {
	const prec = 1300
	scale := new(big.Int).Lsh(big.NewInt(1), prec)
	arctan := func(n int64) *big.Int {
		sum, term := new(big.Int), new(big.Int).Quo(scale, big.NewInt(n))
		for i := int64(1); term.Sign() != 0; i += 2 {
			part := new(big.Int).Quo(term, big.NewInt(i))
			if i%4 == 1 {
				sum.Add(sum, part)
			} else {
				sum.Sub(sum, part)
			}
			term.Quo(term, big.NewInt(n*n))
		}
		return sum
	}
	pi := new(big.Int).Sub(new(big.Int).Mul(big.NewInt(16), arctan(5)), new(big.Int).Mul(big.NewInt(4), arctan(239)))
	f := new(big.Float).SetPrec(prec).SetInt(pi)
	return f.SetMantExp(f, -prec)
})

func sinCos(x float64) (sin, cos pairF) {
	r, q := reduce(x)
	sq := r.mul(r).neg()
	s, c := pairF{}, pairF{}
	for i := 27; i >= 1; i -= 2 {
		s = s.mul(sq).add(inverses[i])
		c = c.mul(sq).add(inverses[i-1])
	}
	s = s.mul(r)
	switch q {
	case 1:
		return c, s.neg()
	case 2:
		return s.neg(), c.neg()
	case 3:
		return c.neg(), s
	}
	return s, c
}

// Sin is the sine.
func Sin(x float64) float64 {
	switch {
	case x == 0:
		return x
	case x != x || math.IsInf(x, 0):
		return math.NaN()
	}
	s, _ := sinCos(x)
	return s.round()
}

// Cos is the cosine.
func Cos(x float64) float64 {
	if x != x || math.IsInf(x, 0) {
		return math.NaN()
	}
	_, c := sinCos(x)
	return c.round()
}

// Tan is the tangent.
func Tan(x float64) float64 {
	if x == 0 || x != x || math.IsInf(x, 0) {
		return Sin(x)
	}
	s, c := sinCos(x)
	return s.div(c).round()
}

// Cot is the cotangent.
func Cot(x float64) float64 {
	if x == 0 {
		return math.Copysign(math.Inf(1), x)
	}
	if x != x || math.IsInf(x, 0) {
		return math.NaN()
	}
	s, c := sinCos(x)
	return c.div(s).round()
}

// atanPair is the arc tangent of x ≥ 0.
func atanPair(x pairF) pairF {
	flip := x.hi > 1
	if flip {
		x = one.div(x)
	}
	for range 2 { // halve the angle
		x = x.div(one.add(one.add(x.mul(x)).sqrt()))
	}
	sq := x.mul(x).neg()
	sum := pairF{}
	for i := 47; i >= 1; i -= 2 {
		sum = sum.mul(sq).add(odds[i/2])
	}
	a := sum.mul(x).scale(4)
	if flip {
		return piPair.scale(0.5).sub(a)
	}
	return a
}

// Atan is the arc tangent.
func Atan(x float64) float64 {
	switch {
	case x == 0 || x != x:
		return x
	case math.Abs(x) > 1e17:
		return math.Copysign(piParts[0]/2, x)
	case math.Abs(x) < 1e-100:
		return x
	}
	return math.Copysign(atanPair(pairF{math.Abs(x), 0}).round(), x)
}

// Atan2 is the angle of the point (x, y).
func Atan2(y, x float64) float64 {
	switch {
	case x != x || y != y:
		return math.NaN()
	case y == 0:
		if math.Signbit(x) {
			return math.Copysign(piParts[0], y)
		}
		return y
	case x == 0:
		return math.Copysign(piParts[0]/2, y)
	case math.IsInf(x, 0) && math.IsInf(y, 0):
		if x > 0 {
			return math.Copysign(piParts[0]/4, y)
		}
		return math.Copysign(3*piParts[0]/4, y)
	case math.IsInf(x, 1):
		return math.Copysign(0, y)
	case math.IsInf(x, -1):
		return math.Copysign(piParts[0], y)
	case math.IsInf(y, 0):
		return math.Copysign(piParts[0]/2, y)
	}
	// Scale both, so that the quotient neither overflows nor loses digits.
	_, ex := math.Frexp(x)
	_, ey := math.Frexp(y)
	switch {
	case ey-ex > 60:
		return math.Copysign(piParts[0]/2, y)
	case ey-ex < -1000:
		if x > 0 {
			return y / x
		}
		return math.Copysign(piParts[0], y)
	}
	a := atanPair(pairF{math.Abs(math.Ldexp(y, -ey)), 0}.div(pairF{math.Abs(math.Ldexp(x, -ex)), 0}).scale(math.Ldexp(1, ey-ex)))
	if x < 0 {
		a = piPair.sub(a)
	}
	return math.Copysign(a.round(), y)
}

// Asin is the arc sine; outside [-1, 1] it is NaN.
func Asin(x float64) float64 {
	switch {
	case !(x >= -1 && x <= 1):
		return math.NaN()
	case math.Abs(x) < 1e-100:
		return x
	case math.Abs(x) == 1:
		return math.Copysign(piParts[0]/2, x)
	}
	c := one.sub(prod(x, x)).sqrt()
	return math.Copysign(atanPair(pairF{math.Abs(x), 0}.div(c)).round(), x)
}

// Acos is the arc cosine; outside [-1, 1] it is NaN.
func Acos(x float64) float64 {
	switch {
	case !(x >= -1 && x <= 1):
		return math.NaN()
	case x == -1:
		return piParts[0]
	}
	return atanPair(two(1, -x).div(two(1, x)).sqrt()).scale(2).round()
}

func hyperbolic(x float64) (e, inv pairF, k int) {
	e, k = expPair(pairF{x, 0})
	return e, one.div(e), k
}

// Sinh is the hyperbolic sine.
func Sinh(x float64) float64 {
	a := math.Abs(x)
	switch {
	case a < 1e-18 || x != x || math.IsInf(x, 0):
		return x
	case a > 711:
		return math.Copysign(math.Inf(1), x)
	case a > 40:
		e, k := expPair(pairF{a, 0})
		return math.Copysign(finishExp(e, k-1), x)
	}
	e, inv, k := hyperbolic(a)
	s := e.scale(math.Ldexp(1, k)).sub(inv.scale(math.Ldexp(1, -k)))
	return math.Copysign(s.scale(0.5).round(), x)
}

// Cosh is the hyperbolic cosine.
func Cosh(x float64) float64 {
	a := math.Abs(x)
	switch {
	case x != x:
		return x
	case a > 711:
		return math.Inf(1)
	case a > 40:
		e, k := expPair(pairF{a, 0})
		return finishExp(e, k-1)
	}
	e, inv, k := hyperbolic(a)
	return e.scale(math.Ldexp(1, k)).add(inv.scale(math.Ldexp(1, -k))).scale(0.5).round()
}

// Tanh is the hyperbolic tangent.
func Tanh(x float64) float64 {
	a := math.Abs(x)
	switch {
	case a < 1e-18 || x != x:
		return x
	case a > 40:
		return math.Copysign(1, x)
	}
	e, inv, k := hyperbolic(a)
	p, q := e.scale(math.Ldexp(1, k)), inv.scale(math.Ldexp(1, -k))
	return math.Copysign(p.sub(q).div(p.add(q)).round(), x)
}
