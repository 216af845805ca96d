package bind

import (
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/sql"
	"github.com/riverbed/riverbed/core/types"
)

// literal binds a constant with DuckDB's types: whole numbers are INTEGER, BIGINT, HUGEINT or UHUGEINT by size, 1.5 is
// DECIMAL(2,1), a number that is too long for them DOUBLE.
func literal(x *sql.Literal) *expr.Lit {
	switch x.Kind {
	case sql.LitNull:
		return &expr.Lit{T: types.NullType}
	case sql.LitBool:
		return &expr.Lit{V: x.Text == "true", T: types.Bool}
	case sql.LitInt:
		return number(x, false)
	case sql.LitDecimal:
		return number(x, false)
	case sql.LitDouble:
		return double(x.Text, x.Pos)
	case sql.LitBlob:
		return &expr.Lit{V: []byte(x.Text), T: types.Binary}
	}
	return &expr.Lit{V: x.Text, T: types.String}
}

// number binds a whole number or a decimal with its sign, because the smallest of each type has no positive twin.
func number(x *sql.Literal, negative bool) *expr.Lit {
	text := x.Text
	if negative {
		text = "-" + text
	}
	whole, fraction, isDecimal := strings.Cut(x.Text, ".")
	n, ok := new(big.Int).SetString(whole+fraction, 10)
	if !ok {
		return double(text, x.Pos)
	}
	if negative {
		n.Neg(n)
	}
	if isDecimal {
		width := len(whole) + len(fraction) // DuckDB counts leading zeros: 0.05 is DECIMAL(3,2)
		if width > 38 {
			return double(text, x.Pos)
		}
		return &expr.Lit{V: decimal128.FromBigInt(n), T: types.Dec(width, len(fraction))}
	}
	switch {
	case n.IsInt64() && int64(int32(n.Int64())) == n.Int64() && n.Int64() != math.MinInt32: // it is BIGINT in DuckDB
		return &expr.Lit{V: n.Int64(), T: types.Int32}
	case n.IsInt64():
		return &expr.Lit{V: n.Int64(), T: types.Int64}
	case n.BitLen() < 128:
		return &expr.Lit{V: decimal128.FromBigInt(n), T: types.Int128}
	case n.BitLen() == 128 && n.Sign() > 0:
		return &expr.Lit{V: wideBits(n), T: types.Uint128}
	case n.BitLen() == 128 && n.TrailingZeroBits() == 127: // the least HUGEINT
		return &expr.Lit{V: decimal128.New(math.MinInt64, 0), T: types.Int128}
	}
	return double(text, x.Pos)
}

// wideBits is a positive number of up to 128 bits, as UHUGEINT holds it.
func wideBits(n *big.Int) decimal128.Num {
	hi := new(big.Int).Rsh(n, 64)
	return decimal128.New(int64(hi.Uint64()), new(big.Int).And(n, new(big.Int).SetUint64(math.MaxUint64)).Uint64())
}

func double(text string, pos errs.Pos) *expr.Lit {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil && f == 0 {
		fail(pos, "%q is not a number", text)
	}
	return &expr.Lit{V: f, T: types.Float64}
}

// castNumber converts a number without evaluating anything: lists of a hundred thousand values are common. Nil
// leaves the cast to the evaluator.
func castNumber(l *expr.Lit, t types.Type) *expr.Lit {
	if l.T.Kind == types.Decimal && t.Kind == types.Decimal && t.Scale >= l.T.Scale {
		scaled := new(big.Int).Mul(l.V.(decimal128.Num).BigInt(), pow10(int(t.Scale-l.T.Scale)))
		if new(big.Int).Abs(scaled).Cmp(pow10(int(t.Width))) < 0 {
			return &expr.Lit{V: decimal128.FromBigInt(scaled), T: t}
		}
		return nil
	}
	n := whole(l)
	if n == nil {
		return nil
	}
	switch {
	case t.IsInteger():
		if v, ok := intValue(n, t); ok {
			return &expr.Lit{V: v, T: t}
		}
	case t.Kind == types.Decimal:
		scaled := new(big.Int).Mul(n, pow10(int(t.Scale)))
		if new(big.Int).Abs(scaled).Cmp(pow10(int(t.Width))) < 0 {
			return &expr.Lit{V: decimal128.FromBigInt(scaled), T: t}
		}
	case t.Kind == types.Double && n.BitLen() <= 53:
		return &expr.Lit{V: float64(n.Int64()), T: t}
	}
	return nil
}

