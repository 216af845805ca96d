package types

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
)

// Format is the text form of a value, DuckDB's: what CAST to VARCHAR gives. TIMESTAMPTZ is written in UTC.
func Format(v Value, t Type) string { return FormatIn(v, t, nil) }

// FormatIn is Format with TIMESTAMPTZ written in a zone; nil is UTC.
func FormatIn(v Value, t Type, loc *time.Location) string {
	return string(AppendText(nil, v, t, loc))
}

// AppendText appends the text form of a value.
func AppendText(dst []byte, v Value, t Type, loc *time.Location) []byte {
	switch x := v.(type) {
	case nil:
		return append(dst, "NULL"...)
	case bool:
		return strconv.AppendBool(dst, x)
	case uint64:
		return strconv.AppendUint(dst, x, 10)
	case float32:
		return AppendFloat(dst, float64(x), 32)
	case float64:
		return AppendFloat(dst, x, 64)
	case decimal128.Num:
		if t.Kind == UHugeInt {
			return AppendUWide(dst, x)
		}
		return AppendDecimal(dst, x, t)
	case string:
		return append(dst, x...)
	case []byte:
		return AppendBlob(dst, x)
	case IntervalValue:
		return AppendInterval(dst, x)
	case [16]byte:
		return AppendUUID(dst, x)
	case int64:
		switch t.Kind {
		case Date:
			return AppendDate(dst, x)
		case Time:
			return AppendTime(dst, x)
		case TimestampS, TimestampMS, Timestamp, TimestampNS, TimestampTZ:
			return AppendTimestamp(dst, x, t.Kind, loc)
		}
		return strconv.AppendInt(dst, x, 10)
	case []MapEntry:
		dst = append(dst, '{')
		for i, e := range x {
			if i > 0 {
				dst = append(dst, ", "...)
			}
			dst = appendPart(dst, e.Key, *t.Key, loc)
			dst = append(dst, '=')
			dst = appendPart(dst, e.Value, *t.Elem, loc)
		}
		return append(dst, '}')
	case []Value:
		if t.IsTuple() {
			dst = append(dst, '(')
			for i, e := range x {
				if i > 0 {
					dst = append(dst, ", "...)
				}
				dst = appendPart(dst, e, t.Fields[i].Type, loc)
			}
			return append(dst, ')')
		}
		if t.Kind == Struct {
			dst = append(dst, '{')
			for i, e := range x {
				if i > 0 {
					dst = append(dst, ", "...)
				}
				dst = appendQuoted(dst, t.Fields[i].Name)
				dst = append(dst, ": "...)
				dst = appendPart(dst, e, t.Fields[i].Type, loc)
			}
			return append(dst, '}')
		}
		dst = append(dst, '[')
		for i, e := range x {
			if i > 0 {
				dst = append(dst, ", "...)
			}
			dst = appendPart(dst, e, *t.Elem, loc)
		}
		return append(dst, ']')
	}
	return dst
}

// appendPart writes a value inside a nested one: text that could be misread is quoted.
func appendPart(dst []byte, v Value, t Type, loc *time.Location) []byte {
	if v == nil || t.IsNested() || t.Kind == JSON {
		return AppendText(dst, v, t, loc)
	}
	s := FormatIn(v, t, loc)
	if s == "" || strings.EqualFold(s, "null") || strings.ContainsAny(s, `"'(),:=[\]{}`) || s[0] == ' ' || s[len(s)-1] == ' ' {
		return appendQuoted(dst, s)
	}
	return append(dst, s...)
}

func appendQuoted(dst []byte, s string) []byte {
	dst = append(dst, '\'')
	for i := 0; i < len(s); i++ {
		if s[i] == '\'' || s[i] == '\\' {
			dst = append(dst, '\\')
		}
		dst = append(dst, s[i])
	}
	return append(dst, '\'')
}

// AppendFloat writes the shortest decimal that reads back as f, with a point or an exponent: 1.0, 1e+16, nan.
func AppendFloat(dst []byte, f float64, bitSize int) []byte {
	switch {
	case f != f:
		return append(dst, "nan"...)
	case math.IsInf(f, 1):
		return append(dst, "inf"...)
	case math.IsInf(f, -1):
		return append(dst, "-inf"...)
	case f == 0 && math.Signbit(f):
		return append(dst, "-0.0"...)
	}
	abs := math.Abs(f)
	if abs != 0 && (abs < 1e-4 || abs >= 1e16) {
		return strconv.AppendFloat(dst, f, 'e', -1, bitSize)
	}
	start := len(dst)
	dst = strconv.AppendFloat(dst, f, 'f', -1, bitSize)
	for _, c := range dst[start:] {
		if c == '.' {
			return dst
		}
	}
	return append(dst, ".0"...)
}

// AppendDecimal writes a DECIMAL or HUGEINT. Where the type has no digit before the point, none is written: .5
func AppendDecimal(dst []byte, n decimal128.Num, t Type) []byte {
	start := len(dst)
	dst = AppendWide(dst, n, int(t.Scale))
	if t.Kind == Decimal && t.Width == t.Scale {
		if dst[start] == '-' {
			start++
		}
		dst = append(dst[:start], dst[start+1:]...)
	}
	return dst
}

const hexDigits = "0123456789ABCDEF"

// AppendBlob writes bytes as text, those that are no printable ASCII as \xHH.
func AppendBlob(dst []byte, b []byte) []byte {
	for _, c := range b {
		if c < 32 || c > 126 || c == '\\' || c == '\'' || c == '"' {
			dst = append(dst, '\\', 'x', hexDigits[c>>4], hexDigits[c&15])
			continue
		}
		dst = append(dst, c)
	}
	return dst
}

// AppendUUID writes a UUID with hyphens.
func AppendUUID(dst []byte, u [16]byte) []byte {
	for i, b := range u {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			dst = append(dst, '-')
		}
		dst = append(dst, hexLower[b>>4], hexLower[b&15])
	}
	return dst
}

const hexLower = "0123456789abcdef"
