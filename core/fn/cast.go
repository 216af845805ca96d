package fn

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/types"
)

// tryCast is Call.Data of TRY_CAST: an element of a list that cannot be cast is NULL, and the list stays.
type tryCast struct{}

// TryCast tells the kernels of CastFor that they run under TRY_CAST.
var TryCast = tryCast{}

// CastFor returns the kernel that casts one type to another, under NullIfAnyNull. fallible says whether a row may fail; ok
// whether there is such a cast.
func CastFor(from, to types.Type) (k Kernel, fallible, ok bool) {
	switch {
	case from.Equal(to), from.Kind == types.JSON && to.Kind == types.Varchar:
		return identity, false, true
	case from.Kind == types.Null:
		return func(c *Call) (arrow.Array, error) { return kernels.Nulls(c.Ret.Arrow(), c.N), nil }, false, true
	case from.Kind == types.JSON:
		return fromJSON, true, true
	case to.Kind == types.JSON:
		if from.Kind == types.Varchar {
			return checkJSON, true, true
		}
		return toJSON, false, true
	case to.Kind == types.Varchar:
		return toText, false, true
	case from.Kind == types.Varchar:
		return fromText(to), true, true
	case from.IsNumeric() || from.Kind == types.Boolean:
		return castNumber(from, to)
	case from.IsTemporal():
		return castTime(from, to)
	case from.Kind == types.UUID && to.Kind == types.Blob:
		return uuidToBlob, false, true
	case from.Kind == types.Blob && to.Kind == types.UUID:
		return blobToUUID, true, true
	case from.IsNested() && from.Kind == to.Kind:
		return castNested(from, to)
	}
	return nil, false, false
}

// CastReadsZone reports whether a cast depends on the session's time zone.
func CastReadsZone(from, to types.Type) bool {
	has := func(t types.Type) bool { return mentions(t, types.TimestampTZ) }
	return !from.Equal(to) && (has(from) || has(to)) && from.Kind != types.Null
}

func mentions(t types.Type, k types.Kind) bool {
	return t.Kind == k || t.Elem != nil && mentions(*t.Elem, k) || t.Key != nil && mentions(*t.Key, k) ||
		slices.ContainsFunc(t.Fields, func(f types.Field) bool { return mentions(f.Type, k) })
}

func identity(c *Call) (arrow.Array, error) { return c.Args[0].Array, nil }

// relabel shares the buffers of a type with the same layout.
func relabel(c *Call) (arrow.Array, error) {
	return kernels.Relabel(c.Args[0].Array, c.Ret.Arrow()), nil
}

// castFail is the error of a value that the target cannot hold.
func castFail[T any](c *Call, i int, v T) {
	c.Fail(i, errs.New(errs.Data, "evaluate", "%s value %s is out of range for %s", c.Types[0], show(v, c.Types[0]), c.Ret).
		WithHint("TRY_CAST gives NULL instead"))
}

// castNumber casts numbers and booleans among themselves.
func castNumber(from, to types.Type) (Kernel, bool, bool) {
	switch {
	case !to.IsNumeric() && to.Kind != types.Boolean:
		return nil, false, false
	case from.Kind == types.Boolean:
		return boolToNumber, true, true
	case to.Kind == types.Boolean:
		return numberToBool, false, true
	case from.Kind == types.Decimal && to.Kind == types.Decimal:
		grows := to.Scale >= from.Scale && to.Width-to.Scale >= from.Width-from.Scale
		if grows && from.Scale == to.Scale {
			return relabel, false, true
		}
		return castDecimal, !grows, true
	}
	return numberToNumber, !neverFails(from, to), true
}

// neverFails reports whether the target holds every value of the source.
func neverFails(from, to types.Type) bool {
	switch {
	case to.Kind == types.Double, to.Kind == types.Real && from.Kind != types.Double:
		return true
	case from.IsInteger() && to.Kind == types.Decimal:
		return from.Kind != types.HugeInt && from.Kind != types.UHugeInt && types.DecimalOf(from).Width+to.Scale <= to.Width
	case from.IsInteger() && to.IsInteger():
		t, ok := types.Common(from, to)
		return ok && t.Equal(to) && to.Kind != types.UHugeInt && from.Kind != types.UHugeInt
	}
	return false
}

