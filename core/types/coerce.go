package types

import (
	"math"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
)

// The coercion table. It follows DuckDB's: an implicit cast never loses what the value means, and what a
// literal may become is decided by its value (an integer literal fits the type beside it when its value does).

// targetCost ranks the types an argument may be cast to; the lesser is preferred.
func targetCost(t Type) int {
	switch t.Kind {
	case BigInt:
		return 101
	case Integer:
		return 102
	case HugeInt:
		return 103
	case Double:
		return 104
	case Decimal:
		return 105
	case TimestampNS:
		return 119
	case Timestamp:
		return 120
	case TimestampMS:
		return 121
	case TimestampS:
		return 122
	case Varchar:
		return 149
	case List, Struct, Map:
		return 160
	case Any:
		return 165
	}
	return 110
}

// widens lists, for each kind, the kinds it becomes without being asked.
var widens = map[Kind][]Kind{
	TinyInt:     {SmallInt, Integer, BigInt, HugeInt, Real, Double, Decimal},
	SmallInt:    {Integer, BigInt, HugeInt, Real, Double, Decimal},
	Integer:     {BigInt, HugeInt, Real, Double, Decimal},
	BigInt:      {HugeInt, Real, Double, Decimal},
	HugeInt:     {Real, Double, Decimal},
	UTinyInt:    {USmallInt, UInteger, UBigInt, SmallInt, Integer, BigInt, UHugeInt, HugeInt, Real, Double, Decimal},
	USmallInt:   {UInteger, UBigInt, Integer, BigInt, UHugeInt, HugeInt, Real, Double, Decimal},
	UInteger:    {UBigInt, BigInt, UHugeInt, HugeInt, Real, Double, Decimal},
	UBigInt:     {UHugeInt, HugeInt, Real, Double, Decimal},
	UHugeInt:    {Real, Double, Decimal},
	Real:        {Double},
	Decimal:     {Real, Double, Decimal},
	Date:        {TimestampS, TimestampMS, Timestamp, TimestampNS, TimestampTZ},
	TimestampS:  {TimestampMS, Timestamp, TimestampNS},
	TimestampMS: {Timestamp, TimestampNS},
	Timestamp:   {TimestampNS, TimestampTZ},
	TimestampNS: {Timestamp},
}

// ImplicitCost ranks the implicit cast from one type to another as DuckDB does: 0 for the same type, -1 when
// there is none. A DECIMAL target matches any width; the caller decides which.
func ImplicitCost(from, to Type) int {
	switch {
	case from.Equal(to):
		return 0
	case to.Kind == Any, from.Kind == Null:
		return targetCost(to)
	case from.Kind == Varchar && to.Kind == JSON, from.Kind == JSON && to.Kind == Varchar:
		return 1
	case from.Kind == Decimal && to.Kind == Decimal:
		if from.Width-from.Scale <= to.Width-to.Scale && from.Scale <= to.Scale || to.Width == 0 {
			return 0
		}
		return targetCost(to)
	}
	switch {
	case from.Kind == List && to.Kind == List:
		return ImplicitCost(*from.Elem, *to.Elem)
	case from.Kind == Map && to.Kind == Map:
		k, v := ImplicitCost(*from.Key, *to.Key), ImplicitCost(*from.Elem, *to.Elem)
		if k < 0 || v < 0 {
			return -1
		}
		return max(k, v)
	case from.Kind == Struct && to.Kind == Struct && len(from.Fields) == len(to.Fields):
		cost := 0
		for i := range from.Fields {
			c := ImplicitCost(from.Fields[i].Type, to.Fields[i].Type)
			if c < 0 {
				return -1
			}
			cost = max(cost, c)
		}
		return cost
	}
	for _, k := range widens[from.Kind] {
		if k == to.Kind {
			return targetCost(to)
		}
	}
	return -1
}

// LiteralCost is ImplicitCost for a constant argument: an integer literal takes any integer type its value
// fits, and a string literal takes any type. v is nil for what is not a constant.
func LiteralCost(from, to Type, v Value) int {
	switch {
	case IsStringLiteral(from, v):
		if to.Kind == Varchar {
			return 1
		}
		return 20
	case IsIntLiteral(from, v):
		if to.IsInteger() && FitsInt(v, to.Kind) {
			if to.Equal(from) {
				return 0
			}
			return targetCost(to) - 90
		}
	}
	return ImplicitCost(from, to)
}

// Meant is an integer constant of which the type was written: it is known, and it is no literal that adapts.
type Meant struct{ V Value }

