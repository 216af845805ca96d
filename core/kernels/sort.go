package kernels

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/rowkey"
	"github.com/riverbed/riverbed/core/types"
)

// SortKey is how one column is ordered. The zero key is ascending, NULLS LAST.
type SortKey struct {
	Desc       bool
	NullsFirst bool
	Exact      bool       // tell apart what is equal and prints differently (rowkey.Key), as tie-break columns must
	Type       types.Type // only needed for UHUGEINT, whose Arrow form does not say so
}

// SortIndices returns the rows 0 to n-1 in the order of the columns: by the first, where that is equal by the second,
// and so on. Rows that are equal in all columns keep their order.
//
// A column is reduced to words that order as it does, and sorted by radix; longer values are compared in full among
// equal words. A further column is looked at only for the rows that those before it leave equal.
func SortIndices(cols []arrow.Array, keys []SortKey, n int) []int32 {
	idx := make([]int32, n)
	for i := range idx {
		idx[i] = int32(i)
	}
	s := sorter{cols: make([]sortColumn, len(cols))}
	for i, c := range cols {
		s.cols[i] = sortColumn{arr: c, key: keys[i]}
	}
	s.sort(idx, 0)
	return idx
}

type sorter struct {
	cols    []sortColumn
	entries []sortEntry
	scratch []sortEntry
}

// sortEntry is a row and the word that it is sorted by.
type sortEntry struct {
	word uint64
	row  int32
}

// sortColumn is made ready when the first tie needs it.
type sortColumn struct {
	arr   arrow.Array
	key   SortKey
	ready bool
	valid []byte
	words []uint64             // by row
	whole bool                 // words say all
	bytes func(row int) []byte // the value in full, when words do not; compared ascending
}

func (c *sortColumn) prepare() {
	if c.ready {
		return
	}
	c.ready = true
	t := c.key.Type
	if t.Kind == types.Invalid {
		var err error
		if t, err = types.FromArrow(arrow.Field{Type: c.arr.DataType()}); err != nil {
			panic(errs.Bug("kernels", "sort of %s", c.arr.DataType())) // AIDEV-NOTE: panics on a type that the engine has no form for
		}
		if _, ok := c.arr.DataType().(*arrow.FixedSizeBinaryType); ok {
			t = types.UUIDType
		}
	}
	if t.Kind == types.Null {
		c.valid = make([]byte, BitBytes(c.arr.Len()))
		return
	}
	c.valid = Valid(c.arr)
	n := c.arr.Len()
	w := rowkey.Width(t)
	switch {
	case w > 0 && w <= 8:
		c.words, c.whole = rowkey.Words(c.arr, t, c.key.Exact, make([]uint64, 0, n)), true
	case t.Kind == types.Varchar || t.Kind == types.JSON || t.Kind == types.Blob:
		offs, data := Spans(c.arr)
		c.bytes = func(i int) []byte { return data[offs[i]:offs[i+1]] }
		c.firstBytes(n)
	default:
		rows := rowkey.Encode([]arrow.Array{c.arr}, []types.Type{t}, []rowkey.Key{{Exact: c.key.Exact}}, n)
		c.bytes = func(i int) []byte { return rows.Row(i)[1:] }
		c.firstBytes(n)
	}
	if c.key.Desc {
		for i := range c.words {
			c.words[i] = ^c.words[i]
		}
	}
}

// firstBytes sets the words to the first eight bytes of the values.
func (c *sortColumn) firstBytes(n int) {
	c.words = make([]uint64, n)
	for i := range n {
		b := c.bytes(i)
		if len(b) >= 8 {
			c.words[i] = binary.BigEndian.Uint64(b)
			continue
		}
		w := uint64(0)
		for k, x := range b {
			w |= uint64(x) << (56 - 8*k)
		}
		c.words[i] = w
	}
}

// sort orders rows by the columns from at on.
func (s *sorter) sort(rows []int32, at int) {
	if len(rows) < 2 || at == len(s.cols) {
		return
	}
	c := &s.cols[at]
	c.prepare()
	if c.valid == nil {
		s.sortValid(rows, at)
		return
	}
	// NULLs are equal: they stand together at their end and are ordered by the next column.
	var nulls []int32
	k := 0
	for _, r := range rows {
		if Bit(c.valid, int(r)) {
			rows[k] = r
			k++
		} else {
			nulls = append(nulls, r)
		}
	}
	values, end := rows[:k], rows[k:]
	if c.key.NullsFirst {
		copy(rows[len(nulls):], values)
		values, end = rows[len(nulls):], rows[:len(nulls)]
	}
	copy(end, nulls)
	s.sort(end, at+1)
	s.sortValid(values, at)
}

func (s *sorter) sortValid(rows []int32, at int) {
	if len(rows) < 2 {
		return
	}
	c := &s.cols[at]
	entries := s.entries[:0]
	for _, r := range rows {
		entries = append(entries, sortEntry{c.words[r], r})
	}
	s.entries = entries
	s.sortEntries(entries)
	for i, e := range entries {
		rows[i] = e.row
	}
	// entries is reused below: what follows reads words by row.
	for from := 0; from < len(rows); {
		to, w := from+1, c.words[rows[from]]
		for to < len(rows) && c.words[rows[to]] == w {
			to++
		}
		if run := rows[from:to]; len(run) > 1 {
			if c.whole {
				s.sort(run, at+1)
			} else {
				s.sortBytes(run, at)
			}
		}
		from = to
	}
}

// sortBytes orders rows of equal words by their values in full.
func (s *sorter) sortBytes(rows []int32, at int) {
	c := &s.cols[at]
	sign := 1
	if c.key.Desc {
		sign = -1
	}
	slices.SortFunc(rows, func(a, b int32) int {
		if d := bytes.Compare(c.bytes(int(a)), c.bytes(int(b))); d != 0 {
			return sign * d
		}
		return cmp.Compare(a, b) // equal rows come in, and stay, in their order
	})
	for from := 0; from < len(rows); {
		to := from + 1
		for to < len(rows) && bytes.Equal(c.bytes(int(rows[from])), c.bytes(int(rows[to]))) {
			to++
		}
		s.sort(rows[from:to], at+1)
		from = to
	}
}

// radixFrom is the number of rows from which counting bytes beats comparing.
const radixFrom = 512

// sortEntries orders entries by word; equal words keep their order.
func (s *sorter) sortEntries(e []sortEntry) {
	if len(e) < radixFrom {
		slices.SortFunc(e, func(a, b sortEntry) int {
			if a.word != b.word {
				return cmp.Compare(a.word, b.word)
			}
			return cmp.Compare(a.row, b.row)
		})
		return
	}
	var counts [8][256]uint32
	sorted, last := true, uint64(0)
	for i := range e {
		w := e[i].word
		sorted, last = sorted && w >= last, w
		for d := range counts {
			counts[d][byte(w>>(8*d))]++
		}
	}
	if sorted {
		return
	}
	if cap(s.scratch) < len(e) {
		s.scratch = make([]sortEntry, len(e))
	}
	from, to := e, s.scratch[:len(e)]
	for d := range counts {
		at := &counts[d]
		if at[byte(e[0].word>>(8*d))] == uint32(len(e)) {
			continue // one byte for all
		}
		sum := uint32(0)
		for b, n := range at {
			at[b], sum = sum, sum+n
		}
		for i := range from {
			b := byte(from[i].word >> (8 * d))
			to[at[b]] = from[i]
			at[b]++
		}
		from, to = to, from
	}
	if &from[0] != &e[0] {
		copy(e, from)
	}
}
