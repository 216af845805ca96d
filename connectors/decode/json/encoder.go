package json

import (
	"encoding/base64"
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/connectors/decode"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/types"
)

// Encoder writes rows of one batch as JSON objects.
//
// Numbers stay numbers, DECIMAL with all its digits; dates, times and intervals are DuckDB's text; NaN and infinities,
// which JSON has no numbers for, are the texts "NaN", "Infinity" and "-Infinity"; BLOB is base64; the keys of a MAP are
// their text.
type Encoder struct {
	keys  [][]byte // `"name":`
	write []writer
}

// Form is how the encoder writes what JSON leaves open.
type Form struct {
	// BareSpecials writes NaN, Infinity and -Infinity without quotes, as DuckDB's files have them: they are read back as
	// numbers, and strict readers of JSON refuse them.
	BareSpecials bool
}

type writer func(dst []byte, row int) []byte

// NewEncoder makes an encoder of the columns.
func NewEncoder(fields []types.Field, columns []arrow.Array) (*Encoder, error) {
	return Form{}.NewEncoder(fields, columns)
}

// NewEncoder makes an encoder of the columns.
func (o Form) NewEncoder(fields []types.Field, columns []arrow.Array) (*Encoder, error) {
	e := &Encoder{}
	for i, f := range fields {
		w, err := o.newWriter(f.Type, columns[i])
		if err != nil {
			return nil, fmt.Errorf("column %q: %w", f.Name, err)
		}
		e.keys = append(e.keys, append(quote(nil, f.Name), ':'))
		e.write = append(e.write, w)
	}
	return e, nil
}

// Value makes a writer of the JSON text of one column; NULL is null.
func Value(t types.Type, a arrow.Array) (func(dst []byte, row int) []byte, error) {
	return Form{}.newWriter(t, a)
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

func (o Form) newWriter(t types.Type, a arrow.Array) (writer, error) {
	w, err := o.valueWriter(t, a)
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

func (o Form) valueWriter(t types.Type, a arrow.Array) (writer, error) {
	switch x := a.(type) {
	case *array.Null:
		return func(dst []byte, _ int) []byte { return append(dst, "null"...) }, nil
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
	case *array.Struct:
		columns := make([]arrow.Array, x.NumField())
		for i := range columns {
			columns[i] = x.Field(i)
		}
		e, err := o.NewEncoder(t.Fields, columns)
		if err != nil {
			return nil, err
		}
		return e.Append, nil
	case *array.Map:
		keys, err := keyWriter(*t.Key, x.Keys())
		if err != nil {
			return nil, err
		}
		values, err := o.newWriter(*t.Elem, x.Items())
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
		elem, err := o.newWriter(*t.Elem, x.ListValues())
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
	w, err := decode.Text(t, a)
	if err != nil {
		return nil, err
	}
	switch f := a.(type) {
	case *array.Date32, *array.Time64, *array.Timestamp, *array.FixedSizeBinary, *array.MonthDayNanoInterval:
		return quoted(w), nil
	case *array.Float32:
		if o.BareSpecials {
			break
		}
		return quotedSpecial(w, func(row int) float64 { return float64(f.Value(row)) }), nil
	case *array.Float64:
		if o.BareSpecials {
			break
		}
		return quotedSpecial(w, f.Value), nil
	}
	return writer(w), nil
}

// keyWriter writes the keys of a MAP as strings.
func keyWriter(t types.Type, a arrow.Array) (writer, error) {
	if s, ok := a.(*array.String); ok {
		return func(dst []byte, row int) []byte { return quote(dst, s.Value(row)) }, nil
	}
	w, err := decode.Text(t, a)
	if err != nil || t.IsNested() || t.Kind == types.Blob {
		return nil, errs.New(errs.Usage, "write", "a MAP with keys of %s has no JSON form", t).WithHint("cast the keys to VARCHAR")
	}
	return quoted(w), nil
}

// quoted makes a JSON string of text that needs no escapes.
func quoted(w decode.TextWriter) writer {
	return func(dst []byte, row int) []byte { return append(w(append(dst, '"'), row), '"') }
}

// quotedSpecial makes strings of the floats that are no JSON numbers.
func quotedSpecial(w decode.TextWriter, value func(row int) float64) writer {
	q := quoted(w)
	return func(dst []byte, row int) []byte {
		if f := value(row); math.IsNaN(f) || math.IsInf(f, 0) {
			return q(dst, row)
		}
		return w(dst, row)
	}
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
