// Package memory is a stream that this process pushes into: tests, notebooks, Python's MemoryStream.
//
// Invariant: rows of a split are read in the order in which they were pushed, and a push blocks while the queue of
// its split is full.
package memory

import (
	"context"
	"io"
	"sort"
	"strconv"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/riverbed/riverbed/connectors"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/types"
)

// DefaultSplit is the split of pushes that name none.
const DefaultSplit = "0"

// Source declares a push stream.
var Source = connectors.Source{
	Name: "memory", Class: "MemoryStream", Summary: "A stream that the program pushes rows into.", NeedsSchema: true,
	Options: connectors.Options{
		{Name: "queue_rows", Type: connectors.Int, Default: "1000000", Doc: "Rows that may wait in a split before a push blocks."},
		{Name: "updating", Type: connectors.Bool, Default: "false", Doc: "Rows carry weights, so that rows can be taken back."},
	},
	Stream: func(_ context.Context, req connectors.OpenRequest) (flow.Stream, error) {
		if req.Schema == nil {
			return nil, errs.New(errs.Schema, "open", "a memory stream needs its columns declared").WithHint("give schema=")
		}
		return New(req.Schema, Options{QueueRows: int(req.Settings.Int("queue_rows")), Updating: req.Settings.Bool("updating")}), nil
	},
}

// Options of a stream.
type Options struct {
	QueueRows int  // 0 is a million
	Updating  bool // batches carry weights
}

// Stream is a push stream. All methods may be called from any goroutine.
type Stream struct {
	fields []types.Field
	schema *arrow.Schema
	opt    Options

	mu     sync.Mutex
	splits map[string]*split
	closed bool
	news   chan struct{} // closed and replaced when something happens
}

// split is the queue of one split. Rows are numbered from 0; queue[0] begins at row first.
type split struct {
	queue []queued
	rows  int   // waiting
	taken int64 // rows handed out
	total int64 // rows pushed
	idle  bool
	ended bool
	mark  flow.Watermark
}

// queued is one thing that the program said: rows, a watermark or idleness, in the order in which it said them.
type queued struct {
	batch arrow.RecordBatch // with weights if updating; nil for the others
	mark  *flow.Watermark
}

// New makes a stream with the default split.
func New(fields []types.Field, opt Options) *Stream {
	if opt.QueueRows <= 0 {
		opt.QueueRows = 1_000_000
	}
	s := &Stream{fields: fields, opt: opt, splits: map[string]*split{}, news: make(chan struct{})}
	s.schema = types.ArrowSchema(fields)
	if opt.Updating {
		s.schema = flow.WithWeights(s.schema)
	}
	s.splits[DefaultSplit] = &split{mark: flow.NoWatermark}
	return s
}

func (s *Stream) Fields() []types.Field { return s.fields }
func (s *Stream) Bounded() bool         { return false }
func (s *Stream) Updating() bool        { return s.opt.Updating }

// Replayable is false: what was read is gone.
func (s *Stream) Replayable() bool { return false }

// wake tells whoever waits; the lock is held.
func (s *Stream) wake() {
	close(s.news)
	s.news = make(chan struct{})
}

func (s *Stream) at(name string) *split {
	if name == "" {
		name = DefaultSplit
	}
	sp, ok := s.splits[name]
	if !ok {
		sp = &split{mark: flow.NoWatermark}
		s.splits[name] = sp
	}
	return sp
}

// Push queues rows; weights nil is +1 each. It waits while the split's queue is full, except for a batch that is
// larger than the queue, which waits for an empty one.
func (s *Stream) Push(ctx context.Context, name string, rows arrow.RecordBatch, weights []int64) error {
	b, err := s.shape(rows, weights)
	if err != nil || b.NumRows() == 0 {
		return err
	}
	n := int(b.NumRows())
	for {
		s.mu.Lock()
		sp := s.at(name)
		if s.closed || sp.ended {
			s.mu.Unlock()
			return errs.New(errs.Usage, "push", "the stream is closed").WithHint("push before close() or end()")
		}
		if sp.rows == 0 || sp.rows+n <= s.opt.QueueRows {
			sp.queue = append(sp.queue, queued{batch: b})
			sp.rows += n
			sp.total += int64(n)
			sp.idle = false
			s.wake()
			s.mu.Unlock()
			return nil
		}
		news := s.news
		s.mu.Unlock()
		select {
		case <-news:
		case <-ctx.Done():
			return errs.New(errs.Cancelled, "push", "the push was cancelled while the queue was full: %w", ctx.Err())
		}
	}
}

// shape checks the columns and adds the weights.
func (s *Stream) shape(rows arrow.RecordBatch, weights []int64) (arrow.RecordBatch, error) {
	if int(rows.NumCols()) != len(s.fields) {
		return nil, errs.New(errs.Schema, "push", "the rows have %d columns, the stream has %d", rows.NumCols(), len(s.fields))
	}
	for i, f := range s.fields {
		if have := rows.Column(i).DataType(); !arrow.TypeEqual(have, f.Type.Arrow()) {
			return nil, errs.New(errs.Schema, "push", "column %q is %s, the stream has %s", rows.ColumnName(i), have, f.Type)
		}
	}
	cols := rows.Columns()
	switch {
	case weights != nil && !s.opt.Updating:
		return nil, errs.New(errs.Usage, "push", "the stream takes no weights").WithHint("make it with updating = true")
	case weights != nil && len(weights) != int(rows.NumRows()):
		return nil, errs.New(errs.Usage, "push", "%d weights for %d rows", len(weights), rows.NumRows())
	case s.opt.Updating:
		if weights == nil {
			weights = make([]int64, rows.NumRows())
			for i := range weights {
				weights[i] = 1
			}
		}
		w := array.NewData(arrow.PrimitiveTypes.Int64, len(weights), []*memory.Buffer{nil, memory.NewBufferBytes(arrow.Int64Traits.CastToBytes(append([]int64{}, weights...)))}, nil, 0, 0)
		cols = append(append([]arrow.Array{}, cols...), array.NewInt64Data(w))
	}
	return array.NewRecordBatch(s.schema, cols, rows.NumRows()), nil
}

