package host

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/connectors"
	"github.com/riverbed/riverbed/core/clock"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/types"
)

// Description is what the host knows of a source before it is read.
type Description struct {
	Rows       int64  `json:"rows"` // about; -1: unknown
	Splits     int    `json:"splits"`
	Replayable bool   `json:"replayable"` // a reader can go on behind a position
	Where      string `json:"where"`      // for messages
}

// Next is what a reader says with its rows.
type Next struct {
	End    bool   `json:"end"`
	Beside string `json:"beside"` // flow.Beside
}

// source is a source of the host, described.
type source struct {
	connector string
	options   any
	clock     clock.Clock
	about     Description
	fields    []types.Field
	casts     []string // names of the source's columns, where the declared ones are other or fewer; nil: as they come
	updating  bool
}

func describe(ctx context.Context, connector string, options any, req connectors.OpenRequest) (*source, error) {
	s := &source{connector: connector, options: options, clock: req.Time()}
	var out arrow.RecordBatch
	err := again(ctx, s.clock, func() error {
		o, _, err := open(ctx, connector, "source", map[string]any{"options": options}, nil, nil)
		if err != nil {
			return err
		}
		defer o.close()
		out, err = o.call(ctx, "describe", nil, nil, &s.about)
		return err
	})
	if err != nil {
		return nil, err
	}
	if out == nil {
		return nil, errs.Bug("open", "the connector %q has described no columns", connector)
	}
	schema := out.Schema()
	fields := schema.Fields()
	if s.updating = flow.HasWeights(schema); s.updating {
		last := fields[len(fields)-1]
		if !arrow.TypeEqual(last.Type, flow.WeightField.Type) {
			return nil, errs.New(errs.Schema, "open", "the column %q of %s is %s; weights are int64", last.Name, s.about.Where, last.Type)
		}
		fields = fields[:len(fields)-1]
	}
	if s.fields, err = types.Schema(arrow.NewSchema(fields, nil)); err != nil {
		return nil, err
	}
	for _, f := range s.fields {
		if flow.Reserved(f.Name) {
			return nil, errs.New(errs.Schema, "open", "the column %q of %s is not the last one; only that may be the weight", f.Name, s.about.Where)
		}
	}
	return s, s.choose(req.Schema)
}

// choose takes the declared columns, by their names. A declared type may be wider than the source's.
func (s *source) choose(declared []types.Field) error {
	if declared == nil {
		return nil
	}
	names := make([]string, len(s.fields))
	for i, f := range s.fields {
		names[i] = f.Name
	}
	for _, d := range declared {
		at := -1
		for i, name := range names {
			if name == d.Name || at < 0 && strings.EqualFold(name, d.Name) {
				at = i
			}
		}
		if at < 0 {
			e := errs.New(errs.Schema, "open", "%s has no column %q", s.about.Where, d.Name)
			if hint := errs.DidYouMean(d.Name, names); hint != "" {
				return e.WithHint("%s", hint)
			}
			return e.WithHint("it has %s", strings.Join(names, ", "))
		}
		have := s.fields[at].Type
		if have.IsNested() && !have.Equal(d.Type) || types.ImplicitCost(have, d.Type) < 0 {
			return errs.New(errs.Schema, "open", "column %q is declared as %s, and %s has %s", d.Name, d.Type, s.about.Where, have).
				WithHint("declare it as %s, and cast it in the query", have)
		}
		s.casts = append(s.casts, names[at])
	}
	s.fields = declared
	return nil
}

// with is how a reader is opened: for which columns, by the names that the source has for them.
func (s *source) with(split int, from flow.Position, columns []int) (map[string]any, arrow.RecordBatch) {
	fields, names := make([]types.Field, len(columns)), make([]string, 0, len(columns)+1)
	for i, c := range columns {
		fields[i] = s.fields[c]
		name := s.fields[c].Name
		if s.casts != nil {
			name = s.casts[c]
		}
		names = append(names, name)
	}
	schema := types.ArrowSchema(fields)
	if s.updating {
		schema, names = flow.WithWeights(schema), append(names, flow.WeightColumn)
	}
	return map[string]any{"options": s.options, "split": split, "position": from, "names": names}, flow.NoRows(schema)
}

// all are all columns.
func (s *source) all() []int {
	out := make([]int, len(s.fields))
	for i := range out {
		out[i] = i
	}
	return out
}

// checked refuses weights that are NULL: they say nothing.
func (s *source) checked(b arrow.RecordBatch) error {
	if s.updating && b != nil && b.Column(int(b.NumCols())-1).NullN() > 0 {
		return errs.New(errs.Source, "read", "a row of %s has NULL as its %s", s.about.Where, flow.WeightColumn)
	}
	return nil
}

// OpenRelation opens bounded input: all splits, one after the other.
func OpenRelation(ctx context.Context, connector string, options any, req connectors.OpenRequest) (flow.Relation, error) {
	s, err := describe(ctx, connector, options, req)
	if err != nil {
		return nil, err
	}
	if s.updating {
		return nil, errs.New(errs.Unsupported, "open", "%s gives changes of rows (%s), and a table has rows", s.about.Where, flow.WeightColumn).WithHint("read it as a stream: CREATE STREAM")
	}
	return relation{s}, nil
}

