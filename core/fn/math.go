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

func pow(x, y float64) float64 { return kernels.Pow(x, y) }

func float1(f func(float64) float64) Kernel {
	return func(c *Call) (arrow.Array, error) {
		x := col[float64](c, 0)
		return fixed(c, func(i int) float64 { return f(x.at(i)) })
	}
}

func float2(f func(x, y float64) float64) Kernel {
	return func(c *Call) (arrow.Array, error) {
		x, y := col[float64](c, 0), col[float64](c, 1)
		return fixed(c, func(i int) float64 { return f(x.at(i), y.at(i)) })
	}
}

func doubleFn(name, summary string, f func(float64) float64, examples ...Example) *Scalar {
	return &Scalar{Name: name, Category: Math, Summary: summary,
		Overloads: []Overload{strict(Types{types.Float64}, types.Float64, float1(f))}, Examples: examples}
}

func ex(sql, want string) Example { return Example{SQL: sql, Want: want} }

const bitNote = "The last bit may differ from DuckDB's, whose results depend on the machine's C library; these are the same everywhere."

var mathematics = libm(
	doubleFn("exp", "e to the power of x.", kernels.Exp, ex("exp(1)", "2.718281828459045")),
	&Scalar{Name: "ln", Category: Math, Summary: "The natural logarithm.", Overloads: []Overload{strict(Types{types.Float64}, types.Float64, float1(kernels.Log))}, Examples: []Example{ex("ln(10)", "2.302585092994046"), ex("ln(0)", "-inf")}},
	&Scalar{Name: "log", Category: Math, Summary: "The logarithm to base 10, or log(base, x).", Aliases: []string{"log10"},
		Overloads: []Overload{strict(Types{types.Float64}, types.Float64, float1(kernels.Log10)),
			strict(Types{types.Float64, types.Float64}, types.Float64, float2(func(b, x float64) float64 { return kernels.Log10(x) / kernels.Log10(b) }))},
		Examples: []Example{ex("log(100)", "2.0"), ex("log(2, 8)", "3.0")}},
	doubleFn("log2", "The logarithm to base 2.", kernels.Log2, ex("log2(8)", "3.0")),
	doubleFn("sqrt", "The square root; NaN for a negative number.", math.Sqrt, ex("sqrt(9)", "3.0")),
	doubleFn("cbrt", "The cube root.", kernels.Cbrt, ex("cbrt(27)", "3.0")),
	doubleFn("sin", "The sine.", kernels.Sin, ex("sin(1)", "0.8414709848078965")),
	doubleFn("cos", "The cosine.", kernels.Cos, ex("cos(1)", "0.5403023058681398")),
	doubleFn("tan", "The tangent.", kernels.Tan, ex("tan(1)", "1.5574077246549023")),
	doubleFn("cot", "The cotangent.", kernels.Cot, ex("cot(1)", "0.6420926159343308")),
	doubleFn("asin", "The arc sine; NaN outside [-1, 1].", kernels.Asin, ex("asin(1)", "1.5707963267948966")),
	doubleFn("acos", "The arc cosine; NaN outside [-1, 1].", kernels.Acos, ex("acos(0.5)", "1.0471975511965979")),
	doubleFn("atan", "The arc tangent.", kernels.Atan, ex("atan(1)", "0.7853981633974483")),
	&Scalar{Name: "atan2", Category: Math, Summary: "The angle of the point (x, y), given y and x.", Overloads: []Overload{strict(Types{types.Float64, types.Float64}, types.Float64, float2(kernels.Atan2))}, Examples: []Example{ex("atan2(1, 2)", "0.4636476090008061")}},
	doubleFn("sinh", "The hyperbolic sine.", kernels.Sinh, ex("sinh(1)", "1.1752011936438014")),
	doubleFn("cosh", "The hyperbolic cosine.", kernels.Cosh, ex("cosh(1)", "1.5430806348152437")),
	doubleFn("tanh", "The hyperbolic tangent.", kernels.Tanh, ex("tanh(1)", "0.7615941559557649")),
	doubleFn("gamma", "Γ(x), which for whole numbers is (x-1)!.", kernels.Gamma, ex("gamma(5)", "24.0")),
	doubleFn("lgamma", "The natural logarithm of |Γ(x)|.", kernels.LogGamma, ex("lgamma(5)", "3.1780538303479458")),
	&Scalar{Name: "nextafter", Category: Math, Summary: "The next float after x in the direction of y.", Overloads: []Overload{
		strict(Types{types.Float32, types.Float32}, types.Float32, func(c *Call) (arrow.Array, error) {
			x, y := col[float32](c, 0), col[float32](c, 1)
			return fixed(c, func(i int) float32 { return math.Nextafter32(x.at(i), y.at(i)) })
		}),
		strict(Types{types.Float64, types.Float64}, types.Float64, float2(math.Nextafter))}, Examples: []Example{ex("nextafter(1.0::DOUBLE, 2.0)", "1.0000000000000002")}},
	doubleFn("degrees", "Radians to degrees.", func(x float64) float64 { return x * (180 / math.Pi) }, ex("degrees(pi())", "180.0")),
	doubleFn("radians", "Degrees to radians.", func(x float64) float64 { return x * (math.Pi / 180) }, ex("radians(180)", "3.141592653589793")),
	&Scalar{Name: "pi", Category: Math, Summary: "The number π.", Overloads: []Overload{strict(nil, types.Float64, func(c *Call) (arrow.Array, error) {
		return fixed(c, func(int) float64 { return math.Pi })
	})}, Examples: []Example{ex("pi()", "3.141592653589793")}},
	&Scalar{Name: "even", Category: Math, Summary: "Round away from zero to an even number.", Overloads: []Overload{strict(Types{types.Float64}, types.Float64, float1(even))}, Examples: []Example{ex("even(2.9)", "4.0"), ex("even(-2.1)", "-4.0")}},
	&Scalar{Name: "abs", Category: Math, Summary: "The absolute value.", Aliases: []string{"@"}, Overloads: absolute(), Examples: []Example{ex("abs(-5)", "5"), ex("abs(-1.50)", "1.50")}},
	&Scalar{Name: "sign", Category: Math, Summary: "-1, 0 or 1, as the number is negative, zero or positive.", Overloads: signOf(), Examples: []Example{ex("sign(-2.5)", "-1")}},
	&Scalar{Name: "ceil", Category: Math, Summary: "Round up to a whole number.", Aliases: []string{"ceiling"}, Overloads: rounding(math.Ceil, 1), Examples: []Example{ex("ceil(1.2)", "2"), ex("ceil(-1.2)", "-1")}},
	&Scalar{Name: "floor", Category: Math, Summary: "Round down to a whole number.", Overloads: rounding(math.Floor, -1), Examples: []Example{ex("floor(-1.2)", "-2")}},
	&Scalar{Name: "round", Category: Math, Summary: "Round half away from zero, to n digits behind the point; a negative n rounds before the point.",
		Overloads: roundTo(math.Round, true), Examples: []Example{ex("round(2.5)", "3"), ex("round(1234.567, 1)", "1234.6"), ex("round(15, -1)", "20")}},
	&Scalar{Name: "trunc", Category: Math, Summary: "Cut off the digits behind the point, or behind n digits.",
		Overloads: roundTo(math.Trunc, false), Examples: []Example{ex("trunc(-1.9)", "-1"), ex("trunc(1.999, 2)", "1.99")}},
	&Scalar{Name: "gcd", Category: Math, Summary: "The greatest common divisor.", Aliases: []string{"greatest_common_divisor"}, Overloads: []Overload{fallible(Types{types.Int64, types.Int64}, types.Int64, func(c *Call) (arrow.Array, error) {
		a, b := col[int64](c, 0), col[int64](c, 1)
		return fixed(c, func(i int) int64 { return toSigned(c, i, gcd(a.at(i), b.at(i))) })
	})}, Examples: []Example{ex("gcd(12, 18)", "6")}},
	&Scalar{Name: "lcm", Category: Math, Summary: "The least common multiple.", Aliases: []string{"least_common_multiple"}, Overloads: []Overload{fallible(Types{types.Int64, types.Int64}, types.Int64, func(c *Call) (arrow.Array, error) {
		a, b := col[int64](c, 0), col[int64](c, 1)
		return fixed(c, func(i int) int64 {
			g := gcd(a.at(i), b.at(i))
			if g == 0 {
				return 0
			}
			hi, lo := bits.Mul64(magnitude(a.at(i))/g, magnitude(b.at(i)))
			if hi != 0 {
				lo = math.MaxUint64
			}
			return toSigned(c, i, lo)
		})
	})}, Examples: []Example{ex("lcm(4, 6)", "12")}},
	&Scalar{Name: "factorial", Category: Math, Summary: "n!, as a HUGEINT.", Overloads: []Overload{fallible(Types{types.Int32}, types.Int128, func(c *Call) (arrow.Array, error) {
		n := col[int32](c, 0)
		return fixed(c, func(i int) decimal128.Num {
			if n.at(i) < 0 {
				c.failf(i, "the factorial of a negative number is not defined")
				return types.Wide(0)
			}
			v, ok := types.Wide(1), n.at(i) <= 33
			for k := int64(2); k <= int64(n.at(i)) && ok; k++ {
				v, ok = types.MulWide(v, types.Wide(k))
			}
			if !ok {
				c.failf(i, "overflow of HUGEINT in %d!", n.at(i))
			}
			return v
		})
	})}, Examples: []Example{ex("factorial(5)", "120")}},
	&Scalar{Name: "isnan", Category: Math, Summary: "Whether a float is NaN.", Overloads: floatTest(func(x float64) bool { return x != x }), Examples: []Example{ex("isnan('nan'::DOUBLE)", "true")}},
	&Scalar{Name: "isinf", Category: Math, Summary: "Whether a float, date or timestamp is infinite.", Overloads: append(floatTest(func(x float64) bool { return math.IsInf(x, 0) }), timeTest(true)...), Examples: []Example{ex("isinf('-inf'::DOUBLE)", "true")}},
	&Scalar{Name: "isfinite", Category: Math, Summary: "Whether a float, date or timestamp is finite.", Overloads: append(floatTest(func(x float64) bool { return x-x == 0 }), timeTest(false)...), Examples: []Example{ex("isfinite(1.0::DOUBLE)", "true")}},
	&Scalar{Name: "random", Category: Math, Purity: Volatile, Summary: "A DOUBLE from 0 up to, not including, 1.", Overloads: []Overload{strict(nil, types.Float64, func(c *Call) (arrow.Array, error) {
		if c.Env.Rand == nil {
			return nil, errs.Bug("evaluate", "random() without a source of chance")
		}
		return fixed(c, func(int) float64 { return c.Env.Rand.Float64() })
	})}, Examples: []Example{ex("random() < 1", "true")}},
)

