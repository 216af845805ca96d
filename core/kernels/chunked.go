package kernels

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Chunked is a column in several arrays, from which rows are gathered without putting the arrays together. A row is named by
// the number of its array, shifted, and its place in it.
type Chunked struct {
	dt    arrow.DataType
	shift uint

	valid [][]byte // nil: no NULLs; of chunks without NULLs nil, too
	w1    [][]uint8
	w2    [][]uint16
	w4    [][]uint32
	w8    [][]uint64
	w16   [][][2]uint64
	offs  [][]int32
	data  [][]byte
	// Other types are put together after all.
	whole  arrow.Array
	starts []int32
}

// NewChunked takes arrays of one type, at least one, of up to 1<<shift rows each.
func NewChunked(chunks []arrow.Array, shift uint) *Chunked {
	c := &Chunked{dt: chunks[0].DataType(), shift: shift}
	width := 0
	switch t := c.dt.(type) {
	case *arrow.BooleanType, *arrow.StructType, *arrow.NullType, *arrow.FixedSizeListType:
	case *arrow.StringType, *arrow.BinaryType:
		for _, a := range chunks {
			offs, data := Spans(a)
			c.offs, c.data = append(c.offs, offs), append(c.data, data)
		}
		width = -1
	case arrow.FixedWidthDataType:
		width = t.BitWidth() / 8
	}
	switch width {
	case -1:
	case 1:
		c.w1 = views[uint8](chunks)
	case 2:
		c.w2 = views[uint16](chunks)
	case 4:
		c.w4 = views[uint32](chunks)
	case 8:
		c.w8 = views[uint64](chunks)
	case 16:
		c.w16 = views[[2]uint64](chunks)
	default:
		c.whole, c.starts = cat(c.dt, chunks)
		return c
	}
	for i, a := range chunks {
		if v := Valid(a); v != nil {
			if c.valid == nil {
				c.valid = make([][]byte, len(chunks))
			}
			c.valid[i] = v
		}
	}
	return c
}

func views[T any](chunks []arrow.Array) [][]T {
	out := make([][]T, len(chunks))
	for i, a := range chunks {
		out[i] = Values[T](a)
	}
	return out
}

// Take gathers rows.
func (c *Chunked) Take(rows []uint32) arrow.Array {
	if c.whole != nil {
		idx := make([]int32, len(rows))
		for i, r := range rows {
			idx[i] = c.starts[r>>c.shift] + int32(r&(1<<c.shift-1))
		}
		return Take(c.whole, idx)
	}
	valid := c.takeValid(rows)
	fixed := func(b *memory.Buffer) arrow.Array { return newArray(c.dt, len(rows), valid, b) }
	switch {
	case c.w8 != nil:
		return fixed(buffer(takeChunked(c.w8, rows, c.shift)))
	case c.w4 != nil:
		return fixed(buffer(takeChunked(c.w4, rows, c.shift)))
	case c.w16 != nil:
		return fixed(buffer(takeChunked(c.w16, rows, c.shift)))
	case c.w2 != nil:
		return fixed(buffer(takeChunked(c.w2, rows, c.shift)))
	case c.w1 != nil:
		return fixed(buffer(takeChunked(c.w1, rows, c.shift)))
	}
	offs, data := c.takeTexts(rows)
	return newArray(c.dt, len(rows), valid, buffer(offs), memory.NewBufferBytes(data))
}

func takeChunked[T any](v [][]T, rows []uint32, shift uint) []T {
	out := Room[T](len(rows))
	shift &= 31
	mask := uint32(1)<<shift - 1
	for i, r := range rows {
		out[i] = v[r>>shift][r&mask]
	}
	return out
}

func (c *Chunked) takeValid(rows []uint32) []byte {
	if c.valid == nil {
		return nil
	}
	out := make([]byte, BitBytes(len(rows)))
	mask, all := uint32(1)<<c.shift-1, true
	for i, r := range rows {
		if v := c.valid[r>>c.shift]; v == nil || Bit(v, int(r&mask)) {
			SetBit(out, i)
		} else {
			all = false
		}
	}
	if all {
		return nil
	}
	return out
}

// takeTexts measures the texts first; their bytes are then on the way to the cache.
func (c *Chunked) takeTexts(rows []uint32) ([]int32, []byte) {
	shift := c.shift & 31
	mask := uint32(1)<<shift - 1
	offs := make([]int32, len(rows)+1)
	froms := make([]int32, len(rows))
	total := 0
	for i, r := range rows {
		o := c.offs[r>>shift][r&mask:]
		froms[i] = o[0]
		total += int(o[1] - o[0])
		offs[i+1] = int32(total)
	}
	fits32(total)
	if total == 0 {
		return offs, nil
	}
	data := Room[byte](total)
	for i, r := range rows {
		at, n := offs[i], offs[i+1]-offs[i]
		copy(data[at:at+n], c.data[r>>shift][froms[i]:])
	}
	return offs, data
}
