package decode

import (
	"bytes"
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/riverbed/riverbed/core/types"
)

// Builder gathers one column, value by value.
type Builder interface {
	Len() int
	AppendNull()
	// AppendText appends the value that text spells; on error nothing is appended. It keeps nothing of text.
	AppendText(text []byte) error
	// Truncate drops the values from n on.
	Truncate(n int)
	// Finish returns the column and starts the next.
	Finish() arrow.Array
}

// NewBuilder makes a builder of a type without parts.
func NewBuilder(t types.Type) (Builder, error) {
	typ := func() arrow.DataType { return t.Arrow() }
	switch t.Kind {
	case types.Null:
		return &nullBuilder{}, nil
	case types.Boolean:
		return &bitBuilder{}, nil
	case types.TinyInt:
		return ints[int8](t, math.MinInt8, math.MaxInt8), nil
	case types.SmallInt:
		return ints[int16](t, math.MinInt16, math.MaxInt16), nil
	case types.Integer:
		return ints[int32](t, math.MinInt32, math.MaxInt32), nil
	case types.BigInt:
		return ints[int64](t, math.MinInt64, math.MaxInt64), nil
	case types.UTinyInt:
		return ints[uint8](t, 0, math.MaxUint8), nil
	case types.USmallInt:
		return ints[uint16](t, 0, math.MaxUint16), nil
	case types.UInteger:
		return ints[uint32](t, 0, math.MaxUint32), nil
	case types.UBigInt:
		return newFixed(t, parseUint), nil
	case types.Real:
		return newFixed(t, func(s []byte) (float32, bool) {
			f, ok := parseFloat(s)
			r := float32(f)
			return r, ok && (math.IsInf(f, 0) || !math.IsInf(float64(r), 0))
		}), nil
	case types.Double:
		return newFixed(t, parseFloat), nil
	case types.HugeInt, types.UHugeInt:
		return newFixed(t, func(s []byte) (decimal128.Num, bool) {
			n, ok := parseDecimal(s, 38, 0)
			return n, ok && (t.Kind == types.HugeInt || n.Sign() >= 0)
		}), nil
	case types.Decimal:
		return newFixed(t, func(s []byte) (decimal128.Num, bool) { return parseDecimal(s, int(t.Width), int(t.Scale)) }), nil
	case types.Date:
		return newFixed(t, parseDate), nil
	case types.Time:
		return newFixed(t, parseTime), nil
	case types.TimestampS, types.TimestampMS, types.Timestamp, types.TimestampNS, types.TimestampTZ:
		perSec := map[types.Kind]int64{types.TimestampS: 1, types.TimestampMS: 1e3, types.TimestampNS: 1e9}[t.Kind]
		if perSec == 0 {
			perSec = 1e6
		}
		limit := math.MaxInt64 / perSec
		return newFixed(t, func(s []byte) (int64, bool) {
			sec, nanos, offset, ok := parseTimestamp(s)
			if t.Kind == types.TimestampTZ {
				sec -= offset
			}
			return sec*perSec + nanos/(1e9/perSec), ok && sec < limit && sec > -limit
		}), nil
	case types.Interval:
		return newFixed(t, parseInterval), nil
	case types.UUID:
		return &uuidBuilder{}, nil
	case types.Varchar, types.JSON, types.Blob:
		return &Bytes{typ: typ()}, nil
	}
	return nil, fmt.Errorf("no text form of %s is read", t)
}

// nulls keeps the validity of a column. It allocates nothing until a NULL comes.
type nulls struct {
	bits  []byte
	count int
}

// null marks value i as NULL; valid marks it as a value.
func (n *nulls) null(i int) {
	if n.bits == nil {
		n.bits = make([]byte, 0, 1024)
		n.grow(i)
		bitutil.SetBitsTo(n.bits, 0, int64(i), true)
	}
	n.grow(i + 1)
	bitutil.ClearBit(n.bits, i)
	n.count++
}

func (n *nulls) valid(i int) {
	if n.bits != nil {
		n.grow(i + 1)
		bitutil.SetBit(n.bits, i)
	}
}

func (n *nulls) grow(values int) {
	for need := (values + 7) / 8; len(n.bits) < need; {
		n.bits = append(n.bits, 0)
	}
}

