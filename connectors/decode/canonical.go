// Package decode turns bytes into Arrow columns and back. The formats are its sub-packages; this file brings Arrow
// arrays of any layout into the one form that the engine works on.
//
// Invariant: what leaves a decoder has exactly the Arrow form that types.Type.Arrow gives.
package decode

import (
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/types"
)

// Canonical returns a in the engine's form of t, which must be the type that types.FromArrow gave for it, or a
// timestamp of microseconds where the array has another unit. An array that has the form already is returned as it is.
func Canonical(a arrow.Array, t types.Type) (arrow.Array, error) {
	want := t.Arrow()
	if sameForm(a.DataType(), want) {
		return a, nil
	}
	switch x := a.(type) {
	case *array.Dictionary:
		dense, err := fromDictionary(x)
		if err != nil {
			return nil, err
		}
		return Canonical(dense, t)
	case array.ExtensionArray:
		return Canonical(x.Storage(), t)
	case *array.LargeString:
		return denseBytes(a, want, func(i int) string { return x.Value(i) })
	case *array.StringView:
		return denseBytes(a, want, func(i int) string { return x.Value(i) })
	case *array.String:
		return rename(a, want), nil
	case *array.LargeBinary:
		return denseBytes(a, want, func(i int) string { return string(x.Value(i)) })
	case *array.BinaryView:
		return denseBytes(a, want, func(i int) string { return string(x.Value(i)) })
	case *array.Binary:
		return rename(a, want), nil
	case *array.FixedSizeBinary:
		if t.Kind == types.UUID {
			return rename(a, want), nil
		}
		return denseBytes(a, want, func(i int) string { return string(x.Value(i)) })
	case *array.Float16:
		return mapped(a, want, func(i int) float32 { return x.Value(i).Float32() }), nil
	case *array.Date64:
		return mapped(a, want, func(i int) int32 { return int32(types.FloorDiv(int64(x.Value(i)), 86_400_000)) }), nil
	case *array.Time32:
		factor := int64(1000)
		if x.DataType().(*arrow.Time32Type).Unit == arrow.Second {
			factor = 1_000_000
		}
		return mapped(a, want, func(i int) int64 { return int64(x.Value(i)) * factor }), nil
	case *array.Time64:
		return mapped(a, want, func(i int) int64 { return int64(x.Value(i)) / 1000 }), nil
	case *array.Timestamp:
		return timestamps(x, want.(*arrow.TimestampType))
	case *array.Decimal32:
		return mapped(a, want, func(i int) decimal128.Num { return decimal128.FromI64(int64(x.Value(i))) }), nil
	case *array.Decimal64:
		return mapped(a, want, func(i int) decimal128.Num { return decimal128.FromI64(int64(x.Value(i))) }), nil
	case *array.Decimal256:
		return mapped(a, want, func(i int) decimal128.Num { return decimal128.FromBigInt(x.Value(i).BigInt()) }), nil
	case *array.Decimal128:
		return rename(a, want), nil
	case *array.Duration:
		unit := x.DataType().(*arrow.DurationType).Unit
		return intervals(a, func(i int) arrow.MonthDayNanoInterval {
			return arrow.MonthDayNanoInterval{Nanoseconds: int64(x.Value(i)) * int64(unit.Multiplier())}
		}), nil
	case *array.MonthInterval:
		return intervals(a, func(i int) arrow.MonthDayNanoInterval { return arrow.MonthDayNanoInterval{Months: int32(x.Value(i))} }), nil
	case *array.DayTimeInterval:
		return intervals(a, func(i int) arrow.MonthDayNanoInterval {
			v := x.Value(i)
			return arrow.MonthDayNanoInterval{Days: v.Days, Nanoseconds: int64(v.Milliseconds) * 1_000_000}
		}), nil
	case *array.Struct:
		return structs(x, t)
	case *array.Map:
		return maps(x, t)
	case array.ListLike:
		return lists(x, t)
	case *array.Null:
		return kernels.Nulls(want, a.Len()), nil
	}
	return nil, fmt.Errorf("an Arrow array of %s cannot be brought into the form of %s", a.DataType(), t)
}