type relation struct{ *source }

func (r relation) Fields() []types.Field { return r.fields }

// Replayable is what the source says of itself: without positions nobody promises the same rows in the same order.
func (r relation) Replayable() bool { return r.about.Replayable }

// Stats are what the server guesses.
func (r relation) Stats() flow.Stats { return flow.Stats{Rows: max(r.about.Rows, -1)} }

func (r relation) Scan(_ context.Context, req flow.ScanRequest) (flow.Scan, error) {
	columns := req.Columns
	if len(columns) == 0 { // rows are counted: one column has them all
		columns = []int{0}
	}
	return &scan{r: r, columns: columns, count: len(req.Columns) == 0}, nil
}

// scan reads one split behind the other; workers take turns.
type scan struct {
	r       relation
	columns []int
	count   bool

	mu    sync.Mutex
	split int
	at    *object // nil: the next split is to be opened
	seq   int64
}

func (s *scan) Next(ctx context.Context, _ int) (*flow.Morsel, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.split < s.r.about.Splits {
		if s.at == nil {
			with, schema := s.r.with(s.split, "", s.columns)
			err := again(ctx, s.r.clock, func() (err error) { // no row was read of it yet
				s.at, _, err = open(ctx, s.r.connector, "reader", with, schema, nil)
				return err
			})
			if err != nil {
				return nil, err
			}
		}
		var said Next
		b, err := s.at.call(ctx, "next", nil, nil, &said)
		if err != nil {
			return nil, err
		}
		if said.End {
			s.hangUp()
			s.split++
			continue
		}
		if b == nil || b.NumRows() == 0 {
			continue
		}
		if s.count {
			b = array.NewRecordBatch(arrow.NewSchema(nil, nil), nil, b.NumRows())
		}
		s.seq++
		return &flow.Morsel{Seq: s.seq, Batch: b}, nil
	}
	return nil, nil
}

func (s *scan) hangUp() {
	if s.at != nil {
		s.at.close()
		s.at = nil
	}
}

func (s *scan) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hangUp()
	s.split = s.r.about.Splits
	return nil
}

// OpenStream opens live input. restart: a split whose source cannot go on behind a position, and fails, is asked for anew.
func OpenStream(ctx context.Context, connector string, options any, restart bool, req connectors.OpenRequest) (flow.Stream, error) {
	s, err := describe(ctx, connector, options, req)
	if err != nil {
		return nil, err
	}
	return &stream{source: s, restart: restart, run: newRun()}, nil
}

type stream struct {
	*source
	restart bool
	bounded bool
	run     *run
}

// run is what the splits of one run have in common.
type run struct {
	mu    sync.Mutex
	marks map[string]flow.Watermark // that splits told; the stream's is the least
	ended map[string]bool
	news  chan struct{} // closed and replaced when a split ends
}

func newRun() *run {
	return &run{marks: map[string]flow.Watermark{}, ended: map[string]bool{}, news: make(chan struct{})}
}

// Attend gives the stream for a run that begins now. It ends when the source has ended all its splits.
func (s *stream) Attend() (flow.Stream, func()) {
	return &stream{source: s.source, restart: s.restart, bounded: s.bounded, run: newRun()}, func() {}
}

// Changed returns a channel that is closed when a split ends.
func (s *stream) Changed() <-chan struct{} {
	s.run.mu.Lock()
	defer s.run.mu.Unlock()
	return s.run.news
}

// Concluded tells of a split that had ended before a run went on, which nobody opens again.
func (s *stream) Concluded(split string) { s.run.end(split) }

// Ended reports whether all splits have.
func (s *stream) Ended() bool {
	s.run.mu.Lock()
	defer s.run.mu.Unlock()
	return len(s.run.ended) == s.about.Splits
}

// Close is for streams that are fed; readers close by themselves.
func (s *stream) Close() {}

// end notes that a split has ended.
func (r *run) end(split string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended[split] = true
	close(r.news)
	r.news = make(chan struct{})
}

func (s *stream) Fields() []types.Field { return s.fields }
func (s *stream) Bounded() bool         { return s.bounded }
func (s *stream) Updating() bool        { return s.updating }
func (s *stream) Replayable() bool      { return s.about.Replayable }

// Splits are numbered as the source lists them.
func (s *stream) Splits(context.Context) ([]flow.Split, error) {
	out := make([]flow.Split, s.about.Splits)
	for i := range out {
		out[i].ID = strconv.Itoa(i)
	}
	return out, nil
}

// UntilLatest gives the stream for a run that ends where the source ends each split by itself.
func (s *stream) UntilLatest(context.Context) (flow.Stream, error) {
	return &stream{source: s.source, restart: s.restart, bounded: true, run: newRun()}, nil
}

