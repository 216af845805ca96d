package main

import (
	"context"
	"encoding/binary"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/compute"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/types"
)

// The engine knows one Arrow layout per SQL type. What pandas, Polars and pyarrow export in another one (large and
// view strings, dictionaries, other units and widths) is converted here, column by column; the rest is not copied.

// canonicalSchema returns the schema in the engine's layouts.
func canonicalSchema(s *arrow.Schema) (*arrow.Schema, error) {
	fields := make([]arrow.Field, s.NumFields())
	for i, f := range s.Fields() {
		t, err := types.FromArrow(f)
		if err != nil {
			return nil, err
		}
		fields[i] = t.ArrowField(f.Name)
	}
	return arrow.NewSchema(fields, nil), nil
}

// canonicalArray returns a over uncounted buffers, in the layout of want.
func canonicalArray(a arrow.Array, want arrow.Field) (arrow.Array, error) {
	d, err := canonicalData(a, want.Type)
	if err != nil {
		return nil, err
	}
	return array.MakeFromData(d), nil
}

func canonicalData(a arrow.Array, want arrow.DataType) (arrow.ArrayData, error) {
	if ext, ok := a.(array.ExtensionArray); ok {
		return canonicalData(ext.Storage(), want)
	}
	if dict, ok := a.(*array.Dictionary); ok {
		return decodeDictionary(dict, want)
	}
	if arrow.TypeEqual(a.DataType(), want) {
		return uncounted(a.Data()), nil
	}
	switch w := want.(type) {
	case *arrow.StringType, *arrow.BinaryType:
		return canonicalBytes(a, want)
	case *arrow.StructType:
		return canonicalStruct(a.(*array.Struct), w)
	case *arrow.MapType:
		return canonicalOffsets(a, want, w.Elem(), func(at int) int64 { return int64(int32At(a, at)) }, a.(*array.Map).ListValues())
	case *arrow.ListType:
		return canonicalList(a, w)
	case *arrow.TimestampType:
		return canonicalTimestamp(a.(*array.Timestamp), w)
	}
	return canonicalValues(a, want)
}

// decodeDictionary looks every index up.
func decodeDictionary(a *array.Dictionary, want arrow.DataType) (arrow.ArrayData, error) {
	values, err := canonicalData(a.Dictionary(), want)
	if err != nil {
		return nil, err
	}
	return take(array.MakeFromData(values), a.Indices())
}

func take(values, indices arrow.Array) (arrow.ArrayData, error) {
	out, err := compute.TakeArray(context.Background(), values, indices)
	if err != nil {
		return nil, errs.New(errs.Source, "import", "cannot decode a column of type %s: %w", values.DataType(), err)
	}
	return out.Data(), nil
}

// canonicalBytes turns any string or binary layout into 32-bit offsets.
func canonicalBytes(a arrow.Array, want arrow.DataType) (arrow.ArrayData, error) {
	switch a := a.(type) {
	case *array.LargeString:
		return narrowBytes(a, a.ValueOffset, a.Len(), want)
	case *array.LargeBinary:
		return narrowBytes(a, a.ValueOffset64, a.Len(), want)
	}
	value, ok := bytesOf(a)
	if !ok {
		return nil, unknownLayout(a, want)
	}
	var total int64
	for i := range a.Len() {
		if a.IsValid(i) {
			total += int64(len(value(i)))
		}
	}
	if total > math.MaxInt32 {
		return nil, tooLong(total)
	}
	b := array.NewBinaryBuilder(memory.DefaultAllocator, want.(arrow.BinaryDataType))
	b.Reserve(a.Len())
	b.ReserveData(int(total))
	for i := range a.Len() {
		if a.IsNull(i) {
			b.AppendNull()
		} else {
			b.Append(value(i))
		}
	}
	return b.NewArray().Data(), nil
}

func bytesOf(a arrow.Array) (func(int) []byte, bool) {
	switch a := a.(type) {
	case *array.StringView:
		return func(i int) []byte { return []byte(a.Value(i)) }, true
	case *array.BinaryView:
		return a.Value, true
	case *array.FixedSizeBinary:
		return a.Value, true
	case *array.String:
		return func(i int) []byte { return []byte(a.Value(i)) }, true
	case *array.Binary:
		return a.Value, true
	}
	return nil, false
}

// narrowBytes keeps the characters where they are and rewrites the offsets only.
func narrowBytes(a arrow.Array, offset func(int) int64, n int, want arrow.DataType) (arrow.ArrayData, error) {
	d := a.Data()
	if n == 0 {
		return array.NewBuilder(memory.DefaultAllocator, want).NewArray().Data(), nil
	}
	base := binary.NativeEndian.Uint64(d.Buffers()[1].Bytes()[8*d.Offset():])
	last := binary.NativeEndian.Uint64(d.Buffers()[1].Bytes()[8*(d.Offset()+n):])
	if last-base > math.MaxInt32 {
		return nil, tooLong(int64(last - base))
	}
	offsets := make([]byte, 0, 4*(n+1))
	for i := range n + 1 {
		at := binary.NativeEndian.Uint64(d.Buffers()[1].Bytes()[8*(d.Offset()+i):])
		offsets = binary.NativeEndian.AppendUint32(offsets, uint32(at-base))
	}
	var chars []byte
	if b := d.Buffers()[2]; b != nil && last > base {
		chars = b.Bytes()[base:last]
	}
	buffers := []*memory.Buffer{validity(a), memory.NewBufferBytes(offsets), memory.NewBufferBytes(chars)}
	return array.NewData(want, n, buffers, nil, a.NullN(), 0), nil
}

