package hybrid

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/connectors"
	"github.com/riverbed/riverbed/core/clock"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/types"
)

// stream has the splits of its live part. Each is read from the history first, in the order of the offsets, and then live: the rows of a split are
// those of a topic that has never forgotten anything, in the same order, and so are watermarks and late rows.
type stream struct {
	name              string
	history           flow.Relation
	partition, offset int   // columns of the history that are places
	columns           []int // of the history, for fields
	fields            []types.Field
	live              flow.Stream
	clock             clock.Clock
	offsets           connectors.Offsets
	cuts              map[string]int64 // by split: the first offset that is read live
	ends              map[string]int64 // by split: behind the last record of the history
}

// measure finds the end of the history in each partition. Given offsets are held against it when a split is opened in the history: one that is
// live already needs none of it.
func (s *stream) measure(ctx context.Context) error {
	s.ends = map[string]int64{}
	err := s.scan(ctx, nil, nil, func(b arrow.RecordBatch, partition, offset places) error {
		for r := range int(b.NumRows()) {
			p, o, err := s.place(partition, offset, r)
			if err != nil {
				return err
			}
			id := strconv.FormatInt(p, 10)
			cut, given := s.cuts[id]
			if o < s.ends[id] && !(given && o >= cut) {
				return s.disordered(id, o, s.ends[id])
			}
			s.ends[id] = max(s.ends[id], o+1)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for id, end := range s.ends {
		if _, given := s.cuts[id]; !given {
			s.cuts[id] = end
		}
	}
	return nil
}

func (s *stream) disordered(id string, o, end int64) error {
	return errs.New(errs.Data, "read", "the history of %q has the offset %d of the partition %s behind the offset %d: it has records twice, or in another order than the topic", s.name, o, id, end-1).
		WithHint("write the history in the order of the offsets, in files whose names rise")
}

func (s *stream) gap(id string, from, to int64) error {
	return errs.New(errs.Source, "open", "the history of %q has the partition %s up to the offset %d, and the live part begins at %d: the records between are in neither", s.name, id, from, to).
		WithHint("bring the history up to date, or let the live part begin where it ends")
}

func (s *stream) place(partition, offset places, r int) (p, o int64, err error) {
	p, ok1 := partition.at(r)
	o, ok2 := offset.at(r)
	if !ok1 || !ok2 || p < 0 || o < 0 {
		return 0, 0, errs.New(errs.Data, "read", "a row of the history of %q does not say at which offset of which partition it was", s.name).
			WithHint("every row needs both: leave the others out of the history")
	}
	return p, o, nil
}

// places is a column of partitions or offsets.
type places struct{ of arrow.Array }

func (c places) at(r int) (int64, bool) {
	if c.of.IsNull(r) {
		return 0, false
	}
	switch a := c.of.(type) {
	case *array.Int32:
		return int64(a.Value(r)), true
	case *array.Int64:
		return a.Value(r), true
	}
	return 0, false
}

// scan visits columns of the history and the places, in the order of the history.
func (s *stream) scan(ctx context.Context, columns []int, filters []flow.Predicate, visit func(b arrow.RecordBatch, partition, offset places) error) error {
	sc, err := s.begin(ctx, columns, filters)
	if err != nil {
		return err
	}
	defer func() { _ = sc.Close() }()
	for {
		b, err := s.next(ctx, sc)
		if err != nil || b == nil {
			return err
		}
		if err := visit(b, s.partitions(b), s.places(b)); err != nil {
			return err
		}
	}
}

// begin starts a scan of columns, behind which the partition and the offset stand.
func (s *stream) begin(ctx context.Context, columns []int, filters []flow.Predicate) (flow.Scan, error) {
	all := append(columns[:len(columns):len(columns)], s.partition, s.offset)
	return s.history.Scan(ctx, flow.ScanRequest{Columns: all, Filters: filters, Workers: 1})
}

func (s *stream) next(ctx context.Context, sc flow.Scan) (arrow.RecordBatch, error) {
	m, err := sc.Next(ctx, 0)
	if err != nil || m == nil {
		return nil, err
	}
	return m.Batch, nil
}

func (s *stream) partitions(b arrow.RecordBatch) places {
	return places{b.Column(int(b.NumCols()) - 2)}
}
func (s *stream) places(b arrow.RecordBatch) places { return places{b.Column(int(b.NumCols()) - 1)} }

func (s *stream) Fields() []types.Field { return s.fields }
func (s *stream) Bounded() bool         { return s.live.Bounded() }
func (s *stream) Updating() bool        { return false }
func (s *stream) Replayable() bool      { return true }

// Splits are those of the live part. A partition of the history that is not there any more is of another topic.
func (s *stream) Splits(ctx context.Context) ([]flow.Split, error) {
	splits, err := s.live.Splits(ctx)
	if err != nil {
		return nil, err
	}
	there := map[string]bool{}
	for _, sp := range splits {
		there[sp.ID] = true
	}
	for id := range s.cuts {
		if !there[id] {
			return nil, errs.New(errs.Source, "read", "the history of %q has the partition %s, which the live part has not", s.name, id).WithHint("is it the history of this topic?")
		}
	}
	return splits, nil
}

// UntilLatest reads the history, and the live part to its present end.
func (s *stream) UntilLatest(ctx context.Context) (flow.Stream, error) {
	l, ok := s.live.(flow.LatestStream)
	if !ok {
		return nil, errs.New(errs.Usage, "run", "%s: the live part has no present end, so until='latest' is not possible", s.name)
	}
	bounded, err := l.UntilLatest(ctx)
	if err != nil {
		return nil, err
	}
	c := *s
	c.live = bounded
	return &c, nil
}

// Resumed is the stream for a run that goes on.
func (s *stream) Resumed() flow.Stream {
	r, ok := s.live.(flow.Resumer)
	if !ok {
		return s
	}
	c := *s
	c.live = r.Resumed()
	return &c
}

// Acknowledge tells the live part how far checkpoints are in it.
func (s *stream) Acknowledge(ctx context.Context, upTo map[string]flow.Position) error {
	a, ok := s.live.(flow.Acknowledger)
	if !ok {
		return nil
	}
	live := map[string]flow.Position{}
	for id, at := range upTo {
		if p, err := parsePosition(at); err == nil && p.live != "" {
			live[id] = p.live
		}
	}
	if len(live) == 0 {
		return nil
	}
	return a.Acknowledge(ctx, live)
}

// position is in the history, the next offset and where it is left, or in the live part.
type position struct {
	next, cut int64
	live      flow.Position
}

func (p position) text() flow.Position {
	if p.live != "" {
		return "live " + p.live
	}
	return flow.Position(fmt.Sprintf("history %d of %d", p.next, p.cut))
}

func parsePosition(from flow.Position) (p position, err error) {
	if live, ok := strings.CutPrefix(string(from), "live "); ok {
		return position{live: flow.Position(live)}, nil
	}
	_, err = fmt.Sscanf(string(from), "history %d of %d", &p.next, &p.cut)
	return p, err
}

// Open reads a split from the history or, where the position is behind it, live.
//
// AIDEV-NOTE: the position in the history has the cut of the run's beginning. A history that has grown since would otherwise move the splice, and what it has
// of the records behind the old one would be read in the wrong order, or twice.
func (s *stream) Open(ctx context.Context, split flow.Split, from flow.Position) (flow.Reader, error) {
	r := &reader{s: s, split: split, at: position{cut: s.cuts[split.ID]}}
	if from != "" {
		var err error
		if r.at, err = parsePosition(from); err != nil {
			return nil, errs.New(errs.State, "open", "%q is no position in %q", from, s.name)
		}
		if r.at.live != "" {
			live, err := s.live.Open(ctx, split, r.at.live)
			if err != nil {
				return nil, err
			}
			r.goLive(live)
			return r, nil
		}
		r.from = r.at.next
	}
	// What lies between is read from the history, and must be there: files of it may have been removed since the last run.
	if end := s.ends[split.ID]; r.at.next < r.at.cut && end < r.at.cut {
		return nil, s.gap(split.ID, end, r.at.cut)
	}
	if from == "" {
		return r, s.held(ctx, split.ID, r.at.cut)
	}
	return r, nil
}

// held refuses a splice behind which the live part does not have all records.
func (s *stream) held(ctx context.Context, id string, cut int64) error {
	spans, err := s.offsets.Held(ctx)
	if err != nil {
		return err
	}
	span, ok := spans[id]
	switch {
	case !ok:
		return errs.New(errs.Source, "read", "%s: there is no partition %s", s.name, id)
	case span[0] > cut:
		return s.gap(id, cut, span[0])
	case span[1] < cut:
		return errs.New(errs.Source, "read", "the history of %q has the partition %s up to the offset %d, and the live part ends at %d: it is another topic, or has lost records", s.name, id, cut, span[1])
	}
	return nil
}

// reader reads one split.
type reader struct {
	s     *stream
	split flow.Split
	at    position
	from  int64 // the offset at which it was opened
	scan  flow.Scan
	live  flow.Reader

	ears atomic.Pointer[ears] // nil: in the history
}

// ears is who knows when the live part answered, nil: nobody, and since when it is read.
type ears struct {
	flow.Listener
	begun time.Time
}

// goLive notes the reader of the live part.
func (r *reader) goLive(live flow.Reader) {
	l, _ := live.(flow.Listener)
	r.live = live
	r.ears.Store(&ears{l, r.s.clock.Now()})
}

// Heard implements flow.Listener. In the history nothing has said yet that there is nothing more: a scan that takes long is no silence.
func (r *reader) Heard() (since, last time.Time) {
	e := r.ears.Load()
	if e == nil {
		return since, last
	}
	if since, last = e.begun, r.s.clock.Now(); e.Listener != nil { // otherwise reads that do not fail are answers
		since, last = e.Listener.Heard()
	}
	if since.Before(e.begun) {
		since = e.begun
	}
	return since, last
}

func (r *reader) Read(ctx context.Context, limit int) (flow.Rows, error) {
	for r.live == nil {
		rows, more, err := r.history(ctx)
		if err != nil {
			return flow.Rows{}, err
		}
		if rows.Batch != nil {
			return rows, nil
		}
		if !more {
			if err := r.splice(ctx); err != nil {
				return flow.Rows{}, err
			}
			return flow.Rows{Next: r.at.text()}, nil // the splice is a place of its own: a restart there reads no history
		}
	}
	rows, err := r.live.Read(ctx, limit)
	if rows.Next != "" {
		r.at = position{live: rows.Next}
		rows.Next = r.at.text()
	}
	return rows, err
}

// history gives the next rows of the split that lie before the cut.
func (r *reader) history(ctx context.Context) (rows flow.Rows, more bool, err error) {
	if r.at.next >= r.at.cut {
		return rows, false, nil
	}
	if r.scan == nil {
		partition, err := strconv.ParseInt(r.split.ID, 10, 32)
		if err != nil {
			return rows, false, errs.New(errs.State, "open", "%q is no partition of %q", r.split.ID, r.s.name)
		}
		at := []types.Value{partition}
		if r.scan, err = r.s.begin(ctx, r.s.columns, []flow.Predicate{
			{Column: r.s.partition, Op: flow.CmpEq, Values: at},
			{Column: r.s.offset, Op: flow.CmpGe, Values: []types.Value{r.at.next}},
			{Column: r.s.offset, Op: flow.CmpLt, Values: []types.Value{r.at.cut}},
		}); err != nil {
			return rows, false, err
		}
	}
	b, err := r.s.next(ctx, r.scan)
	if err != nil {
		return rows, false, err
	}
	if b == nil {
		return rows, false, nil
	}
	partition, offset := r.s.partitions(b), r.s.places(b)
	mine, at := []int32{}, &flow.Places{Split: r.split.ID, Kind: flow.Partition, Unit: flow.Offset}
	next := r.at.next
	for row := range int(b.NumRows()) {
		p, o, err := r.s.place(partition, offset, row)
		if err != nil {
			return rows, false, err
		}
		if strconv.FormatInt(p, 10) != r.split.ID || o < r.from || o >= r.at.cut {
			continue
		}
		if o < next {
			return rows, false, r.s.disordered(r.split.ID, o, next)
		}
		at.Add(len(mine), o)
		mine, next = append(mine, int32(row)), o+1
	}
	if len(mine) == 0 {
		return rows, true, nil
	}
	cols := kernels.TakeBatch(b.Columns()[:len(r.s.columns)], mine)
	r.at.next = next
	return flow.Rows{Batch: array.NewRecordBatch(types.ArrowSchema(r.s.fields), cols, int64(len(mine))), Places: at, Next: r.at.text()}, true, nil
}

// splice leaves the history for the live part.
//
// AIDEV-NOTE: what the broker holds is asked at this moment: retention may have passed the cut while the history was read.
func (r *reader) splice(ctx context.Context) error {
	r.end()
	if err := r.s.held(ctx, r.split.ID, r.at.cut); err != nil {
		return err
	}
	at := position{live: r.s.offsets.PositionAt(r.at.cut)}
	live, err := r.s.live.Open(ctx, r.split, at.live)
	if err != nil {
		return err
	}
	r.goLive(live)
	r.at = at
	return nil
}

func (r *reader) end() {
	if r.scan != nil {
		_ = r.scan.Close()
		r.scan = nil
	}
}

// UnknownFields and MissingFields are counted by the live part.
func (r *reader) UnknownFields() int64 { return r.count(connectors.FieldCounter.UnknownFields) }
func (r *reader) MissingFields() int64 { return r.count(connectors.FieldCounter.MissingFields) }

func (r *reader) count(of func(connectors.FieldCounter) int64) int64 {
	if c, ok := r.live.(connectors.FieldCounter); ok {
		return of(c)
	}
	return 0
}

func (r *reader) Close() error {
	r.end()
	if r.live != nil {
		return r.live.Close()
	}
	return nil
}
