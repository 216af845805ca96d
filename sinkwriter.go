package riverbed

import (
	"context"
	"slices"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/connectors"
	"github.com/riverbed/riverbed/core/clock"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/types"
	"github.com/riverbed/riverbed/incremental"
)

// flushEvery is how often a sink without checkpoints makes what it took visible.
const flushEvery = time.Second

// sinkDepth is how many deltas may wait for the sink, which encodes behind the running steps.
const sinkDepth = 16

// sink takes a pipeline's deltas.
type sink interface {
	write(ctx context.Context, d flow.Delta) error
	flush(ctx context.Context) error // makes what was written visible, unless that waits for a commit
	// stage ends an epoch: what was written is ready to be committed, or is visible.
	stage(ctx context.Context, epoch flow.Epoch) (staged, error)
	close() error // drops what was not
}

// staged is what a commit needs.
type staged struct {
	committable connectors.Committable
	rows        []arrow.RecordBatch
}

// sunk is what waits for the sink: a step's delta, or the end of an epoch.
type sunk struct {
	delta  flow.Delta
	epoch  flow.Epoch
	staged chan<- staged // of a barrier
}

// sinkWriter writes behind the running steps. Its context is the caller's, not the run's: what the last step showed is
// written after the run has ended.
type sinkWriter struct {
	ctx     context.Context
	clock   clock.Clock
	sink    sink
	queue   chan sunk
	drained chan struct{} // closed when the queue is and all of it was written
	broken  chan struct{} // closed when the sink has failed
	err     error         // once broken is closed
}

func newSinkWriter(ctx context.Context, c clock.Clock) *sinkWriter {
	return &sinkWriter{ctx: ctx, clock: c, queue: make(chan sunk, sinkDepth), drained: make(chan struct{}), broken: make(chan struct{})}
}

// put queues a step's delta.
func (w *sinkWriter) put(ctx context.Context, d flow.Delta) error {
	if d.Rows() == 0 && !w.forwards() {
		return nil
	}
	return w.send(ctx, sunk{delta: d})
}

// forwards reports whether the sink is told of watermarks that come without rows.
func (w *sinkWriter) forwards() bool {
	c, ok := w.sink.(*connectorSink)
	if !ok || c.held {
		return false
	}
	to, ok := c.w.(connectors.Forwarder)
	return ok && to.Forwards()
}

// barrier queues the end of an epoch behind its deltas. What the sink staged comes through the channel.
func (w *sinkWriter) barrier(ctx context.Context, epoch flow.Epoch, to chan<- staged) error {
	return w.send(ctx, sunk{epoch: epoch, staged: to})
}

// awaitStaged waits for what the sink staged.
func (w *sinkWriter) awaitStaged(ctx context.Context, from <-chan staged) (staged, error) {
	select {
	case st := <-from:
		return st, nil
	case <-w.broken:
		return staged{}, w.err
	case <-ctx.Done():
		return staged{}, cancelled(ctx)
	}
}

func (w *sinkWriter) send(ctx context.Context, s sunk) error {
	select {
	case w.queue <- s:
		return nil
	case <-w.broken:
		return w.err
	case <-ctx.Done():
		return cancelled(ctx)
	}
}

// work writes what is queued. A sink that fails ends the run, even when no delta comes that would notice.
func (w *sinkWriter) work(endRun func()) {
	defer close(w.drained)
	if w.err = guarded(w.writeAll); w.err == nil {
		return
	}
	close(w.broken)
	endRun()
	for range w.queue { // let the last step leave
	}
}

func (w *sinkWriter) writeAll() error {
	var due <-chan time.Time // when what was written is to become visible; nil: all is
	for {
		select {
		case s, more := <-w.queue:
			if !more {
				return nil
			}
			if s.staged != nil {
				st, err := w.sink.stage(w.ctx, s.epoch)
				if err != nil {
					return err
				}
				s.staged <- st
				due = nil
				continue
			}
			if err := w.sink.write(w.ctx, s.delta); err != nil {
				return err
			}
			if due == nil {
				due = w.clock.After(flushEvery)
			}
		case <-due:
			due = nil
			if err := w.sink.flush(w.ctx); err != nil {
				return err
			}
		}
	}
}

// finish comes after the last step: it writes what waits and makes it visible, unless the run or the sink has failed.
func (w *sinkWriter) finish(runErr error) error {
	close(w.queue)
	<-w.drained
	err := runErr
	if w.err != nil { // it ended the run
		err = w.err
	}
	if err == nil {
		err = guarded(func() error { return w.sink.flush(w.ctx) })
	}
	if e := guarded(w.sink.close); err == nil {
		err = e
	}
	return err
}

// abandoned says so when a run was stopped and what it waited for did not come: whoever waited lost its patience, or was not listened to any more.
func (w *sinkWriter) abandoned(err error) error {
	if err == nil {
		return nil
	}
	cause := context.Cause(w.ctx)
	switch {
	case cause != nil && cause != w.ctx.Err(): // another value: somebody gave a cause
	case errs.As(err).Transient && clock.PatienceIn(w.ctx).Ending():
		cause = err
	default:
		return err
	}
	return errs.New(errs.Checkpoint, "stop", "the run was stopped while a service did not answer, so that its last rows are not in the sink: %w", cause).
		WithHint("a pipeline with checkpoints writes them when it is started again")
}

// connectorSink is a sink of a connector.
type connectorSink struct {
	w       connectors.Writer
	name    string
	fields  []types.Field
	epoch   flow.Epoch   // of a sink that is not exactly once: it has its own
	exactly bool         // rows become visible by the commit of their epoch
	held    bool         // and are kept for it
	updates bool         // rows may go
	rows    []flow.Delta // that are
}

func (s *connectorSink) write(ctx context.Context, d flow.Delta) error {
	if s.held {
		s.rows = append(s.rows, d)
		return nil
	}
	return s.w.Write(ctx, d)
}

func (s *connectorSink) flush(ctx context.Context) error {
	if s.exactly {
		return nil
	}
	s.epoch++
	_, err := s.w.Stage(ctx, s.epoch)
	return err
}

func (s *connectorSink) stage(ctx context.Context, epoch flow.Epoch) (st staged, err error) {
	switch {
	case s.held:
		st.rows = s.consolidated()
		s.rows = nil
	case s.exactly:
		st.committable, err = s.w.Stage(ctx, epoch)
	default:
		err = s.flush(ctx)
	}
	return st, err
}

// consolidated are the rows of an epoch: what came and went in it is not there. Rows that only come keep their order, as who reads a topic
// of them may take one that comes behind a later one for late.
func (s *connectorSink) consolidated() []arrow.RecordBatch {
	var out []arrow.RecordBatch
	if s.updates && slices.ContainsFunc(s.rows, flow.Delta.Weighted) {
		if b := incremental.Consolidated(s.fields, s.rows); b != nil {
			out = append(out, b)
		}
		return out
	}
	for _, d := range s.rows {
		out = append(out, d.Batch)
	}
	return out
}

func (s *connectorSink) close() error { return s.w.Close() }

// funcSink is a callback in process.
type funcSink func(ctx context.Context, d flow.Delta) error

func (f funcSink) write(ctx context.Context, d flow.Delta) error { return f(ctx, d) }
func (f funcSink) flush(context.Context) error                   { return nil }

func (f funcSink) stage(context.Context, flow.Epoch) (staged, error) { return staged{}, nil }
func (f funcSink) close() error                                      { return nil }
