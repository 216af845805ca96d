package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	riverbed "github.com/riverbed/riverbed"
	"github.com/riverbed/riverbed/connectors/memory"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/types"
)

// deltaColumns are the columns that Q1, Q3, Q5 and Q6 read.
var deltaColumns = map[string]string{
	"lineitem": "l_orderkey, l_suppkey, l_quantity, l_extendedprice, l_discount, l_tax, l_returnflag, l_linestatus, l_shipdate",
	"orders":   "o_orderkey, o_custkey, o_orderdate, o_shippriority",
	"customer": "c_custkey, c_nationkey, c_mktsegment",
	"supplier": "s_suppkey, s_nationkey",
	"nation":   "n_nationkey, n_name, n_regionkey",
	"region":   "r_regionkey, r_name",
}

// maintained is a query that is kept up to date over streams of changes.
type maintained struct {
	b       *testing.B
	streams map[string]*memory.Stream
	sub     *riverbed.Subscription
	rows    int64
}

// maintain subscribes to a query and gives it the tables whole.
func maintain(b *testing.B, text string, tables map[string][]arrow.RecordBatch) *maintained {
	ctx := context.Background()
	m := &maintained{b: b, streams: map[string]*memory.Stream{}}
	s := open(b)
	for name, batches := range tables {
		fields, err := types.Schema(batches[0].Schema())
		if err != nil {
			b.Fatal(err)
		}
		m.streams[name] = memory.New(fields, memory.Options{Updating: true})
		if err := s.AddStream(name, m.streams[name], "", ""); err != nil {
			b.Fatal(err)
		}
	}
	q, err := s.Query(ctx, text, nil)
	if err != nil {
		b.Fatal(err)
	}
	if m.sub, err = q.Subscribe(ctx, riverbed.SubscribeOptions{QueueSize: 1 << 20}); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = m.sub.Close() })
	for name, batches := range tables {
		if !strings.Contains(text, name) {
			continue
		}
		for _, rows := range batches {
			m.push(name, rows, nil)
		}
	}
	m.settle()
	return m
}

func (m *maintained) push(table string, rows arrow.RecordBatch, weights []int64) {
	m.rows += rows.NumRows()
	if err := m.streams[table].Push(context.Background(), "", rows, weights); err != nil {
		m.b.Fatal(err)
	}
}

// settle waits until all that was pushed has been stepped, and reads what was shown.
func (m *maintained) settle() {
	for m.sub.Metrics().RowsIn < m.rows || len(m.sub.Metrics().Error) > 0 {
		if e := m.sub.Metrics().Error; e != "" {
			m.b.Fatal(e)
		}
		time.Sleep(time.Millisecond)
	}
	ctx, stop := context.WithTimeout(context.Background(), time.Millisecond)
	defer stop()
	for {
		if _, err := m.sub.Next(ctx); err != nil {
			return
		}
	}
}

// step pushes a change and waits for what it gives.
func (m *maintained) step(table string, rows arrow.RecordBatch, weights []int64) {
	m.push(table, rows, weights)
	if _, err := m.sub.Next(context.Background()); err != nil {
		m.b.Fatal(err)
	}
}

// tpch reads the tables, or a share of the orders with their lines.
func tpch(b *testing.B, of10 int) map[string][]arrow.RecordBatch {
	dir := folder(b)
	s := open(b)
	out := map[string][]arrow.RecordBatch{}
	for name, columns := range deltaColumns {
		text := fmt.Sprintf("SELECT %s FROM '%s/%s.parquet'", columns, dir, name)
		switch name {
		case "lineitem":
			text += fmt.Sprintf(" WHERE l_orderkey // 32 %% 10 < %d", of10)
		case "orders":
			text += fmt.Sprintf(" WHERE o_orderkey // 32 %% 10 < %d", of10)
		}
		_, out[name] = query(b, s, text)
	}
	return out
}

