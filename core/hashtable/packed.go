package hashtable

import (
	"encoding/binary"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/rowkey"
	"github.com/riverbed/riverbed/core/types"
)

// layout is how key columns become what a table compares.
type layout uint8

const (
	layNone layout = iota // no columns: every row is the one group
	layWord               // 64 bits
	layPair               // 128 bits
	layText               // one column of text
	layRows               // rows encoded by rowkey, as texts
)

// bitsOf is the bits that the packed columns take, one of them for NULL; a single column has its NULLs aside, and those of
// bare columns are in no table.
func bitsOf(ts []types.Type, bare []bool) int {
	n := 0
	for i, t := range ts {
		w := rowkey.Width(t)
		if w == 0 {
			return 1 << 20
		}
		n += 8*w + nullBit(bare, i)
	}
	if len(ts) == 1 {
		n = 8 * rowkey.Width(ts[0])
	}
	return n
}

// nullBit is how many bits say that a column is not NULL.
func nullBit(bare []bool, column int) int {
	if bare != nil && bare[column] {
		return 0
	}
	return 1
}

func layoutOf(ts []types.Type, bare []bool) layout {
	switch b := bitsOf(ts, bare); {
	case len(ts) == 0:
		return layNone
	case b <= 64:
		return layWord
	case b <= 128:
		return layPair
	case len(ts) == 1 && (ts[0].Kind == types.Varchar || ts[0].Kind == types.JSON || ts[0].Kind == types.Blob):
		return layText
	}
	return layRows
}

// packed is a batch of keys in the form of a layout.
type packed struct {
	n     int
	words []uint64    // layWord
	pairs [][2]uint64 // layPair; for texts, see packText
	texts texts       // the long ones among them
	valid []byte      // of a single column; nil: no NULLs
}

// texts is rows of bytes in one arena.
type texts interface{ row(i int) []byte }

type textColumn struct {
	offs []int32
	data []byte
}

func (t *textColumn) row(i int) []byte { return t.data[t.offs[i]:t.offs[i+1]] }

type encodedRows struct{ rowkey.Rows }

func (r *encodedRows) row(i int) []byte { return r.Row(i) }

func (p *packed) slice(from, to int) packed {
	out := packed{n: to - from, texts: p.texts}
	if p.words != nil {
		out.words = p.words[from:to]
	}
	if p.pairs != nil {
		out.pairs = p.pairs[from:to]
	}
	return out
}

// loader packs batches, reusing its memory.
type loader struct {
	types []types.Type
	bare  []bool // columns whose NULLs are masked; nil: none
	lay   layout
	enc   *rowkey.Encoder
	out   packed
	tmp   []uint64
	wide  [][2]uint64
	col   textColumn
	rows  encodedRows
}

func newLoader(ts []types.Type, bare []bool, lay layout) loader {
	l := loader{types: ts, bare: bare, lay: lay}
	if lay == layRows {
		l.enc = rowkey.NewEncoder(ts, nil)
	}
	return l
}

func (l *loader) bytes() int64 {
	return int64(8*cap(l.out.words) + 16*cap(l.out.pairs) + 8*cap(l.tmp) + 16*cap(l.wide) + cap(l.rows.Data) + 8*cap(l.rows.Offs))
}

// load packs n rows. The result lives until the next call.
func (l *loader) load(cols []arrow.Array, n int) *packed {
	p := &l.out
	p.n, p.valid = n, nil
	switch l.lay {
	case layWord:
		if len(cols) == 1 {
			p.words = rowkey.Words(cols[0], l.types[0], false, p.words[:0])
			p.valid = kernels.Valid(cols[0])
			break
		}
		p.words = append(p.words[:0], make([]uint64, n)...)
		for c, col := range cols {
			w := 8 * rowkey.Width(l.types[c])
			l.tmp = rowkey.Words(col, l.types[c], false, l.tmp[:0])
			if nullBit(l.bare, c) == 0 {
				for i, x := range l.tmp {
					p.words[i] = p.words[i]<<w | x // nothing but x when w is 64
				}
				continue
			}
			valid := kernels.Valid(col)
			for i, x := range l.tmp {
				if bit(valid, i) {
					p.words[i] = p.words[i]<<(w+1) | x<<1 | 1
				} else {
					p.words[i] <<= w + 1
				}
			}
		}
	case layPair:
		if len(cols) == 1 {
			p.pairs = rowkey.Wide(cols[0], l.types[0], p.pairs[:0])
			p.valid = kernels.Valid(cols[0])
			break
		}
		l.packPairs(cols, n)
	case layText:
		l.col.offs, l.col.data = kernels.Spans(cols[0])
		p.valid = kernels.Valid(cols[0])
		p.texts = &l.col
		p.pairs = packTexts(p.pairs[:0], l.col.offs, l.col.data)
	case layRows:
		l.rows.Rows = l.enc.Encode(cols, n)
		p.texts = &l.rows
		p.pairs = packTexts(p.pairs[:0], l.rows.Offs, l.rows.Data)
	}
	return p
}

