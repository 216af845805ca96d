package json

import (
	"encoding/base64"
	"fmt"
	"math"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/types"
)

// Encoder writes rows of one batch as JSON objects.
//
// Numbers stay numbers, DECIMAL with all its digits; dates and times are DuckDB's text; NaN and infinities are the
// texts "NaN", "Infinity" and "-Infinity", which JSON has no numbers for; BLOB is base64.
type Encoder struct {
	keys  [][]byte // `"name":`
	write []writer
}

type writer func(dst []byte, row int) []byte

// NewEncoder makes an encoder of the columns.
func NewEncoder(fields []types.Field, columns []arrow.Array) (*Encoder, error) {
	e := &Encoder{}
	for i, f := range fields {
		w, err := newWriter(f.Type, columns[i])
		if err != nil {
			return nil, fmt.Errorf("column %q: %w", f.Name, err)
		}
		e.keys = append(e.keys, append(quote(nil, f.Name), ':'))
		e.write = append(e.write, w)
	}
	return e, nil
}

// Append appends the object of a row, without a newline.
func (e *Encoder) Append(dst []byte, row int) []byte {
	dst = append(dst, '{')
	for i, w := range e.write {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, e.keys[i]...)
		dst = w(dst, row)
	}
	return append(dst, '}')
}

func newWriter(t types.Type, a arrow.Array) (writer, error) {
	w, err := valueWriter(t, a)
	if err != nil || a.NullN() == 0 {
		return w, err
	}
	return func(dst []byte, row int) []byte {
		if a.IsNull(row) {
			return append(dst, "null"...)
		}
		return w(dst, row)
	}, nil
}