func canonicalStruct(a *array.Struct, want *arrow.StructType) (arrow.ArrayData, error) {
	children := make([]arrow.ArrayData, a.NumField())
	for i := range children {
		c, err := canonicalData(a.Field(i), want.Field(i).Type)
		if err != nil {
			return nil, err
		}
		children[i] = c
	}
	return array.NewData(want, a.Len(), []*memory.Buffer{validity(a)}, children, a.NullN(), 0), nil
}

func canonicalList(a arrow.Array, want *arrow.ListType) (arrow.ArrayData, error) {
	elem := want.Elem()
	switch a := a.(type) {
	case *array.List:
		return canonicalOffsets(a, want, elem, func(i int) int64 { return int64(int32At(a, i)) }, a.ListValues())
	case *array.LargeList:
		return canonicalOffsets(a, want, elem, func(i int) int64 {
			return int64(binary.NativeEndian.Uint64(a.Data().Buffers()[1].Bytes()[8*(a.Data().Offset()+i):]))
		}, a.ListValues())
	case *array.FixedSizeList:
		width := int64(a.DataType().(*arrow.FixedSizeListType).Len())
		return canonicalOffsets(a, want, elem, func(i int) int64 { return int64(a.Data().Offset()+i) * width }, a.ListValues())
	case array.ListLike: // list views: values may lie in any order, so gather them
		indices := array.NewInt64Builder(memory.DefaultAllocator)
		ends := make([]int64, 1, a.Len()+1)
		for i := range a.Len() {
			if a.IsValid(i) {
				from, to := a.ValueOffsets(i)
				for ; from < to; from++ {
					indices.Append(from)
				}
			}
			ends = append(ends, int64(indices.Len()))
		}
		values, err := take(a.ListValues(), indices.NewArray())
		if err != nil {
			return nil, err
		}
		return canonicalOffsets(a, want, elem, func(i int) int64 { return ends[i] }, array.MakeFromData(values))
	}
	return nil, unknownLayout(a, want)
}

// canonicalOffsets builds a list or map from offsets into values.
func canonicalOffsets(a arrow.Array, want, elem arrow.DataType, offset func(int) int64, values arrow.Array) (arrow.ArrayData, error) {
	n := a.Len()
	if n == 0 {
		return array.NewBuilder(memory.DefaultAllocator, want).NewArray().Data(), nil
	}
	first, last := offset(0), offset(n)
	if last-first > math.MaxInt32 {
		return nil, tooLong(last - first)
	}
	child, err := canonicalData(array.NewSlice(values, first, last), elem)
	if err != nil {
		return nil, err
	}
	offsets := make([]byte, 0, 4*(n+1))
	for i := range n + 1 {
		offsets = binary.NativeEndian.AppendUint32(offsets, uint32(offset(i)-first))
	}
	buffers := []*memory.Buffer{validity(a), memory.NewBufferBytes(offsets)}
	return array.NewData(want, n, buffers, []arrow.ArrayData{child}, a.NullN(), 0), nil
}

func int32At(a arrow.Array, i int) int32 {
	d := a.Data()
	return int32(binary.NativeEndian.Uint32(d.Buffers()[1].Bytes()[4*(d.Offset()+i):]))
}

// validity returns the null bitmap moved to offset 0, or nil without nulls.
func validity(a arrow.Array) *memory.Buffer {
	if a.NullN() == 0 {
		return nil
	}
	bits := make([]byte, (a.Len()+7)/8)
	for i := range a.Len() {
		if a.IsValid(i) {
			bits[i/8] |= 1 << (i % 8)
		}
	}
	return memory.NewBufferBytes(bits)
}

// canonicalTimestamp changes the unit where it must; the same unit is only relabelled.
func canonicalTimestamp(a *array.Timestamp, want *arrow.TimestampType) (arrow.ArrayData, error) {
	from := a.DataType().(*arrow.TimestampType).Unit
	if from == want.Unit {
		d := uncounted(a.Data())
		return array.NewData(want, d.Len(), d.Buffers(), nil, d.NullN(), d.Offset()), nil
	}
	b := array.NewTimestampBuilder(memory.DefaultAllocator, want)
	return build(a, b, func(i int) error {
		v, ok := rescale(int64(a.Value(i)), from, want.Unit)
		if !ok {
			return errs.New(errs.Data, "import", "the timestamp %d %s does not fit microseconds", a.Value(i), from)
		}
		b.Append(arrow.Timestamp(v))
		return nil
	})
}

