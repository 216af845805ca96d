package fn

import (
	"math"
	"math/big"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/types"
)

var quantileAggregates = []*Aggregate{
	{
		Name: "median", Category: Aggregated, Algebra: Ordered,
		Summary:   "The middle value; for numbers and times the mean of the two in the middle.",
		Overloads: append(continuousOverloads(nil), discreteOverload([]types.Type{types.AnyType})),
		Examples:  []Example{{SQL: "x", Rows: "1, 2, 4, 3", Want: "2.5"}},
	},
	{
		Name: "quantile_cont", Category: Aggregated, Algebra: Ordered,
		Summary: "The value at a fraction of the ordered values, between two of them where it falls so. A negative fraction counts from the end.",
		Overloads: append(continuousOverloads([]types.Type{types.Float64}),
			continuousOverloads([]types.Type{types.ListOf(types.Float64)})...),
		Examples: []Example{{SQL: "x, 0.25", Rows: "1, 2, 3, 4", Want: "1.75"}},
	},
	{
		Name: "quantile_disc", Aliases: []string{"quantile"}, Category: Aggregated, Algebra: Ordered,
		Summary:   "The value at a fraction of the ordered values. A negative fraction counts from the end.",
		Overloads: []AggOverload{discreteOverload([]types.Type{types.AnyType, types.Float64}), discreteOverload([]types.Type{types.AnyType, types.ListOf(types.Float64)})},
		Examples:  []Example{{SQL: "x, 0.5", Rows: "1, 2, 3, 4", Want: "2"}},
	},
}

// fractions is what a quantile asks for.
type fractions struct {
	at   []float64
	list bool // the result is a list
}

// continuousOverloads take what can be interpolated, and further arguments.
func continuousOverloads(more []types.Type) []AggOverload {
	var out []AggOverload
	add := func(arg, ret types.Type) {
		out = append(out, AggOverload{Args: append([]types.Type{arg}, more...), New: newWords(continuous), NewRetract: newBag(continuous),
			Resolve: func(args []types.Type, consts []types.Value) (Resolved, error) {
				value := ret
				if ret.Kind == types.Decimal {
					value = args[0]
				}
				return quantile(value, args, consts)
			}})
	}
	for _, t := range integerTypes[1:] {
		add(t, types.Float64)
	}
	add(types.Uint128, types.Float64)
	add(types.Type{Kind: types.Decimal}, types.Type{Kind: types.Decimal})
	add(types.Float32, types.Float32)
	add(types.Float64, types.Float64)
	add(types.Date32, types.TsUS)
	for _, t := range []types.Type{types.TsUS, types.TsS, types.TsMS, types.TsNS, types.TsTZ, types.TimeUS} {
		add(t, t)
	}
	return out
}

func discreteOverload(args []types.Type) AggOverload {
	return AggOverload{Args: args, New: newWords(discrete), NewRetract: newBag(discrete),
		Resolve: func(args []types.Type, consts []types.Value) (Resolved, error) {
			return quantile(args[0], args, consts)
		}}
}

// quantile reads the constant fractions.
func quantile(value types.Type, args []types.Type, consts []types.Value) (Resolved, error) {
	r := Resolved{Args: append([]types.Type{value}, args[1:]...), Returns: value}
	q := fractions{at: []float64{0.5}}
	if len(args) == 2 {
		q.at = nil
		items := []types.Value{valueOf(consts, 1)}
		t := args[1]
		if l, ok := consts[1].([]types.Value); ok && t.Kind == types.List {
			items, q.list, t, r.Returns = l, true, *t.Elem, types.ListOf(value)
		}
		for _, v := range items {
			f, ok := number(v, t)
			if !ok {
				return r, errs.New(errs.Schema, "bind", "the fraction of a quantile must be a constant number, or a list of them")
			}
			if !(f >= -1 && f <= 1) {
				return r, errs.New(errs.Schema, "bind", "the fraction of a quantile must be from -1 to 1, not %v", f)
			}
			q.at = append(q.at, f)
		}
	}
	r.Data = q
	return r, nil
}

// number reads a constant of a numeric type.
func number(v types.Value, t types.Type) (float64, bool) {
	switch x := v.(type) {
	case int64:
		return float64(x), true
	case uint64:
		return float64(x), true
	case float32:
		return float64(x), true
	case float64:
		return x, true
	case decimal128.Num:
		scale := 0
		if t.Kind == types.Decimal {
			scale = int(t.Scale)
		}
		den := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil)
		return kernels.RoundFraction(x.BigInt(), den), true
	}
	return 0, false
}

