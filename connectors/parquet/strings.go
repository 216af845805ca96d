package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"
	pq "github.com/apache/arrow-go/v18/parquet"
)

// slack is how far beyond a value's end a copy of a short value may read and write: two 8-byte moves are cheaper
// than a call that copies exactly.
const slack = 16

var errNotUTF8 = errors.New("a text column holds bytes that are not UTF-8")

// byteArrays reads a column of strings or blobs into the dense form of offsets and bytes.
type byteArrays struct {
	coded
	typ  arrow.DataType
	text bool

	dict             []byte   // values one after another, then slack
	offsets          []uint32 // n+2 of them: NULL is the empty value behind the last
	sound            bool     // the dictionary holds no text that is not UTF-8
	src              []byte
	plain            bool // the batch has values from outside the dictionary
	guess, guessRows int  // bytes and rows of the last batch
	scratch          [indexBlock]uint32
}

func (b *byteArrays) dictionary(data []byte, n int) error {
	if n < 0 || 4*n > len(data) {
		return errTruncated
	}
	b.size = n
	b.offsets = make([]uint32, 1, n+2)
	b.dict = make([]byte, 0, len(data)-4*n+slack)
	for range n {
		if len(data) < 4 {
			return errTruncated
		}
		size := int(binary.LittleEndian.Uint32(data))
		if size < 0 || size > len(data)-4 {
			return errTruncated
		}
		b.dict = append(b.dict, data[4:4+size]...)
		b.offsets = append(b.offsets, uint32(len(b.dict)))
		data = data[4+size:]
	}
	b.offsets = append(b.offsets, uint32(len(b.dict)))
	b.dict = append(b.dict, make([]byte, slack)...)
	b.sound = !b.text || b.wellFormed()
	return nil
}

// wellFormed reports whether every value of the dictionary is UTF-8: all of it is, and no value begins inside a character.
func (b *byteArrays) wellFormed() bool {
	for _, at := range b.offsets {
		if int(at) < len(b.dict) && !utf8.RuneStart(b.dict[at]) {
			return false
		}
	}
	return utf8.Valid(b.dict)
}

func (b *byteArrays) start(enc pq.Encoding, data []byte) error {
	switch enc {
	case pq.Encodings.Plain:
		b.inDict, b.src = false, data
		return nil
	case pq.Encodings.PlainDict, pq.Encodings.RLEDict:
		b.inDict = true
		return startIndices(&b.idx, data)
	}
	return fmt.Errorf("pages of one column mix in the encoding %s", enc)
}

func (b *byteArrays) next(rows int) (arrow.Array, error) {
	ends := make([]int32, rows+1)
	out := make([]byte, 0, b.room(rows))
	v := validity{rows: rows}
	b.plain = false
	out, err := b.fill(ends, out, &v, 0, rows)
	if err != nil {
		return nil, err
	}
	return b.array(ends, out, &v)
}

// fill appends the values of the rows from row from on.
func (b *byteArrays) fill(ends []int32, out []byte, v *validity, from, rows int) ([]byte, error) {
	err := b.read(b, v, from, rows, func(at, n, valid int) (err error) {
		before := int32(len(out))
		if out, err = b.decode(ends[at+1:at+1+valid], out); err != nil {
			return err
		}
		if valid < n {
			spreadEnds(ends[at+1:at+1+n], valid, v.bits, at, before)
		}
		return nil
	})
	return out, err
}

// array makes the batch's array when its text is UTF-8.
func (b *byteArrays) array(ends []int32, out []byte, v *validity) (arrow.Array, error) {
	rows := len(ends) - 1
	b.seen(rows, len(out))
	if b.text && (b.plain || !b.sound) && !utf8.Valid(out) {
		return nil, errNotUTF8
	}
	return makeArray(b.typ, rows, v, memory.NewBufferBytes(arrow.Int32Traits.CastToBytes(ends)), memory.NewBufferBytes(out)), nil
}

// known is false also of a dictionary that holds broken text: what a row reads must be judged then.
func (b *byteArrays) known() (int, bool, error) {
	err := b.page(b)
	return b.size, b.inDict && b.sound, err
}

func (b *byteArrays) entries() arrow.Array {
	v := validUntilLast(b.size + 1)
	return makeArray(b.typ, b.size+1, &v, memory.NewBufferBytes(arrow.Uint32Traits.CastToBytes(b.offsets)), memory.NewBufferBytes(b.dict))
}

