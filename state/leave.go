package state

import (
	"encoding/binary"
	"errors"
	"slices"
)

// OnLeave has a function called with rows that are about to leave memory, after Limit: what is derived from them is forgotten there.
func (t *Table) OnLeave(leave func(slots []uint32) error) { t.cold.leave = leave }

// InStore reports whether the store has a version of a row in memory.
func (t *Table) InStore(slot uint32) bool { return t.cold != nil && t.cold.mark(slot)&there != 0 }

// Leave lets rows leave memory that a checkpoint has as they are, or none is to.
func (t *Table) Leave(slots []uint32) error {
	if len(slots) == 0 {
		return nil
	}
	c := t.cold
	if c.store == nil {
		var err error
		if c.store, err = c.in.get(); err != nil {
			return err
		}
	}
	c.marks.Resize(t.room)
	for from := 0; from < len(slots); from += fetchRows {
		if err := t.evict(slots[from:min(len(slots), from+fetchRows)]); err != nil {
			return err
		}
	}
	return nil
}

// DropBegins drops rows that have left memory, and whose keys begin so, each in its key group. Those in memory are the caller's.
func (t *Table) DropBegins(groups []uint8, begins [][]byte) error {
	c := t.cold
	if c == nil || c.n == 0 || len(begins) == 0 {
		return nil
	}
	if err := c.drop(); err != nil {
		return err
	}
	view, err := c.store.Snapshot()
	if err != nil {
		return err
	}
	n := len(c.gone)
	for i, g := range groups {
		if !c.has[g] {
			continue
		}
		from := slices.Concat(c.prefix, []byte{g}, begins[i])
		if err = view.Range(from, behind(from), func(p Pair) bool {
			hash, key := binary.BigEndian.Uint64(p.Value), p.Key[len(c.prefix)+1:]
			if t.find(hash, key) == NoSlot {
				c.gone = append(c.gone, p.Key)
				if t.tracking {
					t.gone.add(t.epoch, hash, g, key)
				}
			}
			return true
		}); err != nil {
			break
		}
	}
	n = len(c.gone) - n
	c.n -= n
	t.looks += int64(n)
	return errors.Join(err, view.Close())
}

// DropOut drops all rows that have left memory.
func (t *Table) DropOut() error {
	if t.Out() == 0 {
		return nil
	}
	var groups []uint8
	for g, has := range t.cold.has {
		if has {
			groups = append(groups, uint8(g))
		}
	}
	return t.DropBegins(groups, make([][]byte, len(groups)))
}

// behind is the first key behind those that begin so.
func behind(begin []byte) []byte {
	for n := len(begin); n > 0; n-- {
		if begin[n-1] < 0xff {
			to := slices.Clone(begin[:n])
			to[n-1]++
			return to
		}
	}
	return nil
}