func numberToNumber(c *Call) (arrow.Array, error) {
	from, to := c.Types[0], c.Ret
	switch {
	case from.Kind == types.Double || from.Kind == types.Real:
		return fromFloat(c, to)
	case from.Kind == types.Decimal || from.Kind == types.HugeInt || from.Kind == types.UHugeInt:
		return fromWide(c, to)
	case from.Kind == types.UBigInt:
		return fromSmall(c, kernels.Values[uint64](c.Args[0].Array), to)
	case from.Kind == types.BigInt:
		return fromSmall(c, kernels.Values[int64](c.Args[0].Array), to)
	case from.Kind == types.Integer:
		return fromSmall(c, kernels.Values[int32](c.Args[0].Array), to)
	case from.Kind == types.UInteger:
		return fromSmall(c, kernels.Values[uint32](c.Args[0].Array), to)
	case from.Kind == types.SmallInt:
		return fromSmall(c, kernels.Values[int16](c.Args[0].Array), to)
	case from.Kind == types.USmallInt:
		return fromSmall(c, kernels.Values[uint16](c.Args[0].Array), to)
	case from.Kind == types.UTinyInt:
		return fromSmall(c, kernels.Values[uint8](c.Args[0].Array), to)
	}
	return fromSmall(c, kernels.Values[int8](c.Args[0].Array), to)
}

// fromSmall casts integers of up to 64 bits.
func fromSmall[F kernels.Integer](c *Call, v []F, to types.Type) (arrow.Array, error) {
	switch to.Kind {
	case types.TinyInt:
		return narrow[F, int8](c, v)
	case types.SmallInt:
		return narrow[F, int16](c, v)
	case types.Integer:
		return narrow[F, int32](c, v)
	case types.BigInt:
		return narrow[F, int64](c, v)
	case types.UTinyInt:
		return narrow[F, uint8](c, v)
	case types.USmallInt:
		return narrow[F, uint16](c, v)
	case types.UInteger:
		return narrow[F, uint32](c, v)
	case types.UBigInt:
		return narrow[F, uint64](c, v)
	case types.Real:
		out := make([]float32, len(v))
		kernels.Widen(out, v)
		return kernels.NewFixed(to.Arrow(), out, nil), nil
	case types.Double:
		out := make([]float64, len(v))
		kernels.Widen(out, v)
		return kernels.NewFixed(to.Arrow(), out, nil), nil
	}
	wide := func(x F) decimal128.Num {
		if x < 0 {
			return types.Wide(int64(x))
		}
		return decimal128.New(0, uint64(x))
	}
	if to.Kind != types.Decimal {
		return fixed(c, func(i int) decimal128.Num {
			if to.Kind == types.UHugeInt && v[i] < 0 {
				castFail(c, i, v[i])
			}
			return wide(v[i])
		})
	}
	safe := neverFails(c.Types[0], to)
	power := types.Pow10(int(to.Scale))
	return fixed(c, func(i int) decimal128.Num {
		n, ok := types.MulWide(wide(v[i]), power)
		if !safe && (!ok || !types.FitsWidth(n, int(to.Width))) {
			castFail(c, i, v[i])
		}
		return n
	})
}

func narrow[F, T kernels.Integer](c *Call, v []F) (arrow.Array, error) {
	out := make([]T, len(v))
	if kernels.Narrow(out, v) {
		for i, x := range v {
			if kernels.Narrow(make([]T, 1), []F{x}) {
				castFail(c, i, x)
			}
		}
	}
	return kernels.NewFixed(c.Ret.Arrow(), out, nil), nil
}

