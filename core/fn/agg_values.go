package fn

import (
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/types"
)

const totalOrder = "Without ORDER BY the rows count in their total order, not in the order of arrival."

var orderedAggregates = []*Aggregate{
	{
		Name: "first", Aliases: []string{"arbitrary"}, Category: Aggregated, Algebra: Ordered, Ordering: true, KeepNulls: true,
		Summary:   "The value of the first row, NULL or not.",
		Overloads: []AggOverload{{Args: []types.Type{types.AnyType}, Resolve: returnsArg, New: newBest(oldest), NewRetract: newBag(oldest)}},
		Examples:  []Example{{SQL: "x ORDER BY x DESC", Rows: "1, 2, 3", Want: "3"}}, Differs: totalOrder,
	},
	{
		Name: "last", Category: Aggregated, Algebra: Ordered, Ordering: true, KeepNulls: true,
		Summary:   "The value of the last row, NULL or not.",
		Overloads: []AggOverload{{Args: []types.Type{types.AnyType}, Resolve: returnsArg, New: newBest(newest), NewRetract: newBag(newest)}},
		Examples:  []Example{{SQL: "x ORDER BY x DESC", Rows: "1, 2, 3", Want: "1"}}, Differs: totalOrder,
	},
	{
		Name: "any_value", Category: Aggregated, Algebra: Ordered, Ordering: true,
		Summary:   "The first value that is not NULL.",
		Overloads: []AggOverload{{Args: []types.Type{types.AnyType}, Resolve: returnsArg, New: newBest(oldest), NewRetract: newBag(oldest)}},
		Examples:  []Example{{SQL: "x", Rows: "NULL, 2", Want: "2"}}, Differs: totalOrder,
	},
	{
		Name: "list", Aliases: []string{"array_agg"}, Category: Aggregated, Algebra: Ordered, Ordering: true, KeepNulls: true,
		Summary: "A list of the values, NULLs included; NULL when there is no row.",
		Overloads: []AggOverload{{Args: []types.Type{types.AnyType}, New: newCollect(listing), NewRetract: newBag(listing),
			Resolve: func(args []types.Type, _ []types.Value) (Resolved, error) {
				return Resolved{Args: args, Returns: types.ListOf(args[0])}, nil
			}}},
		Examples: []Example{{SQL: "x ORDER BY x DESC", Rows: "1, 2, NULL", Want: "[2, 1, NULL]"}}, Differs: totalOrder,
	},
	{
		Name: "string_agg", Aliases: []string{"group_concat", "listagg"}, Category: Aggregated, Algebra: Ordered, Ordering: true,
		Summary: "The texts one after the other, with a separator between them, a comma by default.",
		Overloads: []AggOverload{
			{Args: []types.Type{types.AnyType}, Resolve: joinsTexts, New: newCollect(joining), NewRetract: newBag(joining)},
			{Args: []types.Type{types.AnyType, types.String}, Resolve: joinsTexts, New: newCollect(joining), NewRetract: newBag(joining)},
		},
		Examples: []Example{{SQL: "x, '-' ORDER BY x", Rows: "2, 1, NULL", Want: "1-2"}}, Differs: totalOrder,
	},
	{
		Name: "mode", Category: Aggregated, Algebra: Ordered,
		Summary:   "The most frequent value; among several, the least.",
		Overloads: []AggOverload{{Args: []types.Type{types.AnyType}, Resolve: returnsArg, New: newWords(frequent), NewRetract: newBag(frequent)}},
		Examples:  []Example{{SQL: "x", Rows: "1, 2, 2", Want: "2"}}, Differs: "Among equally frequent values the least, not the first seen.",
	},
	{
		Name: "histogram", Category: Aggregated, Algebra: Ordered,
		Summary: "A map from each value to how often it occurs.",
		Overloads: []AggOverload{{Args: []types.Type{types.AnyType}, New: newWords(counting), NewRetract: newBag(counting),
			Resolve: func(args []types.Type, _ []types.Value) (Resolved, error) {
				return Resolved{Args: args, Returns: types.MapOf(args[0], types.Uint64)}, nil
			}}},
		Examples: []Example{{SQL: "x", Rows: "1, 2, 2", Want: "{1=1, 2=2}"}},
	},
}

