// Package memory is a stream that this process pushes into: tests, notebooks, Python's MemoryStream.
//
// Invariant: rows of a split are read in the order in which they were pushed, and a push blocks while the queue of
// its split is full. Readers that are open at once all read what is pushed, so the slowest holds a push back; what they
// have read is gone, and a reader that comes later begins behind it.
package memory

import (
	"context"
	"io"
	"runtime"
	"slices"
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
		connectors.UpsertOption("a row takes the place of the row of its key, and one with the weight -1, of which only the key counts, deletes it."),
	},
	Stream: func(_ context.Context, req connectors.OpenRequest) (flow.Stream, error) {
		if req.Schema == nil {
			return nil, errs.New(errs.Schema, "open", "a memory stream needs its columns declared").WithHint("give schema=")
		}
		key, err := connectors.KeyColumns(req, req.Schema)
		if err != nil {
			return nil, err
		}
		updating := req.Settings.Bool("updating")
		if updating && key != nil {
			return nil, errs.New(errs.Usage, "open", "a memory stream is updating or upsert, not both").
				WithHint("with upsert = true a row is named by its key, with updating = true it is taken back whole")
		}
		return New(req.Schema, Options{Name: req.Name, QueueRows: int(req.Settings.Int("queue_rows")), Updating: updating, Key: key}), nil
	},
}

// Options of a stream.
type Options struct {
	Name      string // for messages
	QueueRows int    // 0 is a million
	Updating  bool   // batches carry weights
	Key       []int  // of a stream without old images (flow.Upserts), which is updating
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
	runs   []*attended   // that read it
}

// split is the queue of one split. Rows are numbered from 0, and so are the things said; queue[0] is number first.
type split struct {
	queue   []queued
	first   int64
	rows    int   // waiting: not read by every open reader
	total   int64 // rows pushed
	ended   bool
	mark    flow.Watermark
	readers []*reader // open
	front   place     // as far as any reader was
}

// place is where a reader stands: the number of the next thing, and of the next row.
type place struct{ thing, row int64 }

// queued is one thing that the program said: rows, a watermark or idleness, in the order in which it said them.
type queued struct {
	batch arrow.RecordBatch // with weights if updating; nil for the others
	lent  flow.Lent         // what it lies in, retained; nil: memory of our own
	from  int64             // number of its first row
	mark  *flow.Watermark
}

// New makes a stream with the default split.
func New(fields []types.Field, opt Options) *Stream {
	if opt.QueueRows <= 0 {
		opt.QueueRows = 1_000_000
	}
	s := &Stream{fields: fields, opt: opt, splits: map[string]*split{}, news: make(chan struct{})}
	s.schema = types.ArrowSchema(fields)
	if s.opt.Updating = opt.Updating || opt.Key != nil; s.opt.Updating {
		s.schema = flow.WithWeights(s.schema)
	}
	s.splits[DefaultSplit] = &split{mark: flow.NoWatermark}
	// What nobody has read is given back with the stream. An open reader keeps it.
	runtime.AddCleanup(s, giveBack, s.splits)
	return s
}

// giveBack releases what the queues hold of lent memory.
func giveBack(splits map[string]*split) {
	for _, sp := range splits {
		for _, q := range sp.queue {
			if q.lent != nil {
				q.lent.Release()
			}
		}
	}
}

func (s *Stream) Fields() []types.Field { return s.fields }
func (s *Stream) Bounded() bool         { return false }
func (s *Stream) Updating() bool        { return s.opt.Updating }

// Key is the key of a stream without old images, nil of others.
func (s *Stream) Key() []int { return s.opt.Key }

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
		for _, a := range s.runs {
			a.waiting[name] = s.reader(name, -1)
		}
	}
	return sp
}

// attended is a stream for one run. Readers of all splits, also of those to come, stand ready from the beginning: else what another
// run reads before this one has opened a split would be lost to it.
type attended struct {
	*Stream
	waiting map[string]*reader // of splits that the run has not opened yet
}

// Attend gives the stream for a run that begins now, and what ends that.
func (s *Stream) Attend() (flow.Stream, func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := &attended{Stream: s, waiting: map[string]*reader{}}
	for name := range s.splits {
		a.waiting[name] = s.reader(name, -1)
	}
	s.runs = append(s.runs, a)
	return a, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.runs = slices.DeleteFunc(s.runs, func(o *attended) bool { return o == a })
		s.dismiss(a.waiting)
	}
}

// Open gives the reader that stands ready, or, of a split that is opened again, another.
func (a *attended) Open(_ context.Context, sp flow.Split, _ flow.Position) (flow.Reader, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.ready(a.waiting, sp.ID, -1), nil
}

// ready takes a reader out of those that stand ready, or makes one. The lock is held.
func (s *Stream) ready(waiting map[string]*reader, name string, end int64) *reader {
	r, ok := waiting[name]
	if !ok {
		return s.reader(name, end)
	}
	delete(waiting, name)
	return r
}

