package kernels

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math/bits"
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
// A column is reduced to words that order as it does, and sorted by radix; longer values are sorted eight bytes after eight
// bytes. What follows is looked at only for the rows that are equal so far.
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
	runs    []int32 // ends of runs of equal rows that are still to be sorted: a stack
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
		c.words[i] = firstWord(c.bytes(i))
	}
}

// firstWord is the first eight bytes, zeros behind the end.
func firstWord(b []byte) uint64 {
	if len(b) >= 8 {
		return binary.BigEndian.Uint64(b)
	}
	w := uint64(0)
	for k, x := range b {
		w |= uint64(x) << (56 - 8*k)
	}
	return w
}

// word is firstWord in the column's direction.
func (c *sortColumn) word(b []byte) uint64 {
	if c.key.Desc {
		return ^firstWord(b)
	}
	return firstWord(b)
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
	e := s.take(len(rows))
	for i, r := range rows {
		e[i] = sortEntry{c.words[r], r}
	}
	s.sortRuns(rows, e, c.whole && at+1 == len(s.cols), func(run []int32) {
		if c.whole {
			s.sort(run, at+1)
		} else {
			s.sortBytes(run, at, 8)
		}
	})
}

// take returns n entries to fill; they live until the next call.
func (s *sorter) take(n int) []sortEntry {
	if cap(s.entries) < n {
		s.entries = make([]sortEntry, n)
	}
	return s.entries[:n]
}

// sortRuns orders rows by the entries made of them, and hands on each run of more than one row with equal words; last says
// that there is nothing more to order by.
func (s *sorter) sortRuns(rows []int32, e []sortEntry, last bool, equal func(run []int32)) {
	s.sortEntries(e)
	for i := range e {
		rows[i] = e[i].row
	}
	if last {
		return
	}
	// The entries are used again below, so the runs are found first.
	base := len(s.runs)
	for from := 0; from < len(e); {
		to := from + 1
		for to < len(e) && e[to].word == e[from].word {
			to++
		}
		if to-from > 1 {
			s.runs = append(s.runs, int32(from), int32(to))
		}
		from = to
	}
	for i := base; i < len(s.runs); i += 2 {
		equal(rows[s.runs[i]:s.runs[i+1]])
	}
	s.runs = s.runs[:base]
}

// sortBytes orders rows whose values have equal bytes up to depth, zeros standing for what is behind their end.
func (s *sorter) sortBytes(rows []int32, at, depth int) {
	c := &s.cols[at]
	if len(rows) < 2 {
		return
	}
	if len(rows) <= fewRows {
		s.compareBytes(rows, at, depth)
		return
	}
	// Values that have ended are beginnings of the others, and differ in their length at most.
	short := 0
	for _, r := range rows {
		if len(c.bytes(int(r))) <= depth {
			short++
		}
	}
	if short > 0 {
		s.sortEnded(rows, at, depth, short)
		return
	}
	e := s.take(len(rows))
	for i, r := range rows {
		e[i] = sortEntry{c.word(c.bytes(int(r))[depth:]), r}
	}
	s.sortRuns(rows, e, false, func(run []int32) { s.sortBytes(run, at, depth+8) })
}

// sortEnded puts the short values that have ended before the others, behind them when descending.
func (s *sorter) sortEnded(rows []int32, at, depth, short int) {
	c := &s.cols[at]
	ended, longer := make([]int32, 0, short), make([]int32, 0, len(rows)-short)
	for _, r := range rows {
		if len(c.bytes(int(r))) <= depth {
			ended = append(ended, r)
		} else {
			longer = append(longer, r)
		}
	}
	e := s.take(short)
	for i, r := range ended {
		e[i] = sortEntry{uint64(len(c.bytes(int(r)))), r}
		if c.key.Desc {
			e[i].word = ^e[i].word
		}
	}
	s.sortRuns(ended, e, at+1 == len(s.cols), func(run []int32) { s.sort(run, at+1) })
	s.sortBytes(longer, at, depth)
	if c.key.Desc {
		copy(rows[copy(rows, longer):], ended)
	} else {
		copy(rows[copy(rows, ended):], longer)
	}
}

// fewRows is up to how many rows comparing values in full beats making words of them.
const fewRows = 8

