package repo

import (
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed"
	"github.com/riverbed/riverbed/connectors/memory"
	"github.com/riverbed/riverbed/core/types"
	"github.com/riverbed/riverbed/tests/go/sqltest"
)

// nexmarkEvents is the number of events of all three streams together.
const nexmarkEvents = 50_000

// nexmarkShare is how many of 50 events are of a stream.
var nexmarkShare = map[string]int{"person": 1, "auction": 3, "bid": 46}

// nexmarkQueries are the questions of the benchmark.
func nexmarkQueries(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../../bench/nexmark/queries.sql")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, part := range regexp.MustCompile(`(?m)^-- name: `).Split(string(text), -1)[1:] {
		name, body, _ := strings.Cut(part, "\n")
		out[strings.TrimSpace(name)] = strings.TrimSuffix(strings.TrimSpace(body), ";")
	}
	// The peers of bench/nexmark have no sessions.
	out["q11"] = "SELECT bidder, count(*) AS bid_count, SESSION_START(dateTime, INTERVAL '10 seconds') AS starttime, SESSION_END(dateTime, INTERVAL '10 seconds') AS endtime FROM bid GROUP BY bidder, SESSION(dateTime, INTERVAL '10 seconds')"
	out["q11 immediate"], out["q11"] = out["q11"]+" EMIT IMMEDIATE", out["q11"]+" EMIT ON WATERMARK"
	return out
}

// rowsOfQuery reads a result whole.
func rowsOfQuery(t *testing.T, s *riverbed.Session, text string) (*arrow.Schema, []arrow.RecordBatch) {
	t.Helper()
	q, err := s.Query(t.Context(), text, nil)
	if err != nil {
		t.Fatal(err)
	}
	var out []arrow.RecordBatch
	if err := sqltest.Each(q, func(b arrow.RecordBatch) { out = append(out, b) }); err != nil {
		t.Fatal(err)
	}
	return q.Schema(), out
}

// nexmarkPiece is a run of one stream's rows.
type nexmarkPiece struct {
	stream string
	at     int64 // event time of its first row
	rows   arrow.RecordBatch
}

// nexmarkPieces cuts the streams at random and puts the pieces in event order.
func nexmarkPieces(r *rand.Rand, streams map[string][]arrow.RecordBatch) []nexmarkPiece {
	var out []nexmarkPiece
	for _, name := range []string{"person", "auction", "bid"} {
		for _, b := range streams[name] {
			times := b.Column(b.Schema().FieldIndices("dateTime")[0]).(*array.Timestamp)
			for from := int64(0); from < b.NumRows(); {
				to := min(b.NumRows(), from+1+r.Int64N(int64(100*nexmarkShare[name])))
				out = append(out, nexmarkPiece{name, int64(times.Value(int(from))), b.NewSlice(from, to)})
				from = to
			}
		}
	}
	slices.SortStableFunc(out, func(a, b nexmarkPiece) int { return int(a.at - b.at) })
	return out
}

// TestNexmark runs every question of bench/nexmark as batch and, at random cuttings and over restarts into another
// parallelism, incrementally, and compares the two in the middle of the stream and at its end.
func TestNexmark(t *testing.T) {
	data, err := riverbed.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer data.Close()
	streams, schemas := map[string][]arrow.RecordBatch{}, map[string]*arrow.Schema{}
	for name, share := range nexmarkShare {
		if _, err := data.Query(t.Context(), fmt.Sprintf("CREATE TABLE %s WITH (connector = 'generator', kind = 'nexmark_%[1]s', rows = %d, seed = 1)",
			name, nexmarkEvents*share/50), nil); err != nil {
			t.Fatal(err)
		}
		schemas[name], streams[name] = rowsOfQuery(t, data, "SELECT * FROM "+name)
	}
	sideSchema, side := rowsOfQuery(t, data, "SELECT range AS key, 'value-' || range AS value FROM range(10000)")
	for name, text := range nexmarkQueries(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(1, uint64(len(text))))
			n := &nexmark{t: t, text: text, schemas: schemas, taken: map[string][]arrow.RecordBatch{}, shown: sqltest.Bag{}}
			n.open(sideSchema, side)
			n.play(r, nexmarkPieces(r, streams))
		})
	}
}

