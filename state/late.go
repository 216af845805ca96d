package state

import (
	"math/bits"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/kernels"
)

// lateCopy is a copy of rows that is made behind its barrier, while the table is used: each row is copied as it was at the barrier, those that are
// about to change before they do. The steps wait for a piece of it at a time.
//
// AIDEV-NOTE: a row is in the copy once, with the value that it had at the barrier, because nothing writes to a row whose bit is set: operators say
// before they write (Before), and Delete and eviction copy such rows first. Touch looks whether all did; it sees nothing of a write to a row that is
// deleted in the same step.
type lateCopy struct {
	bits  []uint64 // by slot: what is still to be copied, if there is a row; nothing is set while no copy is under way
	left  int      // how many are set
	next  int      // the word of bits from which on some may be set
	parts []Part   // copied and not handed out
	slots []uint32
	list  goneRows // keys that had gone at the barrier, of which those at
	gone  []int    // these places are still to be copied
	err   error    // why the copy is not right, from then on
}

// CopyLate lets the rows of a table be copied behind a barrier. Whoever uses it says before it writes to rows (Before).
func (t *Table) CopyLate() { t.late = &lateCopy{} }

// Begin begins a copy of the rows that changed and of the keys that went after an epoch, in the place of Dirty; false when the table is none of those whose
// rows may be copied late. Copy takes it on, until there is nothing left.
func (t *Table) Begin(since uint64) (bool, error) {
	c := t.late
	if c == nil {
		return false, nil
	}
	if c.pending() {
		return false, errs.Bug("state", "table %s: a copy begins before the last one has ended", t.Decl.Name)
	}
	c.list, c.gone, c.err = t.gone, t.goneSince(since), nil // Forget makes another list of what is not forgotten
	t.mark(c, since)
	return true, nil
}

// pending reports whether there is something to copy, or to hand out.
func (c *lateCopy) pending() bool { return c.left > 0 || len(c.gone) > 0 || len(c.parts) > 0 }

// Copy copies about so many rows and keys more, a word of bits at least; false when none are left.
func (t *Table) Copy(rows int) ([]Part, bool, error) {
	c := t.late
	n := min(len(c.gone), max(64, rows))
	t.copyNow(c.first(rows-n), c.gone[:n])
	c.gone = c.gone[n:]
	parts := c.parts
	c.parts = nil
	return parts, c.pending(), c.err
}

// Before notes that rows are about to change.
func (t *Table) Before(slots []uint32) {
	if c := t.late; c != nil && c.left > 0 {
		t.copyNow(c.among(slots), nil)
	}
}

// copyNow copies rows whose bits were taken back, and keys that went.
//
// AIDEV-NOTE: until the rows are in a part the copy counts as failed, so that a panic on the way leaves it so.
func (t *Table) copyNow(slots []uint32, gone []int) {
	c := t.late
	if slots = t.there(slots); len(slots)+len(gone) == 0 || c.err != nil {
		return
	}
	c.err = errs.Bug("state", "table %s: the copy of its changes was broken off", t.Decl.Name)
	p, err := t.part(slots, &c.list, gone)
	if c.err = err; err == nil {
		c.parts = append(c.parts, p)
	}
}

// there narrows slots to those with rows, in place. All are looked at first, and none waits for another: each look is a miss of the cache.
func (t *Table) there(slots []uint32) []uint32 {
	t.live = kernels.Sized(t.live, len(slots))
	for i, s := range slots {
		t.live[i] = t.heads.At(s).live
	}
	n := 0
	for i, s := range slots {
		if t.live[i] {
			slots[n] = s
			n++
		}
	}
	return slots[:n]
}

// mark sets the bits of the slots that are listed for later epochs, and counts them. Looking at each row here and there would take long; whether one
// is there is seen when it is copied.
//
// AIDEV-NOTE: a row may have gone before the barrier, and another one may come into its slot behind it, which take and Append tell (took).
func (t *Table) mark(c *lateCopy, since uint64) int {
	if words := (t.used + 63) / 64; words > len(c.bits) {
		c.bits = append(c.bits, make([]uint64, words-len(c.bits))...)
	}
	for _, d := range t.dirty {
		if d.epoch > since && !c.has(d.slot) { // it may be listed for several epochs
			c.bits[d.slot/64] |= 1 << (d.slot % 64)
			c.left++
		}
	}
	c.next = 0
	return c.left
}

// took notes that a slot has a new row, which is no part of the copy.
func (c *lateCopy) took(slot uint32) {
	if c != nil && c.left > 0 && c.has(slot) {
		c.bits[slot/64] &^= 1 << (slot % 64)
		c.left--
	}
}

// first takes the bits of about so many slots, in their order: each look is near the one before.
func (c *lateCopy) first(n int) []uint32 {
	c.slots = c.slots[:0]
	for c.left > 0 && len(c.slots) < n {
		w := c.bits[c.next]
		for ; w != 0; w &= w - 1 {
			c.slots = append(c.slots, uint32(64*c.next+bits.TrailingZeros64(w)))
			c.left--
		}
		c.bits[c.next] = 0
		c.next++
	}
	return c.slots
}

// among takes the bits of those of some rows that are still to be copied.
func (c *lateCopy) among(slots []uint32) []uint32 {
	c.slots = c.slots[:0]
	for _, s := range slots {
		if c.has(s) {
			c.bits[s/64] &^= 1 << (s % 64)
			c.slots = append(c.slots, s)
			c.left--
		}
	}
	return c.slots
}

// has reports whether a slot is still to be copied.
func (c *lateCopy) has(slot uint32) bool {
	return int(slot/64) < len(c.bits) && c.bits[slot/64]&(1<<(slot%64)) != 0
}
