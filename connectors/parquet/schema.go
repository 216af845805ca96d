package parquet

import (
	"encoding/binary"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	pq "github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/apache/arrow-go/v18/parquet/schema"

	"github.com/riverbed/riverbed/core/types"
)

// leaf is one top-level column of a file.
type leaf struct {
	field types.Field
	index int // among the top-level fields
	col   int // leaf column, -1 for nested columns
	// open makes our own decoder; nil: the column is read through pqarrow.
	open func(chunk) column
	// stat turns a PLAIN encoded statistic into a value; nil: no statistics.
	stat func([]byte) types.Value
}

// leaves maps the top-level fields of a file to SQL types, as TYPES.md lists.
func leaves(m *pqarrow.SchemaManifest, descr *schema.Schema) ([]leaf, error) {
	out := make([]leaf, len(m.Fields))
	for i := range m.Fields {
		f := &m.Fields[i]
		l := leaf{index: i, col: -1, field: types.Field{Name: f.Field.Name}}
		if f.IsLeaf() && len(f.Children) == 0 {
			l.col = f.ColIndex
		}
		if l.col < 0 || !temporal(&l, descr.Column(l.col)) {
			t, err := types.FromArrow(*f.Field)
			if err != nil {
				return nil, err
			}
			l.field.Type = t
		}
		if l.col >= 0 {
			own(&l, descr.Column(l.col))
		}
		out[i] = l
	}
	return out, nil
}

// temporal sets the type of timestamps, whose stored unit decides, not that of the writer's Arrow schema.
// As in DuckDB, milliseconds and INT96 become TIMESTAMP (microseconds).
func temporal(l *leaf, c *schema.Column) bool {
	switch lt := c.LogicalType().(type) {
	case schema.TimestampLogicalType:
		switch {
		case lt.IsAdjustedToUTC() && !lt.IsFromConvertedType():
			l.field.Type = types.TsTZ
		case lt.TimeUnit() == schema.TimeUnitNanos:
			l.field.Type = types.TsNS
		default:
			l.field.Type = types.TsUS
		}
		return true
	case schema.TimeLogicalType:
		l.field.Type = types.TimeUS
		return true
	}
	if c.PhysicalType() == pq.Types.Int96 {
		l.field.Type = types.TsUS
		return true
	}
	return false
}

// unitFactors are what a stored number of the column is multiplied with and divided by to become microseconds.
func unitFactors(c *schema.Column, t types.Type) (mul, div int64) {
	var unit schema.TimeUnitType
	switch lt := c.LogicalType().(type) {
	case schema.TimestampLogicalType:
		unit = lt.TimeUnit()
	case schema.TimeLogicalType:
		unit = lt.TimeUnit()
	default:
		return 1, 1
	}
	switch {
	case unit == schema.TimeUnitMillis:
		return 1000, 1
	case unit == schema.TimeUnitNanos && t.Kind != types.TimestampNS:
		return 1, 1000
	}
	return 1, 1
}

