package postgres

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/riverbed/riverbed/connectors/decode"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/types"
)

// Numbers of types that every server has (pg_type.dat).
const (
	oidBool, oidBytea, oidInt8, oidInt2, oidInt4          = 16, 17, 20, 21, 23
	oidJSON, oidFloat4, oidFloat8, oidDate, oidTime       = 114, 700, 701, 1082, 1083
	oidTimestamp, oidTimestamptz, oidInterval, oidNumeric = 1114, 1184, 1186, 1700
	oidUUID, oidJSONB, oidOID, oidText, oidVarchar        = 2950, 3802, 26, 25, 1043
)

// sqlType is the type that a column is read as unless another is declared. What has no type here is read as its text.
func sqlType(c column) types.Type {
	if c.elem != 0 {
		return types.ListOf(sqlType(column{oid: c.elem, mod: c.mod}))
	}
	switch c.oid {
	case oidBool:
		return types.Bool
	case oidInt2:
		return types.Int16
	case oidInt4:
		return types.Int32
	case oidInt8:
		return types.Int64
	case oidOID:
		return types.Uint32
	case oidFloat4:
		return types.Float32
	case oidFloat8:
		return types.Float64
	case oidNumeric:
		if c.mod >= 4 {
			width, scale := int((c.mod-4)>>16)&0xffff, int((c.mod-4)&0x7ff)
			if width <= 38 && scale <= width { // a scale of 1024 and more is below zero
				return types.Dec(width, scale)
			}
		}
		return types.Float64
	case oidBytea:
		return types.Binary
	case oidDate:
		return types.Date32
	case oidTime:
		return types.TimeUS
	case oidTimestamp:
		return types.TsUS
	case oidTimestamptz:
		return types.TsTZ
	case oidInterval:
		return types.Span
	case oidUUID:
		return types.UUIDType
	case oidJSON, oidJSONB:
		return types.JSONType
	}
	return types.String
}

// readable reports whether a column can be declared as t: as its text, as its own type, or as another of the same sort.
func readable(c column, t types.Type) bool {
	own := sqlType(c)
	switch {
	case own.Equal(t), t.Kind == types.Varchar:
		return true
	case own.IsNumeric() || c.oid == oidNumeric:
		return t.IsNumeric()
	case own.Kind == types.Timestamp:
		return t.IsTimestamp() && t.Kind != types.TimestampTZ
	case own.Kind == types.Varchar:
		return t.Kind == types.JSON || t.Kind == types.UUID
	case own.Kind == types.List && t.Kind == types.List:
		return readable(column{oid: c.elem, mod: c.mod}, *t.Elem)
	}
	return false
}

// choose finds the columns that are read: all, or those that are declared. at are their places in the table.
func (t *table) choose(declared []types.Field) (fields []types.Field, at []int, err error) {
	if declared == nil {
		for i, c := range t.columns {
			fields, at = append(fields, types.Field{Name: c.name, Type: sqlType(c)}), append(at, i)
		}
		return fields, at, nil
	}
	for _, f := range declared {
		i := t.find(f.Name)
		if i < 0 {
			e := errs.New(errs.Schema, "open", "the table %s has no column %q; it has %s", t, f.Name, strings.Join(t.names(), ", "))
			if hint := errs.DidYouMean(f.Name, t.names()); hint != "" {
				return nil, nil, e.WithHint("%s", hint)
			}
			return nil, nil, e
		}
		if !readable(t.columns[i], f.Type) {
			return nil, nil, errs.New(errs.Schema, "open", "the column %q of the table %s is not read as %s", f.Name, t, f.Type).
				WithHint("declare it %s, or VARCHAR for its text", sqlType(t.columns[i]))
		}
		at = append(at, i)
	}
	return declared, at, nil
}

// find is the place of a column: the one of that name, or else the only one that is so named in other letters.
func (t *table) find(name string) int {
	near := -1
	for i, c := range t.columns {
		if c.name == name {
			return i
		}
		if strings.EqualFold(c.name, name) {
			near = i
		}
	}
	return near
}

// columns gathers rows whose values come as texts.
type columnReader struct {
	fields   []types.Field
	builders []decode.Builder
	weights  []int64 // used by updating streams alone
	n        int
}

func newColumnReader(fields []types.Field) (*columnReader, error) {
	r := &columnReader{fields: fields}
	for _, f := range fields {
		b, err := newBuilder(f.Type)
		if err != nil {
			return nil, errs.New(errs.Schema, "open", "column %q: %w", f.Name, err)
		}
		r.builders = append(r.builders, b)
	}
	return r, nil
}

