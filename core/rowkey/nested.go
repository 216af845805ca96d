package rowkey

import (
	"encoding/binary"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/core/types"
)

// appender returns what appends the encoding of row i of a column, marker included. Inside nested values NULL is above
// everything, as in DuckDB's comparison of lists, and a descending column inverts it with the rest.
func appender(a arrow.Array, t types.Type, k Key) func(dst []byte, i int) []byte {
	valid := validity(a)
	value := valueAppender(a, t, k.Exact)
	null, inv := k.nullMark(), k.invert()
	return func(dst []byte, i int) []byte {
		if value == nil || !valid.get(i) {
			return append(dst, null)
		}
		from := len(dst) + 1
		dst = value(append(dst, markValid), i)
		flip(dst[from:], inv)
		return dst
	}
}

// valueAppender appends values without marker; it is nil for the type NULL.
func valueAppender(a arrow.Array, t types.Type, exact bool) func(dst []byte, i int) []byte {
	w := width(t, Key{Exact: exact})
	switch {
	case t.Kind == types.Null:
		return nil
	case w > 8:
		wide := Wide(a, t, nil)
		raw := []arrow.MonthDayNanoInterval(nil)
		if w == 24 {
			raw = Intervals(a)
		}
		return func(dst []byte, i int) []byte {
			dst = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(dst, wide[i][0]), wide[i][1])
			if raw != nil {
				dst = binary.BigEndian.AppendUint32(dst, uint32(raw[i].Months)^1<<31)
				dst = binary.BigEndian.AppendUint32(dst, uint32(raw[i].Days)^1<<31)
			}
			return dst
		}
	case w > 0:
		words := Words(a, t, exact, nil)
		return func(dst []byte, i int) []byte {
			for s := 8 * (w - 1); s >= 0; s -= 8 {
				dst = append(dst, byte(words[i]>>s))
			}
			return dst
		}
	}
	k := Key{Exact: exact}
	switch t.Kind {
	case types.List, types.Map:
		offs := offsets(a)
		var elem func(dst []byte, i int) []byte
		if t.Kind == types.List {
			elem = appender(a.(*array.List).ListValues(), *t.Elem, k)
		} else {
			entries := a.(*array.Map).ListValues().(*array.Struct) // Keys and Items forget the offset of the entries
			key, item := appender(entries.Field(0), *t.Key, k), appender(entries.Field(1), *t.Elem, k)
			elem = func(dst []byte, i int) []byte { return item(key(dst, i), i) }
		}
		return func(dst []byte, i int) []byte {
			for j := offs[i]; j < offs[i+1]; j++ {
				dst = elem(append(dst, 1), int(j))
			}
			return append(dst, 0)
		}
	case types.Struct:
		s := a.(*array.Struct)
		fields := make([]func(dst []byte, i int) []byte, len(t.Fields))
		for f := range fields {
			fields[f] = appender(s.Field(f), t.Fields[f].Type, k)
		}
		return func(dst []byte, i int) []byte {
			for _, f := range fields {
				dst = f(dst, i)
			}
			return dst
		}
	}
	offs, data := texts(a)
	return func(dst []byte, i int) []byte {
		s := data[offs[i]:offs[i+1]]
		at := len(dst)
		dst = append(dst, make([]byte, textSize(s))...)
		putText(dst[at:], s)
		return dst
	}
}
