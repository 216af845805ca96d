package riverbed

import (
	"context"
	"io"
	"runtime"
	"sync"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/types"
)

// Subscription is an incremental run whose deltas the caller reads. The queue is bounded: a slow reader blocks the run.
type Subscription struct {
	run *runner
	out chan flow.Delta
}

// Subscribe starts the query incrementally. Ending ctx ends the run with an error; Close ends it without.
func (q *Query) Subscribe(ctx context.Context, o SubscribeOptions) (*Subscription, error) {
	if err := q.runnable("subscribe"); err != nil {
		return nil, err
	}
	if o.QueueSize <= 0 {
		o.QueueSize = 64
	}
	out := make(chan flow.Delta, o.QueueSize)
	r, err := q.newRunner(ctx, runOptions{name: q.s.runs.name("query"), until: o.Until, deliver: func(ctx context.Context, d flow.Delta) error {
		if d.Batch == nil {
			return nil
		}
		select {
		case out <- d:
			return nil
		case <-ctx.Done():
			releaseLent(d)
			return cancelled(ctx)
		}
	}})
	if err != nil {
		return nil, err
	}
	r.borrows = r.graph.Borrows()
	sub := &Subscription{run: r, out: out}
	// The session knows the run, not the subscription: one that was forgotten without Close can be collected.
	running := &closing{r: r, out: out}
	if !q.s.runs.add(running) {
		r.cancel()
		_ = r.graph.Close()
		return nil, q.s.usable()
	}
	runtime.AddCleanup(sub, func(r *runner) { r.cancel() }, r)
	r.start(func() {
		close(out)
		q.s.runs.remove(running)
		q.s.endKept(r.name, false)
	})
	return sub, nil
}

// closing ends a subscription's run.
type closing struct {
	r    *runner
	out  chan flow.Delta
	once sync.Once
}

func (c *closing) Close() error {
	c.once.Do(func() {
		c.r.cancel()
		for d := range c.out { // nobody reads any more
			releaseLent(d)
		}
		<-c.r.done
	})
	return nil
}

// Fields are the columns of the deltas, without the weight.
func (s *Subscription) Fields() []types.Field { return s.run.fields }

// Next waits for the next delta; io.EOF after the last one. Ending ctx ends the wait, not the run. Where a delta lies in lent memory
// the caller releases it.
func (s *Subscription) Next(ctx context.Context) (flow.Delta, error) {
	select {
	case d, ok := <-s.out:
		if ok {
			return d, nil
		}
		if err := s.run.wait(ctx); err != nil {
			return flow.Delta{}, err
		}
		return flow.Delta{}, io.EOF
	case <-ctx.Done():
		return flow.Delta{}, cancelled(ctx)
	}
}

// Poll returns the next delta if it is there already. Where it lies in lent memory the caller releases it.
func (s *Subscription) Poll() (flow.Delta, bool) {
	select {
	case d, ok := <-s.out:
		return d, ok
	default:
		return flow.Delta{}, false
	}
}

// Stop finishes the running step and ends the run; with drain the input ends too, so that open windows close. What
// was shown can still be read.
func (s *Subscription) Stop(drain bool) { s.run.stop(drain) }

// Metrics tells how the run goes.
func (s *Subscription) Metrics() Metrics { return s.run.metrics() }

// Close stops the run. Closing again does nothing.
func (s *Subscription) Close() error {
	return (&closing{r: s.run, out: s.out}).Close()
}

// runnable refuses what cannot be run (again).
func (q *Query) runnable(op string) error {
	if q.bound == nil {
		return errs.New(errs.Usage, op, "this statement has run already; only a SELECT can be run again")
	}
	return q.s.usable()
}
