package kernels

import (
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// Bounds returns the least and the greatest value of an array of numbers or times, as integers in the values' order: signed
// ones as they are, unsigned ones by UnsignedOrder, floats widened to double by FloatOrder, decimals by their unscaled
// integer. NULLs and NaNs are left out. ok is false when no value is left, for other types, and for decimals beyond 64 bits.
func Bounds(a arrow.Array) (lo, hi int64, ok bool) {
	if a.NullN() == a.Len() {
		return 0, 0, false
	}
	switch a := a.(type) {
	case *array.Int8:
		return integerBounds(a, a.Int8Values())
	case *array.Int16:
		return integerBounds(a, a.Int16Values())
	case *array.Int32:
		return integerBounds(a, a.Int32Values())
	case *array.Int64:
		return integerBounds(a, a.Int64Values())
	case *array.Date32:
		return integerBounds(a, a.Date32Values())
	case *array.Time64:
		return integerBounds(a, a.Time64Values())
	case *array.Timestamp:
		return integerBounds(a, a.TimestampValues())
	case *array.Uint8:
		return unsignedBounds(a, a.Uint8Values())
	case *array.Uint16:
		return unsignedBounds(a, a.Uint16Values())
	case *array.Uint32:
		return unsignedBounds(a, a.Uint32Values())
	case *array.Uint64:
		return unsignedBounds(a, a.Uint64Values())
	case *array.Float32:
		return floatBounds(a, a.Float32Values())
	case *array.Float64:
		return floatBounds(a, a.Float64Values())
	case *array.Decimal128:
		return decimalBounds(a)
	}
	return 0, 0, false
}

// UnsignedOrder places unsigned integers on the line of signed ones, in their order.
func UnsignedOrder(v uint64) int64 { return int64(v ^ 1<<63) }

// FromUnsignedOrder turns UnsignedOrder back.
func FromUnsignedOrder(v int64) uint64 { return uint64(v) ^ 1<<63 }

// FloatOrder places doubles on the line of integers, in their order: -0.0 below 0.0, NaNs beyond both infinities.
func FloatOrder(v float64) int64 {
	b := int64(math.Float64bits(v))
	return b ^ int64(uint64(b>>63)>>1)
}

// FromFloatOrder turns FloatOrder back.
func FromFloatOrder(v int64) float64 {
	return math.Float64frombits(uint64(v ^ int64(uint64(v>>63)>>1)))
}

var lowestNumber, highestNumber = FloatOrder(math.Inf(-1)), FloatOrder(math.Inf(1))

type ordinal interface {
	~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64
}

func integerBounds[T ordinal](a arrow.Array, v []T) (lo, hi int64, ok bool) {
	l, h, ok := ordinalBounds(a, v)
	return int64(l), int64(h), ok
}

func unsignedBounds[T ordinal](a arrow.Array, v []T) (lo, hi int64, ok bool) {
	l, h, ok := ordinalBounds(a, v)
	return UnsignedOrder(uint64(l)), UnsignedOrder(uint64(h)), ok
}

func ordinalBounds[T ordinal](a arrow.Array, v []T) (lo, hi T, ok bool) {
	if a.NullN() == 0 {
		lo, hi = Range(v)
		return lo, hi, len(v) > 0
	}
	for i, x := range v {
		switch {
		case a.IsNull(i):
		case !ok:
			lo, hi, ok = x, x, true
		default:
			lo, hi = min(lo, x), max(hi, x)
		}
	}
	return lo, hi, ok
}

// Range is the least and the greatest of v, 0 of none. It keeps two bounds of each kind, so that no comparison waits for the one before it.
func Range[T ordinal](v []T) (lo, hi T) {
	if len(v) == 0 {
		return 0, 0
	}
	lo, hi = v[0], v[0]
	lo2, hi2 := lo, hi
	for ; len(v) >= 2; v = v[2:] {
		lo, hi = min(lo, v[0]), max(hi, v[0])
		lo2, hi2 = min(lo2, v[1]), max(hi2, v[1])
	}
	if len(v) == 1 {
		lo, hi = min(lo, v[0]), max(hi, v[0])
	}
	return min(lo, lo2), max(hi, hi2)
}

func floatBounds[T float32 | float64](a arrow.Array, v []T) (lo, hi int64, ok bool) {
	lo, hi = math.MaxInt64, math.MinInt64
	nulls := a.NullN() > 0
	for i, x := range v {
		if o := FloatOrder(float64(x)); o < lo || o > hi {
			if o < lowestNumber || o > highestNumber || nulls && a.IsNull(i) {
				continue
			}
			lo, hi = min(lo, o), max(hi, o)
		}
	}
	return lo, hi, lo <= hi
}

func decimalBounds(a *array.Decimal128) (lo, hi int64, ok bool) {
	nulls := a.NullN() > 0
	for i, d := range a.Values() {
		if nulls && a.IsNull(i) {
			continue
		}
		x := int64(d.LowBits())
		if d.HighBits() != x>>63 {
			return 0, 0, false
		}
		if !ok {
			lo, hi, ok = x, x, true
		}
		lo, hi = min(lo, x), max(hi, x)
	}
	return lo, hi, ok
}
