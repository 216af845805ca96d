package riverbed

import (
	"context"

	"github.com/riverbed/riverbed/connectors"
)

// A sink may make several epochs visible by one commit. Then an epoch that is durable waits as a link of the chain in the manifests, and the commit of the
// last one takes all. The marker is the last one's.
//
// AIDEV-NOTE: nothing else waits with them. What the epochs staged is durable, and the positions of the sources are behind them; after a crash the sink's marker is
// the predecessor of the first link that waits, and attach commits them one by one.

// gathers is how many epochs a commit takes.
func (d *durable) gathers() int {
	if g, ok := d.sink.(connectors.Gatherer); ok {
		return max(g.Gather(), 1)
	}
	return 1
}

// commitGathered commits the links that wait, as one, if there are as many.
func (d *durable) commitGathered(ctx context.Context, least int) error {
	waiting := d.last.Sinks[0].Pending
	if len(waiting) == 0 || len(waiting) < least {
		return nil
	}
	last := waiting[len(waiting)-1]
	e := connectors.StagedEpoch{Epoch: last.Epoch, Marker: connectors.Marker(last.Marker), Previous: connectors.Marker(waiting[0].Previous), Committable: last.Committable}
	for _, l := range waiting[:len(waiting)-1] {
		e.Gathered = append(e.Gathered, l.Committable)
	}
	return d.deliver(ctx, e)
}
