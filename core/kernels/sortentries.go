package kernels

import "math/bits"

// EntrySorter sorts entries. It may be used again, by one goroutine at a time.
type EntrySorter struct {
	low    uint // bits that do not count
	mask   uint64
	counts [2][1 << passBits]uint32
}

const (
	passBits = 11 // of a digit at most: its counts stay in the first cache
	// fewEntries is up to how many entries are put in order one by one.
	fewEntries = 24
	// cachedEntries is how many entries stay in cache, twice, while they are sorted by two digits.
	cachedEntries = 64 << 10
)

// NewEntrySorter returns a sorter that looks at all bits but the lowest low ones, of which there are less than 64.
func NewEntrySorter(low uint) *EntrySorter {
	return &EntrySorter{low: low, mask: ^uint64(0) << low}
}

// Equal reports whether two entries are equal.
func (s *EntrySorter) Equal(a, b SortEntry) bool { return a.Hi == b.Hi && (a.Lo^b.Lo)&s.mask == 0 }

// Sort orders e; tmp has room for as many entries. The bits that do not count are ordered by when few entries are equal, or
// in any way.
//
// Entries are sorted by their highest bits that differ, as many as tell most of them apart, by counting; the few that are equal
// in these are sorted by what follows.
func (s *EntrySorter) Sort(e, tmp []SortEntry) {
	n := len(e)
	if n <= fewEntries {
		insertEntries(e)
		return
	}
	or, and := SortEntry{}, SortEntry{^uint64(0), ^uint64(0)}
	for i := range e {
		x := e[i]
		or.Hi, or.Lo = or.Hi|x.Hi, or.Lo|x.Lo
		and.Hi, and.Lo = and.Hi&x.Hi, and.Lo&x.Lo
	}
	hi, lo := or.Hi&^and.Hi, (or.Lo&^and.Lo)&s.mask
	top, end := uint(64+bits.Len64(hi)), uint(64+bits.TrailingZeros64(hi))
	if hi == 0 {
		top = uint(bits.Len64(lo))
	}
	if lo != 0 {
		end = uint(bits.TrailingZeros64(lo))
	} else if hi == 0 {
		return
	}
	passes, digit := uint(2), min((uint(bits.Len(uint(n)))+5)/2, passBits)
	if n < 1<<passBits || n > cachedEntries {
		passes, digit = 1, 8
	}
	if top-end <= digit {
		passes, digit = 1, top-end
	} else if top-end < passes*digit {
		digit = (top - end + 1) / 2
	}
	at := uint(0) // the lowest bit that is sorted by
	if top > passes*digit {
		at = top - passes*digit
	}
	if passes == 1 {
		s.pass(e, tmp, at, digit, s.count(e, at, digit, 0))
		copy(e, tmp[:n])
	} else {
		low, high := s.count(e, at, digit, 0), s.count(e, at+digit, digit, 1)
		s.pass(e, tmp, at, digit, low)
		s.pass(tmp[:n], e, at+digit, digit, high)
	}
	if at <= end {
		return
	}
	for from := 0; from < n; {
		to := from + 1
		for to < n && sameFrom(e[from], e[to], at) {
			to++
		}
		if to-from > 1 {
			s.Sort(e[from:to], tmp[from:to])
		}
		from = to
	}
}

// SameFirst reports whether two entries are equal in their first bits.
func (a SortEntry) SameFirst(b SortEntry, bits uint) bool {
	if bits <= 64 {
		return (a.Hi^b.Hi)>>(64-bits) == 0
	}
	return a.Hi == b.Hi && (a.Lo^b.Lo)>>(128-bits) == 0
}

// sameFrom reports whether entries are equal in the bits from at on.
func sameFrom(a, b SortEntry, at uint) bool {
	if at >= 64 {
		return (a.Hi^b.Hi)>>((at-64)&63) == 0
	}
	return a.Hi == b.Hi && (a.Lo^b.Lo)>>(at&63) == 0
}

// count counts a digit, and gives where the entries of each value go.
func (s *EntrySorter) count(e []SortEntry, at, width uint, which int) *[1 << passBits]uint32 {
	c := &s.counts[which]
	clear(c[:1<<width])
	mask := uint64(1)<<width - 1
	if at >= 64 {
		right := (at - 64) & 63
		for i := range e {
			c[e[i].Hi>>right&mask&(1<<passBits-1)]++
		}
	} else {
		right, left := at&63, (63-at)&63
		for i := range e {
			c[(e[i].Hi<<1<<left|e[i].Lo>>right)&mask&(1<<passBits-1)]++
		}
	}
	sum := uint32(0)
	for b, n := range c[:1<<width] {
		c[b], sum = sum, sum+n
	}
	return c
}

// pass moves entries to their places by one digit.
func (s *EntrySorter) pass(from, to []SortEntry, at, width uint, c *[1 << passBits]uint32) {
	mask := uint64(1)<<width - 1
	if at >= 64 {
		right := (at - 64) & 63
		for i := range from {
			x := from[i]
			k := &c[x.Hi>>right&mask&(1<<passBits-1)]
			to[*k] = x
			*k++
		}
		return
	}
	right, left := at&63, (63-at)&63
	for i := range from {
		x := from[i]
		k := &c[(x.Hi<<1<<left|x.Lo>>right)&mask&(1<<passBits-1)]
		to[*k] = x
		*k++
	}
}

func insertEntries(e []SortEntry) {
	for i := 1; i < len(e); i++ {
		x := e[i]
		k := i
		for ; k > 0 && (x.Hi < e[k-1].Hi || x.Hi == e[k-1].Hi && x.Lo < e[k-1].Lo); k-- {
			e[k] = e[k-1]
		}
		e[k] = x
	}
}
