package kernels

import (
	"bytes"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/riverbed/riverbed/core/rowkey/rowkeytest"
)

// exactly is the textbook: the sum as a fraction, with NaN and the infinities counted.
type exactly struct {
	sum, squares     big.Rat
	n                int64
	nan, plus, minus int64
}

func (e *exactly) add(x float64, w int64) {
	e.n += w
	switch {
	case x != x:
		e.nan += w
	case math.IsInf(x, 1):
		e.plus += w
	case math.IsInf(x, -1):
		e.minus += w
	default:
		r := new(big.Rat).SetFloat64(x)
		weight := new(big.Rat).SetInt64(w)
		e.sum.Add(&e.sum, new(big.Rat).Mul(r, weight))
		e.squares.Add(&e.squares, new(big.Rat).Mul(weight, r.Mul(r, r)))
	}
}

func (e *exactly) over(n int64) float64 {
	switch {
	case e.nan != 0 || e.plus != 0 && e.minus != 0:
		return math.NaN()
	case e.plus != 0:
		return math.Inf(1)
	case e.minus != 0:
		return math.Inf(-1)
	}
	f, _ := new(big.Rat).Quo(&e.sum, new(big.Rat).SetInt64(n)).Float64()
	return f + 0
}

func (e *exactly) variance(ddof int64) float64 {
	if e.nan|e.plus|e.minus != 0 {
		return math.NaN()
	}
	n := new(big.Rat).SetInt64(e.n)
	v := new(big.Rat).Mul(&e.sum, &e.sum)
	v.Sub(new(big.Rat).Mul(n, &e.squares), v)
	v.Quo(v, n.Mul(n, new(big.Rat).SetInt64(e.n-ddof)))
	f, _ := v.Float64()
	return f
}

func same(a, b float64) bool {
	return math.Float64bits(a) == math.Float64bits(b) || a != a && b != b
}

// samples are kinds of data: what windows hold, what leaves them, ties, cancellation, the ends of the range.
var samples = map[string]func(r *rand.Rand) float64{
	"prices":     func(r *rand.Rand) float64 { return math.Round(r.Float64()*1e6) / 100 },
	"normal":     func(r *rand.Rand) float64 { return r.NormFloat64() * 1e3 },
	"any":        rowkeytest.Float,
	"bits":       func(r *rand.Rand) float64 { return math.Float64frombits(r.Uint64() &^ (1 << 62)) },
	"subnormal":  func(r *rand.Rand) float64 { return math.Float64frombits(r.Uint64N(1<<54) | uint64(r.IntN(2))<<63) },
	"huge":       func(r *rand.Rand) float64 { return math.Ldexp(r.Float64()-0.5, 1020+r.IntN(5)) },
	"cancelling": func(r *rand.Rand) float64 { return []float64{1e300, -1e300, 1, 1e-300, -1}[r.IntN(5)] },
	"ties":       func(r *rand.Rand) float64 { return math.Ldexp(float64(1+r.IntN(2)), []int{0, 53, -53, 52}[r.IntN(4)]) },
	"zeros":      func(r *rand.Rand) float64 { return math.Copysign(0, float64(r.IntN(2))-0.5) },
	"wide":       func(r *rand.Rand) float64 { return math.Ldexp(r.Float64(), r.IntN(120)-60) },
}

