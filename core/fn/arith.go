package fn

import (
	"math"
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/types"
)

// arithmetic is + - * / // % and ^, for numbers; dates and intervals add their overloads in arith_time.go.
var arithmetic = []*Scalar{
	{Name: "+", Category: Math, Operator: true, Summary: "Add numbers, or move a date or time by an interval.", Aliases: []string{"add"},
		Overloads: join(unary(false), integerOps(addInts[int8], addInts[int16], addInts[int32], addInts[int64], addInts[uint8], addInts[uint16], addInts[uint32], addInts[uint64], wideAdd, uwide(addUWide)),
			floatOps(kernels.AddFloat[float32], kernels.AddFloat[float64]), decimalSum(kernels.AddWide, "+", NarrowAdd), timePlus),
		Examples: []Example{{SQL: "1 + 2", Want: "3"}, {SQL: "1.5 + 1", Want: "2.5"}, {SQL: "DATE '2024-01-31' + INTERVAL 1 MONTH", Want: "2024-02-29 00:00:00"}}},
	{Name: "-", Category: Math, Operator: true, Summary: "Subtract, negate, or take the difference of two dates or times.", Aliases: []string{"subtract"},
		Overloads: join(unary(true), integerOps(subInts[int8], subInts[int16], subInts[int32], subInts[int64], subInts[uint8], subInts[uint16], subInts[uint32], subInts[uint64], wideSub, uwide(subUWide)),
			floatOps(kernels.SubFloat[float32], kernels.SubFloat[float64]), decimalSum(kernels.SubWide, "-", NarrowSub), timeMinus),
		Examples: []Example{{SQL: "5 - 7", Want: "-2"}, {SQL: "DATE '2024-03-01' - DATE '2024-02-01'", Want: "29"}}},
	{Name: "*", Category: Math, Operator: true, Summary: "Multiply.", Aliases: []string{"multiply"},
		Overloads: join(integerOps(mulInts[int8], mulInts[int16], mulInts[int32], mulInts[int64], mulInts[uint8], mulInts[uint16], mulInts[uint32], mulInts[uint64], wideMul, uwide(mulUWide)),
			floatOps(kernels.MulFloat[float32], kernels.MulFloat[float64]), decimalProduct, timeTimes),
		Examples: []Example{{SQL: "6 * 7", Want: "42"}, {SQL: "1.50 * 2.25", Want: "3.3750"}}},
	{Name: "/", Category: Math, Operator: true, Summary: "Divide as floating-point numbers; dividing by zero gives an infinity.",
		Overloads: join(floatOps(kernels.DivFloat[float32], kernels.DivFloat[float64]), timeDivide),
		Examples:  []Example{{SQL: "7 / 2", Want: "3.5"}, {SQL: "1 / 0", Want: "inf"}}},
	{Name: "//", Category: Math, Operator: true, Summary: "Divide: whole numbers towards zero, others as floating-point numbers; dividing by zero is an error.", Aliases: []string{"divide"},
		Overloads: join(divisions(quotient[int8](), quotient[int16](), quotient[int32](), quotient[int64](), quotient[uint8](), quotient[uint16](), quotient[uint32](), quotient[uint64](), wideQuotient, uwide(divUWide)),
			[]Overload{fallible(Types{types.Float32, types.Float32}, types.Float32, floatQuotient[float32]),
				fallible(Types{types.Float64, types.Float64}, types.Float64, floatQuotient[float64])}),
		Examples: []Example{{SQL: "7 // 2", Want: "3"}, {SQL: "-7 // 2", Want: "-3"}, {SQL: "7.5 // 2", Want: "3.75"}}},
	{Name: "%", Category: Math, Operator: true, Summary: "The remainder of a division, with the sign of the dividend; dividing by zero is an error, of floats NaN.", Aliases: []string{"mod"},
		Overloads: join(divisions(remainder[int8](), remainder[int16](), remainder[int32](), remainder[int64](), remainder[uint8](), remainder[uint16](), remainder[uint32](), remainder[uint64](), wideRemainder, uwide(modUWide)),
			[]Overload{strict(Types{types.Float32, types.Float32}, types.Float32, floatRemainder[float32]),
				strict(Types{types.Float64, types.Float64}, types.Float64, floatRemainder[float64])}, decimalRemainder),
		Examples: []Example{{SQL: "-7 % 3", Want: "-1"}, {SQL: "mod(7, 3)", Want: "1"}}},
	{Name: "^", Category: Math, Operator: true, Summary: "Raise to a power.", Aliases: []string{"**", "pow", "power"},
		Overloads: []Overload{strict(Types{types.Float64, types.Float64}, types.Float64, float2(pow))},
		Examples:  []Example{{SQL: "2 ^ 10", Want: "1024.0"}, {SQL: "pow(2, 0.5)", Want: "1.4142135623730951"}}},
}

