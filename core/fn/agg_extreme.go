package fn

import (
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/rowkey"
	"github.com/riverbed/riverbed/core/types"
)

var extremeAggregates = []*Aggregate{
	{
		Name: "min", Category: Aggregated, Algebra: Ordered, Summary: "The least value; min(x, n) is a list of the n least.",
		Overloads: []AggOverload{{Args: []types.Type{types.AnyType}, Resolve: returnsArg, New: newExtreme(false), NewRetract: newBag(first)}, fewOverload(first, types.AnyType)},
		Examples:  []Example{{SQL: "x", Rows: "2, 1, NULL", Want: "1"}, {SQL: "x, 2", Rows: "3, 1, 2", Want: "[1, 2]"}},
	},
	{
		Name: "max", Category: Aggregated, Algebra: Ordered, Summary: "The greatest value, NaN being above all numbers; max(x, n) is a list of the n greatest.",
		Overloads: []AggOverload{{Args: []types.Type{types.AnyType}, Resolve: returnsArg, New: newExtreme(true), NewRetract: newBag(last)}, fewOverload(last, types.AnyType)},
		Examples:  []Example{{SQL: "x", Rows: "2, 1, NULL", Want: "2"}},
	},
	{
		Name: "arg_min", Aliases: []string{"argmin", "min_by"}, Category: Aggregated, Algebra: Ordered,
		Summary:   "The first argument in the row where the second is least; where that is equal, the least first argument. Rows with a NULL do not count.",
		Overloads: []AggOverload{{Args: []types.Type{types.AnyType, types.AnyType}, Resolve: returnsArg, New: newBest(argFirst), NewRetract: newBag(argFirst)}, fewOverload(argFirst, types.AnyType, types.AnyType)},
		Examples:  []Example{{SQL: "x, -x", Rows: "1, 2, 3", Want: "3"}},
		Differs:   "Among equal second arguments the result is the least first argument, not the first seen.",
	},
	{
		Name: "arg_max", Aliases: []string{"argmax", "max_by"}, Category: Aggregated, Algebra: Ordered,
		Summary:   "The first argument in the row where the second is greatest; where that is equal, the least first argument. Rows with a NULL do not count.",
		Overloads: []AggOverload{{Args: []types.Type{types.AnyType, types.AnyType}, Resolve: returnsArg, New: newBest(argLast), NewRetract: newBag(argLast)}, fewOverload(argLast, types.AnyType, types.AnyType)},
		Examples:  []Example{{SQL: "x, -x", Rows: "1, 2, 3", Want: "1"}},
		Differs:   "Among equal second arguments the result is the least first argument, not the first seen.",
	},
}

// returnsArg is for functions that give one of their first argument's values.
func returnsArg(args []types.Type, _ []types.Value) (Resolved, error) {
	return Resolved{Args: args, Returns: args[0]}, nil
}

// extremeAcc is MIN and MAX of types that fit a word, for inserts only: the least word, all bits flipped for MAX.
type extremeAcc struct {
	t     types.Type
	flip  uint64
	least []uint64
	seen  []bool
	words []uint64
}

// newExtreme keeps words where the type allows it.
func newExtreme(greatest bool) func(c AggConfig) Accumulator {
	return func(c AggConfig) Accumulator {
		if w := rowkey.Width(c.Args[0]); w == 0 || w > 8 {
			if greatest {
				return newBest(last)(c)
			}
			return newBest(first)(c)
		}
		e := &extremeAcc{t: c.Args[0]}
		if greatest {
			e.flip = ^uint64(0)
		}
		return e
	}
}

func (e *extremeAcc) Resize(n int) {
	e.seen = grow(e.seen, n)
	from := len(e.least)
	e.least = grow(e.least, n)
	for i := range e.least[from:] {
		e.least[from+i] = ^uint64(0)
	}
}

func (e *extremeAcc) Add(groups []uint32, args []Arg, weights []int64) error {
	a := rowsOf(args[0], len(groups))
	if len(e.least) == 1 && weights == nil && e.signed() {
		e.addOne(a)
		return nil
	}
	e.words = rowkey.Words(a, e.t, true, e.words[:0])
	mask := kernels.Valid(a)
	least, seen := e.least, e.seen
	for i, w := range e.words {
		if mask != nil && !kernels.Bit(mask, i) || weights != nil && weights[i] <= 0 {
			continue
		}
		g := groups[i]
		least[g] = min(least[g], w^e.flip)
		seen[g] = true
	}
	return nil
}

// signed is the types whose words are their integers with the sign turned round.
func (e *extremeAcc) signed() bool {
	switch e.t.Kind {
	case types.TinyInt, types.SmallInt, types.Integer, types.BigInt, types.Date:
		return true
	}
	return e.t.IsTimestamp()
}

// addOne is Add for a single group.
func (e *extremeAcc) addOne(a arrow.Array) {
	lo, hi, ok := kernels.Bounds(a)
	if !ok {
		return
	}
	if e.flip != 0 {
		lo = hi
	}
	bits := 8 * rowkey.Width(e.t)
	w := (uint64(lo) ^ 1<<(bits-1)) << (64 - bits) >> (64 - bits)
	e.least[0], e.seen[0] = min(e.least[0], w^e.flip), true
}

func (e *extremeAcc) Merge(other Accumulator, into []uint32) error {
	o := other.(*extremeAcc)
	for i, g := range into {
		e.least[g] = min(e.least[g], o.least[i])
		e.seen[g] = e.seen[g] || o.seen[i]
	}
	return nil
}

func (e *extremeAcc) Result(groups []uint32) (arrow.Array, error) {
	words, valid := make([]uint64, len(groups)), newValidBits(len(groups))
	for i, g := range groups {
		if words[i] = e.least[g] ^ e.flip; !e.seen[g] {
			words[i] = 0
			valid.null(i)
		}
	}
	return rowkey.FromWords(e.t, words, valid.bits), nil
}

func (e *extremeAcc) Reset(groups []uint32) {
	for _, g := range groups {
		e.least[g], e.seen[g] = ^uint64(0), false
	}
}

func (e *extremeAcc) State() types.Type                         { return e.t }
func (e *extremeAcc) Save(groups []uint32) (arrow.Array, error) { return e.Result(groups) }
func (e *extremeAcc) Bytes() int64                              { return int64(9*cap(e.least) + 8*cap(e.words)) }

func (e *extremeAcc) Load(groups []uint32, saved arrow.Array) error {
	return e.Add(groups, []Arg{{Array: saved}}, nil)
}
