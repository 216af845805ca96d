package incremental_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/riverbed/riverbed/core/clock"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/types"
	"github.com/riverbed/riverbed/incremental"
	"github.com/riverbed/riverbed/incremental/optest"
	"github.com/riverbed/riverbed/state"
)

const lateDDL = `CREATE STREAM s (ts TIMESTAMP, k TEXT, v BIGINT, x DOUBLE, WATERMARK FOR ts AS ts - INTERVAL '2 seconds');
CREATE STREAM up (k TEXT, v BIGINT, x DOUBLE, t TEXT, PRIMARY KEY (k))`

var lateQueries = []string{
	"SELECT DISTINCT ts, k FROM s EMIT IMMEDIATE",
	"SELECT DISTINCT k, v FROM s",
	"SELECT TUMBLE_END(ts, INTERVAL '4 seconds'), k, count(*), sum(v), count(DISTINCT v) FROM s GROUP BY k, TUMBLE(ts, INTERVAL '4 seconds') EMIT ON WATERMARK",
	"SELECT TUMBLE_END(ts, INTERVAL '4 seconds'), k, count(*), sum(v), count(DISTINCT v), median(x), list(v), approx_count_distinct(v), mode(v), stddev(x), corr(x, v), max(k), arg_max(k, x) FROM s GROUP BY k, TUMBLE(ts, INTERVAL '4 seconds') EMIT IMMEDIATE",
	"SELECT k, HOP_START(ts, INTERVAL '2 seconds', INTERVAL '6 seconds'), count(*), sum(x), median(v) FROM s GROUP BY k, HOP(ts, INTERVAL '2 seconds', INTERVAL '6 seconds') EMIT ON WATERMARK",
	"SELECT k, HOP_START(ts, INTERVAL '2 seconds', INTERVAL '6 seconds'), count(*), sum(x) FROM s GROUP BY k, HOP(ts, INTERVAL '2 seconds', INTERVAL '6 seconds') EMIT IMMEDIATE",
	"SELECT k, count(*), sum(v), avg(x), count(DISTINCT v), median(x), min(k), bool_or(v > 3), string_agg(k, ',') FROM s GROUP BY k",
	"SELECT count(*), sum(v), count(DISTINCT k), median(x) FROM s",
	"SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY k ORDER BY ts DESC) AS rn FROM s) WHERE rn = 1",
	"SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY k ORDER BY v) AS rn FROM s) WHERE rn <= 3",
	"SELECT * FROM (SELECT *, rank() OVER (PARTITION BY k ORDER BY v DESC) AS rn FROM s) WHERE rn <= 2",
	"SELECT k, v FROM (SELECT *, row_number() OVER (PARTITION BY k ORDER BY v DESC) AS rn FROM up) WHERE rn <= 2",
	"SELECT v, k FROM (SELECT *, row_number() OVER (PARTITION BY v ORDER BY x DESC, k) AS rn FROM up) WHERE rn <= 2",
	"SELECT v, n FROM (SELECT *, row_number() OVER (PARTITION BY n ORDER BY v DESC) AS rn FROM (SELECT v, count(*) AS n FROM s GROUP BY v)) WHERE rn = 1",
	"SELECT * FROM s ORDER BY v DESC LIMIT 5",
	"SELECT * FROM up",
	"SELECT v, count(*), sum(x), count(DISTINCT t), list(t), median(x) FROM up GROUP BY v",
	"SELECT DISTINCT v, t FROM up",
	"SELECT k, v FROM up UNION SELECT k, v FROM s",
	"SELECT k, v FROM up EXCEPT SELECT k, v FROM s",
	"SELECT v, t FROM up INTERSECT ALL SELECT v, k FROM s",
	"SELECT ts, k, v FROM s UNION SELECT ts, k, v + 1 FROM s",
	"SELECT a.k, a.v, b.t FROM s a JOIN up b ON a.k = b.k",
	"SELECT window_end, k, v, rn FROM (SELECT *, row_number() OVER (PARTITION BY window_end ORDER BY v DESC NULLS FIRST) AS rn FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '4 seconds'))) WHERE rn <= 6 EMIT ON WATERMARK",
	"SELECT window_end, k, v, rn FROM (SELECT *, rank() OVER (PARTITION BY window_end ORDER BY v DESC NULLS FIRST) AS rn FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '4 seconds'))) WHERE rn <= 2 EMIT ON WATERMARK",
	"SELECT DISTINCT TUMBLE_START(ts, INTERVAL '4 seconds'), k FROM s GROUP BY k, v, TUMBLE(ts, INTERVAL '4 seconds') EMIT IMMEDIATE",
}

// lateRows are rows of a stream, from the step's time on.
func lateRows(r clock.Rand, fields []types.Field, n, at, keys int, upsert bool) arrow.RecordBatch {
	var cols []arrow.Array
	fields = slices.Clone(fields)
	for _, f := range fields {
		switch f.Name {
		case "ts":
			v := make([]int64, n)
			for i := range v {
				v[i] = int64(at)*700_000 + int64(r.IntN(5))*500_000
			}
			cols = append(cols, kernels.NewFixed(f.Type.Arrow(), v, nil))
		default:
			v := make([]types.Value, n)
			for i := range v {
				switch f.Name {
				case "k":
					v[i] = strings.Repeat("k", r.IntN(2)*40) + fmt.Sprint(r.IntN(keys))
				case "t":
					v[i] = strings.Repeat("t", r.IntN(60)) + fmt.Sprint(r.IntN(5))
				case "v":
					v[i] = int64(r.IntN(9))
				default:
					v[i] = float64(r.IntN(100)) / 7
				}
			}
			cols = append(cols, types.ArrayOf(v, f.Type))
		}
	}
	if upsert {
		w := make([]int64, n)
		for i := range w {
			w[i] = 1
			if r.IntN(4) == 0 {
				w[i] = -1
			}
		}
		cols = append(cols, kernels.NewFixed(arrow.PrimitiveTypes.Int64, w, nil))
		s := types.ArrowSchema(fields)
		return array.NewRecordBatch(arrow.NewSchema(append(s.Fields(), flow.WeightField), nil), cols, int64(n))
	}
	return array.NewRecordBatch(types.ArrowSchema(fields), cols, int64(n))
}

