// Package hashtable numbers distinct keys: the tables behind GROUP BY, DISTINCT and joins, in both modes.
//
// Invariant: two rows get the same number if and only if their keys are equal in SQL, where NULL equals NULL. Table
// memory holds no pointers, so the garbage collector does not scan it, and there is no Go map on any row's path.
package hashtable

import (
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/types"
)

// Absent is the number that Find gives to keys that are not in the table.
const Absent = ^uint32(0)

// Groups numbers keys from 0 in order of appearance. One goroutine changes it at a time; Finders may read it
// concurrently while nobody does.
//
// The key columns are packed into one word or two where they fit (words.go), a text of up to 15 bytes counting as two
// words; everything else is encoded by rowkey and looked up as a text. Words that are close together index an array.
type Groups struct {
	types  []types.Type
	lay    layout
	index  table
	nullID uint32 // number + 1 of the group of NULL, in the layouts of one column
	next   uint32
	free   []uint32
	freed  bool // some key was taken out once
	load   loader
	short  *shortTexts // of layText
}

// table maps packed keys to numbers.
type table interface {
	// findOrAdd sets ids; rows that mask (nil: none) leaves out get Absent. take gives the number of a new key.
	findOrAdd(k *packed, mask []byte, ids []uint32, take func() uint32)
	find(k *packed, mask []byte, ids []uint32)
	free(id uint32)
	reset(keys int)
	bytes() int64
}

// NewGroups makes an empty table for key columns of these types.
func NewGroups(ts []types.Type) *Groups { return newGroups(ts, nil) }

// newGroups is NewGroups where the caller masks the rows in which a bare column is NULL.
func newGroups(ts []types.Type, bare []bool) *Groups {
	g := &Groups{types: ts, lay: layoutOf(ts, bare)}
	g.load = newLoader(ts, bare, g.lay)
	switch g.lay {
	case layWord:
		g.index = newWordTable()
	case layPair, layText, layRows:
		g.index = newPairTable(g.lay != layPair)
	}
	return g
}

// Len is one more than the greatest number given out: the size that arrays by group need.
func (g *Groups) Len() int { return int(g.next) }

// Live is the number of keys in the table.
func (g *Groups) Live() int { return int(g.next) - len(g.free) }

// Bytes is the memory held.
func (g *Groups) Bytes() int64 {
	n := int64(4*cap(g.free)) + g.load.bytes()
	if g.index != nil {
		n += g.index.bytes()
	}
	if s := g.short; s != nil {
		n += int64(16*len(s.slots) + 4*cap(s.missed) + 4*cap(s.ids))
	}
	return n
}

// LongTexts is the number of keys, or texts in them, that are not held in place.
func (g *Groups) LongTexts() int {
	if t, ok := g.index.(*pairTable); ok {
		return len(t.spans) - len(t.unused)
	}
	return 0
}

// Reset takes all keys out and keeps the memory, with room for so many keys.
func (g *Groups) Reset(keys int) {
	if g.index != nil {
		g.index.reset(keys)
	}
	g.nullID, g.next, g.free, g.freed, g.short = 0, 0, g.free[:0], false, nil
}

func (g *Groups) take() uint32 {
	if n := len(g.free); n > 0 {
		id := g.free[n-1]
		g.free = g.free[:n-1]
		return id
	}
	g.next++
	return g.next - 1
}

// FindOrAdd sets ids[i] to the number of row i's key, adding the keys that are new.
func (g *Groups) FindOrAdd(cols []arrow.Array, n int, ids []uint32) { g.findOrAdd(cols, n, nil, ids) }

// findOrAdd leaves out the rows whose bit in mask (nil: all set) is clear.
func (g *Groups) findOrAdd(cols []arrow.Array, n int, mask []byte, ids []uint32) {
	if n == 0 {
		return
	}
	ids, mask = ids[:n], trim(mask, n)
	if g.lay == layNone {
		if g.Live() == 0 {
			g.take()
		}
		clear(ids)
		dropMasked(ids, mask)
		return
	}
	if g.lay == layText && mask == nil && g.addShort(cols[0], ids) {
		return
	}
	k := g.load.load(cols, n)
	rows := kernels.AndBits(mask, k.valid)
	if k.valid != nil && g.nullID == 0 && someNull(k.valid, mask, n) {
		g.nullBeforeOthers(k, mask, rows, ids)
		return
	}
	g.index.findOrAdd(k, rows, ids, g.take)
	g.fillNulls(k.valid, mask, ids)
}