// compareBytes orders few rows by what their values have behind depth.
func (s *sorter) compareBytes(rows []int32, at, depth int) {
	c := &s.cols[at]
	rest := func(r int32) []byte {
		b := c.bytes(int(r))
		return b[min(depth, len(b)):]
	}
	order := func(a, b int32) int {
		x, y := c.bytes(int(a)), c.bytes(int(b))
		d := cmp.Compare(len(x), len(y))
		if len(x) > depth && len(y) > depth {
			d = bytes.Compare(rest(a), rest(b))
		}
		if c.key.Desc {
			d = -d
		}
		return d
	}
	for i := 1; i < len(rows); i++ { // keeps the order of equal rows
		r := rows[i]
		k := i
		for ; k > 0 && order(r, rows[k-1]) < 0; k-- {
			rows[k] = rows[k-1]
		}
		rows[k] = r
	}
	if at+1 == len(s.cols) {
		return
	}
	for from := 0; from < len(rows); {
		to := from + 1
		for to < len(rows) && order(rows[from], rows[to]) == 0 {
			to++
		}
		s.sort(rows[from:to], at+1)
		from = to
	}
}

const (
	// radixFrom is the number of rows from which counting bytes beats comparing.
	radixFrom = 512
	// cachedRows is how many entries stay in cache, twice, while all of their bytes are counted.
	cachedRows = 32 << 10
)

// sortEntries orders entries by word; equal words keep their order.
func (s *sorter) sortEntries(e []sortEntry) {
	if len(e) < radixFrom {
		sortFew(e)
		return
	}
	sorted, last, or, and := true, uint64(0), uint64(0), ^uint64(0)
	for i := range e {
		w := e[i].word
		sorted, last = sorted && w >= last, w
		or, and = or|w, and&w
	}
	if sorted {
		return
	}
	if cap(s.scratch) < len(e) {
		s.scratch = make([]sortEntry, len(e))
	}
	radixEntries(e, s.scratch[:len(e)], or&^and)
}

// sortFew sorts by comparing.
func sortFew(e []sortEntry) {
	if len(e) > 24 {
		slices.SortFunc(e, func(a, b sortEntry) int {
			if a.word != b.word {
				if a.word < b.word {
					return -1
				}
				return 1
			}
			return int(a.row) - int(b.row)
		})
		return
	}
	for i := 1; i < len(e); i++ {
		x := e[i]
		k := i
		for ; k > 0 && x.word < e[k-1].word; k-- {
			e[k] = e[k-1]
		}
		e[k] = x
	}
}

// radixEntries sorts entries whose words differ in the bits of varying alone. Few are sorted byte by byte from the lowest;
// many are first cut by their highest bits into pieces that stay in cache.
func radixEntries(e, tmp []sortEntry, varying uint64) {
	top := bits.Len64(varying)
	if len(e) > cachedRows && top > 24 {
		shift := uint(top - 8)
		var ends [256]uint32
		for i := range e {
			ends[e[i].word>>shift&255]++
		}
		sum := uint32(0)
		for b, n := range ends {
			ends[b], sum = sum, sum+n
		}
		for i := range e {
			b := e[i].word >> shift & 255
			tmp[ends[b]] = e[i]
			ends[b]++
		}
		copy(e, tmp)
		from := uint32(0)
		for _, to := range ends {
			if piece := e[from:to]; len(piece) >= radixFrom {
				or, and := uint64(0), ^uint64(0)
				for i := range piece {
					or, and = or|piece[i].word, and&piece[i].word
				}
				radixEntries(piece, tmp[from:to], or&^and)
			} else {
				sortFew(piece)
			}
			from = to
		}
		return
	}
	from, to := e, tmp
	for shift := uint(bits.TrailingZeros64(varying)); shift < uint(top); shift += 8 {
		if varying>>shift&255 == 0 {
			continue
		}
		var at [256]uint32
		for i := range from {
			at[from[i].word>>shift&255]++
		}
		sum := uint32(0)
		for b, n := range at {
			at[b], sum = sum, sum+n
		}
		for i := range from {
			b := from[i].word >> shift & 255
			to[at[b]] = from[i]
			at[b]++
		}
		from, to = to, from
	}
	if len(e) > 0 && &from[0] != &e[0] {
		copy(e, from)
	}
}
