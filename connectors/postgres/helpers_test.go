package postgres

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/connectors"
	"github.com/riverbed/riverbed/connectors/connectortest"
	"github.com/riverbed/riverbed/connectors/postgres/pgtest"
	"github.com/riverbed/riverbed/core/clock"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/types"
)

var (
	sharedOnce sync.Once
	shared     *pgtest.Server
	sharedErr  error
)

func TestMain(m *testing.M) {
	_ = os.Setenv("PGPASSWORD", pgtest.Password)
	code := m.Run()
	if shared != nil {
		shared.Close()
	}
	os.Exit(code)
}

// fresh is a database of its own in a server that the tests of this package share; those that kill it start one.
func fresh(t *testing.T) (s *pgtest.Server, db string) {
	t.Helper()
	sharedOnce.Do(func() { shared, sharedErr = pgtest.New("fsync = off", "full_page_writes = off") }) // it is not killed
	if sharedErr != nil {
		if !pgtest.Installed() {
			t.Skip(sharedErr)
		}
		t.Fatal(sharedErr)
	}
	name := strings.ToLower(strings.NewReplacer("/", "_", "#", "_").Replace(t.Name()))
	return shared, shared.Database(t, name)
}

// with adds options to those by which a database is reached.
func with(s *pgtest.Server, db string, options ...string) map[string]string {
	out := map[string]string{"url": s.URL(db)}
	for i := 0; i < len(options); i += 2 {
		out[options[i]] = options[i+1]
	}
	return out
}

// batch makes a record batch of rows that are written as values between bars; "" is NULL. A weight stands before the row: "-1: a|b".
func batch(t testing.TB, fields []types.Field, rows ...string) arrow.RecordBatch {
	t.Helper()
	cols := make([][]types.Value, len(fields))
	var weights []types.Value
	for _, row := range rows {
		if w, rest, ok := strings.Cut(row, ": "); ok && (w[0] == '+' || w[0] == '-') {
			n, err := types.ParseValue(strings.TrimPrefix(w, "+"), types.Int64)
			if err != nil {
				t.Fatal(err)
			}
			weights, row = append(weights, n), rest
		}
		for i, text := range strings.Split(row, "|") {
			if text == "" {
				cols[i] = append(cols[i], nil)
				continue
			}
			v, err := types.ParseValue(text, fields[i].Type)
			if err != nil {
				t.Fatal(err)
			}
			cols[i] = append(cols[i], v)
		}
	}
	schema := types.ArrowSchema(fields)
	var arrays []arrow.Array
	for i, f := range fields {
		arrays = append(arrays, types.ArrayOf(cols[i], f.Type))
	}
	if weights != nil {
		schema, arrays = flow.WithWeights(schema), append(arrays, types.ArrayOf(weights, types.Int64))
	}
	return array.NewRecordBatch(schema, arrays, int64(len(rows)))
}

// open opens a sink.
func open(t testing.TB, options map[string]string, req connectors.SinkRequest) *writer {
	t.Helper()
	w, err := tryOpen(t, options, req)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func tryOpen(t testing.TB, options map[string]string, req connectors.SinkRequest) (*writer, error) {
	t.Helper()
	req.Settings = connectortest.Parse(t, Sink.Options, options)
	if req.Keys == nil { // the first column tells rows apart, and so do two columns
		req.Keys = [][]int{{0}, {0, 1}}
	}
	w, err := Sink.Open(context.Background(), req)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { _ = w.Close() })
	return w.(*writer), nil
}

// write writes deltas and makes them visible.
func write(t testing.TB, w connectors.Writer, batches ...arrow.RecordBatch) {
	t.Helper()
	for _, b := range batches {
		if err := w.Write(t.Context(), flow.Delta{Batch: b}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Stage(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
}

// expect reads a table with a client that has nothing of ours.
func expect(t testing.TB, s *pgtest.Server, db, query string, want ...string) {
	t.Helper()
	got := s.SQL(t, db, query)
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Fatalf("%s\ngives\n%s\nand should give\n%s", query, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// field is a column written as "name TYPE".
func columns(t testing.TB, text ...string) []types.Field {
	t.Helper()
	out := make([]types.Field, len(text))
	for i, c := range text {
		name, typ, _ := strings.Cut(c, " ")
		out[i] = types.Field{Name: name, Type: typeOf(t, typ)}
	}
	return out
}

func typeOf(t testing.TB, text string) types.Type {
	t.Helper()
	if elem, ok := strings.CutSuffix(text, "[]"); ok {
		return types.ListOf(typeOf(t, elem))
	}
	var w, s int
	if n, _ := fmt.Sscanf(text, "DECIMAL(%d,%d)", &w, &s); n == 2 {
		return types.Dec(w, s)
	}
	for _, known := range []types.Type{types.Bool, types.Int8, types.Int16, types.Int32, types.Int64, types.Uint8, types.Uint16, types.Uint32, types.Uint64, types.Int128,
		types.Float32, types.Float64, types.String, types.JSONType, types.Binary, types.Date32, types.TimeUS, types.TsS, types.TsMS, types.TsUS, types.TsNS, types.TsTZ, types.Span, types.UUIDType} {
		if known.String() == text {
			return known
		}
	}
	t.Fatalf("no type %s", text)
	return types.Type{}
}

// hasty is a clock on which nobody waits.
type hasty struct{ clock.Wall }

func (hasty) Sleep(ctx context.Context, _ time.Duration) error { return ctx.Err() }
