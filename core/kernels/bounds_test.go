package kernels

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

func TestBounds(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	floats := func(valid []bool, v ...float64) arrow.Array {
		b := array.NewFloat64Builder(memory.DefaultAllocator)
		b.AppendValues(v, valid)
		return b.NewArray()
	}
	ints := func(valid []bool, v ...int64) arrow.Array {
		b := array.NewInt64Builder(memory.DefaultAllocator)
		b.AppendValues(v, valid)
		return b.NewArray()
	}
	u64 := array.NewUint64Builder(memory.DefaultAllocator)
	u64.AppendValues([]uint64{math.MaxUint64, 3}, nil)
	i8 := array.NewInt8Builder(memory.DefaultAllocator)
	i8.AppendValues([]int8{5, -128, 127}, nil)
	f32 := array.NewFloat32Builder(memory.DefaultAllocator)
	f32.AppendValues([]float32{1.5, float32(nan)}, nil)
	dec := array.NewDecimal128Builder(memory.DefaultAllocator, &arrow.Decimal128Type{Precision: 38, Scale: 2})
	dec.AppendValues([]decimal128.Num{decimal128.FromI64(-7), decimal128.FromI64(9)}, nil)
	wide := array.NewDecimal128Builder(memory.DefaultAllocator, &arrow.Decimal128Type{Precision: 38, Scale: 2})
	wide.AppendValues([]decimal128.Num{decimal128.FromI64(1), decimal128.New(1, 0)}, nil)
	text := array.NewStringBuilder(memory.DefaultAllocator)
	text.Append("x")
	none := []bool{false, false}
	for name, c := range map[string]struct {
		a      arrow.Array
		lo, hi int64
		ok     bool
	}{
		"integers":        {ints(nil, 3, -2, 9, math.MinInt64, 4), math.MinInt64, 9, true},
		"one":             {ints(nil, 3), 3, 3, true},
		"with NULLs":      {ints([]bool{false, true, true, false}, math.MinInt64, 5, 2, math.MaxInt64), 2, 5, true},
		"only NULLs":      {ints(none, 1, 2), 0, 0, false},
		"none":            {ints(nil), 0, 0, false},
		"a slice":         {array.NewSlice(ints(nil, -9, 3, 4, 99), 1, 3), 3, 4, true},
		"a slice, NULLs":  {array.NewSlice(ints([]bool{true, false, true, true}, -9, 3, 4, 99), 1, 3), 4, 4, true},
		"bytes":           {i8.NewArray(), -128, 127, true},
		"unsigned":        {u64.NewArray(), UnsignedOrder(3), UnsignedOrder(math.MaxUint64), true},
		"floats":          {floats(nil, 0.5, -inf, inf), FloatOrder(-inf), FloatOrder(inf), true},
		"zeros":           {floats(nil, 0, math.Copysign(0, -1)), FloatOrder(math.Copysign(0, -1)), 0, true},
		"NaNs":            {floats(nil, nan, 2, math.Copysign(nan, -1), 1), FloatOrder(1), FloatOrder(2), true},
		"only NaNs":       {floats(nil, nan, nan), 0, 0, false},
		"floats, NULLs":   {floats([]bool{false, true, true}, -5, 2, 1), FloatOrder(1), FloatOrder(2), true},
		"floats and NULL": {floats(none, 1, 2), 0, 0, false},
		"real":            {f32.NewArray(), FloatOrder(1.5), FloatOrder(1.5), true},
		"decimals":        {dec.NewArray(), -7, 9, true},
		"wide decimals":   {wide.NewArray(), 0, 0, false},
		"text":            {text.NewArray(), 0, 0, false},
	} {
		lo, hi, ok := Bounds(c.a)
		if ok != c.ok || ok && (lo != c.lo || hi != c.hi) {
			t.Errorf("%s: %d %d %v, want %d %d %v", name, lo, hi, ok, c.lo, c.hi, c.ok)
		}
	}
}

func TestOrdersTurnBack(t *testing.T) {
	sorted := []float64{math.Inf(-1), -math.MaxFloat64, -1, -math.SmallestNonzeroFloat64, 0, math.SmallestNonzeroFloat64, 1, math.Inf(1)}
	var places []int64
	for _, v := range sorted {
		places = append(places, FloatOrder(v))
		if FromFloatOrder(FloatOrder(v)) != v {
			t.Errorf("%v comes back as %v", v, FromFloatOrder(FloatOrder(v)))
		}
	}
	if !slices.IsSorted(places) {
		t.Error(places)
	}
	for _, v := range []uint64{0, 1, 1<<63 - 1, 1 << 63, math.MaxUint64} {
		if FromUnsignedOrder(UnsignedOrder(v)) != v {
			t.Error(v)
		}
	}
}

func BenchmarkBounds(b *testing.B) {
	const n = 64 << 10
	v := make([]int64, n)
	f := make([]float64, n)
	for i := range v {
		v[i], f[i] = rand.Int64(), rand.Float64()
	}
	for name, a := range map[string]arrow.Array{"int64": NewFixed(arrow.PrimitiveTypes.Int64, v, nil), "float64": NewFixed(arrow.PrimitiveTypes.Float64, f, nil)} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(n * 8)
			for b.Loop() {
				Bounds(a)
			}
		})
	}
}