// libm notes the one difference that the elementary functions share.
func libm(list ...*Scalar) []*Scalar {
	for _, f := range list {
		switch f.Name {
		case "exp", "ln", "log", "log2", "cbrt", "sin", "cos", "tan", "cot", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "gamma", "lgamma":
			f.Differs = bitNote
		}
	}
	return list
}

func even(x float64) float64 {
	up := math.Ceil(math.Abs(x))
	if math.Mod(up, 2) != 0 {
		up++
	}
	return math.Copysign(up, x)
}

func magnitude(v int64) uint64 {
	if v < 0 {
		return -uint64(v)
	}
	return uint64(v)
}

func gcd(a, b int64) uint64 {
	x, y := magnitude(a), magnitude(b)
	for y != 0 {
		x, y = y, x%y
	}
	return x
}

func toSigned(c *Call, i int, v uint64) int64 {
	if v > math.MaxInt64 {
		c.failf(i, "overflow of BIGINT")
	}
	return int64(v)
}

func absolute() []Overload {
	var out []Overload
	for _, t := range ints {
		k := identity
		switch t.Kind {
		case types.TinyInt:
			k = absInts[int8]
		case types.SmallInt:
			k = absInts[int16]
		case types.Integer:
			k = absInts[int32]
		case types.BigInt:
			k = absInts[int64]
		case types.HugeInt:
			k = absWide
		}
		out = append(out, fallible(Types{t}, t, k))
	}
	return append(out,
		strict(Types{types.Float32}, types.Float32, func(c *Call) (arrow.Array, error) {
			x := col[float32](c, 0)
			return fixed(c, func(i int) float32 { return float32(math.Abs(float64(x.at(i)))) })
		}),
		strict(Types{types.Float64}, types.Float64, float1(math.Abs)),
		Overload{Args: Types{decimalAny}, Resolve: sameDecimal(absWide)})
}

