package riverbed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/core/clock"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/types"
)

// db is a session whose failures fail the test.
type db struct {
	*Session
	t *testing.T
}

func openDB(t *testing.T, settings ...string) db {
	t.Helper()
	config := map[string]string{}
	for i := 0; i < len(settings); i += 2 {
		config[settings[i]] = settings[i+1]
	}
	s, err := Open(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return db{s, t}
}

// withClock puts the session on a clock that moves only when told.
func (d db) withClock(c *clock.Fake) db {
	d.clock = c
	return d
}

func (d db) query(text string) *Query {
	d.t.Helper()
	q, err := d.Query(d.t.Context(), text, nil)
	if err != nil {
		d.t.Fatalf("%s\n%v", text, err)
	}
	return q
}

// run runs statements whose rows do not matter.
func (d db) run(text string) {
	d.t.Helper()
	if q := d.query(text); q != nil && !q.Pipeline() && !q.Live() {
		if _, err := q.all(d.t.Context()); err != nil {
			d.t.Fatalf("%s\n%v", text, err)
		}
	}
}

// rows runs a query and prints its rows: "1|a".
func (d db) rows(text string) []string {
	d.t.Helper()
	q := d.query(text)
	batches, err := q.all(d.t.Context())
	if err != nil {
		d.t.Fatalf("%s\n%v", text, err)
	}
	return rowLines(q.columns, batches)
}

func rowLines(fields []types.Field, batches []arrow.RecordBatch) []string {
	var out []string
	for _, b := range batches {
		for r := range int(b.NumRows()) {
			vals := make([]string, len(fields))
			for c, f := range fields {
				vals[c] = "NULL"
				if v := types.ValueAt(b.Column(c), r, f.Type); v != nil {
					vals[c] = types.Format(v, f.Type)
				}
			}
			out = append(out, strings.Join(vals, "|"))
		}
	}
	return out
}

// is runs a query and compares its rows, in order.
func (d db) is(text string, want ...string) {
	d.t.Helper()
	if got := d.rows(text); !slices.Equal(got, want) {
		d.t.Errorf("%s\ngot  %q\nwant %q", text, got, want)
	}
}

// has runs a query and compares its rows, whatever their order.
func (d db) has(text string, want ...string) {
	d.t.Helper()
	got := d.rows(text)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		d.t.Errorf("%s\ngot  %q\nwant %q", text, got, want)
	}
}

// fails runs a text that must fail with the kind and a message that has all the parts.
func (d db) fails(text string, kind errs.Kind, parts ...string) {
	d.t.Helper()
	q, err := d.Query(d.t.Context(), text, nil)
	if err == nil && q != nil {
		_, err = q.all(d.t.Context())
	}
	failsWith(d.t, text, err, kind, parts...)
}

func failsWith(t *testing.T, what string, err error, kind errs.Kind, parts ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("%s\ndoes not fail", what)
		return
	}
	if !errs.Is(err, kind) {
		t.Errorf("%s\nis an error of kind %v, not %v: %v", what, errs.As(err).Kind, kind, err)
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("%s\nthe error does not say %q:\n%v", what, p, err)
		}
	}
}

// follow subscribes to a query.
func (d db) follow(text string, o SubscribeOptions) *Subscription {
	d.t.Helper()
	sub, err := d.query(text).Subscribe(context.Background(), o)
	if err != nil {
		d.t.Fatalf("%s\n%v", text, err)
	}
	d.t.Cleanup(func() { _ = sub.Close() })
	return sub
}

// next reads the next delta that has rows: "+1 a|2".
func next(t *testing.T, sub *Subscription) []string {
	t.Helper()
	for {
		delta, err := sub.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if delta.Rows() > 0 {
			return deltaLines(sub.Fields(), delta)
		}
	}
}

func deltaLines(fields []types.Field, d flow.Delta) []string {
	lines := rowLines(fields, []arrow.RecordBatch{d.Batch})
	for i := range lines {
		w := int64(1)
		if ws := d.Weights(); ws != nil {
			w = ws[i]
		}
		lines[i] = fmt.Sprintf("%+d %s", w, lines[i])
	}
	slices.Sort(lines)
	return lines
}

// accumulate reads a subscription to its end and adds its deltas up.
func accumulate(t *testing.T, sub *Subscription) []string {
	t.Helper()
	sum := NewAccumulated(sub.Fields())
	for {
		d, err := sub.Next(t.Context())
		if errors.Is(err, io.EOF) {
			lines := rowLines(sub.Fields(), sum.Batches())
			slices.Sort(lines)
			return lines
		}
		if err != nil {
			t.Fatal(err)
		}
		sum.Add(d)
	}
}

func expect(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// push puts rows into a stream over the connector 'memory': values are the types' Go values.
func (d db) push(stream, split string, rows ...[]types.Value) {
	d.t.Helper()
	d.pushWeighted(stream, split, nil, rows...)
}

func (d db) pushWeighted(stream, split string, weights []int64, rows ...[]types.Value) {
	d.t.Helper()
	p, err := d.PushStream(stream)
	if err != nil {
		d.t.Fatal(err)
	}
	if err := p.Push(d.t.Context(), split, batchOf(d.cat.Load().get(stream).source.Fields, rows...), weights); err != nil {
		d.t.Fatal(err)
	}
}

func batchOf(fields []types.Field, rows ...[]types.Value) arrow.RecordBatch {
	cols := make([]arrow.Array, len(fields))
	for c, f := range fields {
		vals := make([]types.Value, len(rows))
		for r := range rows {
			vals[r] = rows[r][c]
			if n, ok := vals[r].(int); ok {
				vals[r] = int64(n)
			}
		}
		cols[c] = types.ArrayOf(vals, f.Type)
	}
	return array.NewRecordBatch(types.ArrowSchema(fields), cols, int64(len(rows)))
}

type row = []types.Value

// sec is a timestamp, in seconds after 1970.
func sec(n int64) int64 { return n * 1_000_000 }

func containsFold(s, part string) bool {
	return strings.Contains(strings.ToLower(s), strings.ToLower(part))
}
