package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"runtime"
	"strings"
	"testing"

	riverbed "github.com/riverbed/riverbed"
)

// transactions are those of the delta case: some orders go with their lines and as many come, about 1,000 lines in all. Keys
// come in groups of 32 with 8 orders; one group in five is held back to be put in.
type transactions struct {
	s          *riverbed.Session
	b          *testing.B
	kept, held []int
	owed       int
}

func (x *transactions) run(text string) {
	x.b.Helper()
	q, err := x.s.Query(context.Background(), text, nil)
	if err != nil {
		x.b.Fatalf("%.200s\n%v", text, err)
	}
	if q == nil {
		return
	}
	r, err := q.Run(context.Background())
	if err != nil {
		x.b.Fatal(err)
	}
	for r.Next() {
	}
	r.Release()
}

func (x *transactions) load(of10 int) {
	dir := folder(x.b)
	for table, columns := range deltaColumns {
		text := fmt.Sprintf("SELECT %s FROM '%s/%s.parquet'", columns, dir, table)
		if key, ok := map[string]string{"lineitem": "l_orderkey", "orders": "o_orderkey"}[table]; ok {
			text += fmt.Sprintf(" WHERE %s < %d", key, of10*600_000)
			x.run(fmt.Sprintf("CREATE TABLE held_%s AS %s AND %s // 32 %% 5 = 4", table, text, key))
			text += fmt.Sprintf(" AND %s // 32 %% 5 <> 4", key)
		}
		x.run("CREATE TABLE " + table + " AS " + text)
	}
	for g := range of10 * 600_000 / 32 {
		if g%5 == 4 {
			x.held = append(x.held, g)
		} else {
			x.kept = append(x.kept, g)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for _, groups := range [][]int{x.kept, x.held} {
		r.Shuffle(len(groups), func(i, j int) { groups[i], groups[j] = groups[j], groups[i] })
	}
}

// change runs the statements of the next transaction, all but its COMMIT.
func (x *transactions) change() {
	x.owed += 25
	n := x.owed / 2
	x.owed -= 2 * n
	list := func(groups *[]int) string {
		var out []string
		for _, g := range (*groups)[:n] {
			out = append(out, fmt.Sprint(g))
		}
		*groups = append((*groups)[n:], (*groups)[:n]...)
		return strings.Join(out, ", ")
	}
	gone, come := list(&x.kept), list(&x.held)
	x.run("BEGIN")
	for table, key := range map[string]string{"lineitem": "l_orderkey", "orders": "o_orderkey"} {
		x.run(fmt.Sprintf("DELETE FROM %s WHERE %s // 32 IN (%s)", table, key, gone))
		x.run(fmt.Sprintf("INSERT INTO %s SELECT * FROM held_%s WHERE %s // 32 IN (%s)", table, table, key, come))
	}
}

// BenchmarkCommit is the COMMIT of such a transaction with a view over the tables, and the statements before it beside it.
func BenchmarkCommit(b *testing.B) {
	paceCollector()
	text, err := os.ReadFile("../../../core/sql/testdata/tpch.sql")
	if err != nil {
		b.Fatal(err)
	}
	texts := map[string]string{"none": ""}
	for _, part := range regexp.MustCompile(`(?m)^-- name: `).Split(string(text), -1)[1:] {
		name, sql, _ := strings.Cut(part, "\n")
		texts[name] = strings.TrimSuffix(strings.TrimSpace(sql), ";")
	}
	for _, of10 := range []int{1, 10} {
		for _, name := range []string{"none", "q1", "q3", "q5", "q6"} {
			b.Run(fmt.Sprintf("%s/sf%.1f", name, float64(of10)/10), func(b *testing.B) {
				x := &transactions{s: open(b), b: b}
				x.load(of10)
				if name != "none" {
					x.run("CREATE MATERIALIZED VIEW v AS " + texts[name])
				}
				x.change()
				x.run("COMMIT")
				runtime.GC()
				var commit, statements float64
				for range b.N {
					b.StopTimer()
					before := cpu(b)
					x.change()
					middle := cpu(b)
					b.StartTimer()
					x.run("COMMIT")
					commit, statements = commit+cpu(b)-middle, statements+middle-before
				}
				b.ReportMetric(commit/float64(b.N)*1e6, "cpu-µs/commit")
				b.ReportMetric(statements/float64(b.N)*1e6, "cpu-µs/statements")
				var m runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&m)
				b.ReportMetric(float64(m.HeapAlloc)/1e6, "heap-MB")
			})
		}
	}
}