// partTexts are all rows of a snapshot, sorted.
func partTexts(s *incremental.Snapshot) (out []string) {
	for _, op := range s.Operators {
		for _, p := range op.Parts {
			for i := range int(p.Rows.NumRows()) {
				row := op.Path + " " + p.Table
				for c, col := range p.Rows.Columns() {
					row += fmt.Sprintf(" %s=%s", p.Rows.ColumnName(c), col.ValueStr(i))
				}
				out = append(out, row)
			}
		}
	}
	slices.Sort(out)
	return out
}

// TestCopiesBehindTheBarrier: what is copied piece by piece, while the graph steps on, is what another graph copies at the barrier. The sum of epochs does
// not tell: rows that change meanwhile are in the next epoch too.
func TestCopiesBehindTheBarrier(t *testing.T) {
	for number, query := range lateQueries {
		for _, limit := range []int64{-1, 1} {
			for _, workers := range []int{1, 3} {
				t.Run(fmt.Sprintf("query %d, limit %d, workers %d", number, limit, workers), func(t *testing.T) {
					for seed := range uint64(2) {
						build := func() *incremental.Graph {
							op, err := optest.Build(t, lateDDL, query, optest.Lenient(), optest.Parallel(workers), optest.With(func(o *incremental.Options) {
								o.TrackChanges = true
								if limit >= 0 {
									o.StateLimit = limit
									o.OpenStore = func() (state.Store, error) { return state.NewMemory(), nil }
								}
							}))
							if err != nil {
								t.Fatal(err)
							}
							return op.Graph()
						}
						a, b := build(), build()
						r := clock.NewRand(seed*100 + uint64(number))
						var copying *incremental.Copying
						var want []string
						for step := range 60 {
							in := incremental.Input{Now: time.Unix(int64(step), 0)}
							for s, source := range a.Sources() {
								for range 1 + r.IntN(3) {
									rows := lateRows(r, source.Source.Fields, 1+r.IntN(30), step, 12, source.Source.Upsert != nil)
									split := fmt.Sprint("p", r.IntN(2))
									if source.Source.Upsert == nil {
										split = "p"
									}
									in.Pushes = append(in.Pushes, incremental.Push{Source: s, Split: split, Batch: rows})
								}
							}
							if _, err := a.Step(in); err != nil {
								t.Fatal(err)
							}
							if _, err := b.Step(in); err != nil {
								t.Fatal(err)
							}
							if copying != nil && r.IntN(3) > 0 {
								snap, err := copying.More(r.IntN(4))
								if err == nil && snap == nil && r.IntN(4) == 0 {
									snap, err = copying.Rest()
								}
								if err != nil {
									t.Fatal(err)
								}
								if snap != nil {
									got := partTexts(snap)
									if !slices.Equal(got, want) {
										late := slices.DeleteFunc(slices.Clone(got), func(x string) bool { return slices.Contains(want, x) })
										missing := slices.DeleteFunc(want, func(x string) bool { return slices.Contains(got, x) })
										t.Fatalf("%s, seed %d, step %d: copied late\n%s\nat the barrier\n%s", query, seed, step, strings.Join(late, "\n"), strings.Join(missing, "\n"))
									}
									copying = nil
								}
							}
							if copying == nil {
								snap, err := b.Changes()
								if err != nil {
									t.Fatal(err)
								}
								want = partTexts(snap)
								if copying, err = a.BeginChanges(); err != nil {
									t.Fatal(err)
								}
							}
						}
						_, _ = a.Close(), b.Close()
					}
				})
			}
		}
	}
}

// TestClosedRowsAreDropped: a row whose time was up while it was copied goes after a restart too.
func TestClosedRowsAreDropped(t *testing.T) {
	build := func() *incremental.Graph {
		return optest.New(t, lateDDL, "SELECT DISTINCT ts, k FROM s EMIT IMMEDIATE", optest.Lenient(), optest.With(func(o *incremental.Options) { o.TrackChanges = true })).Graph()
	}
	step := func(g *incremental.Graph, at int) {
		in := incremental.Input{Now: time.Unix(int64(at), 0)}
		in.Pushes = append(in.Pushes, incremental.Push{Source: 0, Split: "p", Batch: lateRows(clock.NewRand(1), g.Sources()[0].Source.Fields, 20, at, 12, false)})
		if _, err := g.Step(in); err != nil {
			t.Fatal(err)
		}
	}
	g, h := build(), build()
	step(g, 0)
	c, err := g.BeginChanges()
	if err != nil {
		t.Fatal(err)
	}
	step(g, 1000) // settles the first rows
	s, err := c.Rest()
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Restore(s); err != nil {
		t.Fatal(err)
	}
	step(h, 1000)
	if have, want := h.Stats().StateRows, g.Stats().StateRows; have != want {
		t.Errorf("%d rows stay, %d without a restart", have, want)
	}
}
