package kernels

import (
	"math"
	"math/bits"
)

// FloatSums adds floats exactly, per group: the sum is an integer multiple of a power of two and is rounded once, when it
// is read. So it does not depend on the order of the rows, on partial sums, or on rows that came and were taken back.
//
// A group begins as a window of 192 bits around its first value. A value outside the window, NaN and the infinities move
// the group to a wide accumulator over the whole range of floats (exactsum_wide.go).
//
// The sum of no rows, or of zeros of any sign, is 0.0.
type FloatSums struct {
	acc   []floatAcc
	wide  []wideSum
	free  []uint32 // entries of wide to be used again
	bins  *[2][4096]int64
	order []float64 // scratch: values sorted by group

	touched int64 // keeps the reads of addFar alive
}

// floatAcc is the window: the two's complement integer hi:mid:lo, times 2^(base-1075).
type floatAcc struct {
	lo, mid uint64
	hi      int64
	meta    int64 // rows << 12 | base + windowBias; 0 there: empty; promoted there: lo is an index into wide
}

const (
	mantissaMask = 1<<52 - 1
	implicitBit  = 1 << 52
	windowBias   = 64
	windowLow    = 45 // bits of the window below the first value's last bit
	windowSpread = 90 // and how far a value's last bit may be above the window's: 90 + 53 bits, 48 to carry into, a sign
	promoted     = 0xFFF
	fieldMask    = 0xFFF
	smallExp     = 32 // biased exponents below are left to addSlow, so that an empty group needs no check of its own
)

// Resize makes room for n groups.
func (s *FloatSums) Resize(n int) {
	if n <= cap(s.acc) {
		s.acc = s.acc[:max(n, len(s.acc))]
		return
	}
	more := Large(make([]floatAcc, max(n, 2*cap(s.acc))))
	copy(more, s.acc)
	s.acc = more[:n]
}

// Bytes is the memory held.
func (s *FloatSums) Bytes() int64 {
	n := int64(32*cap(s.acc) + 8*cap(s.order) + 64*cap(s.wide) + 4*cap(s.free))
	return n + int64(len(s.wide)*8*sumLimbs)
}

// Add adds vals[i], weights[i] times (nil: once), to group groups[i] (nil: to group 0). Rows whose bit in valid (nil: all
// set) is clear are left out.
func (s *FloatSums) Add(groups []uint32, vals []float64, valid []byte, weights []int64) {
	switch {
	case weights != nil || valid != nil:
		s.addChecked(groups, vals, valid, weights)
	case groups == nil:
		s.addOne(0, vals)
	case len(s.acc) <= maxSorted && len(vals) >= binsFrom*len(s.acc):
		s.addSorted(groups, vals)
	case len(s.acc) > cachedGroups:
		s.addFar(groups, vals)
	default:
		s.addEach(groups, vals)
	}
}

// Beyond cachedGroups the windows do not fit the cache: a block's windows are read first, in a loop so short that their
// misses overlap, and added to then.
const (
	cachedGroups = 1 << 14
	farBlock     = 64
)

func (s *FloatSums) addFar(groups []uint32, vals []float64) {
	for len(vals) > 0 {
		n := min(len(vals), farBlock)
		for _, g := range groups[:n] {
			s.touched += s.acc[g].meta
		}
		s.addEach(groups[:n], vals[:n])
		groups, vals = groups[n:], vals[n:]
	}
}

// addEach is the loop for many groups. It has no branch on the value but the one out of the window.
func (s *FloatSums) addEach(groups []uint32, vals []float64) {
	acc := s.acc
	groups = groups[:len(vals)]
	for i, x := range vals {
		a := &acc[groups[i]]
		b := math.Float64bits(x)
		e := b >> 52 & 0x7FF
		sh := e + windowBias - uint64(a.meta&fieldMask)
		if sh > windowSpread || e-smallExp >= 0x7FF-smallExp {
			s.addSlow(a, x, 1)
			acc = s.acc
			continue
		}
		m := b&mantissaMask | implicitBit
		v0, v1 := m<<(sh&63), m>>1>>(63-sh&63)
		high := -(sh >> 6) // all ones when the value begins in the second word
		sign := uint64(int64(b) >> 63)
		var c uint64
		a.lo, c = bits.Add64(a.lo, v0&^high^sign, sign&1)
		a.mid, c = bits.Add64(a.mid, (v0&high|v1&^high)^sign, c)
		a.hi += int64((v1&high ^ sign) + c)
		a.meta += 1 << 12
	}
}

