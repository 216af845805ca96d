// Package rowkeytest makes random columns of every type for the tests of what handles rows.
//
// Invariant: a seed gives the same columns for ever, and about half of the columns are slices with an offset.
package rowkeytest

import (
	"math"
	"math/rand/v2"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/riverbed/riverbed/core/types"
)

// Types is one of each type, nested ones included.
var Types = []types.Type{
	types.NullType, types.Bool, types.Int8, types.Int16, types.Int32, types.Int64, types.Int128, types.Uint8, types.Uint16,
	types.Uint32, types.Uint64, types.Uint128, types.Float32, types.Float64, types.Dec(9, 2), types.Dec(38, 10), types.String,
	types.Binary, types.Date32, types.TimeUS, types.TsS, types.TsMS, types.TsUS, types.TsNS, types.TsTZ, types.Span,
	types.UUIDType, types.JSONType,
	types.ListOf(types.Int32), types.ListOf(types.String), types.ListOf(types.ListOf(types.Bool)),
	types.StructOf(types.Field{Name: "a", Type: types.Float64}, types.Field{Name: "b", Type: types.String}),
	types.MapOf(types.String, types.Int64),
	types.ListOf(types.StructOf(types.Field{Name: "x", Type: types.Span}, types.Field{Name: "y", Type: types.ListOf(types.UUIDType)})),
}

// Column makes n random values of a type, about one in six NULL. Values collide often.
func Column(r *rand.Rand, t types.Type, n int) arrow.Array {
	lead := 0
	if r.IntN(2) == 0 {
		lead = 1 + r.IntN(20)
	}
	b := array.NewBuilder(memory.DefaultAllocator, t.Arrow())
	nulls := r.IntN(4) > 0
	for range lead + n + lead {
		Append(r, b, t, nulls)
	}
	return array.NewSlice(b.NewArray(), int64(lead), int64(lead+n))
}

// Append appends one random value.
func Append(r *rand.Rand, bld array.Builder, t types.Type, nulls bool) {
	if nulls && r.IntN(6) == 0 || t.Kind == types.Null {
		bld.AppendNull()
		return
	}
	switch b := bld.(type) {
	case *array.BooleanBuilder:
		b.Append(r.IntN(2) == 0)
	case *array.Int8Builder:
		b.Append(int8(integer(r)))
	case *array.Int16Builder:
		b.Append(int16(integer(r)))
	case *array.Int32Builder:
		b.Append(int32(integer(r)))
	case *array.Int64Builder:
		b.Append(integer(r))
	case *array.Uint8Builder:
		b.Append(uint8(integer(r)))
	case *array.Uint16Builder:
		b.Append(uint16(integer(r)))
	case *array.Uint32Builder:
		b.Append(uint32(integer(r)))
	case *array.Uint64Builder:
		b.Append(uint64(integer(r)))
	case *array.Float32Builder:
		b.Append(float32(Float(r)))
	case *array.Float64Builder:
		b.Append(Float(r))
	case *array.Decimal128Builder:
		if t.Kind == types.UHugeInt || t.Kind == types.HugeInt || r.IntN(3) > 0 {
			b.Append(decimal128.New(integer(r), uint64(integer(r))))
		} else {
			b.Append(decimal128.FromI64(integer(r)))
		}
	case *array.StringBuilder:
		b.Append(Text(r))
	case *array.BinaryBuilder:
		b.Append([]byte(Text(r)))
	case *array.Date32Builder:
		b.Append(arrow.Date32(integer(r)))
	case *array.Time64Builder:
		b.Append(arrow.Time64(integer(r)))
	case *array.TimestampBuilder:
		b.Append(arrow.Timestamp(integer(r)))
	case *array.MonthDayNanoIntervalBuilder:
		b.Append(arrow.MonthDayNanoInterval{Months: int32(r.IntN(5) - 2), Days: int32(30 * (r.IntN(5) - 2)), Nanoseconds: 43200_000_000_000 * int64(r.IntN(5)-2)})
	case *array.FixedSizeBinaryBuilder:
		v := make([]byte, 16)
		for i := range v {
			v[i] = byte(r.IntN(2) * 255)
		}
		b.Append(v)
	case *array.MapBuilder: // before ListBuilder: a map is one
		b.Append(true)
		for range r.IntN(3) {
			Append(r, b.KeyBuilder(), *t.Key, false)
			Append(r, b.ItemBuilder(), *t.Elem, nulls)
		}
	case *array.ListBuilder:
		b.Append(true)
		for range r.IntN(4) {
			Append(r, b.ValueBuilder(), *t.Elem, nulls)
		}
	case *array.StructBuilder:
		b.Append(true)
		for i, f := range t.Fields {
			Append(r, b.FieldBuilder(i), f.Type, nulls)
		}
	default:
		panic("rowkeytest: no values of " + t.String())
	}
}

func integer(r *rand.Rand) int64 {
	switch r.IntN(6) {
	case 0:
		return int64(r.Uint64())
	case 1:
		return []int64{math.MinInt64, math.MaxInt64, -1, 255, 256, 127, -128, 1 << 31}[r.IntN(8)]
	}
	return int64(r.IntN(9) - 4)
}

// Float is a random float of any kind: NaN of several payloads, infinities, zeros of both signs, subnormals, wide exponents.
func Float(r *rand.Rand) float64 {
	switch r.IntN(8) {
	case 0:
		return []float64{math.NaN(), math.Float64frombits(0xFFF8000000000001), math.Inf(1), math.Inf(-1), 0, math.Copysign(0, -1),
			math.MaxFloat64, -math.MaxFloat64, math.SmallestNonzeroFloat64, -math.SmallestNonzeroFloat64}[r.IntN(10)]
	case 1:
		return math.Float64frombits(r.Uint64())
	case 2:
		return r.NormFloat64()
	}
	return float64(r.IntN(5) - 2)
}

// Text is a random text: short and long, with zero bytes and equal beginnings.
func Text(r *rand.Rand) string {
	var b strings.Builder
	if r.IntN(3) == 0 {
		b.WriteString("a common beginning ")
	}
	for range r.IntN(20) >> r.IntN(4) {
		b.WriteByte([]byte{0, 0xFF, 1, 'a', 'b', 'c'}[r.IntN(6)])
	}
	return b.String()
}