// fromFloat casts REAL and DOUBLE. To integers it rounds half to even, to DECIMAL half away from zero.
func fromFloat(c *Call, to types.Type) (arrow.Array, error) {
	var v []float64
	if c.Types[0].Kind == types.Double {
		v = kernels.Values[float64](c.Args[0].Array)
	} else {
		f := kernels.Values[float32](c.Args[0].Array)
		v = make([]float64, len(f))
		kernels.Widen(v, f)
	}
	bad := func(i int) {
		if c.Types[0].Kind == types.Real {
			castFail(c, i, float32(v[i]))
		} else {
			castFail(c, i, v[i])
		}
	}
	switch to.Kind {
	case types.Double:
		return kernels.NewFixed(to.Arrow(), v, nil), nil
	case types.Real:
		return fixed(c, func(i int) float32 {
			f := float32(v[i])
			if math.IsInf(float64(f), 0) && !math.IsInf(v[i], 0) {
				bad(i)
			}
			return f
		})
	case types.TinyInt:
		return floatToInt[int8](c, v, -0x1p7, 0x1p7, bad)
	case types.SmallInt:
		return floatToInt[int16](c, v, -0x1p15, 0x1p15, bad)
	case types.Integer:
		return floatToInt[int32](c, v, -0x1p31, 0x1p31, bad)
	case types.BigInt:
		return floatToInt[int64](c, v, -0x1p63, 0x1p63, bad)
	case types.UTinyInt:
		return floatToInt[uint8](c, v, 0, 0x1p8, bad)
	case types.USmallInt:
		return floatToInt[uint16](c, v, 0, 0x1p16, bad)
	case types.UInteger:
		return floatToInt[uint32](c, v, 0, 0x1p32, bad)
	case types.UBigInt:
		return floatToInt[uint64](c, v, 0, 0x1p64, bad)
	case types.Decimal:
		power := types.WideToFloat(types.Pow10(int(to.Scale)), 0)
		return fixed(c, func(i int) decimal128.Num {
			n, ok := types.FloatToWide(math.Round(v[i]*power), false)
			if !ok || !types.FitsWidth(n, int(to.Width)) {
				bad(i)
			}
			return n
		})
	}
	return fixed(c, func(i int) decimal128.Num {
		n, ok := types.FloatToWide(math.RoundToEven(v[i]), to.Kind == types.UHugeInt)
		if !ok {
			bad(i)
		}
		return n
	})
}

func floatToInt[T kernels.Integer](c *Call, v []float64, lo, hi float64, bad func(int)) (arrow.Array, error) {
	return fixed(c, func(i int) T {
		f := math.RoundToEven(v[i])
		if !(f >= lo && f < hi) {
			bad(i)
			return 0
		}
		return T(f)
	})
}

// fromWide casts HUGEINT, UHUGEINT and DECIMAL.
func fromWide(c *Call, to types.Type) (arrow.Array, error) {
	v := kernels.Values[decimal128.Num](c.Args[0].Array)
	from := c.Types[0]
	unsigned := from.Kind == types.UHugeInt
	toFloat := func(n decimal128.Num) float64 {
		if unsigned {
			return types.UWideToFloat(n)
		}
		return types.WideToFloat(n, int(from.Scale))
	}
	// whole is the value without its fraction, rounded half away from zero.
	whole := func(i int) decimal128.Num {
		n, _ := types.Rescale(v[i], int(from.Scale), 0)
		if unsigned && n.HighBits() < 0 && to.Kind != types.UHugeInt {
			castFail(c, i, v[i])
		}
		return n
	}
	switch to.Kind {
	case types.Double:
		return fixed(c, func(i int) float64 { return toFloat(v[i]) })
	case types.Real:
		return fixed(c, func(i int) float32 { return float32(toFloat(v[i])) })
	case types.TinyInt:
		return wideToInt[int8](c, v, whole, to.Kind)
	case types.SmallInt:
		return wideToInt[int16](c, v, whole, to.Kind)
	case types.Integer:
		return wideToInt[int32](c, v, whole, to.Kind)
	case types.BigInt:
		return wideToInt[int64](c, v, whole, to.Kind)
	case types.UTinyInt:
		return wideToInt[uint8](c, v, whole, to.Kind)
	case types.USmallInt:
		return wideToInt[uint16](c, v, whole, to.Kind)
	case types.UInteger:
		return wideToInt[uint32](c, v, whole, to.Kind)
	case types.UBigInt:
		return wideToInt[uint64](c, v, whole, to.Kind)
	case types.Decimal: // from a HUGEINT
		return fixed(c, func(i int) decimal128.Num {
			n, ok := types.Rescale(whole(i), 0, int(to.Scale))
			if !ok || !types.FitsWidth(n, int(to.Width)) {
				castFail(c, i, v[i])
			}
			return n
		})
	}
	return fixed(c, func(i int) decimal128.Num {
		n := whole(i)
		if to.Kind == types.UHugeInt && !unsigned && n.HighBits() < 0 {
			castFail(c, i, v[i])
		}
		return n
	})
}