func valueWriter(t types.Type, a arrow.Array) (writer, error) {
	switch x := a.(type) {
	case *array.Null:
		return func(dst []byte, _ int) []byte { return append(dst, "null"...) }, nil
	case *array.Boolean:
		return func(dst []byte, row int) []byte { return strconv.AppendBool(dst, x.Value(row)) }, nil
	case *array.Int8:
		return func(dst []byte, row int) []byte { return strconv.AppendInt(dst, int64(x.Value(row)), 10) }, nil
	case *array.Int16:
		return func(dst []byte, row int) []byte { return strconv.AppendInt(dst, int64(x.Value(row)), 10) }, nil
	case *array.Int32:
		return func(dst []byte, row int) []byte { return strconv.AppendInt(dst, int64(x.Value(row)), 10) }, nil
	case *array.Int64:
		return func(dst []byte, row int) []byte { return strconv.AppendInt(dst, x.Value(row), 10) }, nil
	case *array.Uint8:
		return func(dst []byte, row int) []byte { return strconv.AppendUint(dst, uint64(x.Value(row)), 10) }, nil
	case *array.Uint16:
		return func(dst []byte, row int) []byte { return strconv.AppendUint(dst, uint64(x.Value(row)), 10) }, nil
	case *array.Uint32:
		return func(dst []byte, row int) []byte { return strconv.AppendUint(dst, uint64(x.Value(row)), 10) }, nil
	case *array.Uint64:
		return func(dst []byte, row int) []byte { return strconv.AppendUint(dst, x.Value(row), 10) }, nil
	case *array.Float32:
		return func(dst []byte, row int) []byte { return appendFloat(dst, float64(x.Value(row)), 32) }, nil
	case *array.Float64:
		return func(dst []byte, row int) []byte { return appendFloat(dst, x.Value(row), 64) }, nil
	case *array.Decimal128:
		scale := int32(0)
		if t.Kind == types.Decimal {
			scale = int32(t.Scale)
		}
		return func(dst []byte, row int) []byte { return appendDecimal(dst, x.Value(row), scale) }, nil
	case *array.String:
		if t.Kind == types.JSON {
			return func(dst []byte, row int) []byte { return append(dst, x.Value(row)...) }, nil
		}
		return func(dst []byte, row int) []byte { return quote(dst, x.Value(row)) }, nil
	case *array.Binary:
		return func(dst []byte, row int) []byte {
			dst = append(dst, '"')
			dst = base64.StdEncoding.AppendEncode(dst, x.Value(row))
			return append(dst, '"')
		}, nil
	case *array.Date32:
		return func(dst []byte, row int) []byte {
			return append(time.Unix(int64(x.Value(row))*86400, 0).UTC().AppendFormat(append(dst, '"'), time.DateOnly), '"')
		}, nil
	case *array.Time64:
		return func(dst []byte, row int) []byte {
			return append(time.UnixMicro(int64(x.Value(row))).UTC().AppendFormat(append(dst, '"'), "15:04:05.999999"), '"')
		}, nil
	case *array.Timestamp:
		unit := x.DataType().(*arrow.TimestampType)
		layout := "2006-01-02 15:04:05.999999999"
		if unit.TimeZone != "" {
			layout += "+00"
		}
		return func(dst []byte, row int) []byte {
			return append(x.Value(row).ToTime(unit.Unit).UTC().AppendFormat(append(dst, '"'), layout), '"')
		}, nil
	case *array.FixedSizeBinary:
		return func(dst []byte, row int) []byte {
			v := x.Value(row)
			return fmt.Appendf(dst, `"%x-%x-%x-%x-%x"`, v[:4], v[4:6], v[6:8], v[8:10], v[10:])
		}, nil
	case *array.MonthDayNanoInterval:
		return func(dst []byte, row int) []byte {
			v := x.Value(row)
			return fmt.Appendf(dst, `"%d months %d days %d microseconds"`, v.Months, v.Days, v.Nanoseconds/1000)
		}, nil
	case *array.Struct:
		columns := make([]arrow.Array, x.NumField())
		for i := range columns {
			columns[i] = x.Field(i)
		}
		e, err := NewEncoder(t.Fields, columns)
		if err != nil {
			return nil, err
		}
		return e.Append, nil
	case *array.Map:
		keys, err := newWriter(types.String, x.Keys())
		if t.Key.Kind != types.Varchar {
			return nil, errs.New(errs.Usage, "write", "a MAP with keys of %s has no JSON form", t.Key).WithHint("cast the keys to VARCHAR")
		}
		if err != nil {
			return nil, err
		}
		values, err := newWriter(*t.Elem, x.Items())
		if err != nil {
			return nil, err
		}
		return func(dst []byte, row int) []byte {
			from, to := x.ValueOffsets(row)
			dst = append(dst, '{')
			for i := from; i < to; i++ {
				if i > from {
					dst = append(dst, ',')
				}
				dst = values(append(keys(dst, int(i)), ':'), int(i))
			}
			return append(dst, '}')
		}, nil
	case *array.List:
		elem, err := newWriter(*t.Elem, x.ListValues())
		if err != nil {
			return nil, err
		}
		return func(dst []byte, row int) []byte {
			from, to := x.ValueOffsets(row)
			dst = append(dst, '[')
			for i := from; i < to; i++ {
				if i > from {
					dst = append(dst, ',')
				}
				dst = elem(dst, int(i))
			}
			return append(dst, ']')
		}, nil
	}
	return nil, fmt.Errorf("no JSON form of %s", t)
}

func appendFloat(dst []byte, f float64, bits int) []byte {
	switch {
	case math.IsNaN(f):
		return append(dst, `"NaN"`...)
	case math.IsInf(f, 1):
		return append(dst, `"Infinity"`...)
	case math.IsInf(f, -1):
		return append(dst, `"-Infinity"`...)
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
	return append(dst, ".0"...) // it stays a DOUBLE when it is read again
}

func appendDecimal(dst []byte, n decimal128.Num, scale int32) []byte {
	if scale == 0 {
		return n.BigInt().Append(dst, 10)
	}
	return append(dst, n.ToString(scale)...)
}

const hexDigits = "0123456789abcdef"

// quote appends s as a JSON string; bytes that are not UTF-8 become U+FFFD.
func quote(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 {
				dst = append(append(dst, s[start:i]...), "\ufffd"...)
				start = i + 1
			}
			i += n
			continue
		}
		if c >= 0x20 && c != '"' && c != '\\' {
			i++
			continue
		}
		dst = append(dst, s[start:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
		i++
		start = i
	}
	return append(append(dst, s[start:]...), '"')
}