// IsStringLiteral reports whether a constant of this type unifies with any type.
func IsStringLiteral(t Type, v Value) bool { _, ok := v.(string); return ok && t.Kind == Varchar }

// IsIntLiteral reports whether v, of type t, is typed as the parser types a whole number: the first of INTEGER, BIGINT,
// HUGEINT that holds it. A value that is Meant is none.
func IsIntLiteral(t Type, v Value) bool {
	switch x := v.(type) {
	case int64:
		return t.Kind == Integer || t.Kind == BigInt && int64(int32(x)) != x
	case decimal128.Num:
		return t.Kind == HugeInt && !fitsInt64(x)
	}
	return false
}

func fitsInt64(n decimal128.Num) bool { return n.HighBits() == int64(n.LowBits())>>63 }

// FitsInt reports whether an integer value (int64, uint64, or decimal128.Num as HUGEINT) fits a kind.
func FitsInt(v Value, k Kind) bool {
	var n decimal128.Num
	switch x := v.(type) {
	case int64:
		n = decimal128.FromI64(x)
	case uint64:
		n = decimal128.New(0, x)
	case decimal128.Num:
		n = x
	default:
		return false
	}
	switch k {
	case HugeInt:
		return true
	case UHugeInt:
		return n.HighBits() >= 0
	case UBigInt:
		return n.HighBits() == 0
	}
	lo, hi := IntRange(k)
	return fitsInt64(n) && int64(n.LowBits()) >= lo && int64(n.LowBits()) <= hi
}

// IntRange is the range of an integer kind of up to 63 bits.
func IntRange(k Kind) (lo, hi int64) {
	switch k {
	case TinyInt:
		return math.MinInt8, math.MaxInt8
	case SmallInt:
		return math.MinInt16, math.MaxInt16
	case Integer:
		return math.MinInt32, math.MaxInt32
	case BigInt:
		return math.MinInt64, math.MaxInt64
	case UTinyInt:
		return 0, math.MaxUint8
	case USmallInt:
		return 0, math.MaxUint16
	case UInteger:
		return 0, math.MaxUint32
	}
	return 0, -1
}

// intBits is the width of an integer kind.
func intBits(k Kind) int {
	switch k {
	case TinyInt, UTinyInt:
		return 8
	case SmallInt, USmallInt:
		return 16
	case Integer, UInteger:
		return 32
	case BigInt, UBigInt:
		return 64
	}
	return 128
}

var signedOf = map[int]Type{8: Int8, 16: Int16, 32: Int32, 64: Int64, 128: Int128}

// DecimalOf is the DECIMAL that holds every value of an integer type, up to 38 digits.
func DecimalOf(t Type) Type {
	switch t.Kind {
	case TinyInt, UTinyInt:
		return Dec(3, 0)
	case SmallInt, USmallInt:
		return Dec(5, 0)
	case Integer, UInteger:
		return Dec(10, 0)
	case BigInt:
		return Dec(19, 0)
	case UBigInt:
		return Dec(20, 0)
	case Decimal:
		return t
	}
	return Dec(38, 0)
}

// Common is the type to which both sides of CASE, UNION or a list are cast: DuckDB's maximum logical type.
// BOOLEAN joins the integers. Text joins nothing but text; a string literal does (CommonOf).
func Common(a, b Type) (Type, bool) {
	if a.Kind > b.Kind {
		a, b = b, a
	}
	switch {
	case a.Equal(b):
		return a, true
	case a.Kind == Null || a.Kind == Invalid:
		return b, true
	case b.Kind == JSON:
		return b, true
	case a.Kind == Boolean && b.IsInteger():
		return b, true
	case a.IsNumeric() && b.IsNumeric():
		return commonNumber(a, b), true
	case a.Kind == Date && b.IsTimestamp():
		return b, true
	case a.IsTimestamp() && b.IsTimestamp():
		if a.Kind == TimestampNS && b.Kind == TimestampTZ {
			return Type{}, false
		}
		return b, true
	case a.Kind == List && b.Kind == List:
		e, ok := Common(*a.Elem, *b.Elem)
		return ListOf(e), ok
	case a.Kind == Map && b.Kind == Map:
		k, ok := Common(*a.Key, *b.Key)
		v, ok2 := Common(*a.Elem, *b.Elem)
		return MapOf(k, v), ok && ok2
	case a.Kind == Struct && b.Kind == Struct && len(a.Fields) == len(b.Fields):
		fields := make([]Field, len(a.Fields))
		for i := range fields {
			t, ok := Common(a.Fields[i].Type, b.Fields[i].Type)
			if !ok {
				return Type{}, false
			}
			fields[i] = Field{a.Fields[i].Name, t}
			if a.IsTuple() {
				fields[i].Name = b.Fields[i].Name
			}
		}
		return StructOf(fields...), true
	}
	return Type{}, false
}

