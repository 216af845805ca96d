package incremental

import (
	"slices"
	"testing"

	"github.com/riverbed/riverbed/core/flow"
)

// TestTimersForgetWhatLeft: slots of rows that left memory go from the timers once they are many, and those that others have stay.
func TestTimersForgetWhatLeft(t *testing.T) {
	tm := newTimers()
	closes := make([]int64, 6000)
	for s := range closes {
		closes[s] = int64(s % 3)
		tm.add(closes[s], uint32(s))
	}
	var gone []uint32
	for s := range 5000 {
		gone = append(gone, uint32(s))
	}
	tm.leftSlots(closes, gone)
	closes[1] = 7 // another row, of another time
	tm.add(7, 1)
	closes[2] = 2 // and one of the same time
	tm.add(2, 2)
	tm.leftSlots(closes, gone[10:1100])
	held := 0
	for _, c := range tm.slots {
		held += len(c.slots)
	}
	if held != 1002 || tm.n != held {
		t.Errorf("%d slots are held, %d counted", held, tm.n)
	}
	due := tm.take(flow.Watermark(6), closes, func(uint32) bool { return true })
	slices.Sort(due)
	if len(due) != 1001 || due[0] != 2 || due[1] != 5000 {
		t.Errorf("%d slots are due, the first %v", len(due), due[:2])
	}
}
