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
// groups are two columns, in blocks that are not written to again; they are brought together by group when a result is first
// asked for. A group is sorted when it is read from end to end; single ranks are selected.
type wordsAcc struct {
	orderedAcc
	t      types.Type
	width  int
	blocks []wordBlock
	n      int // groups

	starts  []int // of each group in byGroup, and the end; nil: not up to date
	byGroup []uint64
	ranked  []int       // of each group: the rank that was selected last + 1, or sortedGroup
	slow    *collectAcc // has taken over when a row came with a weight
}

// wordBlock is rows as they came.
type wordBlock struct {
	words  []uint64
	groups []uint32
}

const sortedGroup = -1

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
	words := rowkey.Words(rowsOf(args[0], len(groups)), a.t, true, kernels.Room[uint64](len(groups))[:0])
	own := kernels.Room[uint32](len(groups))
	copy(own, groups)
	a.blocks, a.starts = append(a.blocks, wordBlock{words, own}), nil
	return nil
}

// giveUp hands all rows to a collectAcc, which knows weights.
func (a *wordsAcc) giveUp() {
	a.slow = newCollect(a.kind)(a.cfg).(*collectAcc)
	a.slow.Resize(a.n)
	for _, b := range a.blocks {
		for i, w := range b.words {
			a.slow.put(b.groups[i], a.row(w), 1)
		}
	}
	a.blocks, a.byGroup, a.starts = nil, nil, nil
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
		for _, b := range o.blocks {
			groups := kernels.Room[uint32](len(b.groups))
			for i, g := range b.groups {
				groups[i] = into[g]
			}
			a.blocks = append(a.blocks, wordBlock{b.words, groups})
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
	for _, b := range o.blocks {
		for i, w := range b.words {
			a.slow.put(into[b.groups[i]], a.row(w), 1)
		}
	}
	return nil
}

// Finish brings the words of each group together.
func (a *wordsAcc) Finish() {
	if a.slow == nil {
		a.index()
	}
}

func (a *wordsAcc) index() {
	if a.starts != nil {
		return
	}
	a.starts = make([]int, a.n+1)
	for _, b := range a.blocks {
		for _, g := range b.groups {
			a.starts[g+1]++
		}
	}
	for g := range a.n {
		a.starts[g+1] += a.starts[g]
	}
	a.byGroup, a.ranked = kernels.Room[uint64](a.starts[a.n]), make([]int, a.n)
	at, out := slices.Clone(a.starts), a.byGroup
	for _, b := range a.blocks {
		words := b.words[:len(b.groups)]
		for i, g := range b.groups {
			to := at[g]
			out[to] = words[i]
			at[g] = to + 1
		}
	}
}

// wordRows is the words of one group. Several goroutines may read groups, but not the same one.
type wordRows struct {
	a     *wordsAcc
	g     uint32
	words []uint64
}

func (r wordRows) total() int64 { return int64(len(r.words)) }

// at is the row at a rank.
func (r wordRows) at(rank int64) []byte {
	k, last := int(rank), &r.a.ranked[r.g]
	switch {
	case *last == sortedGroup:
		return r.a.row(r.words[k])
	case *last > 0 && k == *last: // all that stands behind the last one is not less than it
		return r.a.row(slices.Min(r.words[k:]))
	}
	*last = k + 1
	return r.a.row(kernels.SelectWord(r.words, k))
}

func (r wordRows) each(f func(row []byte, w int64) bool) {
	if last := &r.a.ranked[r.g]; *last != sortedGroup {
		kernels.SortWords(r.words)
		*last = sortedGroup
	}
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
	return wordRows{a, g, a.byGroup[a.starts[g]:a.starts[g+1]]}
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
	for k, b := range a.blocks {
		var left wordBlock
		for i, g := range b.groups {
			if !gone[g] {
				left.words, left.groups = append(left.words, b.words[i]), append(left.groups, g)
			}
		}
		a.blocks[k] = left
	}
	a.blocks = slices.DeleteFunc(a.blocks, func(b wordBlock) bool { return len(b.words) == 0 })
	a.starts = nil
}

func (a *wordsAcc) State() types.Type { return types.Binary }

func (a *wordsAcc) Bytes() int64 {
	n := int64(8*cap(a.byGroup) + 8*cap(a.starts) + 8*cap(a.ranked))
	for _, b := range a.blocks {
		n += int64(8*cap(b.words) + 4*cap(b.groups))
	}
	if a.slow != nil {
		n += a.slow.Bytes()
	}
	return n
}

// SavesTogether: see Together.
func (a *wordsAcc) SavesTogether() {}

func (a *wordsAcc) Save(groups []uint32) (arrow.Array, error) {
	if a.slow != nil {
		return a.slow.Save(groups)
	}
	a.index()
	return saveBytes(groups, func(dst []byte, g uint32) []byte { return saveRows(dst, a.rows(g)) }), nil
}

func (a *wordsAcc) Load(groups []uint32, saved arrow.Array) error {
	var loaded wordBlock
	loadBytes(groups, saved, func(g uint32, b []byte) {
		loadRows(b, func(row []byte, n int64) {
			if n > 1 && a.slow == nil {
				a.blocks, loaded = append(a.blocks, loaded), wordBlock{}
				a.giveUp()
			}
			if a.slow != nil {
				a.slow.put(g, row, n)
				return
			}
			var buf [8]byte
			copy(buf[:], row[1:])
			loaded.words = append(loaded.words, binary.BigEndian.Uint64(buf[:])>>(64-8*a.width))
			loaded.groups = append(loaded.groups, g)
		})
	})
	if len(loaded.words) > 0 {
		a.blocks = append(a.blocks, loaded)
	}
	a.starts = nil
	return nil
}
