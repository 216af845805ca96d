package kernels

import (
	"bytes"
	"container/heap"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/rowkey"
	"github.com/riverbed/riverbed/core/types"
)

// TopN keeps the encoded keys of the first limit rows seen so far, so that a scan can drop the rows that cannot be among
// the first: what Offer returns, over all batches, holds the answer, and is little more than that for data in any order
// but the reverse one. Most rows are dropped by the word of their first key alone.
//
// Of more than heapRows rows it keeps no keys: the caller cuts what he has kept from time to time and sets the Bound.
type TopN struct {
	limit int
	types []types.Type
	keys  []SortKey
	enc   *rowkey.Encoder
	keep  keyHeap
	words []uint64
	bound uint64 // rows with a greater word are not among the first
	text  []byte // nor are those whose first key is a text behind this one; nil: unknown
}

// heapRows is up to how many rows their keys are kept in a heap.
const heapRows = 4 << 10

// NewTopN orders columns of these types by keys, which may be shorter.
func NewTopN(ts []types.Type, keys []SortKey, limit int) *TopN {
	ks := make([]rowkey.Key, len(keys))
	for i, k := range keys {
		ks[i] = rowkey.Key{Desc: k.Desc, NullsFirst: k.NullsFirst, Exact: k.Exact}
	}
	return &TopN{limit: limit, types: ts, keys: keys, enc: rowkey.NewEncoder(ts, ks), bound: ^uint64(0)}
}

// Offer returns the rows of a batch that were among the first limit rows when they came.
func (t *TopN) Offer(cols []arrow.Array, n int) []int32 {
	if t.limit <= 0 {
		return nil
	}
	if len(t.types) == 0 { // all rows are equal
		t.words = append(t.words[:0], make([]uint64, n)...)
	} else {
		t.words = FirstWords(cols[0], t.types[0], t.firstKey(), t.words[:0])
	}
	sel := make([]int32, 0, n/16+1)
	for i, w := range t.words {
		if w <= t.bound {
			sel = append(sel, int32(i))
		}
	}
	texts := t.textKey(cols)
	if t.text != nil {
		sel = t.dropTexts(cols[0], texts, sel)
	}
	if len(sel) == 0 || t.limit > heapRows {
		return sel
	}
	if 2*len(sel) < n {
		cols = TakeBatch(cols, sel)
	} else {
		sel = sel[:0]
		for i := range n {
			sel = append(sel, int32(i))
		}
	}
	rows := t.enc.Encode(cols, len(sel))
	out := sel[:0]
	for i, row := range sel {
		k := topKey{word: t.words[row], key: rows.Row(i)}
		if texts != nil {
			k.text = texts(int(row))
		}
		switch {
		case len(t.keep) < t.limit:
			k.key, k.text = bytes.Clone(k.key), bytes.Clone(k.text)
			heap.Push(&t.keep, k)
		case k.before(&t.keep[0]):
			t.keep[0].word, t.keep[0].key = k.word, append(t.keep[0].key[:0], k.key...)
			t.keep[0].text = bytes.Clone(k.text)
			heap.Fix(&t.keep, 0)
		default:
			continue
		}
		if len(t.keep) == t.limit {
			t.bound, t.text = t.keep[0].word, t.keep[0].text
		}
		out = append(out, row)
	}
	return out
}

// textKey gives the values of the first key when it is a text, nil for NULL.
func (t *TopN) textKey(cols []arrow.Array) func(row int) []byte {
	if len(t.types) == 0 {
		return nil
	}
	if k := t.types[0].Kind; k != types.Varchar && k != types.JSON && k != types.Blob {
		return nil
	}
	offs, data := Spans(cols[0])
	valid := Valid(cols[0])
	return func(i int) []byte {
		if valid != nil && !Bit(valid, i) {
			return nil
		}
		return data[offs[i]:offs[i+1]:offs[i+1]]
	}
}

// dropTexts drops of the rows whose word is the bound those whose text is behind the last one kept: texts may well
// begin alike.
func (t *TopN) dropTexts(a arrow.Array, texts func(row int) []byte, sel []int32) []int32 {
	desc, nulls := t.firstKey().Desc, a.NullN() > 0
	kept := sel[:0]
	for _, row := range sel {
		if t.words[row] == t.bound && (!nulls || a.IsValid(int(row))) {
			d := bytes.Compare(texts(int(row)), t.text)
			if desc && d < 0 || !desc && d > 0 {
				continue
			}
		}
		kept = append(kept, row)
	}
	return kept
}

// Bound says that this row, of columns as Offer takes them, is the last of limit rows: later ones are dropped.
func (t *TopN) Bound(cols []arrow.Array, row int) {
	if len(t.types) > 0 {
		t.bound = min(t.bound, FirstWords(Slice(cols[0], row, row+1), t.types[0], t.firstKey(), nil)[0])
	}
}

func (t *TopN) firstKey() SortKey {
	if len(t.keys) == 0 {
		return SortKey{}
	}
	return t.keys[0]
}

// FirstWords appends a word for each row of a column that orders as its values do, as far as a word goes: of two rows, the
// one with the lesser word comes first; those with equal words may stand in any order.
func FirstWords(a arrow.Array, t types.Type, k SortKey, dst []uint64) []uint64 {
	from := len(dst)
	switch w := rowkey.Width(t); {
	case w > 0 && w <= 8:
		dst = rowkey.Words(a, t, k.Exact, dst)
	case t.Kind == types.Varchar || t.Kind == types.JSON || t.Kind == types.Blob:
		offs, data := Spans(a)
		for i := range a.Len() {
			dst = append(dst, firstWord(data[offs[i]:offs[i+1]]))
		}
	default:
		return append(dst, make([]uint64, a.Len())...)
	}
	words := dst[from:]
	if k.Desc {
		for i := range words {
			words[i] = ^words[i]
		}
	}
	if valid := Valid(a); valid != nil {
		null := ^uint64(0)
		if k.NullsFirst {
			null = 0
		}
		for i := range words {
			if !Bit(valid, i) {
				words[i] = null
			}
		}
	}
	return dst
}

// topKey is a row's first word, and its key.
type topKey struct {
	word uint64
	key  []byte
	text []byte // the value in full where the first key is a text
}

func (k *topKey) before(o *topKey) bool {
	if k.word != o.word {
		return k.word < o.word
	}
	return bytes.Compare(k.key, o.key) < 0
}

// keyHeap has the greatest key at its top.
type keyHeap []topKey

func (h keyHeap) Len() int           { return len(h) }
func (h keyHeap) Less(i, j int) bool { return h[j].before(&h[i]) }
func (h keyHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *keyHeap) Push(x any)        { *h = append(*h, x.(topKey)) }
func (h *keyHeap) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}
