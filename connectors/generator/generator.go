// Package generator makes rows: the three streams of NEXMark, and alerts of a sky survey. The same options give the
// same rows, as a table or as a stream, from any position on.
//
// Invariant: a row is a function of the seed and its number alone.
package generator

import (
	"context"
	"io"
	"math"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/connectors"
	"github.com/riverbed/riverbed/core/clock"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/types"
)

// kind makes the rows of one kind.
type kind struct {
	name   string
	fields []types.Field
	// fill makes the rows from number first on.
	fill func(c *columns, seed uint64, first int64, rows int)
}

var kinds = []kind{bidKind, auctionKind, personKind, alertKind}

func kindNames() []string {
	out := make([]string, len(kinds))
	for i, k := range kinds {
		out[i] = k.name
	}
	return out
}

// Source declares the generator.
var Source = connectors.Source{
	Name: "generator", Class: "Generator", Summary: "Make rows: NEXMark's streams, or alerts of a sky survey.", Replayable: true,
	Options: connectors.Options{
		{Name: "kind", Type: connectors.Enum, Values: kindNames(), Required: true, Doc: "Which rows to make.", Example: "sky_alerts"},
		{Name: "rows", Type: connectors.Int, Default: "0", Doc: "How many rows; 0 never ends, as a stream."},
		{Name: "rate", Type: connectors.Int, Default: "0", Doc: "Rows a second of processing time, as a stream; 0 is as fast as they are read."},
		{Name: "seed", Type: connectors.Int, Default: "1", Doc: "The same seed gives the same rows."},
		{Name: "batch_rows", Type: connectors.Int, Default: "10000", Doc: "Rows a batch."},
	},
	Relation: openRelation,
	Stream:   openStream,
}

// spec is what the options ask for.
type spec struct {
	kind       *kind
	rows, rate int64
	seed       uint64
	batch      int64
	schema     *arrow.Schema
	clock      clock.Clock
}

func parse(req connectors.OpenRequest) (*spec, error) {
	o := req.Settings
	s := &spec{rows: o.Int("rows"), rate: o.Int("rate"), seed: uint64(o.Int("seed")), batch: o.Int("batch_rows"), clock: req.Time()}
	for i := range kinds {
		if kinds[i].name == o.String("kind") {
			s.kind = &kinds[i]
		}
	}
	if s.rows < 0 || s.rate < 0 || s.batch <= 0 {
		return nil, errs.New(errs.Usage, "options", "generator: rows and rate must not be negative, batch_rows must be positive")
	}
	if req.Schema != nil && !sameFields(req.Schema, s.kind.fields) {
		return nil, errs.New(errs.Schema, "options", "generator: the columns of %s are fixed", s.kind.name).WithHint("leave schema= out")
	}
	s.schema = types.ArrowSchema(s.kind.fields)
	return s, nil
}

func sameFields(a, b []types.Field) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].Name != b[i].Name || !a[i].Type.Equal(b[i].Type) {
			return false
		}
	}
	return true
}

// make makes a batch.
func (s *spec) make(first, rows int64) arrow.RecordBatch {
	c := newColumns(s.kind.fields, int(rows))
	s.kind.fill(c, s.seed, first, int(rows))
	return array.NewRecordBatch(s.schema, c.finish(), rows)
}

// relation is a bounded run of rows.
type relation struct{ *spec }

func openRelation(_ context.Context, req connectors.OpenRequest) (flow.Relation, error) {
	s, err := parse(req)
	if err != nil {
		return nil, err
	}
	if s.rows == 0 {
		return nil, errs.New(errs.Usage, "open", "a table of generated rows needs an end").WithHint("set rows")
	}
	return relation{s}, nil
}

func (r relation) Fields() []types.Field { return r.kind.fields }
func (r relation) Stats() flow.Stats     { return flow.Stats{Rows: r.rows, Exact: true} }