// sameForm is equality of layouts: names and metadata of nested fields count for nothing.
func sameForm(have, want arrow.DataType) bool {
	if have.ID() != want.ID() {
		return false
	}
	switch w := want.(type) {
	case *arrow.ListType, *arrow.MapType, *arrow.StructType:
		return arrow.TypeEqual(have, want, arrow.CheckMetadata())
	case *arrow.TimestampType:
		h := have.(*arrow.TimestampType)
		return h.Unit == w.Unit && h.TimeZone == w.TimeZone
	}
	return arrow.TypeEqual(have, want)
}

// rename gives a the type want, which has the same layout.
func rename(a arrow.Array, want arrow.DataType) arrow.Array {
	d := a.Data()
	return array.MakeFromData(array.NewData(want, d.Len(), d.Buffers(), d.Children(), d.NullN(), d.Offset()))
}

// validityOf returns the validity bits of a from bit 0 on, nil when there are no NULLs.
func validityOf(a arrow.Array) *memory.Buffer {
	if a.NullN() == 0 {
		return nil
	}
	d := a.Data()
	if d.Offset() == 0 {
		return d.Buffers()[0]
	}
	bits := make([]byte, bitutil.BytesForBits(int64(a.Len())))
	bitutil.CopyBitmap(d.Buffers()[0].Bytes(), d.Offset(), a.Len(), bits, 0)
	return memory.NewBufferBytes(bits)
}

func mapped[T arrow.FixedWidthType](a arrow.Array, want arrow.DataType, value func(i int) T) arrow.Array {
	out := make([]T, a.Len())
	for i := range out {
		if a.IsValid(i) {
			out[i] = value(i)
		}
	}
	return array.MakeFromData(array.NewData(want, len(out), []*memory.Buffer{validityOf(a), memory.NewBufferBytes(arrow.GetBytes(out))}, nil, a.NullN(), 0))
}

func intervals(a arrow.Array, value func(i int) arrow.MonthDayNanoInterval) arrow.Array {
	return mapped(a, arrow.FixedWidthTypes.MonthDayNanoInterval, value)
}

func denseBytes(a arrow.Array, want arrow.DataType, value func(i int) string) (arrow.Array, error) {
	ends := make([]int32, a.Len()+1)
	var data []byte
	for i := range a.Len() {
		if a.IsValid(i) {
			data = append(data, value(i)...)
		}
		if len(data) > math.MaxInt32 {
			return nil, fmt.Errorf("a batch of one column holds more than 2 GiB of text")
		}
		ends[i+1] = int32(len(data))
	}
	buffers := []*memory.Buffer{validityOf(a), memory.NewBufferBytes(arrow.GetBytes(ends)), memory.NewBufferBytes(data)}
	return array.MakeFromData(array.NewData(want, a.Len(), buffers, nil, a.NullN(), 0)), nil
}

func fromDictionary(x *array.Dictionary) (arrow.Array, error) {
	values := x.Dictionary()
	b := array.NewBuilder(memory.DefaultAllocator, values.DataType())
	switch v := values.(type) {
	case *array.String: // the common case; the rest goes value by value
		sb := b.(*array.StringBuilder)
		sb.Reserve(x.Len())
		for i := range x.Len() {
			if k := x.GetValueIndex; x.IsNull(i) || v.IsNull(k(i)) {
				sb.AppendNull()
			} else {
				sb.Append(v.Value(k(i)))
			}
		}
		return sb.NewArray(), nil
	}
	parts := make([]arrow.Array, x.Len())
	null := kernels.Nulls(values.DataType(), 1)
	for i := range parts {
		parts[i] = null
		if x.IsValid(i) {
			k := int64(x.GetValueIndex(i))
			parts[i] = array.NewSlice(values, k, k+1)
		}
	}
	if len(parts) == 0 {
		return b.NewArray(), nil
	}
	return array.Concatenate(parts, memory.DefaultAllocator)
}