// truncate forgets the values from i to was.
func (n *nulls) truncate(i, was int) {
	if n.bits == nil {
		return
	}
	for ; i < was; i++ {
		if !bitutil.BitIsSet(n.bits, i) {
			n.count--
		}
	}
}

// finish makes the array and starts again.
func (n *nulls) finish(t arrow.DataType, rows int, buffers ...*memory.Buffer) arrow.Array {
	return n.finishOver(t, rows, nil, buffers...)
}

// finishOver makes an array that has parts, and starts again.
func (n *nulls) finishOver(t arrow.DataType, rows int, parts []arrow.ArrayData, buffers ...*memory.Buffer) arrow.Array {
	var bits *memory.Buffer
	if n.count > 0 {
		bits = memory.NewBufferBytes(n.bits)
	}
	a := array.MakeFromData(array.NewData(t, rows, append([]*memory.Buffer{bits}, buffers...), parts, n.count, 0))
	*n = nulls{}
	return a
}

// fixed gathers values of one width.
type fixed[T arrow.FixedWidthType] struct {
	t     types.Type
	typ   arrow.DataType
	parse func([]byte) (T, bool)
	nulls nulls
	vals  []T
	last  int // how many values the last column had, which the next probably has too
}

func newFixed[T arrow.FixedWidthType](t types.Type, parse func([]byte) (T, bool)) *fixed[T] {
	return &fixed[T]{t: t, typ: t.Arrow(), parse: parse}
}

func ints[T int8 | int16 | int32 | int64 | uint8 | uint16 | uint32](t types.Type, lo, hi int64) *fixed[T] {
	return newFixed(t, func(s []byte) (T, bool) {
		n, ok := parseInt(s)
		return T(n), ok && n >= lo && n <= hi
	})
}

func (f *fixed[T]) Len() int { return len(f.vals) }

func (f *fixed[T]) AppendNull() {
	var zero T
	f.nulls.null(len(f.vals))
	f.append(zero)
}

func (f *fixed[T]) append(v T) {
	if f.vals == nil {
		f.vals = make([]T, 0, max(f.last, 8))
	}
	f.vals = append(f.vals, v)
}

func (f *fixed[T]) AppendText(s []byte) error {
	v, ok := f.parse(s)
	if !ok {
		return &textError{string(s), f.t}
	}
	f.nulls.valid(len(f.vals))
	f.append(v)
	return nil
}

func (f *fixed[T]) Truncate(n int) {
	f.nulls.truncate(n, len(f.vals))
	f.vals = f.vals[:n]
}

func (f *fixed[T]) Finish() arrow.Array {
	n := len(f.vals)
	a := f.nulls.finish(f.typ, n, memory.NewBufferBytes(arrow.GetBytes(f.vals)))
	f.vals, f.last = nil, n
	return a
}

// textError says that a text is no value of a type.
type textError struct {
	text string
	t    types.Type
}

func (e *textError) Error() string { return fmt.Sprintf("%q is not a value of %s", Clip(e.text), e.t) }

// Clip shortens a text for a message.
func Clip(s string) string {
	if len(s) > 80 {
		return s[:77] + "…"
	}
	return s
}

// Bytes gathers strings. It gathers them in memory that it keeps, which is warm and has room, and copies the column out.
type Bytes struct {
	typ   arrow.DataType
	nulls nulls
	ends  []int32
	data  []byte
}

// keptBytes is what a builder keeps in any case; of more it keeps no more than four times what the last column needed.
const keptBytes = 1 << 20

// NewStrings makes a builder of VARCHAR.
func NewStrings() *Bytes { return &Bytes{typ: arrow.BinaryTypes.String} }

// NewBlobs makes a builder of BLOB.
func NewBlobs() *Bytes { return &Bytes{typ: arrow.BinaryTypes.Binary} }

func (b *Bytes) Len() int { return len(b.ends) }

func (b *Bytes) AppendNull() {
	b.nulls.null(len(b.ends))
	b.ends = append(b.ends, int32(len(b.data)))
}

