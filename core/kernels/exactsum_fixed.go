package kernels

import (
	"math"
	"math/bits"
)

// Moments and Comoments meet most values in fixed point: an integer of up to 63 bits times a power of two that is chosen once,
// by the first values. Sums and products of such integers are a few additions with carry. A value that is no such integer
// goes to FloatSums and Products, where at last all sums meet (settle); both are exact, so it is open which way a value goes.

// fixedRoom is how far above the unit's exponent a value's may be: 53 bits of a mantissa and 10 to be shifted by.
const (
	fixedRoom  = 10
	fixedAbove = 7 // of that, what the first values take
)

// fixedUnit chooses the unit for values like these: as a biased exponent, so that the integer X stands for X * 2^(unit-1075).
func fixedUnit(vals []float64) uint64 {
	most := uint64(0)
	for _, x := range vals {
		if e := math.Float64bits(x) >> 52 & 0x7FF; e != 0x7FF {
			most = max(most, e)
		}
	}
	return min(max(most, fixedAbove+1)-fixedAbove, 0x7FE-fixedRoom)
}

// fixFar is the integer of a value whose exponent is not among those above the unit: a zero, or one that ends in zeros.
func fixFar(b, unit uint64) (x int64, ok bool) {
	e, m := b>>52&0x7FF, b&mantissaMask
	switch {
	case b<<1 == 0:
		return 0, true
	case e == 0x7FF:
		return 0, false
	case e == 0:
		e = 1 // subnormal
	default:
		m |= implicitBit
	}
	switch {
	case e > unit+fixedRoom:
		return 0, false
	case e >= unit:
		m <<= e - unit
	case uint64(bits.TrailingZeros64(m)) < unit-e:
		return 0, false
	default:
		m >>= unit - e
	}
	s := int64(b) >> 63
	return int64(m) ^ s - s, true
}

// fixedSum is a two's complement integer of 128 bits.
type fixedSum struct{ lo, hi uint64 }

func (s *fixedSum) add(x int64) {
	var c uint64
	s.lo, c = bits.Add64(s.lo, uint64(x), 0)
	s.hi += uint64(x>>63) + c
}

// fixedProduct is a two's complement integer of 192 bits.
type fixedProduct struct{ lo, mid, hi uint64 }

func (s *fixedProduct) add(x, y int64) {
	hi, lo := mulHigh(x, y)
	var c uint64
	s.lo, c = bits.Add64(s.lo, uint64(lo), 0)
	s.mid, c = bits.Add64(s.mid, uint64(hi), c)
	s.hi += uint64(hi>>63) + c
}

// settle adds s * 2^(unit-1075), of n rows, to group g.
func (s fixedSum) settle(into *FloatSums, g uint32, unit uint64, n int64) {
	a, negative := &into.acc[g], int64(s.hi) < 0
	if negative {
		var c uint64
		s.lo, c = bits.Sub64(0, s.lo, 0)
		s.hi, _ = bits.Sub64(0, s.hi, c)
	}
	into.addAt(a, int(unit), s.hi, s.lo, negative)
	into.addRows(a, n)
}

func (s fixedProduct) settle(into *Products, g uint32, unitX, unitY uint64) {
	mag, negative := abs192(s.lo, s.mid, s.hi)
	a, p := &into.acc[g], int(unitX+unitY)-2
	into.addAt(a, p, mag[1], mag[0], negative)
	into.addAt(a, p+128, 0, mag[2], negative)
}

// fixedMoment is a group of Moments in fixed point.
type fixedMoment struct {
	rows    int64
	sum     fixedSum
	squares fixedProduct
}

