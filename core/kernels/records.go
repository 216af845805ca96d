package kernels

import (
	"encoding/binary"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Records holds columns of many rows as records of one size, which are written in the order in which the rows come and read in
// another one: of each row a line or two of the cache are brought in, where its columns would take a line each. A record begins
// with the number of its row.
type Records struct {
	fields []recordField
	size   int
	data   []byte
}

type recordField struct {
	dt      arrow.DataType
	at      int
	width   int // of a value; of the longest text
	text    bool
	varying bool // texts have a byte with their length before them
	valid   int  // place of a byte that is 0 for NULL; -1: there are no NULLs
}

const (
	maxRecord     = 128
	maxRecordText = 32
)

// NewRecords plans records of no columns.
func NewRecords() *Records { return &Records{size: 4} }

// AddColumn plans a column, given by its chunks, and returns its number; -1 when its values are too long, or nested.
func (r *Records) AddColumn(chunks []arrow.Array) int {
	f := recordField{dt: chunks[0].DataType(), at: r.size, valid: -1}
	switch t := f.dt.(type) {
	case *arrow.BooleanType, *arrow.NullType, *arrow.StructType, *arrow.FixedSizeListType:
		return -1
	case *arrow.StringType, *arrow.BinaryType:
		f.text = true
		least, most := int32(maxRecordText), int32(0)
		for _, a := range chunks {
			offs, _ := Spans(a)
			for i := range a.Len() {
				n := offs[i+1] - offs[i]
				least, most = min(least, n), max(most, n)
			}
		}
		if most > maxRecordText {
			return -1
		}
		f.width, f.varying = int(most), least < most
	case arrow.FixedWidthDataType:
		f.width = t.BitWidth() / 8
		if f.width > 16 || f.width&(f.width-1) != 0 {
			return -1
		}
	default:
		return -1
	}
	end := f.at + f.width
	if f.varying {
		end++
	}
	for _, a := range chunks {
		if a.NullN() != 0 {
			f.valid = end
			end++
			break
		}
	}
	if end > maxRecord {
		return -1
	}
	r.fields, r.size = append(r.fields, f), end
	return len(r.fields) - 1
}

// Columns is how many columns are planned.
func (r *Records) Columns() int { return len(r.fields) }

// Size is the bytes of a record.
func (r *Records) Size() int { return r.size }

// Make makes room for n records.
func (r *Records) Make(n int) { r.data = Room[byte](n * r.size) }

// Put writes rows to the records at places: their columns, as planned, and their numbers from first on. Several goroutines may
// write to different places.
func (r *Records) Put(cols []arrow.Array, first uint32, places []uint32) {
	for i, p := range places {
		binary.LittleEndian.PutUint32(r.data[int(p)*r.size:], first+uint32(i))
	}
	for k, a := range cols {
		r.fields[k].put(r, a, places)
	}
}

func (f *recordField) put(r *Records, a arrow.Array, places []uint32) {
	data, size, at := r.data, r.size, f.at
	switch {
	case f.text:
		offs, bytes := Spans(a)
		for i, p := range places {
			v := bytes[offs[i]:offs[i+1]]
			to := int(p)*size + at
			if f.varying {
				data[to] = byte(len(v))
				to++
			}
			copy(data[to:], v)
		}
	case f.width == 8:
		for i, x := range Values[uint64](a)[:len(places)] {
			binary.LittleEndian.PutUint64(data[int(places[i])*size+at:], x)
		}
	case f.width == 4:
		for i, x := range Values[uint32](a)[:len(places)] {
			binary.LittleEndian.PutUint32(data[int(places[i])*size+at:], x)
		}
	case f.width == 16:
		putRecords(data, size, at, Values[[16]byte](a), places)
	case f.width == 2:
		putRecords(data, size, at, Values[[2]byte](a), places)
	default:
		putRecords(data, size, at, Values[[1]byte](a), places)
	}
	if f.valid < 0 {
		return
	}
	valid := Valid(a)
	for i, p := range places {
		ok := byte(1)
		if valid != nil && !Bit(valid, i) {
			ok = 0
		}
		data[int(p)*size+f.valid] = ok
	}
}

func putRecords[T any](data []byte, size, at int, v []T, places []uint32) {
	for i, p := range places {
		*recordAt[T](data, int(p)*size+at) = v[i]
	}
}

// recordAt is the value at a place of the records.
//
// AIDEV-NOTE: unsafe. T is an array of bytes, which may lie anywhere; the slice expression checks the bounds.
func recordAt[T any](data []byte, at int) *T {
	var z T
	return (*T)(unsafe.Pointer(unsafe.SliceData(data[at : at+int(unsafe.Sizeof(z))])))
}

// Rows gives the numbers of the rows whose records are at places.
func (r *Records) Rows(places, dst []uint32) []uint32 {
	dst = dst[:0]
	for _, p := range places {
		dst = append(dst, binary.LittleEndian.Uint32(r.data[int(p)*r.size:]))
	}
	return dst
}

// Take gives a column of the records at places.
func (r *Records) Take(column int, places []uint32) arrow.Array {
	f := &r.fields[column]
	data, size, at := r.data, r.size, f.at
	var valid []byte
	if f.valid >= 0 {
		valid = make([]byte, BitBytes(len(places)))
		for i, p := range places {
			valid[i>>3] |= data[int(p)*size+f.valid] << (i & 7)
		}
		if CountBits(valid, len(places)) == len(places) {
			valid = nil
		}
	}
	if f.text {
		return f.takeTexts(r, places, valid)
	}
	var b *memory.Buffer
	switch f.width {
	case 8:
		out := Room[uint64](len(places))
		for i, p := range places {
			out[i] = binary.LittleEndian.Uint64(data[int(p)*size+at:])
		}
		b = buffer(out)
	case 4:
		out := Room[uint32](len(places))
		for i, p := range places {
			out[i] = binary.LittleEndian.Uint32(data[int(p)*size+at:])
		}
		b = buffer(out)
	case 16:
		b = buffer(takeRecords[[16]byte](data, size, at, places))
	case 2:
		b = buffer(takeRecords[[2]byte](data, size, at, places))
	default:
		b = buffer(takeRecords[[1]byte](data, size, at, places))
	}
	return newArray(f.dt, len(places), valid, b)
}

func takeRecords[T any](data []byte, size, at int, places []uint32) []T {
	out := Room[T](len(places))
	for i, p := range places {
		out[i] = *recordAt[T](data, int(p)*size+at)
	}
	return out
}

func (f *recordField) takeTexts(r *Records, places []uint32, valid []byte) arrow.Array {
	offs := make([]int32, len(places)+1)
	total := 0
	for i, p := range places {
		n := f.width
		if f.varying {
			n = int(r.data[int(p)*r.size+f.at])
		}
		total += n
		offs[i+1] = int32(total)
	}
	data := Room[byte](total)
	for i, p := range places {
		from := int(p)*r.size + f.at
		if f.varying {
			from++
		}
		copy(data[offs[i]:offs[i+1]], r.data[from:])
	}
	return NewBytes(f.dt, offs, data, valid)
}

// Unsigned shows row numbers, of which none is negative, as places.
func Unsigned(rows []int32) []uint32 { return cast[uint32](bytesOf(rows)) }
