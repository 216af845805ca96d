package riverbed

import (
	"github.com/riverbed/riverbed/incremental"
	"github.com/riverbed/riverbed/state"
	"github.com/riverbed/riverbed/state/disk"
)

// leastStateLimit is the memory that the state of a session's runs has in any case: with less, each step would read all it needs.
const leastStateLimit = 1 << 20

// limitState lets state of a run that does not fit in memory_limit, which all runs of the session share, go to state_dir. Nothing is made there
// before that comes near.
func (c *config) limitState(o *incremental.Options) {
	if c.memoryLimit <= 0 {
		return
	}
	limit := max(c.memoryLimit, leastStateLimit)
	c.stateRoom.SetLimit(limit)
	o.StateRoom = c.stateRoom
	o.OpenStore = func() (state.Store, error) { return disk.OpenIn(c.stateDir, limit/8) }
}
