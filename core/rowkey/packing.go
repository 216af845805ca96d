package rowkey

import (
	"encoding/binary"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/riverbed/riverbed/core/types"
)

// Packing holds rows of a few columns of fixed width in one word or two, and one text as it is, for tables of keys: two rows are equal
// if and only if their words, their texts and their NULLs are. It turns them into the bytes that Encode gives, and back.
type Packing struct {
	types []types.Type
	exact bool
	cols  []packedColumn
	two   bool
	text  int // the column of texts, -1: none
	tmp   []uint64
	wide  [][2]uint64
	bytes []byte // texts without those below NULLs
	read  []byte // the text of the last key that was parsed
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
	Offs      []int32  // of the texts in Data, one more than rows; nil: no column of texts
	Data      []byte
}

// Text is that of row i; of NULL it is empty.
func (p *Packed) Text(i int) []byte { return p.Data[p.Offs[i]:p.Offs[i+1]] }

// NewPacking is nil when rows of these types do not fit.
func NewPacking(ts []types.Type, exact bool, follows ...Follows) *Packing {
	if len(ts) == 0 || len(ts) > 8 {
		return nil
	}
	p := &Packing{types: ts, exact: exact, cols: make([]packedColumn, len(ts)), text: -1}
	for i, t := range ts {
		w := width(t, Key{Exact: exact})
		if isText(t) && p.text < 0 {
			p.text = i
			p.cols[i] = packedColumn{from: -1}
			continue
		}
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

func isText(t types.Type) bool {
	return t.Kind == types.Varchar || t.Kind == types.JSON || t.Kind == types.Blob
}

// Two reports whether rows take two words.
func (p *Packing) Two() bool { return p.two }

// Text reports whether rows have a text.
func (p *Packing) Text() bool { return p.text >= 0 }

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
		if i == p.text {
			p.packTexts(a, n, i, out)
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

// packTexts takes the texts as they lie; below a NULL there may be one, which must not tell.
func (p *Packing) packTexts(a arrow.Array, n, col int, out *Packed) {
	offs, data := texts(a)
	out.Offs, out.Data = offs[:n+1], data
	if len(p.cols) == 1 {
		clear(out.Low)
	}
	if a.NullN() == 0 {
		return
	}
	valid := validity(a)
	out.Offs, p.bytes = append(make([]int32, 0, n+1), 0), p.bytes[:0]
	for r := range n {
		if valid.get(r) {
			p.bytes = append(p.bytes, data[offs[r]:offs[r+1]]...)
		} else {
			out.Nulls[r] |= 1 << col
		}
		out.Offs = append(out.Offs, int32(len(p.bytes)))
	}
	out.Data = p.bytes
}

// mask is the bits of a column in its word.
func (p *Packing) mask(c *packedColumn) uint64 { return (^uint64(0) >> (64 - 8*c.width)) << c.shift }

// room is kernels.Sized, and ones kernels.Ones, which imports this package.
func room(s []uint64, n int) []uint64 {
	if cap(s) < n {
		return make([]uint64, n, n+n/4)
	}
	return s[:n]
}

// AppendKey appends the bytes that Encode gives the row.
func (p *Packing) AppendKey(dst []byte, high, low uint64, nulls uint8, text []byte) []byte {
	for i := range p.cols {
		c := &p.cols[i]
		if nulls>>p.held(i)&1 != 0 {
			dst = append(append(dst, markNullLast), make([]byte, c.width)...)
			continue
		}
		dst = append(dst, markValid)
		if i == p.text {
			at := len(dst)
			dst = append(dst, make([]byte, textSize(text))...)
			putText(dst[at:], text)
			continue
		}
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

// ParseKey is the inverse of AppendKey; the text is valid until the next call.
func (p *Packing) ParseKey(b []byte) (high, low uint64, nulls uint8, text []byte) {
	for i := range p.cols {
		c := &p.cols[i]
		null := b[0] != markValid
		if i == p.text {
			p.read = p.read[:0]
			if b = b[1:]; null {
				nulls |= 1 << i
			} else {
				p.read, b = takeText(p.read, b, 0)
			}
			text = p.read
			continue
		}
		v := b[1 : 1+c.width]
		if b = b[1+c.width:]; c.from >= 0 {
			continue
		}
		if null {
			nulls |= 1 << i
		}
		if c.width > 8 {
			return binary.BigEndian.Uint64(v), binary.BigEndian.Uint64(v[8:]), nulls, nil
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
	return high, low, nulls, text
}

// Columns turns n packed rows back into columns, in the normal form of Decode. Texts are not copied.
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
		if i == p.text {
			nulls := 0
			var bits *memory.Buffer
			if valid != nil {
				nulls, bits = n-bitutil.CountSetBits(valid, 0, n), memory.NewBufferBytes(valid)
			}
			out[i] = array.MakeFromData(array.NewData(p.types[i].Arrow(), n,
				[]*memory.Buffer{bits, memory.NewBufferBytes(arrow.GetBytes(in.Offs[:n+1])), memory.NewBufferBytes(in.Data)}, nil, nulls, 0))
			continue
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
