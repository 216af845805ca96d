package riverbed

import (
	"context"
	"sync"
	"time"

	"github.com/riverbed/riverbed/core/flow"
)

// A split that runs ahead of the others fills the state of windows and joins with rows that have to wait for them. So
// the loop holds back the readers of splits that are ahead of the slowest of their stream by more than
// max_split_lead_ms; a split that is idle, has ended or never had a row is not the slowest.

// gate stands before the reads of one split. The nil gate is open.
type gate struct {
	mu     sync.Mutex
	opened chan struct{} // nil: open

	behind     int           // what was read and no step has taken, and the reader itself until it begins
	ears       flow.Listener // nil: the source is taken to answer while reads do not fail
	lost, back time.Time     // since when reads fail, zero: they do not; and when they last did so again
}

// hears says whom to ask when the source answered.
func (g *gate) hears(l flow.Listener) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ears = l
}

// newGate is that of a split whose reader has not begun.
func newGate() *gate { return &gate{behind: 1} }

// begins: the reader asks the source from now on.
func (g *gate) begins(now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.behind--
	g.back = now
}

// gives: the reader has something for the loop; took: the loop has it.
func (g *gate) gives() { g.count(1) }
func (g *gate) took()  { g.count(-1) }

func (g *gate) count(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.behind += n
}

// answers notes that a read has failed, and is tried again, or that they work again.
func (g *gate) answers(well bool, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case !well && g.lost.IsZero():
		g.lost = now
	case well && !g.lost.IsZero():
		g.lost, g.back = time.Time{}, now
	}
}

// silence is how long the source has said that the split has nothing, after its last row. It stands still while the source is away.
//
// AIDEV-NOTE: a split that is taken for idle lets the watermark pass it, and its rows are late when they come. So the time of an outage does not
// count, nor what came before it: rows may have been written since, or be on their way. Nor does the time count in which rows wait for the loop, which
// may be long when commits fall behind.
func (g *gate) silence(last, now time.Time) (d time.Duration, still bool) {
	from, to := last, now
	if g != nil {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.behind > 0 {
			return 0, false
		}
		if g.back.After(from) {
			from = g.back
		}
		if g.ears != nil {
			since, heard := g.ears.Heard()
			if since.After(from) {
				from = since
			}
			if heard.Before(to) {
				to = heard
			}
		}
		if !g.lost.IsZero() && g.lost.Before(to) {
			to = g.lost
		}
	}
	return max(to.Sub(from), 0), to != now
}

// hold closes or opens the gate; it reports whether that opened it.
func (g *gate) hold(on bool) (opened bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case on && g.opened == nil:
		g.opened = make(chan struct{})
	case !on && g.opened != nil:
		close(g.opened)
		g.opened = nil
		return true
	}
	return false
}

func (g *gate) held() bool {
	if g == nil {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.opened != nil
}

// pass waits while the gate is closed, or until ctx ends.
func (g *gate) pass(ctx context.Context) {
	g.mu.Lock()
	opened := g.opened
	g.mu.Unlock()
	if opened == nil {
		return
	}
	select {
	case <-opened:
	case <-ctx.Done():
	}
}

// holdBack opens and closes the gates after a step. Without an idle timeout a silent split would stop its stream for
// good, so nothing is held back then.
func (r *runner) holdBack() {
	for i, in := range r.inputs {
		if !in.canIdle() || len(in.splits) < 2 {
			continue
		}
		splits := r.graph.Splits(i)
		least := flow.EndWatermark
		for _, sp := range splits {
			if !sp.Idle && !sp.Ended && sp.Watermark != flow.NoWatermark {
				least = min(least, sp.Watermark)
			}
		}
		for _, sp := range splits {
			s := in.splits[sp.ID]
			if s == nil || s.gate == nil {
				continue
			}
			ahead := sp.Watermark != flow.NoWatermark && least != flow.EndWatermark && int64(sp.Watermark)-int64(least) > r.cfg.maxSplitLead*1000
			if s.gate.hold(ahead) {
				s.last = r.s.clock.Now()
			}
		}
	}
}
