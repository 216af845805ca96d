package main

// #include "riverbed.h"
import "C"

import (
	"context"
	"errors"
	"sync"

	"github.com/riverbed/riverbed"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
)

// starter is what a pipeline needs of a riverbed.Pipeline.
type starter interface {
	Check(ctx context.Context) error
	Start(ctx context.Context, until string) (*riverbed.Handle, error)
}

// pipeline is a query with a sink, and its run once it was started.
type pipeline struct {
	engine starter
	query  *query
	loan   *loan

	mu     sync.Mutex
	run    *riverbed.Handle
	end    context.CancelFunc
	closed bool
}

func (*pipeline) closeWaits() {}

func (*pipeline) kind() string { return "pipeline" }

func (p *pipeline) cancel() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.end != nil {
		p.end()
	}
}

// close ends the run. A run that is still starting is cancelled and ended by start, which holds the loan until then.
func (p *pipeline) close() error {
	p.mu.Lock()
	run, end, closed := p.run, p.end, p.closed
	p.closed = true
	p.mu.Unlock()
	if closed {
		return nil
	}
	var err error
	if run != nil {
		err = run.Close() // returns when the run has ended
	}
	if end != nil {
		end()
	}
	p.loan.release()
	return err
}

// start runs the pipeline; it waits for sources and sink to open.
func (p *pipeline) start(until string) error {
	ctx, end, err := p.begin()
	if err != nil {
		return err
	}
	defer p.loan.release()
	run, err := p.engine.Start(ctx, until)
	p.mu.Lock()
	closed := p.closed
	switch {
	case err != nil:
		p.end = nil
	case !closed:
		p.run = run
	}
	p.mu.Unlock()
	switch {
	case err != nil:
		end()
	case closed: // close found no run to end
		err = run.Close()
		end()
		if err == nil {
			err = errs.New(errs.Cancelled, "run", "the pipeline was closed while it started")
		}
	}
	return err
}

// begin claims the one start of a pipeline, and the loan for its time.
func (p *pipeline) begin() (ctx context.Context, end context.CancelFunc, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed || !p.loan.retain():
		return nil, nil, errs.New(errs.Usage, "run", "the pipeline is closed")
	case p.end != nil:
		p.loan.release()
		return nil, nil, errs.New(errs.Usage, "run", "the pipeline was started already").WithHint("make a new one with sink(...)")
	}
	ctx, p.end = p.query.runs.begin(context.Background()) // lives as long as the run
	return ctx, p.end, nil
}

// started returns the run.
func (p *pipeline) started() (*riverbed.Handle, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.run == nil {
		return nil, errs.New(errs.Usage, "pipeline", "the pipeline was not started").WithHint("call run() first")
	}
	return p.run, nil
}

// sinkSpec is the JSON of rb_query_sink.
type sinkSpec struct {
	riverbed.ConnectorSpec
	ID          string `json:"id"`
	ExactlyOnce bool   `json:"exactly_once"`
}

// rb_query_sink makes a pipeline of a query and a sink: a connector, or fn where that is not NULL. A spec without a connector takes
// the sink that the statement itself names (INSERT INTO sink SELECT …).
//
//export rb_query_sink
func rb_query_sink(h C.rb_handle, spec C.rb_chars, n C.int64_t, fn C.rb_sink_fn, hostContext C.uint64_t, out *C.rb_handle, err *C.rb_text) C.int32_t {
	return guard("sink", err, func() error {
		q, e := get[*query](h)
		if e != nil {
			return e
		}
		var made *riverbed.Pipeline
		var s sinkSpec
		if e := fromJSON("sink", spec, n, &s); e != nil {
			return e
		}
		if s.Connector == "" && fn == nil {
			made, e = q.engine.AsPipeline(s.ExactlyOnce)
		} else {
			to := riverbed.SinkSpec{ConnectorSpec: s.ConnectorSpec, ID: s.ID, ExactlyOnce: s.ExactlyOnce}
			if fn != nil {
				owners := q.loan.owners
				to.Func = func(_ context.Context, d flow.Delta) error { return callSink(fn, hostContext, d, owners) }
			}
			made, e = q.engine.Sink(to)
		}
		if e != nil {
			return e
		}
		held, e := q.hold()
		if e != nil {
			return e
		}
		*out = handles.open(&pipeline{engine: made, query: q, loan: held})
		return nil
	})
}

// rb_pipeline_check refuses what rb_pipeline_start would refuse of the pipeline's checkpoints or savepoint. It takes and changes nothing; rb_cancel of
// the query ends it.
//
//export rb_pipeline_check
func rb_pipeline_check(h C.rb_handle, err *C.rb_text) C.int32_t {
	return guard("run", err, func() error {
		p, e := get[*pipeline](h)
		if e != nil {
			return e
		}
		if !p.loan.retain() {
			return errs.New(errs.Usage, "run", "the pipeline is closed")
		}
		defer p.loan.release()
		ctx, end := p.query.runs.begin(context.Background())
		defer end()
		return p.engine.Check(ctx)
	})
}

// rb_pipeline_start starts the run; it waits for sources and sink to open. until is "" or "latest".
//
//export rb_pipeline_start
func rb_pipeline_start(h C.rb_handle, until C.rb_chars, n C.int64_t, err *C.rb_text) C.int32_t {
	return guard("run", err, func() error {
		p, e := get[*pipeline](h)
		if e != nil {
			return e
		}
		return p.start(text(until, n))
	})
}

// rb_pipeline_wait waits at most so long for the end, and returns the error that the run ended with.
//
//export rb_pipeline_wait
func rb_pipeline_wait(h C.rb_handle, timeoutMS C.int64_t, ended *C.int32_t, err *C.rb_text) C.int32_t {
	return guard("wait", err, func() error {
		*ended = 0
		p, e := get[*pipeline](h)
		if e != nil {
			return e
		}
		run, e := p.started()
		if e != nil {
			return e
		}
		ctx, stop := timeout(timeoutMS)
		defer stop()
		e = run.Wait(ctx)
		if e != nil && ctx.Err() != nil && errors.Is(e, ctx.Err()) {
			return nil
		}
		*ended = 1
		return e
	})
}

// rb_pipeline_stop finishes the running step and ends the run, and waits for it; with drain its input ends instead.
// Stopping what was not started, or has ended, is fine.
//
//export rb_pipeline_stop
func rb_pipeline_stop(h C.rb_handle, drain C.int32_t, err *C.rb_text) C.int32_t {
	return guard("stop", err, func() error {
		p, e := get[*pipeline](h)
		if e != nil {
			return e
		}
		if run, e := p.started(); e == nil {
			return run.Stop(drain != 0)
		}
		return nil
	})
}

// rb_pipeline_metrics answers the run's metrics as a JSON object.
//
//export rb_pipeline_metrics
func rb_pipeline_metrics(h C.rb_handle, out *C.rb_text, err *C.rb_text) C.int32_t {
	return guard("metrics", err, func() error {
		p, e := get[*pipeline](h)
		if e != nil {
			return e
		}
		run, e := p.started()
		if e != nil {
			return e
		}
		return setJSON(out, run.Metrics())
	})
}
