package fn

import (
	"encoding/binary"
	"math"
	"math/big"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/types"
)

// Sums of each width, over one, few and many groups, narrow and wide, are the sums.
func TestSumsOfWholeNumbers(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	for _, groups := range []int{1, 2, kernels.MaxSmall, kernels.MaxSmall + 1, 500} {
		for _, typ := range []types.Type{types.Int8, types.Int32, types.Int64, types.Uint32, types.Uint64, types.Dec(18, 2), types.Dec(17, 0)} {
			acc := newSum(AggConfig{Args: []types.Type{typ}, Ret: types.Int128}).(*sumAcc)
			acc.Resize(groups)
			want, rows := make([]big.Int, groups), make([]int64, groups)
			for range 4 {
				n := []int{0, 1, 3, 2000}[r.IntN(4)]
				ids, x := make([]uint32, n), make([]types.Value, n)
				narrow := make([]int64, n)
				valid := kernels.Ones(n)
				for i := range x {
					ids[i] = uint32(r.IntN(groups))
					bits := r.Uint64() >> r.IntN(64)
					v := new(big.Int)
					switch typ.Kind {
					case types.TinyInt:
						x[i], v = int64(int8(bits)), big.NewInt(int64(int8(bits)))
					case types.Integer:
						x[i], v = int64(int32(bits)), big.NewInt(int64(int32(bits)))
					case types.BigInt:
						x[i], v = int64(bits), big.NewInt(int64(bits))
					case types.UInteger:
						x[i], v = uint64(uint32(bits)), v.SetUint64(uint64(uint32(bits)))
					case types.UBigInt:
						x[i], v = bits, v.SetUint64(bits)
					default:
						narrow[i] = int64(bits) % 1e17
						x[i], v = types.Wide(narrow[i]), big.NewInt(narrow[i])
					}
					if r.IntN(5) == 0 && n < 1000 {
						x[i] = nil
						kernels.ClearBit(valid, i)
						continue
					}
					want[ids[i]].Add(&want[ids[i]], v)
					rows[ids[i]]++
				}
				a := types.ArrayOf(x, typ)
				if typ.Kind == types.Decimal && r.IntN(2) == 0 {
					a = kernels.NewFixed(&arrow.Decimal64Type{Precision: int32(typ.Width), Scale: int32(typ.Scale)}, narrow, valid)
				}
				if err := acc.Add(ids, []Arg{{Array: a}}, nil); err != nil {
					t.Fatal(err)
				}
			}
			for g := range want {
				if w := &acc.acc[g]; w.big().Cmp(&want[g]) != 0 || w.rows != rows[g] {
					t.Fatalf("%s, group %d of %d: %v of %d, want %v of %d", typ, g, groups, w.big(), w.rows, &want[g], rows[g])
				}
			}
		}
	}
}

// What a sum saves is short, and is read as it was.
func TestSavedSums(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	check := func(w wideInt) {
		saved := w.save(nil)
		var got wideInt
		if rest := got.load(saved); got != w || len(rest) > 0 {
			t.Fatalf("%+v is read as %+v from % x", w, got, saved)
		}
		if small := w.hi == w.hi>>63 && w.mid == uint64(w.hi) && int64(w.lo)>>63 == w.hi; small && len(saved) > 1+bits.Len64(w.lo^uint64(w.hi))/8+1+binary.MaxVarintLen64 {
			t.Fatalf("%+v takes %d bytes", w, len(saved))
		}
	}
	for shift := range 64 {
		for _, lo := range []int64{1<<shift - 1, 1 << shift, -1 << shift, -1<<shift - 1, math.MinInt64, math.MaxInt64} {
			for _, rows := range []int64{0, 1, -1, 1 << shift, math.MaxInt64} {
				check(wideInt{uint64(lo), uint64(lo >> 63), lo >> 63, rows})
				check(wideInt{uint64(lo), 0, 0, rows})
				check(wideInt{uint64(lo), ^uint64(0), -1, rows})
				check(wideInt{uint64(lo), r.Uint64(), int64(r.Uint64()), rows})
			}
		}
	}
	w := wideInt{lo: 1000, rows: 10}
	if n := len(w.save(nil)); n != 4 {
		t.Errorf("%d bytes for 1000 of ten rows", n)
	}
}
