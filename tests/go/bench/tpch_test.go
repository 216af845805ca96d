// Package bench profiles whole queries inside the Go process. The figures that are published come from bench/, which runs
// each engine in a process of its own; this is for go test -bench with -cpuprofile and -memprofile.
package bench

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"

	riverbed "github.com/riverbed/riverbed"
)

var tables = []string{"customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier"}

// folder is where `make bench CASE=tpch` leaves the data.
func folder(b *testing.B) string {
	root := os.Getenv("RIVERBED_BENCH_DATA")
	if root == "" {
		root = "../../../bench/data"
	}
	dir, err := filepath.Abs(filepath.Join(root, "tpch-sf1"))
	if err == nil {
		_, err = os.Stat(filepath.Join(dir, "lineitem.parquet"))
	}
	if err != nil {
		b.Skipf("no TPC-H data, which `make bench CASE=tpch` makes: %v", err)
	}
	return dir
}

// cpu is the user and system time of the process in seconds.
func cpu(b *testing.B) float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return float64(u.Utime.Sec+u.Stime.Sec) + float64(u.Utime.Usec+u.Stime.Usec)/1e6
}

// BenchmarkTPCH runs the 22 queries at scale factor 1.
func BenchmarkTPCH(b *testing.B) {
	paceCollector()
	dir := folder(b)
	text, err := os.ReadFile("../../../core/sql/testdata/tpch.sql")
	if err != nil {
		b.Fatal(err)
	}
	s, err := riverbed.Open(map[string]string{"parallelism": "2"})
	if err != nil {
		b.Fatal(err)
	}
	ctx := context.Background()
	for _, t := range tables {
		if _, err := s.Query(ctx, "CREATE VIEW "+t+" AS SELECT * FROM '"+dir+"/"+t+".parquet'", nil); err != nil {
			b.Fatal(err)
		}
	}
	names := regexp.MustCompile(`(?m)^-- name: (q\d+)\n`)
	at := names.FindAllStringSubmatchIndex(string(text), -1)
	for i, m := range at {
		end := len(text)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		sql := strings.TrimSuffix(strings.TrimSpace(string(text[m[1]:end])), ";")
		b.Run(string(text[m[2]:m[3]]), func(b *testing.B) {
			runtime.GC()
			start := cpu(b)
			for b.Loop() {
				q, err := s.Query(ctx, sql, nil)
				if err != nil {
					b.Fatal(err)
				}
				r, err := q.Run(ctx)
				if err != nil {
					b.Fatal(err)
				}
				for r.Next() {
				}
				if err := r.Err(); err != nil {
					b.Fatal(err)
				}
				r.Release()
			}
			b.ReportMetric((cpu(b)-start)/float64(b.N), "cpu-s/op")
		})
	}
}
