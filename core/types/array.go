package types

import (
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/riverbed/riverbed/core/errs"
)

// ValueAt reads row i of an array of type t. It is for plans, statistics and printing; operators work on buffers.
func ValueAt(arr arrow.Array, i int, t Type) Value {
	if arr.IsNull(i) {
		return nil
	}
	switch a := arr.(type) {
	case *array.Null:
		return nil
	case *array.Boolean:
		return a.Value(i)
	case *array.Int8:
		return int64(a.Value(i))
	case *array.Int16:
		return int64(a.Value(i))
	case *array.Int32:
		return int64(a.Value(i))
	case *array.Int64:
		return a.Value(i)
	case *array.Uint8:
		return uint64(a.Value(i))
	case *array.Uint16:
		return uint64(a.Value(i))
	case *array.Uint32:
		return uint64(a.Value(i))
	case *array.Uint64:
		return a.Value(i)
	case *array.Float32:
		return a.Value(i)
	case *array.Float64:
		return a.Value(i)
	case *array.Decimal128:
		return a.Value(i)
	case *array.String:
		return a.Value(i)
	case *array.Binary:
		return append([]byte{}, a.Value(i)...)
	case *array.Date32:
		return int64(a.Value(i))
	case *array.Time64:
		return int64(a.Value(i))
	case *array.Timestamp:
		return int64(a.Value(i))
	case *array.MonthDayNanoInterval:
		v := a.Value(i)
		return IntervalValue{v.Months, v.Days, v.Nanoseconds / 1000}
	case *array.FixedSizeBinary:
		return [16]byte(a.Value(i))
	case *array.Map: // before List, which it is too
		from, to := a.ValueOffsets(i)
		out := make([]MapEntry, 0, to-from)
		for j := int(from); j < int(to); j++ {
			out = append(out, MapEntry{ValueAt(a.Keys(), j, *t.Key), ValueAt(a.Items(), j, *t.Elem)})
		}
		return out
	case *array.List:
		from, to := a.ValueOffsets(i)
		out := make([]Value, 0, to-from)
		for j := int(from); j < int(to); j++ {
			out = append(out, ValueAt(a.ListValues(), j, *t.Elem))
		}
		return out
	case *array.Struct:
		out := make([]Value, a.NumField())
		for j := range out {
			out[j] = ValueAt(a.Field(j), i, t.Fields[j].Type)
		}
		return out
	}
	panic(errs.Bug("types", "no value of type %s in a %s", t, arr.DataType())) // AIDEV-NOTE: the engine has one Arrow form per type
}

// ArrayOf makes an array of type t that holds values.
func ArrayOf(values []Value, t Type) arrow.Array {
	b := array.NewBuilder(memory.DefaultAllocator, t.Arrow())
	defer b.Release()
	b.Reserve(len(values))
	for _, v := range values {
		AppendValue(b, v, t)
	}
	return b.NewArray()
}

// AppendValue appends one value to the builder of type t's Arrow form.
func AppendValue(b array.Builder, v Value, t Type) {
	if v == nil {
		b.AppendNull()
		return
	}
	switch b := b.(type) {
	case *array.BooleanBuilder:
		b.Append(v.(bool))
	case *array.Int8Builder:
		b.Append(int8(v.(int64)))
	case *array.Int16Builder:
		b.Append(int16(v.(int64)))
	case *array.Int32Builder:
		b.Append(int32(v.(int64)))
	case *array.Int64Builder:
		b.Append(v.(int64))
	case *array.Uint8Builder:
		b.Append(uint8(v.(uint64)))
	case *array.Uint16Builder:
		b.Append(uint16(v.(uint64)))
	case *array.Uint32Builder:
		b.Append(uint32(v.(uint64)))
	case *array.Uint64Builder:
		b.Append(v.(uint64))
	case *array.Float32Builder:
		b.Append(v.(float32))
	case *array.Float64Builder:
		b.Append(v.(float64))
	case *array.Decimal128Builder:
		b.Append(v.(decimal128.Num))
	case *array.StringBuilder:
		b.Append(v.(string))
	case *array.BinaryBuilder:
		b.Append(v.([]byte))
	case *array.Date32Builder:
		b.Append(arrow.Date32(v.(int64)))
	case *array.Time64Builder:
		b.Append(arrow.Time64(v.(int64)))
	case *array.TimestampBuilder:
		b.Append(arrow.Timestamp(v.(int64)))
	case *array.MonthDayNanoIntervalBuilder:
		iv := v.(IntervalValue)
		b.Append(arrow.MonthDayNanoInterval{Months: iv.Months, Days: iv.Days, Nanoseconds: iv.Micros * 1000})
	case *array.FixedSizeBinaryBuilder:
		u := v.([16]byte)
		b.Append(u[:])
	case *array.MapBuilder:
		b.Append(true)
		for _, e := range v.([]MapEntry) {
			AppendValue(b.KeyBuilder(), e.Key, *t.Key)
			AppendValue(b.ItemBuilder(), e.Value, *t.Elem)
		}
	case *array.ListBuilder:
		b.Append(true)
		for _, e := range v.([]Value) {
			AppendValue(b.ValueBuilder(), e, *t.Elem)
		}
	case *array.StructBuilder:
		b.Append(true)
		for j, e := range v.([]Value) {
			AppendValue(b.FieldBuilder(j), e, t.Fields[j].Type)
		}
	case *array.NullBuilder:
		b.AppendNull()
	default:
		panic(errs.Bug("types", "no builder for type %s", t)) // AIDEV-NOTE: the engine has one Arrow form per type
	}
}

// MaxIntervalMicros bounds the microseconds of an INTERVAL, whose Arrow form counts nanoseconds: about 292 years.
const MaxIntervalMicros = math.MaxInt64 / 1000
