package pages

import (
	"encoding/binary"
	"sort"
)

// ranks finds keys among sorted first ones, none of which is behind the first of the next. It looks at two words of each, of the bytes behind what they
// all begin with, which lie side by side; at the keys themselves only where those are alike. The very first key counts as before all others, whatever it is.
type ranks struct {
	begin string
	words [][2]uint64
}

func newRanks(n int, first func(i int) string) ranks {
	r := ranks{words: make([][2]uint64, n)}
	if n > 1 {
		a, b := first(1), first(n-1)
		r.begin = a[:common([]byte(a), []byte(b))]
	}
	for i := 1; i < n; i++ {
		r.words[i] = twoWords(first(i)[len(r.begin):])
	}
	return r
}

// twoWords are the first sixteen bytes, with zeros behind them: they order texts that differ there.
func twoWords[T string | []byte](s T) [2]uint64 {
	var b [16]byte
	copy(b[:], s)
	return [2]uint64{binary.BigEndian.Uint64(b[:]), binary.BigEndian.Uint64(b[8:])}
}

// find is the last one that a key is not before.
func (r *ranks) find(key []byte, first func(i int) string) int {
	n := len(r.words)
	if n == 1 {
		return 0
	}
	m := len(r.begin)
	if len(key) < m || string(key[:m]) != r.begin {
		if string(key) < r.begin {
			return 0
		}
		return n - 1
	}
	w := twoWords(key[m:])
	return sort.Search(n-1, func(i int) bool { return r.before(i+1, w, key, first) })
}

// before reports whether a key, which begins as all do and has these words behind that, is before one.
func (r *ranks) before(i int, w [2]uint64, key []byte, first func(i int) string) bool {
	at := r.words[i]
	switch {
	case w[0] != at[0]:
		return w[0] < at[0]
	case w[1] != at[1]:
		return w[1] < at[1]
	}
	return string(key) < first(i)
}
