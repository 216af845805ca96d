package state

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/rowkey"
	"github.com/riverbed/riverbed/core/types"
)

// record lays a row out as a few words, all of them in one place. Two rows are equal if and only if their words are. Small columns
// share a word; decimals of up to 18 digits take one; what has no fixed width is a number of texts.
type record struct {
	exact bool // rows are equal when they print alike, not when SQL says so
	cols  []recordColumn
	first int // words of other use before the columns
	nulls int // the first word of a bit for each column, set when it is NULL; -1: no column is
	size  int // words
	texts *texts

	tmp  []uint64
	wide [][2]uint64
}

// recordColumn is where a column lies.
type recordColumn struct {
	typ   types.Type
	form  recordForm
	word  int
	shift uint
	mask  uint64 // of the value in a word; 0: two words
}

type recordForm uint8

const (
	asWord     recordForm = iota // of rowkey.Words
	asWide                       // of rowkey.Wide
	asInterval                   // as it is written
	asDecimal                    // the lower half, of which the upper one is the sign
	asText                       // a number of texts
)

// newRecord lays out columns behind `first` words. wide are the decimals that a word is not enough for, nil for none.
func newRecord(ts []types.Type, exact bool, first int, nulls bool, wide []bool, t *texts) *record {
	r := &record{nulls: -1, exact: exact, first: first, size: first, texts: t, cols: make([]recordColumn, len(ts))}
	if nulls {
		r.nulls = r.size
		r.size += (len(ts) + 63) / 64
	}
	var small []int
	for i, t := range ts {
		c := &r.cols[i]
		c.typ = t
		switch w := rowkey.Width(t); {
		case t.Kind == types.Interval && exact:
			c.form = asInterval
		case t.Kind == types.Decimal && t.Width <= 18 && wide != nil && !wide[i]:
			c.form, c.mask = asDecimal, ^uint64(0)
		case w > 8:
			c.form = asWide
		case w == 0:
			c.form, c.mask = asText, 1<<32-1
		default:
			c.mask = ^uint64(0) >> (64 - 8*w)
		}
		if c.mask != 0 && c.mask != ^uint64(0) {
			small = append(small, i)
			continue
		}
		c.word = r.size
		if r.size++; c.mask == 0 {
			r.size++
		}
	}
	free := uint(0)
	for _, width := range []uint64{1<<32 - 1, 1<<16 - 1, 1<<8 - 1} {
		for _, i := range small {
			c := &r.cols[i]
			if c.mask != width {
				continue
			}
			if free == 0 {
				r.size, free = r.size+1, 64
			}
			c.word, c.shift = r.size-1, 64-free
			for m := width; m != 0; m >>= 8 {
				free -= 8
			}
		}
	}
	return r
}

// pack writes n rows one behind the other into memory that out has already, or more; the words before the columns are not written.
// When a value does not fit, it says in fits which columns need another layout.
func (r *record) pack(cols []arrow.Array, n int, out []uint64) (rows []uint64, nulls bool, wide []int) {
	rows = kernels.Sized(out, n*r.size)
	for i := range n {
		clear(rows[i*r.size+r.first : (i+1)*r.size])
	}
	for i := range r.cols {
		c, a := &r.cols[i], cols[i]
		if !r.packColumn(c, a, n, rows) {
			wide = append(wide, i)
		}
		if c.form != asText && a.NullN() > 0 {
			if nulls = true; r.nulls >= 0 {
				r.packNulls(i, a, rows)
			}
		}
	}
	return rows, nulls && r.nulls < 0, wide
}

func (r *record) packColumn(c *recordColumn, a arrow.Array, n int, rows []uint64) (fits bool) {
	at := c.word
	fits = true
	switch c.form {
	case asText:
		r.tmp = r.texts.add(c.typ, a, n, r.tmp)
	case asWord:
		r.tmp = rowkey.Words(a, c.typ, r.exact, r.tmp[:0])
	case asDecimal:
		r.tmp = kernels.Sized(r.tmp, n)
		for i, v := range decimals(a, n) {
			low := v.LowBits()
			r.tmp[i] = low
			fits = fits && (v.HighBits() == int64(low)>>63 || a.IsNull(i))
		}
	case asInterval:
		for _, v := range rowkey.Intervals(a) {
			rows[at], rows[at+1] = uint64(uint32(v.Months))<<32|uint64(uint32(v.Days)), uint64(v.Nanoseconds)
			at += r.size
		}
		return true
	default:
		r.wide = rowkey.Wide(a, c.typ, r.wide[:0])
		for _, v := range r.wide {
			rows[at], rows[at+1] = v[0], v[1]
			at += r.size
		}
		return true
	}
	if c.shift == 0 {
		for _, w := range r.tmp[:n] {
			rows[at] |= w & c.mask
			at += r.size
		}
		return fits
	}
	for _, w := range r.tmp[:n] {
		rows[at] |= w & c.mask << c.shift
		at += r.size
	}
	return fits
}