func sameDecimal(k Kernel) func([]types.Type, []types.Value) (Resolved, error) {
	return func(args []types.Type, _ []types.Value) (Resolved, error) {
		t := types.DecimalOf(args[0])
		return Resolved{Args: Types{t}, Returns: t, Kernel: k}, nil
	}
}

func absInts[T int8 | int16 | int32 | int64](c *Call) (arrow.Array, error) {
	x := col[T](c, 0)
	return fixed(c, func(i int) T {
		v := x.at(i)
		if v < 0 {
			if v = -v; v < 0 {
				c.failf(i, "overflow of %s in abs(%s)", c.Ret, show(v, c.Ret))
			}
		}
		return v
	})
}

func absWide(c *Call) (arrow.Array, error) {
	x := col[decimal128.Num](c, 0)
	return fixed(c, func(i int) decimal128.Num {
		v := x.at(i)
		if v.HighBits() < 0 {
			n, ok := types.NegWide(v)
			if !ok {
				c.failf(i, "overflow of %s in abs(%s)", c.Ret, show(v, c.Ret))
			}
			return n
		}
		return v
	})
}

func signOf() []Overload {
	out := []Overload{
		strict(Types{types.Float64}, types.Int8, func(c *Call) (arrow.Array, error) {
			x := col[float64](c, 0)
			return fixed(c, func(i int) int8 {
				switch v := x.at(i); {
				case v > 0:
					return 1
				case v < 0:
					return -1
				}
				return 0
			})
		}),
		strict(Types{types.Int64}, types.Int8, func(c *Call) (arrow.Array, error) {
			x := col[int64](c, 0)
			return fixed(c, func(i int) int8 { return int8(x.at(i)>>63) | int8(uint64(-x.at(i))>>63) })
		}),
	}
	wide := func(c *Call) (arrow.Array, error) {
		x := col[decimal128.Num](c, 0)
		return fixed(c, func(i int) int8 { return int8(x.at(i).Sign()) })
	}
	return append(out, strict(Types{types.Int128}, types.Int8, wide), Overload{Args: Types{decimalAny}, Resolve: func(args []types.Type, _ []types.Value) (Resolved, error) {
		return Resolved{Args: Types{types.DecimalOf(args[0])}, Returns: types.Int8, Kernel: wide}, nil
	}})
}