// Any order, any cut into parts, rows taken back, saved and loaded: the bits are those of the exact fraction, rounded once.
func TestExactSums(t *testing.T) {
	for name, sample := range samples {
		for seed := range uint64(12) {
			r := rand.New(rand.NewPCG(seed, 77))
			groups := 1 + r.IntN(4)
			var parts [2]Moments
			parts[0].Resize(groups)
			parts[1].Resize(groups)
			want := make([]exactly, groups)
			for range 1 + r.IntN(8) {
				n := r.IntN(40)
				if r.IntN(4) == 0 {
					n = 500 + r.IntN(3000) // for the bins
				}
				vals, ids, weights := make([]float64, n), make([]uint32, n), make([]int64, n)
				for i := range vals {
					vals[i], ids[i], weights[i] = sample(r), uint32(r.IntN(groups)), 1
				}
				var w []int64
				switch r.IntN(3) {
				case 0:
					for i := range weights {
						weights[i] = []int64{1, -1, 2, 7, -300, math.MaxInt32, 1 << 40}[r.IntN(7)]
					}
					w = weights
				}
				if groups == 1 && r.IntN(2) == 0 {
					ids = nil
				}
				part := &parts[r.IntN(2)]
				part.Add(ids, vals, nil, w)
				for i, x := range vals {
					g := uint32(0)
					if ids != nil {
						g = ids[i]
					}
					want[g].add(x, weights[i])
				}
				// Some of them are taken back, in another order.
				if r.IntN(2) == 0 && n > 0 {
					k := r.IntN(n)
					back := make([]float64, k)
					backIDs, backWeights := make([]uint32, k), make([]int64, k)
					for i := range back {
						from := k - 1 - i
						back[i], backWeights[i] = vals[from], -weights[from]
						if ids != nil {
							backIDs[i] = ids[from]
						}
						want[backIDs[i]].add(back[i], backWeights[i])
					}
					parts[r.IntN(2)].Add(backIDs, back, nil, backWeights)
				}
			}
			into := make([]uint32, groups)
			for i := range into {
				into[i] = uint32(i)
			}
			var again Moments
			again.Resize(groups)
			for _, i := range into {
				again.Load(i, parts[0].Save(nil, i))
			}
			again.Merge(&parts[1], into)
			parts[1].Merge(&parts[0], into)
			for g := range into {
				e := &want[g]
				if !bytes.Equal(again.Save(nil, uint32(g)), parts[1].Save(nil, uint32(g))) {
					t.Fatalf("%s %d: the same rows are saved differently", name, seed)
				}
				for _, m := range []*Moments{&again, &parts[1]} {
					if m.Sums.Rows(uint32(g)) != e.n {
						t.Fatalf("%s %d: %d rows, want %d", name, seed, m.Sums.Rows(uint32(g)), e.n)
					}
					if got, w := m.Sums.Sum(uint32(g)), e.over(1); !same(got, w) {
						t.Fatalf("%s %d: sum %v, want %v", name, seed, got, w)
					}
					if e.n > 0 {
						if got, w := m.Sums.Mean(uint32(g)), e.over(e.n); !same(got, w) {
							t.Fatalf("%s %d: mean %v of %d, want %v", name, seed, got, e.n, w)
						}
					}
					if e.n > 1 {
						if got, w := m.Variance(uint32(g), 1), e.variance(1); !same(got, w) {
							t.Fatalf("%s %d: variance %v, want %v", name, seed, got, w)
						}
					}
				}
			}
			parts[1].Reset(into)
			for g := range into {
				if s := parts[1].Sums.Sum(uint32(g)); s != 0 || parts[1].Sums.Rows(uint32(g)) != 0 || parts[1].squares.acc[g].field != 0 {
					t.Fatalf("%s: a reset group holds %v", name, s)
				}
			}
		}
	}
}

