package state

import "bytes"

// index finds slots by key: open addressing with linear probing over (32 bits of hash, slot+1). Deletion shifts
// back, so there are no tombstones and long-lived tables do not decay.
type index struct {
	cells []uint64 // hash bits << 32 | slot+1; 0 is empty
	n     int
}

// cellOf spreads the hash: its low bits choose the key group, so that an instance sees few of their values.
func (x *index) cellOf(h uint64) uint64 {
	return (h * 0x9e3779b97f4a7c15 >> 32) & uint64(len(x.cells)-1)
}

func tag(h uint64) uint64 { return h &^ 0xffffffff }

func (x *index) reserve(t *Table, more int) {
	need := (x.n + more) * 2
	if need <= len(x.cells) {
		return
	}
	size := max(64, len(x.cells))
	for size < need {
		size *= 2
	}
	old := x.cells
	x.cells = make([]uint64, size)
	for _, c := range old {
		if c != 0 {
			x.place(c, t.hash[uint32(c)-1])
		}
	}
}

func (x *index) place(cell uint64, h uint64) {
	i := x.cellOf(h)
	for x.cells[i] != 0 {
		i = (i + 1) & uint64(len(x.cells)-1)
	}
	x.cells[i] = cell
}

// find returns the slot of a key, or NoSlot.
func (x *index) find(t *Table, h uint64, key []byte) uint32 {
	if len(x.cells) == 0 {
		return NoSlot
	}
	want := tag(h)
	for i := x.cellOf(h); ; i = (i + 1) & uint64(len(x.cells)-1) {
		c := x.cells[i]
		if c == 0 {
			return NoSlot
		}
		if tag(c) == want {
			if s := uint32(c) - 1; t.hash[s] == h && bytes.Equal(t.keys.get(s), key) {
				return s
			}
		}
	}
}

func (x *index) insert(h uint64, slot uint32) {
	x.place(tag(h)|uint64(slot+1), h)
	x.n++
}

func (x *index) remove(t *Table, slot uint32) {
	mask := uint64(len(x.cells) - 1)
	i := x.cellOf(t.hash[slot])
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
			home := x.cellOf(t.hash[uint32(c)-1])
			if (j-home)&mask >= (j-i)&mask {
				x.cells[i] = c
				break
			}
		}
		i = j
	}
}
