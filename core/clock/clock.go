// Package clock is the only door to time and chance. The engine never calls
// time.Now or math/rand itself, so that a run can be replayed and simulated.
//
// Invariant: two runs with equal clocks and seeds see the same times and the same chance.
package clock

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// Clock tells the time and waits.
type Clock interface {
	Now() time.Time
	// Sleep waits for d or until ctx ends; it returns ctx's error in the second case.
	Sleep(ctx context.Context, d time.Duration) error
	// After returns a channel that receives once after d.
	After(d time.Duration) <-chan time.Time
}

// Wall is the machine's clock.
type Wall struct{}

func (Wall) Now() time.Time { return time.Now() }

func (Wall) After(d time.Duration) <-chan time.Time { return time.After(d) }

func (Wall) Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Fake is a clock that moves only when told.
type Fake struct {
	mu      sync.Mutex
	now     time.Time
	waiters []waiter
}

type waiter struct {
	at time.Time
	ch chan time.Time
}

// NewFake starts a fake clock at start.
func NewFake(start time.Time) *Fake { return &Fake{now: start} }

func (f *Fake) Now() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now
}

func (f *Fake) After(d time.Duration) <-chan time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	ch := make(chan time.Time, 1)
	if d <= 0 {
		ch <- f.now
		return ch
	}
	f.waiters = append(f.waiters, waiter{f.now.Add(d), ch})
	return ch
}

func (f *Fake) Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-f.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Advance moves the clock and wakes whoever waited for a time now passed.
func (f *Fake) Advance(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now = f.now.Add(d)
	kept := f.waiters[:0]
	for _, w := range f.waiters {
		if w.at.After(f.now) {
			kept = append(kept, w)
		} else {
			w.ch <- f.now
		}
	}
	f.waiters = kept
}

// Rand is a source of chance; *rand.Rand of math/rand/v2 satisfies it.
type Rand interface {
	Uint64() uint64
	Float64() float64
	IntN(n int) int
}

// NewRand returns a generator that gives the same numbers for the same seed on every platform.
func NewRand(seed uint64) Rand { return rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15)) }

// Shared makes chance that several goroutines may draw from.
func Shared(r Rand) Rand { return &shared{r: r} }

type shared struct {
	mu sync.Mutex
	r  Rand
}

func (s *shared) Uint64() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.r.Uint64()
}

func (s *shared) Float64() float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.r.Float64()
}

func (s *shared) IntN(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.r.IntN(n)
}
