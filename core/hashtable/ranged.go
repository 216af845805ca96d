package hashtable

import (
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/rowkey"
	"github.com/riverbed/riverbed/core/types"
)

// ranged is a table of several columns that packs each key into as few bits as the values that have come need: a whole number is
// its distance from the least, a text its number in a table of its column. A value outside makes the table pack all keys anew
// with more bits; where two words do not suffice, another table takes over. There is no way to take keys out.
type ranged struct {
	types []types.Type
	cols  []rangedColumn
	wide  Table // not nil: it has all keys
	index table // of one word or two
	pairs bool
	next  uint32
	load  packed
}

// rangedColumn is how a column is packed, and its values of the batch at hand.
type rangedColumn struct {
	text  *Groups // numbers texts, NULL among them; nil: words
	base  uint64
	bits  uint
	null  bool // there is one more bit, which is 0 for NULL
	ids   []uint32
	words []uint64
	valid []byte
}

// newRanged is nil when the columns are not of words and texts, or are one word as they are.
func newRanged(ts []types.Type) *ranged {
	r, bits := &ranged{types: ts, cols: make([]rangedColumn, len(ts))}, 0
	for i, t := range ts {
		switch w := rowkey.Width(t); {
		case w > 0 && w <= 8:
			bits += 8*w + 1
		case t.Kind == types.Varchar || t.Kind == types.JSON || t.Kind == types.Blob:
			r.cols[i].text = NewGroups(ts[i : i+1])
			bits += 64
		default:
			return nil
		}
	}
	if len(ts) < 2 || bits <= 64 {
		return nil
	}
	return r
}

func (r *ranged) take() uint32 {
	r.next++
	return r.next - 1
}

func (r *ranged) Len() int {
	if r.wide != nil {
		return r.wide.Len()
	}
	return int(r.next)
}

func (r *ranged) Bytes() int64 {
	n := int64(8*cap(r.load.words) + 16*cap(r.load.pairs))
	for i := range r.cols {
		c := &r.cols[i]
		if n += int64(4*cap(c.ids) + 8*cap(c.words)); c.text != nil {
			n += c.text.Bytes()
		}
	}
	if r.index != nil {
		n += r.index.bytes()
	}
	if r.wide != nil {
		n += r.wide.Bytes()
	}
	return n
}

func (r *ranged) LongTexts() int {
	if r.wide != nil {
		return r.wide.LongTexts()
	}
	n := 0
	for i := range r.cols {
		if t := r.cols[i].text; t != nil {
			n += t.LongTexts()
		}
	}
	return n
}

// Reset keeps the layout.
func (r *ranged) Reset(keys int) {
	if r.wide != nil {
		r.wide.Reset(keys)
		return
	}
	for i := range r.cols {
		if t := r.cols[i].text; t != nil {
			t.Reset(min(t.Len(), keys))
		}
	}
	if r.next = 0; r.index != nil {
		r.index.reset(keys)
	}
}

func (r *ranged) FindOrAdd(cols []arrow.Array, n int, ids []uint32) {
	if n == 0 {
		return
	}
	if r.wide == nil {
		fit := r.index != nil
		for i := range r.cols {
			fit = r.cols[i].take(cols[i], r.types[i], n) && fit
		}
		if !fit {
			r.widen()
		}
	}
	if r.wide != nil {
		r.wide.FindOrAdd(cols, n, ids)
		return
	}
	r.pack(n)
	r.index.findOrAdd(&r.load, nil, ids[:n], r.take)
}

// take loads a batch's column; false: some value needs more bits.
func (c *rangedColumn) take(col arrow.Array, t types.Type, n int) bool {
	if c.text != nil {
		c.ids = kernels.Sized(c.ids, n)
		c.text.FindOrAdd([]arrow.Array{col}, n, c.ids)
		return bits.Len(uint(c.text.Len()-1)) <= int(c.bits)
	}
	c.words, c.valid = rowkey.Words(col, t, false, c.words[:0]), kernels.Valid(col)
	c.fillNulls()
	far, base := uint64(0), c.base
	for _, w := range c.words {
		far |= w - base
	}
	return bits.Len64(far) <= int(c.bits) && (c.null || c.valid == nil)
}

