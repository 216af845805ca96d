package kernels

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/rowkey"
	"github.com/riverbed/riverbed/core/types"
)

// SortEntry is the keys of a row as one number of 128 bits, which orders as the rows do. Its low bits may name the row.
type SortEntry struct{ Hi, Lo uint64 }

// KeyRange is what KeyPack needs to know of the values of a key: where they lie, and what all texts begin with.
type KeyRange struct {
	Null  bool // some value is NULL
	Lossy bool // a word forgets something of a value: the sign of zero, what kind of NaN it is

	some     bool // there is a value
	text     bool
	min, max [2]uint64
	// Of texts: one of them, how many bytes of it all begin with, and the lengths of the shortest and the longest.
	first               []byte
	common, least, most int
}

type packKind uint8

const (
	packOther packKind = iota // of no form that fits into bits
	packNothing
	packWord
	packWide
	packText
)

func packKindOf(k SortKey) packKind {
	switch k.Type.Kind {
	case types.Null:
		return packNothing
	case types.Varchar, types.JSON, types.Blob:
		return packText
	case types.Interval:
		if k.Exact {
			return packOther // equal intervals that are written differently
		}
		return packWide
	}
	switch w := rowkey.Width(k.Type); {
	case w == 0:
		return packOther
	case w <= 8:
		return packWord
	}
	return packWide
}

// packRows is how many rows are worked on at a time: their words stay in cache.
const packRows = 2 << 10

// Add extends the range by the values of a column.
func (r *KeyRange) Add(a arrow.Array, key SortKey) {
	if a.Len() == 0 {
		return
	}
	kind := packKindOf(key)
	if kind == packNothing || kind == packOther {
		r.Null = r.Null || kind == packNothing || a.NullN() > 0
		return
	}
	valid := Valid(a)
	r.Null = r.Null || valid != nil
	switch kind {
	case packText:
		r.addTexts(a, valid)
		return
	case packWide:
		for i, w := range rowkey.Wide(a, key.Type, nil) {
			if valid == nil || Bit(valid, i) {
				r.addWide(w, w)
			}
		}
		return
	}
	r.Lossy = r.Lossy || lossy(a, key.Type)
	words := make([]uint64, 0, packRows)
	lo, hi, some := uint64(math.MaxUint64), uint64(0), false
	for from := 0; from < a.Len(); from += packRows {
		words = rowkey.Words(Slice(a, from, min(from+packRows, a.Len())), key.Type, key.Exact, words[:0])
		if valid == nil {
			some = true
			for _, w := range words {
				lo, hi = min(lo, w), max(hi, w)
			}
			continue
		}
		for i, w := range words {
			if Bit(valid, from+i) {
				some = true
				lo, hi = min(lo, w), max(hi, w)
			}
		}
	}
	if some {
		r.addWide([2]uint64{0, lo}, [2]uint64{0, hi})
	}
}

// lossy reports whether words forget something of a column's floats. What stands below NULLs counts, which does no harm.
func lossy(a arrow.Array, t types.Type) bool {
	const negZero, inf, nan = 1 << 63, 0x7FF << 52, 0x7FF8 << 48
	const negZero32, inf32, nan32 = 1 << 31, 0xFF << 23, 0x7FC << 20
	switch t.Kind {
	case types.Double:
		for _, b := range Values[uint64](a) {
			if b == negZero || b<<1 > inf<<1 && b != nan {
				return true
			}
		}
	case types.Real:
		for _, b := range Values[uint32](a) {
			if b == negZero32 || b<<1 > inf32<<1&math.MaxUint32 && b != nan32 {
				return true
			}
		}
	}
	return false
}

func (r *KeyRange) addWide(lo, hi [2]uint64) {
	if !r.some {
		r.some, r.min, r.max = true, lo, hi
		return
	}
	if wideLess(lo, r.min) {
		r.min = lo
	}
	if wideLess(r.max, hi) {
		r.max = hi
	}
}

func wideLess(a, b [2]uint64) bool { return a[0] < b[0] || a[0] == b[0] && a[1] < b[1] }

