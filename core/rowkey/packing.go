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
	tmp   []uint64
	wide  [][2]uint64
}

// packedColumn is where a column lies: in the word, that many bits up.
type packedColumn struct {
	width  int
	word   int // 0 is the high word where there are two
	shift  uint
	from   int // a column that follows from another is not held: that one, else -1
	follow uint64
}

// Follows says that a column is always another one plus a number, or NULL with it: so the end of a window follows from its start.
type Follows struct {
	Col, From int
	By        int64
}

// Packed is rows as words.
type Packed struct {
	High, Low []uint64 // High only where one word does not do
	Nulls     []uint8  // a bit for each column that is NULL, whose bits in the words are 0; nil: none
}

// NewPacking is nil when rows of these types do not fit.
func NewPacking(ts []types.Type, exact bool, follows ...Follows) *Packing {
	if len(ts) == 0 || len(ts) > 8 {
		return nil
	}
	p := &Packing{types: ts, exact: exact, cols: make([]packedColumn, len(ts))}
	for i, t := range ts {
		w := width(t, Key{Exact: exact})
		if w == 0 || w > 8 && (len(ts) > 1 || w > 16) {
			return nil
		}
		p.cols[i] = packedColumn{width: w, from: -1}
	}
	for _, f := range follows {
		p.cols[f.Col].from, p.cols[f.Col].follow = f.From, uint64(f.By)
	}
	total := 0
	for i := range p.cols {
		if p.cols[i].from < 0 {
			total += p.cols[i].width
		}
	}
	p.two = total > 8
	free := [2]int{8, 8}
	for i := range p.cols {
		c := &p.cols[i]
		switch {
		case c.from >= 0 || c.width > 8: // not held, or alone
		case free[0] >= c.width:
		case p.two && free[1] >= c.width:
			c.word = 1
		default:
			return nil
		}
		if c.from < 0 && c.width <= 8 {
			free[c.word] -= c.width
		}
	}
	// Within a word the first column lies highest, so that the last one needs no shift.
	var up [2]uint
	for i := len(p.cols) - 1; i >= 0; i-- {
		if c := &p.cols[i]; c.from < 0 {
			c.shift = up[c.word]
			up[c.word] += uint(8 * c.width)
		}
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
		if c.from >= 0 {
			continue
		}
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
		if nulls>>p.held(i)&1 != 0 {
			dst = append(append(dst, markNullLast), make([]byte, c.width)...)
			continue
		}
		dst = append(dst, markValid)
		if c.width > 8 {
			dst = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(dst, high), low)
			continue
		}
		at := len(dst)
		dst = append(dst, make([]byte, c.width)...)
		from := &p.cols[p.held(i)]
		w := low
		if p.two && from.word == 0 {
			w = high
		}
		putWord(dst[at:], w>>from.shift+c.follow)
	}
	return dst
}

// held is the column that says what column i is.
func (p *Packing) held(i int) int {
	if f := p.cols[i].from; f >= 0 {
		return f
	}
	return i
}

// ParseKey is the inverse of AppendKey.
func (p *Packing) ParseKey(b []byte) (high, low uint64, nulls uint8) {
	for i := range p.cols {
		c := &p.cols[i]
		null := b[0] != markValid
		v := b[1 : 1+c.width]
		if b = b[1+c.width:]; c.from >= 0 {
			continue
		}
		if null {
			nulls |= 1 << i
		}
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
		c, from := &p.cols[i], &p.cols[p.held(i)]
		var valid []byte
		for r, x := range in.Nulls {
			if x>>p.held(i)&1 == 0 {
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
		if p.two && from.word == 0 {
			word = in.High
		}
		if c.width < 8 || c.follow != 0 {
			p.tmp = room(p.tmp, n)
			mask := ^uint64(0) >> (64 - 8*c.width)
			for r, w := range word[:n] {
				p.tmp[r] = (w>>from.shift + c.follow) & mask
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
