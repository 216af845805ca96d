package fn

import (
	"bytes"
	"slices"
	"sort"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/types"
)

// bagAcc keeps each group's rows sorted, with weights: the accumulator of ordered aggregates under retractions.
type bagAcc struct {
	orderedAcc
	bags []bag
	held int64
}

func newBag(kind ordered) func(c AggConfig) Accumulator {
	return func(c AggConfig) Accumulator { return &bagAcc{orderedAcc: newOrderedAcc(c, kind)} }
}

// bag is a sorted multiset of rows, in chunks so that an insertion moves few of them. A weight may be negative for a
// while, when a retraction comes before its row; such rows do not show.
type bag struct {
	chunks []rowList // none is empty
	n      int64     // sum of the positive weights
}

const bagChunk = 128

// add adds a weight to a row and returns the bytes that memory has grown by.
func (b *bag) add(row []byte, w int64) int64 {
	if w == 0 {
		return 0
	}
	c := sort.Search(len(b.chunks), func(i int) bool { return bytes.Compare(b.chunks[i][0].row, row) > 0 }) - 1
	if c < 0 {
		c = 0
	}
	if len(b.chunks) == 0 {
		b.chunks = append(b.chunks, nil)
	}
	l := b.chunks[c]
	i, found := slices.BinarySearchFunc(l, row, func(r bagRow, row []byte) int { return bytes.Compare(r.row, row) })
	if found {
		old := l[i].n
		l[i].n += w
		b.n += max(l[i].n, 0) - max(old, 0)
		if l[i].n != 0 {
			return 0
		}
		size := int64(len(l[i].row) + 32)
		if b.chunks[c] = slices.Delete(l, i, i+1); len(b.chunks[c]) == 0 {
			b.chunks = slices.Delete(b.chunks, c, c+1)
		}
		return -size
	}
	b.n += max(w, 0)
	l = slices.Insert(l, i, bagRow{bytes.Clone(row), w})
	if len(l) <= bagChunk {
		b.chunks[c] = l
	} else {
		half := len(l) / 2
		b.chunks[c] = l[:half:half]
		b.chunks = slices.Insert(b.chunks, c+1, slices.Clone(l[half:]))
	}
	return int64(len(row) + 32)
}

func (b *bag) total() int64 { return b.n }

func (b *bag) each(f func(row []byte, w int64) bool) {
	for _, l := range b.chunks {
		for _, r := range l {
			if r.n > 0 && !f(r.row, r.n) {
				return
			}
		}
	}
}

// all is each with the rows of negative weight: what is saved.
func (b *bag) all(f func(row []byte, w int64)) {
	for _, l := range b.chunks {
		for _, r := range l {
			f(r.row, r.n)
		}
	}
}

func (a *bagAcc) Resize(n int) { a.bags = grow(a.bags, n) }

func (a *bagAcc) Add(groups []uint32, args []Arg, weights []int64) error {
	rows := a.encode(len(groups), args)
	for i, g := range groups {
		a.held += a.bags[g].add(rows.Row(i), weightOf(weights, i))
	}
	return nil
}

func (a *bagAcc) Merge(other Accumulator, into []uint32) error {
	o := other.(*bagAcc)
	for i, g := range into {
		o.bags[i].all(func(row []byte, w int64) { a.held += a.bags[g].add(row, w) })
	}
	return nil
}

func (a *bagAcc) Result(groups []uint32) (arrow.Array, error) {
	return a.result(groups, func(g uint32) sortedRows { return &a.bags[g] })
}

func (a *bagAcc) Reset(groups []uint32) {
	for _, g := range groups {
		a.bags[g].all(func(row []byte, _ int64) { a.held -= int64(len(row) + 32) })
		a.bags[g] = bag{}
	}
}

func (a *bagAcc) State() types.Type { return types.Binary }
func (a *bagAcc) Bytes() int64      { return a.held + int64(32*cap(a.bags)) }

func (a *bagAcc) Save(groups []uint32) (arrow.Array, error) {
	return saveBytes(groups, func(dst []byte, g uint32) []byte {
		a.bags[g].all(func(row []byte, w int64) { dst = appendRow(dst, row, w) })
		return dst
	}), nil
}

func (a *bagAcc) Load(groups []uint32, saved arrow.Array) error {
	loadBytes(groups, saved, func(g uint32, b []byte) {
		loadRows(b, func(row []byte, w int64) { a.held += a.bags[g].add(row, w) })
	})
	return nil
}
