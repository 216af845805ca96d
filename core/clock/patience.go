package clock

import (
	"context"
	"sync"
	"time"
)

// Patience is how long a run waits for services that are away: a broker that restarts, a store that does not answer. It travels in the run's
// contexts, so that whoever tries again, at whatever depth, does so for as long, and the run can tell what it waits for.
type Patience struct {
	clock Clock
	limit time.Duration

	mu      sync.Mutex
	end     time.Time        // no later than this; zero: no such moment
	waiting map[*Retry]error // what does not succeed at present
	outages int64            // how often that began
	since   map[*Retry]time.Time
}

// NewPatience waits up to limit for each outage.
func NewPatience(c Clock, limit time.Duration) *Patience {
	return &Patience{clock: c, limit: limit, waiting: map[*Retry]error{}, since: map[*Retry]time.Time{}}
}

type patienceKey struct{}

// In gives the context of a run that has this patience.
func (p *Patience) In(ctx context.Context) context.Context {
	return context.WithValue(ctx, patienceKey{}, p)
}

// PatienceIn is the patience of a context; nil: none.
func PatienceIn(ctx context.Context) *Patience {
	p, _ := ctx.Value(patienceKey{}).(*Patience)
	return p
}

// Limit is how long one outage is waited for, 0 without patience.
func (p *Patience) Limit() time.Duration {
	if p == nil {
		return 0
	}
	return p.limit
}

// Within ends the patience after a while, whatever is waited for: the run is to end.
func (p *Patience) Within(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.end = p.clock.Now().Add(d)
}

// Ending reports whether the run is to end, and waits no longer than it needs to.
func (p *Patience) Ending() bool {
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.end.IsZero()
}

// Waiting tells how many outages there were, and what is waited for at present: nil when all is well, otherwise what failed last of the
// outage that began first.
func (p *Patience) Waiting() (outages int64, failure error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var first time.Time
	for r, err := range p.waiting {
		if at := p.since[r]; failure == nil || at.Before(first) {
			failure, first = err, at
		}
	}
	return p.outages, failure
}

func (p *Patience) note(r *Retry, failure error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, known := p.waiting[r]; !known {
		p.outages++
		p.since[r] = p.clock.Now()
	}
	p.waiting[r] = failure
}

func (p *Patience) over(r *Retry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.waiting, r)
	delete(p.since, r)
}

// has reports whether there is patience left for an outage that began then.
func (p *Patience) has(since time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock.Now()
	return now.Sub(since) < p.limit && (p.end.IsZero() || now.Before(p.end))
}

// Retry paces attempts at one thing. The zero value of what is not said is fine but for Clock, First and Attempts. It is used by one goroutine.
type Retry struct {
	Clock    Clock
	Rand     Rand          // of the jitter, a half more at most; nil: none
	Attempts int           // at most, the first included, where the context brings no patience
	First    time.Duration // of the pauses, which double
	Longest  time.Duration // of the pauses

	failures int
	pause    time.Duration
	since    time.Time
	told     *Patience
}

// Again comes behind an attempt that failed and may go better. It reports whether to try once more, having waited; false when the
// attempts or the patience are used up, or ctx has ended. Who gets false has to call Done too.
func (r *Retry) Again(ctx context.Context, failure error) bool {
	r.failures++
	if r.failures == 1 {
		r.since, r.pause = r.Clock.Now(), r.First
	}
	r.Tell(ctx, failure)
	if r.failures >= r.Attempts && (r.told == nil || !r.told.has(r.since)) {
		return false
	}
	wait := r.pause
	if r.Rand != nil {
		wait += time.Duration(r.Rand.Float64() * float64(wait) / 2)
	}
	if r.pause *= 2; r.Longest > 0 {
		r.pause = min(r.pause, r.Longest)
	}
	return r.Clock.Sleep(ctx, wait) == nil
}

// Tell notes what does not succeed at present, for those who look at the run. Again does so too.
func (r *Retry) Tell(ctx context.Context, failure error) {
	if r.told = PatienceIn(ctx); r.told != nil {
		r.told.note(r, failure)
	}
}

// Failures is how often an attempt has failed since the last Done.
func (r *Retry) Failures() int { return r.failures }

// Done ends the attempts: one succeeded, or none will. The next failure is the first again.
func (r *Retry) Done() {
	r.failures = 0
	if r.told != nil {
		r.told.over(r)
		r.told = nil
	}
}
