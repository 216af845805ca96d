// Package connectortest holds the tests that every connector passes, and helpers to read one in a test.
//
// Invariant: a connector's test gives a small config and inherits every case.
package connectortest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sort"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/connectors"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/types"
)

// Parse reads options by a declaration.
func Parse(t testing.TB, o connectors.Options, given map[string]string) connectors.Settings {
	t.Helper()
	s, err := o.Parse("the connector", given)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// OpenRelation opens bounded input.
func OpenRelation(t testing.TB, src connectors.Source, options map[string]string, schema ...types.Field) flow.Relation {
	t.Helper()
	r, err := TryRelation(src, options, schema...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TryRelation is OpenRelation for tests of errors.
func TryRelation(src connectors.Source, options map[string]string, schema ...types.Field) (flow.Relation, error) {
	s, err := src.Options.Parse("the connector", options)
	if err != nil {
		return nil, err
	}
	return src.Relation(context.Background(), connectors.OpenRequest{Settings: s, Schema: schema})
}

// OpenStream opens live input.
func OpenStream(t testing.TB, src connectors.Source, options map[string]string, schema ...types.Field) flow.Stream {
	t.Helper()
	s, err := src.Stream(context.Background(), connectors.OpenRequest{Settings: Parse(t, src.Options, options), Schema: schema})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Columns prints the columns of a relation or stream: "a BIGINT, b VARCHAR".
func Columns(fields []types.Field) string {
	parts := make([]string, len(fields))
	for i, f := range fields {
		parts[i] = f.Name + " " + f.Type.String()
	}
	return strings.Join(parts, ", ")
}

// Row prints a row.
func Row(b arrow.RecordBatch, row int) string {
	parts := make([]string, b.NumCols())
	for i, c := range b.Columns() {
		parts[i] = "NULL"
		if c.IsValid(row) {
			parts[i] = c.ValueStr(row)
		}
	}
	return strings.Join(parts, "|")
}

// Scan reads all rows of a relation in scan order; req.Columns nil reads all columns.
func Scan(t testing.TB, r flow.Relation, req flow.ScanRequest) []string {
	t.Helper()
	rows, err := TryScan(r, req)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// TryScan is Scan for tests of errors. It checks the form of every batch.
func TryScan(r flow.Relation, req flow.ScanRequest) ([]string, error) {
	if req.Columns == nil {
		for i := range r.Fields() {
			req.Columns = append(req.Columns, i)
		}
	}
	if req.Workers == 0 {
		req.Workers = 2
	}
	ctx := context.Background()
	s, err := r.Scan(ctx, req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = s.Close() }()
	morsels := map[int64]arrow.RecordBatch{}
	for w := range req.Workers { // one after another: what one leaves over, the next must find
		for {
			m, err := s.Next(ctx, w)
			if err != nil {
				return nil, err
			}
			if m == nil {
				break
			}
			if morsels[m.Seq] != nil {
				return nil, fmt.Errorf("two morsels have the number %d", m.Seq)
			}
			morsels[m.Seq] = m.Batch
			fields := make([]types.Field, len(req.Columns))
			for i, c := range req.Columns {
				fields[i] = r.Fields()[c]
			}
			if err := form(m.Batch, fields); err != nil {
				return nil, err
			}
			if w == 0 && req.Workers > 1 && len(morsels)%2 == 1 {
				break // let another worker have some
			}
		}
	}
	for w := range req.Workers {
		for {
			m, err := s.Next(ctx, w)
			if err != nil {
				return nil, err
			}
			if m == nil {
				break
			}
			morsels[m.Seq] = m.Batch
		}
	}
	seqs := make([]int64, 0, len(morsels))
	for q := range morsels {
		seqs = append(seqs, q)
	}
	sort.Slice(seqs, func(i, j int) bool { return seqs[i] < seqs[j] })
	var out []string
	for _, q := range seqs {
		for i := range int(morsels[q].NumRows()) {
			out = append(out, Row(morsels[q], i))
		}
	}
	return out, nil
}

// form checks that a batch has exactly the Arrow form of its fields.
func form(b arrow.RecordBatch, fields []types.Field) error {
	if int(b.NumCols()) != len(fields) {
		return fmt.Errorf("a batch has %d columns, %d were asked for", b.NumCols(), len(fields))
	}
	for i, f := range fields {
		c := b.Column(i)
		if want := f.Type.Arrow(); !arrow.TypeEqual(c.DataType(), want, arrow.CheckMetadata()) {
			return fmt.Errorf("column %q is %s, the form of %s is %s", f.Name, c.DataType(), f.Type, want)
		}
		if int64(c.Len()) != b.NumRows() {
			return fmt.Errorf("column %q has %d values in a batch of %d rows", f.Name, c.Len(), b.NumRows())
		}
		if v, ok := c.(interface{ ValidateFull() error }); ok {
			if err := v.ValidateFull(); err != nil {
				return fmt.Errorf("column %q: %w", f.Name, err)
			}
		}
	}
	return nil
}

// Stretch is what one Read brought: its rows, its bad rows, and where it ends.
type Stretch struct {
	Rows, Bad []string
	Next      flow.Position
}

// Drain reads a split from a position to its end, or until idle returns without rows come one after another.
func Drain(t testing.TB, s flow.Stream, split flow.Split, from flow.Position, limit, idle int) []Stretch {
	t.Helper()
	ctx := context.Background()
	r, err := s.Open(ctx, split, from)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	var out []Stretch
	for quiet := 0; quiet < max(idle, 1); {
		rows, err := r.Read(ctx, limit)
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		if rows.Batch == nil && len(rows.Bad) == 0 {
			quiet++
			continue
		}
		quiet = 0
		if rows.Batch != nil {
			if n := int(rows.Batch.NumRows()); n > limit {
				t.Fatalf("a read of at most %d rows brought %d", limit, n)
			}
			fields := s.Fields()
			if s.Updating() {
				fields = append(append([]types.Field{}, fields...), types.Field{Name: flow.WeightColumn, Type: types.Int64})
			}
			if err := form(rows.Batch, fields); err != nil {
				t.Fatal(err)
			}
		}
		out = append(out, stretch(rows))
	}
	return out
}

func stretch(rows flow.Rows) Stretch {
	st := Stretch{Next: rows.Next}
	if rows.Batch != nil {
		for i := range int(rows.Batch.NumRows()) {
			st.Rows = append(st.Rows, Row(rows.Batch, i))
		}
	}
	for _, b := range rows.Bad {
		st.Bad = append(st.Bad, string(b.Raw)+": "+b.Error)
	}
	return st
}

// Flat joins what stretches brought.
func Flat(stretches []Stretch) (rows, bad []string) {
	for _, s := range stretches {
		rows, bad = append(rows, s.Rows...), append(bad, s.Bad...)
	}
	return rows, bad
}

// StreamConfig is a bounded stream under test. Open is called for each reading and must give the same content.
type StreamConfig struct {
	Open  func(t testing.TB) flow.Stream
	Limit int // rows a Read
}

// Stream runs the conformance tests of streams: from every position that a reading passes the same suffix is read
// again, whatever the size of reads; positions are not reused; and two readers that are open at once read the same rows.
func Stream(t *testing.T, c StreamConfig) {
	t.Helper()
	s := c.Open(t)
	if !s.Bounded() {
		l, ok := s.(flow.LatestStream)
		if !ok {
			t.Fatal("an unbounded stream without UntilLatest cannot be tested to its end")
		}
		var err error
		if s, err = l.UntilLatest(context.Background()); err != nil {
			t.Fatal(err)
		}
		if !s.Bounded() {
			t.Fatal("UntilLatest gave a stream that never ends")
		}
	}
	splits, err := s.Splits(context.Background())
	if err != nil || len(splits) == 0 {
		t.Fatalf("splits: %v, %v", splits, err)
	}
	for _, split := range splits {
		whole := Drain(t, s, split, "", c.Limit, 1)
		again := Drain(t, s, split, "", c.Limit, 1)
		same(t, split, "the beginning", again, whole)
		for _, both := range together(t, s, split, c.Limit) {
			same(t, split, "the beginning by one of two", both, whole)
		}
		if !s.Replayable() {
			continue
		}
		seen := map[flow.Position]bool{}
		for i, st := range whole {
			if st.Next == "" || seen[st.Next] {
				t.Fatalf("split %s: position %q is empty or comes twice", split.ID, st.Next)
			}
			seen[st.Next] = true
			for _, limit := range []int{c.Limit, 1 + c.Limit/3} {
				same(t, split, string(st.Next), Drain(t, s, split, st.Next, limit, 1), whole[i+1:])
			}
		}
	}
}

// together reads a split with two readers in turns.
func together(t *testing.T, s flow.Stream, split flow.Split, limit int) [2][]Stretch {
	t.Helper()
	var readers [2]flow.Reader
	for i := range readers {
		r, err := s.Open(t.Context(), split, "")
		if err != nil {
			t.Fatalf("split %s: the reader %d of two: %v", split.ID, i+1, err)
		}
		defer func() { _ = r.Close() }()
		readers[i] = r
	}
	var out [2][]Stretch
	for ended := [2]bool{}; !ended[0] || !ended[1]; {
		for i, r := range readers {
			if ended[i] {
				continue
			}
			rows, err := r.Read(t.Context(), limit)
			if ended[i] = errors.Is(err, io.EOF); err != nil && !ended[i] {
				t.Fatal(err)
			}
			out[i] = append(out[i], stretch(rows))
		}
	}
	return out
}

func same(t *testing.T, split flow.Split, from string, got, want []Stretch) {
	t.Helper()
	gr, gb := Flat(got)
	wr, wb := Flat(want)
	if strings.Join(gr, "\n") != strings.Join(wr, "\n") || strings.Join(gb, "\n") != strings.Join(wb, "\n") {
		t.Fatalf("split %s read again from %s: %d rows and %d bad ones, want %d and %d\ngot  %.300q\nwant %.300q", split.ID, from, len(gr), len(gb), len(wr), len(wb), gr, wr)
	}
}