func wideToInt[T kernels.Integer](c *Call, v []decimal128.Num, whole func(int) decimal128.Num, k types.Kind) (arrow.Array, error) {
	return fixed(c, func(i int) T {
		n := whole(i)
		if !types.FitsInt(n, k) {
			castFail(c, i, v[i])
		}
		return T(n.LowBits())
	})
}

func castDecimal(c *Call) (arrow.Array, error) {
	v := kernels.Values[decimal128.Num](c.Args[0].Array)
	from, to := int(c.Types[0].Scale), int(c.Ret.Scale)
	return fixed(c, func(i int) decimal128.Num {
		n, ok := types.Rescale(v[i], from, to)
		if !ok || !types.FitsWidth(n, int(c.Ret.Width)) {
			castFail(c, i, v[i])
		}
		return n
	})
}

func boolToNumber(c *Call) (arrow.Array, error) {
	b := boolCol(c, 0)
	num := func(i int) int64 {
		if b.at(i) {
			return 1
		}
		return 0
	}
	switch c.Ret.Kind {
	case types.TinyInt, types.UTinyInt:
		return fixed(c, func(i int) int8 { return int8(num(i)) })
	case types.SmallInt, types.USmallInt:
		return fixed(c, func(i int) int16 { return int16(num(i)) })
	case types.Integer, types.UInteger:
		return fixed(c, func(i int) int32 { return int32(num(i)) })
	case types.BigInt, types.UBigInt:
		return fixed(c, num)
	case types.Real:
		return fixed(c, func(i int) float32 { return float32(num(i)) })
	case types.Double:
		return fixed(c, func(i int) float64 { return float64(num(i)) })
	}
	return fixed(c, func(i int) decimal128.Num {
		n, _ := types.MulWide(types.Wide(num(i)), types.Pow10(int(c.Ret.Scale)))
		if !types.FitsWidth(n, max(int(c.Ret.Width), 1)) && c.Ret.Kind == types.Decimal {
			c.failf(i, "BOOLEAN value true is out of range for %s", c.Ret)
		}
		return n
	})
}

func numberToBool(c *Call) (arrow.Array, error) {
	zero := types.ArrayOf([]types.Value{zeroOf(c.Types[0])}, c.Types[0])
	differ := *c
	differ.Args = []Arg{c.Args[0], {Array: zero, Const: true}}
	differ.Types = Types{c.Types[0], c.Types[0]}
	differ.Ret = types.Bool
	return isNe.kernel(c.Types[0])(&differ)
}

func zeroOf(t types.Type) types.Value {
	switch {
	case t.Kind == types.Real:
		return float32(0)
	case t.Kind == types.Double:
		return float64(0)
	case t.Kind >= types.UTinyInt && t.Kind <= types.UBigInt:
		return uint64(0)
	case t.Kind >= types.TinyInt && t.Kind <= types.BigInt:
		return int64(0)
	}
	return decimal128.Num{}
}

// castTime casts dates, times and timestamps among themselves.
func castTime(from, to types.Type) (Kernel, bool, bool) {
	switch {
	case from.Kind == types.Date && to.IsTimestamp():
		return dateToTimestamp, true, true
	case from.IsTimestamp() && to.Kind == types.Date:
		return timestampToDate, false, true
	case from.IsTimestamp() && from.Kind != types.TimestampTZ && to.Kind == types.Time:
		return timestampToTime, false, true
	case from.IsTimestamp() && to.IsTimestamp():
		return timestampToTimestamp, types.UnitsPerSecond(to.Kind) > types.UnitsPerSecond(from.Kind), true
	}
	return nil, false, false
}

