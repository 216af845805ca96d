package riverbed

import (
	"context"
	"io"
	"sync"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/types"
)

// Subscription is an incremental run whose deltas the caller reads. The queue is bounded: a slow reader blocks the run.
type Subscription struct {
	s    *Session
	run  *runner
	out  chan flow.Delta
	once sync.Once
}

// Subscribe starts the query incrementally.
func (q *Query) Subscribe(ctx context.Context, o SubscribeOptions) (*Subscription, error) {
	if q.bound == nil {
		return nil, errs.New(errs.Usage, "subscribe", "this statement has run already; only a SELECT can be subscribed to")
	}
	if o.QueueSize <= 0 {
		o.QueueSize = 64
	}
	sub := &Subscription{s: q.s, out: make(chan flow.Delta, o.QueueSize)}
	r, err := q.newRunner(ctx, o.Until, func(ctx context.Context, d flow.Delta) error {
		if d.Batch == nil {
			return nil
		}
		select {
		case sub.out <- d:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	if err != nil {
		return nil, err
	}
	sub.run = r
	q.s.track(sub)
	r.start(func() { close(sub.out) })
	return sub, nil
}

// Fields are the columns of the deltas, without the weight.
func (s *Subscription) Fields() []types.Field { return s.run.fields }

// Next waits for the next delta; io.EOF after the last one. Ending ctx ends the wait, not the run.
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
		return flow.Delta{}, ctx.Err()
	}
}

// Metrics tells how the run goes.
func (s *Subscription) Metrics() Metrics { return s.run.metrics() }

// Close stops the run.
func (s *Subscription) Close() error {
	s.once.Do(func() {
		s.run.cancel()
		for range s.out { // let a blocked step finish
		}
		_ = s.run.wait(context.Background())
		s.s.untrack(s)
	})
	return nil
}
