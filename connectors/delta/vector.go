package delta

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/bits"
	"strconv"
	"strings"
)

// vectorRef names a deletion vector: the rows of a data file that are no longer in the table.
type vectorRef struct {
	Storage     string `json:"storageType"` // i: inline, u: a file of the table, p: a path
	Where       string `json:"pathOrInlineDv"`
	Offset      *int64 `json:"offset"`
	Size        int64  `json:"sizeInBytes"`
	Cardinality int64  `json:"cardinality"`
}

// id tells vectors apart; nil, no vector, has its own.
func (v *vectorRef) id() string {
	switch {
	case v == nil:
		return ""
	case v.Offset == nil:
		return v.Storage + v.Where
	}
	return v.Storage + v.Where + "@" + strconv.FormatInt(*v.Offset, 10)
}

// mostVector bounds the bytes of one vector: no file has that many rows.
const mostVector = 1 << 30

func (v *vectorRef) check() error {
	switch {
	case v == nil:
		return nil
	case v.Storage != "i" && v.Storage != "u" && v.Storage != "p":
		return fmt.Errorf("a deletion vector is stored as %q, which is none of i, u and p", v.Storage)
	case v.Size < 0 || v.Size > mostVector || v.Cardinality < 0 || v.Offset != nil && *v.Offset < 0:
		return fmt.Errorf("a deletion vector has the size %d and %d rows", v.Size, v.Cardinality)
	}
	return nil
}

// bitmap is a set of row numbers below its length in bits.
type bitmap []uint64

func (b bitmap) has(row int64) bool {
	return row>>6 < int64(len(b)) && b[row>>6]>>(row&63)&1 == 1
}

// add puts rows first … last into the set; false when the set has no room for them.
func (b bitmap) add(first, last uint64) bool {
	if last>>6 >= uint64(len(b)) {
		return false
	}
	for row := first; row <= last; row++ {
		b[row>>6] |= 1 << (row & 63)
	}
	return true
}

// count is the number of rows within from … to-1.
func (b bitmap) count(from, to int64) (n int64) {
	for row := from; row < to; {
		if row&63 == 0 && row+64 <= to {
			if row>>6 >= int64(len(b)) {
				return n
			}
			n += int64(bits.OnesCount64(b[row>>6]))
			row += 64
			continue
		}
		if b.has(row) {
			n++
		}
		row++
	}
	return n
}

// minus is the rows of b that are not in c.
func (b bitmap) minus(c bitmap) bitmap {
	out := append(bitmap(nil), b...)
	for i := range min(len(b), len(c)) {
		out[i] &^= c[i]
	}
	return out
}

// load reads a vector of a file of so many rows.
func (v *vectorRef) load(ctx context.Context, t *table, rows int64) (bitmap, error) {
	if v == nil {
		return nil, nil
	}
	data, err := v.bytes(ctx, t)
	if err != nil {
		return nil, err
	}
	b, err := parseVector(data, rows)
	if err != nil {
		return nil, err
	}
	if n := b.count(0, int64(len(b))<<6); n != v.Cardinality {
		return nil, fmt.Errorf("it holds %d rows, and the log says %d", n, v.Cardinality)
	}
	return b, nil
}

func (v *vectorRef) bytes(ctx context.Context, t *table) ([]byte, error) {
	if v.Storage == "i" {
		data, err := z85(v.Where)
		if err == nil && int64(len(data)) < v.Size {
			err = errors.New("it is shorter than the log says")
		}
		if err != nil {
			return nil, err
		}
		return data[:v.Size], nil
	}
	path := v.Where
	if v.Storage == "u" {
		var err error
		if path, err = vectorFile(v.Where); err != nil {
			return nil, err
		}
	}
	store, name, err := t.locate(path)
	if err != nil {
		return nil, err
	}
	f, err := store.Open(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("the file %q: %w", name, err)
	}
	defer func() { _ = f.Close() }()
	at := int64(1) // behind the version of the format
	if v.Offset != nil {
		at = *v.Offset
	}
	if f.Info().Size < at+v.Size+8 {
		return nil, fmt.Errorf("the file %q has %d bytes and is cut off", name, f.Info().Size)
	}
	buf := make([]byte, v.Size+8)
	if _, err := f.ReadAt(buf, at); err != nil && err != io.EOF {
		return nil, fmt.Errorf("the file %q: %w", name, err)
	}
	data, sum := buf[4:4+v.Size], binary.BigEndian.Uint32(buf[4+v.Size:])
	if int64(binary.BigEndian.Uint32(buf)) != v.Size || crc32.ChecksumIEEE(data) != sum {
		return nil, fmt.Errorf("the file %q does not hold at byte %d what was written there: its size or checksum is wrong", name, at)
	}
	return data, nil
}