func (r *KeyRange) addTexts(a arrow.Array, valid []byte) {
	offs, data := Spans(a)
	mask, head := r.beginning()
	for i := range a.Len() {
		if valid != nil && !Bit(valid, i) {
			continue
		}
		from, to := int(offs[i]), int(offs[i+1])
		if n := to - from; r.some && n >= r.common {
			r.least, r.most = min(r.least, n), max(r.most, n)
			if r.common <= 8 && from+8 <= len(data) {
				if (binary.BigEndian.Uint64(data[from:])^head)&mask == 0 {
					continue
				}
			}
		}
		r.addText(data[from:to])
		mask, head = r.beginning()
	}
}

// beginning is the first eight bytes of what all texts begin with, and which bits of them count.
func (r *KeyRange) beginning() (mask, head uint64) {
	return ^(^uint64(0) >> (8 * uint(min(r.common, 8)))), firstWord(r.first[:r.common])
}

func (r *KeyRange) addText(v []byte) {
	if !r.some {
		r.some, r.text, r.first = true, true, bytes.Clone(v)
		r.common, r.least, r.most = len(v), len(v), len(v)
		return
	}
	r.least, r.most = min(r.least, len(v)), max(r.most, len(v))
	r.share(v)
}

// share cuts what all texts begin with to what v begins with, too.
func (r *KeyRange) share(v []byte) {
	r.common = min(r.common, len(v))
	if !bytes.Equal(v[:r.common], r.first[:r.common]) {
		k := 0
		for v[k] == r.first[k] {
			k++
		}
		r.common = k
	}
}

// Merge extends the range by another one of the same key.
func (r *KeyRange) Merge(o *KeyRange) {
	null, loses := r.Null || o.Null, r.Lossy || o.Lossy
	switch {
	case !o.some:
	case !r.some:
		*r = *o
	case o.text:
		r.share(o.first[:o.common])
		r.least, r.most = min(r.least, o.least), max(r.most, o.most)
	default:
		r.addWide(o.min, o.max)
	}
	r.Null, r.Lossy = null, loses
}

// KeyPack writes the keys of rows into entries: one field after the other, each with as many bits as the range of its values
// needs, a descending one inverted. Keys that find no room are left out, the last that finds some may be cut.
type KeyPack struct {
	fields []packField
	whole  int
	low    uint
}

// packSpan is width bits of an entry, counted from the highest. Of the value that goes there the lowest drop bits are left out.
type packSpan struct{ at, width, drop uint }

type packField struct {
	key    SortKey
	kind   packKind
	of     KeyRange
	null   packSpan
	hi, lo packSpan   // of words and pairs of words
	text   []packSpan // eight bytes each
	length packSpan
}

// NewKeyPack plans the entries for keys with these ranges; their lowest low bits stay free.
func NewKeyPack(keys []SortKey, ranges []KeyRange, low uint) *KeyPack {
	p := &KeyPack{low: low}
	used, full := uint(0), true
	take := func(width int) packSpan {
		got := min(uint(width), 128-low-used)
		s := packSpan{at: used, width: got, drop: uint(width) - got}
		used, full = used+got, full && s.drop == 0
		return s
	}
	for i, k := range keys {
		r := ranges[i]
		f := packField{key: k, kind: packKindOf(k), of: r}
		if f.kind == packOther {
			break
		}
		if r.Null && r.some {
			f.null = take(1)
		}
		if r.some {
			switch f.kind {
			case packWord, packWide:
				if d := wideSub(r.max, r.min); d[0] == 0 {
					f.lo = take(bits.Len64(d[1]))
				} else {
					f.hi = take(bits.Len64(d[0]))
					f.lo = take(64)
				}
			case packText:
				for b := r.common; b < r.most && full; b += 8 {
					f.text = append(f.text, take(8*min(8, r.most-b)))
				}
				if full && r.least != r.most {
					f.length = take(bits.Len(uint(r.most - r.least)))
				}
			}
		}
		p.fields = append(p.fields, f)
		if !full {
			break
		}
		p.whole = i + 1
	}
	return p
}

func wideSub(a, b [2]uint64) [2]uint64 {
	lo, borrow := bits.Sub64(a[1], b[1], 0)
	hi, _ := bits.Sub64(a[0], b[0], borrow)
	return [2]uint64{hi, lo}
}

// Whole is how many of the keys, from the first on, an entry decides.
func (p *KeyPack) Whole() int { return p.whole }

// Keys is how many of the keys are in an entry at all.
func (p *KeyPack) Keys() int { return len(p.fields) }

