package rowkey

import (
	"encoding/binary"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/types"
)

// Decode turns n encoded rows back into columns, in the Arrow form of their types. What equality forgets comes back in
// its normal form unless the column was exact: 0.0 for -0.0, '1 month' for '30 days'.
func Decode(ts []types.Type, keys []Key, n int, row func(i int) []byte) []arrow.Array {
	return DecodeFrom(ts, keys, 0, n, row)
}

// DecodeFrom is Decode for the columns from the one at position from on; those before it are skipped.
func DecodeFrom(ts []types.Type, keys []Key, from, n int, row func(i int) []byte) []arrow.Array {
	keys = padded(keys, len(ts))
	rest := make([][]byte, n)
	for i := range rest {
		rest[i] = row(i)
		for c := range from {
			rest[i] = skip(rest[i], ts[c], keys[c], keys[c].invert())
		}
	}
	out := make([]arrow.Array, 0, len(ts)-from)
	for c := from; c < len(ts); c++ {
		out = append(out, decodeColumn(ts[c], keys[c], rest))
	}
	return out
}

// Prefix returns the part of a row that encodes its first columns, and the rest.
func Prefix(row []byte, ts []types.Type, keys []Key) (head, rest []byte) {
	rest = row
	for c, t := range ts {
		k := Key{}
		if c < len(keys) {
			k = keys[c]
		}
		rest = skip(rest, t, k, k.invert())
	}
	return row[:len(row)-len(rest)], rest
}

// skip returns what follows one value.
func skip(b []byte, t types.Type, k Key, inv byte) []byte {
	w := width(t, k)
	switch {
	case w > 0:
		return b[1+w:] // NULL too
	case b[0] != markValid:
		return b[1:]
	}
	return skipValue(b[1:], t, k.Exact, inv)
}

// skipNested is skip for a value inside another: markers are inverted with the rest, NULL has no zeros behind it.
func skipNested(b []byte, t types.Type, exact bool, inv byte) []byte {
	if b[0]^inv != markValid {
		return b[1:]
	}
	return skipValue(b[1:], t, exact, inv)
}

func skipValue(b []byte, t types.Type, exact bool, inv byte) []byte {
	if w := width(t, Key{Exact: exact}); w > 0 {
		return b[w:]
	}
	switch t.Kind {
	case types.Struct:
		for _, f := range t.Fields {
			b = skipNested(b, f.Type, exact, inv)
		}
		return b
	case types.List, types.Map:
		for b[0]^inv == 1 {
			b = b[1:]
			if t.Kind == types.Map {
				b = skipNested(b, *t.Key, exact, inv)
			}
			b = skipNested(b, *t.Elem, exact, inv)
		}
		return b[1:]
	}
	for i := 0; ; i++ {
		if b[i]^inv == 0 {
			if b[i+1]^inv == 0 {
				return b[i+2:]
			}
			i++
		}
	}
}

// decodeColumn reads one value off the front of each row.
func decodeColumn(t types.Type, k Key, rest [][]byte) arrow.Array {
	n, inv := len(rest), k.invert()
	valid, nulls := make([]byte, (n+7)/8), 0
	for i, b := range rest {
		if b[0] == markValid {
			valid[i>>3] |= 1 << (i & 7)
		} else {
			nulls++
		}
	}
	validBuf := memory.NewBufferBytes(valid)
	if nulls == 0 {
		validBuf = nil
	}
	make1 := func(values []byte) arrow.Array {
		return array.MakeFromData(array.NewData(t.Arrow(), n, []*memory.Buffer{validBuf, memory.NewBufferBytes(values)}, nil, nulls, 0))
	}
	if w := width(t, k); w > 0 {
		values := fixedDecoder(t, w, n)
		buf := [24]byte{}
		for i, b := range rest {
			rest[i] = b[1+w:]
			if b[0] == markValid {
				v := b[1 : 1+w]
				if inv != 0 {
					copy(buf[:w], v)
					flip(buf[:w], inv)
					v = buf[:w]
				}
				values.put(i, v)
			}
		}
		return make1(values.bytes())
	}
	switch t.Kind {
	case types.Null:
		for i, b := range rest {
			rest[i] = b[1:]
		}
		return array.NewNull(n)
	case types.Varchar, types.JSON, types.Blob:
		offs := make([]int32, n+1)
		var data []byte
		for i, b := range rest {
			if b[0] == markValid {
				data, rest[i] = takeText(data, b[1:], inv)
			} else {
				rest[i] = b[1:]
			}
			offs[i+1] = int32(len(data))
		}
		return array.MakeFromData(array.NewData(t.Arrow(), n,
			[]*memory.Buffer{validBuf, memory.NewBufferBytes(arrow.GetBytes(offs)), memory.NewBufferBytes(data)}, nil, nulls, 0))
	}
	b := array.NewBuilder(memory.DefaultAllocator, t.Arrow())
	b.Reserve(n)
	for i, r := range rest {
		if r[0] != markValid {
			b.AppendNull()
			rest[i] = r[1:]
			continue
		}
		rest[i] = buildValue(b, r[1:], t, k.Exact, inv)
	}
	return b.NewArray()
}