// add adds a row; a value that is nil is NULL. On an error nothing is added.
func (r *columnReader) add(values [][]byte) error {
	for i, v := range values {
		if v == nil {
			r.builders[i].AppendNull()
			continue
		}
		if err := r.builders[i].AppendText(v); err != nil {
			for _, b := range r.builders[:i] {
				b.Truncate(r.n)
			}
			return fmt.Errorf("column %q: %w", r.fields[i].Name, err)
		}
	}
	r.n++
	return nil
}

// take returns the rows as a batch, with the weights if the stream is updating, and starts again.
func (r *columnReader) take(updating bool) arrow.RecordBatch {
	schema := types.ArrowSchema(r.fields)
	cols := make([]arrow.Array, len(r.builders), len(r.builders)+1)
	for i, b := range r.builders {
		cols[i] = b.Finish()
	}
	if updating {
		schema = flow.WithWeights(schema)
		w := array.NewData(arrow.PrimitiveTypes.Int64, len(r.weights), []*memory.Buffer{nil, memory.NewBufferBytes(arrow.GetBytes(r.weights))}, nil, 0, 0)
		cols, r.weights = append(cols, array.NewInt64Data(w)), nil
	}
	n := r.n
	r.n = 0
	return array.NewRecordBatch(schema, cols, int64(n))
}

// clear forgets the rows.
func (r *columnReader) clear() {
	for _, b := range r.builders {
		b.Truncate(0)
	}
	r.weights, r.n = nil, 0
}

func newBuilder(t types.Type) (decode.Builder, error) {
	switch t.Kind {
	case types.Date, types.TimestampS, types.TimestampMS, types.Timestamp, types.TimestampNS, types.TimestampTZ, types.Interval, types.Blob, types.List, types.UHugeInt, types.HugeInt:
		parse, err := parserOf(t)
		return &valueBuilder{t: t, parse: parse}, err
	}
	return decode.NewBuilder(t)
}

// valueBuilder gathers values whose text the server writes otherwise than we do.
type valueBuilder struct {
	t      types.Type
	parse  func(text []byte) (types.Value, error)
	values []types.Value
}

func (b *valueBuilder) Len() int       { return len(b.values) }
func (b *valueBuilder) AppendNull()    { b.values = append(b.values, nil) }
func (b *valueBuilder) Truncate(n int) { b.values = b.values[:n] }

func (b *valueBuilder) AppendText(text []byte) error {
	v, err := b.parse(text)
	if err == nil {
		b.values = append(b.values, v)
	}
	return err
}

func (b *valueBuilder) Finish() arrow.Array {
	a := types.ArrayOf(b.values, b.t)
	b.values = b.values[:0]
	return a
}

// parserOf reads the server's text of a type.
func parserOf(t types.Type) (func(text []byte) (types.Value, error), error) {
	switch t.Kind {
	case types.Date, types.TimestampS, types.TimestampMS, types.Timestamp, types.TimestampNS, types.TimestampTZ:
		return func(text []byte) (types.Value, error) {
			s := string(text)
			if ad, bc := strings.CutSuffix(s, " BC"); bc {
				day, rest, _ := strings.Cut(ad, " ")
				s = strings.TrimSpace(day + " (BC) " + rest)
			}
			v, err := types.ParseValue(s, t)
			if err != nil {
				return nil, fmt.Errorf("%q is not a value of %s", decode.Clip(string(text)), t)
			}
			return v, nil
		}, nil
	case types.Interval:
		return parseInterval, nil
	case types.Blob:
		return func(text []byte) (types.Value, error) {
			digits, ok := bytes.CutPrefix(text, []byte(`\x`))
			out := make([]byte, len(digits)/2)
			if _, err := hex.Decode(out, digits); !ok || err != nil {
				return nil, fmt.Errorf("%q is not a bytea in hexadecimal form", decode.Clip(string(text)))
			}
			return out, nil
		}, nil
	case types.List:
		elem, err := parserOf(*t.Elem)
		if err != nil {
			return nil, err
		}
		return func(text []byte) (types.Value, error) { return parseArray(text, elem) }, nil
	case types.Struct, types.Map:
		return nil, fmt.Errorf("%s is not read from PostgreSQL", t)
	}
	return func(text []byte) (types.Value, error) {
		v, err := types.ParseValue(string(text), t)
		if err != nil {
			return nil, fmt.Errorf("%q is not a value of %s", decode.Clip(string(text)), t)
		}
		return v, nil
	}, nil
}