// widen lays the columns out so that the batch fits as well, with room beside its values, and packs the keys anew.
func (r *ranged) widen() {
	old := *r
	old.cols = append([]rangedColumn{}, r.cols...)
	total := uint(0)
	for i := range r.cols {
		c := &r.cols[i]
		if c.text != nil {
			if need := uint(bits.Len(uint(c.text.Len() - 1))); need > c.bits {
				c.bits = need + 1
			}
		} else {
			c.widen(r.index == nil || r.next == 0)
		}
		if total += c.bits; c.null {
			total++
		}
	}
	if total > 128 {
		r.leave(&old)
		return
	}
	total += r.spend(total)
	r.pairs, r.next = total > 64, 0
	if r.index = newWordTable(); r.pairs {
		r.index = newPairTable(false)
	}
	if old.next == 0 {
		return
	}
	batch := append([]rangedColumn{}, r.cols...)
	const chunk = 1 << 14
	again := make([]uint32, chunk)
	for from := 0; from < int(old.next); from += chunk {
		n := min(chunk, int(old.next)-from)
		for i, words := range old.unpack(from, n) {
			c := &r.cols[i]
			if c.valid = words.valid; c.text != nil {
				c.ids = make([]uint32, n)
				for k, w := range words.words {
					c.ids[k] = uint32(w)
				}
				continue
			}
			c.words = words.words
			c.fillNulls()
		}
		r.pack(n)
		r.index.findOrAdd(&r.load, nil, again[:n], r.take) // gives them the numbers that they had
	}
	for i := range r.cols {
		r.cols[i].ids, r.cols[i].words, r.cols[i].valid = batch[i].ids, batch[i].words, batch[i].valid
	}
}

// fewBits are those of keys that index an array, for which each bit counts.
const fewBits = 18

// spend gives the bits that are left of a word or two to the texts, of which more will come, and tells how many they took.
func (r *ranged) spend(total uint) uint {
	texts := uint(0)
	for i := range r.cols {
		if r.cols[i].text != nil {
			texts++
		}
	}
	if texts == 0 || total <= fewBits {
		return 0
	}
	each, spent := ((total+63)/64*64-total)/texts, uint(0)
	for i := range r.cols {
		if c := &r.cols[i]; c.text != nil {
			more := min(each, 32-min(c.bits, 32))
			c.bits, spent = c.bits+more, spent+more
		}
	}
	return spent
}

// widen makes a column of words fit its batch. What it fitted it still does, unless it is fresh.
func (c *rangedColumn) widen(fresh bool) {
	lo, hi := ^uint64(0), uint64(0)
	for i, w := range c.words {
		if bit(c.valid, i) {
			lo, hi = min(lo, w), max(hi, w)
		}
	}
	if lo > hi { // NULLs alone
		lo, hi = c.base, c.base
	}
	c.null = c.null || c.valid != nil
	if !fresh {
		end := c.base + min(1<<c.bits-1, ^uint64(0)-c.base)
		if lo >= c.base && hi <= end {
			return
		}
		lo, hi = min(lo, c.base), max(hi, end)
	}
	room := (hi - lo) / 2
	lo -= min(lo, room)
	hi += min(^uint64(0)-hi, room)
	if c.base, c.bits = lo, uint(bits.Len64(hi-lo)); c.bits == 64 {
		c.base = 0
	}
	c.fillNulls()
}

// fillNulls makes all NULLs look alike.
func (c *rangedColumn) fillNulls() {
	if c.valid == nil {
		return
	}
	for i := range c.words {
		if !bit(c.valid, i) {
			c.words[i] = c.base
		}
	}
}

// leave hands all keys to a table that takes any.
func (r *ranged) leave(old *ranged) {
	w := Table(NewGroups(r.types))
	if c := newCoded(r.types); c != nil {
		w = c
	}
	const chunk = 1 << 14
	again := make([]uint32, chunk)
	for from := 0; from < int(old.next); from += chunk {
		n := min(chunk, int(old.next)-from)
		w.FindOrAdd(old.Keys(from, from+n), n, again)
	}
	*r = ranged{types: r.types, wide: w}
}