// takeText appends a text without its escapes and returns what follows it.
func takeText(dst, b []byte, inv byte) (out, rest []byte) {
	for i := 0; ; i++ {
		c := b[i] ^ inv
		if c == 0 {
			i++
			if b[i]^inv == 0 {
				return dst, b[i+1:]
			}
		}
		dst = append(dst, c)
	}
}

// fixedValues gathers values of fixed width.
type fixedValues interface {
	put(i int, v []byte)
	bytes() []byte
}

type fixedOf[T arrow.FixedWidthType] struct {
	v   []T
	get func(b []byte) T
}

func (f *fixedOf[T]) put(i int, b []byte) { f.v[i] = f.get(b) }
func (f *fixedOf[T]) bytes() []byte       { return arrow.GetBytes(f.v) }

type bitValues []byte

func (v bitValues) put(i int, b []byte) { v[i>>3] |= b[0] << (i & 7) }
func (v bitValues) bytes() []byte       { return v }

type rawValues []byte

func (v rawValues) put(i int, b []byte) { copy(v[16*i:], b) }
func (v rawValues) bytes() []byte       { return v }

func newFixed[T arrow.FixedWidthType](n int, get func(b []byte) T) fixedValues {
	return &fixedOf[T]{make([]T, n), get}
}

func fixedDecoder(t types.Type, w, n int) fixedValues {
	be := binary.BigEndian
	switch t.Kind {
	case types.Boolean:
		return make(bitValues, (n+7)/8)
	case types.TinyInt:
		return newFixed(n, func(b []byte) int8 { return int8(b[0] ^ 1<<7) })
	case types.UTinyInt:
		return newFixed(n, func(b []byte) uint8 { return b[0] })
	case types.SmallInt:
		return newFixed(n, func(b []byte) int16 { return int16(be.Uint16(b) ^ 1<<15) })
	case types.USmallInt:
		return newFixed(n, be.Uint16)
	case types.Integer, types.Date:
		return newFixed(n, func(b []byte) int32 { return int32(be.Uint32(b) ^ 1<<31) })
	case types.UInteger:
		return newFixed(n, be.Uint32)
	case types.Real:
		return newFixed(n, func(b []byte) float32 { return wordFloat32(be.Uint32(b)) })
	case types.UBigInt:
		return newFixed(n, be.Uint64)
	case types.Double:
		return newFixed(n, func(b []byte) float64 { return WordFloat(be.Uint64(b)) })
	case types.HugeInt, types.Decimal:
		return newFixed(n, func(b []byte) decimal128.Num {
			return decimal128.New(int64(be.Uint64(b)^signBit), be.Uint64(b[8:]))
		})
	case types.UHugeInt:
		return newFixed(n, func(b []byte) decimal128.Num { return decimal128.New(int64(be.Uint64(b)), be.Uint64(b[8:])) })
	case types.UUID:
		return make(rawValues, 16*n)
	case types.Interval:
		return newFixed(n, func(b []byte) arrow.MonthDayNanoInterval {
			days, nanos := int64(be.Uint64(b)^signBit), int64(be.Uint64(b[8:])^signBit)
			if w < 24 {
				return intervalOf(days, nanos)
			}
			m, d := int32(be.Uint32(b[16:])^1<<31), int32(be.Uint32(b[20:])^1<<31)
			return arrow.MonthDayNanoInterval{Months: m, Days: d, Nanoseconds: (days-30*int64(m)-int64(d))*nanosPerDay + nanos}
		})
	}
	return newFixed(n, func(b []byte) int64 { return int64(be.Uint64(b) ^ signBit) })
}

