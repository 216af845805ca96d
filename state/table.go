package state

import (
	"encoding/binary"
	"slices"

	"github.com/riverbed/riverbed/core/errs"
)

// Table maps keys to slots, small dense numbers that the columns are indexed by. It belongs to one instance of one
// operator and is used by one goroutine.
type Table struct {
	Decl  Decl
	cols  []Column
	heads Chunked[head]
	keys  heap  // of a table with row keys, unless it holds words
	words words // the keys, where they are of one word or two
	used  int   // slots ever used
	room  int   // slots that there is room for
	ahead int   // slots that the columns have room for
	free  []uint32
	idx   index
	n     int
	looks int64          // rows looked up, made or dropped
	seq   [Groups]uint64 // next sequence number per key group, for tables without keys

	// The dirty list. touched[slot] is the epoch of the last change; dirty lists slots by epoch, each once per epoch.
	epoch     uint64
	touched   Chunked[uint64] // while tracking
	dirty     []dirtyRow
	gone      goneRows
	tracking  bool
	forgotten uint64 // rows touched up to there are clean

	late  *lateCopy // nil: what changed is copied at the barrier
	cold  *coldRows // nil: rows do not leave memory one by one
	units *Units    // nil: nor by their owners

	fresh   []int32
	live    []bool
	written []byte // the last key that was asked for
}

// head is what every row has.
type head struct {
	hash  uint64 // of its key; of a table without row keys its number
	group uint8
	live  bool
	nulls uint8 // of a key of words
}

type dirtyRow struct {
	epoch uint64
	slot  uint32
}

// goneRows are the keys of rows that were deleted while the table was tracked, a column each: there may be as many as rows come.
type goneRows struct {
	epoch []uint64
	hash  []uint64
	group []uint8
	ends  []int // of each key in keys
	keys  []byte
}

func (g *goneRows) add(epoch, hash uint64, group uint8, key []byte) {
	g.epoch, g.hash, g.group = append(g.epoch, epoch), append(g.hash, hash), append(g.group, group)
	g.keys = append(g.keys, key...)
	g.ends = append(g.ends, len(g.keys))
}

func (g *goneRows) key(i int) []byte {
	from := 0
	if i > 0 {
		from = g.ends[i-1]
	}
	return g.keys[from:g.ends[i]]
}

// behind keeps the rows of later epochs.
func (g *goneRows) behind(epoch uint64) (out goneRows) {
	for i, e := range g.epoch {
		if e > epoch {
			out.add(e, g.hash[i], g.group[i], g.key(i))
		}
	}
	return out
}

// NewTable makes an empty table.
func NewTable(d Decl, cols ...Column) *Table {
	if len(cols) != len(d.Values) {
		panic(errs.Bug("state", "table %s declares %d values and has %d columns", d.Name, len(d.Values), len(cols)))
	}
	return &Table{Decl: d, cols: cols, epoch: 1}
}

// Len is the number of rows.
func (t *Table) Len() int { return t.n + t.Out() }

// Slots is the number of slots ever used: one more than the largest slot.
func (t *Table) Slots() int { return t.used }

// Live reports whether a slot holds a row.
func (t *Table) Live(slot uint32) bool { return t.heads.At(slot).live }

// Hash returns the hash of a slot's key, 0 without row keys.
func (t *Table) Hash(slot uint32) uint64 {
	if t.Decl.Key == Sequence {
		return 0
	}
	return t.heads.At(slot).hash
}

// Group returns the key group of a slot.
func (t *Table) Group(slot uint32) uint8 { return t.heads.At(slot).group }

// Key returns the key bytes of a slot; valid until the next call or change.
func (t *Table) Key(slot uint32) []byte {
	switch {
	case t.Decl.Key == Sequence:
		t.written = binary.BigEndian.AppendUint64(t.written[:0], t.heads.At(slot).hash)
	case t.Packed():
		t.written = t.writeKey(slot, t.written[:0])
	default:
		return t.keys.get(slot)
	}
	return t.written
}

// Bytes is the memory held, roughly.
func (t *Table) Bytes() int64 {
	n := t.keys.bytes() + t.words.bytes() + int64(16*t.heads.held()+4*cap(t.free)+8*cap(t.idx.cells)+8*t.touched.held()+16*cap(t.dirty))
	for _, c := range t.cols {
		n += c.Bytes()
	}
	if t.cold != nil {
		n += int64(t.cold.marks.held()) + t.cold.seen.bytes() + t.cold.admission.bytes()
	}
	if t.late != nil {
		n += int64(8*cap(t.late.bits) + 4*cap(t.late.slots))
	}
	return n
}

// Touched is how many rows were looked up, made or dropped so far, each time counted: what the work on the state grows with.
func (t *Table) Touched() int64 { return t.looks }

// Find writes the slot of each key into slots, NoSlot where there is none.
func (t *Table) Find(k Keys, slots []uint32) {
	t.looks += int64(len(k.Hash))
	if t.Packed() {
		t.findPacked(&k, slots)
		return
	}
	t.idx.probe(k.Hash, slots)
	for i, h := range k.Hash {
		slots[i] = t.idx.settle(t, h, k.At(i), slots[i])
	}
}

