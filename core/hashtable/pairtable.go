package hashtable

import (
	"bytes"
	"encoding/binary"
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/rowkey"
	"github.com/riverbed/riverbed/core/types"
)

type pairSlot struct {
	a, b uint64
	id   uint32 // number + 1; 0 is an empty slot
}

// pairTable maps two words to numbers by open addressing with linear probing. With text, a second word that starts with
// longMark stands for a text in the arena, and the first is its hash.
type pairTable struct {
	text  bool
	keys  column[[2]uint64] // by number
	count int
	slots []pairSlot
	shift uint

	arena   arena
	spans   []textSpan // of the long texts
	unused  []uint32   // entries of spans that may be given out again
	garbage int        // bytes of the arena that nobody refers to
}

type textSpan struct {
	at  place
	len uint32
}

// arena is bytes that never move: they are written into blocks, each larger than the one before up to a size.
type arena struct {
	blocks [][]byte
	size   int // of all blocks
	used   int
}

// place is a block and an offset in it.
type place uint64

const (
	firstBlock = 4 << 10
	lastBlock  = 1 << 20
)

// put copies bytes into the arena.
func (a *arena) put(s []byte) place {
	last := len(a.blocks) - 1
	if last < 0 || len(a.blocks[last])+len(s) > cap(a.blocks[last]) {
		size := max(min(firstBlock<<(last+1), lastBlock), len(s))
		if last > 16 {
			size = max(lastBlock, len(s))
		}
		a.blocks = append(a.blocks, make([]byte, 0, size))
		a.size += size
		last++
	}
	b := &a.blocks[last]
	at := place(last)<<32 | place(len(*b))
	*b = append(*b, s...)
	a.used += len(s)
	return at
}

func (a *arena) get(at place, n uint32) []byte {
	off := uint32(at)
	return a.blocks[at>>32][off : off+n]
}

// reset drops all bytes and keeps the last block, the largest.
func (a *arena) reset() {
	if n := len(a.blocks); n > 0 {
		last := a.blocks[n-1][:0]
		*a = arena{blocks: [][]byte{last}, size: cap(last)}
	}
}

func newPairTable(text bool) *pairTable {
	t := &pairTable{text: text}
	t.rehash(1 << 8)
	return t
}

// reset empties the table and keeps its memory, with room for so many keys.
func (t *pairTable) reset(keys int) {
	clear(t.slots) // the others are clear
	if n := slotsFor(keys); n > cap(t.slots) {
		t.slots = make([]pairSlot, n)
	} else {
		t.slots = t.slots[:n]
	}
	t.shift = uint(64 - bits.Len(uint(len(t.slots)-1)))
	t.keys.reset(keys)
	t.arena.reset()
	t.count, t.spans, t.unused, t.garbage = 0, t.spans[:0], t.unused[:0], 0
}

func (t *pairTable) bytes() int64 {
	return int64(16*cap(t.keys) + 24*cap(t.slots) + t.arena.size + 16*cap(t.spans) + 4*cap(t.unused))
}

func isLong(b uint64) bool { return b>>56 == 0xFF }

// pairHash is of the content: a long text counts by its hash alone, since its second word is only a place.
func pairHash(a, b uint64, text bool) uint64 {
	hi, lo := bits.Mul64(a^tableSeed, tableMul)
	if text && b >= longMark {
		return hi ^ lo
	}
	hi, lo = bits.Mul64(hi^lo^b, tableMul)
	return hi ^ lo
}

func (t *pairTable) hash(a, b uint64) uint64 { return pairHash(a, b, t.text) }

// stored returns the bytes of a long text.
func (t *pairTable) stored(b uint64) []byte {
	s := t.spans[uint32(b)]
	return t.arena.get(s.at, s.len)
}

// sameText reports whether a stored second word and a loaded one are the same long text; their hashes are known to be equal.
func (t *pairTable) sameText(b, loaded uint64, k *packed) bool {
	return t.text && isLong(b) && isLong(loaded) && bytes.Equal(t.stored(b), k.texts.row(int(loaded&(fromRow-1))))
}

// findOrAdd looks all rows up first, as wordTable.addHashed does.
func (t *pairTable) findOrAdd(k *packed, mask []byte, ids []uint32, take func() uint32) {
	t.find(k, mask, ids)
	for i, id := range ids[:len(k.pairs)] {
		if id == Absent && bit(mask, i) {
			ids[i] = t.add(k, i, take)
		}
	}
}