// rounding is ceil and floor: floats stay floats, DECIMAL loses its scale. away is the direction in which a fraction moves.
func rounding(f func(float64) float64, away int) []Overload {
	return []Overload{
		strict(Types{types.Float32}, types.Float32, func(c *Call) (arrow.Array, error) {
			x := col[float32](c, 0)
			return fixed(c, func(i int) float32 { return float32(f(float64(x.at(i)))) })
		}),
		strict(Types{types.Float64}, types.Float64, float1(f)),
		{Args: Types{decimalAny}, Resolve: func(args []types.Type, _ []types.Value) (Resolved, error) {
			t := types.DecimalOf(args[0])
			return Resolved{Args: Types{t}, Returns: types.Dec(int(t.Width), 0), Kernel: func(c *Call) (arrow.Array, error) {
				x := col[decimal128.Num](c, 0)
				unit := types.Pow10(int(t.Scale))
				return fixed(c, func(i int) decimal128.Num {
					q, r, _ := types.DivWide(x.at(i), unit)
					if s := r.Sign(); s == away {
						q, _ = types.AddWide(q, types.Wide(int64(away)))
					}
					return q
				})
			}}, nil
		}},
	}
}

// roundTo is round and trunc, with and without digits.
func roundTo(f func(float64) float64, half bool) []Overload {
	var out []Overload
	for _, t := range ints {
		out = append(out, strict(Types{t}, t, identity))
	}
	for _, t := range smallInts[:4] { // an unsigned number becomes a BIGINT
		out = append(out, fallible(Types{t, types.Int32}, t, perInt(t, roundInts[int8](half), roundInts[int16](half), roundInts[int32](half), roundInts[int64](half),
			roundInts[uint8](half), roundInts[uint16](half), roundInts[uint32](half), roundInts[uint64](half))))
	}
	return append(out,
		strict(Types{types.Float32}, types.Float32, func(c *Call) (arrow.Array, error) {
			x := col[float32](c, 0)
			return fixed(c, func(i int) float32 { return float32(f(float64(x.at(i)))) })
		}),
		strict(Types{types.Float64}, types.Float64, float1(f)),
		strict(Types{types.Float32, types.Int32}, types.Float32, func(c *Call) (arrow.Array, error) {
			x, n := col[float32](c, 0), col[int32](c, 1)
			return fixed(c, func(i int) float32 { return float32(roundFloat(f, float64(x.at(i)), n.at(i))) })
		}),
		strict(Types{types.Float64, types.Int32}, types.Float64, func(c *Call) (arrow.Array, error) {
			x, n := col[float64](c, 0), col[int32](c, 1)
			return fixed(c, func(i int) float64 { return roundFloat(f, x.at(i), n.at(i)) })
		}),
		Overload{Args: Types{decimalAny}, Resolve: func(args []types.Type, _ []types.Value) (Resolved, error) {
			t := types.DecimalOf(args[0])
			return Resolved{Args: Types{t}, Returns: types.Dec(int(t.Width), 0), Kernel: roundDecimal(int(t.Scale), 0, half)}, nil
		}},
		Overload{Args: Types{decimalAny, types.Int32}, Fallible: true, Resolve: func(args []types.Type, consts []types.Value) (Resolved, error) {
			t := types.DecimalOf(args[0])
			n, ok := valueOf(consts, 1).(int64)
			if !ok {
				return Resolved{}, errs.New(errs.Schema, "bind", "rounding a DECIMAL needs a constant number of digits").WithHint("cast the number to DOUBLE")
			}
			scale := int(min(max(n, 0), int64(t.Scale)))
			digits := int(min(max(n, -38), int64(t.Scale)))
			width := int(t.Width)
			if half && n < 0 { // 999 rounds to 1000
				width = min(38, max(width, width-int(t.Scale)+1))
			}
			return Resolved{Args: Types{t, types.Int32}, Returns: types.Dec(width, scale), Kernel: roundDecimal(int(t.Scale), digits, half)}, nil
		}})
}

