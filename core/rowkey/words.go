package rowkey

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/types"
)

// Width is the number of bytes of a value of fixed width, without the marker; 0 for types of no fixed width.
func Width(t types.Type) int { return width(t, Key{}) }

func width(t types.Type, k Key) int {
	switch t.Kind {
	case types.Boolean, types.TinyInt, types.UTinyInt:
		return 1
	case types.SmallInt, types.USmallInt:
		return 2
	case types.Integer, types.UInteger, types.Real, types.Date:
		return 4
	case types.BigInt, types.UBigInt, types.Double, types.Time,
		types.TimestampS, types.TimestampMS, types.Timestamp, types.TimestampNS, types.TimestampTZ:
		return 8
	case types.HugeInt, types.UHugeInt, types.Decimal, types.UUID:
		return 16
	case types.Interval:
		if k.Exact {
			return 24
		}
		return 16
	}
	return 0
}

const (
	signBit      = 1 << 63
	canonicalNaN = 0x7FF8000000000000
	nanosPerDay  = 86400_000_000_000
)

// FloatWord maps a float to a word: words order as floats do, NaN above all. -0.0 is 0.0 unless exact.
func FloatWord(x float64, exact bool) uint64 {
	b := math.Float64bits(x)
	switch {
	case x != x:
		b = canonicalNaN
	case x == 0 && !exact:
		b = 0
	}
	if b>>63 != 0 {
		return ^b
	}
	return b | signBit
}

// WordFloat is the inverse of FloatWord.
func WordFloat(w uint64) float64 {
	if w>>63 != 0 {
		return math.Float64frombits(w &^ signBit)
	}
	return math.Float64frombits(^w)
}

func float32Word(x float32, exact bool) uint64 {
	b := math.Float32bits(x)
	switch {
	case x != x:
		b = 0x7FC00000
	case x == 0 && !exact:
		b = 0
	}
	if b>>31 != 0 {
		return uint64(^b)
	}
	return uint64(b | 1<<31)
}

func wordFloat32(w uint32) float32 {
	if w>>31 != 0 {
		return math.Float32frombits(w &^ (1 << 31))
	}
	return math.Float32frombits(^w)
}

type integer interface {
	int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64
}

func appendWords[T integer](dst []uint64, v []T, mask, sign uint64) []uint64 {
	dst, out := grown(dst, len(v))
	for i, x := range v {
		out[i] = (uint64(x) ^ sign) & mask
	}
	return dst
}

// grown makes room for n more words, and gives them apart.
func grown(dst []uint64, n int) (all, more []uint64) {
	at := len(dst)
	dst = slices.Grow(dst, n)[:at+n]
	return dst, dst[at : at+n : at+n]
}

// Words appends one word per row of a column of at most 8 bytes. Within the type's width, words order as the values do.
// What stands below a NULL is arbitrary.
func Words(a arrow.Array, t types.Type, exact bool, dst []uint64) []uint64 {
	d := a.Data()
	n := a.Len()
	if n == 0 {
		return dst
	}
	if d.Buffers()[1] == nil || d.Buffers()[1].Len() == 0 { // NULLs without values
		return append(dst, make([]uint64, n)...)
	}
	switch t.Kind {
	case types.Boolean:
		b := a.(*array.Boolean)
		for i := range n {
			w := uint64(0)
			if b.Value(i) {
				w = 1
			}
			dst = append(dst, w)
		}
		return dst
	case types.TinyInt:
		return appendWords(dst, arrow.GetValues[int8](d, 1), 0xFF, 1<<7)
	case types.UTinyInt:
		return appendWords(dst, arrow.GetValues[uint8](d, 1), 0xFF, 0)
	case types.SmallInt:
		return appendWords(dst, arrow.GetValues[int16](d, 1), 0xFFFF, 1<<15)
	case types.USmallInt:
		return appendWords(dst, arrow.GetValues[uint16](d, 1), 0xFFFF, 0)
	case types.Integer, types.Date:
		return appendWords(dst, arrow.GetValues[int32](d, 1), 0xFFFFFFFF, 1<<31)
	case types.UInteger:
		return appendWords(dst, arrow.GetValues[uint32](d, 1), 0xFFFFFFFF, 0)
	case types.BigInt, types.Time, types.TimestampS, types.TimestampMS, types.Timestamp, types.TimestampNS, types.TimestampTZ:
		return appendWords(dst, arrow.GetValues[int64](d, 1), math.MaxUint64, signBit)
	case types.UBigInt:
		return appendWords(dst, arrow.GetValues[uint64](d, 1), math.MaxUint64, 0)
	case types.Real:
		dst, out := grown(dst, n)
		for i, x := range arrow.GetValues[float32](d, 1)[:len(out)] {
			out[i] = float32Word(x, exact)
		}
		return dst
	case types.Double:
		dst, out := grown(dst, n)
		for i, x := range arrow.GetValues[float64](d, 1)[:len(out)] {
			out[i] = FloatWord(x, exact)
		}
		return dst
	}
	panic(errs.Bug("rowkey", "type %s has no word form", t)) // AIDEV-NOTE: panics when called for a type wider than 8 bytes
}

