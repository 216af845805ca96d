package state

import (
	"encoding/binary"
	"math/bits"
)

// admission decides which rows that come back into memory stay there. One that comes for the first time in a while is a guest: it leaves before all
// others, unless it is asked for again; so rows that nobody needs twice, however many, take no room from those in use. One that came lately comes to
// stay. Those that stay are told from one another by the clock hand. While the hand finds rows that nobody has asked for nearly wherever it looks, guests are no worse
// than what is there, and the hand treats them alike: rows that were in use make way for those that are now.
type admission struct {
	now, before visits // of rows that came lately, of which there are about half as many as there is room for
	rows        int    // that there is room for
	guests      int    // in memory
	hand        int    // the slot where the search for guests goes on
	looks       int    // of the clock hand, lately
	found       int    // rows that it let go
}

// visits are the hashes of rows that came.
type visits struct {
	words []uint64
	n     int
}

const (
	leastVisits = 16 // words, where there is room for few rows
	visitRows   = 3  // a word: one in some three hundred of others is taken for one of them
)

func (v *visits) has(h uint64) bool {
	if len(v.words) == 0 {
		return false
	}
	at, b := seenAt(h, len(v.words))
	return v.words[at]&b == b
}

// comes notes that a row comes, and reports whether it stays.
func (a *admission) comes(h uint64) (stays bool) {
	if a.now.has(h) || a.before.has(h) {
		return true
	}
	if a.now.n >= visitRows*len(a.now.words) {
		a.turn()
	}
	at, b := seenAt(h, len(a.now.words))
	a.now.words[at] |= b
	a.now.n++
	return false
}

// turn begins a generation of visits and forgets the one before the last: of a third to two thirds of the rows that there is room for.
func (a *admission) turn() {
	words := 1 << bits.Len(uint(max(leastVisits, a.rows/(3*visitRows)+1)-1))
	old := a.before.words
	a.before = a.now
	if len(old) == words {
		clear(old)
		a.now = visits{words: old}
	} else {
		a.now = visits{words: make([]uint64, words)}
	}
}

// guestsFirst reports whether guests leave before the others: once the hand has to look for those.
func (a *admission) guestsFirst() bool { return a.guests > 0 && a.looks >= 2*a.found }

// looked notes how the hand fared.
func (a *admission) looked(looks, found int) {
	a.looks, a.found = a.looks+looks, a.found+found
	if a.found > a.rows/64 {
		a.looks, a.found = a.looks/2, a.found/2
	}
}

func (a *admission) bytes() int64 { return int64(8 * (len(a.now.words) + len(a.before.words))) }

// guestOf is the mark of a guest, in eight slots.
const guestOf = uint64(guest) * 0x0101010101010101

// guestsOut adds guests that may leave to out, until there are n.
func (c *coldRows) guestsOut(t *Table, n int, out []uint32) []uint32 {
	a, marks := &c.admission, &c.marks
	for left := a.guests; left > 0 && len(out) < n; {
		if a.hand >= t.used {
			a.hand = 0
		}
		chunk, at := marks.chunks[a.hand>>slotBits], a.hand&slotMask
		if at+8 <= len(chunk) && binary.LittleEndian.Uint64(chunk[at:])&guestOf == 0 {
			a.hand += 8
			continue
		}
		if s := uint32(a.hand); chunk[at]&guest != 0 {
			left--
			if c.mayLeave(t, s) {
				chunk[at] |= chosen
				out = append(out, s)
			}
		}
		a.hand++
	}
	return out
}
