package iceberg

import (
	"encoding/binary"
	"fmt"
	"math/big"
	"math/bits"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/riverbed/riverbed/connectors/iceberg/meta"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/types"
)

// transform makes the values of a part of a partition from those of its column.
type transform struct {
	typ types.Type // of the values
	of  func(a arrow.Array) arrow.Array
	// shown is a value as it stands in the names of folders.
	shown func(v types.Value) string
}

var (
	partText      = regexp.MustCompile(`^\s*(?:(\w+)\s*(?:\[\s*(\d+)\s*\])?\s*\(\s*(?:(\d+)\s*,\s*)?(.+?)\s*(?:,\s*(\d+)\s*)?\)|(.+?))\s*$`)
	transformText = regexp.MustCompile(`^(\w+)(?:\[(\d+)\])?$`)
)

// partOf reads a part as the option partition_by has it: column, day(column), bucket(16, column), bucket[16](column).
func partOf(text string) (meta.PartitionField, error) {
	m := partText.FindStringSubmatch(text)
	if m == nil {
		return meta.PartitionField{}, errs.New(errs.Usage, "options", "connector 'iceberg': partition_by holds %q, which is no part of a partition", text).WithHint("write column, day(column), or bucket(16, column)")
	}
	if m[6] != "" {
		return meta.PartitionField{Column: m[6], Name: m[6], Transform: "identity"}, nil
	}
	name, width, column := strings.TrimSuffix(strings.ToLower(m[1]), "s"), m[2]+m[3]+m[5], m[4]
	out := meta.PartitionField{Column: column, Name: column + "_" + name, Transform: name}
	switch name {
	case "bucket", "truncate":
		if n, err := strconv.Atoi(width); err != nil || n <= 0 || n > 1<<30 {
			return out, errs.New(errs.Usage, "options", "connector 'iceberg': partition_by holds %q, and %s needs a number", text, name).WithHint("write %s(16, %s)", name, column)
		}
		out.Transform = name + "[" + width + "]"
		if out.Name = column + "_" + name; name == "truncate" {
			out.Name = column + "_trunc"
		}
	case "year", "month", "day", "hour":
	case "identity":
		out.Name = column
	default:
		return out, errs.New(errs.Usage, "options", "connector 'iceberg': partition_by holds %q, and there is no transform %q", text, name).
			WithHint("transforms are year, month, day, hour, bucket and truncate; a column by itself is taken as it is")
	}
	return out, nil
}

// transformOf finds a transform by Iceberg's word for it, for a column of a type.
func transformOf(word string, t types.Type) (transform, error) {
	m := transformText.FindStringSubmatch(word)
	if m == nil {
		return transform{}, noTransform(word, t)
	}
	width, _ := strconv.ParseInt(m[2], 10, 64)
	plain := func(v types.Value) string { return types.Format(v, t) }
	switch {
	case m[1] == "identity" && !t.IsNested() && !t.IsFloat():
		return transform{t, func(a arrow.Array) arrow.Array { return a }, plain}, nil
	case m[1] == "bucket" && hashes(t):
		return transform{types.Int32, func(a arrow.Array) arrow.Array { return buckets(a, uint32(width)) }, func(v types.Value) string { return fmt.Sprint(v) }}, nil
	case m[1] == "truncate" && truncates(t):
		return transform{t, func(a arrow.Array) arrow.Array { return truncated(a, width) }, plain}, nil
	}
	if micros, ok := perUnit[t.Kind]; ok {
		if unit, ok := timeUnits[m[1]]; ok && (t.Kind != types.Date || m[1] != "hour") {
			typ := types.Int32
			if m[1] == "day" {
				typ = types.Date32
			}
			return transform{typ, func(a arrow.Array) arrow.Array { return units(a, micros, unit.of, typ) }, unit.shown}, nil
		}
	}
	return transform{}, noTransform(word, t)
}

func noTransform(word string, t types.Type) error {
	return errs.New(errs.Unsupported, "open sink", "the transform %s of %s is not written", word, t).WithHint("partition the table by identity, bucket, truncate, year, month, day or hour of a column that has it")
}

// perUnit is how many microseconds a number of the type stands for.
var perUnit = map[types.Kind]int64{types.Date: 86_400_000_000, types.Timestamp: 1, types.TimestampTZ: 1}

type timeUnit struct {
	of    func(micros int64) int64 // since 1970
	shown func(v types.Value) string
}

var timeUnits = map[string]timeUnit{
	"year": {
		func(us int64) int64 { y, _ := yearMonth(us); return y - 1970 },
		func(v types.Value) string { return strconv.FormatInt(v.(int64)+1970, 10) }},
	"month": {
		func(us int64) int64 { y, m := yearMonth(us); return (y-1970)*12 + m - 1 },
		func(v types.Value) string {
			return fmt.Sprintf("%04d-%02d", types.FloorDiv(v.(int64), 12)+1970, v.(int64)-12*types.FloorDiv(v.(int64), 12)+1)
		}},
	"day": {
		func(us int64) int64 { return types.FloorDiv(us, 86_400_000_000) },
		func(v types.Value) string { return types.Format(v, types.Date32) }},
	"hour": {
		func(us int64) int64 { return types.FloorDiv(us, 3_600_000_000) },
		func(v types.Value) string {
			day := types.FloorDiv(v.(int64), 24)
			return fmt.Sprintf("%s-%02d", types.Format(day, types.Date32), v.(int64)-24*day)
		}},
}

