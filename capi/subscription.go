package main

// #include "riverbed.h"
import "C"

import (
	"context"
	"errors"
	"io"
	"time"
	"unsafe"

	"github.com/riverbed/riverbed"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
)

// subscription is an incremental run that is being read.
type subscription struct {
	engine *riverbed.Subscription
	end    context.CancelFunc
	loan   *loan
}

func (*subscription) closeWaits() {}

func (*subscription) kind() string { return "subscription" }

func (s *subscription) cancel() { s.end() }

func (s *subscription) close() error {
	err := s.engine.Close() // returns when the run has ended: only then may the imports go
	s.end()
	s.loan.release()
	return err
}

// rb_query_subscribe starts the query incrementally; it waits for its sources to open. options: {"until", "queue_size"}.
//
//export rb_query_subscribe
func rb_query_subscribe(h C.rb_handle, options C.rb_chars, n C.int64_t, out *C.rb_handle, err *C.rb_text) C.int32_t {
	return guard("subscribe", err, func() error {
		q, e := get[*query](h)
		if e != nil {
			return e
		}
		var o riverbed.SubscribeOptions
		if e := fromJSON("subscribe", options, n, &o); e != nil {
			return e
		}
		held, e := q.hold()
		if e != nil {
			return e
		}
		ctx, end := q.runs.begin(context.Background()) // lives as long as the run
		sub, e := q.engine.Subscribe(ctx, o)
		if e != nil {
			end()
			held.release()
			return e
		}
		*out = handles.open(&subscription{engine: sub, end: end, loan: held})
		return nil
	})
}

// What rb_subscription_next answers beside a batch.
const (
	stateBatch   = 0
	stateNothing = 1 // within the time given
	stateEnd     = 2 // and never again
)

// rb_subscription_next waits at most so long for changes, and takes along those that are there already: at most room of them, and
// with room for none it is an error.
//
//export rb_subscription_next
func rb_subscription_next(h C.rb_handle, timeoutMS C.int64_t, out *C.rb_change, room C.int64_t, taken *C.int64_t, state *C.int32_t, err *C.rb_text) C.int32_t {
	return guard("subscription", err, func() error {
		*taken, *state = 0, stateNothing
		s, e := get[*subscription](h)
		if e != nil {
			return e
		}
		if !s.loan.retain() { // closed by another thread; the batch needs what the loan holds
			return errs.New(errs.Usage, "subscription", "the subscription is closed")
		}
		defer s.loan.release()
		ctx, stop := timeout(timeoutMS)
		defer stop()
		n := 0
		ended, e := s.next(ctx, int64(room), func(d flow.Delta) {
			change := &unsafe.Slice(out, int(room))[n]
			b := newDelta(d, s.loan.owners)
			b.describe(&change.info)
			change.batch = handles.open(b)
			n++
		})
		*taken = C.int64_t(n)
		switch {
		case ended:
			*state = stateEnd
		case n > 0:
			*state = stateBatch
		}
		return e
	})
}

// next takes changes, at most room of them: the first that comes while ctx lives, and with it those that are there already.
func (s *subscription) next(ctx context.Context, room int64, take func(flow.Delta)) (ended bool, err error) {
	if room < 1 { // before a change is taken: it would be lost
		return false, errs.New(errs.Usage, "subscription", "there is room for %d changes, and has to be for one", room)
	}
	d, ready := s.engine.Poll()
	if !ready {
		switch d, err = s.engine.Next(ctx); {
		case errors.Is(err, io.EOF):
			return true, nil
		case err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()):
			return false, nil
		case err != nil:
			return false, err
		}
	}
	for take(d); room > 1; room-- {
		if d, ready = s.engine.Poll(); !ready {
			break
		}
		take(d)
	}
	return false, nil
}

func timeout(ms C.int64_t) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), time.Duration(ms)*time.Millisecond)
}

// rb_subscription_metrics answers the run's metrics as a JSON object.
//
//export rb_subscription_metrics
func rb_subscription_metrics(h C.rb_handle, out *C.rb_text, err *C.rb_text) C.int32_t {
	return guard("metrics", err, func() error {
		s, e := get[*subscription](h)
		if e != nil {
			return e
		}
		return setJSON(out, s.engine.Metrics())
	})
}