func (s *FloatSums) addChecked(groups []uint32, vals []float64, valid []byte, weights []int64) {
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
		s.addSlow(&s.acc[g], x, w)
	}
}

// addSlow adds w times x to a group of any state.
func (s *FloatSums) addSlow(a *floatAcc, x float64, w int64) {
	b := math.Float64bits(x)
	e, m := int(b>>52&0x7FF), b&mantissaMask
	if e == 0x7FF {
		s.widen(a).special(x, w)
		return
	}
	if e == 0 {
		e = 1 // subnormal
	} else {
		m |= implicitBit
	}
	hi, lo := bits.Mul64(m, magnitude(w))
	s.addAt(a, e, hi, lo, int64(b) < 0 != (w < 0))
	s.addRows(a, w)
}

func magnitude(w int64) uint64 {
	if w < 0 {
		return -uint64(w)
	}
	return uint64(w)
}

func (s *FloatSums) addRows(a *floatAcc, n int64) {
	if a.meta&fieldMask == promoted {
		s.wide[a.lo].rows += n
		return
	}
	rows := a.meta>>12 + n
	if rows<<12>>12 != rows {
		s.widen(a).rows += n
		return
	}
	a.meta = rows<<12 | a.meta&fieldMask
}

// addAt adds or takes away hi:lo * 2^(e-1075).
func (s *FloatSums) addAt(a *floatAcc, e int, hi, lo uint64, negative bool) {
	if hi|lo == 0 {
		return
	}
	field := int(a.meta & fieldMask)
	if field == promoted {
		s.wide[a.lo].add(e-1, hi, lo, negative)
		return
	}
	if field == 0 {
		field = e - windowLow + windowBias
		a.meta |= int64(field)
	}
	sh := e + windowBias - field
	if sh < 0 { // the value may end in zeros
		tz := bits.TrailingZeros64(lo)
		if lo == 0 {
			tz = 64 + bits.TrailingZeros64(hi)
		}
		if tz+sh >= 0 {
			if d := uint(-sh); d < 64 {
				lo, hi = lo>>d|hi<<1<<(63-d), hi>>d
			} else {
				lo, hi = hi>>(d-64), 0
			}
			sh = 0
		}
	}
	if sh < 0 || sh+len128(hi, lo) > windowSpread+53 {
		s.widen(a).add(e-1, hi, lo, negative)
		return
	}
	w := [4]uint64{}
	i, d := sh>>6, uint(sh&63)
	w[i] = lo << d
	w[i+1] = lo>>1>>(63-d) | hi<<d
	if i+2 < 4 {
		w[i+2] = hi >> 1 >> (63 - d)
	}
	var c uint64
	if negative {
		a.lo, c = bits.Sub64(a.lo, w[0], 0)
		a.mid, c = bits.Sub64(a.mid, w[1], c)
		a.hi -= int64(w[2] + c)
		return
	}
	a.lo, c = bits.Add64(a.lo, w[0], 0)
	a.mid, c = bits.Add64(a.mid, w[1], c)
	a.hi += int64(w[2] + c)
}

func len128(hi, lo uint64) int {
	if hi != 0 {
		return 64 + bits.Len64(hi)
	}
	return bits.Len64(lo)
}

