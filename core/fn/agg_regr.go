package fn

import (
	"math"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/types"
)

// The regressions take (y, x). With n pairs, xx, yy and xy are n times the sums of squares and products of the distances
// from the means: exact fractions, so that each result is rounded once.
var pairAggregates = []*Aggregate{
	pairs("covar_pop", "The covariance of pairs as a whole population.", "1.25", func(p *pairSums) (float64, bool) {
		return p.finite(func() float64 { return p.xy.DivInt(p.n).DivInt(p.n).Round() }), true
	}),
	pairs("covar_samp", "The covariance of pairs as a sample; NULL for fewer than two.", "1.6666666666666667", func(p *pairSums) (float64, bool) {
		if p.n < 2 {
			return 0, false
		}
		return p.finite(func() float64 { return p.xy.DivInt(p.n).DivInt(p.n - 1).Round() }), true
	}),
	pairs("corr", "The correlation of pairs, from -1 to 1; NaN when a side does not vary.", "1.0", func(p *pairSums) (float64, bool) {
		return p.finite(func() float64 {
			if p.xx.Sign() == 0 || p.yy.Sign() == 0 {
				return math.NaN()
			}
			return float64(p.xy.Sign()) * p.xy.Mul(p.xy).Div(p.xx.Mul(p.yy)).Root()
		}), true
	}),
	pairs("regr_slope", "The slope of the line through pairs (y, x); NaN when x does not vary.", "1.0", func(p *pairSums) (float64, bool) {
		return p.finite(func() float64 {
			if p.xx.Sign() == 0 {
				return math.NaN()
			}
			return p.xy.Div(p.xx).Round()
		}), true
	}),
	pairs("regr_intercept", "Where the line through pairs (y, x) meets x = 0; NULL when x does not vary.", "0.0", func(p *pairSums) (float64, bool) {
		if !p.ok {
			return math.NaN(), true
		}
		if p.xx.Sign() == 0 {
			return 0, false
		}
		// (Σy xx - Σx xy) / (n xx)
		return p.sumY.Mul(p.xx).Sub(p.sumX.Mul(p.xy)).Div(p.xx).DivInt(p.n).Round(), true
	}),
	pairs("regr_r2", "The square of the correlation of pairs (y, x); NULL when x does not vary, 1 when only y does not.", "1.0", func(p *pairSums) (float64, bool) {
		switch {
		case !p.ok:
			return math.NaN(), true
		case p.xx.Sign() == 0:
			return 0, false
		case p.yy.Sign() == 0:
			return 1, true
		}
		return p.xy.Mul(p.xy).Div(p.xx.Mul(p.yy)).Round(), true
	}),
	pairs("regr_sxx", "The sum of squared distances of x from its mean.", "5.0", func(p *pairSums) (float64, bool) {
		return p.finite(func() float64 { return p.xx.DivInt(p.n).Round() }), true
	}),
	pairs("regr_syy", "The sum of squared distances of y from its mean.", "5.0", func(p *pairSums) (float64, bool) {
		return p.finite(func() float64 { return p.yy.DivInt(p.n).Round() }), true
	}),
	pairs("regr_sxy", "The sum of products of the distances of x and y from their means.", "5.0", func(p *pairSums) (float64, bool) {
		return p.finite(func() float64 { return p.xy.DivInt(p.n).Round() }), true
	}),
	pairs("regr_avgx", "The mean of x over the pairs.", "2.5", func(p *pairSums) (float64, bool) { return p.meanX, true }),
	pairs("regr_avgy", "The mean of y over the pairs.", "2.5", func(p *pairSums) (float64, bool) { return p.meanY, true }),
}

func pairs(name, summary, want string, value func(p *pairSums) (float64, bool)) *Aggregate {
	return &Aggregate{
		Name: name, Category: Aggregated, Algebra: Linear, Summary: summary,
		Overloads: []AggOverload{{Args: []types.Type{types.Float64, types.Float64}, Returns: types.Float64,
			New: func(AggConfig) Accumulator { return &pairAcc{value: value} }}},
		Examples: []Example{{SQL: "x, x", Rows: "1, 2, 3, 4", Want: want}},
		Differs:  "Exact, rounded once.",
	}
}

// pairSums is one group, as the functions above read it.
type pairSums struct {
	n            int64
	xx, yy, xy   kernels.Exact
	sumX, sumY   kernels.Exact
	ok           bool // no NaN, no infinity
	meanX, meanY float64
}

// finite is NaN when a value is not.
func (p *pairSums) finite(f func() float64) float64 {
	if !p.ok {
		return math.NaN()
	}
	return f()
}

type pairAcc struct {
	value func(p *pairSums) (float64, bool)
	sums  kernels.Comoments
}

func (a *pairAcc) Resize(n int) { a.sums.Resize(n) }

func (a *pairAcc) Add(groups []uint32, args []Arg, weights []int64) error {
	y, x := rowsOf(args[0], len(groups)), rowsOf(args[1], len(groups))
	a.sums.Add(groups, kernels.Values[float64](x), kernels.Values[float64](y), maskOfArgs([]arrow.Array{x, y}), weights)
	return nil
}

func (a *pairAcc) Merge(other Accumulator, into []uint32) error {
	a.sums.Merge(&other.(*pairAcc).sums, into)
	return nil
}

func (a *pairAcc) Result(groups []uint32) (arrow.Array, error) { return a.ResultOf(a, groups) }

func (a *pairAcc) ResultOf(of Accumulator, groups []uint32) (arrow.Array, error) {
	out, valid, sums := make([]float64, len(groups)), newValidBits(len(groups)), &of.(*pairAcc).sums
	for i, g := range groups {
		p := pairSums{n: sums.Rows(g)}
		if p.n <= 0 {
			valid.null(i)
			continue
		}
		p.xx, p.yy, p.xy, p.ok = sums.Spreads(g)
		if p.ok {
			p.sumX, p.sumY = sums.X.Exact(g), sums.Y.Exact(g)
		}
		p.meanX, p.meanY = sums.X.Mean(g), sums.Y.Mean(g)
		v, ok := a.value(&p)
		if out[i] = v; !ok {
			valid.null(i)
		}
	}
	return kernels.NewFixed(arrow.PrimitiveTypes.Float64, out, valid.bits), nil
}

// Finish brings together what is added apart.
func (a *pairAcc) Finish() { a.sums.Settle() }

func (a *pairAcc) Reset(groups []uint32) { a.sums.Reset(groups) }
func (a *pairAcc) State() types.Type     { return types.Binary }
func (a *pairAcc) Bytes() int64          { return a.sums.Bytes() }

func (a *pairAcc) Save(groups []uint32) (arrow.Array, error) {
	return saveBytes(groups, a.sums.Save), nil
}

func (a *pairAcc) Load(groups []uint32, saved arrow.Array) error {
	loadBytes(groups, saved, a.sums.Load)
	return nil
}
