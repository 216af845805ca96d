package incremental

import (
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/rowkey"
	"github.com/riverbed/riverbed/core/types"
	"github.com/riverbed/riverbed/state"
)

// orderWords reads the order keys of rows as words, which order as the values of the leading columns do; what they leave open the
// encoded keys of the rest decide. There is at least one word, the lead, by which most rows are told apart.
type orderWords struct {
	cols  int
	words []orderWord
	from  int             // of the columns: the first of the rest
	rest  *rowkey.Encoder // of the rest; nil: there is none
	wide  [][2]uint64
}

// orderWord is what one word is of.
type orderWord struct {
	col  int // -1: of nothing, all rows are alike
	typ  types.Type
	key  rowkey.Key
	half int   // of 16 bytes: 1 the upper, 2 the lower; 0: the value is one word
	null uint8 // the bit of the column in what says which are NULL; 0: the word is the beginning of a text, the rest says the whole
}

// maxOrderWords is how many words are kept for each row. Rows that many columns do not tell apart are rare.
const maxOrderWords = 4

func newOrderWords(ts []types.Type, keys []rowkey.Key) *orderWords {
	o := &orderWords{cols: len(ts)}
	for ; o.from < len(ts); o.from++ {
		t := ts[o.from]
		w, width := orderWord{col: o.from, typ: t, key: keys[o.from], null: 1 << o.from}, rowkey.Width(t)
		switch room := maxOrderWords - len(o.words); {
		case width > 0 && width <= 8 && room >= 1:
			o.words = append(o.words, w)
			continue
		case width == 16 && t.Kind != types.Interval && room >= 2:
			upper, lower := w, w
			upper.half, lower.half = 1, 2
			o.words = append(o.words, upper, lower)
			continue
		case (t.Kind == types.Varchar || t.Kind == types.JSON || t.Kind == types.Blob) && room >= 1:
			w.null = 0
			o.words = append(o.words, w)
		}
		o.rest = rowkey.NewEncoder(ts[o.from:], keys[o.from:])
		break
	}
	if len(o.words) == 0 {
		o.words = append(o.words, orderWord{col: -1})
	}
	return o
}

// orderColumns gives the columns of an order, of some rows.
type orderColumns func(i int) arrow.Array

// read appends word w of n rows to dst.
func (o *orderWords) read(w int, cols orderColumns, n int, dst []uint64) []uint64 {
	x := o.words[w]
	switch {
	case x.col < 0:
		return append(dst, make([]uint64, n)...)
	case x.half == 0:
		return kernels.FirstWords(cols(x.col), x.typ, kernels.SortKey{Desc: x.key.Desc, NullsFirst: x.key.NullsFirst, Exact: x.key.Exact}, dst)
	}
	col := cols(x.col)
	o.wide = rowkey.Wide(col, x.typ, o.wide[:0])
	invert, null := uint64(0), ^uint64(0)
	if x.key.Desc {
		invert = ^invert
	}
	if x.key.NullsFirst {
		null = 0
	}
	valid := kernels.Valid(col)
	for i, v := range o.wide {
		if valid != nil && !kernels.Bit(valid, i) {
			dst = append(dst, null)
		} else {
			dst = append(dst, v[x.half-1]^invert)
		}
	}
	return dst
}

// nulls has a bit for each column of words that is NULL in a row; nil when none is.
func (o *orderWords) nulls(cols orderColumns, n int) (out []uint8) {
	for _, w := range o.words {
		if w.null == 0 || w.col < 0 || w.half == 2 {
			continue
		}
		valid := kernels.Valid(cols(w.col))
		if valid == nil {
			continue
		}
		if out == nil {
			out = make([]uint8, n)
		}
		for i := range out {
			if !kernels.Bit(valid, i) {
				out[i] |= w.null
			}
		}
	}
	return out
}

// encodeRest encodes what the words leave open; valid until the next call.
func (o *orderWords) encodeRest(cols orderColumns, n int) rowkey.Rows {
	rest := make([]arrow.Array, o.cols-o.from)
	for i := range rest {
		rest[i] = cols(o.from + i)
	}
	return o.rest.Encode(rest, n)
}

// orderOfBatch is the order keys of a batch's rows. What the lead decides needs no more, so that the other words are made when they
// are first asked for.
type orderOfBatch struct {
	of    *orderWords
	cols  orderColumns
	n     int
	words [maxOrderWords][]uint64
	null  []uint8
	nulls bool // null is known
	rest  rowkey.Rows
}

func (b *orderOfBatch) word(w int, row uint32) uint64 {
	if b.words[w] == nil {
		b.words[w] = b.of.read(w, b.cols, b.n, make([]uint64, 0, b.n))
	}
	return b.words[w][row]
}

func (b *orderOfBatch) nullsOf(row uint32) uint8 {
	if !b.nulls {
		b.null, b.nulls = b.of.nulls(b.cols, b.n), true
	}
	if b.null == nil {
		return 0
	}
	return b.null[row]
}

func (b *orderOfBatch) restOf(row uint32) []byte {
	if b.rest.Offs == nil {
		r := b.of.encodeRest(b.cols, b.n)
		b.rest = rowkey.Rows{Data: slices.Clone(r.Data), Offs: slices.Clone(r.Offs)}
	}
	return b.rest.Row(int(row))
}

// storedOrder keeps the order keys of stored rows by slot, but for the lead, which lies where it is compared.
type storedOrder struct {
	words [maxOrderWords]state.Chunked[uint64] // from the second on
	null  []uint8                              // grows with the first NULL
	rest  state.Bytes
	room  []uint64
}

// put stores the keys of rows, which the columns are of.
func (s *storedOrder) put(o *orderWords, cols orderColumns, slots []uint32, room int) {
	n := len(slots)
	for w := 1; w < len(o.words); w++ {
		s.words[w].Resize(room)
		s.room = o.read(w, cols, n, s.room[:0])
		for i, slot := range slots {
			*s.words[w].At(slot) = s.room[i]
		}
	}
	if null := o.nulls(cols, n); null != nil || s.null != nil {
		s.null = grown(s.null, room, 0)
		for i, slot := range slots {
			if s.null[slot] = 0; null != nil {
				s.null[slot] = null[i]
			}
		}
	}
	if o.rest == nil {
		return
	}
	s.rest.Resize(room)
	rest := o.encodeRest(cols, n)
	for i, slot := range slots {
		s.rest.Set(slot, rest.Row(i))
	}
}

func (s *storedOrder) nullsOf(slot uint32) uint8 {
	if int(slot) >= len(s.null) {
		return 0
	}
	return s.null[slot]
}

// forget frees what rows that are gone have kept.
func (s *storedOrder) forget(o *orderWords, slots []uint32) {
	if o.rest != nil {
		s.rest.Reset(slots)
	}
}
