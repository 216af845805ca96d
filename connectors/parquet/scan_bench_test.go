package parquet

import (
	"context"
	"os"
	"testing"

	"github.com/riverbed/riverbed/connectors"
	"github.com/riverbed/riverbed/core/flow"
)

// BenchmarkScan reads the file named by RIVERBED_BENCH_PARQUET (TPC-H lineitem), four numeric columns and all.
func BenchmarkScan(b *testing.B) {
	path := os.Getenv("RIVERBED_BENCH_PARQUET")
	if path == "" {
		b.Skip("RIVERBED_BENCH_PARQUET names no file")
	}
	set, err := Source.Options.Parse("parquet", map[string]string{"path": path})
	if err != nil {
		b.Fatal(err)
	}
	rel, err := Source.Relation(context.Background(), connectors.OpenRequest{Settings: set})
	if err != nil {
		b.Fatal(err)
	}
	all := make([]int, len(rel.Fields()))
	for i := range all {
		all[i] = i
	}
	for _, c := range []struct {
		name    string
		columns []int
	}{{"four", []int{4, 5, 6, 10}}, {"all", all}} {
		b.Run(c.name, func(b *testing.B) {
			for range b.N {
				b.SetBytes(drain(b, rel, flow.ScanRequest{Columns: c.columns, Workers: 1}))
			}
		})
	}
	for i, f := range rel.Fields() {
		b.Run(f.Name, func(b *testing.B) {
			for range b.N {
				drain(b, rel, flow.ScanRequest{Columns: []int{i}, Workers: 1})
			}
		})
	}
}

// drain reads all and returns the rows.
func drain(tb testing.TB, rel flow.Relation, req flow.ScanRequest) (rows int64) {
	s, err := rel.Scan(context.Background(), req)
	if err != nil {
		tb.Fatal(err)
	}
	defer s.Close()
	for {
		m, err := s.Next(context.Background(), 0)
		if err != nil {
			tb.Fatal(err)
		}
		if m == nil {
			return rows
		}
		rows += m.Batch.NumRows()
	}
}
