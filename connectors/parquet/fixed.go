package parquet

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
	pq "github.com/apache/arrow-go/v18/parquet"
)

// indexBlock is how many dictionary indices are unpacked at once; they stay in the first cache.
const indexBlock = 1024

// element is a type whose values lie in a buffer one after another.
type element interface {
	int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64 | float32 | float64 | decimal128.Num
}

// fixed reads a column of values of one width.
type fixed[T element] struct {
	chunk
	typ   arrow.DataType
	size  int                       // bytes of a value in PLAIN encoding
	plain func(dst []T, src []byte) // decodes len(dst) values

	dict    []T
	inDict  bool
	idx     hybrid
	src     []byte
	scratch [indexBlock]uint32
}

func (f *fixed[T]) dictionary(data []byte, n int) error {
	if n < 0 || n*f.size > len(data) {
		return errTruncated
	}
	f.dict = make([]T, n)
	f.plain(f.dict, data)
	return nil
}

func (f *fixed[T]) start(enc pq.Encoding, data []byte) error {
	switch enc {
	case pq.Encodings.Plain:
		f.inDict, f.src = false, data
		return nil
	case pq.Encodings.PlainDict, pq.Encodings.RLEDict:
		f.inDict = true
		return startIndices(&f.idx, data)
	}
	return fmt.Errorf("pages of one column mix in the encoding %s", enc)
}

// startIndices reads the bit width before the indices of a page.
func startIndices(h *hybrid, data []byte) error {
	if len(data) == 0 || data[0] > 32 {
		if len(data) == 0 { // all values are NULL
			h.reset(nil, 0)
			return nil
		}
		return fmt.Errorf("a dictionary index of %d bits", data[0])
	}
	h.reset(data[1:], int(data[0]))
	return nil
}

func (f *fixed[T]) next(rows int) (arrow.Array, error) {
	out := make([]T, rows)
	v := validity{rows: rows}
	err := f.read(f, &v, rows, func(at, n, valid int) error {
		if err := f.decode(out[at : at+valid]); err != nil {
			return err
		}
		if valid < n {
			spread(out[at:at+n], valid, v.bits, at)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return makeArray(f.typ, rows, &v, memory.NewBufferBytes(arrow.GetBytes(out))), nil
}

func makeArray(t arrow.DataType, rows int, v *validity, buffers ...*memory.Buffer) arrow.Array {
	var bits *memory.Buffer
	if v.nulls > 0 {
		bits = memory.NewBufferBytes(v.bits)
	}
	return array.MakeFromData(array.NewData(t, rows, append([]*memory.Buffer{bits}, buffers...), nil, v.nulls, 0))
}

func (f *fixed[T]) decode(dst []T) error {
	if !f.inDict {
		if len(dst)*f.size > len(f.src) {
			return errTruncated
		}
		f.plain(dst, f.src)
		f.src = f.src[len(dst)*f.size:]
		return nil
	}
	dict := f.dict
	for len(dst) > 0 {
		h := &f.idx
		if h.run == 0 && h.packed == 0 {
			if err := h.next(); err != nil {
				return err
			}
		}
		var n int
		if h.run > 0 {
			n = min(len(dst), h.run)
			h.run -= n
			x := dict[h.value]
			for i := range dst[:n] {
				dst[i] = x
			}
		} else {
			n = min(len(dst), h.packed, indexBlock)
			idx := f.scratch[:n]
			h.unpack(idx)
			out := dst[:len(idx)]
			for i, x := range idx {
				out[i] = dict[x]
			}
		}
		dst = dst[n:]
	}
	return nil
}

// spread moves the first valid values of dst to the rows whose bit is set, from the back, so that none is overwritten.
func spread[T any](dst []T, valid int, bits []byte, at int) {
	j := valid - 1
	var zero T
	for i := len(dst) - 1; i >= 0; i-- {
		if bitutil.BitIsSet(bits, at+i) {
			dst[i] = dst[j]
			j--
		} else {
			dst[i] = zero
		}
	}
}

// booleans reads a column of bits.
type booleans struct {
	chunk
	src []byte
	bit int
	rle bool
	h   hybrid
}

func (b *booleans) dictionary([]byte, int) error {
	return fmt.Errorf("a dictionary of booleans")
}

func (b *booleans) start(enc pq.Encoding, data []byte) error {
	switch enc {
	case pq.Encodings.Plain:
		b.src, b.bit, b.rle = data, 0, false
		return nil
	case pq.Encodings.RLE:
		if len(data) < 4 {
			return errTruncated
		}
		b.h.reset(data[4:], 1)
		b.rle = true
		return nil
	}
	return fmt.Errorf("booleans in the encoding %s", enc)
}

func (b *booleans) next(rows int) (arrow.Array, error) {
	out := make([]byte, (rows+7)/8)
	v := validity{rows: rows}
	tmp := make([]bool, 0, rows)
	err := b.read(b, &v, rows, func(at, n, valid int) error {
		tmp = tmp[:n]
		if err := b.decode(tmp[:valid]); err != nil {
			return err
		}
		if valid < n {
			spread(tmp, valid, v.bits, at)
		}
		for i, set := range tmp {
			if set {
				bitutil.SetBit(out, at+i)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return makeArray(arrow.FixedWidthTypes.Boolean, rows, &v, memory.NewBufferBytes(out)), nil
}

func (b *booleans) decode(dst []bool) error {
	if !b.rle {
		if b.bit+len(dst) > len(b.src)*8 {
			return errTruncated
		}
		for i := range dst {
			dst[i] = bitutil.BitIsSet(b.src, b.bit+i)
		}
		b.bit += len(dst)
		return nil
	}
	for i := 0; i < len(dst); {
		if b.h.run == 0 && b.h.packed == 0 {
			if err := b.h.next(); err != nil {
				return err
			}
		}
		if b.h.run > 0 {
			n := min(len(dst)-i, b.h.run)
			for k := range n {
				dst[i+k] = b.h.value != 0
			}
			b.h.run -= n
			i += n
			continue
		}
		dst[i] = bitutil.BitIsSet(b.h.data, b.h.bit)
		b.h.bit++
		b.h.packed--
		i++
	}
	return nil
}
