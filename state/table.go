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
	keys  heap
	hash  []uint64
	group []uint8
	live  []bool
	free  []uint32
	idx   index
	n     int
	seq   [Groups]uint64 // next sequence number per key group, for tables without keys

	// The dirty list. touched[slot] is the epoch of the last change; dirty lists slots by epoch, each once per epoch.
	epoch    uint64
	touched  []uint64
	dirty    []dirtyRow
	gone     []goneRow
	tracking bool

	fresh []int32
}

type dirtyRow struct {
	epoch uint64
	slot  uint32
}

// goneRow is the key of a row that was deleted while the table was tracked.
type goneRow struct {
	epoch uint64
	hash  uint64
	group uint8
	key   []byte
}

// NewTable makes an empty table.
func NewTable(d Decl, cols ...Column) *Table {
	if len(cols) != len(d.Values) {
		panic(errs.Bug("state", "table %s declares %d values and has %d columns", d.Name, len(d.Values), len(cols)))
	}
	return &Table{Decl: d, cols: cols, epoch: 1}
}

// Len is the number of rows.
func (t *Table) Len() int { return t.n }

// Slots is the number of slots ever used: one more than the largest slot.
func (t *Table) Slots() int { return len(t.live) }

// Live reports whether a slot holds a row.
func (t *Table) Live(slot uint32) bool { return t.live[slot] }

// Hash returns the hash of a slot's key.
func (t *Table) Hash(slot uint32) uint64 { return t.hash[slot] }

// Group returns the key group of a slot.
func (t *Table) Group(slot uint32) uint8 { return t.group[slot] }

// Key returns the key bytes of a slot; valid until the next change.
func (t *Table) Key(slot uint32) []byte { return t.keys.get(slot) }

// Bytes is the memory held, roughly.
func (t *Table) Bytes() int64 {
	n := t.keys.bytes() + int64(8*cap(t.hash)+cap(t.group)+cap(t.live)+4*cap(t.free)+8*cap(t.idx.cells)+8*cap(t.touched)+16*cap(t.dirty))
	for _, c := range t.cols {
		n += c.Bytes()
	}
	return n
}

// Find writes the slot of each key into slots, NoSlot where there is none.
func (t *Table) Find(k Keys, slots []uint32) {
	t.idx.probe(k.Hash, slots)
	for i, h := range k.Hash {
		slots[i] = t.idx.settle(t, h, k.At(i), slots[i])
	}
}

// Upsert writes the slot of each key into slots and makes empty rows for keys not yet there. It returns the
// positions of the keys that made a row, in order; valid until the next call.
func (t *Table) Upsert(k Keys, slots []uint32) (fresh []int32) {
	t.fresh = t.fresh[:0]
	t.idx.reserve(k.Len())
	t.idx.probe(k.Hash, slots)
	for i, h := range k.Hash {
		key := k.At(i)
		s := t.idx.settle(t, h, key, slots[i])
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
	var key [8]byte
	for i, g := range groups {
		s := t.take(0, g)
		binary.BigEndian.PutUint64(key[:], t.seq[g])
		t.seq[g]++
		t.keys.set(s, key[:])
		slots[i] = s
	}
	t.grow()
}

// take finds a slot for a new row.
func (t *Table) take(h uint64, group uint8) uint32 {
	var s uint32
	if n := len(t.free); n > 0 {
		s, t.free = t.free[n-1], t.free[:n-1]
	} else {
		s = uint32(len(t.live))
		n := len(t.live) + 1
		t.live, t.hash, t.group, t.touched = grown(t.live, n), grown(t.hash, n), grown(t.group, n), grown(t.touched, n)
		t.keys.resize(n)
	}
	t.live[s], t.hash[s], t.group[s] = true, h, group
	t.n++
	return s
}

func (t *Table) grow() {
	for _, c := range t.cols {
		c.Resize(len(t.live))
	}
}

// Touch notes that the rows changed. Whoever writes to a column says so.
func (t *Table) Touch(slots []uint32) {
	if !t.tracking {
		return
	}
	for _, s := range slots {
		if t.touched[s] != t.epoch {
			t.touched[s] = t.epoch
			t.dirty = append(t.dirty, dirtyRow{t.epoch, s})
		}
	}
}

// Delete drops rows; each slot at most once.
func (t *Table) Delete(slots []uint32) {
	if len(slots) == 0 {
		return
	}
	for _, s := range slots {
		if t.tracking {
			t.gone = append(t.gone, goneRow{t.epoch, t.hash[s], t.group[s], slices.Clone(t.keys.get(s))})
		}
		if t.Decl.Key == RowKey {
			t.idx.remove(t.hash[s], s)
		}
		t.live[s], t.touched[s] = false, 0
		t.keys.free(s)
	}
	for _, c := range t.cols {
		c.Reset(slots)
	}
	t.free = append(t.free, slots...)
	t.n -= len(slots)
}

// Clear drops all rows.
func (t *Table) Clear() { t.Delete(t.All()) }

// All returns the slots in use, in order of slots: not an order that may reach output.
func (t *Table) All() []uint32 {
	out := make([]uint32, 0, t.n)
	for s, live := range t.live {
		if live {
			out = append(out, uint32(s))
		}
	}
	return out
}
