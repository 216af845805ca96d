package fn

import (
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/types"
)

// fewOverload is min(x, n) and the like: the first n rows of an order instead of the first, as a list.
func fewOverload(kind ordered, args ...types.Type) AggOverload {
	kind.pick = func(c AggConfig, rows sortedRows, emit func(row []byte, n int64)) {
		left := c.Data.(int64)
		rows.each(func(row []byte, w int64) bool {
			emit(row, min(w, left))
			left -= w
			return left > 0
		})
	}
	kind.build = buildList
	at := len(args)
	return AggOverload{Args: append(args, types.Int64), New: newCollect(kind), NewRetract: newBag(kind),
		Resolve: func(args []types.Type, consts []types.Value) (Resolved, error) {
			n, ok := constAt(consts, at).(int64)
			if !ok || n < 1 || n > maxFew {
				return Resolved{}, errs.New(errs.Schema, "bind", "how many values to keep must be a constant from 1 to %d", maxFew)
			}
			return Resolved{Args: append(append(Types{}, args[:at]...), types.Int64), Returns: types.ListOf(args[0]), Data: n}, nil
		}}
}

const maxFew = 1_000_000

// pairCount is regr_count.
type pairCount struct{ countAcc }

func (p *pairCount) Add(groups []uint32, args []Arg, weights []int64) error {
	mask := maskOfArgs([]arrow.Array{rowsOf(args[0], len(groups)), rowsOf(args[1], len(groups))})
	for i, g := range groups {
		if mask == nil || kernels.Bit(mask, i) {
			p.rows[g] += weightOf(weights, i)
		}
	}
	return nil
}

func (p *pairCount) Merge(other Accumulator, into []uint32) error {
	return p.countAcc.Merge(&other.(*pairCount).countAcc, into)
}

func (p *pairCount) Result(groups []uint32) (arrow.Array, error) {
	out := make([]uint32, len(groups))
	for i, g := range groups {
		out[i] = uint32(p.rows[g])
	}
	return kernels.NewFixed(types.Uint32.Arrow(), out, nil), nil
}