func roundFloat(f func(float64) float64, x float64, n int32) float64 {
	var v float64
	if n < 0 {
		m := kernels.Pow(10, float64(-n))
		v = float64(f(x/m)) * m
		if math.IsInf(m, 0) {
			v = 0
		}
	} else {
		m := kernels.Pow(10, float64(n))
		v = f(kernels.TimesDown(x, m)) / m
	}
	if v-v != 0 { // what is too large has no digits there
		return x
	}
	return v
}

func roundInts[T kernels.Integer](half bool) Kernel {
	return func(c *Call) (arrow.Array, error) {
		x, n := col[T](c, 0), col[int32](c, 1)
		return fixed(c, func(i int) T {
			v, d := x.at(i), n.at(i)
			if d >= 0 {
				return v
			}
			if d < -19 {
				return 0
			}
			unit := uint64(1)
			for ; d < 0; d++ {
				unit *= 10
			}
			neg := v < 0
			m := uint64(v)
			if neg {
				m = -m
			}
			r := m % unit
			m -= r
			if half && r >= unit-r {
				var carry uint64
				if m, carry = bits.Add64(m, unit, 0); carry != 0 {
					m = math.MaxUint64
				}
			}
			if neg {
				m = -m
			}
			out := T(m)
			if (out < 0) != neg && out != 0 || neg && uint64(int64(out)) != m || !neg && uint64(out) != m {
				c.failf(i, "overflow of %s when rounding %s", c.Ret, show(v, c.Ret))
			}
			return out
		})
	}
}

