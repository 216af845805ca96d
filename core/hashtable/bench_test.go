package hashtable

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/types"
)

const (
	benchRows  = 10_000_000
	benchBatch = 1 << 14
)

func batches(keys []int64, column func(part []int64) arrow.Array) [][]arrow.Array {
	var out [][]arrow.Array
	for from := 0; from < len(keys); from += benchBatch {
		out = append(out, []arrow.Array{column(keys[from:min(from+benchBatch, len(keys))])})
	}
	return out
}

func bigints(part []int64) arrow.Array {
	return kernels.NewFixed(arrow.PrimitiveTypes.Int64, part, nil)
}

func varchars(part []int64) arrow.Array {
	offs := make([]int32, 1, len(part)+1)
	var data []byte
	for _, k := range part {
		data = fmt.Appendf(data, "id%010d", k)
		offs = append(offs, int32(len(data)))
	}
	return kernels.NewBytes(arrow.BinaryTypes.String, offs, data, nil)
}

func randomKeys(r *rand.Rand, n int, groups, spread int64) []int64 {
	keys := make([]int64, n)
	for i := range keys {
		keys[i] = r.Int64N(groups) * spread
	}
	return keys
}

// BenchmarkGroups numbers 10 M rows.
func BenchmarkGroups(b *testing.B) {
	r := rand.New(rand.NewPCG(7, 7))
	for _, c := range []struct {
		name    string
		typ     types.Type
		groups  int64
		spread  int64
		batches func(part []int64) arrow.Array
	}{
		{"bigint dense 1M", types.Int64, 1_000_000, 1, bigints},
		{"bigint sparse 1M", types.Int64, 1_000_000, 1_000_003, bigints},
		{"bigint sparse 100", types.Int64, 100, 1_000_003, bigints},
		{"varchar 1M", types.String, 1_000_000, 1, varchars},
		{"varchar 100", types.String, 100, 1, varchars},
	} {
		in := batches(randomKeys(r, benchRows, c.groups, c.spread), c.batches)
		b.Run(c.name, func(b *testing.B) {
			ids := make([]uint32, benchBatch)
			for b.Loop() {
				g := NewGroups([]types.Type{c.typ})
				for _, cols := range in {
					g.FindOrAdd(cols, cols[0].Len(), ids)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*benchRows), "ns/row")
		})
	}
}

// BenchmarkJoin builds 1 M rows and probes 10 M.
func BenchmarkJoin(b *testing.B) {
	r := rand.New(rand.NewPCG(7, 8))
	for _, spread := range []int64{1, 1_000_003} {
		perm := make([]int64, 1_000_000)
		for i, k := range r.Perm(len(perm)) {
			perm[i] = int64(k) * spread
		}
		build := []arrow.Array{bigints(perm)}
		in := batches(randomKeys(r, benchRows, int64(len(perm)), spread), bigints)
		b.Run(fmt.Sprintf("bigint spread %d", spread), func(b *testing.B) {
			probe, rows := make([]int32, benchBatch), make([]int32, benchBatch)
			for b.Loop() {
				j := NewJoin([]types.Type{types.Int64}, nil)
				j.Build(build, len(perm))
				p := j.Prober()
				pairs := 0
				for _, cols := range in {
					p.Probe(cols, cols[0].Len())
					for n := p.Next(probe, rows); n > 0; n = p.Next(probe, rows) {
						pairs += n
					}
				}
				if pairs != benchRows {
					b.Fatal(pairs)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*benchRows), "ns/row")
		})
	}
}