func dateToTimestamp(c *Call) (arrow.Array, error) {
	v := col[int32](c, 0)
	per := types.UnitsPerSecond(c.Ret.Kind)
	return fixed(c, func(i int) int64 {
		us, ok := dateToMicros(v.at(i))
		if ok && !infiniteTS(us) {
			switch {
			case c.Ret.Kind == types.TimestampTZ:
				us = types.FromLocal(us, c.Env.TimeZone)
			case per < 1_000_000:
				us /= 1_000_000 / per
			case per > 1_000_000:
				us, ok = mul64(us, per/1_000_000)
			}
		}
		if !ok {
			castFail(c, i, int64(v.at(i)))
		}
		return us
	})
}

func timestampToDate(c *Call) (arrow.Array, error) {
	v := col[int64](c, 0)
	day := 86400 * types.UnitsPerSecond(c.Types[0].Kind)
	zoned := c.Types[0].Kind == types.TimestampTZ
	return fixed(c, func(i int) int32 {
		t := v.at(i)
		switch {
		case t == types.InfinityTS:
			return types.InfinityDate
		case t == -types.InfinityTS:
			return -types.InfinityDate
		case zoned:
			t = types.ToLocal(t, c.Env.TimeZone)
		}
		return int32(types.FloorDiv(t, day))
	})
}

func timestampToTime(c *Call) (arrow.Array, error) {
	v := col[int64](c, 0)
	per := types.UnitsPerSecond(c.Types[0].Kind)
	day := 86400 * per
	return fixed(c, func(i int) int64 {
		t := v.at(i)
		t -= types.FloorDiv(t, day) * day
		if per > 1_000_000 {
			return t / (per / 1_000_000)
		}
		return t * (1_000_000 / per)
	})
}

func timestampToTimestamp(c *Call) (arrow.Array, error) {
	v := col[int64](c, 0)
	from, to := types.UnitsPerSecond(c.Types[0].Kind), types.UnitsPerSecond(c.Ret.Kind)
	into, out := c.Ret.Kind == types.TimestampTZ, c.Types[0].Kind == types.TimestampTZ
	zone := c.Env.TimeZone
	if zone == nil && from == to {
		return relabel(c)
	}
	if zone == nil && to > from {
		return fixed(c, func(i int) int64 { // no zone and more digits: one multiplication
			t := v.at(i)
			if infiniteTS(t) {
				return t
			}
			us, ok := mul64(t, to/from)
			if !ok {
				castFail(c, i, t)
			}
			return us
		})
	}
	return fixed(c, func(i int) int64 {
		t := v.at(i)
		if infiniteTS(t) {
			return t
		}
		if out {
			t = types.ToLocal(t, zone)
		}
		ok := true
		if to >= from {
			t, ok = mul64(t, to/from)
		} else {
			t = types.RoundUnits(t, from/to)
		}
		if into {
			t = types.FromLocal(t, zone)
		}
		if !ok {
			castFail(c, i, v.at(i))
		}
		return t
	})
}

// toText writes values as text.
func toText(c *Call) (arrow.Array, error) {
	t := c.Types[0]
	switch t.Kind {
	case types.BigInt:
		return intToText[int64](c)
	case types.Integer:
		return intToText[int32](c)
	case types.SmallInt:
		return intToText[int16](c)
	case types.TinyInt:
		return intToText[int8](c)
	case types.UTinyInt:
		return uintToText[uint8](c)
	case types.USmallInt:
		return uintToText[uint16](c)
	case types.UInteger:
		return uintToText[uint32](c)
	case types.UBigInt:
		return uintToText[uint64](c)
	case types.Double:
		v := col[float64](c, 0)
		return texts(c, func(dst []byte, i int) []byte { return types.AppendFloat(dst, v.at(i), 64) })
	case types.Real:
		v := col[float32](c, 0)
		return texts(c, func(dst []byte, i int) []byte { return types.AppendFloat(dst, float64(v.at(i)), 32) })
	case types.Decimal, types.HugeInt:
		v := col[decimal128.Num](c, 0)
		return texts(c, func(dst []byte, i int) []byte { return types.AppendDecimal(dst, v.at(i), t) })
	case types.Date:
		v := col[int32](c, 0)
		return texts(c, func(dst []byte, i int) []byte { return types.AppendDate(dst, int64(v.at(i))) })
	case types.TimestampS, types.TimestampMS, types.Timestamp, types.TimestampNS, types.TimestampTZ:
		v := col[int64](c, 0)
		return texts(c, func(dst []byte, i int) []byte { return types.AppendTimestamp(dst, v.at(i), t.Kind, c.Env.TimeZone) })
	case types.Blob:
		v := textCol(c, 0)
		return texts(c, func(dst []byte, i int) []byte { return types.AppendBlob(dst, v.at(i)) })
	}
	return texts(c, func(dst []byte, i int) []byte { return types.AppendText(dst, valueAt(c, 0, i), t, c.Env.TimeZone) })
}

