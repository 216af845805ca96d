package hashtable

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/rowkey"
	"github.com/riverbed/riverbed/core/types"
)

// TestRanged compares with Groups, which packs by type: values whose range grows up and down until two words do not suffice, and
// NULLs that come late.
func TestRanged(t *testing.T) {
	for _, ts := range [][]types.Type{
		{types.Int64, types.Int64}, {types.Int64, types.Int64, types.Int64, types.Int8}, {types.String, types.Int64}, {types.String, types.String},
		{types.Float64, types.Date32, types.String}, {types.Uint64, types.Bool, types.Int64}, {types.Uint32, types.String}, {types.TsUS, types.Int64, types.String, types.String},
	} {
		for seed := range uint64(20) {
			r := rand.New(rand.NewPCG(seed, 11))
			table, model := NewTable(ts), NewGroups(ts)
			if _, ok := table.(*ranged); !ok {
				t.Fatalf("%v: %T", ts, table)
			}
			span := uint64(1)
			for batch := range 14 {
				n := 1 + r.IntN(60)
				cols := make([]arrow.Array, len(ts))
				for c, typ := range ts {
					vals := make([]types.Value, n)
					for i := range vals {
						vals[i] = value(r, typ, span)
						if batch > 4 && r.IntN(9) == 0 {
							vals[i] = nil
						}
					}
					cols[c] = types.ArrayOf(vals, typ)
					if n > 3 && batch%2 == 1 {
						cols[c] = sliceAll([]arrow.Array{types.ArrayOf(append([]types.Value{nil, nil}, vals...), typ)}, 2, n+2)[0]
					}
				}
				got, want := make([]uint32, n), make([]uint32, n)
				table.FindOrAdd(cols, n, got)
				model.FindOrAdd(cols, n, want)
				if !slices.Equal(got, want) {
					t.Fatalf("%v, seed %d, span %d: %v, want %v", ts, seed, span, got, want)
				}
				if k := table.Len(); k != model.Len() || !sameKeys(table.Keys(0, k), model.Keys(0, k), ts, k) || !sameKeys(table.KeysOf(got), model.KeysOf(got), ts, n) {
					t.Fatalf("%v, seed %d, span %d: other keys", ts, seed, span)
				}
				if r.IntN(3) > 0 {
					span *= 1 << r.IntN(12)
				}
			}
		}
	}
}

// value is one of about span values around 0.
func value(r *rand.Rand, t types.Type, span uint64) types.Value {
	x := int64(r.Uint64N(max(span, 1))) - int64(span/2)
	switch t.Kind {
	case types.Varchar:
		return fmt.Sprint(x % 700)
	case types.Double:
		return float64(x) / 4
	case types.Boolean:
		return x%2 == 0
	case types.TinyInt:
		return int64(int8(x))
	case types.Date:
		return int64(int32(x))
	case types.UInteger:
		return uint64(uint32(x))
	case types.UBigInt:
		return uint64(x)
	}
	return x
}

func sameKeys(a, b []arrow.Array, ts []types.Type, n int) bool {
	x, y := rowkey.Encode(a, ts, nil, n), rowkey.Encode(b, ts, nil, n)
	return slices.Equal(x.Data, y.Data) && slices.Equal(x.Offs, y.Offs)
}
