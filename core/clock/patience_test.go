package clock

import (
	"context"
	"errors"
	"testing"
	"time"
)

// leaping is a clock on which a sleep takes no time.
type leaping struct{ *Fake }

func (l leaping) Sleep(ctx context.Context, d time.Duration) error {
	l.Advance(d)
	return ctx.Err()
}

var errAway = errors.New("away")

// try tries f again while r allows it.
func try(ctx context.Context, r *Retry, f func(context.Context) error) error {
	defer r.Done()
	for attempt := r.In(ctx); ; {
		if err := f(attempt); err == nil || !r.Again(ctx, err) {
			return err
		}
	}
}

// However deep somebody tries again, and however often where there is no patience, an outage is waited for once.
func TestAnOutageHasOneLimit(t *testing.T) {
	for _, levels := range []int{1, 2, 3} {
		c := leaping{NewFake(time.Unix(0, 0))}
		p := NewPatience(c, 5*time.Minute)
		f := func(context.Context) error { return errAway }
		for range levels {
			inner := f
			f = func(ctx context.Context) error {
				return try(ctx, &Retry{Clock: c, Attempts: 9, First: time.Second, Longest: 5 * time.Second}, inner)
			}
		}
		if err := f(p.In(t.Context())); !errors.Is(err, errAway) {
			t.Fatal(err)
		}
		if took := c.Now().Sub(time.Unix(0, 0)); took < 5*time.Minute || took > 6*time.Minute {
			t.Errorf("%d levels waited for %s", levels, took)
		}
		if _, _, failure := p.Waiting(); failure != nil || len(p.left) > 0 || len(p.waiting) > 0 {
			t.Errorf("%d levels: waiting for %v, %d left", levels, failure, len(p.left))
		}
	}
}

// What succeeds within an attempt has ended its outage: the next one is another, whatever the attempt was of.
func TestOutagesAreApart(t *testing.T) {
	c := leaping{NewFake(time.Unix(0, 0))}
	ctx := NewPatience(c, time.Minute).In(t.Context())
	err := try(ctx, &Retry{Clock: c, Attempts: 1, First: time.Second}, func(ctx context.Context) error {
		for range 10 {
			n := 0
			if err := try(ctx, &Retry{Clock: c, Attempts: 1, First: 40 * time.Second}, func(context.Context) error {
				if n++; n == 1 {
					return errAway
				}
				return nil
			}); err != nil {
				return err
			}
		}
		return nil
	})
	if took := c.Now().Sub(time.Unix(0, 0)); err != nil || took != 400*time.Second {
		t.Errorf("%v after %s", err, took)
	}
}

// A run that is to end waits for what is away no longer than the grace, and for what fails for a moment as long as it takes.
func TestAGraceIsOfEachOutage(t *testing.T) {
	c := leaping{NewFake(time.Unix(0, 0))}
	p := NewPatience(c, time.Hour)
	ctx := p.In(t.Context())
	long := &Retry{Clock: c, First: 10 * time.Second, Longest: 10 * time.Second}
	long.Again(ctx, errAway)
	p.Within(30 * time.Second)
	for i, want := range []bool{true, true, true, false} {
		if over := p.Overdue() != nil; over == want {
			t.Errorf("after %d s overdue %t", 10*i, over)
		}
		if i < 3 && !long.Again(ctx, errAway) {
			t.Errorf("after %d s no patience", 10*i)
		}
	}
	if long.Again(ctx, errAway) {
		t.Error("patience behind the grace")
	}
	long.Done()
	c.Advance(time.Minute)
	blip := &Retry{Clock: c, First: time.Second}
	if !blip.Again(ctx, errAway) || p.Overdue() != nil {
		t.Error("no patience for what fails for a moment")
	}
	c.Advance(30 * time.Second)
	if p.Overdue() == nil {
		t.Error("it is away for longer than the grace")
	}
}