// AdvanceWatermark says that no earlier event time will be pushed into the split. Going back is an error and changes nothing.
func (s *Stream) AdvanceWatermark(name string, to flow.Watermark) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	sp := s.at(name)
	if to < sp.mark {
		return errs.New(errs.Watermark, "advance", "the watermark of the split %q would go back from %d to %d µs", name, sp.mark, to)
	}
	sp.mark = to
	sp.queue = append(sp.queue, queued{mark: &to})
	s.wake()
	return nil
}

// Idle marks a split idle until its next push.
func (s *Stream) Idle(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sp := s.at(name)
	sp.idle = true
	sp.queue = append(sp.queue, queued{})
	s.wake()
}

// End ends one split; Close ends all.
func (s *Stream) End(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at(name).ended = true
	s.wake()
}

// Close ends the stream: what is queued can still be read.
func (s *Stream) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.closed = true
		s.wake()
	}
}

// SplitState is what the program has said about a split.
type SplitState struct {
	Watermark flow.Watermark // explicitly set; NoWatermark if never
	Idle      bool
	Waiting   int // rows
}

// State tells the runner of explicit watermarks and idleness. They hold once all rows pushed before have been read.
func (s *Stream) State(name string) SplitState {
	s.mu.Lock()
	defer s.mu.Unlock()
	sp := s.at(name)
	return SplitState{sp.mark, sp.idle, sp.rows}
}

// Changed returns a channel that is closed at the next push, watermark, idleness or end.
func (s *Stream) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.news
}

// Ended reports whether nothing more will be pushed; what is queued can still be read.
func (s *Stream) Ended() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// Splits are the splits that were pushed into, and the default one.
func (s *Stream) Splits(context.Context) ([]flow.Split, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]flow.Split, 0, len(s.splits))
	for name := range s.splits {
		out = append(out, flow.Split{ID: name})
	}
	sort.Slice(out, func(i, j int) bool { return out[i].ID < out[j].ID })
	return out, nil
}

// UntilLatest ends every split behind what is queued now.
func (s *Stream) UntilLatest(context.Context) (flow.Stream, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := &latest{Stream: s, ends: map[string]int64{}}
	for name, sp := range s.splits {
		l.ends[name] = sp.total
	}
	return l, nil
}

type latest struct {
	*Stream
	ends map[string]int64
}

func (l *latest) Bounded() bool { return true }

func (l *latest) Splits(ctx context.Context) ([]flow.Split, error) {
	out := make([]flow.Split, 0, len(l.ends))
	for name := range l.ends {
		out = append(out, flow.Split{ID: name})
	}
	sort.Slice(out, func(i, j int) bool { return out[i].ID < out[j].ID })
	return out, nil
}

func (l *latest) Open(_ context.Context, sp flow.Split, _ flow.Position) (flow.Reader, error) {
	return &reader{s: l.Stream, name: sp.ID, end: l.ends[sp.ID]}, nil
}

// Open reads a split. Rows go to whoever reads first; positions are counts for metrics alone.
func (s *Stream) Open(_ context.Context, sp flow.Split, _ flow.Position) (flow.Reader, error) {
	return &reader{s: s, name: sp.ID, end: -1}, nil
}

type reader struct {
	s    *Stream
	name string
	end  int64 // row behind the last to read; -1: none
}

func (r *reader) Read(ctx context.Context, limit int) (flow.Rows, error) {
	for {
		r.s.mu.Lock()
		sp := r.s.at(r.name)
		switch {
		case r.end >= 0 && sp.taken >= r.end, len(sp.queue) == 0 && (r.s.closed || sp.ended):
			r.s.mu.Unlock()
			return flow.Rows{}, io.EOF
		case len(sp.queue) > 0:
			rows := r.take(sp, int64(max(limit, 1)))
			r.s.wake()
			r.s.mu.Unlock()
			return rows, nil
		}
		news := r.s.news
		r.s.mu.Unlock()
		select {
		case <-news:
		case <-ctx.Done():
			return flow.Rows{}, ctx.Err()
		}
	}
}

// take hands out the head of the queue; the lock is held.
func (r *reader) take(sp *split, n int64) flow.Rows {
	b := sp.queue[0].batch
	if b == nil {
		said := sp.queue[0]
		sp.queue = sp.queue[1:]
		return flow.Rows{Watermark: said.mark, Idle: said.mark == nil}
	}
	if r.end >= 0 {
		n = min(n, r.end-sp.taken)
	}
	if n = min(n, b.NumRows()); n < b.NumRows() {
		sp.queue[0].batch = b.NewSlice(n, b.NumRows())
		b = b.NewSlice(0, n)
	} else {
		sp.queue[0] = queued{}
		sp.queue = sp.queue[1:]
	}
	sp.rows -= int(n)
	sp.taken += n
	return flow.Rows{Batch: b, Next: flow.Position(strconv.FormatInt(sp.taken, 10))}
}

func (r *reader) Close() error { return nil }

var _ connectors.Pusher = (*Stream)(nil)
