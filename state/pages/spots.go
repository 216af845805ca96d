package pages

import (
	"math/bits"
	"sync"
)

// spots remembers where values lie that were read lately. Most of them come back changed soon, in as much room as they had, and are then written where they lie: no
// page need be found, read or made anew for that.
//
// AIDEV-NOTE: a spot counts only while its page is as it was when it was read: rows that move, and pages that go, set changed. Keys are known by 64 bits of a hash with a seed of
// its own for each store; the checksum of a value is of its key too, so that even one that was written over another's would be found out.
type spots struct {
	mu      sync.Mutex // several may read at once
	of      []spot     // two for each lower bits of the key's hash, the newer one first
	changed []uint32   // by the unit where a page begins: the turn when its rows were last moved
	turn    uint32     // of changes to the store
}

// spot is where a value lies.
type spot struct {
	key  uint64 // its hash
	at   uint32 // the page
	from uint32 // in the page
	room uint32 // of the value
	turn uint32
}

const spotBytes = 24

// newSpots is memory of so many bytes at most.
func newSpots(memory int64) spots {
	n := max(2, min(memory/spotBytes, 1<<17))
	return spots{of: make([]spot, 1<<(bits.Len64(uint64(n))-1))}
}

// add remembers values that were just read.
func (s *spots) add(read []spot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range read {
		r.turn = s.turn
		two := s.two(r.key)
		if two[0].key != r.key {
			two[1] = two[0]
		}
		two[0] = r
	}
}

func (s *spots) two(key uint64) []spot {
	i := key & uint64(len(s.of)-1) &^ 1
	return s.of[i : i+2]
}

// find is where a value of so many bytes lies, if that is known.
func (s *spots) find(key uint64, bytes int) (spot, bool) {
	for _, x := range s.two(key) {
		if x.key == key && int(x.room) == roomOf(bytes) && (int(x.at) >= len(s.changed) || s.changed[x.at] <= x.turn) {
			return x, true
		}
	}
	return spot{}, false
}

// next is for the next change to the store.
func (s *spots) next() {
	if s.turn++; s.turn == 0 {
		s.forget()
	}
}

// move notes that the rows of a page move, or go.
func (s *spots) move(e extent) {
	if e.units == 0 {
		return
	}
	for int(e.at) >= len(s.changed) {
		s.changed = append(s.changed, 0)
	}
	s.changed[e.at] = s.turn
}

func (s *spots) forget() {
	clear(s.of)
	clear(s.changed)
}
