package state

import (
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/rowkey"
)

// A table whose keys are of one word or two (numbers, dates, timestamps, small ones together) holds them so: no bytes are encoded,
// hashed or compared. A batch is looked up in three passes whose reads do not wait for one another: the cells of the index, the
// words of the slots that they name, and then, one by one, the keys that were not there. What a snapshot shows are the bytes of
// the keys in any case: who reads it need not know.
type words struct {
	pack  *rowkey.Packing    // nil: the table holds bytes
	one   Chunked[uint64]    // by slot, where one word does
	two   Chunked[[2]uint64] // by slot, high and low, where it does not
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
}

func (w *words) bytes() int64 { return int64(8*w.one.held() + 16*w.two.held()) }

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
	out.Low, out.High = sized(out.Low, len(slots)), nil
	if w.pack.Two() {
		out.High = sized(out.High, len(slots))
		for i, s := range slots {
			at := w.two.At(s)
			out.High[i], out.Low[i] = at[0], at[1]
		}
	} else {
		for i, s := range slots {
			out.Low[i] = *w.one.At(s)
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

func sized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, n+n/4)
	}
	return s[:n]
}

// word is key i.
func word(w *rowkey.Packed, i int) (high, low uint64, nulls uint8) {
	if w.High != nil {
		high = w.High[i]
	}
	if w.Nulls != nil {
		nulls = w.Nulls[i]
	}
	return high, w.Low[i], nulls
}

// holds reports whether the key of a slot is this one.
func (t *Table) holds(slot uint32, high, low uint64, nulls uint8) bool {
	w := &t.words
	if w.nulls && t.heads.At(slot).nulls != nulls || !w.nulls && nulls != 0 {
		return false
	}
	if w.pack.Two() {
		return *w.two.At(slot) == [2]uint64{high, low}
	}
	return *w.one.At(slot) == low
}

// findWords returns the slot of a key, or NoSlot.
func (x *index) findWords(t *Table, h, high, low uint64, nulls uint8) uint32 {
	if len(x.cells) == 0 {
		return NoSlot
	}
	want := tag(h)
	for i := x.home(want); ; i = (i + 1) & uint64(len(x.cells)-1) {
		c := x.cells[i]
		if c == 0 {
			return NoSlot
		}
		if s := uint32(c) - 1; tag(c) == want && t.holds(s, high, low, nulls) {
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
	w.Low, w.High, w.Nulls = sized(w.Low, k.Len()), sized(w.High, k.Len()), sized(w.Nulls, k.Len())
	for i := range k.Len() {
		w.High[i], w.Low[i], w.Nulls[i] = t.words.pack.ParseKey(k.At(i))
	}
	return w
}

// probeWords writes for each key the slot that has it, as far as the first cell with its hash tells, and lists the others.
func (t *Table) probeWords(k *Keys, slots []uint32) (w *rowkey.Packed, miss []int32) {
	w, miss = t.asked(k), t.words.miss[:0]
	t.idx.probe(k.Hash, slots)
	slots = slots[:k.Len()]
	switch {
	case w.Nulls != nil || t.words.nulls:
		for i, s := range slots {
			high, low, nulls := word(w, i)
			if s == NoSlot || !t.holds(s, high, low, nulls) {
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
		high, low, nulls := word(w, int(i))
		slots[i] = t.idx.findWords(t, k.Hash[i], high, low, nulls)
	}
}

func (t *Table) upsertPacked(k *Keys, slots []uint32) {
	w, miss := t.probeWords(k, slots)
	for _, i := range miss {
		high, low, nulls := word(w, int(i))
		h := k.Hash[i]
		s := t.idx.findWords(t, h, high, low, nulls) // an earlier row of the batch may have made it
		if s == NoSlot {
			s = t.take(h, k.Group[i])
			t.setWords(s, high, low, nulls)
			t.idx.insert(h, s)
			t.fresh = append(t.fresh, i)
		}
		slots[i] = s
	}
}

func (t *Table) setWords(slot uint32, high, low uint64, nulls uint8) {
	w := &t.words
	if w.pack.Two() {
		*w.two.At(slot) = [2]uint64{high, low}
	} else {
		*w.one.At(slot) = low
	}
	t.heads.At(slot).nulls = nulls
	w.nulls = w.nulls || nulls != 0
}

// wordKey renders the key of a slot.
func (t *Table) wordKey(slot uint32, dst []byte) []byte {
	w := &t.words
	if w.pack.Two() {
		at := w.two.At(slot)
		return w.pack.AppendKey(dst, at[0], at[1], t.heads.At(slot).nulls)
	}
	return w.pack.AppendKey(dst, 0, *w.one.At(slot), t.heads.At(slot).nulls)
}
