package postgres

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/connectors/decode"
	djson "github.com/riverbed/riverbed/connectors/decode/json"
	"github.com/riverbed/riverbed/core/types"
)

// columnType is the type of a column that is created for values of t; TYPES.md has the table.
func columnType(t types.Type) (string, error) {
	switch t.Kind {
	case types.Boolean:
		return "boolean", nil
	case types.TinyInt, types.SmallInt, types.UTinyInt:
		return "smallint", nil
	case types.Integer, types.USmallInt:
		return "integer", nil
	case types.BigInt, types.UInteger:
		return "bigint", nil
	case types.UBigInt:
		return "numeric(20,0)", nil
	case types.HugeInt, types.UHugeInt:
		return "numeric(39,0)", nil
	case types.Decimal:
		return fmt.Sprintf("numeric(%d,%d)", t.Width, t.Scale), nil
	case types.Real:
		return "real", nil
	case types.Double:
		return "double precision", nil
	case types.Varchar:
		return "text", nil
	case types.JSON, types.Struct, types.Map:
		return "json", nil
	case types.Blob:
		return "bytea", nil
	case types.Date:
		return "date", nil
	case types.Time:
		return "time", nil
	case types.TimestampS, types.TimestampMS, types.Timestamp, types.TimestampNS:
		return "timestamp", nil
	case types.TimestampTZ:
		return "timestamptz", nil
	case types.Interval:
		return "interval", nil
	case types.UUID:
		return "uuid", nil
	case types.List:
		if t.Elem.Kind == types.List {
			break // an array of arrays is rectangular there, and has no rows when it has no values
		}
		elem, err := columnType(*t.Elem)
		return elem + "[]", err
	}
	return "", fmt.Errorf("%s has no column type in PostgreSQL", t)
}

// valueWriter appends the text of a row's value, which is not NULL, as the server reads it.
type valueWriter func(dst []byte, row int) ([]byte, error)

func newValueWriter(t types.Type, a arrow.Array) (valueWriter, error) {
	switch x := a.(type) {
	case *array.Timestamp:
		nanos := t.Kind == types.TimestampNS
		return func(dst []byte, row int) ([]byte, error) {
			v := int64(x.Value(row))
			if nanos && v%1000 != 0 && v != types.InfinityTS && v != -types.InfinityTS {
				return dst, fmt.Errorf("%s is finer than a microsecond, which is what PostgreSQL keeps", types.Format(v, t))
			}
			return beforeChrist(types.AppendTimestamp(dst, v, t.Kind, nil), len(dst)), nil
		}, nil
	case *array.Date32:
		return func(dst []byte, row int) ([]byte, error) {
			return beforeChrist(types.AppendDate(dst, int64(x.Value(row))), len(dst)), nil
		}, nil
	case *array.Binary:
		return func(dst []byte, row int) ([]byte, error) {
			return hex.AppendEncode(append(dst, `\x`...), x.Value(row)), nil
		}, nil
	case *array.Float64:
		return func(dst []byte, row int) ([]byte, error) { return appendFloat(dst, x.Value(row), 64), nil }, nil
	case *array.Float32:
		return func(dst []byte, row int) ([]byte, error) { return appendFloat(dst, float64(x.Value(row)), 32), nil }, nil
	case *array.Map, *array.Struct:
		w, err := djson.Value(t, a)
		if err != nil {
			return nil, err
		}
		return func(dst []byte, row int) ([]byte, error) { return w(dst, row), nil }, nil
	case *array.List:
		elem, err := newValueWriter(*t.Elem, x.ListValues())
		if err != nil {
			return nil, err
		}
		return func(dst []byte, row int) ([]byte, error) { return appendArray(dst, x, row, elem) }, nil
	case *array.Int8, *array.Int16, *array.Int32, *array.Int64, *array.Uint8, *array.Uint16, *array.Uint32, *array.Uint64, *array.String, *array.Boolean:
		w, err := decode.Text(t, a)
		if err != nil {
			return nil, err
		}
		return func(dst []byte, row int) ([]byte, error) { return w(dst, row), nil }, nil
	}
	return func(dst []byte, row int) ([]byte, error) {
		return types.AppendText(dst, types.ValueAt(a, row, t), t, nil), nil
	}, nil
}

// appendFloat writes whole numbers without a point, so that they fit a column of another type of number.
func appendFloat(dst []byte, f float64, bits int) []byte {
	dst = decode.AppendFloat(dst, f, bits)
	if f == 0 && math.Signbit(f) {
		return dst
	}
	return bytes.TrimSuffix(dst, []byte(".0"))
}

// beforeChrist turns "0044-03-15 (BC) 12:00:00" behind start into "0044-03-15 12:00:00 BC".
func beforeChrist(dst []byte, start int) []byte {
	at := bytes.Index(dst[start:], []byte(" (BC)"))
	if at < 0 {
		return dst
	}
	at += start
	return append(append(dst[:at], dst[at+len(" (BC)"):]...), " BC"...)
}

// appendArray writes {"a",NULL}; every value is quoted.
func appendArray(dst []byte, x *array.List, row int, elem valueWriter) ([]byte, error) {
	from, to := x.ValueOffsets(row)
	values := x.ListValues()
	dst = append(dst, '{')
	var text []byte
	for i := int(from); i < int(to); i++ {
		if i > int(from) {
			dst = append(dst, ',')
		}
		if values.IsNull(i) {
			dst = append(dst, "NULL"...)
			continue
		}
		var err error
		if text, err = elem(text[:0], i); err != nil {
			return dst, err
		}
		dst = append(dst, '"')
		for _, c := range text {
			if c == '"' || c == '\\' {
				dst = append(dst, '\\')
			}
			dst = append(dst, c)
		}
		dst = append(dst, '"')
	}
	return append(dst, '}'), nil
}

// encoder writes rows as lines of COPY's text form.
type encoder struct {
	fields  []types.Field
	columns []arrow.Array
	writers []valueWriter
	text    []byte
}

func newEncoder(fields []types.Field, columns []arrow.Array) (*encoder, error) {
	e := &encoder{fields: fields, columns: columns, writers: make([]valueWriter, len(fields))}
	for i, f := range fields {
		var err error
		if e.writers[i], err = newValueWriter(f.Type, columns[i]); err != nil {
			return nil, fmt.Errorf("column %q: %w", f.Name, err)
		}
	}
	return e, nil
}

// value appends one value, escaped.
func (e *encoder) value(dst []byte, col, row int) ([]byte, error) {
	if e.columns[col].IsNull(row) {
		return append(dst, `\N`...), nil
	}
	var err error
	if e.text, err = e.writers[col](e.text[:0], row); err != nil {
		return dst, fmt.Errorf("column %q: %w", e.fields[col].Name, err)
	}
	for _, c := range e.text {
		switch c {
		case '\\':
			dst = append(dst, `\\`...)
		case '\n':
			dst = append(dst, `\n`...)
		case '\r':
			dst = append(dst, `\r`...)
		case '\t':
			dst = append(dst, `\t`...)
		case 0:
			return dst, fmt.Errorf("column %q: a text of PostgreSQL cannot hold the character U+0000", e.fields[col].Name)
		default:
			dst = append(dst, c)
		}
	}
	return dst, nil
}

// values appends the values of a row, with tabs between.
func (e *encoder) values(dst []byte, row int) ([]byte, error) {
	for col := range e.fields {
		if col > 0 {
			dst = append(dst, '\t')
		}
		var err error
		if dst, err = e.value(dst, col, row); err != nil {
			return dst, err
		}
	}
	return dst, nil
}