func timestamps(x *array.Timestamp, want *arrow.TimestampType) (arrow.Array, error) {
	have := x.DataType().(*arrow.TimestampType)
	if have.Unit == want.Unit {
		return rename(x, want), nil
	}
	mul, div := int64(1), int64(1)
	if have.Unit < want.Unit {
		mul = int64(have.Unit.Multiplier() / want.Unit.Multiplier())
	} else {
		div = int64(want.Unit.Multiplier() / have.Unit.Multiplier())
	}
	var err error
	out := mapped(x, want, func(i int) int64 {
		v := int64(x.Value(i))
		if mul > 1 && (v > math.MaxInt64/mul || v < math.MinInt64/mul) {
			err = fmt.Errorf("the timestamp %d %s does not fit into %s", v, have.Unit, want.Unit)
		}
		return types.FloorDiv(v*mul, div)
	})
	return out, err
}

func structs(x *array.Struct, t types.Type) (arrow.Array, error) {
	children := make([]arrow.ArrayData, x.NumField())
	for i := range children {
		c, err := Canonical(x.Field(i), t.Fields[i].Type) // Field is sliced as x is
		if err != nil {
			return nil, err
		}
		children[i] = c.Data()
	}
	return array.MakeFromData(array.NewData(t.Arrow(), x.Len(), []*memory.Buffer{validityOf(x)}, children, x.NullN(), 0)), nil
}

func lists(x array.ListLike, t types.Type) (arrow.Array, error) {
	offsets := make([]int32, x.Len()+1)
	var first int64
	var total int64
	parts := x.ListValues()
	contiguous := true
	for i := range x.Len() {
		from, to := x.ValueOffsets(i)
		if i == 0 {
			first = from
		}
		if !x.IsValid(i) {
			from, to = first+total, first+total
		}
		if from != first+total {
			contiguous = false
		}
		total += to - from
		offsets[i+1] = int32(total)
	}
	if total > math.MaxInt32 {
		return nil, fmt.Errorf("a batch of one column holds more than 2³¹ list elements")
	}
	if contiguous {
		parts = array.NewSlice(parts, first, first+total)
	} else {
		var pieces []arrow.Array
		for i := range x.Len() {
			if from, to := x.ValueOffsets(i); x.IsValid(i) && to > from {
				pieces = append(pieces, array.NewSlice(parts, from, to))
			}
		}
		var err error
		if parts, err = array.Concatenate(pieces, memory.DefaultAllocator); err != nil {
			return nil, err
		}
	}
	elem, err := Canonical(parts, *t.Elem)
	if err != nil {
		return nil, err
	}
	buffers := []*memory.Buffer{validityOf(x), memory.NewBufferBytes(arrow.GetBytes(offsets))}
	return array.MakeFromData(array.NewData(t.Arrow(), x.Len(), buffers, []arrow.ArrayData{elem.Data()}, x.NullN(), 0)), nil
}

func maps(x *array.Map, t types.Type) (arrow.Array, error) {
	keys, err := Canonical(x.Keys(), *t.Key)
	if err != nil {
		return nil, err
	}
	items, err := Canonical(x.Items(), *t.Elem)
	if err != nil {
		return nil, err
	}
	want := t.Arrow().(*arrow.MapType)
	entries := array.NewData(want.Elem(), keys.Len(), []*memory.Buffer{nil}, []arrow.ArrayData{keys.Data(), items.Data()}, 0, 0)
	offsets := make([]int32, x.Len()+1)
	for i := range x.Len() {
		from, to := x.ValueOffsets(i)
		offsets[i], offsets[i+1] = int32(from), int32(to)
	}
	buffers := []*memory.Buffer{validityOf(x), memory.NewBufferBytes(arrow.GetBytes(offsets))}
	return array.MakeFromData(array.NewData(want, x.Len(), buffers, []arrow.ArrayData{entries}, x.NullN(), 0)), nil
}