func join(lists ...[]Overload) []Overload {
	var out []Overload
	for _, l := range lists {
		out = append(out, l...)
	}
	return out
}

// integerOps makes the overloads T op T → T of an operator that may overflow.
func integerOps(k ...Kernel) []Overload {
	out := make([]Overload, len(ints))
	for i, t := range ints {
		out[i] = fallible(Types{t, t}, t, k[i])
	}
	return out
}

// divisions are integerOps that cannot fail where the divisor is a constant, neither 0 nor −1, by which the least number
// would overflow. Conditions such as x // 32 = 5 then go where the rows are fewest.
func divisions(k ...Kernel) []Overload {
	out := integerOps(k...)
	for i := range out {
		out[i].Resolve = func(_ []types.Type, consts []types.Value) (Resolved, error) {
			switch v := consts[1].(type) {
			case int64:
				return Resolved{Safe: v != 0 && v != -1}, nil
			case uint64:
				return Resolved{Safe: v != 0}, nil
			}
			return Resolved{}, nil
		}
	}
	return out
}

func floatOps(f32 func(out, a, b []float32), f64 func(out, a, b []float64)) []Overload {
	return []Overload{
		strict(Types{types.Float32, types.Float32}, types.Float32, plainFloat(f32)),
		strict(Types{types.Float64, types.Float64}, types.Float64, plainFloat(f64)),
	}
}

func plainFloat[T kernels.Float](f func(out, a, b []T)) Kernel {
	return func(c *Call) (arrow.Array, error) {
		out := kernels.Room[T](c.N)
		a, b := pair[T](c)
		f(out, a, b)
		return kernels.NewFixed(c.Ret.Arrow(), out, nil), nil
	}
}

// pair reads the two arguments of an operator. A batch of one row may hold both a column and a constant; then both have length 1.
func pair[T any](c *Call) (a, b []T) {
	return kernels.Values[T](c.Args[0].Array), kernels.Values[T](c.Args[1].Array)
}

func addInts[T kernels.Integer](c *Call) (arrow.Array, error) {
	return checked(c, kernels.Add[T], kernels.OpAdd, "+")
}

func subInts[T kernels.Integer](c *Call) (arrow.Array, error) {
	return checked(c, kernels.Sub[T], kernels.OpSub, "-")
}

func mulInts[T kernels.Integer](c *Call) (arrow.Array, error) {
	return checked(c, kernels.Mul[T], kernels.OpMul, "*")
}

// checked runs a kernel over the whole batch and looks for the rows that overflowed only when it says that there are some.
func checked[T kernels.Integer](c *Call, kernel func(out, a, b []T) bool, op kernels.Op, sign string) (arrow.Array, error) {
	out := kernels.Room[T](c.N)
	a, b := pair[T](c)
	if kernel(out, a, b) {
		x, y := col[T](c, 0), col[T](c, 1)
		for i := range c.N {
			if kernels.Overflows(op, x.at(i), y.at(i)) {
				overflow(c, i, x.at(i), sign, y.at(i))
			}
		}
	}
	return kernels.NewFixed(c.Ret.Arrow(), out, nil), nil
}

func overflow[T any](c *Call, i int, a T, sign string, b T) {
	c.Fail(i, errs.New(errs.Data, "evaluate", "overflow of %s in %s %s %s", c.Ret, show(a, c.Types[0]), sign, show(b, c.Types[1])).
		WithHint("%s", widen(c.Ret)))
}

// widen says what helps against an overflow of a type.
func widen(t types.Type) string {
	switch t.Kind {
	case types.HugeInt, types.UHugeInt:
		return "cast a side to DOUBLE"
	case types.Decimal:
		return "cast a side to a wider DECIMAL, or to DOUBLE"
	}
	return "cast a side to HUGEINT or DOUBLE"
}

func divideByZero[T any](c *Call, i int, a T, sign string) {
	c.Fail(i, errs.New(errs.Data, "evaluate", "division by zero in %s %s 0", show(a, c.Types[0]), sign).WithHint("TRY(…) gives NULL instead"))
}

