package fn

import (
	"math"
	"math/big"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/types"
)

// The aggregates below are functions of a group's values in ascending order, so that rounding does not depend on the order
// in which the rows came.
var shapeAggregates = []*Aggregate{
	shape("product", "The product of the values.", "2, 3", "6.0", func(v []float64) (float64, bool) {
		p := 1.0
		for _, x := range v {
			p *= x
		}
		return p, len(v) > 0
	}),
	shape("geomean", "The geometric mean: the n-th root of the product.", "2, 8", "4.0", func(v []float64) (float64, bool) {
		s := 0.0
		for _, x := range v {
			s += kernels.Log(x)
		}
		return kernels.Exp(s / float64(len(v))), len(v) > 0
	}).alias("geometric_mean"),
	exactShape("skewness", "The skewness of the values as a sample; NULL for fewer than three.", "1, 2, 3", "0.0", func(v []float64) (float64, bool) {
		if len(v) < 3 {
			return 0, false
		}
		m2, m3, _, ok := centralMoments(v)
		if !ok || m2.Sign() == 0 {
			return math.NaN(), true
		}
		// √(n(n-1)) / (n-2) · m3 / m2^1.5
		n := int64(len(v))
		root := precise().Sqrt(precise().Quo(whole(n*(n-1)), m2))
		return rounded(precise().Quo(precise().Mul(root, precise().Quo(m3, m2)), whole(n-2))), true
	}),
	exactShape("kurtosis", "The excess kurtosis of the values as a sample; NULL for fewer than four.", "1, 2, 3, 4", "-1.2", func(v []float64) (float64, bool) {
		n := int64(len(v))
		if n < 4 {
			return 0, false
		}
		g, ok, finite := excess(v)
		if !finite {
			return math.NaN(), true
		}
		// (n-1) / ((n-2)(n-3)) · ((n+1) g + 6)
		g.Add(g.Mul(g, whole(n+1)), whole(6))
		return rounded(g.Quo(g.Mul(g, whole(n-1)), precise().Mul(whole(n-2), whole(n-3)))), ok
	}),
	exactShape("kurtosis_pop", "The excess kurtosis of the values as a whole population.", "1, 3", "-2.0", func(v []float64) (float64, bool) {
		if len(v) < 2 {
			return 0, false
		}
		g, ok, finite := excess(v)
		if !finite {
			return math.NaN(), true
		}
		return rounded(g), ok
	}),
	shape("mad", "The median of the distances from the median.", "1, 2, 4", "1.0", func(v []float64) (float64, bool) {
		if len(v) == 0 {
			return 0, false
		}
		m := middle(v)
		d := make([]float64, len(v))
		for i, x := range v {
			d[i] = math.Abs(x - m)
		}
		slices.Sort(d)
		return middle(d), true
	}),
	{
		Name: "entropy", Category: Aggregated, Algebra: Ordered, Summary: "The entropy in bits of how often each value occurs; 0 without rows.",
		Overloads: []AggOverload{{Args: Types{types.AnyType}, Returns: types.Float64,
			New: newCollect(entropy), NewRetract: newBag(entropy)}},
		Examples: []Example{{SQL: "x", Rows: "1, 2, 2, 1", Want: "1.0"}}, Differs: "The last bits may differ from DuckDB's.",
	},
}

const shapeNote = "The last bits may differ from DuckDB's, which depend on the order of the rows; these do not. Takes numbers as DOUBLE."

func (f *Aggregate) alias(names ...string) *Aggregate {
	f.Aliases = append(f.Aliases, names...)
	return f
}