// dismiss closes readers that were never asked for. The lock is held.
func (s *Stream) dismiss(waiting map[string]*reader) {
	for _, r := range waiting {
		r.leave()
	}
	clear(waiting)
}

// Push queues rows; weights nil is +1 each. It waits while the split's queue is full, except for a batch that is
// larger than the queue, which waits for an empty one. Of a flow.LentBatch the queue holds a reference of its own, until the
// slowest reader has read it.
func (s *Stream) Push(ctx context.Context, name string, rows arrow.RecordBatch, weights []int64) error {
	b, lent, err := s.shape(rows, weights)
	if err != nil {
		return err
	}
	for {
		room, err := s.queue(name, b, lent)
		if err != nil || room == nil {
			return err
		}
		select {
		case <-room:
		case <-ctx.Done():
			return errs.New(errs.Cancelled, "push", "the push was cancelled while the queue was full: %w", ctx.Err())
		}
	}
}

// TryPush is Push when there is room; otherwise it does nothing and says false.
func (s *Stream) TryPush(name string, rows arrow.RecordBatch, weights []int64) (bool, error) {
	b, lent, err := s.shape(rows, weights)
	if err != nil {
		return false, err
	}
	room, err := s.queue(name, b, lent)
	return room == nil && err == nil, err
}

