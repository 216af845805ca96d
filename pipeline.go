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
	p := &Pipeline{q, spec}
	if spec.Func == nil {
		if _, _, err := parseSink(spec.ConnectorSpec); err != nil {
			return nil, err
		}
	}
	if spec.ExactlyOnce {
		if err := p.checkExactlyOnce(); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// AsPipeline returns the pipeline of an INSERT INTO sink SELECT over live input.
func (q *Query) AsPipeline(exactlyOnce bool) (*Pipeline, error) {
	if q.sink == nil {
		return nil, errs.New(errs.Usage, "run", "the statement is not an INSERT INTO a sink")
	}
	spec := *q.sink
	spec.ExactlyOnce = exactlyOnce
	return q.Sink(spec)
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
	r, err := p.prepare(ctx, until, w)
	if err != nil {
		return nil, err
	}
	h := &Handle{run: r}
	if !s.runs.add(h) {
		r.cancel()
		_ = r.durable.close()
		_ = w.sink.close()
		_ = r.graph.Close()
		return nil, s.usable()
	}
	w.ctx, r.abandon = context.WithCancelCause(r.patience.In(ctx))
	r.finish = func(err error) error { return w.abandoned(w.finish(err)) }
	if r.durable != nil {
		r.finish = func(err error) error {
			r.durable.fail() // it needs the sink and the lease
			err = w.abandoned(w.finish(err))
			if e := r.durable.close(); e != nil {
				r.warned(e) // what was to be written is; the lease goes stale by itself
			}
			return err
		}
	}
	go w.work(r.cancel)
	r.start(func() {
		s.runs.remove(h)
		s.endKept(r.name, r.durable != nil)
	})
	return h, nil
}

// prepare makes the run and opens its sink. Where there is a checkpoint_url it takes up what the newest checkpoint holds.
func (p *Pipeline) prepare(ctx context.Context, until string, w *sinkWriter) (*runner, error) {
	isDurable := p.q.s.cfg.Load().checkpointURL != ""
	var name string
	if isDurable {
		id, err := p.id()
		if err != nil {
			return nil, err
		}
		name = id
	} else {
		name = p.q.s.runs.name("pipeline")
	}
	r, err := p.q.newRunner(ctx, runOptions{name: name, until: until, deliver: w.put, durable: isDurable, patient: true})
	if err != nil {
		return nil, err
	}
	if isDurable {
		if r.durable, err = p.newDurable(ctx, r, w, name); err != nil {
			r.cancel()
			_ = r.graph.Close()
			return nil, err
		}
	}
	err = guarded(func() (err error) { // a panic must not leave the lease taken
		if w.sink, err = p.open(w.ctx, r, name); err == nil && isDurable {
			if c, ok := w.sink.(*connectorSink); ok {
				err = r.durable.attach(ctx, c)
			}
		}
		if err == nil {
			err = r.durable.goesOn()
		}
		if err == nil && isDurable {
			r.durable.store.Tend()
		}
		return err
	})
	if err != nil {
		r.cancel()
		if w.sink != nil {
			_ = w.sink.close()
		}
		_ = r.durable.close()
		_ = r.graph.Close()
		return nil, err
	}
	return r, nil
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