// packNulls notes the NULLs of a column and clears what stands below them.
func (r *record) packNulls(col int, a arrow.Array, rows []uint64) {
	c := &r.cols[col]
	for i := range a.Len() {
		if a.IsValid(i) {
			continue
		}
		row := rows[i*r.size : (i+1)*r.size]
		row[r.nulls+col/64] |= 1 << (col % 64)
		if c.mask == 0 {
			row[c.word], row[c.word+1] = 0, 0
		} else {
			row[c.word] &^= c.mask << c.shift
		}
	}
}

// column unpacks a column of rows.
func (r *record) column(col int, rows []uint64) arrow.Array {
	c, n := &r.cols[col], len(rows)/r.size
	valid := r.validity(col, rows)
	at := c.word
	switch c.form {
	case asInterval:
		v := make([]arrow.MonthDayNanoInterval, n)
		for i := range v {
			v[i] = arrow.MonthDayNanoInterval{Months: int32(rows[at] >> 32), Days: int32(rows[at]), Nanoseconds: int64(rows[at+1])}
			at += r.size
		}
		return kernels.NewFixed(c.typ.Arrow(), v, valid)
	case asDecimal:
		v := make([]decimal128.Num, n)
		for i := range v {
			v[i] = decimal128.New(int64(rows[at])>>63, rows[at])
			at += r.size
		}
		return kernels.NewFixed(c.typ.Arrow(), v, valid)
	case asWide:
		r.wide = kernels.Sized(r.wide, n)
		for i := range r.wide {
			r.wide[i] = [2]uint64{rows[at], rows[at+1]}
			at += r.size
		}
		return rowkey.FromWide(c.typ, r.wide, valid)
	}
	r.tmp = kernels.Sized(r.tmp, n)
	for i := range r.tmp {
		r.tmp[i] = rows[at] >> c.shift & c.mask
		at += r.size
	}
	if c.form == asText {
		return r.texts.array(c.typ, r.tmp)
	}
	return rowkey.FromWords(c.typ, r.tmp, valid)
}

// validity is the bitmap of a column; nil when none is NULL.
func (r *record) validity(col int, rows []uint64) (valid []byte) {
	if r.nulls < 0 || r.cols[col].form == asText {
		return nil
	}
	at, bit := r.nulls+col/64, uint64(1)<<(col%64)
	n := len(rows) / r.size
	for i := range n {
		if rows[at]&bit != 0 {
			if valid == nil {
				valid = kernels.Ones(n)
			}
			valid[i>>3] &^= 1 << (i & 7)
		}
		at += r.size
	}
	return valid
}

// keep counts the texts of a row that comes to stay.
func (r *record) keep(row []uint64, by int64) {
	if r.texts == nil {
		return
	}
	for i := range r.cols {
		if c := &r.cols[i]; c.form == asText {
			r.texts.uses.V[row[c.word]>>c.shift&c.mask] += by
		}
	}
}

// release is keep for a row that goes; sweep follows.
func (r *record) release(row []uint64) {
	if r.texts == nil {
		return
	}
	r.keep(row, -1)
	for i := range r.cols {
		if c := &r.cols[i]; c.form == asText {
			r.texts.given = append(r.texts.given, uint32(row[c.word]>>c.shift&c.mask))
		}
	}
}

func hasText(ts []types.Type) bool {
	for _, t := range ts {
		if rowkey.Width(t) == 0 {
			return true
		}
	}
	return false
}

func decimals(a arrow.Array, n int) []decimal128.Num {
	d := a.Data()
	if n == 0 || d.Buffers()[1] == nil || d.Buffers()[1].Len() == 0 { // NULLs without values
		return make([]decimal128.Num, n)
	}
	return arrow.GetValues[decimal128.Num](d, 1)
}