var (
	discrete   = ordered{form: byValue(false), pick: pickDiscrete, build: buildQuantiles}
	continuous = ordered{form: byValue(false), pick: pickContinuous, build: buildContinuous}
)

// ranks emits the rows at these ranks, counted from 0, each with n.
func ranks(rows sortedRows, at []int64, n int64, emit func([]byte, int64)) {
	if r, ok := rows.(wordRows); ok {
		for _, i := range at {
			emit(r.at(i), n)
		}
		return
	}
	found := make([][]byte, len(at))
	missing, upTo := len(at), int64(0)
	rows.each(func(row []byte, w int64) bool {
		upTo += w
		for i, r := range at {
			if found[i] == nil && r < upTo {
				found[i] = row
				missing--
			}
		}
		return missing > 0
	})
	for _, row := range found {
		emit(row, n)
	}
}

func pickDiscrete(c AggConfig, rows sortedRows, emit func([]byte, int64)) {
	n := rows.total()
	if n == 0 {
		return
	}
	var at []int64
	for _, q := range c.Data.(fractions).at {
		r := max(1, n-int64(math.Floor(float64(n)-float64(float64(n)*math.Abs(q))))) - 1
		if q < 0 {
			r = n - 1 - r
		}
		at = append(at, r)
	}
	ranks(rows, at, n, emit)
}

// between is where a fraction falls among n values: the two ranks and how far it is from the first.
func between(q float64, n int64) (lo, hi int64, part float64) {
	at := float64(math.Abs(q) * float64(n-1))
	lo, hi = int64(math.Floor(at)), int64(math.Ceil(at))
	part = at - float64(lo)
	if q < 0 {
		lo, hi = n-1-lo, n-1-hi
	}
	return lo, hi, part
}

func pickContinuous(c AggConfig, rows sortedRows, emit func([]byte, int64)) {
	n := rows.total()
	if n == 0 {
		return
	}
	var at []int64
	for _, q := range c.Data.(fractions).at {
		lo, hi, _ := between(q, n)
		at = append(at, lo, hi)
	}
	ranks(rows, at, n, emit)
}

func buildQuantiles(c AggConfig, values arrow.Array, offs []int32, weights []int64) (arrow.Array, error) {
	if c.Data.(fractions).list {
		return listOver(c.Ret, values, offs), nil
	}
	return buildOne(c, values, offs, weights)
}

func buildContinuous(c AggConfig, values arrow.Array, offs []int32, weights []int64) (arrow.Array, error) {
	q := c.Data.(fractions)
	parts := make([]float64, 0, len(weights)/2) // of each pair
	for g := range len(offs) - 1 {
		for k := offs[g]; k < offs[g+1]; k += 2 {
			_, _, part := between(q.at[(k-offs[g])/2], weights[k])
			parts = append(parts, part)
		}
	}
	halves := make([]int32, len(offs))
	for i, o := range offs {
		halves[i] = o / 2
	}
	var out arrow.Array
	switch t := c.Args[0]; t.Kind {
	case types.Double:
		out = interpolate(values, parts, func(lo, hi, p float64) float64 { return float64(lo*(1-p)) + float64(hi*p) })
	case types.Real:
		out = interpolate(values, parts, func(lo, hi float32, p float64) float32 {
			return float32(float64(float64(lo)*(1-p)) + float64(float64(hi)*p))
		})
	case types.Decimal:
		out = interpolate(values, parts, func(lo, hi decimal128.Num, p float64) decimal128.Num {
			d := new(big.Float).SetPrec(256).SetInt(hi.Sub(lo).BigInt())
			step, _ := d.Mul(d, new(big.Float).SetFloat64(p)).Int(nil)
			return lo.Add(decimal128.FromBigInt(step))
		})
	default: // times
		out = interpolate(values, parts, func(lo, hi int64, p float64) int64 {
			return lo + int64(math.Round(float64(hi-lo)*p))
		})
	}
	return buildQuantiles(c, out, halves, nil)
}

// interpolate combines each two values that follow each other.
func interpolate[T any](values arrow.Array, parts []float64, at func(lo, hi T, part float64) T) arrow.Array {
	v := kernels.Values[T](values)
	out := make([]T, len(parts))
	for i, p := range parts {
		if out[i] = v[2*i]; p > 0 {
			out[i] = at(v[2*i], v[2*i+1], p)
		}
	}
	return kernels.NewFixed(values.DataType(), out, nil)
}