// rescale converts between time units, flooring; ok is false on overflow.
func rescale(v int64, from, to arrow.TimeUnit) (int64, bool) {
	f, t := int64(from.Multiplier()), int64(to.Multiplier())
	if f >= t {
		m := f / t
		r := v * m
		return r, r/m == v
	}
	m := t / f
	q := v / m
	if v%m < 0 {
		q--
	}
	return q, true
}

// canonicalValues converts the fixed-width types that have another width or unit.
func canonicalValues(a arrow.Array, want arrow.DataType) (arrow.ArrayData, error) {
	mem := memory.DefaultAllocator
	switch a := a.(type) {
	case *array.Float16:
		b := array.NewFloat32Builder(mem)
		return build(a, b, func(i int) error { b.Append(a.Value(i).Float32()); return nil })
	case *array.Date64:
		b := array.NewDate32Builder(mem)
		return build(a, b, func(i int) error {
			const day = 24 * 60 * 60 * 1000
			ms := int64(a.Value(i))
			b.Append(arrow.Date32((ms - ((ms%day)+day)%day) / day))
			return nil
		})
	case *array.Time32:
		unit := a.DataType().(*arrow.Time32Type).Unit
		b := array.NewTime64Builder(mem, want.(*arrow.Time64Type))
		return build(a, b, func(i int) error {
			v, _ := rescale(int64(a.Value(i)), unit, arrow.Microsecond)
			b.Append(arrow.Time64(v))
			return nil
		})
	case *array.Time64:
		b := array.NewTime64Builder(mem, want.(*arrow.Time64Type))
		return build(a, b, func(i int) error {
			v, _ := rescale(int64(a.Value(i)), arrow.Nanosecond, arrow.Microsecond)
			b.Append(arrow.Time64(v))
			return nil
		})
	case *array.Duration:
		unit := a.DataType().(*arrow.DurationType).Unit
		b := array.NewMonthDayNanoIntervalBuilder(mem)
		return build(a, b, func(i int) error {
			ns, ok := rescale(int64(a.Value(i)), unit, arrow.Nanosecond)
			if !ok {
				return errs.New(errs.Data, "import", "the duration %d %s does not fit an INTERVAL", a.Value(i), unit)
			}
			b.Append(arrow.MonthDayNanoInterval{Nanoseconds: ns})
			return nil
		})
	case *array.MonthInterval:
		b := array.NewMonthDayNanoIntervalBuilder(mem)
		return build(a, b, func(i int) error { b.Append(arrow.MonthDayNanoInterval{Months: int32(a.Value(i))}); return nil })
	case *array.DayTimeInterval:
		b := array.NewMonthDayNanoIntervalBuilder(mem)
		return build(a, b, func(i int) error {
			v := a.Value(i)
			b.Append(arrow.MonthDayNanoInterval{Days: v.Days, Nanoseconds: int64(v.Milliseconds) * 1e6})
			return nil
		})
	case *array.Decimal32:
		return canonicalDecimal(a, want, func(i int) decimal128.Num { return decimal128.FromI64(int64(a.Value(i))) })
	case *array.Decimal64:
		return canonicalDecimal(a, want, func(i int) decimal128.Num { return decimal128.FromI64(int64(a.Value(i))) })
	case *array.Decimal256:
		// The precision is at most 38 here, so the value lies in the low half.
		return canonicalDecimal(a, want, func(i int) decimal128.Num {
			w := a.Value(i).Array()
			return decimal128.New(int64(w[1]), w[0])
		})
	case *array.Decimal128: // another label, the same values
		d := uncounted(a.Data())
		return array.NewData(want, d.Len(), d.Buffers(), nil, d.NullN(), d.Offset()), nil
	}
	return nil, unknownLayout(a, want)
}

func canonicalDecimal(a arrow.Array, want arrow.DataType, value func(int) decimal128.Num) (arrow.ArrayData, error) {
	t, ok := want.(*arrow.Decimal128Type)
	if !ok {
		return nil, unknownLayout(a, want)
	}
	b := array.NewDecimal128Builder(memory.DefaultAllocator, t)
	return build(a, b, func(i int) error { b.Append(value(i)); return nil })
}

// build appends each valid value of a through add, and a null for the others.
func build(a arrow.Array, b array.Builder, add func(int) error) (arrow.ArrayData, error) {
	b.Reserve(a.Len())
	for i := range a.Len() {
		if a.IsNull(i) {
			b.AppendNull()
		} else if err := add(i); err != nil {
			return nil, err
		}
	}
	return b.NewArray().Data(), nil
}

func tooLong(n int64) error {
	return errs.New(errs.Source, "import", "one batch holds %d bytes or elements in one column, at most 2147483647 fit", n).
		WithHint("hand it over in smaller batches")
}

func unknownLayout(a arrow.Array, want arrow.DataType) error {
	return errs.New(errs.Schema, "import", "a column of the Arrow type %s cannot be read as %s", a.DataType(), want)
}