// shape makes an aggregate of a function of the sorted values.
func shape(name, summary, rows, want string, f func(v []float64) (float64, bool)) *Aggregate {
	kind := ordered{form: byValue(false), pick: pickAll, build: func(c AggConfig, values arrow.Array, offs []int32, weights []int64) (arrow.Array, error) {
		values, offs = repeat(values, offs, weights)
		v := kernels.Values[float64](values)
		out, valid := make([]float64, len(offs)-1), newValidBits(len(offs)-1)
		for g := range out {
			x, ok := f(v[offs[g]:offs[g+1]])
			if out[g] = x; !ok {
				out[g] = 0
				valid.null(g)
			}
		}
		return kernels.NewFixed(c.Ret.Arrow(), out, valid.bits), nil
	}}
	return &Aggregate{Name: name, Category: Aggregated, Algebra: Ordered, Summary: summary, Differs: shapeNote,
		Overloads: []AggOverload{{Args: Types{types.Float64}, Returns: types.Float64, New: newCollect(kind), NewRetract: newBag(kind)}},
		Examples:  []Example{{SQL: "x", Rows: rows, Want: want}}}
}

// precise makes a number of so many bits that what cancels out in the moments leaves enough.
func precise() *big.Float { return new(big.Float).SetPrec(512) }

func whole(n int64) *big.Float { return precise().SetInt64(n) }

func rounded(x *big.Float) float64 {
	f, _ := x.Float64()
	return f
}

// exactShape is shape for a function that computes precisely and rounds once.
func exactShape(name, summary, rows, want string, f func(v []float64) (float64, bool)) *Aggregate {
	a := shape(name, summary, rows, want, f)
	a.Differs = "Exact, rounded once."
	return a
}

// centralMoments are the means of the second, third and fourth powers of the distances from the mean. ok is false when a
// value is not finite.
func centralMoments(v []float64) (m2, m3, m4 *big.Float, ok bool) {
	n, mean := whole(int64(len(v))), precise()
	for _, x := range v {
		if x-x != 0 {
			return nil, nil, nil, false
		}
		mean.Add(mean, precise().SetFloat64(x))
	}
	mean.Quo(mean, n)
	m2, m3, m4 = precise(), precise(), precise()
	for _, x := range v {
		d := precise().Sub(precise().SetFloat64(x), mean)
		q := precise().Mul(d, d)
		m2.Add(m2, q)
		m3.Add(m3, d.Mul(d, q))
		m4.Add(m4, q.Mul(q, q))
	}
	return m2.Quo(m2, n), m3.Quo(m3, n), m4.Quo(m4, n), true
}

// excess is m4 / m2² - 3; ok is false when the values do not vary.
func excess(v []float64) (g *big.Float, ok, finite bool) {
	m2, _, m4, finite := centralMoments(v)
	if !finite || m2.Sign() == 0 {
		return precise(), false, finite
	}
	return m4.Sub(m4.Quo(m4, m2.Mul(m2, m2)), whole(3)), true, true
}

// middle is the median of sorted values.
func middle(v []float64) float64 {
	n := len(v)
	if n%2 == 1 {
		return v[n/2]
	}
	return v[n/2-1] + float64((v[n/2]-v[n/2-1])/2)
}

// entropy adds up the distinct values' shares; rows of one value are one row with a weight, or neighbours.
var entropy = ordered{form: byValue(false), pick: pickAll, build: func(c AggConfig, values arrow.Array, offs []int32, weights []int64) (arrow.Array, error) {
	out := make([]float64, len(offs)-1)
	t := c.Args[0]
	for g := range out {
		var counts []int64
		total := int64(0)
		for k := offs[g]; k < offs[g+1]; k++ {
			total += weights[k]
			if k > offs[g] && types.Compare(types.ValueAt(values, int(k-1), t), types.ValueAt(values, int(k), t), t) == 0 {
				counts[len(counts)-1] += weights[k]
			} else {
				counts = append(counts, weights[k])
			}
		}
		for _, n := range counts {
			p := float64(n) / float64(total)
			out[g] -= float64(p * kernels.Log2(p))
		}
		out[g] += 0 // no -0.0
	}
	return kernels.NewFixed(c.Ret.Arrow(), out, nil), nil
}}
