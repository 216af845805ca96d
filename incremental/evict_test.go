package incremental_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/riverbed/riverbed/core/clock"
	"github.com/riverbed/riverbed/core/types"
	"github.com/riverbed/riverbed/incremental"
	"github.com/riverbed/riverbed/incremental/optest"
	"github.com/riverbed/riverbed/state"
)

const evictDDL = `CREATE STREAM sale (shop BIGINT, item TEXT, price DOUBLE, cents DECIMAL(18,2), day DATE);
CREATE STREAM latest (shop BIGINT, item TEXT, price DOUBLE, cents DECIMAL(18,2), day DATE, PRIMARY KEY (shop, day));
CREATE STREAM visit (ts TIMESTAMP, shop BIGINT, item TEXT, price DOUBLE, cents DECIMAL(18,2), WATERMARK FOR ts AS ts - INTERVAL '2 seconds')`

// All kinds of accumulators: exact sums, plain numbers, texts, lists, sketches. Then the other operators whose rows leave.
var evictQueries = []string{
	"SELECT shop, count(*), sum(price), avg(price), min(item), max(price), sum(cents), bool_or(price > 5), stddev(price), arg_max(item, price), count_if(price > 3) FROM sale GROUP BY shop",
	"SELECT shop, item, count(price), sum(shop), max(day), string_agg(item, ','), list(price), median(price), approx_count_distinct(item), mode(item) FROM sale GROUP BY shop, item",
	"SELECT item, cents, day, first(price), sum(price) FROM sale GROUP BY item, cents, day",
	"SELECT n, count(*) FROM (SELECT shop, count(*) AS n FROM sale GROUP BY shop) GROUP BY n",
	"SELECT DISTINCT shop, price FROM sale",
	"SELECT shop, item FROM sale UNION SELECT shop + 1, item FROM sale",
	"SELECT shop, item FROM sale WHERE price > 3 EXCEPT SELECT shop, item FROM sale WHERE price < 4",
	"SELECT * FROM latest",
	"SELECT item, count(*), sum(price) FROM latest GROUP BY item",
	"SELECT a.shop, a.day, b.price FROM latest a JOIN latest b ON a.shop = b.shop",
	"SELECT a.shop, b.item, b.cents, b.day FROM latest a JOIN latest b ON a.item = b.item AND a.price < b.price",
	"SELECT * FROM latest a JOIN latest b ON a.item = b.item AND a.cents = b.cents AND a.shop = b.shop",
	"SELECT a.shop, a.day, b.price FROM sale a JOIN sale b ON a.shop = b.shop AND a.day = b.day",
	"SELECT a.cents, b.item FROM sale a JOIN sale b ON a.item = b.item AND a.price < b.price AND a.cents = b.cents",
	"SELECT a.shop, n FROM sale a JOIN (SELECT shop, count(*) AS n FROM latest GROUP BY shop) b ON a.shop = b.shop",
	"SELECT a.shop, a.day, b.price FROM sale a LEFT JOIN latest b ON a.shop = b.shop AND a.day = b.day",
	"SELECT a.shop, b.cents FROM latest a FULL JOIN latest b ON a.item = b.item AND a.price < b.price AND a.shop = b.shop",
	"SELECT a.shop, b.item FROM latest a FULL JOIN sale b ON a.shop = b.shop AND a.cents = b.cents",
	"SELECT shop, item FROM latest a WHERE EXISTS (SELECT * FROM sale b WHERE b.shop = a.shop AND b.day = a.day)",
	"SELECT shop, item FROM sale a WHERE NOT EXISTS (SELECT * FROM latest b WHERE b.shop = a.shop AND b.price < a.price)",
	"SELECT shop, count(DISTINCT price), sum(DISTINCT cents), count(DISTINCT item) FILTER (WHERE price > 3), count(*) FROM sale GROUP BY shop",
	"SELECT item, cents, count(DISTINCT price), list(DISTINCT day), count(DISTINCT shop) FROM latest GROUP BY item, cents",
	"SELECT shop, min(price), max(cents), median(price), mode(item), count(DISTINCT day), count(DISTINCT item), count(DISTINCT price) FROM latest GROUP BY shop",
	"SELECT count(DISTINCT price), count(DISTINCT shop), count(*) FROM latest",
	"SELECT item, day, count(DISTINCT shop), count(DISTINCT price) FROM sale GROUP BY item, day",
	"SELECT count(DISTINCT price), count(DISTINCT shop), count(*) FROM sale",
	"SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY shop ORDER BY price DESC) AS rn FROM sale) WHERE rn <= 6",
	"SELECT shop, price FROM (SELECT *, row_number() OVER (PARTITION BY shop, item ORDER BY day, cents) AS rn FROM sale) WHERE rn = 1",
	"SELECT * FROM (SELECT *, rank() OVER (PARTITION BY shop ORDER BY price DESC) AS rn FROM sale) WHERE rn <= 3",
	"SELECT * FROM (SELECT *, rank() OVER (PARTITION BY shop ORDER BY day) AS rn FROM sale) WHERE rn = 1",
	"SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY item, cents ORDER BY price, shop) AS rn FROM latest) WHERE rn <= 2",
	"SELECT shop, item FROM (SELECT *, dense_rank() OVER (PARTITION BY shop ORDER BY item) AS rn FROM latest) WHERE rn <= 2",
	"SELECT shop, item FROM (SELECT *, rank() OVER (PARTITION BY shop ORDER BY n DESC) AS rn FROM (SELECT shop, item, count(*) AS n FROM sale GROUP BY shop, item)) WHERE rn = 1",
	"SELECT shop, price, sum(price) OVER (PARTITION BY shop ORDER BY price, item ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS s FROM sale",
	"SELECT shop, item, lag(item) OVER (PARTITION BY shop ORDER BY item) AS p, rank() OVER (PARTITION BY shop ORDER BY item) AS r FROM latest",
	"SELECT window_end, shop, price, rn FROM (SELECT *, row_number() OVER (PARTITION BY window_end, shop ORDER BY price DESC) AS rn FROM TABLE(TUMBLE(TABLE visit, DESCRIPTOR(ts), INTERVAL '4 seconds'))) WHERE rn <= 3 EMIT ON WATERMARK",
	"SELECT window_end, shop, price, rn FROM (SELECT *, rank() OVER (PARTITION BY window_end, shop ORDER BY price DESC) AS rn FROM TABLE(TUMBLE(TABLE visit, DESCRIPTOR(ts), INTERVAL '4 seconds'))) WHERE rn <= 2 EMIT ON WATERMARK",
	"SELECT window_end, shop, price, rn FROM (SELECT *, rank() OVER (PARTITION BY window_end, shop ORDER BY price DESC) AS rn FROM TABLE(TUMBLE(TABLE visit, DESCRIPTOR(ts), INTERVAL '4 seconds'))) WHERE rn = 1 EMIT ON WATERMARK",
	"SELECT window_end, item, price, rn FROM (SELECT *, row_number() OVER (PARTITION BY window_end, item ORDER BY price DESC) AS rn FROM TABLE(TUMBLE(TABLE visit, DESCRIPTOR(ts), INTERVAL '4 seconds'))) WHERE rn <= 2 EMIT IMMEDIATE",
	"SELECT TUMBLE_END(ts, INTERVAL '4 seconds'), shop, count(*), sum(price), max(item), count(DISTINCT item), list(cents) FROM visit GROUP BY shop, TUMBLE(ts, INTERVAL '4 seconds') EMIT ON WATERMARK",
	"SELECT TUMBLE_START(ts, INTERVAL '3 seconds'), item, count(*), count(DISTINCT shop), median(price) FROM visit GROUP BY item, TUMBLE(ts, INTERVAL '3 seconds') EMIT IMMEDIATE",
	"SELECT DISTINCT ts, item FROM visit EMIT IMMEDIATE",
	"SELECT w, n, count(DISTINCT shop), count(*) FROM (SELECT TUMBLE_END(ts, INTERVAL '3 seconds') AS w, shop, count(*) AS n FROM visit GROUP BY shop, TUMBLE(ts, INTERVAL '3 seconds')) GROUP BY w, n EMIT IMMEDIATE",
	"SELECT shop, HOP_START(ts, INTERVAL '2 seconds', INTERVAL '6 seconds'), count(*), sum(price), min(item) FROM visit GROUP BY shop, HOP(ts, INTERVAL '2 seconds', INTERVAL '6 seconds') EMIT ON WATERMARK",
	"SELECT shop, item, HOP_END(ts, INTERVAL '2 seconds', INTERVAL '5 seconds'), count(*), sum(price) FROM visit GROUP BY shop, item, HOP(ts, INTERVAL '2 seconds', INTERVAL '5 seconds') EMIT IMMEDIATE",
	"SELECT a.shop, a.ts, b.ts, b.price FROM visit a JOIN visit b ON a.shop = b.shop AND b.ts BETWEEN a.ts AND a.ts + INTERVAL '3 seconds'",
	"SELECT a.shop, a.ts, b.ts, b.item FROM visit a LEFT JOIN visit b ON a.shop = b.shop AND b.ts BETWEEN a.ts - INTERVAL '1 second' AND a.ts + INTERVAL '3 seconds'",
	"SELECT a.shop, a.ts, b.ts FROM visit a FULL JOIN (SELECT DISTINCT ts, shop FROM visit) b ON a.shop = b.shop AND a.ts BETWEEN b.ts AND b.ts + INTERVAL '2 seconds'",
	"SELECT shop, ts FROM visit a WHERE EXISTS (SELECT * FROM visit b WHERE b.shop = a.shop AND b.ts > a.ts AND b.ts < a.ts + INTERVAL '4 seconds')",
	"SELECT a.shop, a.ts, b.n FROM visit a JOIN (SELECT ts, shop, count(*) AS n FROM visit GROUP BY ts, shop) b ON a.shop = b.shop AND b.ts BETWEEN a.ts - INTERVAL '2 seconds' AND a.ts",
	"SELECT l.day, n FROM latest l JOIN (SELECT item, count(*) AS n FROM sale GROUP BY item) USING (item)",
}