// Bits is how many bits the first keys have, which must be whole.
func (p *KeyPack) Bits(keys int) uint {
	n := uint(0)
	for _, f := range p.fields[:keys] {
		n += f.null.width + f.hi.width + f.lo.width + f.length.width
		for _, t := range f.text {
			n += t.width
		}
	}
	return n
}

// WordsTell reports whether equal values of a type are alike, unless its KeyRange is Lossy.
func WordsTell(t types.Type) bool {
	switch packKindOf(SortKey{Type: t, Exact: true}) {
	case packWord, packWide, packText, packNothing:
		return true
	}
	return false
}

// Decodes reports whether Decode can give the values of a key back.
func (p *KeyPack) Decodes(key int) bool {
	if key >= p.whole {
		return false
	}
	f := &p.fields[key]
	return f.of.some && !f.of.Null && !f.of.Lossy && (f.kind == packWord || f.kind == packText)
}

// PackScratch is memory that Fill uses again.
type PackScratch struct {
	words []uint64
	wide  [][2]uint64
}

// Fill makes the entries of a batch's first len(e) rows from its key columns; low bits are free for first, first+1 and so on.
func (p *KeyPack) Fill(keys []arrow.Array, first uint64, e []SortEntry, s *PackScratch) {
	for from := 0; from < len(e); from += packRows {
		part := e[from:min(from+packRows, len(e))]
		if p.low == 0 {
			clear(part)
		} else {
			for i := range part {
				part[i] = SortEntry{Lo: first + uint64(from+i)}
			}
		}
		for i := range p.fields {
			a := keys[i]
			if len(e) != len(part) || a.Len() != len(part) {
				a = Slice(a, from, from+len(part))
			}
			p.fields[i].fill(a, part, s)
		}
	}
}

func (f *packField) fill(a arrow.Array, e []SortEntry, s *PackScratch) {
	if !f.of.some {
		return
	}
	var valid []byte
	if f.of.Null {
		valid = Valid(a)
		for i := range e {
			if (valid == nil || Bit(valid, i)) == f.key.NullsFirst {
				f.null.put1(&e[i])
			}
		}
	}
	switch f.kind {
	case packWord:
		s.words = rowkey.Words(a, f.key.Type, f.key.Exact, s.words[:0])
		f.rebase(s.words)
		f.lo.put(e, s.words, valid)
	case packWide:
		s.wide = rowkey.Wide(a, f.key.Type, s.wide[:0])
		s.words = append(s.words[:0], make([]uint64, len(e))...)
		for i, w := range s.wide {
			if f.key.Desc {
				w = wideSub(f.of.max, w)
			} else {
				w = wideSub(w, f.of.min)
			}
			s.wide[i], s.words[i] = w, w[0]
		}
		f.hi.put(e, s.words, valid)
		for i, w := range s.wide {
			s.words[i] = w[1]
		}
		f.lo.put(e, s.words, valid)
	case packText:
		f.fillTexts(a, e, valid, s)
	}
}

// rebase makes words distances from the first value of the order.
func (f *packField) rebase(words []uint64) {
	if lo, hi := f.of.min[1], f.of.max[1]; f.key.Desc {
		for i, w := range words {
			words[i] = hi - w
		}
	} else {
		for i, w := range words {
			words[i] = w - lo
		}
	}
}

func (f *packField) fillTexts(a arrow.Array, e []SortEntry, valid []byte, s *PackScratch) {
	offs, data := Spans(a)
	s.words = append(s.words[:0], make([]uint64, len(e))...)
	words := s.words
	invert := uint64(0)
	if f.key.Desc {
		invert = math.MaxUint64
	}
	for k, span := range f.text {
		size := uint(8 * min(8, f.of.most-f.of.common-8*k))
		for i := range words {
			from, to := int(offs[i])+f.of.common+8*k, int(offs[i+1])
			w := uint64(0)
			switch n := to - from; {
			case n >= 8:
				w = binary.BigEndian.Uint64(data[from:])
			case n <= 0:
			case from+8 <= len(data):
				w = binary.BigEndian.Uint64(data[from:]) &^ (math.MaxUint64 >> (8 * uint(n)))
			default:
				w = firstWord(data[from:to])
			}
			words[i] = (w ^ invert) >> (64 - size)
		}
		span.put(e, words, valid)
	}
	if f.length.width == 0 {
		return
	}
	for i := range words {
		n := uint64(int(offs[i+1]-offs[i]) - f.of.least)
		if f.key.Desc {
			n = uint64(f.of.most-f.of.least) - n
		}
		words[i] = n
	}
	f.length.put(e, words, valid)
}

