package files

import (
	"math/big"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/types"
)

// Files of one set may hold a column in types of different width. The column then has the wider type, and the
// narrower arrays are widened as they are read. Only steps that lose nothing are taken.

// unify returns the narrowest type that holds both without loss.
func unify(a, b types.Type) (types.Type, bool) {
	if canWiden(a, b) {
		return b, true
	}
	if canWiden(b, a) {
		return a, true
	}
	if a.Kind == types.Decimal && b.Kind == types.Decimal {
		scale := max(a.Scale, b.Scale)
		width := max(a.Width-a.Scale, b.Width-b.Scale) + scale
		return types.Dec(int(width), int(scale)), width <= 38
	}
	if a.IsInteger() && b.IsInteger() {
		for _, t := range []types.Type{types.Int16, types.Int32, types.Int64} {
			if canWiden(a, t) && canWiden(b, t) {
				return t, true
			}
		}
	}
	if a.Kind == types.Struct && b.Kind == types.Struct {
		return unifyStructs(a, b)
	}
	if a.Kind == types.List && b.Kind == types.List {
		elem, ok := unify(*a.Elem, *b.Elem)
		return types.ListOf(elem), ok && elem.Equal(*a.Elem) && elem.Equal(*b.Elem)
	}
	return types.Type{}, false
}

func unifyStructs(a, b types.Type) (types.Type, bool) {
	return a, a.Equal(b)
}

// intBits is the number of value bits of an integer type, for signed ones without the sign.
var intBits = map[types.Kind]int{
	types.TinyInt: 7, types.SmallInt: 15, types.Integer: 31, types.BigInt: 63,
	types.UTinyInt: 8, types.USmallInt: 16, types.UInteger: 32, types.UBigInt: 64,
}

// canWiden reports whether every value of from is a value of to.
func canWiden(from, to types.Type) bool {
	if from.Equal(to) || from.Kind == types.Null {
		return true
	}
	fb, tb := intBits[from.Kind], intBits[to.Kind]
	switch {
	case fb > 0 && tb > 0:
		return fb <= tb && (to.IsSigned() || !from.IsSigned())
	case fb > 0 && to.Kind == types.Double:
		return true // as DuckDB does, although integers above 2⁵³ are rounded
	case fb > 0 && to.Kind == types.Real:
		return fb <= 16
	case from.Kind == types.Real && to.Kind == types.Double:
		return true
	case from.Kind == types.Decimal && to.Kind == types.Decimal:
		return to.Scale >= from.Scale && to.Width-to.Scale >= from.Width-from.Scale
	case from.Kind == types.Decimal && to.Kind == types.Double:
		return true
	case from.Kind == types.Date && to.Kind == types.Timestamp:
		return true
	case (from.Kind == types.TimestampS || from.Kind == types.TimestampMS) && to.Kind == types.Timestamp:
		return true
	}
	return false
}

// widen converts an array of a type that canWiden to another.
func widen(a arrow.Array, from, to types.Type) arrow.Array {
	if from.Equal(to) {
		return a
	}
	n := a.Len()
	if from.Kind == types.Null {
		return kernels.Nulls(to.Arrow(), n)
	}
	switch to.Kind {
	case types.Decimal:
		values := make([]decimal128.Num, n)
		factor := decimal128.FromBigInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(to.Scale-from.Scale)), nil))
		for i, v := range a.(*array.Decimal128).Values() {
			values[i] = v.Mul(factor)
		}
		return fixed(a, to, arrow.Decimal128Traits.CastToBytes(values))
	case types.Double:
		values := make([]float64, n)
		if d, ok := a.(*array.Decimal128); ok {
			for i, v := range d.Values() {
				values[i] = v.ToFloat64(int32(from.Scale))
			}
		} else if !convertInts(a, func(i int, v int64) { values[i] = float64(v) }) {
			for i, v := range a.(*array.Float32).Float32Values() {
				values[i] = float64(v)
			}
		}
		return fixed(a, to, arrow.Float64Traits.CastToBytes(values))
	case types.Real:
		values := make([]float32, n)
		convertInts(a, func(i int, v int64) { values[i] = float32(v) })
		return fixed(a, to, arrow.Float32Traits.CastToBytes(values))
	case types.Timestamp:
		factor := map[types.Kind]int64{types.Date: 86_400_000_000, types.TimestampS: 1_000_000, types.TimestampMS: 1_000}[from.Kind]
		values := make([]int64, n)
		convertInts(a, func(i int, v int64) { values[i] = v * factor })
		return fixed(a, to, arrow.Int64Traits.CastToBytes(values))
	case types.SmallInt:
		return widenInts[int16](a, to)
	case types.Integer:
		return widenInts[int32](a, to)
	case types.BigInt:
		return widenInts[int64](a, to)
	case types.USmallInt:
		return widenInts[uint16](a, to)
	case types.UInteger:
		return widenInts[uint32](a, to)
	case types.UBigInt:
		return widenInts[uint64](a, to)
	}
	return a
}

func widenInts[T int16 | int32 | int64 | uint16 | uint32 | uint64](a arrow.Array, to types.Type) arrow.Array {
	values := make([]T, a.Len())
	convertInts(a, func(i int, v int64) { values[i] = T(v) })
	return fixed(a, to, arrow.GetBytes(values))
}

// convertInts calls put with every value of an array of whole numbers; false when a holds something else.
func convertInts(a arrow.Array, put func(i int, v int64)) bool {
	switch x := a.(type) {
	case *array.Int8:
		each(x.Int8Values(), put)
	case *array.Int16:
		each(x.Int16Values(), put)
	case *array.Int32:
		each(x.Int32Values(), put)
	case *array.Int64:
		each(x.Int64Values(), put)
	case *array.Uint8:
		each(x.Uint8Values(), put)
	case *array.Uint16:
		each(x.Uint16Values(), put)
	case *array.Uint32:
		each(x.Uint32Values(), put)
	case *array.Uint64:
		each(x.Uint64Values(), put)
	case *array.Date32:
		each(x.Date32Values(), put)
	case *array.Timestamp:
		each(x.TimestampValues(), put)
	default:
		return false
	}
	return true
}

func each[T ~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64](values []T, put func(int, int64)) {
	for i, v := range values {
		put(i, int64(v))
	}
}

// fixed makes an array of to over values, with the validity of a.
func fixed(a arrow.Array, to types.Type, values []byte) arrow.Array {
	var validity *memory.Buffer
	nulls := a.NullN()
	if nulls > 0 {
		bits := make([]byte, (a.Len()+7)/8)
		for i := range a.Len() {
			if a.IsValid(i) {
				bits[i/8] |= 1 << (i % 8)
			}
		}
		validity = memory.NewBufferBytes(bits)
	}
	return array.MakeFromData(array.NewData(to.Arrow(), a.Len(), []*memory.Buffer{validity, memory.NewBufferBytes(values)}, nil, nulls, 0))
}
