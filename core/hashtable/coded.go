package hashtable

import (
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/types"
)

// Table numbers keys from 0 in order of appearance, and keeps them all.
type Table interface {
	// FindOrAdd sets ids[i] to the number of row i's key, adding the keys that are new.
	FindOrAdd(cols []arrow.Array, n int, ids []uint32)
	// Len is the number of keys.
	Len() int
	// Keys returns the keys numbered from from to to as columns, KeysOf those of these numbers. Keys are in normal form.
	Keys(from, to int) []arrow.Array
	KeysOf(ids []uint32) []arrow.Array
	// LongTexts is the number of texts that are compared by reading them elsewhere.
	LongTexts() int
	// Reset takes all keys out and keeps the memory, with room for so many keys.
	Reset(keys int)
	// Bytes is the memory held.
	Bytes() int64
}

// NewTable makes an empty table for key columns of these types: ranged where there are several that are more than a word, coded
// where that looks up packed words instead of encoded rows, or Groups.
func NewTable(ts []types.Type) Table {
	if r := newRanged(ts); r != nil {
		return r
	}
	if layoutOf(ts, nil) == layRows {
		if c := newCoded(ts); c != nil {
			return c
		}
	}
	return NewGroups(ts)
}

// coded is a table of several columns that do not fit two words: each text is numbered by a table of its column, the first
// columns together when they are still too wide, and the numbers stand for them in the key. There is no way to take
// keys out: the tables below would not know which texts are still in use.
type coded struct {
	texts []textCode // of the text columns
	plain []int      // positions of the other columns
	pairs []uint64   // scratch
	head  *Groups    // of the first columns; nil: all fit
	heads int        // how many of the packed columns they are
	last  *Groups
	ids   []uint32
}

// textCode numbers one column.
type textCode struct {
	at    int
	table *Groups
	ids   []uint32
}

func newCoded(ts []types.Type) *coded {
	c := &coded{}
	var packed []types.Type // pairs of codes, one code that is left, then the other columns
	for i := range ts {
		if layoutOf(ts[i:i+1], nil) == layText {
			c.texts = append(c.texts, textCode{at: i, table: NewGroups(ts[i : i+1])})
		} else {
			c.plain = append(c.plain, i)
		}
	}
	for range len(c.texts) / 2 {
		packed = append(packed, types.Uint64)
	}
	if len(c.texts)%2 == 1 {
		packed = append(packed, types.Uint32)
	}
	for _, i := range c.plain {
		packed = append(packed, ts[i])
	}
	if bitsOf(packed, nil) <= 128 {
		c.last = NewGroups(packed)
		return c
	}
	c.heads = len(packed) - 1
	for c.heads > 0 && bitsOf(packed[:c.heads], nil) > 128 {
		c.heads--
	}
	rest := append([]types.Type{types.Uint32}, packed[c.heads:]...)
	if c.heads < 2 || bitsOf(rest, nil) > 128 {
		return nil
	}
	c.head, c.last = NewGroups(packed[:c.heads]), NewGroups(rest)
	return c
}

func (c *coded) Len() int { return c.last.Len() }

func (c *coded) Bytes() int64 {
	n := c.last.Bytes() + int64(8*cap(c.pairs)+4*cap(c.ids))
	if c.head != nil {
		n += c.head.Bytes()
	}
	for i := range c.texts {
		n += c.texts[i].table.Bytes() + int64(4*cap(c.texts[i].ids))
	}
	return n
}

func (c *coded) LongTexts() int {
	n := 0
	for i := range c.texts {
		n += c.texts[i].table.LongTexts()
	}
	return n
}

// Reset takes the tables below to have as many keys as they had.
func (c *coded) Reset(keys int) {
	for i := range c.texts {
		t := c.texts[i].table
		t.Reset(min(t.Len(), keys))
	}
	if c.head != nil {
		c.head.Reset(min(c.head.Len(), keys))
	}
	c.last.Reset(keys)
}

func (c *coded) FindOrAdd(cols []arrow.Array, n int, ids []uint32) {
	for i := range c.texts {
		t := &c.texts[i]
		t.ids = kernels.Sized(t.ids, n)
		t.table.FindOrAdd(cols[t.at:t.at+1], n, t.ids)
	}
	packed := make([]arrow.Array, 0, len(cols))
	c.pairs = kernels.Sized(c.pairs, n*(len(c.texts)/2))
	for k := 0; k+1 < len(c.texts); k += 2 {
		a, b, out := c.texts[k].ids[:n], c.texts[k+1].ids[:n], c.pairs[k/2*n:(k/2+1)*n]
		for i := range out {
			out[i] = uint64(a[i])<<32 | uint64(b[i])
		}
		packed = append(packed, kernels.NewFixed(arrow.PrimitiveTypes.Uint64, out, nil))
	}
	if k := len(c.texts); k%2 == 1 {
		packed = append(packed, kernels.NewFixed(arrow.PrimitiveTypes.Uint32, c.texts[k-1].ids[:n], nil))
	}
	for _, at := range c.plain {
		packed = append(packed, cols[at])
	}
	if c.head != nil {
		c.ids = kernels.Sized(c.ids, n)
		c.head.FindOrAdd(packed[:c.heads], n, c.ids)
		packed = slices.Replace(packed, 0, c.heads, kernels.NewFixed(arrow.PrimitiveTypes.Uint32, c.ids[:n], nil))
	}
	c.last.FindOrAdd(packed, n, ids)
}

func (c *coded) Keys(from, to int) []arrow.Array {
	ids := make([]uint32, to-from)
	for i := range ids {
		ids[i] = uint32(from + i)
	}
	return c.KeysOf(ids)
}

func (c *coded) KeysOf(ids []uint32) []arrow.Array {
	packed := c.last.KeysOf(ids)
	if c.head != nil {
		packed = slices.Replace(packed, 0, 1, c.head.KeysOf(packed[0].(*array.Uint32).Uint32Values())...)
	}
	out := make([]arrow.Array, len(c.texts)+len(c.plain))
	codes := func(k int, of []uint32) { out[c.texts[k].at] = c.texts[k].table.KeysOf(of)[0] }
	for k := 0; k+1 < len(c.texts); k += 2 {
		a, b := make([]uint32, len(ids)), make([]uint32, len(ids))
		for i, w := range packed[0].(*array.Uint64).Uint64Values() {
			a[i], b[i] = uint32(w>>32), uint32(w)
		}
		codes(k, a)
		codes(k+1, b)
		packed = packed[1:]
	}
	if k := len(c.texts); k%2 == 1 {
		codes(k-1, packed[0].(*array.Uint32).Uint32Values())
		packed = packed[1:]
	}
	for i, at := range c.plain {
		out[at] = packed[i]
	}
	return out
}
