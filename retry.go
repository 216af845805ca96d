package riverbed

import (
	"context"
	"time"

	"github.com/riverbed/riverbed/core/clock"
	"github.com/riverbed/riverbed/core/errs"
)

// retryAttempts bounds how often something that fails transiently is tried, the first time included. A pipeline is patient beyond that: it
// rides out what is away for max_outage_ms (ADR 28).
const retryAttempts = 5

// stopGrace is how long a run that was told to stop waits for a service that does not answer.
const stopGrace = 30 * time.Second

// retry waits between attempts: exponentially, with jitter. Success starts it anew.
type retry struct{ clock.Retry }

func (r *runner) newRetry() *retry {
	return &retry{clock.Retry{Clock: r.s.clock, Rand: r.s.rand, Attempts: retryAttempts, First: 100 * time.Millisecond, Longest: 5 * time.Second}}
}

// again reports whether to try again after the error, having waited.
func (t *retry) again(ctx context.Context, err error) bool {
	return errs.As(err).Transient && t.Again(ctx, err)
}

// within runs f until it works, within the patience that ctx brings, or the attempts where it brings none. It waits as long as ctx lasts.
func (t *retry) within(ctx context.Context, f func(ctx context.Context) error) error {
	defer t.Done()
	attempt := t.In(ctx)
	for {
		err := f(attempt)
		if err == nil || !t.again(ctx, err) {
			return err
		}
	}
}