// Pairs of all kinds, in batches with and without weights, whose kinds change between batches.
func TestExactPairs(t *testing.T) {
	rat := func(v Exact) *big.Rat {
		f := new(big.Rat).SetFrac(v.num, v.den)
		if v.exp >= 0 {
			return f.Mul(f, new(big.Rat).SetInt(new(big.Int).Lsh(big.NewInt(1), uint(v.exp))))
		}
		return f.Quo(f, new(big.Rat).SetInt(new(big.Int).Lsh(big.NewInt(1), uint(-v.exp))))
	}
	kinds := []string{"prices", "normal", "bits", "subnormal", "huge", "cancelling", "zeros", "wide", "whole"}
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 5))
		var parts [2]Comoments
		var n int64
		sums := map[string]*big.Rat{"x": {}, "y": {}, "xx": {}, "yy": {}, "xy": {}}
		finite := true
		for range 1 + r.IntN(5) {
			rows := 1 + r.IntN(300)
			var sample [2]func(r *rand.Rand) float64
			for k := range sample {
				if kind := kinds[r.IntN(len(kinds))]; kind == "whole" {
					sample[k] = func(r *rand.Rand) float64 { return float64(r.IntN(21) - 10) }
				} else {
					sample[k] = samples[kind]
				}
			}
			xs, ys, ids, valid := make([]float64, rows), make([]float64, rows), make([]uint32, rows), Ones(rows)
			var weights []int64
			if r.IntN(3) == 0 {
				weights = make([]int64, rows)
			}
			for i := range xs {
				xs[i], ys[i] = sample[0](r), sample[1](r)
				if r.IntN(9) == 0 {
					ClearBit(valid, i)
					if weights != nil {
						weights[i] = 7
					}
					continue
				}
				w := int64(1)
				if weights != nil {
					w = []int64{1, -1, 3, 1 << 40}[r.IntN(4)]
					weights[i] = w
				}
				n += w
				if math.IsNaN(xs[i]) || math.IsInf(xs[i], 0) || math.IsNaN(ys[i]) || math.IsInf(ys[i], 0) {
					finite = false
					continue
				}
				x, y := new(big.Rat).SetFloat64(xs[i]), new(big.Rat).SetFloat64(ys[i])
				for name, v := range map[string]*big.Rat{"x": x, "y": y, "xx": new(big.Rat).Mul(x, x), "yy": new(big.Rat).Mul(y, y), "xy": new(big.Rat).Mul(x, y)} {
					sums[name].Add(sums[name], new(big.Rat).Mul(v, new(big.Rat).SetInt64(w)))
				}
			}
			part := &parts[r.IntN(2)]
			part.Resize(1)
			part.Add(ids, xs, ys, valid, weights)
		}
		parts[0].Resize(1)
		parts[1].Resize(1)
		var again Comoments
		again.Resize(1)
		again.Load(0, parts[0].Save(nil, 0))
		again.Merge(&parts[1], []uint32{0})
		parts[1].Merge(&parts[0], []uint32{0})
		for _, m := range []*Comoments{&again, &parts[1]} {
			if m.Rows(0) != n {
				t.Fatalf("%d: %d rows, want %d", seed, m.Rows(0), n)
			}
			xx, yy, xy, ok := m.Spreads(0)
			if !ok || !finite {
				if ok != finite {
					t.Fatalf("%d: finite is %t", seed, ok)
				}
				continue
			}
			for name, got := range map[string]Exact{"xx": xx, "yy": yy, "xy": xy} {
				want := new(big.Rat).Mul(sums[name], new(big.Rat).SetInt64(n))
				want.Sub(want, new(big.Rat).Mul(sums[name[:1]], sums[name[1:]]))
				if rat(got).Cmp(want) != 0 {
					t.Fatalf("%d: %s is %v, want %v", seed, name, rat(got), want)
				}
			}
		}
		if !bytes.Equal(again.Save(nil, 0), parts[1].Save(nil, 0)) {
			t.Fatalf("%d: the same rows are saved differently", seed)
		}
		parts[1].Reset([]uint32{0})
		if parts[1].Rows(0) != 0 {
			t.Fatal("a reset group has rows")
		}
	}
}

func TestDeviationIsRoundedOnce(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		var m Moments
		m.Resize(1)
		vals := make([]float64, 2+r.IntN(10))
		for i := range vals {
			vals[i] = math.Ldexp(r.NormFloat64(), r.IntN(40)-20)
		}
		m.Add(nil, vals, nil, nil)
		m.settle(0)
		v, _ := spread(&m.Sums, &m.Sums, &m.squares, 0)
		v = v.DivInt(int64(len(vals))).DivInt(int64(len(vals) - 1))
		f := new(big.Float).SetPrec(600).SetInt(v.num)
		f.Quo(f, new(big.Float).SetInt(v.den))
		f.SetMantExp(f, v.exp)
		want, _ := f.Sqrt(f).Float64()
		if got := m.Deviation(0, 1); !same(got, want) {
			t.Fatalf("deviation of %v is %v, want %v", vals, got, want)
		}
	}
}

