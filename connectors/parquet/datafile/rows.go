package datafile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
)

// Rows is a set of row numbers of a file, below its length in bits.
type Rows []uint64

// NewRows is an empty set with room for a file of so many rows.
func NewRows(rows int64) Rows { return make(Rows, (rows+63)/64) }

// Has reports whether a row is in the set.
func (b Rows) Has(row int64) bool {
	return row>>6 < int64(len(b)) && b[row>>6]>>(row&63)&1 == 1
}

// Add puts rows first … last into the set; false when the set has no room for them.
func (b Rows) Add(first, last uint64) bool {
	if last>>6 >= uint64(len(b)) {
		return false
	}
	for row := first; row <= last; row++ {
		b[row>>6] |= 1 << (row & 63)
	}
	return true
}

// Count is the number of rows within from … to-1.
func (b Rows) Count(from, to int64) (n int64) {
	for row := from; row < to; {
		if row&63 == 0 && row+64 <= to {
			if row>>6 >= int64(len(b)) {
				return n
			}
			n += int64(bits.OnesCount64(b[row>>6]))
			row += 64
			continue
		}
		if b.Has(row) {
			n++
		}
		row++
	}
	return n
}

// Or is the rows that are in one of both.
func (b Rows) Or(c Rows) Rows {
	if len(b) < len(c) {
		b, c = c, b
	}
	out := append(Rows(nil), b...)
	for i, word := range c {
		out[i] |= word
	}
	return out
}

// All is the number of rows in the set.
func (b Rows) All() int64 { return b.Count(0, int64(len(b))<<6) }

// Minus is the rows of b that are not in c.
func (b Rows) Minus(c Rows) Rows {
	out := append(Rows(nil), b...)
	for i := range min(len(b), len(c)) {
		out[i] &^= c[i]
	}
	return out
}

// The layout of a vector: an array of 32-bit roaring bitmaps, each in the portable format of its specification.
const (
	vectorMagic   = 1681511377
	cookieNoRuns  = 12346
	cookieRuns    = 12347
	noOffsets     = 4    // with runs, fewer containers have no table of offsets
	mostInArray   = 4096 // values; a container of more is a set of bits
	containerBits = 1 << 16
)

var errShort = errors.New("it is cut off")

// input takes little-endian numbers from bytes.
type input struct {
	b     []byte
	short bool
}

func (in *input) take(n int) []byte {
	if n < 0 || len(in.b) < n {
		in.short = true
		in.b = nil
		return make([]byte, min(max(n, 0), 8))
	}
	out := in.b[:n]
	in.b = in.b[n:]
	return out
}

func (in *input) u16() uint64 { return uint64(binary.LittleEndian.Uint16(in.take(2))) }
func (in *input) u32() uint64 { return uint64(binary.LittleEndian.Uint32(in.take(4))) }
func (in *input) u64() uint64 { return binary.LittleEndian.Uint64(in.take(8)) }

// ParseVector reads a deletion vector of a file of so many rows, as Delta Lake and Iceberg write it.
func ParseVector(data []byte, rows int64) (Rows, error) {
	in := &input{b: data}
	if magic := in.u32(); magic != vectorMagic {
		return nil, fmt.Errorf("it begins with the number %d, not with %d", magic, vectorMagic)
	}
	set := NewRows(rows)
	maps := in.u64()
	for n := uint64(0); n < maps && !in.short; n++ {
		if err := set.roaring(in, in.u32()<<32); err != nil {
			return nil, err
		}
	}
	if in.short {
		return nil, errShort
	}
	for row := rows; row < int64(len(set))<<6; row++ {
		if set.Has(row) {
			return nil, errBeyond(uint64(row))
		}
	}
	return set, nil
}

func errBeyond(row uint64) error {
	return fmt.Errorf("it deletes row %d, and the file has fewer", row)
}

// roaring reads one 32-bit bitmap whose values count from base.
func (b Rows) roaring(in *input, base uint64) error {
	cookie := in.u32()
	var containers int
	var runs []byte
	switch {
	case cookie&0xffff == cookieRuns:
		containers = int(cookie>>16) + 1
		runs = in.take((containers + 7) / 8)
	case cookie == cookieNoRuns:
		n := in.u32()
		if n > containerBits {
			return fmt.Errorf("a bitmap has %d parts", n)
		}
		containers = int(n)
	default:
		return fmt.Errorf("a bitmap begins with the number %d", cookie)
	}
	header := in.take(4 * containers)
	if runs == nil || containers >= noOffsets {
		in.take(4 * containers) // where they begin: they follow one another
	}
	for i := range containers {
		if in.short {
			return errShort
		}
		first := base + uint64(binary.LittleEndian.Uint16(header[4*i:]))<<16
		values := int(binary.LittleEndian.Uint16(header[4*i+2:])) + 1
		if err := b.container(in, first, values, runs != nil && runs[i/8]>>(i%8)&1 == 1); err != nil {
			return err
		}
	}
	return nil
}

// container reads 2¹⁶ rows at most.
func (b Rows) container(in *input, base uint64, values int, runs bool) error {
	switch {
	case runs:
		for n := in.u16(); n > 0 && !in.short; n-- {
			first, more := in.u16(), in.u16()
			if first+more >= containerBits {
				return fmt.Errorf("a run of rows ends behind its part")
			}
			if !in.short && !b.Add(base+first, base+first+more) {
				return errBeyond(base + first + more)
			}
		}
	case values <= mostInArray:
		for data := in.take(2 * values); len(data) >= 2 && !in.short; data = data[2:] {
			if row := base + uint64(binary.LittleEndian.Uint16(data)); !b.Add(row, row) {
				return errBeyond(row)
			}
		}
	default:
		data := in.take(containerBits / 8)
		for i := 0; i+8 <= len(data) && !in.short; i += 8 {
			for word := binary.LittleEndian.Uint64(data[i:]); word != 0; word &= word - 1 {
				if row := base + uint64(8*i+bits.TrailingZeros64(word)); !b.Add(row, row) {
					return errBeyond(row)
				}
			}
		}
	}
	return nil
}