// own chooses our own decoder for a flat column, where there is one for its physical and SQL type.
func own(l *leaf, c *schema.Column) {
	if c.MaxRepetitionLevel() > 0 || c.MaxDefinitionLevel() > 1 {
		return
	}
	t, kind := l.field.Type, l.field.Type.Kind
	mul, div := unitFactors(c, t)
	switch c.PhysicalType() {
	case pq.Types.Boolean:
		if kind == types.Boolean {
			l.open = func(ch chunk) column { return &booleans{chunk: ch} }
			l.stat = func(b []byte) types.Value { return len(b) > 0 && b[0] != 0 }
		}
	case pq.Types.Int32:
		signed := func(b []byte) types.Value { return int64(i32(b)) }
		unsigned := func(b []byte) types.Value { return uint64(uint32(i32(b))) }
		switch kind {
		case types.TinyInt:
			ownFixed(l, 4, narrow[int8], signed)
		case types.SmallInt:
			ownFixed(l, 4, narrow[int16], signed)
		case types.Integer, types.Date:
			ownFixed(l, 4, same[int32], signed)
		case types.UTinyInt:
			ownFixed(l, 4, narrow[uint8], unsigned)
		case types.USmallInt:
			ownFixed(l, 4, narrow[uint16], unsigned)
		case types.UInteger:
			ownFixed(l, 4, same[uint32], unsigned)
		case types.Time:
			ownFixed(l, 4, func(dst []int64, src []byte) {
				for i := range dst {
					dst[i] = int64(i32(src[4*i:])) * mul
				}
			}, func(b []byte) types.Value { return int64(i32(b)) * mul })
		case types.Decimal:
			ownFixed(l, 4, func(dst []decimal128.Num, src []byte) {
				for i := range dst {
					v := int64(i32(src[4*i:]))
					dst[i] = decimal128.New(v>>63, uint64(v))
				}
			}, func(b []byte) types.Value { return decimal128.FromI64(int64(i32(b))) })
		}
	case pq.Types.Int64:
		switch kind {
		case types.BigInt, types.Timestamp, types.TimestampNS, types.TimestampTZ, types.Time:
			plain := same[int64]
			if mul != 1 {
				plain = func(dst []int64, src []byte) {
					for i := range dst {
						dst[i] = i64(src[8*i:]) * mul
					}
				}
			} else if div != 1 {
				plain = func(dst []int64, src []byte) {
					for i := range dst {
						dst[i] = types.FloorDiv(i64(src[8*i:]), div)
					}
				}
			}
			ownFixed(l, 8, plain, func(b []byte) types.Value { return types.FloorDiv(i64(b)*mul, div) })
		case types.UBigInt:
			ownFixed(l, 8, same[uint64], func(b []byte) types.Value { return uint64(i64(b)) })
		case types.Decimal:
			ownFixed(l, 8, func(dst []decimal128.Num, src []byte) {
				src = src[:8*len(dst)]
				for i := range dst {
					v := int64(binary.LittleEndian.Uint64(src[8*i:]))
					dst[i] = decimal128.New(v>>63, uint64(v)) // FromI64 has branches
				}
			}, func(b []byte) types.Value { return decimal128.FromI64(i64(b)) })
		}
	case pq.Types.Int96:
		ownFixed(l, 12, func(dst []int64, src []byte) {
			for i := range dst {
				dst[i] = int96(src[12*i:])
			}
		}, nil)
	case pq.Types.Float:
		if kind == types.Real {
			ownFixed(l, 4, same[float32], nil)
			l.stat = func(b []byte) types.Value {
				var v [1]float32
				same(v[:], b)
				return v[0]
			}
		}
	case pq.Types.Double:
		if kind == types.Double {
			ownFixed(l, 8, same[float64], func(b []byte) types.Value {
				var v [1]float64
				same(v[:], b)
				return v[0]
			})
		}
	case pq.Types.ByteArray:
		switch kind {
		case types.Varchar, types.JSON:
			l.open = func(ch chunk) column {
				return &byteArrays{coded: coded{chunk: ch}, typ: arrow.BinaryTypes.String, text: true}
			}
			l.stat = func(b []byte) types.Value { return string(b) }
		case types.Blob:
			l.open = func(ch chunk) column { return &byteArrays{coded: coded{chunk: ch}, typ: arrow.BinaryTypes.Binary} }
			l.stat = func(b []byte) types.Value { return append([]byte(nil), b...) }
		}
	case pq.Types.FixedLenByteArray:
		if size := c.TypeLength(); kind == types.Decimal && size > 0 && size <= 16 {
			ownFixed(l, size, func(dst []decimal128.Num, src []byte) {
				for i := range dst {
					dst[i] = bigEndian(src[size*i : size*(i+1)])
				}
			}, func(b []byte) types.Value { return bigEndian(b) })
		}
	}
}

// ownFixed sets a decoder of values of one width.
func ownFixed[T element](l *leaf, size int, plain func([]T, []byte), stat func([]byte) types.Value) {
	typ := l.field.Type.Arrow()
	l.open = func(ch chunk) column { return &fixed[T]{coded: coded{chunk: ch}, typ: typ, width: size, plain: plain} }
	if stat != nil {
		l.stat = func(b []byte) types.Value {
			if len(b) < size {
				return nil
			}
			return stat(b)
		}
	}
}

// same copies values whose stored form is the form in memory (the supported platforms are little-endian).
func same[T element](dst []T, src []byte) { copy(arrow.GetBytes(dst), src) }

// narrow keeps the low bytes of stored 32-bit integers.
func narrow[T int8 | int16 | uint8 | uint16](dst []T, src []byte) {
	for i := range dst {
		dst[i] = T(i32(src[4*i:]))
	}
}

func i32(b []byte) int32 { return int32(binary.LittleEndian.Uint32(b)) }
func i64(b []byte) int64 { return int64(binary.LittleEndian.Uint64(b)) }

// int96 reads the old timestamp: nanoseconds of the day, then the Julian day.
func int96(b []byte) int64 {
	const julianEpoch = 2_440_588
	nanos := int64(binary.LittleEndian.Uint64(b))
	day := int64(binary.LittleEndian.Uint32(b[8:]))
	return (day-julianEpoch)*86_400_000_000 + nanos/1000
}

// bigEndian reads a two's complement number.
func bigEndian(b []byte) decimal128.Num {
	var hi, lo uint64
	if len(b) > 0 && b[0]&0x80 != 0 {
		hi, lo = ^uint64(0), ^uint64(0)
	}
	for _, x := range b {
		hi = hi<<8 | lo>>56
		lo = lo<<8 | uint64(x)
	}
	return decimal128.New(int64(hi), lo)
}