// nexmark is the run of one question.
type nexmark struct {
	t       *testing.T
	text    string
	schemas map[string]*arrow.Schema
	side    *riverbed.ArrowTable
	run     *riverbed.Manual
	types   []types.Type
	taken   map[string][]arrow.RecordBatch // what was pushed and stepped
	shown   sqltest.Bag                    // what the changes add up to
	ended   bool
}

func (n *nexmark) must(err error) {
	n.t.Helper()
	if err != nil {
		n.t.Fatal(err)
	}
}

func (n *nexmark) open(sideSchema *arrow.Schema, side []arrow.RecordBatch) {
	s, err := riverbed.Open(map[string]string{"strict_retractions": "true"})
	n.must(err)
	n.t.Cleanup(func() { _ = s.Close() })
	for name, schema := range n.schemas {
		fields, err := types.Schema(schema)
		n.must(err)
		n.must(s.AddStream(name, memory.New(fields, memory.Options{}), "dateTime - INTERVAL '4 seconds'", "dateTime"))
	}
	n.side, err = riverbed.NewArrowTable(sideSchema, side)
	n.must(err)
	n.must(s.Register("side", n.side))
	q, err := s.Query(n.t.Context(), n.text, nil)
	n.must(err)
	n.types = sqltest.TypesOf(q.Fields())
	n.run, err = q.Manual(riverbed.ManualOptions{Parallelism: 1, Strict: true})
	n.must(err)
	if slices.Contains(n.run.Sources(), "side") {
		for _, b := range side {
			n.must(n.run.Push("side", "", b, nil))
		}
		n.must(n.run.End("side"))
	}
}

func (n *nexmark) step() {
	d, err := n.run.Step()
	n.must(err)
	n.shown.AddBatch(d.Columns(), n.types, d.Rows(), d.Weights())
}

// play pushes the pieces, a few a step, and restarts twice on the way.
func (n *nexmark) play(r *rand.Rand, pieces []nexmarkPiece) {
	reads := n.run.Sources()
	pieces = slices.DeleteFunc(pieces, func(p nexmarkPiece) bool { return !slices.Contains(reads, p.stream) })
	restarts := []int{len(pieces) / 3, len(pieces) * 2 / 3}
	for i, p := range pieces {
		n.must(n.run.Push(p.stream, "", p.rows, nil))
		n.taken[p.stream] = append(n.taken[p.stream], p.rows)
		if slices.Contains(restarts, i) {
			n.step()
			n.compare()
			n.must(n.run.Restart(1 + r.IntN(4)))
		} else if r.IntN(4) == 0 {
			n.step()
		}
	}
	n.run.EndAll()
	n.ended = true
	n.step()
	n.compare()
	if late := n.run.Late().NumRows(); late > 0 {
		n.t.Errorf("%d rows were late, and batch has them", late)
	}
}

// compare asks batch about the rows pushed so far. Of windows that close on the watermark, those that have closed stand there
// already as they will be at the end.
func (n *nexmark) compare() {
	n.t.Helper()
	closed := strings.HasSuffix(n.text, "EMIT ON WATERMARK")
	s, err := riverbed.Open(nil)
	n.must(err)
	defer s.Close()
	for name, schema := range n.schemas {
		table, err := riverbed.NewArrowTable(schema, n.taken[name])
		n.must(err)
		n.must(s.Register(name, table))
	}
	n.must(s.Register("side", n.side))
	q, err := s.Query(n.t.Context(), n.text, nil)
	n.must(err)
	want := sqltest.Bag{}
	n.must(sqltest.Each(q, func(b arrow.RecordBatch) { want.AddBatch(b.Columns(), n.types, int(b.NumRows()), nil) }))
	if closed && !n.ended {
		for row, k := range n.shown {
			if k > want[row] {
				n.t.Fatalf("%s stands %d times before its time, in batch %d times", row, k, want[row])
			}
		}
		return
	}
	if diff := n.shown.Diff(want); diff != "" {
		n.t.Fatalf("incremental less batch:\n%.2000s", diff)
	}
	if len(want) == 0 {
		n.t.Error("the answer is empty, which proves nothing")
	}
}
