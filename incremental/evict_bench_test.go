package incremental_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/core/clock"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/types"
	"github.com/riverbed/riverbed/incremental"
	"github.com/riverbed/riverbed/incremental/optest"
	"github.com/riverbed/riverbed/state"
	"github.com/riverbed/riverbed/state/disk"
)

// BenchmarkLargerThanMemory measures groups of which a tenth has room in memory, beside the same ones in memory: steps of 10,000 rows, of keys that are
// all as likely, or nine in ten of a tenth of them.
func BenchmarkLargerThanMemory(b *testing.B) {
	const keys = 1_000_000
	for _, c := range []struct {
		name   string
		skewed bool
		share  int64 // of the state that has room; 0: all
	}{
		{"uniform, in memory", false, 0}, {"uniform, ten times memory", false, 10},
		{"skewed, in memory", true, 0}, {"skewed, ten times memory", true, 10},
	} {
		b.Run(c.name, func(b *testing.B) {
			r := clock.NewRand(1)
			store := filepath.Join(b.TempDir(), "store")
			graph := func(limit int64) *incremental.Graph {
				g, err := optest.Build(b, "CREATE STREAM s (k BIGINT, v BIGINT)", "SELECT k, count(*), sum(v), max(v) FROM s GROUP BY k", optest.With(func(o *incremental.Options) {
					if limit > 0 {
						o.StateLimit = limit
						o.OpenStore = func() (state.Store, error) { return disk.Open(store, limit/8) }
					}
				}))
				if err != nil {
					b.Fatal(err)
				}
				return g.Graph()
			}
			step := func(g *incremental.Graph, key func(i int) int64) {
				k, v := make([]int64, benchRows), make([]int64, benchRows)
				for i := range k {
					k[i], v[i] = key(i), int64(r.IntN(1000))
				}
				batch := array.NewRecordBatch(types.ArrowSchema(g.Sources()[0].Source.Fields),
					[]arrow.Array{kernels.NewFixed(arrow.PrimitiveTypes.Int64, k, nil), kernels.NewFixed(arrow.PrimitiveTypes.Int64, v, nil)}, benchRows)
				if _, err := g.Step(incremental.Input{Now: time.Unix(0, 0), Pushes: []incremental.Push{{Split: "p", Batch: batch}}}); err != nil {
					b.Fatal(err)
				}
			}
			held := func(g *incremental.Graph) (bytes, rows int64) {
				for _, o := range g.Operators() {
					bytes, rows = bytes+o.StateBytes, rows+o.StateRows
				}
				return bytes, rows
			}
			fill := func(g *incremental.Graph) {
				for n := range keys / benchRows {
					step(g, func(i int) int64 { return int64(n*benchRows+i) * 7919 % keys })
				}
			}
			g := graph(0)
			fill(g)
			bytes, _ := held(g)
			if c.share > 0 {
				g = graph(bytes / c.share)
				fill(g)
			}
			next := func(int) int64 { return int64(r.IntN(keys)) }
			if c.skewed {
				next = func(int) int64 {
					if r.IntN(10) > 0 {
						return int64(r.IntN(keys / 10))
					}
					return int64(r.IntN(keys))
				}
			}
			for range 60 { // in which a key of the tenth is asked for five times
				step(g, next)
			}
			from := spent()
			rows := 0
			for b.Loop() {
				step(g, next)
				rows += benchRows
			}
			cpu := spent() - from
			b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "rows/s")
			b.ReportMetric(float64(rows)/cpu.Seconds(), "rows/cpu-s")
			now, n := held(g)
			b.ReportMetric(float64(now)/1e6, "MB")
			b.ReportMetric(float64(n), "groups")
			if files, err := filepath.Glob(filepath.Join(store, "*")); err == nil && len(files) > 0 {
				size := int64(0)
				for _, f := range files {
					if info, err := os.Stat(f); err == nil {
						size += info.Size()
					}
				}
				b.ReportMetric(float64(size)/1e6, "file-MB")
			}
			if err := g.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// spent is the processor time of the process.
func spent() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