func yearMonth(us int64) (y, m int64) {
	y, m, _ = types.CivilOf(types.FloorDiv(us, 86_400_000_000))
	return y, m
}

// units counts years, months, days or hours.
func units(a arrow.Array, micros int64, of func(int64) int64, t types.Type) arrow.Array {
	values := make([]int32, a.Len())
	nulls := make([]bool, a.Len())
	for i := range values {
		if nulls[i] = a.IsNull(i); nulls[i] {
			continue
		}
		switch x := a.(type) {
		case *array.Date32:
			values[i] = int32(of(int64(x.Value(i)) * micros))
		case *array.Timestamp:
			values[i] = int32(of(int64(x.Value(i)) * micros))
		}
	}
	return kernels.NewFixed(t.Arrow(), values, validityOf(nulls))
}

func validityOf(nulls []bool) []byte {
	bits := make([]byte, (len(nulls)+7)/8)
	for i, null := range nulls {
		if !null {
			bits[i/8] |= 1 << (i % 8)
		}
	}
	return bits
}

func hashes(t types.Type) bool {
	switch t.Kind {
	case types.Integer, types.BigInt, types.Decimal, types.Date, types.Time, types.Timestamp, types.TimestampTZ, types.Varchar, types.Blob, types.UUID:
		return true
	}
	return false
}

// buckets hashes values as the format prescribes.
func buckets(a arrow.Array, n uint32) arrow.Array {
	values := make([]int32, a.Len())
	nulls := make([]bool, a.Len())
	var buf [8]byte
	long := func(v int64) []byte { binary.LittleEndian.PutUint64(buf[:], uint64(v)); return buf[:] }
	for i := range values {
		if nulls[i] = a.IsNull(i); nulls[i] {
			continue
		}
		var b []byte
		switch x := a.(type) {
		case *array.Int32:
			b = long(int64(x.Value(i)))
		case *array.Int64:
			b = long(x.Value(i))
		case *array.Date32:
			b = long(int64(x.Value(i)))
		case *array.Time64:
			b = long(int64(x.Value(i)))
		case *array.Timestamp:
			b = long(int64(x.Value(i)))
		case *array.Decimal128:
			b = twosComplement(x.Value(i).BigInt())
		case *array.String:
			b = []byte(x.Value(i))
		case *array.Binary:
			b = x.Value(i)
		case *array.FixedSizeBinary:
			b = x.Value(i)
		}
		values[i] = int32((murmur3(b) & 0x7fffffff) % n)
	}
	return kernels.NewFixed(arrow.PrimitiveTypes.Int32, values, validityOf(nulls))
}

// twosComplement is a number in the fewest bytes, the highest first.
func twosComplement(v *big.Int) []byte {
	if v.Sign() >= 0 {
		b := v.Bytes()
		if len(b) == 0 || b[0]&0x80 != 0 {
			b = append([]byte{0}, b...)
		}
		return b
	}
	n := new(big.Int).Not(v).BitLen()/8 + 1
	return new(big.Int).Add(v, new(big.Int).Lsh(big.NewInt(1), uint(8*n))).FillBytes(make([]byte, n))
}

// murmur3 is the hash of 32 bits, with the seed 0.
func murmur3(b []byte) uint32 {
	const c1, c2 = 0xcc9e2d51, 0x1b873593
	var h uint32
	n := uint32(len(b))
	mix := func(k uint32) uint32 { return bits.RotateLeft32(k*c1, 15) * c2 }
	for ; len(b) >= 4; b = b[4:] {
		h = bits.RotateLeft32(h^mix(binary.LittleEndian.Uint32(b)), 13)*5 + 0xe6546b64
	}
	var k uint32
	for i := len(b) - 1; i >= 0; i-- {
		k = k<<8 | uint32(b[i])
	}
	if len(b) > 0 {
		h ^= mix(k)
	}
	h ^= n
	h = (h ^ h>>16) * 0x85ebca6b
	h = (h ^ h>>13) * 0xc2b2ae35
	return h ^ h>>16
}

func truncates(t types.Type) bool {
	switch t.Kind {
	case types.Integer, types.BigInt, types.Decimal, types.Varchar, types.Blob:
		return true
	}
	return false
}

// truncated cuts texts to a length, in characters, and numbers to multiples of one.
func truncated(a arrow.Array, width int64) arrow.Array {
	down := func(v int64) int64 { return v - ((v%width)+width)%width }
	b := array.NewBuilder(memory.DefaultAllocator, a.DataType())
	defer b.Release()
	for i := range a.Len() {
		if a.IsNull(i) {
			b.AppendNull()
			continue
		}
		switch x := a.(type) {
		case *array.Int32:
			b.(*array.Int32Builder).Append(int32(down(int64(x.Value(i)))))
		case *array.Int64:
			b.(*array.Int64Builder).Append(down(x.Value(i)))
		case *array.Decimal128:
			v, w := x.Value(i).BigInt(), big.NewInt(width)
			b.(*array.Decimal128Builder).Append(decimal128.FromBigInt(v.Sub(v, new(big.Int).Mod(v, w))))
		case *array.String:
			b.(*array.StringBuilder).Append(firstRunes(x.Value(i), width))
		case *array.Binary:
			v := x.Value(i)
			b.(*array.BinaryBuilder).Append(v[:min(int64(len(v)), width)])
		}
	}
	return b.NewArray()
}

func firstRunes(s string, n int64) string {
	at := 0
	for ; n > 0 && at < len(s); n-- {
		_, size := utf8.DecodeRuneInString(s[at:])
		at += size
	}
	return s[:at]
}
