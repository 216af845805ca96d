package fn

import (
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/hashtable"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/types"
)

// BenchmarkGroupBy is SELECT k, sum(v), count(*) … GROUP BY k over 10 M rows, without the scan.
func BenchmarkGroupBy(b *testing.B) {
	const n, batch = 10_000_000, 1 << 14
	for _, c := range []struct {
		name           string
		groups, spread int64
		agg            string
		typ            types.Type
	}{
		{"sum bigint 1M dense", 1_000_000, 1, "sum", types.Int64},
		{"sum bigint 1M sparse", 1_000_000, 1_000_003, "sum", types.Int64},
		{"sum double 1M sparse", 1_000_000, 1_000_003, "sum", types.Float64},
		{"sum double 100", 100, 1_000_003, "sum", types.Float64},
		{"min bigint 100", 100, 1_000_003, "min", types.Int64},
		{"stddev double 100", 100, 1_000_003, "stddev", types.Float64},
	} {
		r := rand.New(rand.NewPCG(1, 2))
		keys, ints, floats := make([]int64, n), make([]int64, n), make([]float64, n)
		for i := range keys {
			keys[i], ints[i] = r.Int64N(c.groups)*c.spread, r.Int64N(1000)
			floats[i] = float64(ints[i]) / 100
		}
		_, sig, o, err := ResolveAggregate(c.agg, []types.Type{c.typ}, nil)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				g := hashtable.NewGroups([]types.Type{types.Int64})
				accs := []Accumulator{o.New(AggConfig{Args: sig.Args, Ret: sig.Returns}), newCount(AggConfig{})}
				ids := make([]uint32, batch)
				for from := 0; from < n; from += batch {
					to := min(n, from+batch)
					part := ids[:to-from]
					g.FindOrAdd([]arrow.Array{kernels.NewFixed(arrow.PrimitiveTypes.Int64, keys[from:to], nil)}, len(part), part)
					for _, a := range accs {
						a.Resize(g.Len())
					}
					v := kernels.NewFixed(arrow.PrimitiveTypes.Int64, ints[from:to], nil)
					if c.typ.Kind == types.Double {
						v = kernels.NewFixed(arrow.PrimitiveTypes.Float64, floats[from:to], nil)
					}
					if err := accs[0].Add(part, []Arg{{Array: v}}, nil); err != nil {
						b.Fatal(err)
					}
					if err := accs[1].Add(part, nil, nil); err != nil {
						b.Fatal(err)
					}
				}
				all := make([]uint32, g.Len())
				for i := range all {
					all[i] = uint32(i)
				}
				for _, a := range accs {
					if _, err := a.Result(all); err != nil {
						b.Fatal(err)
					}
				}
				g.Keys(0, g.Len())
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/row")
		})
	}
}
