// Package host is the seam to connectors that are declared here and live in the program around the library, in its language: what they
// stand on (gRPC, Lance) is there already, or is installed with it, and would double the library.
//
// Invariant: the declaration is ours (options, types, capability), the object is the host's; a call that waits ends when its context does, and an
// object is closed once.
//
// A call is a JSON object and, with some, rows; so is its answer. What an object is asked:
//
//	source   describe → Description, rows: none, of its schema. At once closed
//	reader   next → Next, rows
//	sink     write(rows) → Room; flush; stage → Staged; begin → Held; commit
//
// and of each: open, cancel (from another thread, so that a call that waits returns), close.
package host

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/clock"
	"github.com/riverbed/riverbed/core/errs"
)

// Call runs one call in the host: a request and its answer are JSON, and either may come with rows. Rows of the answer are the
// engine's own, in its forms. An error is an *errs.Error.
type Call func(request []byte, rows arrow.RecordBatch) (answer []byte, out arrow.RecordBatch, err error)

var program atomic.Pointer[Call]

// Register names the host of this process.
func Register(c Call) { program.Store(&c) }

// Registered is the host of this process, nil where there is none; for tests.
func Registered() Call {
	if c := program.Load(); c != nil {
		return *c
	}
	return nil
}

// object is something that the host has opened.
type object struct {
	connector string
	number    int64
}

var numbers atomic.Int64

type request struct {
	Connector string `json:"connector"`
	Object    int64  `json:"object"`
	Call      string `json:"call"`
	With      any    `json:"with,omitempty"`
}

// open makes an object of a connector. answer may be nil.
func open(ctx context.Context, connector, call string, with any, rows arrow.RecordBatch, answer any) (*object, arrow.RecordBatch, error) {
	o := &object{connector, numbers.Add(1)}
	out, err := o.call(ctx, call, with, rows, answer)
	if err != nil {
		o.close() // it may have been made, and the answer lost on us
		return nil, nil, err
	}
	return o, out, nil
}

// call asks the object. A context that ends cancels it in the host, which then returns.
func (o *object) call(ctx context.Context, call string, with any, rows arrow.RecordBatch, answer any) (arrow.RecordBatch, error) {
	run := Registered()
	if run == nil {
		return nil, errs.New(errs.Unsupported, "open", "the connector %q lives in the Python package, and this program has no Python", o.connector).
			WithHint("use it from Python, or from the command line: riverbed run")
	}
	if ctx.Err() != nil {
		return nil, cancelled(ctx)
	}
	text, err := json.Marshal(request{o.connector, o.number, call, with})
	if err != nil {
		return nil, errs.Bug("host", "%s of %s: %w", call, o.connector, err)
	}
	stop := context.AfterFunc(ctx, func() { o.tell(run, "cancel") })
	said, out, err := run(text, rows)
	stop()
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, cancelled(ctx)
	case err != nil:
		return nil, err
	case answer == nil:
		return out, nil
	}
	if err := json.Unmarshal(said, answer); err != nil {
		return nil, errs.Bug("host", "the answer of %s to %s is not understood: %w", o.connector, call, err)
	}
	return out, nil
}

// close gives the object back. What the host says to that is nobody's business any more.
func (o *object) close() {
	if run := Registered(); run != nil {
		o.tell(run, "close")
	}
}

func (o *object) tell(run Call, call string) {
	if text, err := json.Marshal(request{o.connector, o.number, call, nil}); err == nil {
		_, _, _ = run(text, nil)
	}
}

func cancelled(ctx context.Context) error {
	return errs.New(errs.Cancelled, "host", "the call was cancelled: %w", context.Cause(ctx))
}

// A call that fails transiently is made so often, the first time included; in a run, which is patient, for as long as that has patience.
const (
	attempts    = 5
	firstWait   = 100 * time.Millisecond
	longestWait = 5 * time.Second
)

// again runs f until it works, with growing pauses.
func again(ctx context.Context, c clock.Clock, f func() error) error {
	retry := clock.Retry{Clock: c, Attempts: attempts, First: firstWait, Longest: longestWait}
	defer retry.Done()
	for {
		err := f()
		if err == nil || !errs.As(err).Transient || ctx.Err() != nil {
			return err
		}
		if retry.Again(ctx, err) {
			continue
		}
		if ctx.Err() != nil {
			return cancelled(ctx)
		}
		e := *errs.As(err)
		e.Msg = fmt.Sprintf("%s (tried %d times)", e.Msg, retry.Failures())
		return &e
	}
}
