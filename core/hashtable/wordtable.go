package hashtable

import (
	"math/bits"
)

// The tables hash with a multiplier of their own: rows that reach a table were often partitioned by kernels.HashColumns,
// and a table that used the same bits would fill only a part of its slots.
const (
	tableSeed = 0x452821E638D01377
	tableMul  = 0xD1342543DE82EF95
)

func hashWord(x uint64) uint64 {
	hi, lo := bits.Mul64(x^tableSeed, tableMul)
	return hi ^ lo
}

// column is an array by group number that grows by doubling.
type column[T any] []T

func (c *column[T]) set(id uint32, v T) {
	if n := int(id) + 1; n > cap(*c) {
		*c = append(make([]T, 0, max(n, 2*cap(*c), 64)), *c...)[:n]
	} else if n > len(*c) {
		*c = (*c)[:n]
	}
	(*c)[id] = v
}

// reset empties the column; its room is at least n.
func (c *column[T]) reset(n int) {
	clear(*c)
	if *c = (*c)[:0]; n > cap(*c) {
		*c = make([]T, 0, n)
	}
}

// slotsFor is the number of slots that so many keys need.
func slotsFor(keys int) int {
	return max(1<<10, 1<<bits.Len(uint(8*keys/5)))
}

// at is the value of a group, zero when it was never set (the group of NULL).
func (c column[T]) at(id uint32) T {
	if int(id) < len(c) {
		return c[id]
	}
	var zero T
	return zero
}

type wordSlot struct {
	key uint64
	id  uint32 // number + 1; 0 is an empty slot
}

// wordTable maps words to numbers: by an array over their range while that is not much larger than their number, else
// by open addressing with linear probing; key and number share a cache line.
type wordTable struct {
	keys  column[uint64] // by number
	count int

	dense []uint32 // number + 1 by key - base; nil when hashed
	base  uint64

	slots    []wordSlot
	shift    uint // the slot is the hash's top bits
	min, max uint64
	spare    []wordSlot // empty slots to begin hashing with; nil: none
}

const minDense = 1 << 16

func newWordTable() *wordTable { return &wordTable{min: ^uint64(0)} }

func (t *wordTable) bytes() int64 {
	return int64(8*cap(t.keys) + 4*cap(t.dense) + 16*(cap(t.slots)+cap(t.spare)))
}

// reset empties the table and keeps its memory, with room for so many keys.
func (t *wordTable) reset(keys int) {
	slots := t.slots
	if slots == nil {
		slots = t.spare
	}
	if n := slotsFor(keys); n > cap(slots) {
		slots = make([]wordSlot, n)
	} else {
		clear(slots) // the others are clear
		slots = slots[:n]
	}
	t.keys.reset(keys)
	*t = wordTable{min: ^uint64(0), keys: t.keys, spare: slots}
}

// denseLimit is the widest range that an array is worth for this many keys: no more memory than hashing takes.
func denseLimit(keys int) uint64 { return uint64(max(minDense, 8*keys)) }

// span widens the range of keys by a batch; ok says whether there was a key at all.
func span(words []uint64, mask []byte, lo, hi uint64) (uint64, uint64) {
	if mask == nil {
		for _, w := range words {
			lo, hi = min(lo, w), max(hi, w)
		}
		return lo, hi
	}
	for i, w := range words {
		if bit(mask, i) {
			lo, hi = min(lo, w), max(hi, w)
		}
	}
	return lo, hi
}

func (t *wordTable) findOrAdd(k *packed, mask []byte, ids []uint32, take func() uint32) {
	words := k.words
	t.min, t.max = span(words, mask, t.min, t.max)
	if t.min > t.max { // no key yet
		dropMasked(ids, mask)
		return
	}
	if t.slots == nil {
		if t.max-t.min < denseLimit(t.count+k.n) {
			t.widen()
			t.addDense(words, mask, ids, take)
			return
		}
		t.rehash(1 << 10)
	}
	t.addHashed(words, mask, ids, take)
}

// widen makes the array cover min to max, with room to grow in the direction of the keys.
func (t *wordTable) widen() {
	end := t.base + uint64(len(t.dense))
	if len(t.dense) > 0 && t.min >= t.base && t.max-t.base < uint64(len(t.dense)) {
		return
	}
	need := t.max - t.min + 1
	base := t.min
	size := need
	if len(t.dense) > 0 {
		size = max(need, min(2*uint64(len(t.dense)), ^uint64(0)-base))
		if t.min < t.base && t.max < end { // grows downwards
			base -= min(base, size-need)
		}
	}
	grown := make([]uint32, size)
	if len(t.dense) > 0 {
		old, off := t.dense, uint64(0)
		if base > t.base {
			old = old[base-t.base:] // nothing below min is in use
		} else {
			off = t.base - base
		}
		copy(grown[off:], old)
	}
	t.dense, t.base = grown, base
}

