package parquet

import (
	"fmt"
	"slices"

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
	coded
	typ   arrow.DataType
	width int                       // bytes of a value in PLAIN encoding
	plain func(dst []T, src []byte) // decodes len(dst) values

	dict    []T
	src     []byte
	lent    bool // batches come back to the reader: see recycle
	tmp     []T  // see ahead
	scratch [indexBlock]uint32
}

func (f *fixed[T]) close() {
	f.chunk.close()
	giveBack(arrow.GetBytes(f.dict[:0]))
	f.dict = nil
}

func (f *fixed[T]) lend() { f.lent = true }

func (f *fixed[T]) dictionary(data []byte, n int) error {
	if n < 0 || n*f.width > len(data) {
		return errTruncated
	}
	all := grabOf[T](n + 1)
	clear(all[n:]) // what stands for NULL
	f.dict, f.size = all[:n], n
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
	out := f.values(rows)
	v := validity{rows: rows}
	if err := f.fill(out, &v, 0, rows); err != nil {
		return nil, err
	}
	return f.array(out, &v), nil
}

// fill decodes the rows of out from row from on.
func (f *fixed[T]) fill(out []T, v *validity, from, rows int) error {
	return f.read(f, v, from, rows, func(at, n, valid int) error {
		if err := f.decode(out[at : at+valid]); err != nil {
			return err
		}
		if valid < n {
			spread(out[at:at+n], valid, v.bits, at)
		}
		return nil
	})
}

func (f *fixed[T]) array(out []T, v *validity) arrow.Array {
	return makeArray(f.typ, len(out), v, memory.NewBufferBytes(arrow.GetBytes(out)))
}

func (f *fixed[T]) known() (int, bool, error) {
	err := f.page(f)
	return f.size, f.inDict, err
}

func (f *fixed[T]) entries() arrow.Array {
	v := validUntilLast(f.size + 1)
	return f.array(f.dict[:f.size+1], &v)
}

func (f *fixed[T]) load(rows int) (arrow.Array, error) {
	got, err := f.loadCodes(f, rows)
	if err != nil || got == rows {
		return nil, err
	}
	out := f.values(rows)
	f.look(out[:got], f.row)
	if err := f.fill(out, &f.valid, got, rows); err != nil {
		return nil, err
	}
	return f.array(out, &f.valid), nil
}

func (f *fixed[T]) at(sel []int32) (arrow.Array, error) {
	codes, v := f.pickCodes(sel)
	out := f.values(len(codes))
	f.look(out, codes)
	if sel != nil {
		giveBack(arrow.GetBytes(codes))
	}
	return f.array(out, &v), nil
}

// look sets out to the values of codes.
func (f *fixed[T]) look(out []T, codes []uint32) {
	dict := f.dict[:f.size+1]
	codes = codes[:len(out)]
	for i, x := range codes {
		out[i] = dict[x]
	}
}

// values makes room for n values, all of which will be written.
func (f *fixed[T]) values(n int) []T {
	if f.lent {
		return grabOf[T](n)
	}
	if f.room != nil {
		var zero [1]T
		return arrow.GetData[T](f.room(n * len(arrow.GetBytes(zero[:]))))
	}
	return make([]T, n)
}

// pick decodes only the values that are wanted where pages store them so that it can, and looks up only those in the
// dictionary.
func (f *fixed[T]) pick(rows int, sel []int32, _ takeFunc) (arrow.Array, error) {
	out := f.values(len(sel))
	v := validity{rows: rows}
	done := 0
	err := f.read(f, &v, 0, rows, func(at, n, valid int) error {
		want, to := within(sel[done:], at, n), out[done:]
		done += len(want)
		if valid == n {
			return f.some(to, want, at, n)
		}
		if err := f.ahead(valid); err != nil || len(want) == 0 {
			return err
		}
		f.spreadTo(n, valid, v.bits, at)
		for i, row := range want {
			to[i] = f.tmp[int(row)-at]
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	v.narrow(sel)
	return makeArray(f.typ, len(sel), &v, memory.NewBufferBytes(arrow.GetBytes(out))), nil
}

// within is the part of sel, which rises from at on, that lies in the n rows from at on. A selection that leaves out few rows
// is looked at where the part would end at the latest, and only searched from there back.
func within(sel []int32, at, n int) []int32 {
	sel = sel[:min(len(sel), n)]
	if len(sel) == 0 || int(sel[len(sel)-1]) < at+n {
		return sel
	}
	k, _ := slices.BinarySearch(sel, int32(at+n))
	return sel[:k]
}

// ahead decodes the next n values to tmp.
func (f *fixed[T]) ahead(n int) error {
	f.tmp = slices.Grow(f.tmp[:0], n)[:n]
	return f.decode(f.tmp)
}

func (f *fixed[T]) spreadTo(n, valid int, bits []byte, at int) {
	f.tmp = slices.Grow(f.tmp, n-valid)[:n]
	spread(f.tmp, valid, bits, at)
}

// some writes the values at want, rows from at on, of the next n values, none of which is NULL.
func (f *fixed[T]) some(dst []T, want []int32, at, n int) error {
	switch {
	case f.inDict:
		return f.someIndexed(dst, want, at, n)
	case n*f.width > len(f.src):
		return errTruncated
	case len(want) > n/8:
		if err := f.ahead(n); err != nil {
			return err
		}
		for i, row := range want {
			dst[i] = f.tmp[int(row)-at]
		}
		return nil
	}
	for i, row := range want {
		f.plain(dst[i:i+1], f.src[(int(row)-at)*f.width:])
	}
	f.src = f.src[n*f.width:]
	return nil
}

func (f *fixed[T]) someIndexed(dst []T, want []int32, at, n int) error {
	dict, h := f.dict, &f.idx
	for end := at + n; at < end; {
		if len(want) == 0 {
			return h.skip(end - at)
		}
		if h.run == 0 && h.packed == 0 {
			if err := h.next(); err != nil {
				return err
			}
		}
		if h.run > 0 {
			k := min(end-at, h.run)
			in := within(want, at, k)
			h.run -= k
			at += k
			x := dict[h.value]
			for i := range in {
				dst[i] = x
			}
			dst, want = dst[len(in):], want[len(in):]
			continue
		}
		k := min(end-at, h.packed, indexBlock)
		in := within(want, at, k)
		if len(in) == 0 {
			h.packed -= k
			h.bit += k * h.width
		} else {
			idx := f.scratch[:k]
			h.unpack(idx)
			out := dst[:len(in)]
			for i, row := range in {
				out[i] = dict[idx[int(row)-at]]
			}
		}
		at += k
		dst, want = dst[len(in):], want[len(in):]
	}
	return nil
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
		if len(dst)*f.width > len(f.src) {
			return errTruncated
		}
		f.plain(dst, f.src)
		f.src = f.src[len(dst)*f.width:]
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
	var zero T
	spreadOr(dst, valid, bits, at, zero)
}

// spreadOr is spread with a value of its own for the other rows.
func spreadOr[T any](dst []T, valid int, bits []byte, at int, null T) {
	j := valid - 1
	for i := len(dst) - 1; i >= 0; i-- {
		if bitutil.BitIsSet(bits, at+i) {
			dst[i] = dst[j]
			j--
		} else {
			dst[i] = null
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
	err := b.read(b, &v, 0, rows, func(at, n, valid int) error {
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

func (b *booleans) pick(rows int, sel []int32, take takeFunc) (arrow.Array, error) {
	a, err := b.next(rows)
	if err != nil {
		return nil, err
	}
	return take(a, sel), nil
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