// queue appends rows to a split, or returns what closes when it is worth trying again.
func (s *Stream) queue(name string, b arrow.RecordBatch, lent flow.Lent) (room <-chan struct{}, err error) {
	n := int(b.NumRows())
	if n == 0 {
		return nil, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	sp := s.at(name)
	switch {
	case s.closed || sp.ended:
		return nil, errs.New(errs.Usage, "push", "the stream is closed").WithHint("push before close() or end()")
	case sp.rows > 0 && sp.rows+n > s.opt.QueueRows:
		return s.news, nil
	}
	if lent != nil {
		lent.Retain()
	}
	sp.queue = append(sp.queue, queued{batch: b, lent: lent, from: sp.total})
	sp.rows += n
	sp.total += int64(n)
	s.wake()
	return nil, nil
}

// shape checks the columns and adds the weights. Rows with weights are few, and are copied out of memory that is lent.
func (s *Stream) shape(rows arrow.RecordBatch, weights []int64) (arrow.RecordBatch, flow.Lent, error) {
	if int(rows.NumCols()) != len(s.fields) {
		return nil, nil, errs.New(errs.Schema, "push", "the rows have %d columns, the stream has %d", rows.NumCols(), len(s.fields))
	}
	for i, f := range s.fields {
		if have := rows.Column(i).DataType(); !arrow.TypeEqual(have, f.Type.Arrow()) {
			return nil, nil, errs.New(errs.Schema, "push", "column %q is %s, the stream has %s", rows.ColumnName(i), have, f.Type).
				WithHint("cast it, as in SELECT * REPLACE (CAST(%q AS %s) AS %[1]q) FROM …, and push the result", f.Name, f.Type)
		}
	}
	cols := rows.Columns()
	var lent flow.Lent
	if l, ok := rows.(flow.LentBatch); ok {
		lent = l.Lent
	}
	if s.opt.Key != nil {
		if err := connectors.CheckUpserts(s.opt.Name, s.fields, s.opt.Key, cols, weights); err != nil {
			return nil, nil, err
		}
	}
	switch {
	case weights != nil && !s.opt.Updating:
		return nil, nil, errs.New(errs.Usage, "push", "the stream takes no weights").WithHint("make it with updating = true")
	case weights != nil && len(weights) != int(rows.NumRows()):
		return nil, nil, errs.New(errs.Usage, "push", "%d weights for %d rows", len(weights), rows.NumRows())
	case s.opt.Updating:
		if lent != nil {
			var err error
			if cols, err = copied(cols); err != nil {
				return nil, nil, err
			}
			lent = nil
		}
		if weights == nil {
			weights = make([]int64, rows.NumRows())
			for i := range weights {
				weights[i] = 1
			}
		}
		w := array.NewData(arrow.PrimitiveTypes.Int64, len(weights), []*memory.Buffer{nil, memory.NewBufferBytes(arrow.Int64Traits.CastToBytes(append([]int64{}, weights...)))}, nil, 0, 0)
		cols = append(append([]arrow.Array{}, cols...), array.NewInt64Data(w))
	}
	return array.NewRecordBatch(s.schema, cols, rows.NumRows()), lent, nil
}

// copied copies columns to memory of our own.
func copied(cols []arrow.Array) ([]arrow.Array, error) {
	out := make([]arrow.Array, len(cols))
	for i, c := range cols {
		var err error
		if out[i], err = array.Concatenate([]arrow.Array{c}, memory.DefaultAllocator); err != nil {
			return nil, errs.New(errs.Source, "push", "an array of %s cannot be copied: %w", c.DataType(), err)
		}
	}
	return out, nil
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
	sp.queue = append(sp.queue, queued{mark: &to, from: sp.total})
	s.wake()
	return nil
}

// Idle marks a split idle until its next push.
func (s *Stream) Idle(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sp := s.at(name)
	sp.queue = append(sp.queue, queued{from: sp.total})
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
	l := &latest{Stream: s, ends: map[string]int64{}, waiting: map[string]*reader{}}
	for name, sp := range s.splits {
		l.ends[name] = sp.total
	}
	return l, nil
}

type latest struct {
	*Stream
	ends    map[string]int64
	waiting map[string]*reader // of splits that the run has not opened yet
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

// Attend is Stream.Attend, for the splits that there were.
func (l *latest) Attend() (flow.Stream, func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name, end := range l.ends {
		l.waiting[name] = l.reader(name, end)
	}
	return l, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.dismiss(l.waiting)
	}
}

func (l *latest) Open(_ context.Context, sp flow.Split, _ flow.Position) (flow.Reader, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ready(l.waiting, sp.ID, l.ends[sp.ID]), nil
}

// Open reads a split beside whoever reads it too; positions are counts for metrics alone.
func (s *Stream) Open(_ context.Context, sp flow.Split, _ flow.Position) (flow.Reader, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reader(sp.ID, -1), nil
}

type reader struct {
	s     *Stream
	name  string
	split *split
	at    place
	asked int64 // row behind the last to read; -1: none
	end   int64 // the same, or where to leave now that the context has ended
	left  bool
}

// reader starts one where the queue begins: behind what was read, unless another reader is still to read it. The lock is held.
func (s *Stream) reader(name string, end int64) *reader {
	sp := s.at(name)
	r := &reader{s: s, name: name, split: sp, asked: end, end: end, at: place{sp.first, sp.total - int64(sp.rows)}}
	sp.readers = append(sp.readers, r)
	return r
}

// Read hands out what is queued. After ctx has ended it goes on to the end of what was pushed until then, so that a run
// that is drained takes all of it.
func (r *reader) Read(ctx context.Context, limit int) (flow.Rows, error) {
	for {
		r.s.mu.Lock()
		sp := r.split
		if ctx.Err() != nil && !r.left {
			r.left = true
			if r.end < 0 {
				r.end = sp.total
			}
		}
		waiting := r.at.thing < sp.first+int64(len(sp.queue))
		switch {
		case r.end >= 0 && r.at.row >= r.end && (!waiting || r.next().batch != nil):
			r.s.mu.Unlock()
			if r.end > r.asked {
				r.left, r.end = false, r.asked
				return flow.Rows{}, ctx.Err()
			}
			return flow.Rows{}, io.EOF
		case !waiting && (r.s.closed || sp.ended):
			r.s.mu.Unlock()
			return flow.Rows{}, io.EOF
		case waiting:
			rows := r.take(int64(max(limit, 1)))
			r.s.wake()
			r.s.mu.Unlock()
			return rows, nil
		}
		news := r.s.news
		r.s.mu.Unlock()
		select {
		case <-news:
		case <-ctx.Done():
		}
	}
}

func (r *reader) next() queued { return r.split.queue[r.at.thing-r.split.first] }

// take hands out the next thing; the lock is held.
func (r *reader) take(limit int64) flow.Rows {
	q := r.next()
	if q.batch == nil {
		r.move(place{r.at.thing + 1, r.at.row})
		return flow.Rows{Watermark: q.mark, Idle: q.mark == nil}
	}
	from := r.at.row - q.from
	to := min(q.batch.NumRows(), from+limit)
	if r.end >= 0 {
		to = min(to, r.end-q.from)
	}
	at := place{r.at.thing, q.from + to}
	if to == q.batch.NumRows() {
		at.thing++
	}
	b := q.batch
	if from > 0 || to < b.NumRows() {
		b = b.NewSlice(from, to)
	}
	if q.lent != nil {
		q.lent.Retain()
	}
	r.move(at)
	places := &flow.Places{Split: r.name, Kind: flow.PushSplit, Unit: flow.RowNumber, Runs: []flow.Run{{At: q.from + from + 1}}}
	return flow.Rows{Batch: b, Places: places, Lent: q.lent, Next: flow.Position(strconv.FormatInt(at.row, 10))}
}

func (r *reader) move(to place) {
	r.at = to
	if to.thing > r.split.front.thing || to.row > r.split.front.row {
		r.split.front = to
	}
	r.split.trim()
}

// trim drops what every open reader has read, or, when none is open, what any has.
func (sp *split) trim() {
	least := sp.front
	for i, r := range sp.readers {
		if i == 0 || r.at.thing < least.thing || r.at.thing == least.thing && r.at.row < least.row {
			least = r.at
		}
	}
	for sp.first < least.thing {
		if l := sp.queue[0].lent; l != nil {
			l.Release()
		}
		sp.queue[0] = queued{}
		sp.queue = sp.queue[1:]
		sp.first++
	}
	sp.rows = int(sp.total - least.row)
}

func (r *reader) Close() error {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	r.leave()
	return nil
}

func (r *reader) leave() {
	r.split.readers = slices.DeleteFunc(r.split.readers, func(o *reader) bool { return o == r })
	r.split.trim()
	r.s.wake()
}

var _ connectors.Pusher = (*Stream)(nil)
