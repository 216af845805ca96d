package riverbed

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/riverbed/riverbed/core/errs"
)

// retryAttempts bounds how often something that fails transiently is tried, the first time included.
const retryAttempts = 5

// retry waits between attempts: exponentially, with jitter. Success starts it anew.
type retry struct {
	r        *runner
	failures int
	pause    *backoff.ExponentialBackOff
}

func (r *runner) newRetry() *retry {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval, b.Multiplier = 100*time.Millisecond, 5*time.Second, 2
	b.RandomizationFactor = 0 // chance is the session's
	return &retry{r: r, pause: b}
}

// after reports whether to try again after the error, having waited.
func (t *retry) after(err error) bool { return t.again(t.r.reading, err) }

func (t *retry) again(ctx context.Context, err error) bool {
	t.failures++
	if !errs.As(err).Transient || t.failures >= retryAttempts {
		return false
	}
	wait := t.pause.NextBackOff()
	wait += time.Duration(t.r.s.rand.Float64() * float64(wait) / 2)
	return t.r.s.clock.Sleep(ctx, wait) == nil
}

// within runs f until it works, within the attempts. It waits as long as ctx lasts.
func (t *retry) within(ctx context.Context, f func() error) error {
	t.reset()
	for {
		err := f()
		if err == nil || !t.again(ctx, err) {
			return err
		}
	}
}

func (t *retry) reset() {
	if t.failures > 0 {
		t.failures = 0
		t.pause.Reset()
	}
}
