package state_test

import (
	"testing"

	"github.com/riverbed/riverbed/state"
)

func TestARoomIsSharedByWhatEachHolds(t *testing.T) {
	r := state.NewRoom(100)
	a, b := r.Join(), r.Join()
	for i, c := range []struct {
		who          *state.Share
		holds, wants int64
	}{
		{a, 80, 100}, // nobody else holds anything
		{b, 40, 50},  // its part, although only 20 are left
		{a, 80, 60},
		{a, 60, 60},
		{b, 10, 50},
		{a, 60, 90},
	} {
		if got := c.who.Hold(c.holds); got != c.wants {
			t.Errorf("%d: it may hold %d, not %d", i, got, c.wants)
		}
	}
	b.Leave()
	b.Leave()
	if got := a.Hold(60); got != 100 {
		t.Errorf("alone it may hold %d", got)
	}
}