func sales(r clock.Rand, fields []types.Field, n, step int) arrow.RecordBatch {
	var cols []arrow.Array
	for _, f := range fields {
		v := make([]types.Value, n)
		for i := range v {
			if r.IntN(12) == 0 {
				continue
			}
			switch f.Name {
			case "shop":
				v[i] = int64(r.IntN(40))
			case "item":
				v[i] = fmt.Sprint("item ", r.IntN(6))
			case "price":
				v[i] = float64(r.IntN(100)) / 7
				if r.IntN(30) == 0 {
					v[i] = math.Copysign(0, -1)
				}
			case "ts": // some are late
				v[i] = int64(step)*700_000 + int64(r.IntN(8)-2)*500_000
			case "day":
				v[i] = int64(r.IntN(20) - 10)
			default:
				v[i] = decimal128.FromI64(int64(r.IntN(20) - 10))
			}
		}
		cols = append(cols, types.ArrayOf(v, f.Type))
	}
	return array.NewRecordBatch(types.ArrowSchema(fields), cols, int64(n))
}

// stepBoth gives both graphs a step and wants the same of them, bit for bit where there is one instance.
func stepBoth(t *testing.T, a, b *incremental.Graph, in incremental.Input, ordered bool) {
	t.Helper()
	x, err := a.Step(in)
	if err != nil {
		t.Fatal(err)
	}
	y, err := b.Step(in)
	if err != nil {
		t.Fatal(err)
	}
	if ordered && array.RecordEqual(x.Delta.Batch, y.Delta.Batch) {
		return
	}
	print := func(r arrow.RecordBatch) (out []string) {
		for i := range int(r.NumRows()) {
			row := ""
			for _, c := range r.Columns() {
				row += c.ValueStr(i) + " "
			}
			out = append(out, row)
		}
		slices.Sort(out)
		return out
	}
	if got, want := print(x.Delta.Batch), print(y.Delta.Batch); !slices.Equal(got, want) || ordered {
		t.Fatalf("step: other changes\ngot  %q\nwant %q", got, want)
	}
}