func quotient[T kernels.Integer]() Kernel {
	return func(c *Call) (arrow.Array, error) {
		a, b := col[T](c, 0), col[T](c, 1)
		return fixed(c, func(i int) T {
			x, y := a.at(i), b.at(i)
			if y == 0 {
				divideByZero(c, i, x, "//")
				return 0
			}
			q := x / y
			if y < 0 && x < 0 && q < 0 { // only the least number divided by -1
				overflow(c, i, x, "//", y)
			}
			return q
		})
	}
}

// floatQuotient is / that refuses zero.
func floatQuotient[T kernels.Float](c *Call) (arrow.Array, error) {
	a, b := col[T](c, 0), col[T](c, 1)
	return fixed(c, func(i int) T {
		if b.at(i) == 0 {
			divideByZero(c, i, a.at(i), "//")
			return 0
		}
		return a.at(i) / b.at(i)
	})
}

func remainder[T kernels.Integer]() Kernel {
	return func(c *Call) (arrow.Array, error) {
		a, b := col[T](c, 0), col[T](c, 1)
		return fixed(c, func(i int) T {
			x, y := a.at(i), b.at(i)
			if y == 0 {
				divideByZero(c, i, x, "%")
				return 0
			}
			return x % y
		})
	}
}

func floatRemainder[T kernels.Float](c *Call) (arrow.Array, error) {
	a, b := col[T](c, 0), col[T](c, 1)
	return fixed(c, func(i int) T { return T(math.Mod(float64(a.at(i)), float64(b.at(i)))) })
}

// wideOp is arithmetic on HUGEINT.
func wideOp(kernel func(out, a, b []decimal128.Num) bool, one func(x, y decimal128.Num) (decimal128.Num, bool), sign string) Kernel {
	return func(c *Call) (arrow.Array, error) {
		out := kernels.Room[decimal128.Num](c.N)
		a, b := pair[decimal128.Num](c)
		if kernel(out, a, b) {
			failWide(c, one, sign)
		}
		return kernels.NewFixed(c.Ret.Arrow(), out, nil), nil
	}
}

func failWide(c *Call, one func(x, y decimal128.Num) (decimal128.Num, bool), sign string) {
	x, y := col[decimal128.Num](c, 0), col[decimal128.Num](c, 1)
	for i := range c.N {
		if _, ok := one(x.at(i), y.at(i)); !ok {
			overflow(c, i, x.at(i), sign, y.at(i))
		}
	}
}

func mulWide(out, a, b []decimal128.Num) bool { return kernels.MulWide(out, a, b, types.MulWide) }

var (
	wideAdd = wideOp(kernels.AddWide, types.AddWide, "+")
	wideSub = wideOp(kernels.SubWide, types.SubWide, "-")
	wideMul = wideOp(mulWide, types.MulWide, "*")
)

func wideQuotient(c *Call) (arrow.Array, error) {
	a, b := col[decimal128.Num](c, 0), col[decimal128.Num](c, 1)
	return fixed(c, func(i int) decimal128.Num {
		if b.at(i) == (decimal128.Num{}) {
			divideByZero(c, i, a.at(i), "//")
			return decimal128.Num{}
		}
		q, _, ok := types.DivWide(a.at(i), b.at(i))
		if !ok {
			overflow(c, i, a.at(i), "//", b.at(i))
		}
		return q
	})
}

func wideRemainder(c *Call) (arrow.Array, error) {
	a, b := col[decimal128.Num](c, 0), col[decimal128.Num](c, 1)
	return fixed(c, func(i int) decimal128.Num {
		if b.at(i) == (decimal128.Num{}) {
			divideByZero(c, i, a.at(i), "%")
			return decimal128.Num{}
		}
		_, r, _ := types.DivWide(a.at(i), b.at(i))
		return r
	})
}

// uwide makes a kernel of an operation on UHUGEINT.
func uwide(one func(x, y decimal128.Num) (v decimal128.Num, zero, ok bool)) Kernel {
	return func(c *Call) (arrow.Array, error) {
		a, b := col[decimal128.Num](c, 0), col[decimal128.Num](c, 1)
		return fixed(c, func(i int) decimal128.Num {
			v, zero, ok := one(a.at(i), b.at(i))
			switch {
			case zero:
				divideByZero(c, i, a.at(i), "//")
			case !ok:
				overflow(c, i, a.at(i), "with", b.at(i))
			}
			return v
		})
	}
}

func addUWide(x, y decimal128.Num) (decimal128.Num, bool, bool) {
	lo, c := bits.Add64(x.LowBits(), y.LowBits(), 0)
	hi, c := bits.Add64(uint64(x.HighBits()), uint64(y.HighBits()), c)
	return decimal128.New(int64(hi), lo), false, c == 0
}

