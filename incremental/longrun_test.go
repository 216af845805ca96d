package incremental_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/core/clock"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/types"
	"github.com/riverbed/riverbed/incremental"
	"github.com/riverbed/riverbed/incremental/optest"
)

const longStreams = `
CREATE STREAM s (ts TIMESTAMP, k BIGINT, v TEXT, WATERMARK FOR ts AS ts - INTERVAL '1 second');
CREATE STREAM r (ts TIMESTAMP, k BIGINT, w TEXT, WATERMARK FOR ts AS ts - INTERVAL '1 second')`

var longQueries = map[string]string{
	"tumble":             "SELECT k, TUMBLE_START(ts, INTERVAL '5 seconds'), count(*), max(v), count(DISTINCT v) FROM s GROUP BY k, TUMBLE(ts, INTERVAL '5 seconds') EMIT IMMEDIATE",
	"hop":                "SELECT k, HOP_START(ts, INTERVAL '2 seconds', INTERVAL '5 seconds'), count(*), max(v) FROM s GROUP BY k, HOP(ts, INTERVAL '2 seconds', INTERVAL '5 seconds') EMIT IMMEDIATE",
	"hop, closed":        "SELECT k, HOP_END(ts, INTERVAL '2 seconds', INTERVAL '5 seconds'), count(*), max(v) FROM s GROUP BY k, HOP(ts, INTERVAL '2 seconds', INTERVAL '5 seconds') EMIT ON WATERMARK",
	"interval join":      "SELECT s.k, v, w FROM s JOIN r ON s.k = r.k AND r.ts BETWEEN s.ts - INTERVAL '2 seconds' AND s.ts + INTERVAL '2 seconds' EMIT IMMEDIATE",
	"interval left join": "SELECT s.k, v, w FROM s LEFT JOIN r ON s.k = r.k AND r.ts BETWEEN s.ts AND s.ts + INTERVAL '2 seconds' EMIT IMMEDIATE",
	"windows joined": `SELECT a.k, a.ws, n, m FROM (SELECT k, TUMBLE_START(ts, INTERVAL '5 seconds') AS ws, count(*) AS n FROM s GROUP BY k, TUMBLE(ts, INTERVAL '5 seconds')) a
		JOIN (SELECT k, TUMBLE_START(ts, INTERVAL '5 seconds') AS ws, count(*) AS m FROM r GROUP BY k, TUMBLE(ts, INTERVAL '5 seconds')) b ON a.k = b.k AND a.ws = b.ws EMIT IMMEDIATE`,
	"top-N of windows": "SELECT we, k, n FROM (SELECT *, row_number() OVER (PARTITION BY we ORDER BY n DESC, k) AS rn FROM (SELECT k, TUMBLE_END(ts, INTERVAL '5 seconds') AS we, count(*) AS n FROM s GROUP BY k, TUMBLE(ts, INTERVAL '5 seconds'))) WHERE rn <= 3 EMIT IMMEDIATE",
	"distinct":         "SELECT DISTINCT ts, k FROM s EMIT IMMEDIATE",
}

// longBatch is one second of a stream: times, keys that wander, texts of another length each.
func longBatch(fields []types.Field, second int) arrow.RecordBatch {
	const rows = 100
	r := clock.NewRand(uint64(second))
	ts, ks, vs := make([]int64, rows), make([]int64, rows), make([]types.Value, rows)
	for i := range ts {
		ts[i] = int64(second)*1_000_000 + int64(i)*10_000
		ks[i] = int64(second*10 + r.IntN(40))
		vs[i] = fmt.Sprintf("%0*d", 1+r.IntN(60), r.IntN(1000))
	}
	return array.NewRecordBatch(types.ArrowSchema(fields), []arrow.Array{
		kernels.NewFixed(fields[0].Type.Arrow(), ts, nil), kernels.NewFixed(fields[1].Type.Arrow(), ks, nil), types.ArrayOf(vs, fields[2].Type)}, rows)
}

// TestLongRunsStayBounded steps far beyond the watermark's reach: rows and bytes stop growing, and a graph restored on the way,
// when most of what it ever held has been dropped, goes on as the first.
func TestLongRunsStayBounded(t *testing.T) {
	const settled, end = 60, 300
	for name, query := range longQueries {
		t.Run(name, func(t *testing.T) {
			op, err := optest.Build(t, longStreams, query)
			if err != nil {
				t.Fatal(err)
			}
			g := op.Graph()
			var restored *incremental.Graph
			var rows, bytes int64 // the most until all has settled
			for second := range end {
				in := incremental.Input{Now: time.Unix(int64(second), 0)}
				for i, s := range g.Sources() {
					in.Pushes = append(in.Pushes, incremental.Push{Source: i, Split: "p", Batch: longBatch(s.Source.Fields, second)})
				}
				out, err := g.Step(in)
				if err != nil {
					t.Fatal(err)
				}
				if restored != nil {
					again, err := restored.Step(in)
					if err != nil {
						t.Fatal(err)
					}
					// The rows of an append-only step have no order.
					if a, b := slices.Sorted(slices.Values(op.Render(out.Delta))), slices.Sorted(slices.Values(op.Render(again.Delta))); !slices.Equal(a, b) {
						t.Fatalf("second %d: the restored graph shows\n%q\nand the first\n%q", second, b, a)
					}
				}
				st := g.Stats()
				if second < settled {
					rows, bytes = max(rows, st.StateRows), max(bytes, st.StateBytes)
				} else if st.StateRows > rows*3/2 || st.StateBytes > bytes*2 { // arrays double
					t.Fatalf("second %d: %d rows and %d bytes of state; in the first %d seconds at most %d and %d", second, st.StateRows, st.StateBytes, settled, rows, bytes)
				}
				if second == end/2 {
					snap, err := g.Snapshot()
					if err != nil {
						t.Fatal(err)
					}
					other, err := optest.Build(t, longStreams, query)
					if err != nil {
						t.Fatal(err)
					}
					restored = other.Graph()
					if err := restored.Restore(snap); err != nil {
						t.Fatal(err)
					}
				}
			}
		})
	}
}