func (l *loader) packPairs(cols []arrow.Array, n int) {
	p := &l.out
	p.pairs = append(p.pairs[:0], make([][2]uint64, n)...)
	push := func(i int, x uint64, w int) { // shifts w bits of x in, 0 < w <= 64
		q := &p.pairs[i]
		if w == 64 {
			q[0], q[1] = q[1], x
			return
		}
		q[0], q[1] = q[0]<<w|q[1]>>(64-w), q[1]<<w|x
	}
	for c, col := range cols {
		w, valid := rowkey.Width(l.types[c]), kernels.Valid(col)
		if w > 8 {
			l.wide = rowkey.Wide(col, l.types[c], l.wide[:0])
		} else {
			l.tmp = rowkey.Words(col, l.types[c], false, l.tmp[:0])
			if nullBit(l.bare, c) == 0 {
				for i, x := range l.tmp {
					push(i, x, 8*w)
				}
				continue
			}
		}
		for i := range n {
			ok := uint64(0)
			if bit(valid, i) {
				ok = 1
			}
			if w > 8 {
				push(i, l.wide[i][0]*ok, 64)
				push(i, l.wide[i][1]*ok, 64)
			} else {
				push(i, l.tmp[i]*ok, 8*w)
			}
			push(i, ok, 1)
		}
	}
}

// A text of up to shortText bytes is packed as its bytes and its length in the last byte; a longer one as its hash and
// longMark with the number of its row. The table stores the number of the long text instead, without fromRow, so that
// the two are never equal as words.
const (
	shortText = 15
	longMark  = 0xFF << 56
	fromRow   = 1 << 55
)

func packTexts[O int | int32](dst [][2]uint64, offs []O, data []byte) [][2]uint64 {
	for i := range len(offs) - 1 {
		from, to := int(offs[i]), int(offs[i+1])
		n := to - from
		if n > shortText {
			dst = append(dst, [2]uint64{kernels.HashBytes(data[from:to]), longMark | fromRow | uint64(i)})
			continue
		}
		var a, b uint64
		if from+16 <= len(data) {
			a, b = binary.LittleEndian.Uint64(data[from:]), binary.LittleEndian.Uint64(data[from+8:])
			if n < 8 {
				a, b = a&(1<<(8*n)-1), 0
			} else {
				b &= 1<<(8*(n-8)) - 1
			}
		} else {
			var buf [16]byte
			copy(buf[:], data[from:to])
			a, b = binary.LittleEndian.Uint64(buf[:]), binary.LittleEndian.Uint64(buf[8:])
		}
		dst = append(dst, [2]uint64{a, b | uint64(n)<<56})
	}
	return dst
}

// unpackWords turns words into key columns.
func unpackWords(ts []types.Type, words []uint64, valid []byte) []arrow.Array {
	if len(ts) == 1 {
		return []arrow.Array{rowkey.FromWords(ts[0], words, valid)}
	}
	out := make([]arrow.Array, len(ts))
	part := make([]uint64, len(words))
	for c := len(ts) - 1; c >= 0; c-- {
		w := 8 * rowkey.Width(ts[c])
		valid := make([]byte, kernels.BitBytes(len(words)))
		nulls := false
		for i, x := range words {
			valid[i>>3] |= byte(x&1) << (i & 7)
			nulls = nulls || x&1 == 0
			part[i] = x >> 1 & (1<<w - 1)
			words[i] = x >> (w + 1)
		}
		if !nulls {
			valid = nil
		}
		out[c] = rowkey.FromWords(ts[c], part, valid)
	}
	return out
}

// unpackPairs turns pairs into key columns.
func unpackPairs(ts []types.Type, pairs [][2]uint64, valid []byte) []arrow.Array {
	if len(ts) == 1 {
		return []arrow.Array{rowkey.FromWide(ts[0], pairs, valid)}
	}
	out := make([]arrow.Array, len(ts))
	pop := func(i, w int) uint64 { // takes the lowest w bits, 0 < w <= 64
		q := &pairs[i]
		if w == 64 {
			x := q[1]
			q[0], q[1] = 0, q[0]
			return x
		}
		x := q[1] & (1<<w - 1)
		q[1] = q[1]>>w | q[0]<<(64-w)
		q[0] >>= w
		return x
	}
	for c := len(ts) - 1; c >= 0; c-- {
		w := rowkey.Width(ts[c])
		valid := make([]byte, kernels.BitBytes(len(pairs)))
		nulls := false
		wide := make([][2]uint64, len(pairs))
		for i := range pairs {
			ok := pop(i, 1)
			valid[i>>3] |= byte(ok) << (i & 7)
			nulls = nulls || ok == 0
			if w > 8 {
				wide[i][1] = pop(i, 64)
				wide[i][0] = pop(i, 64)
			} else {
				wide[i][1] = pop(i, 8*w)
			}
		}
		if !nulls {
			valid = nil
		}
		if w > 8 {
			out[c] = rowkey.FromWide(ts[c], wide, valid)
			continue
		}
		words := make([]uint64, len(pairs))
		for i := range wide {
			words[i] = wide[i][1]
		}
		out[c] = rowkey.FromWords(ts[c], words, valid)
	}
	return out
}