func intToText[T int8 | int16 | int32 | int64](c *Call) (arrow.Array, error) {
	v := col[T](c, 0)
	return texts(c, func(dst []byte, i int) []byte { return strconv.AppendInt(dst, int64(v.at(i)), 10) })
}

func uintToText[T uint8 | uint16 | uint32 | uint64](c *Call) (arrow.Array, error) {
	v := col[T](c, 0)
	return texts(c, func(dst []byte, i int) []byte { return strconv.AppendUint(dst, uint64(v.at(i)), 10) })
}

// fromText reads values from text.
func fromText(to types.Type) Kernel {
	switch to.Kind {
	case types.BigInt:
		return textToInt[int64]
	case types.Integer:
		return textToInt[int32]
	case types.SmallInt:
		return textToInt[int16]
	case types.TinyInt:
		return textToInt[int8]
	case types.Double:
		return func(c *Call) (arrow.Array, error) {
			return readText(c, func(s string) (float64, bool) { return types.ParseFloat(s, 64) })
		}
	case types.Decimal:
		return func(c *Call) (arrow.Array, error) {
			return readText(c, func(s string) (decimal128.Num, bool) { return types.ParseDecimal(s, int(to.Width), int(to.Scale)) })
		}
	case types.Boolean:
		return func(c *Call) (arrow.Array, error) {
			s := textCol(c, 0)
			return bools(c, func(i int) bool {
				v, ok := types.ParseBool(s.str(i))
				if !ok {
					c.Fail(i, types.Unreadable(s.str(i), to))
				}
				return v
			})
		}
	case types.Date:
		return func(c *Call) (arrow.Array, error) {
			return parseText(c, func(v types.Value) int32 { return int32(v.(int64)) })
		}
	case types.TimestampS, types.TimestampMS, types.Timestamp, types.TimestampNS, types.TimestampTZ, types.Time:
		return func(c *Call) (arrow.Array, error) {
			return parseText(c, func(v types.Value) int64 { return v.(int64) })
		}
	}
	return func(c *Call) (arrow.Array, error) {
		s := textCol(c, 0)
		return values(c, func(i int) types.Value {
			v, err := types.ParseValueIn(s.str(i), to, c.Env.TimeZone)
			if err != nil {
				c.Fail(i, err)
			}
			return v
		})
	}
}

func textToInt[T int8 | int16 | int32 | int64](c *Call) (arrow.Array, error) {
	return readText(c, func(s string) (T, bool) {
		v, ok := types.ParseInt(s)
		return T(v), ok && int64(T(v)) == v
	})
}

func readText[T any](c *Call, parse func(string) (T, bool)) (arrow.Array, error) {
	s := c.Args[0].Array.(*array.String)
	mask := maskOf(c.Args[0])
	return fixed(c, func(i int) T {
		text := s.Value(i & mask)
		v, ok := parse(text)
		if !ok {
			c.Fail(i, types.Unreadable(text, c.Ret))
		}
		return v
	})
}

func parseText[T any](c *Call, take func(types.Value) T) (arrow.Array, error) {
	s := c.Args[0].Array.(*array.String)
	mask := maskOf(c.Args[0])
	return fixed(c, func(i int) (out T) {
		v, err := types.ParseValueIn(s.Value(i&mask), c.Ret, c.Env.TimeZone)
		if err != nil {
			c.Fail(i, err)
			return out
		}
		return take(v)
	})
}