// TestGroupsThatLeaveMemory: with room for a few groups a query shows, at each step, what it shows in memory; over restarts from
// snapshots and from changes, and with other instances.
func TestGroupsThatLeaveMemory(t *testing.T) {
	for i, query := range evictQueries {
		for _, workers := range []int{1, 3} {
			for _, track := range []bool{false, true} {
				t.Run(fmt.Sprintf("query %d, %d instances, tracked %v", i, workers, track), func(t *testing.T) {
					r := clock.NewRand(uint64(i))
					opened, rows, left := 0, map[string]bool{}, map[string]bool{}
					build := func(workers int, limit int64) *incremental.Graph {
						return optest.New(t, evictDDL, query, optest.Parallel(workers), optest.With(func(o *incremental.Options) {
							o.TrackChanges = track
							if limit >= 0 {
								o.StateLimit = limit
								o.OpenStore = func() (state.Store, error) { opened++; return state.NewMemory(), nil }
							}
						})).Graph()
					}
					small, whole := build(workers, 1), build(workers, -1)
					saved := &incremental.Snapshot{}
					last := 39
					if strings.Contains(query, "JOIN") { // pairs are many
						last = 19
					}
					for step := range last + 1 {
						in := incremental.Input{Now: time.Unix(int64(step), 0)}
						for s, source := range small.Sources() {
							in.Pushes = append(in.Pushes, incremental.Push{Source: s, Split: "p", Batch: sales(r, source.Source.Fields, r.IntN(30), step)})
							if step == last {
								in.Ticks = append(in.Ticks, incremental.Tick{Source: s, Kind: incremental.SourceEnded})
							}
						}
						// Rows that tie have no order over a restart.
						stepBoth(t, small, whole, in, workers == 1 && !strings.Contains(query, "rank()") && !strings.Contains(query, "JOIN sale") && !strings.Contains(query, ".ts") && !strings.Contains(query, "WATERMARK")) // what comes from the store comes in the order of its keys
						// Rows that the watermark has settled one by one stay a little longer, and not the same ones; behind the end some of those without a time.
						soon := strings.HasPrefix(query, "SELECT DISTINCT ts") || strings.Contains(query, ".ts")
						if got, want := small.Stats().StateRows, whole.Stats().StateRows; got != want && !soon || got > want && step == last {
							t.Fatalf("step %d: %d rows of state, not %d", step, got, want)
						}
						for table, n := range incremental.RowsOut(small) {
							rows[table] = true
							left[table] = left[table] || n > 0
						}
						var err error
						if track {
							var changes *incremental.Snapshot
							if changes, err = small.Changes(); err != nil {
								t.Fatal(err)
							}
							saved.Add(changes)
							if _, err = whole.Changes(); err != nil {
								t.Fatal(err)
							}
						} else {
							if saved, err = small.Snapshot(); err != nil {
								t.Fatal(err)
							}
							rows := int64(0)
							for _, op := range saved.Operators {
								for _, p := range op.Parts {
									rows += p.Rows.NumRows()
								}
							}
							if counted := small.Stats().StateRows; rows != counted {
								t.Fatalf("step %d: a snapshot of %d rows, %d are counted", step, rows, counted)
							}
						}
						if r.IntN(6) == 0 {
							if err := small.Close(); err != nil {
								t.Fatal(err)
							}
							small = build(workers, int64(r.IntN(3000)))
							restorePieces(t, small, saved, 1+r.IntN(9), func() {})
						}
					}
					if opened == 0 {
						t.Fatal("no row left memory")
					}
					for table := range rows {
						if !left[table] && !strings.HasPrefix(query, "SELECT count") {
							t.Errorf("no row of %s left memory", table)
						}
					}
				})
			}
		}
	}
}