// commonNumber wants a.Kind <= b.Kind.
func commonNumber(a, b Type) Type {
	switch {
	case a.IsFloat() && b.IsFloat():
		return b
	case a.IsFloat():
		return a // beside a DECIMAL
	case b.IsFloat():
		return b
	case b.Kind == Decimal:
		x := DecimalOf(a)
		scale := max(x.Scale, b.Scale)
		return Dec(min(38, int(max(x.Width-x.Scale, b.Width-b.Scale))+int(scale)), int(scale))
	case a.IsSigned() == b.IsSigned():
		return b
	}
	// a is signed, b is not: the next signed type that holds b, or a when it does.
	w := intBits(b.Kind)
	if w == 128 {
		return Float64
	}
	return signedOf[max(intBits(a.Kind), 2*w)]
}

// CommonOf is Common for expressions of which av and bv are the constant values, nil for others. A string literal takes
// the other side's type, and an integer literal that fits the other side's integer type takes it.
func CommonOf(a Type, av Value, b Type, bv Value) (Type, bool) {
	switch {
	case IsStringLiteral(a, av) && b.Kind != Null:
		return b, true
	case IsStringLiteral(b, bv) && a.Kind != Null:
		return a, true
	case IsIntLiteral(a, av) && !IsIntLiteral(b, bv) && b.IsInteger() && FitsInt(av, b.Kind):
		return b, true
	case IsIntLiteral(b, bv) && !IsIntLiteral(a, av) && a.IsInteger() && FitsInt(bv, a.Kind):
		return a, true
	case IsIntLiteral(a, av) && b.Kind == Decimal:
		return commonNumber(literalDecimal(av), b), true
	case IsIntLiteral(b, bv) && a.Kind == Decimal:
		return commonNumber(literalDecimal(bv), a), true
	}
	return Common(a, b)
}

// literalDecimal is the narrowest DECIMAL of a whole literal. INTEGER literals count ten digits, as in DuckDB.
func literalDecimal(v Value) Type {
	if x, ok := v.(int64); ok {
		if int64(int32(x)) == x {
			return Dec(10, 0)
		}
		return Dec(19, 0)
	}
	return Dec(38, 0)
}

// Comparison is the type in which two values are compared. Beside text, the other side's type wins, so that
// '2024-01-01' is compared with a DATE as a date.
func Comparison(a Type, av Value, b Type, bv Value) (Type, bool) {
	if t, ok := CommonOf(a, av, b, bv); ok {
		return t, true
	}
	switch {
	case a.Kind == Varchar && !b.IsNested():
		return b, true
	case b.Kind == Varchar && !a.IsNested():
		return a, true
	case a.Kind == Boolean && b.IsNumeric(), b.Kind == Boolean && a.IsNumeric():
		return Bool, true
	}
	return Type{}, false
}

// CanCast reports whether CAST(from AS to) exists; it may still fail for a value.
func CanCast(from, to Type) bool {
	switch {
	case from.Kind == Null, from.Equal(to), to.Kind == Varchar, from.Kind == Varchar, from.Kind == JSON, to.Kind == JSON:
		return true
	case from.IsNumeric() || from.Kind == Boolean:
		return to.IsNumeric() || to.Kind == Boolean
	case from.Kind == Date:
		return to.IsTimestamp()
	case from.Kind == Time:
		return false
	case from.IsTimestamp():
		return to.IsTimestamp() || to.Kind == Date || to.Kind == Time && from.Kind != TimestampTZ
	case from.Kind == UUID:
		return to.Kind == Blob
	case from.Kind == Blob:
		return to.Kind == UUID
	case from.Kind == List && to.Kind == List:
		return CanCast(*from.Elem, *to.Elem)
	case from.Kind == Map && to.Kind == Map:
		return CanCast(*from.Key, *to.Key) && CanCast(*from.Elem, *to.Elem)
	case byPosition(from, to):
		for i := range to.Fields {
			if !CanCast(from.Fields[i].Type, to.Fields[i].Type) {
				return false
			}
		}
		return true
	case from.Kind == Struct && to.Kind == Struct: // by name; what the source lacks is NULL
		matched := false
		for _, f := range to.Fields {
			for _, g := range from.Fields {
				if !strings.EqualFold(f.Name, g.Name) {
					continue
				}
				if matched = CanCast(g.Type, f.Type); !matched {
					return false
				}
			}
		}
		return matched
	}
	return false
}