// nullBeforeOthers adds the group of NULL among the others in order of appearance: rows before the first NULL first.
func (g *Groups) nullBeforeOthers(k *packed, mask, rows []byte, ids []uint32) {
	first := 0
	for bit(k.valid, first) || !bit(mask, first) {
		first++
	}
	head := k.slice(0, first)
	g.index.findOrAdd(&head, trim(rows, first), ids[:first], g.take)
	g.nullID = g.take() + 1
	g.index.findOrAdd(k, rows, ids, g.take)
	g.fillNulls(k.valid, mask, ids)
}

func (g *Groups) fillNulls(valid, mask []byte, ids []uint32) {
	if valid == nil || g.nullID == 0 {
		return
	}
	for i := range ids {
		if !bit(valid, i) && bit(mask, i) {
			ids[i] = g.nullID - 1
		}
	}
}

// Find sets ids[i] to the number of row i's key, or to Absent.
func (g *Groups) Find(cols []arrow.Array, n int, ids []uint32) { g.find(&g.load, cols, n, nil, ids) }

func (g *Groups) find(l *loader, cols []arrow.Array, n int, mask []byte, ids []uint32) {
	if n == 0 {
		return
	}
	ids = ids[:n]
	if g.lay == layNone {
		for i := range ids {
			ids[i] = 0
			if g.Live() == 0 {
				ids[i] = Absent
			}
		}
		dropMasked(ids, mask)
		return
	}
	k := l.load(cols, n)
	g.index.find(k, kernels.AndBits(mask, k.valid), ids)
	g.fillNulls(k.valid, mask, ids)
}

// Finder reads a table from one goroutine among several.
type Finder struct {
	g    *Groups
	load loader
}

// Finder returns a reader of its own scratch memory.
func (g *Groups) Finder() *Finder { return &Finder{g, newLoader(g.types, g.load.bare, g.lay)} }

// Find is Groups.Find.
func (f *Finder) Find(cols []arrow.Array, n int, ids []uint32) { f.g.find(&f.load, cols, n, nil, ids) }

// Free takes keys out; their numbers are given to new keys. Each id must be in the table and stand once in ids.
func (g *Groups) Free(ids []uint32) {
	g.freed, g.short = true, nil // which would know keys that are gone
	for _, id := range ids {
		if g.nullID == id+1 {
			g.nullID = 0
		} else if g.index != nil {
			g.index.free(id)
		}
		g.free = append(g.free, id)
	}
}

// Keys returns the keys numbered from from to to as columns. Keys are in normal form: 0.0 for -0.0.
func (g *Groups) Keys(from, to int) []arrow.Array {
	ids := make([]uint32, to-from)
	for i := range ids {
		ids[i] = uint32(from + i)
	}
	return g.KeysOf(ids)
}

// KeysOf returns the keys of these numbers as columns.
func (g *Groups) KeysOf(ids []uint32) []arrow.Array {
	switch t := g.index.(type) {
	case *wordTable:
		words := make([]uint64, len(ids))
		for i, id := range ids {
			words[i] = t.keys.at(id)
		}
		return unpackWords(g.types, words, g.validOf(ids))
	case *pairTable:
		return t.columns(g.types, g.lay, ids, g.validOf(ids))
	}
	return nil
}

// validOf is the validity of the single key column, or nil when no NULL is among ids.
func (g *Groups) validOf(ids []uint32) []byte {
	if g.nullID == 0 {
		return nil
	}
	var valid []byte
	for i, id := range ids {
		if id+1 == g.nullID {
			if valid == nil {
				valid = kernels.Ones(len(ids))
			}
			kernels.ClearBit(valid, i)
		}
	}
	return valid
}

func bit(b []byte, i int) bool { return b == nil || b[i>>3]>>(i&7)&1 != 0 }

func trim(b []byte, n int) []byte {
	if b == nil {
		return nil
	}
	return b[:(n+7)/8]
}

func someNull(valid, mask []byte, n int) bool {
	for i := range n {
		if !bit(valid, i) && bit(mask, i) {
			return true
		}
	}
	return false
}

func dropMasked(ids []uint32, mask []byte) {
	if mask == nil {
		return
	}
	for i := range ids {
		if !bit(mask, i) {
			ids[i] = Absent
		}
	}
}
