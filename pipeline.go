package riverbed

import (
	"context"

	"github.com/riverbed/riverbed/core/errs"
)

// Pipeline is a query and where its output goes. It is checked when it is made and runs when started.
type Pipeline struct {
	q    *Query
	spec SinkSpec
}

// Sink makes a pipeline.
func (q *Query) Sink(spec SinkSpec) (*Pipeline, error) {
	if err := q.runnable("sink"); err != nil {
		return nil, err
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

// AsPipeline returns the pipeline of an INSERT INTO sink SELECT over live input.
func (q *Query) AsPipeline() (*Pipeline, error) {
	if q.sink == nil {
		return nil, errs.New(errs.Usage, "run", "the statement is not an INSERT INTO a sink")
	}
	return q.Sink(*q.sink)
}

// Handle is a pipeline that runs.
type Handle struct{ run *runner }

// Start runs the pipeline. until is "" or "latest".
func (p *Pipeline) Start(ctx context.Context, until string) (*Handle, error) {
	s := p.q.s
	if err := s.usable(); err != nil {
		return nil, err
	}
	w := newSinkWriter(ctx, s.clock)
	r, err := p.q.newRunner(ctx, s.runs.name("pipeline"), until, w.put)
	if err != nil {
		return nil, err
	}
	if w.sink, err = p.open(w.ctx, r); err != nil {
		r.cancel()
		return nil, err
	}
	h := &Handle{run: r}
	if !s.runs.add(h) {
		r.cancel()
		_ = w.sink.close()
		return nil, s.usable()
	}
	r.finish = w.finish
	go w.work(r.cancel)
	r.start(func() { s.runs.remove(h) })
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