func (b *byteArrays) load(rows int) (arrow.Array, error) {
	b.plain = false
	got, err := b.loadCodes(b, rows)
	if err != nil || got == rows {
		return nil, err
	}
	ends := make([]int32, rows+1)
	out, err := b.gather(b.row[:got], ends[1:got+1], make([]byte, 0, b.room(rows)))
	if err != nil {
		return nil, err
	}
	if out, err = b.fill(ends, out, &b.valid, got, rows); err != nil {
		return nil, err
	}
	return b.array(ends, out, &b.valid)
}

func (b *byteArrays) at(sel []int32) (arrow.Array, error) {
	codes, v := b.pickCodes(sel)
	ends := make([]int32, len(codes)+1)
	out, err := b.gather(codes, ends[1:], make([]byte, 0, b.room(len(codes))))
	if err != nil {
		return nil, err
	}
	if sel != nil {
		giveBack(arrow.GetBytes(codes))
	}
	return b.array(ends, out, &v)
}

// pick copies only the values that are wanted.
func (b *byteArrays) pick(rows int, sel []int32, _ takeFunc) (arrow.Array, error) {
	ends := make([]int32, len(sel)+1)
	out := make([]byte, 0, b.room(len(sel)))
	v := validity{rows: rows}
	b.plain = false
	done := 0
	err := b.read(b, &v, 0, rows, func(at, n, valid int) (err error) {
		want := within(sel[done:], at, n)
		to := ends[done+1 : done+1+len(want)]
		done += len(want)
		switch {
		case valid < n:
			out, err = b.someOptional(to, want, at, n, valid, v.bits, out)
		case b.inDict:
			out, err = b.someIndexed(to, want, at, n, out)
		default:
			out, err = b.somePlain(to, want, at, n, out)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	v.narrow(sel)
	return b.array(ends, out, &v)
}

// someIndexed appends the values at want, rows from at on, of the next n values, and notes where each ends.
func (b *byteArrays) someIndexed(ends []int32, want []int32, at, n int, out []byte) ([]byte, error) {
	h := &b.idx
	for end := at + n; at < end; {
		if len(want) == 0 {
			return out, h.skip(end - at)
		}
		if h.run == 0 && h.packed == 0 {
			if err := h.next(); err != nil {
				return nil, err
			}
		}
		k := min(end-at, indexBlock, max(h.run, h.packed))
		in := within(want, at, k)
		idx := b.scratch[:k]
		switch {
		case h.run > 0:
			idx = idx[:len(in)]
			for i := range idx {
				idx[i] = h.value
			}
			h.run -= k
		case len(in) == 0:
			h.packed -= k
			h.bit += k * h.width
		default:
			h.unpack(idx)
			for i, row := range in { // in rises, so idx[i] has been read
				idx[i] = idx[int(row)-at]
			}
		}
		var err error
		if out, err = b.gather(idx[:len(in)], ends[:len(in)], out); err != nil {
			return nil, err
		}
		at += k
		ends, want = ends[len(in):], want[len(in):]
	}
	return out, nil
}

// somePlain is someIndexed for values that stand in the page.
func (b *byteArrays) somePlain(ends []int32, want []int32, at, n int, out []byte) ([]byte, error) {
	b.plain = true
	src, p, k := b.src, 0, 0
	for row := at; row < at+n; row++ {
		if p+4 > len(src) {
			return nil, errTruncated
		}
		size := int(binary.LittleEndian.Uint32(src[p:]))
		p += 4 + size
		if size < 0 || p > len(src) {
			return nil, errTruncated
		}
		if k < len(want) && int(want[k]) == row {
			if out = append(out, src[p-size:p]...); len(out) > math.MaxInt32 {
				return nil, errTooLong
			}
			ends[k] = int32(len(out))
			k++
		}
	}
	b.src = src[p:]
	return out, nil
}

// someOptional is someIndexed where valid of the n values are not NULL: it decodes them all and copies what is wanted.
func (b *byteArrays) someOptional(ends []int32, want []int32, at, n, valid int, bits []byte, out []byte) ([]byte, error) {
	all := make([]int32, n+1)
	bytes, err := b.decode(all[1:1+valid], make([]byte, 0, b.room(valid)))
	if err != nil {
		return nil, err
	}
	spreadEnds(all[1:], valid, bits, at, 0)
	for i, row := range want {
		k := int(row) - at
		out = append(out, bytes[all[k]:all[k+1]]...)
		ends[i] = int32(len(out))
	}
	return out, nil
}

// room is the capacity that n values will need, by the last batch.
func (b *byteArrays) room(n int) int {
	need := slack
	if b.guessRows > 0 {
		need += n * b.guess / b.guessRows * 9 / 8
	}
	return need
}

func (b *byteArrays) seen(rows, size int) {
	if rows > 0 {
		b.guess, b.guessRows = size, rows
	}
}

// decode appends the next len(ends) values to out and notes where each ends.
func (b *byteArrays) decode(ends []int32, out []byte) ([]byte, error) {
	if !b.inDict {
		return b.decodePlain(ends, out)
	}
	for len(ends) > 0 {
		h := &b.idx
		if h.run == 0 && h.packed == 0 {
			if err := h.next(); err != nil {
				return nil, err
			}
		}
		n := min(len(ends), indexBlock)
		var idx []uint32
		if h.run > 0 {
			n = min(n, h.run)
			h.run -= n
			idx = b.scratch[:n]
			for i := range idx {
				idx[i] = h.value
			}
		} else {
			n = min(n, h.packed)
			idx = b.scratch[:n]
			h.unpack(idx)
		}
		var err error
		if out, err = b.gather(idx, ends[:n], out); err != nil {
			return nil, err
		}
		ends = ends[n:]
	}
	return out, nil
}

// gather appends the dictionary's values at idx.
func (b *byteArrays) gather(idx []uint32, ends []int32, out []byte) ([]byte, error) {
	offsets, dict := b.offsets, b.dict
	at := len(out)
	total := at
	ends = ends[:len(idx)]
	for i, x := range idx {
		total += int(offsets[x+1] - offsets[x])
		ends[i] = int32(total)
	}
	if total > math.MaxInt32 {
		return nil, errTooLong
	}
	out = slices.Grow(out, total-at+slack)
	buf := out[:total+slack]
	for i, x := range idx {
		from := int(offsets[x])
		to := int(ends[i])
		if to-at <= slack {
			s, d := dict[from:from+slack], buf[at:at+slack]
			binary.LittleEndian.PutUint64(d, binary.LittleEndian.Uint64(s))
			binary.LittleEndian.PutUint64(d[8:], binary.LittleEndian.Uint64(s[8:]))
		} else {
			copy(buf[at:to], dict[from:])
		}
		at = to
	}
	return buf[:total], nil
}

var errTooLong = errors.New("a batch of one column holds more than 2 GiB of text")

// decodePlain reads values that stand in the page with their lengths: first the lengths, then the bytes.
func (b *byteArrays) decodePlain(ends []int32, out []byte) ([]byte, error) {
	b.plain = true
	src := b.src
	total, p := len(out), 0
	for i := range ends {
		if p+4 > len(src) {
			return nil, errTruncated
		}
		size := int(binary.LittleEndian.Uint32(src[p:]))
		p += 4 + size
		if size < 0 || p > len(src) {
			return nil, errTruncated
		}
		total += size
		ends[i] = int32(total)
	}
	if total > math.MaxInt32 {
		return nil, errTooLong
	}
	at := len(out)
	out = slices.Grow(out, total-at+slack)
	buf := out[:total+slack]
	p = 0
	for _, end := range ends {
		p += 4
		to := int(end)
		size := to - at
		if size <= slack && p+slack <= len(src) {
			s, d := src[p:p+slack], buf[at:at+slack]
			binary.LittleEndian.PutUint64(d, binary.LittleEndian.Uint64(s))
			binary.LittleEndian.PutUint64(d[8:], binary.LittleEndian.Uint64(s[8:]))
		} else {
			copy(buf[at:to], src[p:p+size])
		}
		p += size
		at = to
	}
	b.src = src[p:]
	return buf[:total], nil
}

// spreadEnds gives NULL rows the end of the row before them.
func spreadEnds(ends []int32, valid int, bits []byte, at int, before int32) {
	j := valid - 1
	for i := len(ends) - 1; i >= 0; i-- {
		end := before
		if j >= 0 {
			end = ends[j]
		}
		if bitutil.BitIsSet(bits, at+i) {
			j--
		}
		ends[i] = end
	}
}
