package fn

import (
	"math/big"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/types"
)

var varianceAggregates = []*Aggregate{
	moment("var_pop", nil, "The variance of the values as a whole population.", 0, false, "1, 3", "1.0"),
	moment("var_samp", []string{"variance"}, "The variance of the values as a sample; NULL for fewer than two.", 1, false, "1, 3", "2.0"),
	moment("stddev_pop", nil, "The standard deviation of the values as a whole population.", 0, true, "1, 3", "1.0"),
	moment("stddev_samp", []string{"stddev"}, "The standard deviation of the values as a sample; NULL for fewer than two.", 1, true, "1, 3, 5", "2.0"),
}

func moment(name string, aliases []string, summary string, ddof int64, root bool, rows, want string) *Aggregate {
	return &Aggregate{
		Name: name, Aliases: aliases, Category: Aggregated, Algebra: Linear, Summary: summary,
		Overloads: []AggOverload{{Args: []types.Type{types.Float64}, Returns: types.Float64,
			New: func(AggConfig) Accumulator { return &momentAcc{ddof: ddof, root: root} }}},
		Examples: []Example{{SQL: "x", Rows: rows, Want: want}},
		Differs:  "Exact, rounded once.",
	}
}

// floatSumAcc is SUM and AVG of DOUBLE.
type floatSumAcc struct {
	mean bool
	sums kernels.FloatSums
}

func newFloatSum(AggConfig) Accumulator  { return &floatSumAcc{} }
func newFloatMean(AggConfig) Accumulator { return &floatSumAcc{mean: true} }

func (s *floatSumAcc) Resize(n int) { s.sums.Resize(n) }

func (s *floatSumAcc) Add(groups []uint32, args []Arg, weights []int64) error {
	a := rowsOf(args[0], len(groups))
	s.sums.Add(groups, kernels.Values[float64](a), kernels.Valid(a), weights)
	return nil
}

func (s *floatSumAcc) Merge(other Accumulator, into []uint32) error {
	s.sums.Merge(&other.(*floatSumAcc).sums, into)
	return nil
}

func (s *floatSumAcc) Result(groups []uint32) (arrow.Array, error) { return s.ResultOf(s, groups) }

// lookAhead is how many groups are read before they are worked on.
const lookAhead = 128

func (s *floatSumAcc) ResultOf(of Accumulator, groups []uint32) (arrow.Array, error) {
	out, valid, sums := make([]float64, len(groups)), newValidBits(len(groups)), &of.(*floatSumAcc).sums
	for i, g := range groups {
		if i%lookAhead == 0 {
			sums.Look(groups[i:min(i+lookAhead, len(groups))])
		}
		switch n := sums.Rows(g); {
		case n == 0 || s.mean && n < 0:
			valid.null(i)
		case s.mean:
			out[i] = sums.Mean(g)
		default:
			out[i] = sums.Sum(g)
		}
	}
	return kernels.NewFixed(arrow.PrimitiveTypes.Float64, out, valid.bits), nil
}

func (s *floatSumAcc) Reset(groups []uint32) { s.sums.Reset(groups) }
func (s *floatSumAcc) State() types.Type     { return types.Binary }
func (s *floatSumAcc) Bytes() int64          { return s.sums.Bytes() }

func (s *floatSumAcc) Save(groups []uint32) (arrow.Array, error) {
	return saveBytes(groups, s.sums.Save), nil
}

func (s *floatSumAcc) Load(groups []uint32, saved arrow.Array) error {
	loadBytes(groups, saved, func(g uint32, b []byte) { s.sums.Load(g, b) })
	return nil
}

// momentAcc is the variances and standard deviations.
type momentAcc struct {
	ddof    int64
	root    bool
	moments kernels.Moments
}

func (m *momentAcc) Resize(n int) { m.moments.Resize(n) }

func (m *momentAcc) Add(groups []uint32, args []Arg, weights []int64) error {
	a := rowsOf(args[0], len(groups))
	m.moments.Add(groups, kernels.Values[float64](a), kernels.Valid(a), weights)
	return nil
}

func (m *momentAcc) Merge(other Accumulator, into []uint32) error {
	m.moments.Merge(&other.(*momentAcc).moments, into)
	return nil
}

func (m *momentAcc) Result(groups []uint32) (arrow.Array, error) { return m.ResultOf(m, groups) }

func (m *momentAcc) ResultOf(of Accumulator, groups []uint32) (arrow.Array, error) {
	out, valid, moments := make([]float64, len(groups)), newValidBits(len(groups)), &of.(*momentAcc).moments
	for i, g := range groups {
		switch {
		case moments.Rows(g) <= m.ddof:
			valid.null(i)
		case m.root:
			out[i] = moments.Deviation(g, m.ddof)
		default:
			out[i] = moments.Variance(g, m.ddof)
		}
	}
	return kernels.NewFixed(arrow.PrimitiveTypes.Float64, out, valid.bits), nil
}

// Finish brings together what is added apart.
func (m *momentAcc) Finish() { m.moments.Settle() }