func (b *Bytes) AppendText(s []byte) error {
	if len(b.data)+len(s) > math.MaxInt32 {
		return fmt.Errorf("a batch of one column holds more than 2 GiB of text")
	}
	b.data = append(b.data, s...)
	b.nulls.valid(len(b.ends))
	b.ends = append(b.ends, int32(len(b.data)))
	return nil
}

func (b *Bytes) Truncate(n int) {
	b.nulls.truncate(n, len(b.ends))
	b.ends = b.ends[:n]
	if n == 0 {
		b.data = b.data[:0]
	} else {
		b.data = b.data[:b.ends[n-1]]
	}
}

func (b *Bytes) Finish() arrow.Array {
	n := len(b.ends)
	offsets := make([]int32, n+1)
	copy(offsets[1:], b.ends)
	a := b.nulls.finish(b.typ, n, memory.NewBufferBytes(arrow.GetBytes(offsets)), memory.NewBufferBytes(bytes.Clone(b.data)))
	if cap(b.data) > keptBytes && cap(b.data)/4 > len(b.data) {
		b.data = nil
	}
	b.ends, b.data = b.ends[:0], b.data[:0]
	return a
}

// bitBuilder gathers booleans.
type bitBuilder struct {
	nulls nulls
	vals  []bool
}

func (b *bitBuilder) Len() int { return len(b.vals) }

func (b *bitBuilder) AppendNull() {
	b.nulls.null(len(b.vals))
	b.vals = append(b.vals, false)
}

func (b *bitBuilder) AppendText(s []byte) error {
	v, ok := parseBool(s)
	if !ok {
		return &textError{string(s), types.Bool}
	}
	b.append(v)
	return nil
}

func (b *bitBuilder) append(v bool) {
	b.nulls.valid(len(b.vals))
	b.vals = append(b.vals, v)
}

// BoolAppender gives the way to append booleans as they are, to a builder of BOOLEAN.
func BoolAppender(b Builder) (func(bool), bool) {
	bits, ok := b.(*bitBuilder)
	if !ok {
		return nil, false
	}
	return bits.append, true
}

func (b *bitBuilder) Truncate(n int) {
	b.nulls.truncate(n, len(b.vals))
	b.vals = b.vals[:n]
}

func (b *bitBuilder) Finish() arrow.Array {
	bits := make([]byte, (len(b.vals)+7)/8)
	for i, v := range b.vals {
		if v {
			bitutil.SetBit(bits, i)
		}
	}
	a := b.nulls.finish(arrow.FixedWidthTypes.Boolean, len(b.vals), memory.NewBufferBytes(bits))
	b.vals = b.vals[:0]
	return a
}

// uuidBuilder gathers UUIDs as pairs of words in memory order.
type uuidBuilder struct {
	nulls nulls
	vals  []uint64
}

func (u *uuidBuilder) Len() int { return len(u.vals) / 2 }

func (u *uuidBuilder) AppendNull() {
	u.nulls.null(u.Len())
	u.vals = append(u.vals, 0, 0)
}

func (u *uuidBuilder) AppendText(s []byte) error {
	hi, lo, ok := parseUUID(s)
	if !ok {
		return &textError{string(s), types.UUIDType}
	}
	u.nulls.valid(u.Len())
	u.vals = append(u.vals, hi, lo)
	return nil
}

func (u *uuidBuilder) Truncate(n int) {
	u.nulls.truncate(n, u.Len())
	u.vals = u.vals[:2*n]
}

func (u *uuidBuilder) Finish() arrow.Array {
	a := u.nulls.finish(types.UUIDType.Arrow(), u.Len(), memory.NewBufferBytes(arrow.GetBytes(u.vals)))
	u.vals = nil
	return a
}

// nullBuilder counts values of type NULL.
type nullBuilder struct{ n int }

func (b *nullBuilder) Len() int                  { return b.n }
func (b *nullBuilder) AppendNull()               { b.n++ }
func (b *nullBuilder) AppendText(s []byte) error { return &textError{string(s), types.NullType} }
func (b *nullBuilder) Truncate(n int)            { b.n = n }
func (b *nullBuilder) Finish() arrow.Array {
	a := array.NewNull(b.n)
	b.n = 0
	return a
}