// sample takes rows of batches at random.
func sample(r *rand.Rand, batches []arrow.RecordBatch, rows int) arrow.RecordBatch {
	var parts []arrow.RecordBatch
	for range 16 {
		from := batches[r.IntN(len(batches))]
		at := make([]int32, rows/16)
		for i := range at {
			at[i] = int32(r.IntN(int(from.NumRows())))
		}
		slices.Sort(at)
		at = slices.Compact(at)
		parts = append(parts, array.NewRecordBatch(from.Schema(), kernels.TakeBatch(from.Columns(), at), int64(len(at))))
	}
	return joined(parts)
}

func joined(parts []arrow.RecordBatch) arrow.RecordBatch {
	cols := make([]arrow.Array, parts[0].NumCols())
	for c := range cols {
		var pieces []arrow.Array
		for _, p := range parts {
			pieces = append(pieces, p.Column(c))
		}
		cols[c] = kernels.Concat(pieces)
	}
	return array.NewRecordBatch(parts[0].Schema(), cols, int64(cols[0].Len()))
}

// BenchmarkDelta keeps TPC-H queries up to date under changes of 1,000 lines: 500 go and the 500 that went before come back.
func BenchmarkDelta(b *testing.B) {
	paceCollector()
	text, err := os.ReadFile("../../../core/sql/testdata/tpch.sql")
	if err != nil {
		b.Fatal(err)
	}
	texts := map[string]string{}
	for _, part := range regexp.MustCompile(`(?m)^-- name: `).Split(string(text), -1)[1:] {
		name, sql, _ := strings.Cut(part, "\n")
		texts[name] = strings.TrimSuffix(strings.TrimSpace(sql), ";")
	}
	for _, of10 := range []int{1, 10} {
		tables := tpch(b, of10)
		for _, name := range []string{"q1", "q3", "q5", "q6"} {
			b.Run(fmt.Sprintf("%s/sf%.1f", name, float64(of10)/10), func(b *testing.B) {
				m := maintain(b, texts[name], tables)
				r := rand.New(rand.NewPCG(1, 2))
				const changes = 1000
				gone := sample(r, tables["lineitem"], changes/2)
				m.step("lineitem", gone, negative(gone))
				var steps []arrow.RecordBatch
				var weights [][]int64
				for range 200 {
					next := sample(r, tables["lineitem"], changes/2)
					steps = append(steps, joined([]arrow.RecordBatch{gone, next}))
					w := negative(steps[len(steps)-1])
					for i := range gone.NumRows() {
						w[i] = 1
					}
					weights = append(weights, w)
					gone = next
				}
				runtime.GC()
				n, start := 0, cpu(b)
				for b.Loop() {
					m.step("lineitem", steps[n%len(steps)], weights[n%len(steps)])
					n++
				}
				b.ReportMetric((cpu(b)-start)/float64(n)*1e6, "cpu-µs/step")
				b.ReportMetric(float64(m.sub.Metrics().StateRows), "state-rows")
			})
		}
	}
}

func negative(rows arrow.RecordBatch) []int64 {
	w := make([]int64, rows.NumRows())
	for i := range w {
		w[i] = -1
	}
	return w
}

// BenchmarkGroupedSum changes 5,000 rows of a sum over 10 M rows and 1 M groups.
func BenchmarkGroupedSum(b *testing.B) {
	paceCollector()
	s := open(b)
	_, rows := query(b, s, "SELECT (range * 7919) % 1000000 AS k, range % 15 AS v, (range * 31 % 1000003) / 7.0::DOUBLE AS d FROM range(10000000)")
	m := maintain(b, "SELECT k, count(*) AS n, sum(v) AS s, sum(d) AS t FROM t GROUP BY k", map[string][]arrow.RecordBatch{"t": rows})
	r := rand.New(rand.NewPCG(1, 2))
	var steps []arrow.RecordBatch
	for range 50 {
		steps = append(steps, sample(r, rows, 5000))
	}
	runtime.GC()
	n, start := 0, cpu(b)
	for b.Loop() {
		rows := steps[n/2%len(steps)]
		w := negative(rows)
		if n%2 == 1 {
			w = nil
		}
		m.step("t", rows, w)
		n++
	}
	b.ReportMetric((cpu(b)-start)/float64(n)*1e6, "cpu-µs/step")
}