// parseInterval reads what IntervalStyle postgres writes: 1 year -2 mons +3 days -04:05:06.7, where each part has its own sign.
func parseInterval(text []byte) (types.Value, error) {
	var out types.IntervalValue
	bad := fmt.Errorf("%q is not a value of INTERVAL", decode.Clip(string(text)))
	words := strings.Fields(string(text))
	for i := 0; i < len(words); i++ {
		if strings.ContainsRune(words[i], ':') {
			us, ok := parseClock(words[i])
			if !ok || i != len(words)-1 {
				return nil, bad
			}
			out.Micros = us
			break
		}
		n, err := strconv.ParseInt(words[i], 10, 32)
		if err != nil || i+1 == len(words) {
			return nil, bad
		}
		i++
		switch strings.TrimSuffix(words[i], "s") {
		case "year":
			out.Months += int32(n) * 12
		case "mon":
			out.Months += int32(n)
		case "day":
			out.Days += int32(n)
		default:
			return nil, bad
		}
	}
	if out.Micros > types.MaxIntervalMicros || out.Micros < -types.MaxIntervalMicros {
		return nil, fmt.Errorf("%q is longer than an INTERVAL can be", decode.Clip(string(text)))
	}
	return out, nil
}

// parseClock reads [+-]HH:MM:SS[.ffffff] in microseconds; hours may be many.
func parseClock(s string) (us int64, ok bool) {
	neg := strings.HasPrefix(s, "-")
	parts := strings.Split(strings.TrimLeft(s, "+-"), ":")
	if len(parts) != 3 {
		return 0, false
	}
	sec, frac, _ := strings.Cut(parts[2], ".")
	for len(frac) < 6 {
		frac += "0"
	}
	for i, p := range []string{parts[0], parts[1], sec, frac} {
		n, err := strconv.ParseInt(p, 10, 64)
		if err != nil || n > 1<<40 {
			return 0, false
		}
		us = us*[]int64{1, 60, 60, 1_000_000}[i] + n
	}
	if neg {
		us = -us
	}
	return us, true
}

// parseArray reads {1,NULL,"a b"}, also with bounds before it.
func parseArray(text []byte, elem func([]byte) (types.Value, error)) (types.Value, error) {
	bad := func() error { return fmt.Errorf("%q is not an array", decode.Clip(string(text))) }
	rest := text
	if len(rest) > 0 && rest[0] == '[' {
		at := bytes.IndexByte(rest, '=')
		if at < 0 {
			return nil, bad()
		}
		rest = rest[at+1:]
	}
	if len(rest) < 2 || rest[0] != '{' || rest[len(rest)-1] != '}' {
		return nil, bad()
	}
	out := []types.Value{}
	rest = rest[1 : len(rest)-1]
	for first := true; len(rest) > 0; first = false {
		if !first {
			if rest[0] != ',' {
				return nil, bad()
			}
			rest = rest[1:]
		}
		var item []byte
		quoted := len(rest) > 0 && rest[0] == '"'
		i := 0
		if quoted {
			i++
		} else if len(rest) > 0 && rest[0] == '{' {
			return nil, fmt.Errorf("%q is an array of more than one dimension, which no list is", decode.Clip(string(text)))
		}
		closed := !quoted
		for ; i < len(rest); i++ {
			c := rest[i]
			if c == '\\' && i+1 < len(rest) {
				i++
				item = append(item, rest[i])
				continue
			}
			if quoted && c == '"' {
				closed = true
				i++
				break
			}
			if !quoted && c == ',' {
				break
			}
			item = append(item, c)
		}
		if !closed {
			return nil, bad()
		}
		rest = rest[i:]
		if !quoted && string(item) == "NULL" {
			out = append(out, nil)
			continue
		}
		v, err := elem(item)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

// copyLine splits a line of COPY's text form into values, which lie in buf; nil is NULL.
func copyLine(line, buf []byte, values [][]byte) ([][]byte, []byte, error) {
	values, buf = values[:0], buf[:0]
	line = bytes.TrimSuffix(line, []byte{'\n'})
	starts := make([]int, 0, 16)
	null := make([]bool, 0, 16)
	for more := true; more; {
		var field []byte
		field, line, more = bytes.Cut(line, []byte{'\t'})
		starts, null = append(starts, len(buf)), append(null, string(field) == `\N`)
		for i := 0; i < len(field); i++ {
			c := field[i]
			if c == '\\' {
				if i++; i == len(field) {
					return nil, buf, fmt.Errorf("a row of COPY ends in the middle of a value")
				}
				switch c = field[i]; c {
				case 'b':
					c = '\b'
				case 'f':
					c = '\f'
				case 'n':
					c = '\n'
				case 'r':
					c = '\r'
				case 't':
					c = '\t'
				case 'v':
					c = '\v'
				}
			}
			buf = append(buf, c)
		}
	}
	for i, from := range starts {
		to := len(buf)
		if i+1 < len(starts) {
			to = starts[i+1]
		}
		if null[i] {
			values = append(values, nil)
		} else {
			values = append(values, buf[from:to:to])
		}
	}
	return values, buf, nil
}
