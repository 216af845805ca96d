package kernels

import "slices"

// SortWords sorts words in place.
func SortWords(w []uint64) {
	if len(w) < 4*radixFrom {
		slices.Sort(w)
		return
	}
	var counts [8][256]uint32
	for _, x := range w {
		for d := range counts {
			counts[d][byte(x>>(8*d))]++
		}
	}
	from, to := w, make([]uint64, len(w))
	for d := range counts {
		at := &counts[d]
		if at[byte(w[0]>>(8*d))] == uint32(len(w)) {
			continue // one byte for all
		}
		sum := uint32(0)
		for b, n := range at {
			at[b], sum = sum, sum+n
		}
		for _, x := range from {
			b := byte(x >> (8 * d))
			to[at[b]] = x
			at[b]++
		}
		from, to = to, from
	}
	if &from[0] != &w[0] {
		copy(w, from)
	}
}