// Open reads a split. A position is that of a batch, and how many rows behind it were taken: "12 abc".
func (s *stream) Open(_ context.Context, split flow.Split, from flow.Position) (flow.Reader, error) {
	r := &reader{s: s, split: split.ID}
	if from != "" {
		rows, at, ok := strings.Cut(string(from), " ")
		n, err := strconv.ParseInt(rows, 10, 64)
		if !ok || err != nil || n < 0 {
			return nil, errs.New(errs.State, "open", "%s: %q is no position", s.about.Where, from)
		}
		r.at, r.skip = flow.Position(at), n
	}
	return r, nil
}

type reader struct {
	s     *stream
	split string
	o     *object // nil: to be opened
	began bool    // the source has given rows, which it may give again when it is asked anew
	ended bool

	at     flow.Position // behind the batch before rest
	skip   int64         // rows that were taken before we began
	rest   arrow.RecordBatch
	taken  int64 // rows behind at that were handed out
	beside flow.Beside
}

func (r *reader) Read(ctx context.Context, limit int) (flow.Rows, error) {
	if r.ended {
		return flow.Rows{}, io.EOF
	}
	if r.rest == nil {
		if err := r.next(ctx); err != nil {
			return flow.Rows{}, err
		}
	}
	return r.hand(limit), nil
}

// next fetches a batch, or what came without rows.
//
// AIDEV-NOTE: a source without positions may have sent rows that we never saw when it breaks, and sends rows again, or others, when it is
// asked again. Either is silent, so the run ends with an error unless the options allow it.
func (r *reader) next(ctx context.Context) error {
	if r.o == nil {
		n, err := strconv.Atoi(r.split)
		if err != nil {
			return errs.New(errs.State, "open", "%s: there is no split %q", r.s.about.Where, r.split)
		}
		with, schema := r.s.with(n, r.at, r.s.all())
		if r.o, _, err = open(ctx, r.s.connector, "reader", with, schema, nil); err != nil {
			return err
		}
	}
	var said Next
	b, err := r.o.call(ctx, "next", nil, nil, &said)
	if err == nil {
		err = r.s.checked(b)
	}
	if err != nil {
		_ = r.Close()
		if e := errs.As(err); r.began && e.Transient && !r.s.about.Replayable && !r.s.restart {
			lost := *e
			lost.Transient = false
			lost.Msg = fmt.Sprintf("%s broke off, and cannot go on behind the rows that it gave: %s", r.s.about.Where, e.Msg)
			lost.Hint = "begin anew, or set on_break = 'restart' to go on with what it gives when it is asked again: rows may be missed, or come twice"
			return &lost
		}
		return err
	}
	if said.End {
		r.ended = true
		r.s.run.end(r.split)
		return io.EOF
	}
	r.beside = flow.ReadBeside([]byte(said.Beside))
	r.rest, r.began = b, r.began || b != nil && b.NumRows() > 0
	if b == nil {
		return nil
	}
	if n := min(r.skip, b.NumRows()); n > 0 {
		r.skip -= n
		r.taken += n
		r.rest = b.NewSlice(n, b.NumRows())
	}
	return nil
}

// hand gives rows of what was fetched. A position and a watermark are those behind the batch, and count when all of it was given.
func (r *reader) hand(limit int) flow.Rows {
	var out flow.Rows
	if r.rest != nil && r.rest.NumRows() > int64(limit) {
		out.Batch = r.rest.NewSlice(0, int64(limit))
		r.rest = r.rest.NewSlice(int64(limit), r.rest.NumRows())
		r.taken += int64(limit)
	} else {
		if r.rest != nil {
			r.taken += r.rest.NumRows()
			if r.rest.NumRows() > 0 {
				out.Batch = r.rest
			}
			r.rest = nil
		}
		if r.beside.Position != "" {
			r.at, r.taken = r.beside.Position, 0
		}
		out.Watermark = r.s.told(r.split, r.beside.Watermark)
	}
	if r.s.about.Replayable {
		out.Next = flow.Position(fmt.Sprintf("%d %s", r.taken+r.skip, r.at))
	}
	if out.Batch != nil {
		for _, c := range out.Batch.Columns() {
			out.Bytes += int64(c.Data().SizeInBytes())
		}
	}
	return out
}

// told is the stream's watermark when a split tells its own, if that moves it. The end of a split is told by its end.
func (s *stream) told(split string, mark flow.Watermark) *flow.Watermark {
	if mark == flow.NoWatermark || mark == flow.EndWatermark {
		return nil
	}
	s.run.mu.Lock()
	defer s.run.mu.Unlock()
	if at, ok := s.run.marks[split]; ok && mark <= at {
		return nil
	}
	before, told := s.least()
	s.run.marks[split] = mark
	now, all := s.least()
	if !all || told && now == before {
		return nil
	}
	return &now
}

// least is the least watermark of all splits, if each has told one.
func (s *stream) least() (flow.Watermark, bool) {
	out := flow.EndWatermark
	for _, m := range s.run.marks {
		out = min(out, m)
	}
	return out, len(s.run.marks) == s.about.Splits
}

func (r *reader) Close() error {
	if r.o != nil {
		r.o.close()
		r.o = nil
	}
	return nil
}
