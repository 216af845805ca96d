package kernels

import (
	"math"
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/zeebo/xxh3"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/rowkey"
)

// HashVersion names the hash below. Key groups of stored state depend on it: the function is frozen, a golden test
// keeps it, and another function needs another version and a migration.
const HashVersion = 1

// KeyGroups is the number of hash partitions of keyed state.
const KeyGroups = 256

// KeyGroup is the key group of a row with this hash of its key.
func KeyGroup(hash uint64) int { return int(hash & (KeyGroups - 1)) }

const (
	hashSeed  = 0x243F6A8885A308D3 // digits of pi
	hashMul   = 0x9E3779B97F4A7C15 // 2^64 / golden ratio
	hashNull  = 0x13198A2E03707344
	hashLevel = 0xA4093822299F31D1
)

// mix folds a word into a hash: the halves of the 128-bit product carry every bit of h and v into every bit.
func mix(h, v uint64) uint64 {
	hi, lo := bits.Mul64(h^v, hashMul)
	h = hi ^ lo
	return h ^ h>>32
}

// HashColumns sets out[i] to the hash of row i of the columns, by SQL equality: equal rows have equal hashes. NULL equals
// NULL, all NaNs are one value, -0.0 is 0.0, numbers of one value hash alike in integers of every width and in FLOAT and
// DOUBLE each, DECIMALs by their unscaled integer, intervals by their normal form ('30 days' is '1 month'), and lists,
// structs and maps by their parts.
func HashColumns(cols []arrow.Array, n int, out []uint64) {
	out = out[:n]
	for i := range out {
		out[i] = hashSeed
	}
	for _, c := range cols {
		hashInto(c.Data(), out)
	}
}

// hashInto mixes one column into the hashes of its rows.
func hashInto(d arrow.ArrayData, out []uint64) {
	dt := d.DataType()
	if dt.ID() == arrow.NULL {
		for i, h := range out {
			out[i] = mix(h, hashNull)
		}
		return
	}
	valid := dataValid(d)
	switch t := dt.(type) {
	case *arrow.BooleanType:
		vals := dataBits(d)
		hashEach(out, valid, func(i int) uint64 { return uint64(vals[i>>3] >> (i & 7) & 1) })
	case *arrow.Int8Type:
		hashInts(fixed[int8](d), out, valid)
	case *arrow.Int16Type:
		hashInts(fixed[int16](d), out, valid)
	case *arrow.Int32Type, *arrow.Date32Type:
		hashInts(fixed[int32](d), out, valid)
	case *arrow.Int64Type, *arrow.TimestampType, *arrow.Time64Type, *arrow.DurationType:
		hashInts(fixed[int64](d), out, valid)
	case *arrow.Uint8Type:
		hashInts(fixed[uint8](d), out, valid)
	case *arrow.Uint16Type:
		hashInts(fixed[uint16](d), out, valid)
	case *arrow.Uint32Type:
		hashInts(fixed[uint32](d), out, valid)
	case *arrow.Uint64Type:
		hashInts(fixed[uint64](d), out, valid)
	case *arrow.Float32Type:
		v := fixed[float32](d)
		hashEach(out, valid, func(i int) uint64 { return CanonicalFloat(float64(v[i])) })
	case *arrow.Float64Type:
		v := fixed[float64](d)
		hashEach(out, valid, func(i int) uint64 { return CanonicalFloat(v[i]) })
	case *arrow.Decimal128Type:
		v := fixed[[2]uint64](d) // low, high
		hashEach(out, valid, func(i int) uint64 {
			lo, hi := v[i][0], v[i][1]
			if hi == uint64(int64(lo)>>63) {
				return lo // as the integer of that value
			}
			return mix(mix(hashLevel, lo), hi)
		})
	case *arrow.MonthDayNanoIntervalType:
		v := fixed[arrow.MonthDayNanoInterval](d)
		hashEach(out, valid, func(i int) uint64 {
			days, nanos := rowkey.NormalInterval(v[i])
			return mix(mix(hashLevel, uint64(days)), uint64(nanos))
		})
	case *arrow.FixedSizeBinaryType:
		var all []byte
		if b := d.Buffers()[1]; b != nil {
			all = b.Bytes()[d.Offset()*t.ByteWidth:]
		}
		hashEach(out, valid, func(i int) uint64 { return xxh3.Hash(all[i*t.ByteWidth : (i+1)*t.ByteWidth]) })
	case *arrow.StringType, *arrow.BinaryType:
		offs := spans(d)
		var all []byte
		if b := d.Buffers()[2]; b != nil {
			all = b.Bytes()
		}
		hashEach(out, valid, func(i int) uint64 { return xxh3.Hash(all[offs[i]:offs[i+1]]) })
	case *arrow.ListType, *arrow.MapType:
		hashLists(d, out, valid)
	case *arrow.StructType:
		inner := make([]uint64, len(out))
		for i := range inner {
			inner[i] = hashLevel
		}
		for _, c := range d.Children() {
			hashInto(array.NewSliceData(c, int64(d.Offset()), int64(d.Offset()+d.Len())), inner)
		}
		hashEach(out, valid, func(i int) uint64 { return inner[i] })
	default:
		panic(errs.Bug("kernels", "hash of %s", dt)) // AIDEV-NOTE: panics on an Arrow type that types.Type.Arrow never gives
	}
}