// widen moves a group to a wide accumulator and returns that.
func (s *FloatSums) widen(a *floatAcc) *wideSum {
	if a.meta&fieldMask == promoted {
		return &s.wide[a.lo]
	}
	var at uint32
	if n := len(s.free); n > 0 {
		at = s.free[n-1]
		s.free = s.free[:n-1]
	} else {
		at = uint32(len(s.wide))
		s.wide = append(s.wide, wideSum{limbs: make([]int64, sumLimbs)})
	}
	w := &s.wide[at]
	w.rows = a.meta >> 12
	if field := int(a.meta & fieldMask); field != 0 {
		mag, negative := abs192(a.lo, a.mid, uint64(a.hi))
		p := field - windowBias - 1 // of the window's lowest bit; may be negative, where all bits are zero
		for i, m := range mag {
			q := p + 64*i
			if q < 0 {
				m >>= uint(-q) // a window reaches at most windowLow bits below the smallest float
				q = 0
			}
			w.add(q, 0, m, negative)
		}
	}
	*a = floatAcc{lo: uint64(at), meta: promoted}
	return w
}

func abs192(lo, mid, hi uint64) ([3]uint64, bool) {
	if int64(hi) >= 0 {
		return [3]uint64{lo, mid, hi}, false
	}
	var c uint64
	lo, c = bits.Sub64(0, lo, 0)
	mid, c = bits.Sub64(0, mid, c)
	hi, _ = bits.Sub64(0, hi, c)
	return [3]uint64{lo, mid, hi}, true
}

// Merge adds o's group i to this one's group into[i].
func (s *FloatSums) Merge(o *FloatSums, into []uint32) {
	for i := range o.acc[:min(len(into), len(o.acc))] {
		s.mergeOne(&s.acc[into[i]], o, &o.acc[i])
	}
}

func (s *FloatSums) mergeOne(a *floatAcc, o *FloatSums, b *floatAcc) {
	switch f := int(b.meta & fieldMask); f {
	case promoted:
		s.widen(a).merge(&o.wide[b.lo])
	case 0:
		s.addRows(a, b.meta>>12)
	case int(a.meta & fieldMask):
		var c uint64
		a.lo, c = bits.Add64(a.lo, b.lo, 0)
		a.mid, c = bits.Add64(a.mid, b.mid, c)
		a.hi += b.hi + int64(c)
		s.addRows(a, b.meta>>12)
	default:
		if a.meta&fieldMask == 0 {
			rows := a.meta >> 12
			*a = *b
			s.addRows(a, rows)
			return
		}
		mag, negative := abs192(b.lo, b.mid, uint64(b.hi))
		for k, m := range mag {
			if m != 0 {
				e := f - windowBias + 64*k
				if e < 1 { // bits below the smallest float are zeros
					m, e = m>>uint(1-e), 1
				}
				s.addAt(a, e, 0, m, negative)
			}
		}
		s.addRows(a, b.meta>>12)
	}
}

// Look reads the windows of groups, so that what follows finds them in the cache: its misses overlap. The result is of no meaning.
//
//go:noinline
func (s *FloatSums) Look(groups []uint32) (seen int64) {
	for _, g := range groups {
		seen += s.acc[g].meta
	}
	return seen
}

// Rows is the sum of the weights of a group's rows.
func (s *FloatSums) Rows(g uint32) int64 {
	a := &s.acc[g]
	if a.meta&fieldMask == promoted {
		return s.wide[a.lo].rows
	}
	return a.meta >> 12
}

// Sum is the group's sum, rounded to nearest, ties to even. Beyond the largest float it is an infinity.
func (s *FloatSums) Sum(g uint32) float64 { return s.quotient(g, 1) }

// Mean is the sum divided by the rows, rounded once. There must be rows.
func (s *FloatSums) Mean(g uint32) float64 { return s.quotient(g, uint64(s.Rows(g))) }

func (s *FloatSums) quotient(g uint32, n uint64) float64 {
	a := &s.acc[g]
	if a.meta&fieldMask == promoted {
		return s.wide[a.lo].quotient(n, 1-1075)
	}
	mag, negative := abs192(a.lo, a.mid, uint64(a.hi))
	return quotient(mag[:], n, int(a.meta&fieldMask)-windowBias-1075, negative)
}