// add returns the number of row i's key, which is new or was added by an earlier row of the batch.
func (t *pairTable) add(k *packed, i int, take func() uint32) uint32 {
	a, b := k.pairs[i][0], k.pairs[i][1]
	last := uint64(len(t.slots) - 1)
	for p := t.hash(a, b) >> t.shift; ; p++ {
		s := &t.slots[p&last]
		if s.id == 0 {
			id := take()
			if t.text && isLong(b) {
				b = t.intern(k.texts.row(int(b & (fromRow - 1))))
			}
			s.a, s.b, s.id = a, b, id+1
			t.keys.set(id, [2]uint64{a, b})
			if t.count++; 8*t.count > 5*len(t.slots) {
				t.rehash(2 * len(t.slots))
			}
			return id
		}
		if s.a == a && (s.b == b || t.sameText(s.b, b, k)) {
			return s.id - 1
		}
	}
}

func (t *pairTable) find(k *packed, mask []byte, ids []uint32) {
	slots, shift, text := t.slots, t.shift, t.text
	last := uint64(len(slots) - 1)
	pairs := k.pairs
	ids = ids[:len(pairs)]
	for i := range pairs {
		a, b := pairs[i][0], pairs[i][1]
		p := pairHash(a, b, text) >> shift
		for {
			s := &slots[p&last]
			if s.a == a && s.b == b || s.id == 0 {
				ids[i] = s.id - 1 // an empty slot gives Absent
				break
			}
			if s.a == a && t.sameText(s.b, b, k) {
				ids[i] = s.id - 1
				break
			}
			p++
		}
	}
	dropMasked(ids, mask)
}

func (t *pairTable) rehash(size int) {
	slots := make([]pairSlot, size)
	shift, last := uint(64-bits.Len(uint(size-1))), uint64(size-1)
	for i := range t.slots {
		s := &t.slots[i]
		if s.id == 0 {
			continue
		}
		p := t.hash(s.a, s.b) >> shift
		for slots[p&last].id != 0 {
			p++
		}
		slots[p&last] = *s
	}
	t.slots, t.shift = slots, shift
}

// intern copies a long text into the arena and returns the second word that stands for it.
func (t *pairTable) intern(s []byte) uint64 {
	span := textSpan{t.arena.put(s), uint32(len(s))}
	if n := len(t.unused); n > 0 {
		e := t.unused[n-1]
		t.unused = t.unused[:n-1]
		t.spans[e] = span
		return longMark | uint64(e)
	}
	t.spans = append(t.spans, span)
	return longMark | uint64(len(t.spans)-1)
}

func (t *pairTable) free(id uint32) {
	t.count--
	k := t.keys[id]
	slots, last := t.slots, uint64(len(t.slots)-1)
	p := t.hash(k[0], k[1]) >> t.shift & last
	for slots[p].id != id+1 {
		p = (p + 1) & last
	}
	for q := (p + 1) & last; slots[q].id != 0; q = (q + 1) & last {
		if home := t.hash(slots[q].a, slots[q].b) >> t.shift & last; (q-home)&last >= (q-p)&last {
			slots[p] = slots[q]
			p = q
		}
	}
	slots[p] = pairSlot{}
	t.keys[id] = [2]uint64{}
	if t.text && isLong(k[1]) {
		e := uint32(k[1])
		t.garbage += int(t.spans[e].len)
		t.spans[e].len = 0
		t.unused = append(t.unused, e)
		if t.garbage > 1<<16 && 2*t.garbage > t.arena.used {
			t.compact()
		}
	}
}

// compact drops the bytes of freed texts.
func (t *pairTable) compact() {
	var fresh arena
	for i := range t.spans {
		s := &t.spans[i]
		s.at = fresh.put(t.arena.get(s.at, s.len))
	}
	t.arena, t.garbage = fresh, 0
}

// columns turns the keys of these numbers into key columns.
func (t *pairTable) columns(ts []types.Type, lay layout, ids []uint32, valid []byte) []arrow.Array {
	if lay == layPair {
		pairs := make([][2]uint64, len(ids))
		for i, id := range ids {
			pairs[i] = t.keys.at(id)
		}
		return unpackPairs(ts, pairs, valid)
	}
	if lay == layRows {
		buf := make([]byte, 0, 16*len(ids)) // short rows are unpacked here; it must not move
		return rowkey.Decode(ts, nil, len(ids), func(i int) []byte {
			k := t.keys.at(ids[i])
			if isLong(k[1]) {
				return t.stored(k[1])
			}
			buf = appendPair(buf, k)
			return buf[len(buf)-int(k[1]>>56):]
		})
	}
	offs := make([]int32, len(ids)+1)
	var data []byte
	for i, id := range ids {
		if k := t.keys.at(id); isLong(k[1]) {
			data = append(data, t.stored(k[1])...)
		} else {
			data = appendPair(data, k)
		}
		offs[i+1] = int32(len(data))
	}
	return []arrow.Array{kernels.NewBytes(ts[0].Arrow(), offs, data, valid)}
}

// appendPair appends a short text.
func appendPair(dst []byte, k [2]uint64) []byte {
	n := int(k[1] >> 56)
	dst = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(dst, k[0]), k[1])
	return dst[:len(dst)-16+n]
}
