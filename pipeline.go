package riverbed

import (
	"context"
	"io"
	"sync"
	"time"

	"github.com/riverbed/riverbed/connectors"
	"github.com/riverbed/riverbed/connectors/all"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/sql"
	"github.com/riverbed/riverbed/core/types"
)

// Subscription is an incremental run whose deltas the caller reads. The queue is bounded: a slow reader blocks the run.
type Subscription struct {
	s    *Session
	run  *runner
	out  chan flow.Delta
	once sync.Once
}

// Subscribe starts the query incrementally.
func (q *Query) Subscribe(ctx context.Context, o SubscribeOptions) (*Subscription, error) {
	if q.bound == nil {
		return nil, errs.New(errs.Usage, "subscribe", "this statement has run already; only a SELECT can be subscribed to")
	}
	if o.QueueSize <= 0 {
		o.QueueSize = 64
	}
	sub := &Subscription{s: q.s, out: make(chan flow.Delta, o.QueueSize)}
	r, err := q.newRunner(ctx, o.Until, func(ctx context.Context, d flow.Delta) error {
		if d.Batch == nil {
			return nil
		}
		select {
		case sub.out <- d:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	if err != nil {
		return nil, err
	}
	sub.run = r
	q.s.track(sub)
	r.start(func() { close(sub.out) })
	return sub, nil
}

// Fields are the columns of the deltas, without the weight.
func (s *Subscription) Fields() []types.Field { return s.run.fields }

// Next waits for the next delta; io.EOF after the last one. Ending ctx ends the wait, not the run.
func (s *Subscription) Next(ctx context.Context) (flow.Delta, error) {
	select {
	case d, ok := <-s.out:
		if ok {
			return d, nil
		}
		if err := s.run.wait(ctx); err != nil {
			return flow.Delta{}, err
		}
		return flow.Delta{}, io.EOF
	case <-ctx.Done():
		return flow.Delta{}, ctx.Err()
	}
}

// Metrics tells how the run goes.
func (s *Subscription) Metrics() Metrics { return s.run.metrics() }

// Close stops the run.
func (s *Subscription) Close() error {
	s.once.Do(func() {
		s.run.cancel()
		for range s.out { // let a blocked step finish
		}
		_ = s.run.wait(context.Background())
		s.s.untrack(s)
	})
	return nil
}

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

func parseSink(spec ConnectorSpec) (*connectors.Sink, connectors.Settings, error) {
	k := all.Sink(spec.Connector)
	if k == nil {
		return nil, connectors.Settings{}, unknownConnector(spec.Connector, sinkNames())
	}
	set, err := k.Options.Parse("sink '"+k.Name+"'", spec.Options)
	return k, set, err
}

// Handle is a pipeline that runs.
type Handle struct {
	s    *Session
	run  *runner
	once sync.Once
}

// flushEvery is how often a sink without checkpoints makes what it took visible.
const flushEvery = time.Second

// sinkDepth is how many deltas may wait for the sink, which encodes behind the running steps.
const sinkDepth = 16

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
	write, closeSink, err := p.open(r.ctx, r)
	if err != nil {
		r.cancel()
		r.closeReaders()
		return nil, err
	}
	h := &Handle{s: s, run: r}
	r.finish = func(runErr error) error { // after the last step: write what waits, make it visible
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

// open opens the sink; write takes deltas, shut flushes and closes it.
func (p *Pipeline) open(ctx context.Context, r *runner) (write func(flow.Delta) error, shut func(ok bool) error, err error) {
	if p.spec.Func != nil {
		return func(d flow.Delta) error {
			if d.Batch == nil || d.Rows() == 0 {
				return nil
			}
			return p.spec.Func(ctx, d)
		}, func(bool) error { return nil }, nil
	}
	k, set, err := parseSink(p.spec.ConnectorSpec)
	if err != nil {
		return nil, nil, err
	}
	updating := r.updating
	w, err := k.Open(ctx, connectors.SinkRequest{Name: k.Name, Settings: set, Fields: r.fields, Updating: updating, Pipeline: "pipeline", Clock: p.q.s.clock})
	if err != nil {
		return nil, nil, err
	}
	last := p.q.s.clock.Now()
	epoch := flow.Epoch(0)
	stage := func(ctx context.Context) error {
		epoch++
		_, err := w.Stage(ctx, epoch)
		return err
	}
	write = func(d flow.Delta) error {
		if d.Batch != nil && d.Rows() > 0 {
			if err := w.Write(ctx, d); err != nil {
				return err
			}
		}
		if now := p.q.s.clock.Now(); now.Sub(last) >= flushEvery {
			last = now
			return stage(ctx)
		}
		return nil
	}
	shut = func(ok bool) error {
		var err error
		if ok {
			// The run's context may have ended (stop); what was taken is still made visible.
			err = stage(context.WithoutCancel(ctx))
		}
		if e := w.Close(); err == nil {
			err = e
		}
		return err
	}
	return write, shut, nil
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

// insertIntoSink runs INSERT INTO sink SELECT: at once over bounded input, otherwise as a pipeline that the caller starts.
func (s *Session) insertIntoSink(ctx context.Context, cat *scopeCatalog, e *entry, st *sql.Insert, text string) (*Query, error) {
	if st.Query == nil {
		return nil, errs.E(errs.Schema, "bind", st.Position(), "INSERT INTO a sink needs a query")
	}
	q, err := s.planQuery(ctx, cat, st.Query, text)
	if err != nil {
		return nil, err
	}
	if want := e.sink.columns; len(want) > 0 {
		if len(want) != len(q.columns) {
			return nil, errs.E(errs.Schema, "bind", st.Position(), "sink %q has %d columns, but the query has %d", e.name, len(want), len(q.columns))
		}
		for i := range want {
			if !want[i].Type.Equal(q.columns[i].Type) {
				return nil, errs.E(errs.Schema, "bind", st.Position(), "column %q of sink %q is %s, but the query gives %s", want[i].Name, e.name, want[i].Type, q.columns[i].Type).
					WithHint("cast it in the query")
			}
		}
		q.columns = want
	}
	q.sink = &SinkSpec{ConnectorSpec: e.sink.spec}
	if q.Live() {
		return q, nil
	}
	n, err := q.writeBatch(ctx, e.sink.spec)
	if err != nil {
		return nil, err
	}
	return countResult(n), nil
}

// writeBatch runs the query as batch into a sink and makes the rows visible.
func (q *Query) writeBatch(ctx context.Context, spec ConnectorSpec) (int64, error) {
	k, set, err := parseSink(spec)
	if err != nil {
		return 0, err
	}
	res, err := q.Run(ctx)
	if err != nil {
		return 0, err
	}
	defer res.Release()
	w, err := k.Open(ctx, connectors.SinkRequest{Name: k.Name, Settings: set, Fields: q.columns, Pipeline: "batch", Clock: q.s.clock})
	if err != nil {
		return 0, err
	}
	rows := int64(0)
	for res.Next() {
		b := res.RecordBatch()
		rows += b.NumRows()
		if err := w.Write(ctx, flow.Delta{Batch: b, Step: 1, Watermark: flow.NoWatermark}); err != nil {
			_ = w.Close()
			return rows, err
		}
	}
	if err := res.Err(); err != nil {
		_ = w.Close()
		return rows, err
	}
	if _, err := w.Stage(ctx, 1); err != nil {
		_ = w.Close()
		return rows, err
	}
	return rows, w.Close()
}

// streamOf returns the stream that a run reads of a live source.
func streamOf(ctx context.Context, src *plan.Source, until string) (flow.Stream, error) {
	switch until {
	case "":
		return src.Stream, nil
	case "latest":
		if src.Stream.Bounded() {
			return src.Stream, nil
		}
		l, ok := src.Stream.(flow.LatestStream)
		if !ok {
			return nil, errs.New(errs.Usage, "subscribe", "the stream %q has no present end, so until='latest' is not possible", src.Name)
		}
		return l.UntilLatest(ctx)
	}
	return nil, errs.New(errs.Usage, "subscribe", "until must be empty or 'latest', not %q", until)
}
