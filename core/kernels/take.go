package kernels

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/riverbed/riverbed/core/errs"
)

// Take gathers rows: row i of the result is row idx[i] of a, or NULL where idx[i] is -1.
func Take(a arrow.Array, idx []int32) arrow.Array {
	negative := false
	for _, x := range idx {
		if x < 0 {
			negative = true
			break
		}
	}
	return array.MakeFromData(takeData(a.Data(), idx, negative))
}

// TakeBatch is Take for each column.
func TakeBatch(cols []arrow.Array, idx []int32) []arrow.Array {
	out := make([]arrow.Array, len(cols))
	for i, c := range cols {
		out[i] = Take(c, idx)
	}
	return out
}

// takeData works on array data, so that the children of nested arrays need no arrays made for them.
func takeData(d arrow.ArrayData, idx []int32, negative bool) arrow.ArrayData {
	n := len(idx)
	dt := d.DataType()
	if dt.ID() == arrow.NULL {
		return array.NewData(dt, n, []*memory.Buffer{nil}, nil, n, 0)
	}
	valid, nulls := takeValid(d, idx, negative)
	vb := validBuffer(valid)
	fixedOf := func(b *memory.Buffer) arrow.ArrayData {
		return array.NewData(dt, n, []*memory.Buffer{vb, b}, nil, nulls, 0)
	}
	switch t := dt.(type) {
	case *arrow.BooleanType:
		return fixedOf(memory.NewBufferBytes(takeBits(d, idx, negative)))
	case *arrow.StringType, *arrow.BinaryType:
		offs, data := takeBytes(d, idx, negative)
		return array.NewData(dt, n, []*memory.Buffer{vb, buffer(offs), memory.NewBufferBytes(data)}, nil, nulls, 0)
	case *arrow.ListType, *arrow.MapType:
		offs, child := takeSpans(spans(d), idx)
		return array.NewData(dt, n, []*memory.Buffer{vb, buffer(offs)}, []arrow.ArrayData{takeData(d.Children()[0], child, false)}, nulls, 0)
	case *arrow.StructType:
		if d.Offset() != 0 {
			idx = shift(idx, int32(d.Offset()))
		}
		children := make([]arrow.ArrayData, len(d.Children()))
		for i, c := range d.Children() {
			children[i] = takeData(c, idx, negative)
		}
		return array.NewData(dt, n, []*memory.Buffer{vb}, children, nulls, 0)
	case arrow.FixedWidthDataType:
		switch w := t.BitWidth() / 8; w {
		case 1:
			return fixedOf(buffer(takeFixed(fixed[uint8](d), idx, negative)))
		case 2:
			return fixedOf(buffer(takeFixed(fixed[uint16](d), idx, negative)))
		case 4:
			return fixedOf(buffer(takeFixed(fixed[uint32](d), idx, negative)))
		case 8:
			return fixedOf(buffer(takeFixed(fixed[uint64](d), idx, negative)))
		case 16:
			return fixedOf(buffer(takeFixed(fixed[[2]uint64](d), idx, negative)))
		default:
			return fixedOf(memory.NewBufferBytes(takeWide(d, idx, w)))
		}
	}
	panic(errs.Bug("kernels", "take of %s", dt)) // AIDEV-NOTE: panics on an Arrow type that types.Type.Arrow never gives
}

func takeFixed[T any](v []T, idx []int32, negative bool) []T {
	if !negative {
		out := Room[T](len(idx))
		for i, x := range idx {
			out[i] = v[x]
		}
		return out
	}
	out := make([]T, len(idx))
	for i, x := range idx {
		if x >= 0 {
			out[i] = v[x]
		}
	}
	return out
}

// takeWide gathers values of any width in bytes.
func takeWide(d arrow.ArrayData, idx []int32, w int) []byte {
	out := make([]byte, len(idx)*w)
	buf := d.Buffers()[1]
	if buf == nil || w == 0 {
		return out
	}
	src := buf.Bytes()[d.Offset()*w:]
	for i, x := range idx {
		if x >= 0 {
			copy(out[i*w:(i+1)*w], src[int(x)*w:])
		}
	}
	return out
}

// takeValid gathers the validity; nil means that no row is NULL.
func takeValid(d arrow.ArrayData, idx []int32, negative bool) ([]byte, int) {
	var src []byte
	if b := d.Buffers()[0]; b != nil && d.NullN() != 0 {
		src = b.Bytes()
	}
	if len(src) == 0 && !negative {
		return nil, 0
	}
	out := make([]byte, (len(idx)+7)/8)
	valid, off := 0, d.Offset()
	for i, x := range idx {
		bit := byte(0)
		if x >= 0 {
			bit = 1
			if src != nil {
				j := off + int(x)
				bit = src[j>>3] >> (j & 7) & 1
			}
		}
		out[i>>3] |= bit << (i & 7)
		valid += int(bit)
	}
	if valid == len(idx) {
		return nil, 0
	}
	return out, len(idx) - valid
}

func takeBits(d arrow.ArrayData, idx []int32, negative bool) []byte {
	out := make([]byte, (len(idx)+7)/8)
	buf := d.Buffers()[1]
	if buf == nil || buf.Len() == 0 {
		return out
	}
	src, off := buf.Bytes(), d.Offset()
	for i, x := range idx {
		if negative && x < 0 {
			continue
		}
		j := off + int(x)
		out[i>>3] |= src[j>>3] >> (j & 7) & 1 << (i & 7)
	}
	return out
}

func takeBytes(d arrow.ArrayData, idx []int32, negative bool) ([]int32, []byte) {
	src := spans(d)
	offs := make([]int32, len(idx)+1)
	total := 0
	for i, x := range idx {
		if !negative || x >= 0 {
			total += int(src[x+1] - src[x])
		}
		offs[i+1] = int32(total)
	}
	fits32(total)
	if total == 0 {
		return offs, nil
	}
	data, from := Room[byte](total), d.Buffers()[2].Bytes()
	for i, x := range idx {
		if at := offs[i]; offs[i+1] > at {
			copy(data[at:], from[src[x]:src[x+1]])
		}
	}
	return offs, data
}

// takeSpans returns the offsets of the gathered lists and the child rows that they hold.
func takeSpans(src []int32, idx []int32) (offs, child []int32) {
	offs = make([]int32, len(idx)+1)
	total := 0
	for i, x := range idx {
		if x >= 0 {
			total += int(src[x+1] - src[x])
		}
		offs[i+1] = int32(total)
	}
	fits32(total)
	child = make([]int32, 0, total)
	for _, x := range idx {
		if x >= 0 {
			for j := src[x]; j < src[x+1]; j++ {
				child = append(child, j)
			}
		}
	}
	return offs, child
}

// fits32 refuses batches beyond the 32-bit offsets that the engine's Arrow forms have.
func fits32(total int) {
	if total > 1<<31-1 {
		// AIDEV-NOTE: panics; the guards around operators turn it into the error it is.
		panic(errs.New(errs.Data, "gather", "a batch of strings or lists would hold more than 2^31 bytes or elements").
			WithHint("values this large need smaller batches"))
	}
}

func shift(idx []int32, by int32) []int32 {
	out := make([]int32, len(idx))
	for i, x := range idx {
		out[i] = x
		if x >= 0 {
			out[i] = x + by
		}
	}
	return out
}
