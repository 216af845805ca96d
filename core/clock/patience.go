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
	ending  time.Time // since when the run is to end; zero: it is not
	grace   time.Duration
	waiting map[*Retry]outage    // what does not succeed at present
	outages int64                // how often that began
	left    map[*Retry]time.Time // since when those waited that gave up within an attempt of this one
}

// outage is what does not succeed.
type outage struct {
	since   time.Time
	failure error // the last
}

// NewPatience waits up to limit for each outage.
func NewPatience(c Clock, limit time.Duration) *Patience {
	return &Patience{clock: c, limit: limit, waiting: map[*Retry]outage{}, left: map[*Retry]time.Time{}}
}

type patienceKey struct{}

// In gives the context of a run that has this patience; nil: none.
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

// Within says that the run is to end: from now on no outage is waited for longer than grace.
func (p *Patience) Within(grace time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ending.IsZero() {
		p.ending, p.grace = p.clock.Now(), grace
	}
}

// Ending reports whether the run is to end, and waits no longer than it needs to.
func (p *Patience) Ending() bool {
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.ending.IsZero()
}

// Waiting tells how many outages there were, and what is waited for at present: nil when all is well, otherwise what failed last of the
// outage that began first, and when that was.
func (p *Patience) Waiting() (outages int64, since time.Time, failure error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, o := range p.waiting {
		if failure == nil || o.since.Before(since) {
			since, failure = o.since, o.failure
		}
	}
	return p.outages, since, failure
}

// Overdue is what failed last of an outage that has been waited for long enough; nil: there is none.
func (p *Patience) Overdue() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for r, o := range p.waiting {
		if !p.has(o.since, r.limit(p)) {
			return o.failure
		}
	}
	return nil
}

// note says what does not succeed. The outage began when it did for those who gave up within the attempt, or beside r.
func (p *Patience) note(ctx context.Context, r *Retry, failure error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	o, known := p.waiting[r]
	if !known {
		p.outages++
		o.since = p.clock.Now()
	}
	for _, gaveUp := range []*Retry{r, outside(ctx)} {
		if left, ok := p.left[gaveUp]; ok && left.Before(o.since) {
			o.since = left
		}
	}
	o.failure = failure
	p.waiting[r] = o
}

func (p *Patience) over(r *Retry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.waiting, r)
	delete(p.left, r)
}

// goesOn reports whether r may wait on. Otherwise who tries it within an attempt is told since when it has waited.
//
// AIDEV-NOTE: without that each level would wait for the outage from its beginning again: attempts times the limit, and times the attempts of
// the next. Only giving up is told; a success within an attempt ends what began there, and says nothing of the rest.
func (p *Patience) goesOn(ctx context.Context, r *Retry) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	since := p.waiting[r].since
	if p.has(since, r.limit(p)) {
		return true
	}
	if outer := outside(ctx); outer != nil && outer != r {
		if left, known := p.left[outer]; !known || since.Before(left) {
			p.left[outer] = since
		}
	}
	return false
}

// has reports whether there is patience left for an outage that began then.
func (p *Patience) has(since time.Time, limit time.Duration) bool {
	now := p.clock.Now()
	if !p.ending.IsZero() {
		from := since
		if from.Before(p.ending) {
			from = p.ending
		}
		if now.Sub(from) >= p.grace {
			return false
		}
	}
	return now.Sub(since) < limit
}

// Retry paces attempts at one thing. The zero value of what is not said is fine but for Clock, First and Attempts. It is used by one goroutine.
type Retry struct {
	Clock    Clock
	Rand     Rand          // of the jitter, a half more at most; nil: none
	Attempts int           // at most, the first included, where the context brings no patience
	Limit    time.Duration // of an outage, instead of that of the context's patience; 0: that
	First    time.Duration // of the pauses, which double
	Longest  time.Duration // of the pauses

	failures int
	pause    time.Duration
	patience *Patience // where it may be noted
}

func (r *Retry) limit(p *Patience) time.Duration {
	if r.Limit > 0 {
		return r.Limit
	}
	return p.limit
}

type retryKey struct{}

// outside is who tries again around ctx; nil: nobody.
func outside(ctx context.Context) *Retry {
	r, _ := ctx.Value(retryKey{}).(*Retry)
	return r
}

// In gives the context of attempts in which others may try again: an outage for which they give up is not waited for anew.
func (r *Retry) In(ctx context.Context) context.Context {
	if r.patience = PatienceIn(ctx); r.patience == nil {
		return ctx
	}
	return context.WithValue(ctx, retryKey{}, r)
}

// Again comes behind an attempt that failed and may go better. It reports whether to try once more, having waited; false when the
// patience is used up, or where there is none the attempts, or ctx has ended. Who gets false has to call Done too.
func (r *Retry) Again(ctx context.Context, failure error) bool {
	r.failures++
	if r.failures == 1 {
		r.pause = r.First
	}
	r.Tell(ctx, failure)
	if p := r.patience; p == nil && r.failures >= r.Attempts || p != nil && !p.goesOn(ctx, r) {
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
	if r.patience = PatienceIn(ctx); r.patience != nil {
		r.patience.note(ctx, r, failure)
	}
}

// Failures is how often an attempt has failed since the last Done.
func (r *Retry) Failures() int { return r.failures }

// Done ends the attempts: one succeeded, or none will. The next failure is the first again.
func (r *Retry) Done() {
	r.failures = 0
	if r.patience != nil {
		r.patience.over(r)
	}
}