// Wide appends two words, the more significant first, per row of a column of 16 bytes; pairs order as the values do.
func Wide(a arrow.Array, t types.Type, dst [][2]uint64) [][2]uint64 {
	d := a.Data()
	n := a.Len()
	if n == 0 {
		return dst
	}
	if d.Buffers()[1] == nil || d.Buffers()[1].Len() == 0 {
		return append(dst, make([][2]uint64, n)...)
	}
	switch t.Kind {
	case types.HugeInt, types.Decimal:
		for _, x := range arrow.GetValues[decimal128.Num](d, 1) {
			dst = append(dst, [2]uint64{uint64(x.HighBits()) ^ signBit, x.LowBits()})
		}
		return dst
	case types.UHugeInt:
		for _, x := range arrow.GetValues[decimal128.Num](d, 1) {
			dst = append(dst, [2]uint64{uint64(x.HighBits()), x.LowBits()})
		}
		return dst
	case types.Interval:
		for _, x := range Intervals(a) {
			days, nanos := NormalInterval(x)
			dst = append(dst, [2]uint64{uint64(days) ^ signBit, uint64(nanos) ^ signBit})
		}
		return dst
	case types.UUID:
		raw := d.Buffers()[1].Bytes()[16*d.Offset():]
		for i := range n {
			dst = append(dst, [2]uint64{binary.BigEndian.Uint64(raw[16*i:]), binary.BigEndian.Uint64(raw[16*i+8:])})
		}
		return dst
	}
	panic(errs.Bug("rowkey", "type %s has no form of two words", t)) // AIDEV-NOTE: panics when called for another width
}

// Intervals are the values of a column of them.
func Intervals(a arrow.Array) []arrow.MonthDayNanoInterval {
	d := a.Data()
	if d.Len() == 0 || d.Buffers()[1] == nil || d.Buffers()[1].Len() == 0 {
		return make([]arrow.MonthDayNanoInterval, d.Len())
	}
	return arrow.GetValues[arrow.MonthDayNanoInterval](d, 1)
}

// NormalInterval returns an interval as days, a month counting 30 of them as in DuckDB, and nanoseconds of less than a
// day, never negative: equal intervals, however written, are equal pairs, and pairs order as intervals do.
func NormalInterval(v arrow.MonthDayNanoInterval) (days, nanos int64) {
	days, nanos = v.Nanoseconds/nanosPerDay, v.Nanoseconds%nanosPerDay
	if nanos < 0 {
		days, nanos = days-1, nanos+nanosPerDay
	}
	return days + int64(v.Days) + 30*int64(v.Months), nanos
}

// intervalOf writes a normal pair as an interval, as DuckDB normalises: months of 30 days, days, and the rest.
func intervalOf(days, nanos int64) arrow.MonthDayNanoInterval {
	months := days / 30
	return arrow.MonthDayNanoInterval{Months: int32(months), Days: int32(days - 30*months), Nanoseconds: nanos}
}

// FromWords is the inverse of Words: an array over words and a validity bitmap (nil: no NULLs).
func FromWords(t types.Type, words []uint64, valid []byte) arrow.Array {
	n := len(words)
	var buf []byte
	switch width(t, Key{}) {
	case 1:
		if t.Kind == types.Boolean {
			buf = make([]byte, (n+7)/8)
			for i, w := range words {
				buf[i>>3] |= byte(w&1) << (i & 7)
			}
			break
		}
		buf = make([]byte, n)
		sign := signOf(t, 1<<7)
		for i, w := range words {
			buf[i] = byte(w ^ sign)
		}
	case 2:
		v := make([]uint16, n)
		sign := signOf(t, 1<<15)
		for i, w := range words {
			v[i] = uint16(w ^ sign)
		}
		buf = arrow.GetBytes(v)
	case 4:
		v := make([]uint32, n)
		sign := signOf(t, 1<<31)
		for i, w := range words {
			if v[i] = uint32(w ^ sign); t.Kind == types.Real {
				v[i] = math.Float32bits(wordFloat32(uint32(w)))
			}
		}
		buf = arrow.GetBytes(v)
	default:
		v := make([]uint64, n)
		sign := signOf(t, signBit)
		for i, w := range words {
			if v[i] = w ^ sign; t.Kind == types.Double {
				v[i] = math.Float64bits(WordFloat(w))
			}
		}
		buf = arrow.GetBytes(v)
	}
	return fromBytes(t, n, buf, valid)
}

// signOf is the bit that Words flips in a type.
func signOf(t types.Type, bit uint64) uint64 {
	switch t.Kind {
	case types.UTinyInt, types.USmallInt, types.UInteger, types.UBigInt:
		return 0
	}
	return bit
}

// FromWide is the inverse of Wide; an interval comes back in its normal form.
func FromWide(t types.Type, wide [][2]uint64, valid []byte) arrow.Array {
	var b [16]byte
	v := fixedDecoder(t, 16, len(wide))
	for i, w := range wide {
		binary.BigEndian.PutUint64(b[:], w[0])
		binary.BigEndian.PutUint64(b[8:], w[1])
		v.put(i, b[:])
	}
	return fromBytes(t, len(wide), v.bytes(), valid)
}

func fromBytes(t types.Type, n int, buf, valid []byte) arrow.Array {
	nulls, vb := 0, (*memory.Buffer)(nil)
	if valid != nil {
		nulls, vb = n-bitutil.CountSetBits(valid, 0, n), memory.NewBufferBytes(valid)
	}
	return array.MakeFromData(array.NewData(t.Arrow(), n, []*memory.Buffer{vb, memory.NewBufferBytes(buf)}, nil, nulls, 0))
}