func uuidToBlob(c *Call) (arrow.Array, error) {
	v := col[[16]byte](c, 0)
	return texts(c, func(dst []byte, i int) []byte { u := v.at(i); return append(dst, u[:]...) })
}

func blobToUUID(c *Call) (arrow.Array, error) {
	v := textCol(c, 0)
	return fixed(c, func(i int) (u [16]byte) {
		if copy(u[:], v.at(i)) != 16 || len(v.at(i)) != 16 {
			c.failf(i, "a BLOB of %d bytes is no UUID", len(v.at(i)))
		}
		return u
	})
}

// castNested casts the parts of a list, struct or map. A part that fails makes its row fail, except under TRY_CAST.
func castNested(from, to types.Type) (Kernel, bool, bool) {
	switch from.Kind {
	case types.List:
		k, fallible, ok := CastFor(*from.Elem, *to.Elem)
		return castList([]partCast{{k, *from.Elem, *to.Elem, 0}}), fallible, ok
	case types.Map:
		k1, f1, ok1 := CastFor(*from.Key, *to.Key)
		k2, f2, ok2 := CastFor(*from.Elem, *to.Elem)
		return castMap(partCast{k1, *from.Key, *to.Key, 0}, partCast{k2, *from.Elem, *to.Elem, 1}), f1 || f2, ok1 && ok2
	}
	parts := make([]partCast, len(to.Fields))
	any, fallible := false, false
	for i, f := range to.Fields {
		at := slices.IndexFunc(from.Fields, func(g types.Field) bool { return strings.EqualFold(f.Name, g.Name) })
		if (from.IsTuple() || to.IsTuple()) && len(from.Fields) == len(to.Fields) {
			at = i // a row value has no names
		}
		if at < 0 {
			parts[i] = partCast{to: f.Type, at: -1}
			continue
		}
		k, fail, ok := CastFor(from.Fields[at].Type, f.Type)
		if !ok {
			return nil, false, false
		}
		any, fallible = true, fallible || fail
		parts[i] = partCast{k, from.Fields[at].Type, f.Type, at}
	}
	return castStruct(parts), fallible, any
}

// partCast casts child `at` of a nested array.
type partCast struct {
	kernel   Kernel
	from, to types.Type
	at       int
}

func (p partCast) run(c *Call, child arrow.Array) (arrow.Array, []RowError, error) {
	if p.at < 0 {
		return kernels.Nulls(p.to.Arrow(), child.Len()), nil, nil
	}
	sub := &Call{Env: c.Env, N: child.Len(), Args: []Arg{{Array: child}}, Types: Types{p.from}, Ret: p.to, Data: c.Data}
	return sub.Run(p.kernel, NullIfAnyNull)
}

// failParents makes the rows fail whose elements did.
func failParents(c *Call, offs []int32, failed []RowError) {
	if len(failed) == 0 || c.Data == TryCast {
		return
	}
	at := make(map[int]error, len(failed))
	for _, f := range failed {
		at[f.Row] = f.Err
	}
	for i := range len(offs) - 1 {
		for j := offs[i]; j < offs[i+1]; j++ {
			if err := at[int(j)]; err != nil {
				c.Fail(i, err)
				break
			}
		}
	}
}

// listOffsets are the n+1 offsets of a list or map, the array's own offset applied.
func listOffsets(a arrow.Array) []int32 {
	d := a.Data()
	if d.Len() == 0 || d.Buffers()[1] == nil {
		return make([]int32, d.Len()+1)
	}
	return arrow.GetData[int32](d.Buffers()[1].Bytes())[d.Offset() : d.Offset()+d.Len()+1]
}

func castList(parts []partCast) Kernel {
	return func(c *Call) (arrow.Array, error) {
		d := c.Args[0].Array.Data()
		child := array.MakeFromData(d.Children()[0])
		out, failed, err := parts[0].run(c, child)
		if err != nil {
			return nil, err
		}
		failParents(c, listOffsets(c.Args[0].Array), failed)
		return array.MakeFromData(array.NewData(c.Ret.Arrow(), d.Len(), d.Buffers(), []arrow.ArrayData{out.Data()}, d.NullN(), d.Offset())), nil
	}
}

