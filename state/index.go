package state

import (
	"bytes"

	"github.com/riverbed/riverbed/core/kernels"
)

// index finds slots by key: open addressing with linear probing over (32 bits of hash, slot+1). A cell says by itself where it
// belongs, so that moving cells touches no row. Deletion shifts back, so there are no tombstones and long-lived tables do not
// decay.
type index struct {
	cells []uint64 // hash bits << 32 | slot+1; 0 is empty
	n     int
}

// hashMix spreads the bits of a number into the upper ones of a product: 2^64 / golden ratio.
const hashMix = 0x9e3779b97f4a7c15

// home is where the search for a cell begins. It takes the upper half of the hash: the low bits choose the key group, so
// that an instance sees few of their values.
func (x *index) home(cell uint64) uint64 {
	return (cell >> 32) * hashMix >> 32 & uint64(len(x.cells)-1)
}

func tag(h uint64) uint64 { return h &^ 0xffffffff }

func (x *index) reserve(more int) {
	need := (x.n + more) * 2
	if need <= len(x.cells) {
		return
	}
	size := max(64, len(x.cells))
	for size < need {
		if size *= 2; size <= 1<<14 {
			size *= 2
		}
	}
	old := x.cells
	x.cells = kernels.Large(make([]uint64, size))
	for _, c := range old {
		if c != 0 {
			x.place(c)
		}
	}
}

func (x *index) place(cell uint64) {
	i := x.home(cell)
	for x.cells[i] != 0 {
		i = (i + 1) & uint64(len(x.cells)-1)
	}
	x.cells[i] = cell
}

// probe writes for each hash the first slot that it may be of, NoSlot if there is none. Nothing but cells is read, and the reads do
// not wait for one another: in a large table each is a miss of the cache.
func (x *index) probe(hash []uint64, slots []uint32) {
	slots = slots[:len(hash)]
	if len(x.cells) == 0 {
		for i := range slots {
			slots[i] = NoSlot
		}
		return
	}
	mask := uint64(len(x.cells) - 1)
	for i, h := range hash {
		want := tag(h)
		at := x.home(want)
		c := x.cells[at]
		for c != 0 && tag(c) != want {
			at = (at + 1) & mask
			c = x.cells[at]
		}
		slots[i] = uint32(c) - 1 // of an empty cell NoSlot
	}
}

// settle returns the slot of a key that probe has given a slot for: that one, or another where hashes collide or rows
// were made since.
func (x *index) settle(t *Table, h uint64, key []byte, slot uint32) uint32 {
	if slot != NoSlot && bytes.Equal(t.keys.get(slot), key) {
		return slot
	}
	return x.find(t, h, key)
}

// find returns the slot of a key's bytes, or NoSlot.
func (x *index) find(t *Table, h uint64, key []byte) uint32 {
	if len(x.cells) == 0 {
		return NoSlot
	}
	want := tag(h)
	for i := x.home(want); ; i = (i + 1) & uint64(len(x.cells)-1) {
		c := x.cells[i]
		if c == 0 {
			return NoSlot
		}
		if tag(c) == want {
			if s := uint32(c) - 1; bytes.Equal(t.keys.get(s), key) {
				return s
			}
		}
	}
}

func (x *index) insert(h uint64, slot uint32) {
	x.reserve(1)
	x.place(tag(h) | uint64(slot+1))
	x.n++
}

// insertAll inserts slots of keys that are not there; rows name their hashes. Nothing is looked at but cells, so that the misses of the cache do not wait for
// one another.
func (x *index) insertAll(hash []uint64, rows, slots []uint32) {
	x.reserve(len(slots))
	for i, s := range slots {
		x.place(tag(hash[rows[i]]) | uint64(s+1))
	}
	x.n += len(slots)
}

func (x *index) remove(h uint64, slot uint32) {
	mask := uint64(len(x.cells) - 1)
	i := x.home(tag(h))
	for uint32(x.cells[i]) != slot+1 {
		i = (i + 1) & mask
	}
	for {
		x.cells[i] = 0
		j := i
		for {
			j = (j + 1) & mask
			c := x.cells[j]
			if c == 0 {
				x.n--
				return
			}
			// The cell may move to i when its home does not lie cyclically in (i, j].
			home := x.home(c)
			if (j-home)&mask >= (j-i)&mask {
				x.cells[i] = c
				break
			}
		}
		i = j
	}
}