func TestSumsOfEdges(t *testing.T) {
	for _, c := range []struct {
		vals []float64
		want float64
	}{
		{nil, 0},
		{[]float64{math.Copysign(0, -1)}, 0},
		{[]float64{math.MaxFloat64, math.MaxFloat64, -math.MaxFloat64}, math.MaxFloat64},
		{[]float64{math.MaxFloat64, math.MaxFloat64}, math.Inf(1)},
		{[]float64{math.MaxFloat64, math.Ldexp(1, 969)}, math.MaxFloat64},
		{[]float64{math.MaxFloat64, math.Ldexp(1, 970)}, math.Inf(1)}, // half a unit, and the even neighbour is infinite
		{[]float64{math.SmallestNonzeroFloat64, math.SmallestNonzeroFloat64}, 2 * math.SmallestNonzeroFloat64},
		{[]float64{1, math.Ldexp(1, -53)}, 1},
		{[]float64{1, math.Ldexp(1, -53), math.SmallestNonzeroFloat64}, 1 + math.Ldexp(1, -52)},
		{[]float64{0.1, 0.2, 0.3, -0.6}, 2.7755575615628914e-17},
		{[]float64{math.Inf(1), 1}, math.Inf(1)},
		{[]float64{math.Inf(1), math.Inf(-1)}, math.NaN()},
	} {
		var s FloatSums
		s.Resize(1)
		s.Add(nil, c.vals, nil, nil)
		if got := s.Sum(0); !same(got, c.want) {
			t.Errorf("the sum of %v is %v, want %v", c.vals, got, c.want)
		}
	}
}

// A mean among the subnormals just below a tie: rounding to 53 bits first would make it one, and round up.
func TestMeanIsRoundedOnce(t *testing.T) {
	tiny := math.SmallestNonzeroFloat64
	var s FloatSums
	s.Resize(1)
	s.Add(nil, []float64{2 * tiny, tiny}, nil, []int64{1<<55 - 1, 1<<55 + 1})
	if got := s.Mean(0); got != tiny || s.Rows(0) != 1<<56 {
		t.Errorf("the mean of %d rows is %v, want %v", s.Rows(0), got, tiny)
	}
}

func BenchmarkExactSum(b *testing.B) {
	const n, batch = 10_000_000, 1 << 14
	r := rand.New(rand.NewPCG(1, 2))
	vals := make([]float64, n)
	for i := range vals {
		vals[i] = r.NormFloat64() * 1000
	}
	report := func(b *testing.B) {
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/row")
	}
	b.Run("ungrouped", func(b *testing.B) {
		for b.Loop() {
			var s FloatSums
			s.Resize(1)
			for from := 0; from < n; from += batch {
				s.Add(nil, vals[from:min(n, from+batch)], nil, nil)
			}
		}
		report(b)
	})
	for _, groups := range []int{4, 1000, 100_000, 1_000_000} {
		ids := make([]uint32, n)
		for i := range ids {
			ids[i] = uint32(r.IntN(groups))
		}
		b.Run(fmt.Sprintf("%d groups", groups), func(b *testing.B) {
			for b.Loop() {
				var s FloatSums
				s.Resize(groups)
				for from := 0; from < n; from += batch {
					to := min(n, from+batch)
					s.Add(ids[from:to], vals[from:to], nil, nil)
				}
			}
			report(b)
		})
		b.Run(fmt.Sprintf("%d groups plain", groups), func(b *testing.B) {
			for b.Loop() {
				s := make([]struct {
					sum  float64
					rows int64
				}, groups)
				for i, x := range vals {
					q := &s[ids[i]]
					q.sum += x
					q.rows++
				}
			}
			report(b)
		})
	}
}
