package state

import "slices"

// seen tells whether a hash was put into it; of few that were not it says so too (one in thirty a
// part). It has eleven bits for each, and at most as many again.
type seen struct {
	parts [][]uint64 // each twice the one before
	n     int        // in the last part
	room  int        // there
	all   int
}

const (
	seenWords = 1 << 10 // of the first part
	seenRows  = 6       // a word
)

// seenAt is the word of a hash, of so many, and its bits there.
func seenAt(h uint64, words int) (at int, bits uint64) {
	h = stir(h)
	return int(h>>32) & (words - 1), 1<<(h&63) | 1<<(h>>6&63) | 1<<(h>>12&63) | 1<<(h>>18&63)
}

func (s *seen) has(h uint64) bool {
	for _, p := range slices.Backward(s.parts) { // the last have most
		if at, bits := seenAt(h, len(p)); p[at]&bits == bits {
			return true
		}
	}
	return false
}

func (s *seen) add(h uint64) {
	if s.has(h) {
		return
	}
	if s.n == s.room {
		words := seenWords << len(s.parts)
		s.parts = append(s.parts, make([]uint64, words))
		s.n, s.room = 0, words*seenRows
	}
	p := s.parts[len(s.parts)-1]
	at, bits := seenAt(h, len(p))
	p[at] |= bits
	s.n++
	s.all++
}

func (s *seen) bytes() (n int64) {
	for _, p := range s.parts {
		n += int64(8 * len(p))
	}
	return n
}