// restorePieces restores a snapshot as checkpoints are read: of the first part of each table, when it has no deletions, so many rows at a time, as rows that nothing
// before has.
func restorePieces(t *testing.T, g *incremental.Graph, s *incremental.Snapshot, rows int, taken func()) {
	t.Helper()
	re, err := g.Restoration()
	for _, op := range s.Operators {
		first := map[string]bool{}
		for _, p := range op.Parts {
			all, deleted := p.Rows, p.Rows.Column(3).(*array.Boolean)
			p.Fresh = !first[p.Table]
			for i := range deleted.Len() {
				p.Fresh = p.Fresh && !deleted.Value(i)
			}
			first[p.Table] = true
			step := int(all.NumRows())
			if p.Fresh {
				step = rows
			}
			for from := 0; from < int(all.NumRows()) && err == nil; from += step {
				p.Rows = all.NewSlice(int64(from), int64(min(from+step, int(all.NumRows()))))
				err = re.Take(op.Path, p)
				taken()
			}
		}
	}
	if err == nil {
		err = re.End(s)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestStateStaysNearTheLimit: state of many times the limit holds about as much memory as the limit says, and the operators show what they show in memory.
func TestStateStaysNearTheLimit(t *testing.T) {
	for _, query := range []string{
		"SELECT item, count(DISTINCT price), count(*) FROM sale GROUP BY item",
		"SELECT count(DISTINCT price) FROM sale",
		"SELECT shop, day, min(price), max(cents), count(DISTINCT cents) FROM latest GROUP BY shop, day",
		"SELECT shop, price, rn FROM (SELECT *, row_number() OVER (PARTITION BY shop, day ORDER BY price DESC) AS rn FROM sale) WHERE rn <= 3",
		"SELECT shop, price, rn FROM (SELECT *, rank() OVER (PARTITION BY shop, day ORDER BY price) AS rn FROM sale) WHERE rn <= 2",
		"SELECT shop, price, rn FROM (SELECT *, rank() OVER (PARTITION BY shop, day ORDER BY price) AS rn FROM sale) WHERE rn = 1",
		"SELECT shop, price, rn FROM (SELECT *, row_number() OVER (PARTITION BY shop, cents ORDER BY price DESC) AS rn FROM latest) WHERE rn <= 3",
		"SELECT TUMBLE_END(ts, INTERVAL '2 minutes'), shop, item, count(*), sum(price), count(DISTINCT price) FROM visit GROUP BY shop, item, TUMBLE(ts, INTERVAL '2 minutes') EMIT ON WATERMARK",
	} {
		t.Run(query, func(t *testing.T) {
			const limit = 512 << 10
			build := func(bounded bool) *incremental.Graph {
				return optest.New(t, evictDDL, query, optest.With(func(o *incremental.Options) {
					if bounded {
						o.StateLimit = limit
						o.OpenStore = func() (state.Store, error) { return state.NewMemory(), nil }
					}
				})).Graph()
			}
			small, whole := build(true), build(false)
			r := clock.NewRand(7)
			most := int64(0)
			for step := range 100 {
				in := incremental.Input{Now: time.Unix(int64(step), 0)}
				in.Pushes = append(in.Pushes, incremental.Push{Source: 0, Split: "p", Batch: manySales(r, small.Sources()[0].Source.Fields, 1000, step)})
				stepBoth(t, small, whole, in, false)
				most = max(most, whole.Stats().StateBytes)
				if held := small.Stats().StateBytes; held > 3*limit { // with the rows of a step, and what their slots take when they are free
					t.Fatalf("step %d: %d bytes are held, the limit is %d", step, held, limit)
				}
			}
			if most < 6*limit {
				t.Fatalf("the state is %d bytes at most", most)
			}
		})
	}
}

// TestRestartStaysNearTheLimit: a restart with state of many times the limit never holds it whole, and goes on as if there had been none.
func TestRestartStaysNearTheLimit(t *testing.T) {
	for _, query := range []string{
		"SELECT a.shop, b.cents FROM sale a JOIN visit b ON a.shop = b.shop AND a.price = b.price",
		"SELECT a.shop, a.price, b.cents FROM sale a LEFT JOIN latest b ON a.shop = b.shop AND a.day = b.day",
		"SELECT a.shop, a.price, b.item FROM latest a JOIN latest b ON a.shop = b.shop AND a.day = b.day AND a.price = b.price",
		"SELECT shop, price, item, rn FROM (SELECT *, row_number() OVER (PARTITION BY shop, day ORDER BY price DESC) AS rn FROM sale) WHERE rn <= 3",
		"SELECT shop, price, item, rn FROM (SELECT *, rank() OVER (PARTITION BY shop, day ORDER BY price) AS rn FROM sale) WHERE rn = 1",
		"SELECT TUMBLE_END(ts, INTERVAL '2 minutes'), shop, item, count(*), count(DISTINCT price) FROM visit GROUP BY shop, item, TUMBLE(ts, INTERVAL '2 minutes') EMIT ON WATERMARK",
		"SELECT shop, item, price, sum(price) OVER (PARTITION BY shop, item ORDER BY price) FROM sale",
		"SELECT shop, item, SESSION_START(ts, INTERVAL '1 second'), count(*), sum(price) FROM visit GROUP BY shop, item, SESSION(ts, INTERVAL '1 second')",
	} {
		t.Run(query, func(t *testing.T) {
			const limit = 384 << 10
			build := func(bounded bool) *incremental.Graph {
				return optest.New(t, evictDDL, query, optest.With(func(o *incremental.Options) {
					if bounded {
						o.StateLimit = limit
						o.OpenStore = func() (state.Store, error) { return state.NewMemory(), nil }
					}
				})).Graph()
			}
			whole, small := build(false), build(true)
			r := clock.NewRand(8)
			input := func(step, rows int) (in incremental.Input) {
				in.Now = time.Unix(int64(step), 0)
				for s, source := range whole.Sources() {
					in.Pushes = append(in.Pushes, incremental.Push{Source: s, Split: "p", Batch: manySales(r, source.Source.Fields, rows, step)})
				}
				return in
			}
			for step := range 20 {
				if _, err := whole.Step(input(step, 2000)); err != nil {
					t.Fatal(err)
				}
			}
			if all := whole.Stats().StateBytes; all < 4*limit {
				t.Fatalf("the state is %d bytes", all)
			}
			saved, err := whole.Snapshot()
			if err != nil {
				t.Fatal(err)
			}
			restorePieces(t, small, saved, 500, func() {
				if held := small.Stats().StateBytes; held > 3*limit {
					t.Fatalf("%d bytes are held, the limit is %d", held, limit)
				}
			})
			if got, want := small.Stats().StateRows, whole.Stats().StateRows; got != want {
				t.Fatalf("%d rows, not %d", got, want)
			}
			for step := 20; step < 120; step += 10 {
				stepBoth(t, small, whole, input(step, 300), false)
			}
		})
	}
}

// manySales are rows of many keys, a few of which are common.
func manySales(r clock.Rand, fields []types.Field, n, step int) arrow.RecordBatch {
	var cols []arrow.Array
	for _, f := range fields {
		v := make([]types.Value, n)
		for i := range v {
			switch f.Name {
			case "ts":
				v[i] = int64(step)*1_500_000 + int64(r.IntN(1000))*1000
			case "shop":
				v[i] = int64(r.IntN(8))
				if r.IntN(10) > 0 {
					v[i] = int64(r.IntN(30_000))
				}
			case "item":
				v[i] = fmt.Sprint("item ", r.IntN(9))
			case "price":
				v[i] = float64(r.IntN(1 << 20))
			case "day":
				v[i] = int64(r.IntN(3))
			default:
				v[i] = decimal128.FromI64(int64(r.IntN(20) - 10))
			}
		}
		cols = append(cols, types.ArrayOf(v, f.Type))
	}
	return array.NewRecordBatch(types.ArrowSchema(fields), cols, int64(n))
}