// put1 sets a span of one bit.
func (s packSpan) put1(e *SortEntry) {
	switch {
	case s.width == 0:
	case s.at < 64:
		e.Hi |= 1 << (63 - s.at)
	default:
		e.Lo |= 1 << (127 - s.at)
	}
}

// put writes a value to the span of each entry, which is clear; nothing where valid is not set.
func (s packSpan) put(e []SortEntry, v []uint64, valid []byte) {
	if s.width == 0 {
		return
	}
	v = v[:len(e)]
	if valid != nil {
		for i := range v {
			if !Bit(valid, i) {
				v[i] = 0
			}
		}
	}
	end := s.at + s.width
	switch {
	case end <= 64:
		right, left := s.drop&63, (64-end)&63
		for i, x := range v {
			e[i].Hi |= x >> right << left
		}
	case s.at >= 64:
		right, left := s.drop&63, (128-end)&63
		for i, x := range v {
			e[i].Lo |= x >> right << left
		}
	default:
		drop, right, left := s.drop&63, (end-64)&63, (128-end)&63
		for i, x := range v {
			x >>= drop
			e[i].Hi |= x >> right
			e[i].Lo |= x << left
		}
	}
}

// get reads the value of a span that nothing was dropped of.
func (s packSpan) get(e []SortEntry, v []uint64) {
	end := s.at + s.width
	mask := uint64(math.MaxUint64) >> ((64 - s.width) & 63)
	v = v[:len(e)]
	switch {
	case s.width == 0:
		clear(v)
	case end <= 64:
		for i := range e {
			v[i] = e[i].Hi >> ((64 - end) & 63) & mask
		}
	case s.at >= 64:
		for i := range e {
			v[i] = e[i].Lo >> ((128 - end) & 63) & mask
		}
	default:
		for i := range e {
			v[i] = (e[i].Hi<<((end-64)&63) | e[i].Lo>>((128-end)&63)) & mask
		}
	}
}

// Decode gives the values of a key in the order of the entries.
func (p *KeyPack) Decode(key int, e []SortEntry, s *PackScratch) arrow.Array {
	f := &p.fields[key]
	if f.kind == packText {
		return f.decodeTexts(e, s)
	}
	s.words = append(s.words[:0], make([]uint64, len(e))...)
	f.lo.get(e, s.words)
	if f.key.Desc {
		for i, w := range s.words {
			s.words[i] = f.of.max[1] - w
		}
	} else {
		for i, w := range s.words {
			s.words[i] = f.of.min[1] + w
		}
	}
	return rowkey.FromWords(f.key.Type, s.words, nil)
}

func (f *packField) decodeTexts(e []SortEntry, s *PackScratch) arrow.Array {
	common, least, most := f.of.common, f.of.least, f.of.most
	s.words = append(s.words[:0], make([]uint64, len(e))...)
	offs := make([]int32, len(e)+1)
	f.length.get(e, s.words)
	at := 0
	for i, n := range s.words {
		if f.key.Desc && f.length.width > 0 {
			n = uint64(most-least) - n
		}
		at += least + int(n)
		fits32(at)
		offs[i+1] = int32(at)
	}
	// Eight bytes are written at a time, also behind the end of a text, which the next text then overwrites.
	data := Room[byte](at + 8)
	head := f.of.first[:common]
	if len(f.text) == 0 {
		for _, from := range offs[:len(e)] {
			copy(data[from:], head)
		}
	}
	for k, span := range f.text {
		span.get(e, s.words)
		shift := 64 - uint(8*min(8, most-common-8*k))
		invert := uint64(0)
		if f.key.Desc {
			invert = math.MaxUint64
		}
		if k == 0 {
			for i, w := range s.words {
				from := int(offs[i])
				copy(data[from:], head)
				binary.BigEndian.PutUint64(data[from+common:], w<<shift^invert)
			}
			continue
		}
		// What stands behind a first word must not be written over by the word before it.
		for i, w := range s.words {
			var b [8]byte
			binary.BigEndian.PutUint64(b[:], w<<shift^invert)
			if from := int(offs[i]) + common + 8*k; from < int(offs[i+1]) {
				copy(data[from:offs[i+1]], b[:])
			}
		}
	}
	return NewBytes(f.key.Type.Arrow(), offs, data[:at:at], nil)
}
