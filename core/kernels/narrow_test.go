package kernels

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
)

func TestPackDecimals(t *testing.T) {
	for _, c := range []struct {
		v    []int64
		most uint64
	}{
		{nil, 1}, {[]int64{0}, 1}, {[]int64{1, -1}, 2}, {[]int64{100, 27}, 128}, {[]int64{-128}, 128}, {[]int64{-129}, 129},
		{[]int64{math.MaxInt64}, 1 << 63}, {[]int64{math.MinInt64}, 1 << 63},
	} {
		wide := make([]decimal128.Num, len(c.v))
		for i, x := range c.v {
			wide[i] = decimal128.FromI64(x)
		}
		out := make([]int64, len(c.v))
		if most, ok := PackDecimals(out, wide); !ok || most != c.most || !slices.Equal(out, c.v) {
			t.Errorf("%v packs to %v, %d, %t", c.v, out, most, ok)
		}
		if most := MostOf(c.v); most != c.most {
			t.Errorf("the bound of %v is %d", c.v, most)
		}
		back := make([]decimal128.Num, len(c.v))
		if UnpackDecimals(back, out); !slices.Equal(back, wide) {
			t.Errorf("%v unpacks to %v", c.v, back)
		}
	}
	for _, x := range []decimal128.Num{decimal128.New(0, 1<<63), decimal128.New(-1, 1<<63-1), decimal128.New(1, 0), decimal128.New(math.MinInt64, 0)} {
		if _, ok := PackDecimals(make([]int64, 1), []decimal128.Num{x}); ok {
			t.Errorf("%v fits 64 bits", x)
		}
	}
}

func TestSumFew(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 9))
	for _, n := range []int{0, 1, 2, 7, 1000} {
		groups, v := make([]uint32, n), make([]int64, n)
		want, rows := make([]big.Int, MaxSmall), make([]int64, MaxSmall)
		for i := range v {
			groups[i], v[i] = uint32(r.IntN(1+r.IntN(MaxSmall))), int64(r.Uint64()>>r.IntN(64))
			want[groups[i]].Add(&want[groups[i]], big.NewInt(v[i]))
			rows[groups[i]]++
		}
		var sums [2][MaxSmall]SmallSum
		SumFew(&sums, groups, v)
		for g := range want {
			got, seen := new(big.Int), int64(0)
			for k := range sums {
				s := &sums[k][g]
				got.Add(got, big.NewInt(s.Low))
				got.Add(got, new(big.Int).Lsh(big.NewInt(s.High), 32))
				seen += s.Rows
			}
			if got.Cmp(&want[g]) != 0 || seen != rows[g] {
				t.Fatalf("group %d of %d rows: %v of %d, want %v of %d", g, n, got, seen, &want[g], rows[g])
			}
		}
	}
}

func BenchmarkSumFew(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 9))
	groups, v := make([]uint32, benchRows), make([]int64, benchRows)
	for i := range v {
		groups[i], v[i] = uint32(r.IntN(4)), int64(r.IntN(1000000))
	}
	var sums [2][MaxSmall]SmallSum
	perRow(b, func() { SumFew(&sums, groups, v) })
}

func BenchmarkPackDecimals(b *testing.B) {
	out, wide := make([]int64, benchRows), make([]decimal128.Num, benchRows)
	perRow(b, func() { PackDecimals(out, wide) })
}
