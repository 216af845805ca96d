package riverbed

import (
	"context"
	"time"

	"github.com/riverbed/riverbed/connectors"
	"github.com/riverbed/riverbed/core/clock"
	"github.com/riverbed/riverbed/core/flow"
)

// flushEvery is how often a sink without checkpoints makes what it took visible.
const flushEvery = time.Second

// sinkDepth is how many deltas may wait for the sink, which encodes behind the running steps.
const sinkDepth = 16

// sink takes a pipeline's deltas.
type sink interface {
	write(ctx context.Context, d flow.Delta) error
	flush(ctx context.Context) error // makes what was written visible
	close() error                    // drops what was not
}

// sinkWriter writes behind the running steps. Its context is the caller's, not the run's: what the last step showed is
// written after the run has ended.
type sinkWriter struct {
	ctx     context.Context
	clock   clock.Clock
	sink    sink
	queue   chan flow.Delta
	drained chan struct{} // closed when the queue is and all of it was written
	broken  chan struct{} // closed when the sink has failed
	err     error         // once broken is closed
}

func newSinkWriter(ctx context.Context, c clock.Clock) *sinkWriter {
	return &sinkWriter{ctx: ctx, clock: c, queue: make(chan flow.Delta, sinkDepth), drained: make(chan struct{}), broken: make(chan struct{})}
}

// put queues a step's delta.
func (w *sinkWriter) put(ctx context.Context, d flow.Delta) error {
	if d.Batch == nil || d.Rows() == 0 {
		return nil
	}
	select {
	case w.queue <- d:
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
		case d, more := <-w.queue:
			if !more {
				return nil
			}
			if err := w.sink.write(w.ctx, d); err != nil {
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

// connectorSink is a sink of a connector.
type connectorSink struct {
	w     connectors.Writer
	epoch flow.Epoch
}

func (s *connectorSink) write(ctx context.Context, d flow.Delta) error { return s.w.Write(ctx, d) }

func (s *connectorSink) flush(ctx context.Context) error {
	s.epoch++
	_, err := s.w.Stage(ctx, s.epoch)
	return err
}

func (s *connectorSink) close() error { return s.w.Close() }

// funcSink is a callback in process.
type funcSink func(ctx context.Context, d flow.Delta) error

func (f funcSink) write(ctx context.Context, d flow.Delta) error { return f(ctx, d) }
func (f funcSink) flush(context.Context) error                   { return nil }
func (f funcSink) close() error                                  { return nil }
