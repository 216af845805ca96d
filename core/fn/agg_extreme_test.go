package fn

import (
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/core/types"
)

// The extremes of one group, where bounds of whole arrays are taken, are those of the same rows among two groups.
func TestExtremesOfOneGroup(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 3))
	for _, typ := range []types.Type{types.Int8, types.Int16, types.Int32, types.Int64, types.Uint8, types.Uint64, types.Date32, types.TsUS, types.TsS, types.TsTZ, types.TimeUS, types.Float64, types.Bool} {
		for _, greatest := range []bool{false, true} {
			one, two := newExtreme(greatest)(AggConfig{Args: []types.Type{typ}, Ret: typ}), newExtreme(greatest)(AggConfig{Args: []types.Type{typ}, Ret: typ})
			one.Resize(1)
			two.Resize(2)
			check := func() {
				got, err := one.Result([]uint32{0})
				if err != nil {
					t.Fatal(err)
				}
				want, err := two.Result([]uint32{0})
				if err != nil || !array.Equal(got, want) {
					t.Fatalf("%s, greatest %t: %v, want %v, %v", typ, greatest, got, want, err)
				}
			}
			check()
			for range 20 {
				x := make([]types.Value, 3+r.IntN(9))
				for i := range x {
					bits := int64(r.Uint64() >> r.IntN(64))
					switch lo, hi := types.IntRange(typ.Kind); {
					case r.IntN(3) == 0:
					case typ.Kind == types.Boolean:
						x[i] = bits&1 == 0
					case typ.Kind == types.Double:
						x[i] = float64(bits)
					case typ.Kind == types.UBigInt:
						x[i] = uint64(bits)
					case typ.Kind == types.UTinyInt:
						x[i] = uint64(uint8(bits))
					case typ.Kind == types.Time:
						x[i] = bits & (1<<36 - 1)
					case typ.Kind == types.Date:
						x[i] = int64(int32(bits))
					case hi > lo:
						x[i] = lo + (bits-lo)&(hi-lo)
					default:
						x[i] = bits
					}
				}
				a := array.NewSlice(types.ArrayOf(x, typ), 1, int64(len(x)-1))
				ids := make([]uint32, a.Len())
				for _, acc := range []Accumulator{one, two} {
					if err := acc.Add(ids, []Arg{{Array: a}}, nil); err != nil {
						t.Fatal(err)
					}
				}
				check()
			}
		}
	}
}
