package exec

import (
	"context"
	"io"
	"sync/atomic"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/plan"
)

// emptyMorsel has no rows; it tells a merge by Seq how far its worker is.
func emptyMorsel(s *arrow.Schema, seq int64) *flow.Morsel {
	cols := make([]arrow.Array, s.NumFields())
	for i, f := range s.Fields() {
		cols[i] = kernels.Nulls(f.Type, 0)
	}
	return morsel(s, seq, cols, 0)
}

// queueDepth is how many morsels a worker may run ahead of the reader.
const queueDepth = 4

// Result is a running query. It is pulled batch by batch, in scan order where the plan has no order of its own.
// It is an array.RecordReader.
type Result struct {
	refs   atomic.Int64
	schema *arrow.Schema
	op     Operator
	ctx    context.Context
	cancel context.CancelFunc
	queues []chan *flow.Morsel // one per worker, in rising Seq
	heads  []*flow.Morsel
	came   chan struct{} // some queue has more, or has ended
	loose  bool          // what comes of parts is taken in any order
	failed chan error
	cur    arrow.RecordBatch
	err    error
	onEnd  func()
	ended  bool
}

// Run starts a plan. onEnd, when not nil, is called once when the result is exhausted, failed or released.
func Run(ctx context.Context, n plan.Node, env *Env, onEnd func()) (*Result, error) {
	workers := env.Workers
	if stopsEarly(n) {
		workers = 1
	}
	op, err := Build(n, withShared(env, n), workers)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	r := &Result{schema: op.Schema(), op: op, ctx: ctx, cancel: cancel, failed: make(chan error, workers), onEnd: onEnd, came: make(chan struct{}, 1), loose: ofGroups(n),
		queues: make([]chan *flow.Morsel, workers), heads: make([]*flow.Morsel, workers)}
	r.refs.Store(1)
	for w := range r.queues {
		r.queues[w] = make(chan *flow.Morsel, queueDepth)
		go r.work(w)
	}
	return r, nil
}

// stopsEarly reports whether the top of the plan is a LIMIT without order: then one worker reads in scan order and stops.
func stopsEarly(n plan.Node) bool {
	for {
		switch m := n.(type) {
		case *plan.Limit:
			return true
		case *plan.Project:
			n = m.Input
		default:
			return false
		}
	}
}

// ofGroups reports whether the rows are groups: those of parts have no order, and no worker need wait for another's.
func ofGroups(n plan.Node) bool {
	for {
		switch m := n.(type) {
		case *plan.Aggregate, *plan.Distinct:
			return true
		case *plan.Project:
			n = m.Input
		case *plan.Filter:
			n = m.Input
		default:
			return false
		}
	}
}

func (r *Result) work(w int) {
	defer r.arrived()
	defer close(r.queues[w])
	err := guard(func() error {
		for {
			m, err := r.op.Next(r.ctx, w)
			if err != nil || m == nil {
				return err
			}
			select {
			case r.queues[w] <- m:
				r.arrived()
			case <-r.ctx.Done():
				return nil
			}
		}
	})
	if err != nil {
		r.failed <- err
		r.cancel()
	}
}

func (r *Result) arrived() {
	select {
	case r.came <- struct{}{}:
	default:
	}
}

// pull merges the workers' queues by Seq.
func (r *Result) pull() (arrow.RecordBatch, error) {
	w, ok := r.choose()
	for !ok {
		<-r.came
		w, ok = r.choose()
	}
	select {
	case err := <-r.failed:
		return nil, err
	default:
	}
	if w < 0 {
		return nil, io.EOF
	}
	b := r.heads[w].Batch
	r.heads[w] = nil
	return b, nil
}

// choose tells whose morsel comes next, -1 at the end, and drops those without rows. It is not ok as long as that is open.
func (r *Result) choose() (best int, ok bool) {
	for {
		best, waits := -1, false
		for w, q := range r.queues {
			if r.heads[w] == nil && q != nil {
				select {
				case m, open := <-q:
					r.take(w, m, open)
				default:
					waits = true
				}
			}
			if h := r.heads[w]; h != nil && (best < 0 || h.Seq < r.heads[best].Seq) {
				best = w
			}
		}
		if waits && (best < 0 || !r.loose || r.heads[best].Seq < partedSeq) {
			return -1, false
		}
		if best < 0 || r.heads[best].Batch.NumRows() > 0 {
			return best, true
		}
		r.heads[best] = nil
	}
}

// Ready waits at most so long until Next would not wait.
func (r *Result) Ready(atMost time.Duration) bool {
	var over <-chan time.Time
	for {
		if _, ok := r.choose(); ok || r.ended {
			return true
		}
		if over == nil {
			over = wall.After(atMost)
		}
		select {
		case <-r.came:
		case <-over:
			return false
		}
	}
}

// take books what came from a worker's queue.
func (r *Result) take(w int, m *flow.Morsel, ok bool) {
	if r.heads[w] = m; !ok {
		r.queues[w] = nil
	}
}

// Schema is the schema of every batch.
func (r *Result) Schema() *arrow.Schema { return r.schema }

// Next moves to the next batch.
func (r *Result) Next() bool {
	if r.ended {
		return false
	}
	b, err := r.pull()
	if err != nil {
		r.cur = nil
		if err != io.EOF {
			r.err = err
		}
		r.end()
		return false
	}
	r.cur = b
	return true
}

func (r *Result) RecordBatch() arrow.RecordBatch { return r.cur }

// Record is the older name of RecordBatch in array.RecordReader.
func (r *Result) Record() arrow.RecordBatch { return r.cur }
func (r *Result) Err() error                { return r.err }
func (r *Result) Retain()                   { r.refs.Add(1) }

// Release stops the query when nobody reads it any more.
func (r *Result) Release() {
	if r.refs.Add(-1) == 0 {
		r.end()
	}
}

func (r *Result) end() {
	if r.ended {
		return
	}
	r.ended = true
	r.cancel()
	for _, q := range r.queues { // let blocked workers leave before their operators close
		for q != nil {
			if _, ok := <-q; !ok {
				break
			}
		}
	}
	if err := r.op.Close(); err != nil && r.err == nil {
		r.err = err
	}
	if r.onEnd != nil {
		r.onEnd()
	}
}

// Cancel stops the query; Next then reports it.
func (r *Result) Cancel() { r.cancel() }
