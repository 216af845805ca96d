package state

import (
	"bytes"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/rowkey"
)

// A table whose keys are of one word or two (numbers, dates, timestamps, small ones together), and perhaps of one text, holds them
// so: no bytes are encoded, hashed or compared. A batch is looked up in three passes whose reads do not wait for one another: the cells of the index, the
// words of the slots that they name, and then, one by one, the keys that were not there. What a snapshot shows are the bytes of
// the keys in any case: who reads it need not know.
type words struct {
	pack  *rowkey.Packing    // nil: the table holds bytes
	one   Chunked[uint64]    // by slot, where one word does
	two   Chunked[[2]uint64] // by slot, high and low, where it does not
	texts heap               // by slot, where there is a text
	nulls bool               // some key has a NULL, or had
	miss  []int32
	from  rowkey.Packed // of bytes that were asked for
}

func (w *words) resize(n int) {
	if w.pack.Two() {
		w.two.Resize(n)
	} else {
		w.one.Resize(n)
	}
	if w.pack.Text() {
		w.texts.resize(n)
	}
}

func (w *words) bytes() int64 { return int64(8*w.one.held()+16*w.two.held()) + w.texts.bytes() }

// Pack makes an empty table hold its keys as words. Keys for Find and Upsert then come as words, packed by the same; those that
// come as bytes are turned into words, which takes longer.
func (t *Table) Pack(p *rowkey.Packing) {
	if t.used > 0 || t.Decl.Key != RowKey {
		panic(errs.Bug("state", "table %s cannot change how it holds its keys", t.Decl.Name))
	}
	t.words.pack = p
}

// Packed reports whether the table holds its keys as words.
func (t *Table) Packed() bool { return t.words.pack != nil }

// KeyWords are the keys of some rows of a table that holds words, put into memory that out has already, or more.
func (t *Table) KeyWords(slots []uint32, out *rowkey.Packed) {
	w := &t.words
	out.Low, out.High = kernels.Sized(out.Low, len(slots)), nil
	if w.pack.Two() {
		out.High = kernels.Sized(out.High, len(slots))
		for i, s := range slots {
			at := w.two.At(s)
			out.High[i], out.Low[i] = at[0], at[1]
		}
	} else {
		for i, s := range slots {
			out.Low[i] = *w.one.At(s)
		}
	}
	if w.pack.Text() {
		n := 0
		for _, s := range slots {
			n += w.texts.len(s)
		}
		out.Offs, out.Data = make([]int32, 1, len(slots)+1), make([]byte, 0, n)
		for _, s := range slots {
			out.Data = append(out.Data, w.texts.get(s)...)
			out.Offs = append(out.Offs, int32(len(out.Data)))
		}
	}
	out.Nulls = nil
	if w.nulls {
		out.Nulls = make([]uint8, len(slots))
		for i, s := range slots {
			out.Nulls[i] = t.heads.At(s).nulls
		}
	}
}

// KeyColumns are the key columns of some rows of a table that holds words.
func (t *Table) KeyColumns(slots []uint32) []arrow.Array {
	var w rowkey.Packed
	t.KeyWords(slots, &w)
	return t.words.pack.Columns(w, len(slots))
}

// wordKey is one key.
type wordKey struct {
	high, low uint64
	nulls     uint8
	text      []byte
}

func keyOf(w *rowkey.Packed, i int) (k wordKey) {
	if w.High != nil {
		k.high = w.High[i]
	}
	if w.Nulls != nil {
		k.nulls = w.Nulls[i]
	}
	if w.Offs != nil {
		k.text = w.Text(i)
	}
	k.low = w.Low[i]
	return k
}

func (t *Table) parseKey(b []byte) (k wordKey) {
	k.high, k.low, k.nulls, k.text = t.words.pack.ParseKey(b)
	return k
}

// holds reports whether the key of a slot is this one.
func (t *Table) holds(slot uint32, k *wordKey) bool {
	w := &t.words
	if w.nulls && t.heads.At(slot).nulls != k.nulls || !w.nulls && k.nulls != 0 {
		return false
	}
	if w.pack.Two() {
		if *w.two.At(slot) != [2]uint64{k.high, k.low} {
			return false
		}
	} else if *w.one.At(slot) != k.low {
		return false
	}
	return !w.pack.Text() || bytes.Equal(w.texts.get(slot), k.text)
}

// findWords returns the slot of a key, or NoSlot.
func (x *index) findWords(t *Table, h uint64, k *wordKey) uint32 {
	if len(x.cells) == 0 {
		return NoSlot
	}
	want := tag(h)
	for i := x.home(want); ; i = (i + 1) & uint64(len(x.cells)-1) {
		c := x.cells[i]
		if c == 0 {
			return NoSlot
		}
		if s := uint32(c) - 1; tag(c) == want && t.holds(s, k) {
			return s
		}
	}
}

