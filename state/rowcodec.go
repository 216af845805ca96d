package state

import (
	"encoding/binary"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/riverbed/riverbed/core/rowkey"
	"github.com/riverbed/riverbed/core/types"
)

// rowCodec writes the values of rows as bytes for a store and reads them again. Nobody orders these bytes, so they are what memory has: a bit for each column that is NULL, and then the others: what has
// a fixed width as it lies in an array, the rest as a length and bytes. A row whose numbers change is as long as it was.
type rowCodec struct {
	types []types.Type
	cols  []codecColumn
}

// codecColumn is a column that is written, or read.
type codecColumn struct {
	width  int             // of a value; 0: a length and bytes
	bit    bool            // a Boolean: a byte here and a bit in an array
	nested *rowkey.Encoder // of a type that has no bytes of its own
	source columnBytes
}

// columnBytes are the values of an array.
type columnBytes struct {
	valid  []byte // nil: no NULLs
	first  int    // where the array begins
	values []byte
	offs   []int32
}

func newRowCodec(ts []types.Type) *rowCodec {
	c := &rowCodec{types: ts, cols: make([]codecColumn, len(ts))}
	for i, t := range ts {
		col := &c.cols[i]
		switch d := t.Arrow().(type) {
		case *arrow.BooleanType:
			col.width, col.bit = 1, true
		case *arrow.StringType, *arrow.BinaryType:
		case arrow.FixedWidthDataType:
			col.width = d.BitWidth() / 8
		default:
			col.nested = rowkey.NewEncoder([]types.Type{t}, exactly)
		}
	}
	return c
}

var exactly = []rowkey.Key{{Exact: true}}

// from takes the columns that append writes rows of.
func (c *rowCodec) from(cols []arrow.Array, n int) {
	for i, a := range cols {
		col := &c.cols[i]
		if col.nested != nil {
			rows := col.nested.Encode(cols[i:i+1], n)
			col.source = columnBytes{values: rows.Data, offs: make([]int32, n+1)}
			for k, at := range rows.Offs {
				col.source.offs[k] = int32(at)
			}
			continue
		}
		d := a.Data()
		s := columnBytes{first: d.Offset()}
		if a.NullN() > 0 {
			s.valid = d.Buffers()[0].Bytes()
		}
		last := len(d.Buffers()) - 1
		if b := d.Buffers()[last]; b != nil {
			s.values = b.Bytes()
		}
		if col.width == 0 && n > 0 {
			s.offs = arrow.Int32Traits.CastFromBytes(d.Buffers()[1].Bytes())[s.first:]
		}
		col.source = s
	}
}

// append writes a row.
func (c *rowCodec) append(dst []byte, row int) []byte {
	nulls := len(dst)
	for range (len(c.cols) + 7) / 8 {
		dst = append(dst, 0)
	}
	for i := range c.cols {
		col := &c.cols[i]
		s := &col.source
		at := s.first + row
		switch {
		case s.valid != nil && !bitutil.BitIsSet(s.valid, at):
			dst[nulls+i/8] |= 1 << (i % 8)
		case col.width == 0:
			v := s.values[s.offs[row]:s.offs[row+1]]
			dst = append(binary.AppendUvarint(dst, uint64(len(v))), v...)
		case col.bit:
			dst = append(dst, s.values[at/8]>>(at%8)&1)
		case col.width == 8:
			dst = append(dst, s.values[8*at:8*at+8]...)
		default:
			dst = append(dst, s.values[col.width*at:col.width*(at+1)]...)
		}
	}
	return dst
}

// decode is the columns of rows that append has written.
func (c *rowCodec) decode(n int, row func(i int) []byte) []arrow.Array {
	out := make([]arrow.Array, len(c.cols))
	rest, nulls := make([][]byte, n), make([][]byte, n)
	for i := range rest {
		b := row(i)
		k := (len(c.cols) + 7) / 8
		nulls[i], rest[i] = b[:k], b[k:]
	}
	for i := range c.cols {
		out[i] = c.column(i, nulls, rest)
	}
	return out
}

// column reads one value off the front of each row.
func (c *rowCodec) column(i int, nulls, rest [][]byte) arrow.Array {
	col, n := &c.cols[i], len(rest)
	valid, none := make([]byte, bitutil.BytesForBits(int64(n))), 0
	for r, b := range nulls {
		if b[i/8]>>(i%8)&1 == 0 {
			valid[r/8] |= 1 << (r % 8)
		} else {
			none++
		}
	}
	there := func(r int) bool { return none == 0 || bitutil.BitIsSet(valid, r) }
	bits := memory.NewBufferBytes(valid)
	if none == 0 {
		bits = nil
	}
	if w := col.width; w > 0 {
		size := w * n
		if col.bit {
			size = len(valid)
		}
		buf := memory.NewResizableBuffer(memory.DefaultAllocator) // which aligns
		buf.Resize(size)
		values := buf.Bytes()
		clear(values)
		for r, b := range rest {
			switch {
			case !there(r):
				continue
			case col.bit:
				values[r/8] |= b[0] << (r % 8)
			default:
				copy(values[w*r:], b[:w])
			}
			rest[r] = b[w:]
		}
		return array.MakeFromData(array.NewData(c.types[i].Arrow(), n, []*memory.Buffer{bits, buf}, nil, none, 0))
	}
	values, offs := make([][]byte, n), make([]int32, 1, n+1)
	total := 0
	for r, b := range rest {
		if there(r) {
			size, at := binary.Uvarint(b)
			end := at + int(size)
			values[r], rest[r] = b[at:end], b[end:]
			total += int(size)
		}
		offs = append(offs, int32(total))
	}
	if col.nested != nil {
		return rowkey.Decode(c.types[i:i+1], exactly, n, func(r int) []byte { return values[r] })[0]
	}
	data := slices.Concat(values...)
	return array.MakeFromData(array.NewData(c.types[i].Arrow(), n, []*memory.Buffer{bits, memory.NewBufferBytes(arrow.GetBytes(offs)), memory.NewBufferBytes(data)}, nil, none, 0))
}