func subUWide(x, y decimal128.Num) (decimal128.Num, bool, bool) {
	lo, b := bits.Sub64(x.LowBits(), y.LowBits(), 0)
	hi, b := bits.Sub64(uint64(x.HighBits()), uint64(y.HighBits()), b)
	return decimal128.New(int64(hi), lo), false, b == 0
}

func mulUWide(x, y decimal128.Num) (decimal128.Num, bool, bool) {
	v, ok := types.MulUWide(x, y)
	return v, false, ok
}

func divUWide(x, y decimal128.Num) (decimal128.Num, bool, bool) {
	if y == (decimal128.Num{}) {
		return y, true, false
	}
	q, _ := types.DivUWide(x, y)
	return q, false, true
}

func modUWide(x, y decimal128.Num) (decimal128.Num, bool, bool) {
	if y == (decimal128.Num{}) {
		return y, true, false
	}
	_, r := types.DivUWide(x, y)
	return r, false, true
}

// decimalSum is + or - of DECIMALs: both sides are cast to the greater scale, and the width grows by one digit.
func decimalSum(kernel func(out, a, b []decimal128.Num) bool, sign string, narrow Narrow) []Overload {
	return []Overload{{Args: Types{decimalAny, decimalAny}, Fallible: true, Resolve: func(args []types.Type, _ []types.Value) (Resolved, error) {
		a, b := types.DecimalOf(orDecimal(args[0], args[1])), types.DecimalOf(orDecimal(args[1], args[0]))
		scale := max(a.Scale, b.Scale)
		whole := max(a.Width-a.Scale, b.Width-b.Scale)
		width := min(38, int(whole)+int(scale)+1)
		t := types.Dec(width, int(scale))
		k := func(c *Call) (arrow.Array, error) {
			out := kernels.Room[decimal128.Num](c.N)
			x, y := pair[decimal128.Num](c)
			kernel(out, x, y) // 38 digits never overflow 128 bits by one addition; the width is what counts
			return decimalResult(c, out, int(whole)+int(scale)+1 > 38, sign)
		}
		return Resolved{Args: Types{t, t}, Returns: t, Kernel: k, Safe: int(whole)+int(scale)+1 <= 38, Narrow: narrow}, nil
	}}}
}

// orDecimal stands in for a bare NULL.
func orDecimal(t, other types.Type) types.Type {
	if t.Kind == types.Null {
		return other
	}
	return t
}

// decimalResult checks the width of a result where it could be exceeded.
func decimalResult(c *Call, out []decimal128.Num, check bool, sign string) (arrow.Array, error) {
	limit := types.Pow10(int(c.Ret.Width))
	if check && kernels.TooWide(out, limit) {
		for i, v := range out {
			if !types.FitsWidth(v, int(c.Ret.Width)) {
				a, b := types.Format(valueAt(c, 0, i), c.Types[0]), types.Format(valueAt(c, 1, i), c.Types[1])
				c.Fail(i, errs.New(errs.Data, "evaluate", "overflow of %s in %s %s %s", c.Ret, a, sign, b).WithHint("%s", widen(c.Ret)))
			}
		}
	}
	return kernels.NewFixed(c.Ret.Arrow(), out, nil), nil
}

// decimalProduct multiplies DECIMALs: widths and scales add up, the width to 38 at most, and to 18 when both factors have 18
// digits at most and the scale is less: those are DuckDB's types.
var decimalProduct = []Overload{{Args: Types{decimalAny, decimalAny}, Fallible: true, Resolve: func(args []types.Type, consts []types.Value) (Resolved, error) {
	a, b := types.DecimalOf(orDecimal(args[0], args[1])), types.DecimalOf(orDecimal(args[1], args[0]))
	scale, width := int(a.Scale)+int(b.Scale), int(a.Width)+int(b.Width)
	if scale > 38 {
		return Resolved{}, errs.New(errs.Schema, "bind", "the product of %s and %s needs more than 38 digits behind the point", a, b).
			WithHint("cast a factor to a smaller scale, or to DOUBLE")
	}
	most := 38
	if a.Width <= 18 && b.Width <= 18 && scale < 18 {
		most = 18
	}
	k := func(c *Call) (arrow.Array, error) {
		out := kernels.Room[decimal128.Num](c.N)
		if c.Types[0].Kind == types.BigInt || c.Types[1].Kind == types.BigInt {
			scaleInts(c, out)
			return decimalResult(c, out, width > most, "*")
		}
		x, y := pair[decimal128.Num](c)
		if a.Width <= 18 && b.Width <= 18 {
			kernels.MulNarrow(out, x, y)
			return decimalResult(c, out, width > most, "*")
		}
		if kernels.MulWide(out, x, y, types.MulWide) {
			failWide(c, types.MulWide, "*")
		}
		return decimalResult(c, out, width > most, "*")
	}
	return Resolved{Args: factors(args, consts, a, b), Returns: types.Dec(min(most, width), scale), Kernel: k, Safe: width <= most, Narrow: NarrowMul}, nil
}}}