// vectorFile is the name of a vector's file within the table: a folder, if there is one, and a UUID in Z85.
func vectorFile(where string) (string, error) {
	const uuid = 20 // characters
	if len(where) < uuid {
		return "", fmt.Errorf("%q names no file", where)
	}
	folder, text := where[:len(where)-uuid], where[len(where)-uuid:]
	id, err := z85(text)
	if err != nil || strings.ContainsAny(folder, "/\\") || folder == ".." {
		return "", fmt.Errorf("%q names no file", where)
	}
	name := fmt.Sprintf("deletion_vector_%x-%x-%x-%x-%x.bin", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
	if folder != "" {
		name = folder + "/" + name
	}
	return name, nil
}

const z85Digits = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"

// z85 reads the text form of bytes that ZeroMQ's RFC 32 gives: five characters for four bytes.
func z85(s string) ([]byte, error) {
	if len(s)%5 != 0 {
		return nil, errors.New("a text in Z85 has a length that no bytes give")
	}
	out := make([]byte, 0, len(s)/5*4)
	for ; s != ""; s = s[5:] {
		word := uint64(0)
		for _, c := range []byte(s[:5]) {
			digit := strings.IndexByte(z85Digits, c)
			if digit < 0 {
				return nil, fmt.Errorf("a text in Z85 holds the character %q", c)
			}
			word = word*85 + uint64(digit)
		}
		if word >= 1<<32 {
			return nil, errors.New("a text in Z85 holds a number of more than four bytes")
		}
		out = binary.BigEndian.AppendUint32(out, uint32(word))
	}
	return out, nil
}

// The layout of a vector: Delta's array of 32-bit roaring bitmaps, each in the portable format of its specification.
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

// parseVector reads a vector of a file of so many rows.
func parseVector(data []byte, rows int64) (bitmap, error) {
	in := &input{b: data}
	if magic := in.u32(); magic != vectorMagic {
		return nil, fmt.Errorf("it begins with the number %d, not with %d", magic, vectorMagic)
	}
	set := make(bitmap, (rows+63)/64)
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
		if set.has(row) {
			return nil, errBeyond(uint64(row))
		}
	}
	return set, nil
}

func errBeyond(row uint64) error {
	return fmt.Errorf("it deletes row %d, and the file has fewer", row)
}

// roaring reads one 32-bit bitmap whose values count from base.
func (b bitmap) roaring(in *input, base uint64) error {
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
func (b bitmap) container(in *input, base uint64, values int, runs bool) error {
	switch {
	case runs:
		for n := in.u16(); n > 0 && !in.short; n-- {
			first, more := in.u16(), in.u16()
			if first+more >= containerBits {
				return fmt.Errorf("a run of rows ends behind its part")
			}
			if !in.short && !b.add(base+first, base+first+more) {
				return errBeyond(base + first + more)
			}
		}
	case values <= mostInArray:
		for data := in.take(2 * values); len(data) >= 2 && !in.short; data = data[2:] {
			if row := base + uint64(binary.LittleEndian.Uint16(data)); !b.add(row, row) {
				return errBeyond(row)
			}
		}
	default:
		data := in.take(containerBits / 8)
		for i := 0; i+8 <= len(data) && !in.short; i += 8 {
			for word := binary.LittleEndian.Uint64(data[i:]); word != 0; word &= word - 1 {
				if row := base + uint64(8*i+bits.TrailingZeros64(word)); !b.add(row, row) {
					return errBeyond(row)
				}
			}
		}
	}
	return nil
}