var (
	listing  = ordered{form: byOrder(false), pick: pickAll, build: buildList}
	joining  = ordered{form: byOrder(false), pick: pickAll, build: buildText}
	frequent = ordered{form: byValue(false), pick: pickMode, build: buildOne}
	counting = ordered{form: byValue(false), pick: pickAll, build: buildHistogram}
)

// repeat gives each value as often as its weight says, and the offsets of the groups then.
func repeat(values arrow.Array, offs []int32, weights []int64) (arrow.Array, []int32) {
	idx := make([]int32, 0, len(weights))
	out := make([]int32, len(offs))
	for g := range len(offs) - 1 {
		for i := offs[g]; i < offs[g+1]; i++ {
			for range weights[i] {
				idx = append(idx, i)
			}
		}
		out[g+1] = int32(len(idx))
	}
	if len(idx) == len(weights) {
		return values, offs
	}
	return kernels.Take(values, idx), out
}

func buildList(c AggConfig, values arrow.Array, offs []int32, weights []int64) (arrow.Array, error) {
	values, offs = repeat(values, offs, weights)
	return listOver(types.ListOf(c.Args[0]), values, offs), nil
}

// listOver is a list or map per group; a group without elements is NULL.
func listOver(t types.Type, values arrow.Array, offs []int32) arrow.Array {
	n := len(offs) - 1
	valid := newValidBits(n)
	nulls := 0
	for g := range n {
		if offs[g] == offs[g+1] {
			valid.null(g)
			nulls++
		}
	}
	bufs := []*memory.Buffer{nil, memory.NewBufferBytes(arrow.GetBytes(offs))}
	if valid.bits != nil {
		bufs[0] = memory.NewBufferBytes(valid.bits)
	}
	return array.MakeFromData(array.NewData(t.Arrow(), n, bufs, []arrow.ArrayData{values.Data()}, nulls, 0))
}

func buildHistogram(c AggConfig, values arrow.Array, offs []int32, weights []int64) (arrow.Array, error) {
	counts := make([]uint64, len(weights))
	for i, w := range weights {
		counts[i] = uint64(w)
	}
	t := types.MapOf(c.Args[0], types.Uint64)
	entry := t.Arrow().(*arrow.MapType).Elem()
	pairs := array.NewData(entry, len(counts), []*memory.Buffer{nil},
		[]arrow.ArrayData{values.Data(), kernels.NewFixed(arrow.PrimitiveTypes.Uint64, counts, nil).Data()}, 0, 0)
	return listOver(t, array.MakeFromData(pairs), offs), nil
}

func joinsTexts(args []types.Type, consts []types.Value) (Resolved, error) {
	r := Resolved{Args: []types.Type{types.String}, Returns: types.String, Data: ","}
	if len(args) == 2 {
		r.Args = []types.Type{types.String, types.String}
		switch sep := consts[1].(type) {
		case string:
			r.Data = sep
		default:
			if args[1].Kind == types.Null { // every row has a NULL argument then, so that the result is NULL
				return r, nil
			}
			return r, errs.New(errs.Schema, "bind", "the separator of string_agg must be a constant text")
		}
	}
	return r, nil
}

func buildText(c AggConfig, values arrow.Array, offs []int32, weights []int64) (arrow.Array, error) {
	sep, _ := c.Data.(string)
	from, data := kernels.Spans(values)
	n := len(offs) - 1
	ends, valid := make([]int32, n+1), newValidBits(n)
	var out []byte
	for g := range n {
		if offs[g] == offs[g+1] {
			valid.null(g)
		}
		began := false
		for i := offs[g]; i < offs[g+1]; i++ {
			for range weights[i] {
				if began {
					out = append(out, sep...)
				}
				out, began = append(out, data[from[i]:from[i+1]]...), true
			}
		}
		if len(out) > math.MaxInt32 {
			return nil, errs.New(errs.Data, "string_agg", "the texts of a batch of groups have more than 2 GiB")
		}
		ends[g+1] = int32(len(out))
	}
	return kernels.NewBytes(arrow.BinaryTypes.String, ends, out, valid.bits), nil
}

func pickMode(_ AggConfig, rows sortedRows, emit func([]byte, int64)) {
	var best []byte
	most := int64(0)
	rows.each(func(row []byte, w int64) bool {
		if w > most {
			best, most = row, w
		}
		return true
	})
	if most > 0 {
		emit(best, most)
	}
}
