package iceberg

import (
	"encoding/binary"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/core/errs"
)

// rowKeys writes the values of a row as bytes, equal for equal values: NULL equals NULL, −0 equals 0, NaN equals NaN.
type rowKeys []func(dst []byte, row int) []byte

// keysOf makes the keys of the rows of columns.
func keysOf(cols []arrow.Array) rowKeys {
	out := make(rowKeys, len(cols))
	for i, c := range cols {
		out[i] = withNull(c, valueKey(c))
	}
	return out
}

// of appends the key of a row.
func (k rowKeys) of(dst []byte, row int) []byte {
	for _, part := range k {
		dst = part(dst, row)
	}
	return dst
}

func withNull(a arrow.Array, value func([]byte, int) []byte) func([]byte, int) []byte {
	return func(dst []byte, row int) []byte {
		if a.IsNull(row) {
			return append(dst, 0)
		}
		return value(append(dst, 1), row)
	}
}

func valueKey(a arrow.Array) func(dst []byte, row int) []byte {
	word := func(dst []byte, v uint64) []byte { return binary.LittleEndian.AppendUint64(dst, v) }
	text := func(dst []byte, s string) []byte { return append(binary.AppendUvarint(dst, uint64(len(s))), s...) }
	switch a := a.(type) {
	case *array.Boolean:
		return func(dst []byte, row int) []byte {
			if a.Value(row) {
				return append(dst, 1)
			}
			return append(dst, 0)
		}
	case *array.Int8:
		return func(dst []byte, row int) []byte { return word(dst, uint64(int64(a.Value(row)))) }
	case *array.Int16:
		return func(dst []byte, row int) []byte { return word(dst, uint64(int64(a.Value(row)))) }
	case *array.Int32:
		return func(dst []byte, row int) []byte { return word(dst, uint64(int64(a.Value(row)))) }
	case *array.Int64:
		return func(dst []byte, row int) []byte { return word(dst, uint64(a.Value(row))) }
	case *array.Float32:
		return func(dst []byte, row int) []byte { return word(dst, floatKey(float64(a.Value(row)))) }
	case *array.Float64:
		return func(dst []byte, row int) []byte { return word(dst, floatKey(a.Value(row))) }
	case *array.Decimal128:
		return func(dst []byte, row int) []byte {
			v := a.Value(row)
			return word(word(dst, uint64(v.HighBits())), v.LowBits())
		}
	case *array.Date32:
		return func(dst []byte, row int) []byte { return word(dst, uint64(int64(a.Value(row)))) }
	case *array.Time64:
		return func(dst []byte, row int) []byte { return word(dst, uint64(a.Value(row))) }
	case *array.Timestamp:
		return func(dst []byte, row int) []byte { return word(dst, uint64(a.Value(row))) }
	case *array.String:
		return func(dst []byte, row int) []byte { return text(dst, a.Value(row)) }
	case *array.Binary:
		return func(dst []byte, row int) []byte { return text(dst, string(a.Value(row))) }
	case *array.FixedSizeBinary:
		return func(dst []byte, row int) []byte { return append(dst, a.Value(row)...) }
	}
	panic(errs.Bug("key", "no key of a %s", a.DataType())) // AIDEV-NOTE: whoever asks has refused nested columns
}

func floatKey(v float64) uint64 {
	switch {
	case v == 0:
		v = 0
	case math.IsNaN(v):
		v = math.NaN()
	}
	return math.Float64bits(v)
}
