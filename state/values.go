package state

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/types"
)

// Values is a column of SQL values. Save gathers; NoSlot gives NULL there.
type Values interface {
	Column
	// Put stores rows[i] of from in slots[i].
	Put(slots []uint32, from arrow.Array, rows []int32)
}

// NewValues makes a column for a type.
func NewValues(t types.Type) Values {
	v := value{typ: t, dt: t.Arrow()}
	switch d := v.dt.(type) {
	case *arrow.BooleanType:
		return &bools{value: v}
	case *arrow.StringType, *arrow.BinaryType:
		return &byteStrings{value: v}
	case arrow.FixedWidthDataType:
		switch d.BitWidth() {
		case 8:
			return &fixed[uint8]{value: v, width: 1, cast: func(b []byte) []uint8 { return b }}
		case 16:
			return &fixed[uint16]{value: v, width: 2, cast: arrow.Uint16Traits.CastFromBytes}
		case 32:
			return &fixed[uint32]{value: v, width: 4, cast: arrow.Uint32Traits.CastFromBytes}
		case 64:
			return &fixed[uint64]{value: v, width: 8, cast: arrow.Uint64Traits.CastFromBytes}
		case 128:
			return &fixed[decimal128.Num]{value: v, width: 16, cast: arrow.Decimal128Traits.CastFromBytes}
		}
	}
	return &boxed{value: v}
}

// value is what all columns of values share: the type and which slots are NULL.
type value struct {
	typ  types.Type
	dt   arrow.DataType
	null []bool // grows with the first NULL
}

func (v *value) State() types.Type { return v.typ }

func (v *value) setNulls(slots []uint32, from arrow.Array, rows []int32) {
	if v.null == nil {
		if from.NullN() == 0 {
			return
		}
		v.null = make([]bool, 0, 64)
	}
	for i, s := range slots {
		for int(s) >= len(v.null) {
			v.null = append(v.null, false)
		}
		v.null[s] = from.IsNull(int(rows[i]))
	}
}

// validity is the bitmap of gathered slots; nil when none is NULL.
func (v *value) validity(slots []uint32) (*memory.Buffer, int) {
	nulls := 0
	for _, s := range slots {
		if s == NoSlot || (int(s) < len(v.null) && v.null[s]) {
			nulls++
		}
	}
	if nulls == 0 {
		return nil, 0
	}
	bits := make([]byte, bitutil.BytesForBits(int64(len(slots))))
	for i, s := range slots {
		if s != NoSlot && (int(s) >= len(v.null) || !v.null[s]) {
			bits[i>>3] |= 1 << (i & 7)
		}
	}
	return memory.NewBufferBytes(bits), nulls
}

func (v *value) array(n int, nulls int, bufs ...*memory.Buffer) arrow.Array {
	return array.MakeFromData(array.NewData(v.dt, n, bufs, nil, nulls, 0))
}

// iota32 returns 0..n-1, for loading whole arrays.
func iota32(n int) []int32 {
	out := make([]int32, n)
	for i := range out {
		out[i] = int32(i)
	}
	return out
}

// fixed holds values of a fixed width.
type fixed[T any] struct {
	value
	v     Chunked[T]
	width int
	cast  func([]byte) []T
}

func (f *fixed[T]) Resize(n int)   { f.v.Resize(n) }
func (f *fixed[T]) Reset([]uint32) {}
func (f *fixed[T]) Bytes() int64   { return int64(f.v.held()*f.width + cap(f.null)) }

func (f *fixed[T]) Put(slots []uint32, from arrow.Array, rows []int32) {
	if len(slots) == 0 {
		return // an empty array may have no buffers
	}
	d := from.Data()
	src := f.cast(d.Buffers()[1].Bytes())[d.Offset():]
	for i := 0; i < len(slots); {
		s, r := slots[i], rows[i]
		n := 1
		for i+n < len(slots) && slots[i+n] == s+uint32(n) && rows[i+n] == r+int32(n) {
			n++
		}
		f.v.fill(s, src[r:int(r)+n])
		i += n
	}
	f.setNulls(slots, from, rows)
}

