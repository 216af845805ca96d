package fn

import (
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/types"
)

// Shared is an accumulator whose calls may keep one state between them: sum(x) and avg(x) both keep the sum and the rows
// of x, and differ in what they make of them.
type Shared interface {
	Accumulator
	// Shares reports whether other keeps of the same rows what this one keeps.
	Shares(other Accumulator) bool
	// ResultOf is Result over the groups of an accumulator that Shares.
	ResultOf(of Accumulator, groups []uint32) (arrow.Array, error)
}

// Reader makes an accumulator that keeps nothing and gives call's result over the groups of another, which is told of every row.
func Reader(call Shared, of Accumulator) Accumulator { return &reader{call, of} }

type reader struct {
	call Shared
	of   Accumulator
}

func (r *reader) Result(groups []uint32) (arrow.Array, error) { return r.call.ResultOf(r.of, groups) }

func (r *reader) Resize(int)                         {}
func (r *reader) Add([]uint32, []Arg, []int64) error { return nil }
func (r *reader) Merge(Accumulator, []uint32) error  { return nil }
func (r *reader) Reset([]uint32)                     {}
func (r *reader) Load([]uint32, arrow.Array) error   { return nil }
func (r *reader) State() types.Type                  { return types.Bool }
func (r *reader) Bytes() int64                       { return 0 }
func (r *reader) Save(g []uint32) (arrow.Array, error) {
	return kernels.Nulls(types.Bool.Arrow(), len(g)), nil
}

// Shares: sums and means of whole numbers and DECIMALs of one type.
func (s *sumAcc) Shares(other Accumulator) bool {
	o, ok := other.(*sumAcc)
	return ok && s.cfg.Args[0].Equal(o.cfg.Args[0])
}

// Shares: sums and means of DOUBLE.
func (s *floatSumAcc) Shares(other Accumulator) bool {
	_, ok := other.(*floatSumAcc)
	return ok
}

// Shares: variances and deviations, whatever the divisor.
func (m *momentAcc) Shares(other Accumulator) bool {
	_, ok := other.(*momentAcc)
	return ok
}

// Shares: covariances, correlations and regressions of one pair.
func (a *pairAcc) Shares(other Accumulator) bool {
	_, ok := other.(*pairAcc)
	return ok
}
