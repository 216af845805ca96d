// Package rowkey encodes rows as byte strings whose order is the rows' order.
//
// Invariant: two rows are equal in SQL if and only if their bytes are equal, and bytes.Compare orders them as ORDER BY
// does. No row's bytes are the beginning of another's with the same columns, so encodings may be put one after the other.
//
// A column is a marker byte (valid, or NULL before or after it) and the value:
//
//	numbers, dates, times   big-endian, sign bit flipped; floats in total order, NaN last, -0.0 as 0.0
//	VARCHAR, JSON, BLOB     the bytes, 00 as 00 FF, ended by 00 00
//	INTERVAL                days (a month is 30) and the rest in nanoseconds
//	LIST, MAP               01 before each element, ended by 00       STRUCT  its fields
//
// A descending column has its value's bytes inverted; where NULLs go is told apart from that. An exact column keeps what
// equality forgets (the sign of zero, how an interval is written), as the last thing that decides the order.
package rowkey

import (
	"encoding/binary"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/types"
)

// Key says how one column is ordered. The zero Key is ascending, NULLS LAST.
type Key struct {
	Desc       bool
	NullsFirst bool
	Exact      bool // -0.0 is not 0.0, '30 days' is not '1 month': equal bytes mean values that print alike
}

const (
	markNullFirst = 0
	markValid     = 1
	markNullLast  = 2
)

func (k Key) nullMark() byte {
	if k.NullsFirst {
		return markNullFirst
	}
	return markNullLast
}

// invert is what the bytes of a value are XORed with.
func (k Key) invert() byte {
	if k.Desc {
		return 0xFF
	}
	return 0
}

// Rows is encoded rows, one after the other in one arena.
type Rows struct {
	Data []byte
	Offs []int // one more than rows
}

// Len is the number of rows.
func (r Rows) Len() int { return max(len(r.Offs)-1, 0) }

// Row returns the bytes of row i; they are valid as long as the arena is.
func (r Rows) Row(i int) []byte { return r.Data[r.Offs[i]:r.Offs[i+1]:r.Offs[i+1]] }

// Encoder encodes batches of rows of the same columns, reusing its memory.
type Encoder struct {
	types []types.Type
	keys  []Key
	rows  Rows
	words []uint64
	wide  [][2]uint64
	at    []int
}

// NewEncoder encodes columns of these types. keys may be shorter than types: the rest have the zero Key.
func NewEncoder(ts []types.Type, keys []Key) *Encoder {
	return &Encoder{types: ts, keys: padded(keys, len(ts))}
}

func padded(keys []Key, n int) []Key {
	out := make([]Key, n)
	copy(out, keys)
	return out
}

// Encode encodes n rows. The result lives until the next call.
func (e *Encoder) Encode(cols []arrow.Array, n int) Rows {
	e.at = append(e.at[:0], make([]int, n+1)...)
	writers := make([]func(dst []byte, at []int), len(cols))
	for c, arr := range cols {
		writers[c] = e.column(arr, e.types[c], e.keys[c], n, e.at[1:])
	}
	for i := range n {
		e.at[i+1] += e.at[i]
	}
	e.rows.Offs = append(e.rows.Offs[:0], e.at...)
	if total := e.at[n]; cap(e.rows.Data) < total {
		e.rows.Data = make([]byte, total+total/4)
	}
	e.rows.Data = e.rows.Data[:e.at[n]]
	for _, w := range writers {
		w(e.rows.Data, e.at[:n])
	}
	return e.rows
}

// Encode encodes n rows into memory of their own.
func Encode(cols []arrow.Array, ts []types.Type, keys []Key, n int) Rows {
	return NewEncoder(ts, keys).Encode(cols, n)
}

// column adds the size of each row's value to sizes and returns what writes the values at the rows' cursors.
func (e *Encoder) column(arr arrow.Array, t types.Type, k Key, n int, sizes []int) func(dst []byte, at []int) {
	valid := validity(arr)
	if w := width(t, k); w > 0 {
		for i := range sizes {
			sizes[i] += 1 + w
		}
		return func(dst []byte, at []int) { e.writeFixed(arr, t, k, w, valid, dst, at) }
	}
	switch t.Kind {
	case types.Null:
		for i := range sizes {
			sizes[i]++
		}
		return func(dst []byte, at []int) {
			for i, p := range at {
				dst[p] = k.nullMark()
				at[i] = p + 1
			}
		}
	case types.Varchar, types.JSON, types.Blob:
		offs, data := texts(arr)
		for i := range sizes {
			sizes[i]++
			if valid.get(i) {
				sizes[i] += textSize(data[offs[i]:offs[i+1]])
			}
		}
		return func(dst []byte, at []int) {
			inv := k.invert()
			for i, p := range at {
				if !valid.get(i) {
					dst[p] = k.nullMark()
					at[i] = p + 1
					continue
				}
				dst[p] = markValid
				end := putText(dst[p+1:], data[offs[i]:offs[i+1]])
				flip(dst[p+1:p+1+end], inv)
				at[i] = p + 1 + end
			}
		}
	}
	// Nested values are appended row by row aside and copied.
	app := appender(arr, t, k)
	var arena []byte
	ends := make([]int, n)
	for i := range n {
		from := len(arena)
		arena = app(arena, i)
		ends[i] = len(arena)
		sizes[i] += len(arena) - from
	}
	return func(dst []byte, at []int) {
		from := 0
		for i, p := range at {
			at[i] = p + copy(dst[p:], arena[from:ends[i]])
			from = ends[i]
		}
	}
}

// writeFixed writes a column of fixed width. NULL has zeros behind its marker, so that all rows have one width.
func (e *Encoder) writeFixed(arr arrow.Array, t types.Type, k Key, w int, valid bits, dst []byte, at []int) {
	inv := k.invert()
	mark := func(i, p int) {
		dst[p] = markValid
		if !valid.get(i) {
			dst[p] = k.nullMark()
			clear(dst[p+1 : p+1+w])
		} else {
			flip(dst[p+1:p+1+w], inv)
		}
		at[i] = p + 1 + w
	}
	if w > 8 {
		e.wide = Wide(arr, t, e.wide[:0])
		var raw []arrow.MonthDayNanoInterval
		if w == 24 {
			raw = Intervals(arr)
		}
		for i, p := range at {
			v := dst[p+1 : p+1+w]
			binary.BigEndian.PutUint64(v, e.wide[i][0])
			binary.BigEndian.PutUint64(v[8:], e.wide[i][1])
			if w == 24 {
				binary.BigEndian.PutUint32(v[16:], uint32(raw[i].Months)^1<<31)
				binary.BigEndian.PutUint32(v[20:], uint32(raw[i].Days)^1<<31)
			}
			mark(i, p)
		}
		return
	}
	e.words = Words(arr, t, k.Exact, e.words[:0])
	switch w {
	case 8:
		for i, p := range at {
			binary.BigEndian.PutUint64(dst[p+1:], e.words[i])
			mark(i, p)
		}
	case 4:
		for i, p := range at {
			binary.BigEndian.PutUint32(dst[p+1:], uint32(e.words[i]))
			mark(i, p)
		}
	default:
		for i, p := range at {
			putWord(dst[p+1:p+1+w], e.words[i])
			mark(i, p)
		}
	}
}

// putWord writes the low bytes of x big-endian over dst.
func putWord(dst []byte, x uint64) {
	for i := len(dst) - 1; i >= 0; i-- {
		dst[i] = byte(x)
		x >>= 8
	}
}

func flip(b []byte, with byte) {
	if with == 0 {
		return
	}
	for i := range b {
		b[i] ^= with
	}
}
