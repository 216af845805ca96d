package fn

import (
	"encoding/binary"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/rowkey"
	"github.com/riverbed/riverbed/core/types"
)

// wordsAcc is collectAcc for one argument that fits a word: medians and quantiles of numbers and times. Values and their
// groups are two columns; they are brought together by group, and sorted, when a result is first asked for.
type wordsAcc struct {
	orderedAcc
	t      types.Type
	width  int
	words  []uint64
	groups []uint32
	n      int // groups

	starts []int // of each group in sorted, and the end; nil: not up to date
	sorted []uint64
	slow   *collectAcc // has taken over when a row came with a weight
}

// newWords makes a wordsAcc where the type allows it.
func newWords(kind ordered) func(c AggConfig) Accumulator {
	return func(c AggConfig) Accumulator {
		t := c.Args[0]
		w := rowkey.Width(t)
		if w == 0 || w > 8 {
			return newCollect(kind)(c)
		}
		return &wordsAcc{orderedAcc: newOrderedAcc(c, kind), t: t, width: w}
	}
}

func (a *wordsAcc) Resize(n int) {
	a.n, a.starts = max(a.n, n), nil
	if a.slow != nil {
		a.slow.Resize(n)
	}
}

func (a *wordsAcc) Add(groups []uint32, args []Arg, weights []int64) error {
	if a.slow == nil && slices.ContainsFunc(weights, func(w int64) bool { return w != 1 }) {
		a.giveUp()
	}
	if a.slow != nil {
		return a.slow.Add(groups, args, weights)
	}
	a.words = rowkey.Words(rowsOf(args[0], len(groups)), a.t, true, a.words)
	a.groups = append(a.groups, groups...)
	a.starts = nil
	return nil
}

// giveUp hands all rows to a collectAcc, which knows weights.
func (a *wordsAcc) giveUp() {
	a.slow = newCollect(a.kind)(a.cfg).(*collectAcc)
	a.slow.Resize(a.n)
	for i, w := range a.words {
		a.slow.put(a.groups[i], a.row(w), 1)
	}
	a.words, a.groups, a.sorted, a.starts = nil, nil, nil, nil
}

// row is a word as an encoded row.
func (a *wordsAcc) row(w uint64) []byte {
	var b [9]byte
	binary.BigEndian.PutUint64(b[1:], w<<(64-8*a.width))
	b[0] = 1 // as rowkey marks what is not NULL
	return slices.Clone(b[:1+a.width])
}

func (a *wordsAcc) Merge(other Accumulator, into []uint32) error {
	o := other.(*wordsAcc)
	if a.slow == nil && o.slow == nil {
		a.words = append(a.words, o.words...)
		for _, g := range o.groups {
			a.groups = append(a.groups, into[g])
		}
		a.starts = nil
		return nil
	}
	if a.slow == nil {
		a.giveUp()
	}
	if o.slow != nil {
		return a.slow.Merge(o.slow, into)
	}
	for i, w := range o.words {
		a.slow.put(into[o.groups[i]], a.row(w), 1)
	}
	return nil
}

// index sorts the words of each group.
func (a *wordsAcc) index() {
	if a.starts != nil {
		return
	}
	a.starts = make([]int, a.n+1)
	for _, g := range a.groups {
		a.starts[g+1]++
	}
	for g := range a.n {
		a.starts[g+1] += a.starts[g]
	}
	a.sorted = append(a.sorted[:0], make([]uint64, len(a.words))...)
	at := slices.Clone(a.starts)
	for i, g := range a.groups {
		a.sorted[at[g]] = a.words[i]
		at[g]++
	}
	for g := range a.n {
		kernels.SortWords(a.sorted[a.starts[g]:a.starts[g+1]])
	}
}

// wordRows is the sorted words of one group.
type wordRows struct {
	a     *wordsAcc
	words []uint64
}

func (r wordRows) total() int64         { return int64(len(r.words)) }
func (r wordRows) at(rank int64) []byte { return r.a.row(r.words[rank]) }

func (r wordRows) each(f func(row []byte, w int64) bool) {
	for i := 0; i < len(r.words); {
		from := i
		for i++; i < len(r.words) && r.words[i] == r.words[from]; i++ {
		}
		if !f(r.a.row(r.words[from]), int64(i-from)) {
			return
		}
	}
}

func (a *wordsAcc) rows(g uint32) sortedRows {
	return wordRows{a, a.sorted[a.starts[g]:a.starts[g+1]]}
}

func (a *wordsAcc) Result(groups []uint32) (arrow.Array, error) {
	if a.slow != nil {
		return a.slow.Result(groups)
	}
	a.index()
	return a.result(groups, a.rows)
}

func (a *wordsAcc) Reset(groups []uint32) {
	if a.slow != nil {
		a.slow.Reset(groups)
		return
	}
	gone := make(map[uint32]bool, len(groups))
	for _, g := range groups {
		gone[g] = true
	}
	k := 0
	for i, g := range a.groups {
		if !gone[g] {
			a.words[k], a.groups[k] = a.words[i], g
			k++
		}
	}
	a.words, a.groups, a.starts = a.words[:k], a.groups[:k], nil
}

func (a *wordsAcc) State() types.Type { return types.Binary }

func (a *wordsAcc) Bytes() int64 {
	n := int64(8*cap(a.words) + 4*cap(a.groups) + 8*cap(a.sorted) + 8*cap(a.starts))
	if a.slow != nil {
		n += a.slow.Bytes()
	}
	return n
}

func (a *wordsAcc) Save(groups []uint32) (arrow.Array, error) {
	if a.slow != nil {
		return a.slow.Save(groups)
	}
	a.index()
	return saveBytes(groups, func(dst []byte, g uint32) []byte { return saveRows(dst, a.rows(g)) }), nil
}

func (a *wordsAcc) Load(groups []uint32, saved arrow.Array) error {
	loadBytes(groups, saved, func(g uint32, b []byte) {
		loadRows(b, func(row []byte, n int64) {
			if n > 1 && a.slow == nil {
				a.giveUp()
			}
			if a.slow != nil {
				a.slow.put(g, row, n)
				return
			}
			var buf [8]byte
			copy(buf[:], row[1:])
			a.words = append(a.words, binary.BigEndian.Uint64(buf[:])>>(64-8*a.width))
			a.groups = append(a.groups, g)
		})
	})
	a.starts = nil
	return nil
}