func (f *fixed[T]) Save(slots []uint32) (arrow.Array, error) {
	// The allocator aligns, which make([]byte) does not promise.
	buf := memory.NewResizableBuffer(memory.DefaultAllocator)
	buf.Resize(len(slots) * f.width)
	out := f.cast(buf.Bytes())
	for i, s := range slots {
		if s != NoSlot {
			out[i] = *f.v.At(s)
		}
	}
	valid, nulls := f.validity(slots)
	return f.array(len(slots), nulls, valid, buf), nil
}

func (f *fixed[T]) Load(slots []uint32, saved arrow.Array) error {
	f.Put(slots, saved, iota32(len(slots)))
	return nil
}

// bools holds one byte a value.
type bools struct {
	value
	v []bool
}

func (b *bools) Resize(n int)   { b.v = kernels.GrownTo(b.v, n) }
func (b *bools) Reset([]uint32) {}
func (b *bools) Bytes() int64   { return int64(cap(b.v) + cap(b.null)) }

func (b *bools) Put(slots []uint32, from arrow.Array, rows []int32) {
	if len(slots) == 0 {
		return // an empty array may have no buffers
	}
	src := from.(*array.Boolean)
	for i, s := range slots {
		b.v[s] = src.Value(int(rows[i]))
	}
	b.setNulls(slots, from, rows)
}

func (b *bools) Save(slots []uint32) (arrow.Array, error) {
	bits := make([]byte, bitutil.BytesForBits(int64(len(slots))))
	for i, s := range slots {
		if s != NoSlot && b.v[s] {
			bits[i>>3] |= 1 << (i & 7)
		}
	}
	valid, nulls := b.validity(slots)
	return b.array(len(slots), nulls, valid, memory.NewBufferBytes(bits)), nil
}

func (b *bools) Load(slots []uint32, saved arrow.Array) error {
	b.Put(slots, saved, iota32(len(slots)))
	return nil
}

// byteStrings holds VARCHAR, JSON and BLOB.
type byteStrings struct {
	value
	h heap
}

func (b *byteStrings) Resize(n int) { b.h.resize(n) }
func (b *byteStrings) Reset(slots []uint32) {
	for _, s := range slots {
		b.h.free(s)
	}
}
func (b *byteStrings) Bytes() int64 { return b.h.bytes() + int64(cap(b.null)) }

func (b *byteStrings) Put(slots []uint32, from arrow.Array, rows []int32) {
	if len(slots) == 0 {
		return // an empty array may have no buffers
	}
	d := from.Data()
	offs := arrow.Int32Traits.CastFromBytes(d.Buffers()[1].Bytes())[d.Offset():]
	var data []byte
	if d.Buffers()[2] != nil {
		data = d.Buffers()[2].Bytes()
	}
	for i, s := range slots {
		r := rows[i]
		b.h.set(s, data[offs[r]:offs[r+1]])
	}
	b.setNulls(slots, from, rows)
}

func (b *byteStrings) Save(slots []uint32) (arrow.Array, error) {
	total := 0
	for _, s := range slots {
		if s != NoSlot {
			total += b.h.len(s)
		}
	}
	offs := make([]int32, len(slots)+1)
	data := make([]byte, 0, total)
	for i, s := range slots {
		if s != NoSlot {
			data = append(data, b.h.get(s)...)
		}
		offs[i+1] = int32(len(data))
	}
	valid, nulls := b.validity(slots)
	return b.array(len(slots), nulls, valid, memory.NewBufferBytes(arrow.Int32Traits.CastToBytes(offs)), memory.NewBufferBytes(data)), nil
}

func (b *byteStrings) Load(slots []uint32, saved arrow.Array) error {
	b.Put(slots, saved, iota32(len(slots)))
	return nil
}

// boxed holds nested values, each as an array of one value.
type boxed struct {
	value
	v []arrow.Array
}

func (b *boxed) Resize(n int) { b.v = kernels.GrownTo(b.v, n) }
func (b *boxed) Reset(slots []uint32) {
	for _, s := range slots {
		b.v[s] = nil
	}
}
func (b *boxed) Bytes() int64 { return int64(cap(b.v)) * 256 }