// asked are the keys of a call as words.
func (t *Table) asked(k *Keys) *rowkey.Packed {
	if k.Words.Low != nil || k.Len() == 0 {
		return &k.Words
	}
	w := &t.words.from
	w.Low, w.High, w.Nulls = kernels.Sized(w.Low, k.Len()), kernels.Sized(w.High, k.Len()), kernels.Sized(w.Nulls, k.Len())
	if t.words.pack.Text() {
		w.Offs, w.Data = append(w.Offs[:0], 0), w.Data[:0]
	}
	for i := range k.Len() {
		one := t.parseKey(k.At(i))
		w.High[i], w.Low[i], w.Nulls[i] = one.high, one.low, one.nulls
		if w.Offs != nil {
			w.Data = append(w.Data, one.text...)
			w.Offs = append(w.Offs, int32(len(w.Data)))
		}
	}
	return w
}

// probeWords writes for each key the slot that has it, as far as the first cell with its hash tells, and lists the others.
func (t *Table) probeWords(k *Keys, slots []uint32) (w *rowkey.Packed, miss []int32) {
	w, miss = t.asked(k), t.words.miss[:0]
	t.idx.probe(k.Hash, slots)
	slots = slots[:k.Len()]
	switch {
	case w.Nulls != nil || t.words.nulls || w.Offs != nil && t.words.pack.Two():
		for i, s := range slots {
			if s != NoSlot {
				if k := keyOf(w, i); t.holds(s, &k) {
					continue
				}
			}
			miss = append(miss, int32(i))
		}
	case w.Offs != nil:
		at, low, texts := &t.words.one, w.Low[:len(slots)], &t.words.texts
		for i, s := range slots {
			if s == NoSlot || *at.At(s) != low[i] || !bytes.Equal(texts.get(s), w.Text(i)) {
				miss = append(miss, int32(i))
			}
		}
	case t.words.pack.Two():
		at, high, low := &t.words.two, w.High[:len(slots)], w.Low[:len(slots)]
		for i, s := range slots {
			if s == NoSlot || *at.At(s) != [2]uint64{high[i], low[i]} {
				miss = append(miss, int32(i))
			}
		}
	default:
		at, low := &t.words.one, w.Low[:len(slots)]
		for i, s := range slots {
			if s == NoSlot || *at.At(s) != low[i] {
				miss = append(miss, int32(i))
			}
		}
	}
	t.words.miss = miss
	return w, miss
}

func (t *Table) findPacked(k *Keys, slots []uint32) {
	w, miss := t.probeWords(k, slots)
	for _, i := range miss {
		if slots[i] == NoSlot {
			continue // no cell has the hash
		}
		key := keyOf(w, int(i))
		slots[i] = t.idx.findWords(t, k.Hash[i], &key)
	}
}

func (t *Table) upsertPacked(k *Keys, slots []uint32) {
	w, miss := t.asked(k), t.words.miss[:0]
	if t.cold != nil && t.cold.found(k, slots) {
		for i, s := range slots[:k.Len()] {
			if s == NoSlot {
				miss = append(miss, int32(i))
			}
		}
		t.words.miss = miss
	} else {
		w, miss = t.probeWords(k, slots)
	}
	for _, i := range miss {
		key, h := keyOf(w, int(i)), k.Hash[i]
		s := t.idx.findWords(t, h, &key) // an earlier row of the batch may have made it
		if s == NoSlot {
			s = t.take(h, k.Group[i])
			t.setWords(s, &key)
			t.idx.insert(h, s)
			t.fresh = append(t.fresh, i)
		}
		slots[i] = s
	}
}

func (t *Table) setWords(slot uint32, k *wordKey) {
	w := &t.words
	if w.pack.Two() {
		*w.two.At(slot) = [2]uint64{k.high, k.low}
	} else {
		*w.one.At(slot) = k.low
	}
	if w.pack.Text() {
		w.texts.set(slot, k.text)
	}
	t.heads.At(slot).nulls = k.nulls
	w.nulls = w.nulls || k.nulls != 0
}

// writeKey renders the key of a slot.
func (t *Table) writeKey(slot uint32, dst []byte) []byte {
	w := &t.words
	return w.append(dst, w.word(slot), slot, t.heads.At(slot).nulls)
}

// word is the high and the low word of a slot.
func (w *words) word(slot uint32) [2]uint64 {
	if w.pack.Two() {
		return *w.two.At(slot)
	}
	return [2]uint64{0, *w.one.At(slot)}
}

// append renders a key.
func (w *words) append(dst []byte, word [2]uint64, slot uint32, nulls uint8) []byte {
	var text []byte
	if w.pack.Text() {
		text = w.texts.get(slot)
	}
	return w.pack.AppendKey(dst, word[0], word[1], nulls, text)
}

// writeKeys renders the keys of slots behind each other, and where each ends. Words are read ahead of being rendered: of slots here and there each is a miss
// of the cache, which come together when there is little in between.
func (t *Table) writeKeys(slots []uint32, ends []int32) []byte {
	w := &t.words
	var dst []byte
	var words [128][2]uint64
	for from := 0; from < len(slots); from += len(words) {
		piece := slots[from:min(len(slots), from+len(words))]
		if w.pack.Two() {
			for i, s := range piece {
				words[i] = *w.two.At(s)
			}
		} else {
			for i, s := range piece {
				words[i][1] = *w.one.At(s)
			}
		}
		for i, s := range piece {
			dst = w.append(dst, words[i], s, t.heads.At(s).nulls)
			if from+i == 0 {
				dst = kernels.Ahead(dst, len(slots)) // keys of a table are about as long as each other
			}
			ends[from+i] = int32(len(dst))
		}
	}
	return dst
}