func castMap(key, value partCast) Kernel {
	return func(c *Call) (arrow.Array, error) {
		d := c.Args[0].Array.Data()
		m := c.Args[0].Array.(*array.Map)
		keys, f1, err := key.run(c, m.Keys())
		if err != nil {
			return nil, err
		}
		items, f2, err := value.run(c, m.Items())
		if err != nil {
			return nil, err
		}
		failParents(c, listOffsets(m), append(f2, f1...))
		dt := c.Ret.Arrow().(*arrow.MapType)
		buffers, nulls := d.Buffers(), d.NullN()
		if len(f1) > 0 { // no key is NULL: under TRY_CAST the whole map is, as in DuckDB
			buffers, nulls = withoutMaps(m, f1)
			keys = withoutNulls(keys)
		}
		entries := array.NewData(dt.Elem(), keys.Len(), []*memory.Buffer{nil}, []arrow.ArrayData{keys.Data(), items.Data()}, 0, 0)
		return array.MakeFromData(array.NewData(dt, d.Len(), buffers, []arrow.ArrayData{entries}, nulls, d.Offset())), nil
	}
}

// withoutMaps are the buffers of a map array in which the maps with failed entries are NULL.
func withoutMaps(m *array.Map, failed []RowError) (buffers []*memory.Buffer, nulls int) {
	at := make(map[int32]bool, len(failed))
	for _, f := range failed {
		at[int32(f.Row)] = true
	}
	offs, from := listOffsets(m), m.Data().Offset()
	valid := make([]byte, (from+m.Len()+7)/8)
	for i := range m.Len() {
		ok := m.IsValid(i)
		for j := offs[i]; j < offs[i+1] && ok; j++ {
			ok = !at[j]
		}
		if ok {
			bitutil.SetBit(valid, from+i)
		} else {
			nulls++
		}
	}
	return append([]*memory.Buffer{memory.NewBufferBytes(valid)}, m.Data().Buffers()[1:]...), nulls
}

// withoutNulls shows what stands below the NULLs; nobody reads it.
func withoutNulls(a arrow.Array) arrow.Array {
	d := a.Data()
	buffers := append([]*memory.Buffer{nil}, d.Buffers()[1:]...)
	return array.MakeFromData(array.NewData(d.DataType(), d.Len(), buffers, d.Children(), 0, d.Offset()))
}

func castStruct(parts []partCast) Kernel {
	return func(c *Call) (arrow.Array, error) {
		s := c.Args[0].Array.(*array.Struct)
		children := make([]arrow.ArrayData, len(parts))
		for i, p := range parts {
			var child arrow.Array = s
			if p.at >= 0 {
				child = s.Field(p.at)
			}
			out, failed, err := p.run(c, child)
			if err != nil {
				return nil, err
			}
			if c.Data != TryCast {
				for _, f := range failed {
					c.Fail(f.Row, f.Err)
				}
			}
			children[i] = out.Data()
		}
		valid := kernels.Valid(s)
		buffers := []*memory.Buffer{nil}
		if valid != nil {
			buffers[0] = memory.NewBufferBytes(valid)
		}
		return array.MakeFromData(array.NewData(c.Ret.Arrow(), s.Len(), buffers, children, s.NullN(), 0)), nil
	}
}

// Try is TRY(x); the evaluator knows it, as rows that fail below it are its business.
var Try = &Scalar{Name: "try", Category: Conversion, Nulls: NullAware, Summary: "The value, or NULL where computing it fails.",
	Overloads: []Overload{{Args: Types{types.AnyType}, Resolve: func(args []types.Type, _ []types.Value) (Resolved, error) {
		return Resolved{Args: args, Returns: args[0], Kernel: identity}, nil
	}}},
	Examples: []Example{{SQL: "try(1 // 0)", Want: "NULL"}, {SQL: "try('12'::INTEGER)", Want: "12"}}}

func badType(name string, t types.Type) error {
	return errs.New(errs.Schema, "bind", "%s does not take %s", name, t)
}