// whole is the value of an integer constant, or of a decimal without a fraction; nil for others.
func whole(l *expr.Lit) *big.Int {
	switch v := l.V.(type) {
	case int64:
		if l.T.IsInteger() {
			return big.NewInt(v)
		}
	case uint64:
		return new(big.Int).SetUint64(v)
	case decimal128.Num:
		if l.T.Kind == types.UHugeInt && v.HighBits() < 0 {
			return nil
		}
		if l.T.Kind != types.Decimal {
			return v.BigInt()
		}
		q, r := new(big.Int).QuoRem(v.BigInt(), pow10(int(l.T.Scale)), new(big.Int))
		if r.Sign() == 0 {
			return q
		}
	}
	return nil
}

func pow10(n int) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil) }

// intValue is n as a value of an integer type, if it fits.
func intValue(n *big.Int, t types.Type) (types.Value, bool) {
	if n.BitLen() > 127 || !types.FitsInt(decimal128.FromBigInt(n), t.Kind) {
		return nil, false
	}
	switch t.Kind {
	case types.HugeInt, types.UHugeInt:
		return decimal128.FromBigInt(n), true
	case types.UTinyInt, types.USmallInt, types.UInteger, types.UBigInt:
		return n.Uint64(), true
	}
	return n.Int64(), true
}

// typeOf resolves a type as written.
func typeOf(t *sql.TypeName) types.Type {
	var out types.Type
	switch {
	case t.Name == "STRUCT":
		for _, f := range t.Fields {
			out.Fields = append(out.Fields, types.Field{Name: f.Name.Name, Type: typeOf(f.Type)})
		}
		out.Kind = types.Struct
	case t.Name == "MAP" && len(t.Params) == 2:
		out = types.MapOf(typeOf(t.Params[0]), typeOf(t.Params[1]))
	case t.Name == "LIST" && len(t.Params) == 1:
		out = types.ListOf(typeOf(t.Params[0]))
	case t.Name == "UNION":
		failUnsupported(t.Pos, "type UNION")
	default:
		var err error
		if out, err = types.ParseType(t.Name, t.Mods); err != nil {
			raise(err, t.Pos)
		}
	}
	for _, d := range t.Dims {
		if d != sql.ListDim {
			failUnsupported(t.Pos, "an ARRAY of fixed length")
		}
		out = types.ListOf(out)
	}
	return out
}

// Type resolves a type as written in a column definition.
func Type(t *sql.TypeName) (out types.Type, err error) {
	err = (&Binder{}).guard(func() { out = typeOf(t) })
	return out, err
}

// units maps the units of INTERVAL to the function that makes one of a number.
var units = map[string]string{"YEAR": "to_years", "MONTH": "to_months", "DAY": "to_days", "HOUR": "to_hours", "MINUTE": "to_minutes",
	"SECOND": "to_seconds", "MILLISECOND": "to_milliseconds", "MICROSECOND": "to_microseconds", "WEEK": "to_weeks", "QUARTER": "to_quarters",
	"DECADE": "to_decades", "CENTURY": "to_centuries", "MILLENNIUM": "to_millennia"}

// interval binds INTERVAL; of a constant it makes a constant.
func (e *env) interval(x *sql.Interval) expr.Expr {
	v := e.bind(x.Value)
	if l, ok := v.(*expr.Lit); ok && l.V != nil {
		text, isText := l.V.(string)
		if n := whole(l); n != nil {
			text, isText = n.String(), true
		}
		if isText {
			if x.Unit != "" {
				text = strings.TrimSpace(text) + " " + x.Unit
			}
			return e.cast(&expr.Lit{V: text, T: types.String}, types.Span, x.Pos)
		}
	}
	if x.Unit == "" {
		return e.cast(v, types.Span, x.Pos)
	}
	name := units[x.Unit]
	if name == "" {
		fail(x.Pos, "there is no interval unit %s", x.Unit)
	}
	return e.call(x.Pos, name, v)
}
