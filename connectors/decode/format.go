package decode

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/riverbed/riverbed/core/types"
)

// TextWriter appends the text of a row's value, which is not NULL.
type TextWriter func(dst []byte, row int) []byte

// Text makes a writer of DuckDB's text of a column without parts: what NewBuilder of the same type reads.
func Text(t types.Type, a arrow.Array) (TextWriter, error) {
	switch x := a.(type) {
	case *array.Boolean:
		return func(dst []byte, row int) []byte { return strconv.AppendBool(dst, x.Value(row)) }, nil
	case *array.Int8:
		return signed(x.Int8Values()), nil
	case *array.Int16:
		return signed(x.Int16Values()), nil
	case *array.Int32:
		return signed(x.Int32Values()), nil
	case *array.Int64:
		return signed(x.Int64Values()), nil
	case *array.Uint8:
		return unsigned(x.Uint8Values()), nil
	case *array.Uint16:
		return unsigned(x.Uint16Values()), nil
	case *array.Uint32:
		return unsigned(x.Uint32Values()), nil
	case *array.Uint64:
		return unsigned(x.Uint64Values()), nil
	case *array.Float32:
		return func(dst []byte, row int) []byte { return AppendFloat(dst, float64(x.Value(row)), 32) }, nil
	case *array.Float64:
		return func(dst []byte, row int) []byte { return AppendFloat(dst, x.Value(row), 64) }, nil
	case *array.Decimal128:
		return func(dst []byte, row int) []byte { return appendDecimal(dst, x.Value(row), int32(t.Scale)) }, nil
	case *array.String:
		return func(dst []byte, row int) []byte { return append(dst, x.Value(row)...) }, nil
	case *array.Binary:
		return func(dst []byte, row int) []byte { return append(dst, x.Value(row)...) }, nil
	case *array.Date32:
		return func(dst []byte, row int) []byte {
			return time.Unix(int64(x.Value(row))*86400, 0).UTC().AppendFormat(dst, time.DateOnly)
		}, nil
	case *array.Time64:
		return func(dst []byte, row int) []byte {
			return time.UnixMicro(int64(x.Value(row))).UTC().AppendFormat(dst, "15:04:05.999999")
		}, nil
	case *array.Timestamp:
		unit := x.DataType().(*arrow.TimestampType)
		layout := "2006-01-02 15:04:05.999999999"
		if unit.TimeZone != "" {
			layout += "+00"
		}
		return func(dst []byte, row int) []byte {
			return x.Value(row).ToTime(unit.Unit).UTC().AppendFormat(dst, layout)
		}, nil
	case *array.FixedSizeBinary:
		return func(dst []byte, row int) []byte {
			v := x.Value(row)
			return fmt.Appendf(dst, "%x-%x-%x-%x-%x", v[:4], v[4:6], v[6:8], v[8:10], v[10:])
		}, nil
	case *array.MonthDayNanoInterval:
		return func(dst []byte, row int) []byte {
			v := x.Value(row)
			return append(dst, types.Format(types.IntervalValue{Months: v.Months, Days: v.Days, Micros: v.Nanoseconds / 1000}, types.Span)...)
		}, nil
	}
	return nil, fmt.Errorf("%s has no text form here", t)
}

func signed[T int8 | int16 | int32 | int64](v []T) TextWriter {
	return func(dst []byte, row int) []byte { return strconv.AppendInt(dst, int64(v[row]), 10) }
}

func unsigned[T uint8 | uint16 | uint32 | uint64](v []T) TextWriter {
	return func(dst []byte, row int) []byte { return strconv.AppendUint(dst, uint64(v[row]), 10) }
}

// AppendFloat writes the shortest text that reads back as the same float; whole numbers keep ".0".
func AppendFloat(dst []byte, f float64, bits int) []byte {
	switch {
	case math.IsNaN(f):
		return append(dst, "NaN"...)
	case math.IsInf(f, 1):
		return append(dst, "Infinity"...)
	case math.IsInf(f, -1):
		return append(dst, "-Infinity"...)
	}
	format := byte('f')
	if abs := math.Abs(f); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		format = 'e'
	}
	start := len(dst)
	dst = strconv.AppendFloat(dst, f, format, -1, bits)
	for _, c := range dst[start:] {
		if c == '.' || c == 'e' {
			return dst
		}
	}
	return append(dst, ".0"...)
}

func appendDecimal(dst []byte, n decimal128.Num, scale int32) []byte {
	b := n.BigInt()
	if scale == 0 {
		return b.Append(dst, 10)
	}
	if b.Sign() < 0 {
		dst = append(dst, '-')
		b.Neg(b)
	}
	digits := b.Append(nil, 10)
	for int32(len(digits)) <= scale {
		digits = append([]byte{'0'}, digits...)
	}
	point := len(digits) - int(scale)
	return append(append(append(dst, digits[:point]...), '.'), digits[point:]...)
}