// roundDecimal rounds from a scale to digits, which may be negative; the result has max(digits, 0) digits behind the point.
func roundDecimal(from, digits int, half bool) Kernel {
	return func(c *Call) (arrow.Array, error) {
		x := col[decimal128.Num](c, 0)
		return fixed(c, func(i int) decimal128.Num {
			if from-digits > 38 {
				return decimal128.Num{}
			}
			var v decimal128.Num
			ok := true
			if half {
				v, ok = types.Rescale(x.at(i), from, digits)
			} else {
				v, _, _ = types.DivWide(x.at(i), types.Pow10(from-digits))
			}
			if digits < 0 {
				v, ok = types.MulWide(v, types.Pow10(-digits))
			}
			if !ok || !types.FitsWidth(v, int(c.Ret.Width)) {
				c.failf(i, "overflow of %s when rounding %s", c.Ret, show(x.at(i), c.Types[0]))
			}
			return v
		})
	}
}

func floatTest(f func(float64) bool) []Overload {
	return []Overload{
		strict(Types{types.Float32}, types.Bool, func(c *Call) (arrow.Array, error) {
			x := col[float32](c, 0)
			return bools(c, func(i int) bool { return f(float64(x.at(i))) })
		}),
		strict(Types{types.Float64}, types.Bool, func(c *Call) (arrow.Array, error) {
			x := col[float64](c, 0)
			return bools(c, func(i int) bool { return f(x.at(i)) })
		}),
	}
}

func timeTest(infinite bool) []Overload {
	ts := func(c *Call) (arrow.Array, error) {
		x := col[int64](c, 0)
		return bools(c, func(i int) bool { return infiniteTS(x.at(i)) == infinite })
	}
	return []Overload{
		strict(Types{types.Date32}, types.Bool, func(c *Call) (arrow.Array, error) {
			x := col[int32](c, 0)
			return bools(c, func(i int) bool { return infiniteDate(x.at(i)) == infinite })
		}),
		strict(Types{types.TsUS}, types.Bool, ts), strict(Types{types.TsTZ}, types.Bool, ts),
	}
}

// bitwise is & | << >> ~ xor and bit_count.
var bitwise = []*Scalar{
	{Name: "&", Category: Math, Operator: true, Summary: "The bits that both have.", Overloads: bitOps(func(a, b uint64) uint64 { return a & b }), Examples: []Example{ex("5 & 3", "1")}},
	{Name: "|", Category: Math, Operator: true, Summary: "The bits that either has.", Overloads: bitOps(func(a, b uint64) uint64 { return a | b }), Examples: []Example{ex("5 | 3", "7")}},
	{Name: "xor", Category: Math, Summary: "The bits that one of both has.", Overloads: bitOps(func(a, b uint64) uint64 { return a ^ b }), Examples: []Example{ex("xor(5, 3)", "6")}},
	{Name: "~", Category: Math, Operator: true, Summary: "All bits inverted.", Overloads: append(bitNot(), partMatch...), Examples: []Example{ex("~5", "-6"), ex("'abc' ~ 'a.c'", "true")}},
	{Name: "<<", Category: Math, Operator: true, Summary: "Shift bits to the left.", Overloads: shifts(true), Examples: []Example{ex("1 << 3", "8")}},
	{Name: ">>", Category: Math, Operator: true, Summary: "Shift bits to the right.", Overloads: shifts(false), Examples: []Example{ex("-8 >> 1", "-4")}},
	{Name: "bit_count", Category: Math, Summary: "The number of bits set.", Overloads: bitCounts(), Examples: []Example{ex("bit_count(255)", "8")}},
}

