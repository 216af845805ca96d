package riverbed

import (
	"context"
	"sync"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
)

// Pipeline is a query and where its output goes. It is checked when it is made and runs when started.
type Pipeline struct {
	q    *Query
	spec SinkSpec
}

// Sink makes a pipeline.
func (q *Query) Sink(spec SinkSpec) (*Pipeline, error) {
	if q.bound == nil {
		return nil, errs.New(errs.Usage, "sink", "this statement has run already; only a SELECT can be sent to a sink")
	}
	if spec.ExactlyOnce {
		return nil, errs.New(errs.ExactlyOnce, "sink", "exactly_once needs durable checkpoints, which are not part of this version").
			WithHint("leave out exactly_once: after a restart a pipeline reads again from its sources' start")
	}
	if spec.Func == nil {
		if _, _, err := parseSink(spec.ConnectorSpec); err != nil {
			return nil, err
		}
	}
	return &Pipeline{q, spec}, nil
}

// Pipeline returns the pipeline of an INSERT INTO sink SELECT over live input.
func (q *Query) AsPipeline() (*Pipeline, error) {
	if q.sink == nil {
		return nil, errs.New(errs.Usage, "run", "the statement is not an INSERT INTO a sink")
	}
	return q.Sink(*q.sink)
}

// Handle is a pipeline that runs.
type Handle struct {
	s    *Session
	run  *runner
	once sync.Once
}

// Start runs the pipeline. until is "" or "latest".
func (p *Pipeline) Start(ctx context.Context, until string) (*Handle, error) {
	s := p.q.s
	queue := make(chan flow.Delta, sinkDepth)
	failed := make(chan error, 1)
	drained := make(chan struct{})
	r, err := p.q.newRunner(ctx, until, func(ctx context.Context, d flow.Delta) error {
		select {
		case queue <- d:
			return nil
		case err := <-failed:
			failed <- err
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	if err != nil {
		return nil, err
	}
	// The sink outlives the run's context, which ends with the last step: what was taken is still written. It is
	// abandoned when the run failed, or was cancelled while the sink opened.
	sinkCtx, abandon := context.WithCancel(context.WithoutCancel(r.ctx))
	opened := context.AfterFunc(r.ctx, abandon)
	write, closeSink, err := p.open(sinkCtx, r)
	opened()
	if err != nil {
		abandon()
		r.cancel()
		r.closeReaders()
		return nil, err
	}
	h := &Handle{s: s, run: r}
	r.finish = func(runErr error) error { // after the last step: write what waits, make it visible
		defer abandon()
		if runErr != nil {
			abandon()
		}
		close(queue)
		<-drained
		select {
		case err := <-failed: // it ended the run
			runErr = err
		default:
		}
		if err := closeSink(runErr == nil); err != nil && runErr == nil {
			runErr = err
		}
		return runErr
	}
	go func() {
		defer close(drained)
		broken := false
		for d := range queue {
			if broken {
				continue
			}
			if err := guarded(func() error { return write(d) }); err != nil {
				broken = true
				failed <- err
				r.cancel() // nothing may come that would notice
			}
		}
	}()
	s.track(h)
	r.start(func() { s.untrack(h) })
	return h, nil
}

// Wait waits for the end of the pipeline and returns its error.
func (h *Handle) Wait(ctx context.Context) error { return h.run.wait(ctx) }

// Stop finishes the running step and ends. With drain the input ends too, so that open windows close.
func (h *Handle) Stop(drain bool) error {
	h.run.stop(drain)
	return h.run.wait(context.Background())
}

// Close is Stop without drain, for Session.Close.
func (h *Handle) Close() error { return h.Stop(false) }

// Metrics tells how the run goes.
func (h *Handle) Metrics() Metrics { return h.run.metrics() }