func (r relation) Scan(_ context.Context, req flow.ScanRequest) (flow.Scan, error) {
	batch := r.batch
	if req.BatchRows > 0 {
		batch = int64(req.BatchRows)
	}
	rows := r.rows
	if req.Limit > 0 && len(req.Filters) == 0 {
		rows = min(rows, req.Limit)
	}
	fields := make([]arrow.Field, len(req.Columns))
	for i, c := range req.Columns {
		fields[i] = r.schema.Field(c)
	}
	return &scan{r: r, req: req, batch: batch, rows: rows, schema: arrow.NewSchema(fields, nil)}, nil
}

type scan struct {
	r           relation
	req         flow.ScanRequest
	batch, rows int64
	schema      *arrow.Schema
	next        atomic.Int64
}

func (s *scan) Next(ctx context.Context, _ int) (*flow.Morsel, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	n := s.next.Add(1) - 1
	first := n * s.batch
	if first >= s.rows {
		return nil, nil
	}
	rows := min(s.batch, s.rows-first)
	b := s.r.make(first, rows)
	cols := make([]arrow.Array, len(s.req.Columns))
	for i, c := range s.req.Columns {
		cols[i] = b.Column(c)
	}
	return &flow.Morsel{Seq: n, Batch: array.NewRecordBatch(s.schema, cols, rows)}, nil
}

func (s *scan) Close() error { return nil }

// stream has one split; its positions are row numbers.
type stream struct{ *spec }

func openStream(_ context.Context, req connectors.OpenRequest) (flow.Stream, error) {
	s, err := parse(req)
	if err != nil {
		return nil, err
	}
	return stream{s}, nil
}

func (s stream) Fields() []types.Field { return s.kind.fields }
func (s stream) Bounded() bool         { return s.rows > 0 }
func (s stream) Updating() bool        { return false }
func (s stream) Replayable() bool      { return true }

func (s stream) Splits(context.Context) ([]flow.Split, error) { return []flow.Split{{ID: "0"}}, nil }

// UntilLatest exists for streams with an end alone: the present end of endless rows is not defined.
func (s stream) UntilLatest(context.Context) (flow.Stream, error) {
	if s.rows == 0 {
		return nil, errs.New(errs.Usage, "open", "generated rows without an end have no latest row").WithHint("set rows")
	}
	return s, nil
}

func (s stream) Open(_ context.Context, _ flow.Split, from flow.Position) (flow.Reader, error) {
	r := &reader{stream: s, begun: s.clock.Now()}
	if from != "" {
		n, err := strconv.ParseInt(string(from), 10, 64)
		if err != nil || n < 0 {
			return nil, errs.New(errs.State, "open", "%q is no position of generated rows", string(from))
		}
		r.at, r.from = n, n
	}
	return r, nil
}

type reader struct {
	stream
	at, from int64
	begun    time.Time
}

func (r *reader) Read(ctx context.Context, limit int) (flow.Rows, error) {
	if err := ctx.Err(); err != nil {
		return flow.Rows{}, err
	}
	n := min(r.batch, int64(max(limit, 1)))
	if r.rows > 0 {
		n = min(n, r.rows-r.at)
	}
	if n <= 0 {
		return flow.Rows{}, io.EOF
	}
	if r.rate > 0 {
		// As many rows as are due; the first is due at once, the others one by one.
		due := r.due()
		if due <= r.at {
			wait := time.Duration(float64(r.at-r.from+1)/float64(r.rate)*float64(time.Second)) - r.clock.Now().Sub(r.begun)
			if err := r.clock.Sleep(ctx, max(wait, time.Millisecond)); err != nil {
				return flow.Rows{}, err
			}
			due = max(r.due(), r.at+1)
		}
		n = min(n, due-r.at)
	}
	b := r.make(r.at, n)
	places := &flow.Places{Unit: flow.RowNumber, Runs: []flow.Run{{At: r.at + 1}}}
	r.at += n
	return flow.Rows{Batch: b, Places: places, Next: flow.Position(strconv.FormatInt(r.at, 10))}, nil
}

func (r *reader) due() int64 {
	return r.from + int64(math.Floor(r.clock.Now().Sub(r.begun).Seconds()*float64(r.rate)))
}

func (r *reader) Close() error { return nil }