func (b *boxed) Put(slots []uint32, from arrow.Array, rows []int32) {
	for i, s := range slots {
		// A copy, so that one kept value does not keep its whole batch.
		one, err := array.Concatenate([]arrow.Array{array.NewSlice(from, int64(rows[i]), int64(rows[i])+1)}, memory.DefaultAllocator)
		if err != nil {
			one = array.NewSlice(from, int64(rows[i]), int64(rows[i])+1)
		}
		b.v[s] = one
	}
}

func (b *boxed) Save(slots []uint32) (arrow.Array, error) {
	if len(slots) == 0 {
		return kernels.Nulls(b.dt, 0), nil
	}
	null := kernels.Nulls(b.dt, 1)
	parts := make([]arrow.Array, len(slots))
	for i, s := range slots {
		parts[i] = null
		if s != NoSlot && b.v[s] != nil {
			parts[i] = b.v[s]
		}
	}
	return array.Concatenate(parts, memory.DefaultAllocator)
}

func (b *boxed) Load(slots []uint32, saved arrow.Array) error {
	b.Put(slots, saved, iota32(len(slots)))
	return nil
}

// Int64s is a column of plain numbers: weights, counts.
type Int64s struct{ V []int64 }

func (c *Int64s) Resize(n int) { c.V = kernels.GrownTo(c.V, n) }
func (c *Int64s) Reset(slots []uint32) {
	for _, s := range slots {
		c.V[s] = 0
	}
}
func (c *Int64s) State() types.Type { return types.Int64 }
func (c *Int64s) Bytes() int64      { return int64(8 * cap(c.V)) }
func (c *Int64s) Save(slots []uint32) (arrow.Array, error) {
	out := make([]int64, len(slots))
	for i, s := range slots {
		out[i] = c.V[s]
	}
	return array.NewInt64Data(array.NewData(arrow.PrimitiveTypes.Int64, len(out),
		[]*memory.Buffer{nil, memory.NewBufferBytes(arrow.Int64Traits.CastToBytes(out))}, nil, 0, 0)), nil
}
func (c *Int64s) Load(slots []uint32, saved arrow.Array) error {
	v := saved.(*array.Int64).Int64Values()
	for i, s := range slots {
		c.V[s] = v[i]
	}
	return nil
}

// Same is a column of one number for all rows, which takes no memory.
type Same int64

func (c Same) Resize(int)        {}
func (c Same) Reset([]uint32)    {}
func (c Same) State() types.Type { return types.Int64 }
func (c Same) Bytes() int64      { return 0 }
func (c Same) Save(slots []uint32) (arrow.Array, error) {
	v := Int64s{make([]int64, len(slots))}
	all := make([]uint32, len(slots))
	for i := range v.V {
		v.V[i], all[i] = int64(c), uint32(i)
	}
	return v.Save(all)
}

// Load refuses what another plan has written.
func (c Same) Load(_ []uint32, saved arrow.Array) error {
	for _, v := range saved.(*array.Int64).Int64Values() {
		if v != int64(c) {
			return errs.Bug("restore", "a column that is %d in all rows was saved with %d", int64(c), v)
		}
	}
	return nil
}

// Bytes is a column of byte strings that the engine makes itself: order keys.
type Bytes struct{ h heap }

func (b *Bytes) Resize(n int)                { b.h.resize(n) }
func (b *Bytes) Set(slot uint32, val []byte) { b.h.set(slot, val) }

// Get returns the bytes of a slot; valid until the next change.
func (b *Bytes) Get(slot uint32) []byte { return b.h.get(slot) }
func (b *Bytes) Reset(slots []uint32) {
	for _, s := range slots {
		b.h.free(s)
	}
}
func (b *Bytes) State() types.Type { return types.Binary }
func (b *Bytes) Bytes() int64      { return b.h.bytes() }
func (b *Bytes) Save(slots []uint32) (arrow.Array, error) {
	return (&byteStrings{value{typ: types.Binary, dt: arrow.BinaryTypes.Binary}, b.h}).Save(slots)
}
func (b *Bytes) Load(slots []uint32, saved arrow.Array) error {
	v := saved.(*array.Binary)
	for i, s := range slots {
		b.h.set(s, v.Value(i))
	}
	return nil
}