// quotient rounds words (little-endian) * 2^exp / n.
func quotient(words []uint64, n uint64, exp int, negative bool) float64 {
	top := len(words) - 1
	for top >= 0 && words[top] == 0 {
		top--
	}
	if top < 0 {
		return 0
	}
	// The first 128 bits with the highest set, and whether anything is below.
	var hi, lo uint64
	sh := uint(bits.LeadingZeros64(words[top]))
	at := func(i int) uint64 {
		if i < 0 {
			return 0
		}
		return words[i]
	}
	hi = words[top]<<sh | at(top-1)>>1>>(63-sh)
	lo = at(top-1)<<sh | at(top-2)>>1>>(63-sh)
	sticky := at(top-2)<<sh != 0
	for i := top - 3; i >= 0 && !sticky; i-- {
		sticky = words[i] != 0
	}
	exp += 64*(top-1) - int(sh)
	if n != 1 {
		q1, r := hi/n, hi%n
		q0, r := bits.Div64(r, lo, n)
		sticky = sticky || r != 0
		hi, lo = q1, q0
		if hi == 0 { // n is large
			hi, lo, exp = lo, 0, exp-64
		}
		sh := uint(bits.LeadingZeros64(hi))
		hi, lo, exp = hi<<sh|lo>>1>>(63-sh), lo<<sh, exp-int(sh)
	}
	return roundFloat(hi, lo != 0 || sticky, exp+64, negative)
}

// roundFloat rounds m * 2^exp, where m has its highest bit set and sticky says that the true value is a little larger.
func roundFloat(m uint64, sticky bool, exp int, negative bool) float64 {
	drop := 11 // 64 - 53
	if low := -1074 - exp; low > drop {
		drop = low // subnormal: fewer bits are left
	}
	var r uint64
	if drop <= 64 {
		var half, rest uint64
		if drop == 64 {
			half, rest = m>>63, m<<1
		} else {
			r, half, rest = m>>drop, m>>(drop-1)&1, m<<(65-drop)
		}
		if half != 0 && (rest != 0 || sticky || r&1 != 0) {
			r++
		}
	}
	if biased := exp + drop + 52 + 1023; drop == 11 && biased <= 2046 {
		b := uint64(biased)<<52 + r - implicitBit // rounded up to 2^53, r raises the exponent, at the end to infinity
		if negative {
			b |= 1 << 63
		}
		return math.Float64frombits(b)
	}
	x := math.Ldexp(float64(r), exp+drop) // exact: r has at most 53 bits, or is 2^53; too large gives an infinity
	if negative {
		return -x
	}
	return x
}

// Reset empties groups.
func (s *FloatSums) Reset(groups []uint32) {
	for _, g := range groups {
		a := &s.acc[g]
		if a.meta&fieldMask == promoted {
			s.wide[a.lo].reset()
			s.free = append(s.free, uint32(a.lo))
		}
		*a = floatAcc{}
	}
}

// Save appends a group as bytes; the bytes depend on what the group's rows are, not on how they came.
func (s *FloatSums) Save(dst []byte, g uint32) []byte {
	a := s.acc[g]
	tmp := FloatSums{acc: []floatAcc{{}}}
	tmp.mergeOne(&tmp.acc[0], s, &a)
	w := tmp.widen(&tmp.acc[0])
	return w.save(dst)
}

// Load adds what Save wrote to a group and returns the bytes that follow.
func (s *FloatSums) Load(g uint32, saved []byte) (rest []byte) {
	w := wideSum{limbs: make([]int64, sumLimbs)}
	rest = w.load(saved)
	a := &s.acc[g]
	from, to := w.extent()
	if w.nan|w.posInf|w.negInf != 0 || to-from > 4 || to > sumLimbs-5 {
		s.widen(a).merge(&w)
		return rest
	}
	for i := from; i < to; i++ { // few limbs go back into a window
		s.addAt(a, 32*i+1, 0, magnitude(w.limbs[i]), w.limbs[i] < 0)
	}
	s.addRows(a, w.rows)
	return rest
}
