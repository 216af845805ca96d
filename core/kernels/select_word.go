package kernels

import (
	"math/bits"
	"slices"
)

const selectSorted = 24 // so many words are sorted

// SelectWord brings the word of rank k to its place, with no greater one before and no smaller one behind, and returns it.
func SelectWord(w []uint64, k int) uint64 {
	lo, hi := 0, len(w)
	for rounds := 2 * bits.Len(uint(len(w))); hi-lo > selectSorted && rounds > 0; rounds-- {
		part := w[lo:hi]
		p := middle(part[0], part[len(part)/2], part[len(part)-1])
		j := 0
		for i, x := range part { // no branch on what is compared
			part[i] = part[j]
			part[j] = x
			if x < p {
				j++
			}
		}
		if k < lo+j {
			hi = lo + j
			continue
		}
		if j == 0 { // none is less: the equal ones go ahead
			for i, x := range part {
				part[i] = part[j]
				part[j] = x
				if x <= p {
					j++
				}
			}
			if k < lo+j {
				return p
			}
		}
		lo += j
	}
	slices.Sort(w[lo:hi])
	return w[k]
}

func middle(a, b, c uint64) uint64 { return max(min(a, b), min(max(a, b), c)) }