// pack makes words or pairs of the columns of a batch.
func (r *ranged) pack(n int) {
	p := &r.load
	p.n = n
	if r.pairs {
		p.words, p.pairs = nil, kernels.Sized(p.pairs, n)
		clear(p.pairs)
	} else {
		p.pairs, p.words = nil, kernels.Sized(p.words, n)
		clear(p.words)
	}
	for i := range r.cols {
		c := &r.cols[i]
		switch {
		case c.text != nil && r.pairs:
			pushPairs(p.pairs, c.ids, 0, c.bits)
		case c.text != nil:
			pushWords(p.words, c.ids, 0, c.bits)
		case r.pairs:
			pushPairs(p.pairs, c.words, c.base, c.bits)
		default:
			pushWords(p.words, c.words, c.base, c.bits)
		}
		if !c.null {
			continue
		}
		for i := range n {
			ok := uint64(0)
			if bit(c.valid, i) {
				ok = 1
			}
			if r.pairs {
				q := &p.pairs[i]
				q[0], q[1] = q[0]<<1|q[1]>>63, q[1]<<1|ok
			} else {
				p.words[i] = p.words[i]<<1 | ok
			}
		}
	}
}

func pushWords[T uint32 | uint64](dst []uint64, codes []T, base uint64, w uint) {
	codes = codes[:len(dst)]
	if w == 64 {
		for i, c := range codes {
			dst[i] = uint64(c) - base
		}
		return
	}
	for i, c := range codes {
		dst[i] = dst[i]<<(w&63) | (uint64(c) - base)
	}
}

func pushPairs[T uint32 | uint64](dst [][2]uint64, codes []T, base uint64, w uint) {
	codes = codes[:len(dst)]
	switch w {
	case 0:
	case 64:
		for i, c := range codes {
			dst[i][0], dst[i][1] = dst[i][1], uint64(c)-base
		}
	default:
		for i, c := range codes {
			q := &dst[i]
			q[0], q[1] = q[0]<<(w&63)|q[1]>>((64-w)&63), q[1]<<(w&63)|(uint64(c)-base)
		}
	}
}

// unpacked is the words of a column, or the numbers of its texts.
type unpacked struct {
	words []uint64
	valid []byte
}

// unpack takes n keys apart.
func (r *ranged) unpack(from, n int) []unpacked {
	keys := make([][2]uint64, n)
	for i := range keys {
		keys[i] = r.key(uint32(from + i))
	}
	return r.unpackKeys(keys)
}

func (r *ranged) key(id uint32) [2]uint64 {
	if t, ok := r.index.(*wordTable); ok {
		return [2]uint64{0, t.keys.at(id)}
	}
	return r.index.(*pairTable).keys.at(id)
}

// unpackKeys uses keys up.
func (r *ranged) unpackKeys(keys [][2]uint64) []unpacked {
	out := make([]unpacked, len(r.cols))
	for c := len(r.cols) - 1; c >= 0; c-- {
		col := &r.cols[c]
		if col.null {
			valid, some := make([]byte, kernels.BitBytes(len(keys))), false
			for i := range keys {
				q := &keys[i]
				valid[i>>3] |= byte(q[1]&1) << (i & 7)
				some = some || q[1]&1 == 0
				q[0], q[1] = q[0]>>1, q[1]>>1|q[0]<<63
			}
			if some {
				out[c].valid = valid
			}
		}
		words, w := make([]uint64, len(keys)), col.bits
		for i := range keys {
			q := &keys[i]
			words[i] = q[1]&(1<<w-1) + col.base
			if w == 64 {
				q[0], q[1] = 0, q[0]
			} else {
				q[0], q[1] = q[0]>>w, q[1]>>w|q[0]<<(64-w)
			}
		}
		out[c].words = words
	}
	return out
}

func (r *ranged) Keys(from, to int) []arrow.Array {
	if r.wide != nil {
		return r.wide.Keys(from, to)
	}
	if from == to {
		return r.columns(nil)
	}
	return r.arrays(r.unpack(from, to-from))
}

func (r *ranged) KeysOf(ids []uint32) []arrow.Array {
	if r.wide != nil {
		return r.wide.KeysOf(ids)
	}
	return r.columns(ids)
}

func (r *ranged) columns(ids []uint32) []arrow.Array {
	keys := make([][2]uint64, len(ids))
	for i, id := range ids {
		keys[i] = r.key(id)
	}
	return r.arrays(r.unpackKeys(keys))
}

func (r *ranged) arrays(cols []unpacked) []arrow.Array {
	out := make([]arrow.Array, len(cols))
	for i, u := range cols {
		if t := r.cols[i].text; t != nil {
			ids := make([]uint32, len(u.words))
			for k, w := range u.words {
				ids[k] = uint32(w)
			}
			out[i] = t.KeysOf(ids)[0]
			continue
		}
		out[i] = rowkey.FromWords(r.types[i], u.words, u.valid)
	}
	return out
}