func (t *wordTable) addDense(words []uint64, mask []byte, ids []uint32, take func() uint32) {
	dense, base := t.dense, t.base
	for i, w := range words {
		if !bit(mask, i) {
			ids[i] = Absent
			continue
		}
		id := dense[w-base]
		if id == 0 {
			id = take() + 1
			dense[w-base] = id
			t.keys.set(id-1, w)
			t.count++
		}
		ids[i] = id - 1
	}
}

// addHashed looks all rows up first, in a loop without stores to the table whose cache misses overlap, and adds the rows
// that were absent after that.
func (t *wordTable) addHashed(words []uint64, mask []byte, ids []uint32, take func() uint32) {
	t.lookup(words, ids)
	for i, id := range ids {
		if id != Absent {
			continue
		}
		if bit(mask, i) {
			ids[i] = t.add(words[i], take)
		}
		if t.slots == nil { // the table has left hashing
			t.addDense(words[i:], tail(mask, i), ids[i:], take)
			break
		}
	}
	dropMasked(ids, mask)
}

// add returns the number of a key that is new, or that an earlier row of the batch has added.
func (t *wordTable) add(w uint64, take func() uint32) uint32 {
	last := uint64(len(t.slots) - 1)
	for p := hashWord(w) >> t.shift; ; p++ {
		s := &t.slots[p&last]
		if s.id == 0 {
			id := take()
			s.key, s.id = w, id+1
			t.keys.set(id, w)
			if t.count++; 8*t.count > 5*len(t.slots) {
				t.grow()
			}
			return id
		}
		if s.key == w {
			return s.id - 1
		}
	}
}

// lookup sets ids to the numbers of keys in the slots, or Absent.
func (t *wordTable) lookup(words []uint64, ids []uint32) {
	slots, shift := t.slots, t.shift
	last := uint64(len(slots) - 1)
	ids = ids[:len(words)]
	for i, w := range words {
		p := hashWord(w) >> shift
		for {
			s := &slots[p&last]
			if s.key == w || s.id == 0 {
				ids[i] = s.id - 1 // an empty slot gives Absent
				break
			}
			p++
		}
	}
}

// tail is a mask from bit i on.
func tail(mask []byte, i int) []byte {
	if mask == nil {
		return nil
	}
	out := make([]byte, (8*len(mask)-i+7)/8)
	for k := range out {
		out[k] = mask[(i>>3)+k] >> (i & 7)
		if i&7 != 0 && (i>>3)+k+1 < len(mask) {
			out[k] |= mask[(i>>3)+k+1] << (8 - i&7)
		}
	}
	return out
}

// grow doubles the slots, or leaves hashing when so many keys have come that their range is dense.
func (t *wordTable) grow() {
	if t.max-t.min < denseLimit(t.count) {
		old := t.slots
		t.slots = nil
		t.dense, t.base = nil, 0
		t.widen()
		for i := range old {
			if old[i].id != 0 {
				t.dense[old[i].key-t.base] = old[i].id
			}
		}
		return
	}
	t.rehash(2 * len(t.slots))
}

// rehash moves all keys to fresh slots.
func (t *wordTable) rehash(size int) {
	for 8*t.count > 4*size {
		size *= 2
	}
	slots := t.spare
	if t.spare = nil; len(slots) < size {
		slots = make([]wordSlot, size)
	}
	size = len(slots)
	shift, last := uint(64-bits.Len(uint(size-1))), uint64(size-1)
	put := func(key uint64, id uint32) {
		p := hashWord(key) >> shift
		for slots[p&last].id != 0 {
			p++
		}
		slots[p&last] = wordSlot{key, id}
	}
	for i := range t.slots {
		if s := &t.slots[i]; s.id != 0 {
			put(s.key, s.id)
		}
	}
	for i, id := range t.dense {
		if id != 0 {
			put(t.base+uint64(i), id)
		}
	}
	t.slots, t.shift, t.dense = slots, shift, nil
}

func (t *wordTable) find(k *packed, mask []byte, ids []uint32) {
	words := k.words
	ids = ids[:len(words)]
	switch {
	case t.slots != nil:
		t.lookup(words, ids)
	default:
		dense, base := t.dense, t.base
		for i, w := range words {
			ids[i] = Absent
			if off := w - base; off < uint64(len(dense)) {
				ids[i] = dense[off] - 1
			}
		}
	}
	dropMasked(ids, mask)
}

// free takes a key out; in open addressing the keys behind it move up, so that no probe ends too early.
func (t *wordTable) free(id uint32) {
	t.count--
	key := t.keys[id]
	if t.slots == nil {
		t.dense[key-t.base] = 0
		return
	}
	slots, last := t.slots, uint64(len(t.slots)-1)
	p := hashWord(key) >> t.shift & last
	for slots[p].id != id+1 {
		p = (p + 1) & last
	}
	for q := (p + 1) & last; slots[q].id != 0; q = (q + 1) & last {
		if home := hashWord(slots[q].key) >> t.shift & last; (q-home)&last >= (q-p)&last {
			slots[p] = slots[q]
			p = q
		}
	}
	slots[p] = wordSlot{}
}