func (m *Moments) addFixed(groups []uint32, vals []float64, valid []byte) {
	if m.fixed == nil {
		m.unit = fixedUnit(vals)
		m.fixed = make([]fixedMoment, len(m.Sums.acc))
	}
	acc, unit, g, beside := m.fixed, m.unit, uint32(0), 0
	for i, v := range vals {
		if valid != nil && !Bit(valid, i) {
			continue
		}
		if groups != nil {
			g = groups[i]
		}
		b := math.Float64bits(v)
		d, s := b>>52&0x7FF-unit, int64(b)>>63
		x := int64((b&mantissaMask|implicitBit)<<(d&63)) ^ s - s
		if d > fixedRoom {
			var ok bool
			if x, ok = fixFar(b, unit); !ok {
				m.addOne(g, v, 1)
				beside++
				continue
			}
		}
		a := &acc[g]
		a.rows++
		a.sum.add(x)
		a.squares.add(x, x)
	}
	if beside > max(len(vals)/4, len(acc)) { // the values have moved away from the first ones
		m.Settle()
		m.fixed = nil
	}
}

// Settle brings all groups together. Until the next Add, groups may then be read by several goroutines.
func (m *Moments) Settle() {
	for g := range m.fixed {
		m.settle(uint32(g))
	}
}

// settle brings what is in fixed point to the rest of the group.
func (m *Moments) settle(g uint32) {
	if m.fixed == nil || m.fixed[g].rows == 0 {
		return
	}
	a := &m.fixed[g]
	a.sum.settle(&m.Sums, g, m.unit, a.rows)
	a.squares.settle(&m.squares, g, m.unit, m.unit)
	*a = fixedMoment{}
}

// fixedPair is a group of Comoments in fixed point.
type fixedPair struct {
	rows       int64
	x, y       fixedSum
	xx, yy, xy fixedProduct
}

func (m *Comoments) addFixed(groups []uint32, xs, ys []float64, valid []byte) {
	if m.fixed == nil {
		m.unitX, m.unitY = fixedUnit(xs), fixedUnit(ys)
		m.fixed = make([]fixedPair, len(m.X.acc))
	}
	acc, ux, uy, beside := m.fixed, m.unitX, m.unitY, 0
	xs, ys = xs[:len(groups)], ys[:len(groups)]
	for i, g := range groups {
		if valid != nil && !Bit(valid, i) {
			continue
		}
		bx, by := math.Float64bits(xs[i]), math.Float64bits(ys[i])
		dx, dy := bx>>52&0x7FF-ux, by>>52&0x7FF-uy
		sx, sy := int64(bx)>>63, int64(by)>>63
		x := int64((bx&mantissaMask|implicitBit)<<(dx&63)) ^ sx - sx
		y := int64((by&mantissaMask|implicitBit)<<(dy&63)) ^ sy - sy
		if dx > fixedRoom || dy > fixedRoom {
			var okX, okY bool
			x, okX = fixFar(bx, ux)
			y, okY = fixFar(by, uy)
			if !okX || !okY {
				m.addOne(g, xs[i], ys[i], 1)
				beside++
				continue
			}
		}
		a := &acc[g]
		a.rows++
		a.x.add(x)
		a.y.add(y)
		a.xx.add(x, x)
		a.yy.add(y, y)
		a.xy.add(x, y)
	}
	if beside > max(len(xs)/4, len(acc)) {
		m.Settle()
		m.fixed = nil
	}
}

// Settle brings all groups together. Until the next Add, groups may then be read by several goroutines.
func (m *Comoments) Settle() {
	for g := range m.fixed {
		m.settle(uint32(g))
	}
}

// settle brings what is in fixed point to the rest of the group.
func (m *Comoments) settle(g uint32) {
	if m.fixed == nil || m.fixed[g].rows == 0 {
		return
	}
	a := &m.fixed[g]
	a.x.settle(&m.X, g, m.unitX, a.rows)
	a.y.settle(&m.Y, g, m.unitY, a.rows)
	a.xx.settle(&m.xx, g, m.unitX, m.unitX)
	a.yy.settle(&m.yy, g, m.unitY, m.unitY)
	a.xy.settle(&m.xy, g, m.unitX, m.unitY)
	*a = fixedPair{}
}
