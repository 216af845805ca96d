package incremental_test

import (
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

// The streams of the benchmarks: bids on auctions, as in NEXMark.
const bidDDL = `
CREATE STREAM bid (auction BIGINT, bidder BIGINT, price BIGINT, channel TEXT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '1 second');
CREATE STREAM auction (id BIGINT, seller BIGINT, category BIGINT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '1 second');
CREATE STREAM latest (auction BIGINT, bidder BIGINT, price BIGINT, channel TEXT, ts TIMESTAMP, PRIMARY KEY (auction));
CREATE STREAM person (id BIGINT, name TEXT, state TEXT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '1 second')`

const benchRows = 10_000

// benchBatches makes batches of one stream; row i of batch b is at b*benchRows+i tenths of a millisecond.
func benchBatches(fields []types.Field, batches int) []arrow.RecordBatch {
	r := clock.NewRand(1)
	channels := []string{"apple", "google", "facebook", "baidu"}
	var out []arrow.RecordBatch
	for b := range batches {
		var cols []arrow.Array
		for _, f := range fields {
			switch f.Type.Kind {
			case types.Varchar:
				v := make([]types.Value, benchRows)
				for i := range v {
					v[i] = channels[r.IntN(len(channels))]
				}
				cols = append(cols, types.ArrayOf(v, f.Type))
			default:
				v := make([]int64, benchRows)
				for i := range v {
					at := b*benchRows + i
					switch f.Name {
					case "ts":
						v[i] = int64(at) * 100
					case "id":
						v[i] = int64(at)
					case "seller", "bidder":
						v[i] = int64(max(0, at-r.IntN(2000)))
					case "auction":
						v[i] = int64(max(0, at/10-r.IntN(100)))
					default:
						v[i] = int64(r.IntN(10_000))
					}
				}
				cols = append(cols, kernels.NewFixed(f.Type.Arrow(), v, nil))
			}
		}
		out = append(out, array.NewRecordBatch(types.ArrowSchema(fields), cols, benchRows))
	}
	return out
}

var benchQueries = []struct{ name, query string }{
	{"q0 pass through", "SELECT auction, bidder, price, channel, ts FROM bid"},
	{"q1 currency", "SELECT auction, bidder, price * 0.908, channel, ts FROM bid"},
	{"q2 filter", "SELECT auction, price FROM bid WHERE auction % 123 = 0"},
	{"q3 join", "SELECT name, state, a.id FROM auction a JOIN person p ON a.seller = p.id WHERE a.category < 1000 AND p.state IN ('apple', 'google')"},
	{"q7 tumble count", "SELECT auction, TUMBLE_START(ts, INTERVAL '10 seconds'), count(*) FROM bid GROUP BY auction, TUMBLE(ts, INTERVAL '10 seconds') EMIT ON WATERMARK"},
	{"tumble count, changelog", "SELECT auction, TUMBLE_START(ts, INTERVAL '10 seconds'), count(*) FROM bid GROUP BY auction, TUMBLE(ts, INTERVAL '10 seconds') EMIT IMMEDIATE"},
	{"q5 hop count", "SELECT auction, HOP_START(ts, INTERVAL '2 seconds', INTERVAL '10 seconds'), count(*) FROM bid GROUP BY auction, HOP(ts, INTERVAL '2 seconds', INTERVAL '10 seconds') EMIT ON WATERMARK"},
	{"q8 windowed join", `SELECT p.id, p.name, p.ws FROM (SELECT id, name, TUMBLE_START(ts, INTERVAL '10 seconds') AS ws FROM person GROUP BY id, name, TUMBLE(ts, INTERVAL '10 seconds')) p
		JOIN (SELECT seller, TUMBLE_START(ts, INTERVAL '10 seconds') AS ws FROM auction GROUP BY seller, TUMBLE(ts, INTERVAL '10 seconds')) a ON p.id = a.seller AND p.ws = a.ws EMIT ON WATERMARK`},
	{"q18 last bid", "SELECT auction, bidder, price, ts FROM (SELECT *, row_number() OVER (PARTITION BY bidder, auction ORDER BY ts DESC) AS rn FROM bid) WHERE rn = 1"},
	{"last row of a key", "SELECT auction, bidder, price, channel, ts FROM latest"},
}

// BenchmarkStep measures one core: batches of 10,000 rows, one a step and source, all columns given.
func BenchmarkStep(b *testing.B) {
	for _, q := range benchQueries {
		b.Run(q.name, func(b *testing.B) {
			const batches = 50
			op, err := optest.Build(b, bidDDL, q.query)
			if err != nil {
				b.Skip(err)
			}
			sources := op.Graph().Sources()
			input := make([][]arrow.RecordBatch, len(sources))
			for i, s := range sources {
				input[i] = benchBatches(s.Source.Fields, batches)
			}
			rows, out := 0, int64(0)
			for b.Loop() {
				op, _ = optest.Build(b, bidDDL, q.query)
				g := op.Graph()
				for k := range batches {
					var in incremental.Input
					in.Now = time.Unix(int64(k), 0)
					for s := range sources {
						in.Pushes = append(in.Pushes, incremental.Push{Source: s, Split: "p", Batch: input[s][k]})
						rows += benchRows
					}
					o, err := g.Step(in)
					if err != nil {
						b.Fatal(err)
					}
					out += int64(o.Delta.Rows())
				}
			}
			b.ReportMetric(float64(rows)/b.Elapsed().Seconds()/1e6, "Mrows/s")
			b.ReportMetric(float64(out)/float64(b.N), "rows_out")
		})
	}
}

// BenchmarkSmallStep measures a step that little arrives in: one row, on state that thousands of rows have left.
func BenchmarkSmallStep(b *testing.B) {
	for _, q := range benchQueries {
		b.Run(q.name, func(b *testing.B) {
			op, err := optest.Build(b, bidDDL, q.query)
			if err != nil {
				b.Skip(err)
			}
			g := op.Graph()
			batches := benchBatches(g.Sources()[0].Source.Fields, 2)
			step := func(rows arrow.RecordBatch) {
				if _, err := g.Step(incremental.Input{Pushes: []incremental.Push{{Split: "p", Batch: rows}}}); err != nil {
					b.Fatal(err)
				}
			}
			step(batches[0])
			at := int64(0)
			for b.Loop() {
				step(batches[1].NewSlice(at, at+1))
				at = (at + 1) % (benchRows - 1)
			}
		})
	}
}

// BenchmarkChanges measures what checkpoints cost a run: what changed is taken out behind every twentieth step of 10,000 rows, and beside it
// the whole state at the end.
func BenchmarkChanges(b *testing.B) {
	for _, q := range benchQueries {
		b.Run(q.name, func(b *testing.B) {
			const batches, every = 60, 20
			op, err := optest.Build(b, bidDDL, q.query, optest.Incremental())
			if err != nil {
				b.Skip(err)
			}
			sources := op.Graph().Sources()
			input := make([][]arrow.RecordBatch, len(sources))
			for i, s := range sources {
				input[i] = benchBatches(s.Source.Fields, batches)
			}
			var steps, changes, snapshot time.Duration
			saved := int64(0)
			for b.Loop() {
				op, _ = optest.Build(b, bidDDL, q.query, optest.Incremental())
				g := op.Graph()
				for k := range batches {
					var in incremental.Input
					in.Now = time.Unix(int64(k), 0)
					for s := range sources {
						in.Pushes = append(in.Pushes, incremental.Push{Source: s, Split: "p", Batch: input[s][k]})
					}
					start := time.Now()
					if _, err := g.Step(in); err != nil {
						b.Fatal(err)
					}
					steps += time.Since(start)
					if k%every == every-1 {
						start := time.Now()
						s, err := g.Changes()
						if err != nil {
							b.Fatal(err)
						}
						changes += time.Since(start)
						for _, o := range s.Operators {
							for _, p := range o.Parts {
								saved += p.Rows.NumRows()
							}
						}
					}
				}
				start := time.Now()
				if _, err := g.Snapshot(); err != nil {
					b.Fatal(err)
				}
				snapshot += time.Since(start)
			}
			n := float64(b.N)
			b.ReportMetric(steps.Seconds()*1e3/n/batches, "ms/step")
			b.ReportMetric(changes.Seconds()*1e3/n/(batches/every), "ms/changes")
			b.ReportMetric(snapshot.Seconds()*1e3/n, "ms/snapshot")
			b.ReportMetric(float64(saved)/n/(batches/every), "rows/changes")
		})
	}
}