// Upsert writes the slot of each key into slots and makes empty rows for keys not yet there. It returns the
// positions of the keys that made a row, in order; valid until the next call.
func (t *Table) Upsert(k Keys, slots []uint32) (fresh []int32) {
	t.fresh = t.fresh[:0]
	t.looks += int64(k.Len())
	if t.Packed() {
		t.upsertPacked(&k, slots)
		t.grow()
		return t.fresh
	}
	known := t.cold != nil && t.cold.found(&k, slots)
	if !known {
		t.idx.probe(k.Hash, slots)
	}
	for i, h := range k.Hash {
		s := slots[i]
		if known && s != NoSlot {
			continue
		}
		key := k.At(i)
		s = t.idx.settle(t, h, key, s)
		if s == NoSlot {
			s = t.take(h, k.Group[i])
			t.keys.set(s, key)
			t.idx.insert(h, s)
			t.fresh = append(t.fresh, int32(i))
		}
		slots[i] = s
	}
	t.grow()
	return t.fresh
}

// Append makes a row without identity for each group and writes its slot into slots. The key is a sequence number.
func (t *Table) Append(groups []uint8, slots []uint32) {
	t.looks += int64(len(groups))
	// Slots that became free together are used together, in their order: runs of them are filled at once.
	again := slots[:min(len(groups), len(t.free))]
	rest := len(t.free) - len(again)
	copy(again, t.free[rest:])
	t.free = t.free[:rest]
	for i := len(again); i < len(groups); i++ {
		slots[i] = t.unused()
	}
	for i, g := range groups {
		*t.heads.At(slots[i]) = head{hash: t.seq[g], group: g, live: true}
		t.late.took(slots[i])
		t.seq[g]++
	}
	t.n += len(groups)
	t.grow()
}

// take finds a slot for a new row.
func (t *Table) take(h uint64, group uint8) uint32 {
	var s uint32
	if n := len(t.free); n > 0 {
		s, t.free = t.free[n-1], t.free[:n-1]
	} else {
		s = t.unused()
	}
	*t.heads.At(s) = head{hash: h, group: group, live: true}
	t.late.took(s)
	t.n++
	return s
}

// unused is a slot that was never used.
func (t *Table) unused() uint32 {
	if t.used == t.room {
		t.makeRoom(max(16, 4*t.used)) // up to a chunk: what is copied on the way is little
	}
	t.used++
	return uint32(t.used - 1)
}

// makeRoom makes room for n slots, or for some chunks more where there are many.
func (t *Table) makeRoom(n int) {
	t.room = min(n, t.room+1<<slotBits)
	t.heads.Resize(t.room)
	switch {
	case t.Packed():
		t.words.resize(t.room)
	case t.Decl.Key == RowKey:
		t.keys.resize(t.room)
	}
	if t.tracking {
		t.touched.Resize(t.room)
	}
}

// grow makes room in the columns for the slots in use. They double by themselves, unless they are asked for more than a little.
func (t *Table) grow() {
	n := t.used
	if n > t.ahead {
		twice := max(n, 2*t.ahead)
		if fit := t.within(twice); fit < twice {
			n, twice = fit, fit
		} else if n >= t.ahead+t.ahead/8 {
			n = twice
		}
		t.ahead = twice
	}
	for _, c := range t.cols {
		c.Resize(n)
	}
}

// Touch notes that the rows changed. Whoever writes to a column says so.
//
// AIDEV-NOTE: it panics when a row was written to that is still to be copied for the last barrier: the copy would have what came later.
func (t *Table) Touch(slots []uint32) {
	if t.cold != nil {
		t.cold.changed(slots)
	}
	if !t.tracking {
		return
	}
	if c := t.late; c != nil && c.left > 0 && slices.ContainsFunc(slots, c.has) {
		c.err = errs.Bug("state", "table %s: rows were changed before they were copied", t.Decl.Name)
		panic(c.err)
	}
	for _, s := range slots {
		if e := t.touched.At(s); *e != t.epoch {
			*e = t.epoch
			t.dirty = append(t.dirty, dirtyRow{t.epoch, s})
		}
	}
}

// Delete drops rows; each slot at most once.
func (t *Table) Delete(slots []uint32) {
	if len(slots) == 0 {
		return
	}
	t.looks += int64(len(slots))
	t.Before(slots)
	if t.tracking {
		for _, s := range slots {
			t.gone.add(t.epoch, t.Hash(s), t.Group(s), t.Key(s))
			*t.touched.At(s) = 0
		}
	}
	t.discard(slots)
}

// discard drops rows wherever they are.
func (t *Table) discard(slots []uint32) {
	if t.cold != nil {
		t.cold.forget(t, slots)
	}
	t.release(slots)
}

// release gives the slots of rows free.
func (t *Table) release(slots []uint32) {
	if t.cold != nil {
		t.cold.of = nil
	}
	for _, s := range slots {
		at := t.heads.At(s)
		if t.Decl.Key == RowKey {
			t.idx.remove(at.hash, s)
			switch {
			case !t.Packed():
				t.keys.free(s)
			case t.words.pack.Text():
				t.words.texts.free(s)
			}
		}
		at.live = false
	}
	for _, c := range t.cols {
		c.Reset(slots)
	}
	t.free = append(t.free, slots...)
	t.n -= len(slots)
}

// Clear drops all rows.
func (t *Table) Clear() { t.Delete(t.All()) }

// All returns the slots in use: of the rows in memory (see More), in order of slots: not an order that may reach output.
func (t *Table) All() []uint32 {
	out := make([]uint32, 0, t.n)
	for s := range uint32(t.Slots()) {
		if t.Live(s) {
			out = append(out, s)
		}
	}
	return out
}