// buildValue appends one value without marker to a builder and returns what follows it.
func buildValue(bld array.Builder, b []byte, t types.Type, exact bool, inv byte) []byte {
	switch t.Kind {
	case types.Struct:
		s := bld.(*array.StructBuilder)
		s.Append(true)
		for i, f := range t.Fields {
			b = buildNested(s.FieldBuilder(i), b, f.Type, exact, inv)
		}
		return b
	case types.List:
		l := bld.(*array.ListBuilder)
		l.Append(true)
		for b[0]^inv == 1 {
			b = buildNested(l.ValueBuilder(), b[1:], *t.Elem, exact, inv)
		}
		return b[1:]
	case types.Map:
		m := bld.(*array.MapBuilder)
		m.Append(true)
		for b[0]^inv == 1 {
			b = buildNested(m.KeyBuilder(), b[1:], *t.Key, exact, inv)
			b = buildNested(m.ItemBuilder(), b, *t.Elem, exact, inv)
		}
		return b[1:]
	case types.Varchar, types.JSON:
		var s []byte
		s, b = takeText(nil, b, inv)
		bld.(*array.StringBuilder).Append(string(s))
		return b
	case types.Blob:
		var s []byte
		s, b = takeText([]byte{}, b, inv)
		bld.(*array.BinaryBuilder).Append(s)
		return b
	}
	w := width(t, Key{Exact: exact})
	if w == 0 {
		panic(errs.Bug("rowkey", "decode of %s", t)) // AIDEV-NOTE: panics on a type that Encode refuses too
	}
	one := fixedDecoder(t, w, 1)
	v := append(make([]byte, 0, 24), b[:w]...)
	flip(v, inv)
	one.put(0, v)
	appendFixed(bld, t, one)
	return b[w:]
}

func buildNested(bld array.Builder, b []byte, t types.Type, exact bool, inv byte) []byte {
	if b[0]^inv != markValid {
		bld.AppendNull()
		return b[1:]
	}
	return buildValue(bld, b[1:], t, exact, inv)
}

// appendFixed appends the one value that v holds.
func appendFixed(bld array.Builder, t types.Type, v fixedValues) {
	switch b := bld.(type) {
	case *array.BooleanBuilder:
		b.Append(v.bytes()[0] != 0)
	case *array.Int8Builder:
		b.Append(v.(*fixedOf[int8]).v[0])
	case *array.Int16Builder:
		b.Append(v.(*fixedOf[int16]).v[0])
	case *array.Int32Builder:
		b.Append(v.(*fixedOf[int32]).v[0])
	case *array.Int64Builder:
		b.Append(v.(*fixedOf[int64]).v[0])
	case *array.Uint8Builder:
		b.Append(v.(*fixedOf[uint8]).v[0])
	case *array.Uint16Builder:
		b.Append(v.(*fixedOf[uint16]).v[0])
	case *array.Uint32Builder:
		b.Append(v.(*fixedOf[uint32]).v[0])
	case *array.Uint64Builder:
		b.Append(v.(*fixedOf[uint64]).v[0])
	case *array.Float32Builder:
		b.Append(v.(*fixedOf[float32]).v[0])
	case *array.Float64Builder:
		b.Append(v.(*fixedOf[float64]).v[0])
	case *array.Date32Builder:
		b.Append(arrow.Date32(v.(*fixedOf[int32]).v[0]))
	case *array.Time64Builder:
		b.Append(arrow.Time64(v.(*fixedOf[int64]).v[0]))
	case *array.TimestampBuilder:
		b.Append(arrow.Timestamp(v.(*fixedOf[int64]).v[0]))
	case *array.Decimal128Builder:
		b.Append(v.(*fixedOf[decimal128.Num]).v[0])
	case *array.MonthDayNanoIntervalBuilder:
		b.Append(v.(*fixedOf[arrow.MonthDayNanoInterval]).v[0])
	case *array.FixedSizeBinaryBuilder:
		b.Append(v.bytes())
	default:
		panic(errs.Bug("rowkey", "decode of %s", t)) // AIDEV-NOTE: panics on a type without an Arrow form
	}
}