// factors are the types to which the factors of a DECIMAL product are cast. A BIGINT stays one beside a constant of up to
// 18 digits.
func factors(args []types.Type, consts []types.Value, a, b types.Type) Types {
	keep := func(i int, other types.Type) bool {
		return args[i].Kind == types.BigInt && constAt(consts, i) == nil && constAt(consts, 1-i) != nil && other.Width <= 18
	}
	switch {
	case keep(0, b):
		return Types{args[0], b}
	case keep(1, a):
		return Types{a, args[1]}
	}
	return Types{a, b}
}

// scaleInts multiplies a BIGINT by a DECIMAL of up to 18 digits.
func scaleInts(c *Call, out []decimal128.Num) {
	at := 0
	if c.Types[1].Kind == types.BigInt {
		at = 1
	}
	kernels.MulInts(out, kernels.Values[int64](c.Args[at].Array), kernels.Values[decimal128.Num](c.Args[1-at].Array))
}

// decimalRemainder is % of DECIMALs on a common scale.
var decimalRemainder = []Overload{{Args: Types{decimalAny, decimalAny}, Fallible: true, Resolve: func(args []types.Type, _ []types.Value) (Resolved, error) {
	t, _ := types.Common(types.DecimalOf(orDecimal(args[0], args[1])), types.DecimalOf(orDecimal(args[1], args[0])))
	return Resolved{Args: Types{t, t}, Returns: t, Kernel: wideRemainder}, nil
}}}

// unary is -x and +x.
func unary(negate bool) []Overload {
	same := func(c *Call) (arrow.Array, error) { return c.Args[0].Array, nil }
	var out []Overload
	for _, t := range ints {
		k := same
		if negate {
			k = perInt(t, negateInts[int8], negateInts[int16], negateInts[int32], negateInts[int64],
				negateInts[uint8], negateInts[uint16], negateInts[uint32], negateInts[uint64])
			if k == nil {
				k = negateWide
			}
		}
		out = append(out, Overload{Args: Types{t}, Returns: t, Kernel: k, Fallible: negate})
	}
	f32, f64, dec, span := same, same, same, same
	if negate {
		f32, f64, dec, span = negateFloats[float32], negateFloats[float64], negateWide, negateInterval
	}
	return append(out, strict(Types{types.Float32}, types.Float32, f32), strict(Types{types.Float64}, types.Float64, f64),
		strict(Types{types.Span}, types.Span, span),
		Overload{Args: Types{decimalAny}, Resolve: func(args []types.Type, _ []types.Value) (Resolved, error) {
			t := types.DecimalOf(args[0])
			return Resolved{Args: Types{t}, Returns: t, Kernel: dec}, nil
		}})
}

func negateInts[T kernels.Integer](c *Call) (arrow.Array, error) {
	x := col[T](c, 0)
	return fixed(c, func(i int) T {
		v := x.at(i)
		if kernels.Overflows(kernels.OpSub, 0, v) {
			c.Fail(i, errs.New(errs.Data, "evaluate", "overflow of %s in -(%s)", c.Ret, show(v, c.Types[0])).WithHint("%s", widen(c.Ret)))
		}
		return -v
	})
}

func negateFloats[T kernels.Float](c *Call) (arrow.Array, error) {
	x := col[T](c, 0)
	return fixed(c, func(i int) T { return -x.at(i) })
}

func negateWide(c *Call) (arrow.Array, error) {
	x := col[decimal128.Num](c, 0)
	return fixed(c, func(i int) decimal128.Num {
		v, ok := types.NegWide(x.at(i))
		if !ok || c.Ret.Kind == types.UHugeInt && v != (decimal128.Num{}) {
			c.failf(i, "overflow of %s in -(%s)", c.Ret, show(x.at(i), c.Types[0]))
		}
		return v
	})
}
