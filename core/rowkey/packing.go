package rowkey

import (
	"encoding/binary"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/types"
)

// Packing holds rows of a few columns of fixed width in one word or two, for tables of keys: two rows are equal if and only if
// their words and their NULLs are. It turns them into the bytes that Encode gives, and back.
type Packing struct {
	types []types.Type
	exact bool
	cols  []packedColumn
	two   bool
	size  int // of a row's bytes
	tmp   []uint64
	wide  [][2]uint64
}

// packedColumn is where a column lies: in the word, that many bits up.
type packedColumn struct {
	width int
	word  int // 0 is the high word where there are two
	shift uint
}

// Packed is rows as words.
type Packed struct {
	High, Low []uint64 // High only where one word does not do
	Nulls     []uint8  // a bit for each column that is NULL, whose bits in the words are 0; nil: none
}

// NewPacking is nil when rows of these types do not fit.
func NewPacking(ts []types.Type, exact bool) *Packing {
	if len(ts) == 0 || len(ts) > 8 {
		return nil
	}
	p := &Packing{types: ts, exact: exact}
	var free [2]int
	free[0], free[1] = 8, 8
	total := 0
	for _, t := range ts {
		w := width(t, Key{Exact: exact})
		total += w
		switch {
		case w == 0, w > 8 && (len(ts) > 1 || w > 16):
			return nil
		}
		p.size += 1 + w
	}
	p.two = total > 8
	for _, t := range ts {
		c := packedColumn{width: width(t, Key{Exact: exact})}
		switch {
		case c.width > 8: // alone
		case free[0] >= c.width:
		case p.two && free[1] >= c.width:
			c.word = 1
		default:
			return nil
		}
		if c.width <= 8 {
			free[c.word] -= c.width
		}
		p.cols = append(p.cols, c)
	}
	// Within a word the first column lies highest, so that the last one needs no shift.
	var up [2]uint
	for i := len(p.cols) - 1; i >= 0; i-- {
		c := &p.cols[i]
		c.shift = up[c.word]
		up[c.word] += uint(8 * c.width)
	}
	return p
}

// Types are those of the columns.
func (p *Packing) Types() []types.Type { return p.types }

// Two reports whether rows take two words.
func (p *Packing) Two() bool { return p.two }

// Pack packs n rows into memory that out has already, or more.
func (p *Packing) Pack(cols []arrow.Array, n int, out *Packed) {
	out.Low = room(out.Low, n)
	if p.two {
		out.High = room(out.High, n)
	}
	out.Nulls = out.Nulls[:0]
	nulls := false
	for _, a := range cols {
		nulls = nulls || a.NullN() > 0
	}
	if nulls {
		out.Nulls = append(out.Nulls, make([]uint8, n)...)
	} else {
		out.Nulls = nil
	}
	var begun [2]bool
	for i, a := range cols {
		c := &p.cols[i]
		if c.width > 8 {
			p.wide = Wide(a, p.types[i], p.wide[:0])
			for r, w := range p.wide {
				out.High[r], out.Low[r] = w[0], w[1]
			}
			begun = [2]bool{true, true}
		} else {
			word := out.Low
			if p.two && c.word == 0 {
				word = out.High
			}
			if !begun[c.word] && c.shift == 0 {
				copy(word, Words(a, p.types[i], p.exact, word[:0]))
			} else {
				p.tmp = Words(a, p.types[i], p.exact, p.tmp[:0])
				if begun[c.word] {
					for r, w := range p.tmp[:len(word)] {
						word[r] |= w << c.shift
					}
				} else {
					for r, w := range p.tmp[:len(word)] {
						word[r] = w << c.shift
					}
				}
			}
			begun[c.word] = true
		}
		if a.NullN() == 0 {
			continue
		}
		valid := validity(a)
		for r := range n {
			if valid.get(r) {
				continue
			}
			out.Nulls[r] |= 1 << i
			switch {
			case c.width > 8:
				out.High[r], out.Low[r] = 0, 0
			case p.two && c.word == 0:
				out.High[r] &^= p.mask(c)
			default:
				out.Low[r] &^= p.mask(c)
			}
		}
	}
}

// mask is the bits of a column in its word.
func (p *Packing) mask(c *packedColumn) uint64 { return (^uint64(0) >> (64 - 8*c.width)) << c.shift }

func room(s []uint64, n int) []uint64 {
	if cap(s) < n {
		return make([]uint64, n, n+n/4)
	}
	return s[:n]
}

// AppendKey appends the bytes that Encode gives the row.
func (p *Packing) AppendKey(dst []byte, high, low uint64, nulls uint8) []byte {
	for i := range p.cols {
		c := &p.cols[i]
		mark := byte(markValid)
		if nulls>>i&1 != 0 {
			mark = markNullLast
		}
		dst = append(dst, mark)
		switch {
		case c.width > 8:
			dst = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(dst, high), low)
		default:
			w := p.value(c, high, low)
			at := len(dst)
			dst = append(dst, make([]byte, c.width)...)
			putWord(dst[at:], w)
		}
	}
	return dst
}

// value is a column of a row.
func (p *Packing) value(c *packedColumn, high, low uint64) uint64 {
	w := low
	if p.two && c.word == 0 {
		w = high
	}
	return w >> c.shift & (^uint64(0) >> (64 - 8*c.width))
}

// ParseKey is the inverse of AppendKey.
func (p *Packing) ParseKey(b []byte) (high, low uint64, nulls uint8) {
	for i := range p.cols {
		c := &p.cols[i]
		if b[0] != markValid {
			nulls |= 1 << i
		}
		v := b[1 : 1+c.width]
		b = b[1+c.width:]
		if c.width > 8 {
			return binary.BigEndian.Uint64(v), binary.BigEndian.Uint64(v[8:]), nulls
		}
		var w uint64
		for _, x := range v {
			w = w<<8 | uint64(x)
		}
		if p.two && c.word == 0 {
			high |= w << c.shift
		} else {
			low |= w << c.shift
		}
	}
	return high, low, nulls
}

// Columns turns n packed rows back into columns, in the normal form of Decode.
func (p *Packing) Columns(in Packed, n int) []arrow.Array {
	out := make([]arrow.Array, len(p.cols))
	for i := range p.cols {
		c := &p.cols[i]
		var valid []byte
		for r, x := range in.Nulls {
			if x>>i&1 == 0 {
				continue
			}
			if valid == nil {
				valid = ones(n)
			}
			valid[r>>3] &^= 1 << (r & 7)
		}
		if c.width > 8 {
			p.wide = p.wide[:0]
			for r := range n {
				p.wide = append(p.wide, [2]uint64{in.High[r], in.Low[r]})
			}
			out[i] = FromWide(p.types[i], p.wide, valid)
			continue
		}
		word := in.Low
		if p.two && c.word == 0 {
			word = in.High
		}
		if c.width < 8 {
			p.tmp = room(p.tmp, n)
			mask := ^uint64(0) >> (64 - 8*c.width)
			for r, w := range word[:n] {
				p.tmp[r] = w >> c.shift & mask
			}
			word = p.tmp
		}
		out[i] = FromWords(p.types[i], word[:n], valid)
	}
	return out
}

func ones(n int) []byte {
	out := make([]byte, (n+7)/8)
	for i := range out {
		out[i] = 0xFF
	}
	return out
}
