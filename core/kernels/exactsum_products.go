package kernels

import (
	"math"
	"math/big"
	"math/bits"
)

// Products adds products of two floats exactly, per group. A product is an integer of 106 bits times a power of two; like
// FloatSums a group begins as a window around its first product and moves to a wide accumulator when it must. Products
// with NaN or an infinity are left out: the sums of the factors know of them.
type Products struct {
	acc  []productAcc
	wide []wideSum
	free []uint32
}

// productAcc is a window of 256 bits: the integer words, two's complement, times 2^(field-productBias-2148).
type productAcc struct {
	words [4]uint64
	field int32 // 0: empty; -1: words[0] is an index into wide
}

const (
	productBias   = 256
	productLow    = 50  // bits of the window below the first product's last bit
	productSpread = 101 // above it 106 bits of a product, 48 to carry into, a sign
	productExp    = -2 * 1074
)

// Resize makes room for n groups.
func (s *Products) Resize(n int) {
	if n > len(s.acc) {
		s.acc = append(s.acc, make([]productAcc, n-len(s.acc))...)
	}
}

// Bytes is the memory held.
func (s *Products) Bytes() int64 { return int64(40*cap(s.acc) + len(s.wide)*(8*productLimbs+64)) }

// Add adds x*y, w times, to a group.
func (s *Products) Add(g uint32, x, y float64, w int64) {
	bx, by := math.Float64bits(x), math.Float64bits(y)
	ex, ey := int(bx>>52&0x7FF), int(by>>52&0x7FF)
	if ex == 0x7FF || ey == 0x7FF {
		return
	}
	mx, my := bx&mantissaMask, by&mantissaMask
	if ex == 0 {
		ex = 1
	} else {
		mx |= implicitBit
	}
	if ey == 0 {
		ey = 1
	} else {
		my |= implicitBit
	}
	a, p := &s.acc[g], ex+ey-2
	negative := (bx^by)>>63 != 0 != (w < 0)
	hi, lo := bits.Mul64(mx, my)
	if w == 1 || w == -1 {
		s.addAt(a, p, hi, lo, negative)
		return
	}
	mag := magnitude(w)
	h1, l1 := bits.Mul64(lo, mag)
	h2, l2 := bits.Mul64(hi, mag)
	s.addAt(a, p, h1, l1, negative)
	s.addAt(a, p+64, h2, l2, negative)
}

// addAt adds or takes away hi:lo at position p.
func (s *Products) addAt(a *productAcc, p int, hi, lo uint64, negative bool) {
	if hi|lo == 0 {
		return
	}
	if a.field < 0 {
		s.wide[a.words[0]].add(p, hi, lo, negative)
		return
	}
	if a.field == 0 {
		a.field = int32(p - productLow + productBias)
	}
	sh := p + productBias - int(a.field)
	if sh < 0 || sh+len128(hi, lo) > productSpread+106 {
		s.widen(a).add(p, hi, lo, negative)
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

func (a *productAcc) abs() ([4]uint64, bool) {
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

func (s *Products) widen(a *productAcc) *wideSum {
	if a.field < 0 {
		return &s.wide[a.words[0]]
	}
	var at uint32
	if n := len(s.free); n > 0 {
		at = s.free[n-1]
		s.free = s.free[:n-1]
	} else {
		at = uint32(len(s.wide))
		s.wide = append(s.wide, wideSum{limbs: make([]int64, productLimbs)})
	}
	w := &s.wide[at]
	if a.field != 0 {
		mag, negative := a.abs()
		for k, x := range mag {
			q := int(a.field) - productBias + 64*k
			if q < 0 {
				x, q = x>>uint(-q), 0 // zeros: nothing is below the smallest product
			}
			w.add(q, 0, x, negative)
		}
	}
	*a = productAcc{field: -1}
	a.words[0] = uint64(at)
	return w
}

// Merge adds o's group i to this one's group into[i].
func (s *Products) Merge(o *Products, into []uint32) {
	for i := range o.acc[:min(len(into), len(o.acc))] {
		s.mergeOne(&s.acc[into[i]], o, &o.acc[i])
	}
}

func (s *Products) mergeOne(a *productAcc, o *Products, b *productAcc) {
	switch {
	case b.field < 0:
		s.widen(a).merge(&o.wide[b.words[0]])
	case b.field == 0:
	case a.field == 0:
		*a = *b
	default:
		mag, negative := b.abs()
		for k, x := range mag {
			if x != 0 {
				p := int(b.field) - productBias + 64*k
				if p < 0 {
					x, p = x>>uint(-p), 0
				}
				s.addAt(a, p, 0, x, negative)
			}
		}
	}
}

// Reset empties groups.
func (s *Products) Reset(groups []uint32) {
	for _, g := range groups {
		if a := &s.acc[g]; a.field < 0 {
			s.wide[a.words[0]].reset()
			s.free = append(s.free, uint32(a.words[0]))
		}
		s.acc[g] = productAcc{}
	}
}

// Save appends a group as bytes.
func (s *Products) Save(dst []byte, g uint32) []byte {
	tmp := Products{acc: make([]productAcc, 1)}
	tmp.mergeOne(&tmp.acc[0], s, &s.acc[g])
	return tmp.widen(&tmp.acc[0]).save(dst)
}

// Load adds what Save wrote to a group and returns the bytes that follow.
func (s *Products) Load(g uint32, saved []byte) (rest []byte) {
	w := wideSum{limbs: make([]int64, productLimbs)}
	rest = w.load(saved)
	from, to := w.extent()
	if to-from > 6 || to > productLimbs-5 {
		s.widen(&s.acc[g]).merge(&w)
		return rest
	}
	for i := from; i < to; i++ {
		s.addAt(&s.acc[g], 32*i, 0, magnitude(w.limbs[i]), w.limbs[i] < 0)
	}
	return rest
}

// exact is the sum as an integer times 2^exp.
func (s *Products) exact(g uint32) (v *big.Int, exp int) {
	a := &s.acc[g]
	if a.field < 0 {
		return s.wide[a.words[0]].integer(), productExp
	}
	mag, negative := a.abs()
	return bigOf(mag[:], negative), productExp + int(a.field) - productBias
}