// bitOps applies f to the bits; sign extension does no harm to & | ^.
func bitOps(f func(a, b uint64) uint64) []Overload {
	var out []Overload
	for _, t := range smallInts {
		out = append(out, strict(Types{t, t}, t, perInt(t, bitOp[int8](f), bitOp[int16](f), bitOp[int32](f), bitOp[int64](f), bitOp[uint8](f), bitOp[uint16](f), bitOp[uint32](f), bitOp[uint64](f))))
	}
	return append(out, strict(Types{types.Int128, types.Int128}, types.Int128, func(c *Call) (arrow.Array, error) {
		a, b := col[decimal128.Num](c, 0), col[decimal128.Num](c, 1)
		return fixed(c, func(i int) decimal128.Num {
			x, y := a.at(i), b.at(i)
			return decimal128.New(int64(f(uint64(x.HighBits()), uint64(y.HighBits()))), f(x.LowBits(), y.LowBits()))
		})
	}))
}

func bitOp[T kernels.Integer](f func(a, b uint64) uint64) Kernel {
	return func(c *Call) (arrow.Array, error) {
		a, b := col[T](c, 0), col[T](c, 1)
		return fixed(c, func(i int) T { return T(f(uint64(a.at(i)), uint64(b.at(i)))) })
	}
}

func bitNot() []Overload {
	var out []Overload
	for _, t := range smallInts {
		out = append(out, strict(Types{t}, t, perInt(t, invert[int8], invert[int16], invert[int32], invert[int64], invert[uint8], invert[uint16], invert[uint32], invert[uint64])))
	}
	return out
}

func invert[T kernels.Integer](c *Call) (arrow.Array, error) {
	a := col[T](c, 0)
	return fixed(c, func(i int) T { return ^a.at(i) })
}

func shifts(left bool) []Overload {
	var out []Overload
	for _, t := range smallInts {
		out = append(out, fallible(Types{t, t}, t, perInt(t, shift[int8](left), shift[int16](left), shift[int32](left), shift[int64](left), shift[uint8](left), shift[uint16](left), shift[uint32](left), shift[uint64](left))))
	}
	return out
}

func shift[T kernels.Integer](left bool) Kernel {
	return func(c *Call) (arrow.Array, error) {
		a, b := col[T](c, 0), col[T](c, 1)
		width := uint64(c.Ret.Arrow().(arrow.FixedWidthDataType).BitWidth())
		return fixed(c, func(i int) T {
			x, n := a.at(i), b.at(i)
			far := n < 0 || uint64(n) >= width
			switch {
			case !left && far:
				return 0
			case !left:
				return x >> n
			case n < 0:
				c.failf(i, "cannot shift left by the negative number %s", show(n, c.Ret))
			case x < 0:
				c.failf(i, "cannot shift the negative number %s to the left", show(x, c.Ret))
			case x == 0:
				return 0
			case far || x<<n>>n != x || x<<n < 0:
				c.failf(i, "overflow of %s in %s << %s", c.Ret, show(x, c.Ret), show(n, c.Ret))
			default:
				return x << n
			}
			return 0
		})
	}
}

func bitCounts() []Overload {
	var out []Overload
	for _, t := range smallInts {
		width := t.Arrow().(arrow.FixedWidthDataType).BitWidth()
		mask := uint64(math.MaxUint64) >> (64 - width)
		out = append(out, strict(Types{t}, types.Int8, perInt(t, bitCount[int8](mask), bitCount[int16](mask), bitCount[int32](mask), bitCount[int64](mask), bitCount[uint8](mask), bitCount[uint16](mask), bitCount[uint32](mask), bitCount[uint64](mask))))
	}
	return out
}

func bitCount[T kernels.Integer](mask uint64) Kernel {
	return func(c *Call) (arrow.Array, error) {
		a := col[T](c, 0)
		return fixed(c, func(i int) int8 { return int8(bits.OnesCount64(uint64(a.at(i)) & mask)) })
	}
}
