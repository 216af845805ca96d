package fn

import (
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/types"
)

var countAggregates = []*Aggregate{
	{
		Name: "count", Aliases: []string{"count_star"}, Category: Aggregated, Algebra: Linear,
		Summary: "Count the rows, or the rows whose argument is not NULL.",
		Overloads: []AggOverload{
			{Returns: types.Int64, New: newCount},
			{Args: []types.Type{types.AnyType}, Returns: types.Int64, New: newCount},
		},
		Examples: []Example{{SQL: "x", Rows: "1, 2, NULL", Want: "2"}},
	},
	{
		Name: "count_if", Aliases: []string{"countif"}, Category: Aggregated, Algebra: Linear,
		Summary:   "Count the rows whose condition is true; NULL when it is true or false in none.",
		Overloads: []AggOverload{{Args: []types.Type{types.Bool}, Returns: types.Int128, New: newSum}},
		Examples:  []Example{{SQL: "x > 1", Rows: "1, 2, 3", Want: "2"}},
	},
	{
		Name: "regr_count", Category: Aggregated, Algebra: Linear, Summary: "How many pairs (y, x) have no NULL.",
		Overloads: []AggOverload{{Args: []types.Type{types.Float64, types.Float64}, Returns: types.Uint32, New: func(AggConfig) Accumulator { return &pairCount{} }}},
		Examples:  []Example{{SQL: "x, x", Rows: "1, 2, NULL", Want: "2"}},
	},
	{
		Name: "approx_count_distinct", Category: Aggregated, Algebra: Ordered,
		Summary: "About how many different values there are, within a few percent; small numbers are exact.",
		Overloads: []AggOverload{{Args: []types.Type{types.AnyType}, Returns: types.Int64, New: newSketch,
			NewRetract: newBag(ordered{form: byEquality, pick: pickAll, build: buildSketch})}},
		Examples: []Example{{SQL: "x", Rows: "1, 2, 2, NULL", Want: "2"}},
		Differs:  "Another sketch, so another estimate; the same for the same values.",
	},
}

// countAcc adds up weights.
type countAcc struct{ rows []int64 }

func newCount(AggConfig) Accumulator { return &countAcc{} }

func (c *countAcc) Resize(n int) { c.rows = grow(c.rows, n) }

func (c *countAcc) Add(groups []uint32, args []Arg, weights []int64) error {
	var mask []byte
	if len(args) > 0 {
		mask = kernels.Valid(rowsOf(args[0], len(groups)))
	}
	rows := c.rows
	if mask == nil && weights == nil {
		if len(rows) == 1 {
			rows[0] += int64(len(groups))
			return nil
		}
		for _, g := range groups {
			rows[g]++
		}
		return nil
	}
	for i, g := range groups {
		if mask == nil || kernels.Bit(mask, i) {
			rows[g] += weightOf(weights, i)
		}
	}
	return nil
}

func (c *countAcc) Merge(other Accumulator, into []uint32) error {
	for i, n := range other.(*countAcc).rows[:len(into)] {
		c.rows[into[i]] += n
	}
	return nil
}

func (c *countAcc) Result(groups []uint32) (arrow.Array, error) {
	out := make([]int64, len(groups))
	for i, g := range groups {
		out[i] = c.rows[g]
	}
	return kernels.NewFixed(arrow.PrimitiveTypes.Int64, out, nil), nil
}

func (c *countAcc) Reset(groups []uint32) {
	for _, g := range groups {
		c.rows[g] = 0
	}
}

func (c *countAcc) State() types.Type                         { return types.Int64 }
func (c *countAcc) Save(groups []uint32) (arrow.Array, error) { return c.Result(groups) }
func (c *countAcc) Bytes() int64                              { return int64(8 * cap(c.rows)) }

func (c *countAcc) Load(groups []uint32, saved arrow.Array) error {
	for i, n := range kernels.Values[int64](saved) {
		c.rows[groups[i]] += n
	}
	return nil
}