// hashLists hashes each list by its length and its elements in order. The elements are hashed once, as a column.
func hashLists(d arrow.ArrayData, out []uint64, valid []byte) {
	offs := spans(d)
	from, to := offs[0], offs[len(offs)-1]
	elems := make([]uint64, to-from)
	for i := range elems {
		elems[i] = hashSeed
	}
	hashInto(array.NewSliceData(d.Children()[0], int64(from), int64(to)), elems)
	hashEach(out, valid, func(i int) uint64 {
		h := mix(hashLevel, uint64(offs[i+1]-offs[i]))
		for _, e := range elems[offs[i]-from : offs[i+1]-from] {
			h = mix(h, e)
		}
		return h
	})
}

func hashInts[T int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64](v []T, out []uint64, valid []byte) {
	v = v[:len(out)]
	if valid == nil {
		for i, x := range v {
			out[i] = mix(out[i], uint64(int64(x)))
		}
		return
	}
	hashEach(out, valid, func(i int) uint64 { return uint64(int64(v[i])) })
}

func hashEach(out []uint64, valid []byte, word func(i int) uint64) {
	if valid == nil {
		for i, h := range out {
			out[i] = mix(h, word(i))
		}
		return
	}
	for i, h := range out {
		if valid[i>>3]>>(i&7)&1 != 0 {
			out[i] = mix(h, word(i))
		} else {
			out[i] = mix(h+hashNull, hashNull)
		}
	}
}

// canonicalNaN is the NaN that stands for all.
const canonicalNaN = 0x7FF8000000000000

// CanonicalFloat returns the bits of x with one NaN and one zero, so that equal floats have equal bits.
func CanonicalFloat(x float64) uint64 {
	if x != x {
		return canonicalNaN
	}
	return math.Float64bits(x + 0) // -0.0 + 0 is 0.0
}

// HashBytes hashes a string of bytes, for tables keyed by encoded rows.
func HashBytes(b []byte) uint64 { return xxh3.Hash(b) }

// HashWord hashes one word, for tables keyed by words.
func HashWord(x uint64) uint64 { return mix(hashSeed, x) }

// dataValid is Valid for array data.
func dataValid(d arrow.ArrayData) []byte {
	if b := d.Buffers()[0]; b != nil && b.Len() > 0 && d.NullN() != 0 {
		return AlignBits(b.Bytes(), d.Offset(), d.Len())
	}
	return nil
}

func dataBits(d arrow.ArrayData) []byte {
	if b := d.Buffers()[1]; b != nil && b.Len() > 0 {
		return AlignBits(b.Bytes(), d.Offset(), d.Len())
	}
	return make([]byte, BitBytes(d.Len()))
}
