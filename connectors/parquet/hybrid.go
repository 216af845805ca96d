package parquet

import (
	"encoding/binary"
	"errors"

	"github.com/apache/arrow-go/v18/arrow/bitutil"
)

var errTruncated = errors.New("a page ends too early")

// hybrid reads Parquet's RLE/bit-packing hybrid: runs of one value, and runs of packed values.
// It serves definition levels (width 1) and dictionary indices.
type hybrid struct {
	data  []byte
	pos   int // byte behind the current run
	width int

	run    int // values left of a run of one value
	value  uint32
	packed int // values left of a packed run
	bit    int // where the next packed value begins
}

func (h *hybrid) reset(data []byte, width int) { *h = hybrid{data: data, width: width} }

// next reads the header of the next run.
func (h *hybrid) next() error {
	header, n := binary.Uvarint(h.data[min(h.pos, len(h.data)):])
	if n <= 0 {
		return errTruncated
	}
	h.pos += n
	if header&1 == 1 {
		groups := int(header >> 1)
		if groups <= 0 || groups > len(h.data) && h.width > 0 {
			return errTruncated
		}
		h.packed, h.bit = groups*8, h.pos*8
		h.pos += groups * h.width
		if h.pos > len(h.data) {
			// Some writers cut the padding of the last run.
			h.packed = (len(h.data)*8 - h.bit) / h.width
			h.pos = len(h.data)
			if h.packed == 0 {
				return errTruncated
			}
		}
		return nil
	}
	h.run = int(header >> 1)
	size := (h.width + 7) / 8
	if h.run <= 0 || h.pos+size > len(h.data) {
		return errTruncated
	}
	h.value = 0
	for i := range size {
		h.value |= uint32(h.data[h.pos+i]) << (8 * i)
	}
	h.pos += size
	return nil
}

// read reads the next len(dst) values.
func (h *hybrid) read(dst []uint32) error {
	for len(dst) > 0 {
		if h.run == 0 && h.packed == 0 {
			if err := h.next(); err != nil {
				return err
			}
		}
		n := min(len(dst), max(h.run, h.packed))
		if h.run > 0 {
			h.run -= n
			for i := range dst[:n] {
				dst[i] = h.value
			}
		} else {
			h.unpack(dst[:n])
		}
		dst = dst[n:]
	}
	return nil
}

// skip passes over n values.
func (h *hybrid) skip(n int) error {
	for n > 0 {
		if h.run == 0 && h.packed == 0 {
			if err := h.next(); err != nil {
				return err
			}
		}
		if h.run > 0 {
			k := min(n, h.run)
			h.run -= k
			n -= k
			continue
		}
		k := min(n, h.packed)
		h.packed -= k
		h.bit += k * h.width
		n -= k
	}
	return nil
}

// unpack reads len(dst) values of the packed run.
func (h *hybrid) unpack(dst []uint32) {
	unpack(dst, h.data, h.bit, h.width)
	h.bit += len(dst) * h.width
	h.packed -= len(dst)
}

// unpack reads values of width bits from bit position pos on. One 8-byte load gives at least 57 bits, so as many
// values as fit come from each load.
func unpack(dst []uint32, data []byte, pos, width int) {
	if width == 0 {
		clear(dst)
		return
	}
	mask := uint64(1)<<width - 1
	// Loads must stay inside data: the values whose load would not are read bit by bit of a padded copy.
	safe := len(dst)
	if room := (len(data) - 8) * 8; room < pos+safe*width {
		safe = max(0, (room-pos)/width)
	}
	i := 0
	switch {
	case width <= 7:
		for ; i+8 <= safe; i += 8 {
			x := binary.LittleEndian.Uint64(data[pos>>3:]) >> (pos & 7)
			d := dst[i : i+8 : i+8]
			d[0] = uint32(x & mask)
			x >>= width
			d[1] = uint32(x & mask)
			x >>= width
			d[2] = uint32(x & mask)
			x >>= width
			d[3] = uint32(x & mask)
			x >>= width
			d[4] = uint32(x & mask)
			x >>= width
			d[5] = uint32(x & mask)
			x >>= width
			d[6] = uint32(x & mask)
			x >>= width
			d[7] = uint32(x & mask)
			pos += 8 * width
		}
	case width <= 14:
		for ; i+4 <= safe; i += 4 {
			x := binary.LittleEndian.Uint64(data[pos>>3:]) >> (pos & 7)
			d := dst[i : i+4 : i+4]
			d[0] = uint32(x & mask)
			x >>= width
			d[1] = uint32(x & mask)
			x >>= width
			d[2] = uint32(x & mask)
			x >>= width
			d[3] = uint32(x & mask)
			pos += 4 * width
		}
	case width <= 28:
		for ; i+2 <= safe; i += 2 {
			x := binary.LittleEndian.Uint64(data[pos>>3:]) >> (pos & 7)
			dst[i] = uint32(x & mask)
			dst[i+1] = uint32(x >> width & mask)
			pos += 2 * width
		}
	}
	for ; i < safe; i++ {
		dst[i] = uint32(binary.LittleEndian.Uint64(data[pos>>3:]) >> (pos & 7) & mask)
		pos += width
	}
	if i == len(dst) {
		return
	}
	var tail [24]byte
	for ; i < len(dst); i++ {
		from := pos >> 3
		clear(tail[:8])
		copy(tail[:8], data[min(from, len(data)):])
		dst[i] = uint32(binary.LittleEndian.Uint64(tail[:]) >> (pos & 7) & mask)
		pos += width
	}
}

// validity gathers the validity bits of one batch. It allocates nothing until a NULL comes.
type validity struct {
	bits  []byte
	rows  int // of the batch
	nulls int
}

// need makes the bitmap; rows before at are valid.
func (v *validity) need(at int) {
	if v.bits == nil {
		v.bits = make([]byte, (v.rows+7)/8)
		bitutil.SetBitsTo(v.bits, 0, int64(at), true)
	}
}

// levels reads k definition levels of an optional column into the rows from at on; it returns how many are valid.
func (v *validity) levels(h *hybrid, at, k int) (valid int, err error) {
	for k > 0 {
		if h.run == 0 && h.packed == 0 {
			if err := h.next(); err != nil {
				return 0, err
			}
		}
		var n, ones int
		if h.run > 0 {
			n = min(k, h.run)
			h.run -= n
			if h.value != 0 {
				ones = n
			}
			if ones < n {
				v.need(at)
			} else if v.bits != nil {
				bitutil.SetBitsTo(v.bits, int64(at), int64(n), true)
			}
		} else {
			n = min(k, h.packed)
			ones = bitutil.CountSetBits(h.data, h.bit, n)
			if ones < n {
				v.need(at)
			}
			if v.bits != nil {
				bitutil.CopyBitmap(h.data, h.bit, n, v.bits, at)
			}
			h.bit += n
			h.packed -= n
		}
		valid += ones
		v.nulls += n - ones
		at += n
		k -= n
	}
	return valid, nil
}

// narrow keeps the bits of the rows of sel.
func (v *validity) narrow(sel []int32) {
	if v.bits == nil {
		return
	}
	bits := make([]byte, (len(sel)+7)/8)
	v.nulls = 0
	for i, row := range sel {
		bit := v.bits[row>>3] >> (row & 7) & 1
		bits[i>>3] |= bit << (i & 7)
		v.nulls += 1 - int(bit)
	}
	v.bits, v.rows = bits, len(sel)
}
