package kernels

import "math"

// For few groups: one bin per sign and exponent, to which mantissas are added as integers, 1024 at most between two
// foldings into the group. Two sets of bins take turns, so that equal exponents in a row do not wait for each other.

const (
	binsFrom  = 256 // rows per group and batch from which bins beat the window
	maxSorted = 64  // groups up to which rows are sorted by group for it
	binRows   = 1024
)

// addSorted brings the rows of each group together.
func (s *FloatSums) addSorted(groups []uint32, vals []float64) {
	var at [maxSorted + 1]int
	groups = groups[:len(vals)]
	for _, g := range groups {
		at[g+1]++
	}
	for i := range maxSorted {
		at[i+1] += at[i]
	}
	if cap(s.order) < len(vals) {
		s.order = make([]float64, len(vals))
	}
	out := s.order[:len(vals)]
	start := at
	for i, g := range groups {
		p := start[g]
		out[p] = vals[i]
		start[g] = p + 1
	}
	for g := range s.acc {
		s.addOne(uint32(g), out[at[g]:at[g+1]])
	}
}

// addOne adds values to one group.
func (s *FloatSums) addOne(g uint32, vals []float64) {
	if len(vals) < binsFrom/4 {
		for _, x := range vals {
			s.addSlow(&s.acc[g], x, 1)
		}
		return
	}
	if s.bins == nil {
		s.bins = new([2][4096]int64)
	}
	even, odd := &s.bins[0], &s.bins[1]
	for len(vals) > 0 {
		part := vals[:min(len(vals), 2*binRows)]
		vals = vals[len(part):]
		lo, hi := uint64(0x7FF), uint64(0)
		i := 0
		for ; i+1 < len(part); i += 2 {
			a, b := math.Float64bits(part[i]), math.Float64bits(part[i+1])
			even[a>>52] += int64(a&mantissaMask | implicitBit)
			odd[b>>52] += int64(b&mantissaMask | implicitBit)
			ea, eb := a>>52&0x7FF, b>>52&0x7FF
			lo, hi = min(lo, ea, eb), max(hi, ea, eb)
		}
		if i < len(part) {
			a := math.Float64bits(part[i])
			even[a>>52] += int64(a&mantissaMask | implicitBit)
			lo, hi = min(lo, a>>52&0x7FF), max(hi, a>>52&0x7FF)
		}
		s.fold(g, part, lo, hi)
	}
}

// fold empties the bins of the exponents lo to hi into the group. Zeros, subnormals, NaN and the infinities got an
// implicit bit that they do not have: where there are any, they are added by the slow way instead.
func (s *FloatSums) fold(g uint32, part []float64, lo, hi uint64) {
	a := &s.acc[g]
	rows := int64(len(part))
	if lo == 0 || hi == 0x7FF {
		for _, x := range part {
			if e := math.Float64bits(x) >> 52 & 0x7FF; e == 0 || e == 0x7FF {
				rows--
				s.addSlow(a, x, 1)
			}
		}
	}
	for e := lo; e <= hi; e++ {
		pos := uint64(s.bins[0][e]) + uint64(s.bins[1][e]) // up to 1024 * 2^53 each: no sign bit is reached
		neg := uint64(s.bins[0][2048+e]) + uint64(s.bins[1][2048+e])
		s.bins[0][e], s.bins[1][e], s.bins[0][2048+e], s.bins[1][2048+e] = 0, 0, 0, 0
		if e == 0 || e == 0x7FF {
			continue
		}
		if pos != 0 {
			s.addAt(a, int(e), 0, pos, false)
		}
		if neg != 0 {
			s.addAt(a, int(e), 0, neg, true)
		}
	}
	s.addRows(a, rows)
}