func (m *momentAcc) Reset(groups []uint32) { m.moments.Reset(groups) }
func (m *momentAcc) State() types.Type     { return types.Binary }
func (m *momentAcc) Bytes() int64          { return m.moments.Bytes() }

func (m *momentAcc) Save(groups []uint32) (arrow.Array, error) {
	return saveBytes(groups, m.moments.Save), nil
}

func (m *momentAcc) Load(groups []uint32, saved arrow.Array) error {
	loadBytes(groups, saved, func(g uint32, b []byte) { m.moments.Load(g, b) })
	return nil
}

// spanSumAcc is SUM of INTERVAL, whose months, days and rest add up apart, and AVG.
type spanSumAcc struct {
	months, days, nanos []wideInt
	mean                bool
}

func newSpanSum(AggConfig) Accumulator  { return &spanSumAcc{} }
func newSpanMean(AggConfig) Accumulator { return &spanSumAcc{mean: true} }

func (s *spanSumAcc) parts() [3][]wideInt { return [3][]wideInt{s.months, s.days, s.nanos} }

func (s *spanSumAcc) Resize(n int) {
	s.months, s.days, s.nanos = grow(s.months, n), grow(s.days, n), grow(s.nanos, n)
}

func (s *spanSumAcc) Add(groups []uint32, args []Arg, weights []int64) error {
	a := rowsOf(args[0], len(groups))
	mask := kernels.Valid(a)
	for i, v := range kernels.Values[arrow.MonthDayNanoInterval](a) {
		if mask != nil && !kernels.Bit(mask, i) {
			continue
		}
		g, w := groups[i], weightOf(weights, i)
		for k, x := range [3]int64{int64(v.Months), int64(v.Days), v.Nanoseconds} {
			s.parts()[k][g].addTimes(uint64(x), x>>63, w)
		}
	}
	return nil
}

func (s *spanSumAcc) Merge(other Accumulator, into []uint32) error {
	for k, part := range other.(*spanSumAcc).parts() {
		if err := (&sumAcc{acc: s.parts()[k]}).Merge(&sumAcc{acc: part}, into); err != nil {
			return err
		}
	}
	return nil
}

func (s *spanSumAcc) Result(groups []uint32) (arrow.Array, error) {
	out, valid := make([]arrow.MonthDayNanoInterval, len(groups)), newValidBits(len(groups))
	for i, g := range groups {
		if s.months[g].rows == 0 {
			valid.null(i)
			continue
		}
		m, d, n := s.months[g].big(), s.days[g].big(), s.nanos[g].big()
		if rows := s.months[g].rows; s.mean && rows < 0 {
			valid.null(i)
			continue
		} else if s.mean {
			divideSpan(m, d, n, rows)
		}
		if !fits32(m) || !fits32(d) || !n.IsInt64() {
			return nil, errs.New(errs.Data, "sum", "the sum of the intervals does not fit INTERVAL")
		}
		out[i] = arrow.MonthDayNanoInterval{Months: int32(m.Int64()), Days: int32(d.Int64()), Nanoseconds: n.Int64()}
	}
	return kernels.NewFixed(types.Span.Arrow(), out, valid.bits), nil
}

// divideSpan divides in place. What is left of the months counts as thirty days each, what is left of the days as 24 hours;
// the microseconds are rounded half away from zero.
func divideSpan(months, days, nanos *big.Int, rows int64) {
	n, rest := big.NewInt(rows), new(big.Int)
	carry := func(v, into *big.Int, unit int64) {
		v.QuoRem(v, n, rest)
		into.Add(into, rest.Mul(rest, big.NewInt(unit)))
	}
	carry(months, days, 30)
	carry(days, nanos, types.DayMicros*1000)
	micros := nanos.Quo(nanos, big.NewInt(1000))
	half := big.NewInt(int64(micros.Sign()) * rows)
	micros.Quo(micros.Add(micros.Lsh(micros, 1), half), n.Lsh(n, 1))
	nanos.Mul(micros, big.NewInt(1000))
}

func fits32(v *big.Int) bool { return v.IsInt64() && int64(int32(v.Int64())) == v.Int64() }

func (s *spanSumAcc) Reset(groups []uint32) {
	for _, part := range s.parts() {
		(&sumAcc{acc: part}).Reset(groups)
	}
}

func (s *spanSumAcc) State() types.Type { return types.Binary }
func (s *spanSumAcc) Bytes() int64      { return int64(96 * cap(s.months)) }

func (s *spanSumAcc) Save(groups []uint32) (arrow.Array, error) {
	return saveBytes(groups, func(dst []byte, g uint32) []byte {
		for _, part := range s.parts() {
			dst = part[g].save(dst)
		}
		return dst
	}), nil
}

func (s *spanSumAcc) Load(groups []uint32, saved arrow.Array) error {
	loadBytes(groups, saved, func(g uint32, b []byte) {
		for _, part := range s.parts() {
			b = part[g].load(b)
		}
	})
	return nil
}
