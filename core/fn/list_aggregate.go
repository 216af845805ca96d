package fn

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/types"
)

// listAggregates apply an aggregate function to the elements of each list: the list is the group, and its order is the
// order of an aggregate that has one.
var listAggregates = append([]*Scalar{
	{Name: "list_aggregate", Category: Nested, Summary: "Apply an aggregate function, named by a constant text, to the elements of a list.",
		Aliases:   []string{"list_aggr", "array_aggregate", "array_aggr"},
		Overloads: []Overload{{Args: Types{anyList, str, types.AnyType}, Variadic: true, Fallible: true, Resolve: resolveListAggregate}},
		Examples:  []Example{ex("list_aggregate([1, 2, 4], 'sum')", "7"), ex("list_aggregate(['a', 'b'], 'string_agg', '-')", "a-b")}}},
	aggregatesOfLists(
		"sum", "list_sum([1, 2, NULL])", "3", "avg", "list_avg([1, 2])", "1.5", "min", "list_min([2, 1])", "1", "max", "list_max(['a', 'b'])", "b",
		"count", "list_count([1, NULL])", "1", "first", "list_first([1, 2])", "1", "last", "list_last([1, 2])", "2",
		"any_value", "list_any_value([NULL, 2])", "2", "mode", "list_mode([1, 1, 2])", "1", "median", "list_median([1, 2, 4])", "2.0",
		"product", "list_product([2, 3])", "6.0", "string_agg", "list_string_agg(['a', 'b'])", "a,b",
		"stddev_pop", "list_stddev_pop([1, 3])", "1.0", "stddev_samp", "list_stddev_samp([1, 3, 5])", "2.0",
		"var_pop", "list_var_pop([1, 3])", "1.0", "var_samp", "list_var_samp([1, 3])", "2.0",
		"bool_and", "list_bool_and([true, false])", "false", "bool_or", "list_bool_or([true, false])", "true",
		"bit_and", "list_bit_and([3, 6])", "2", "bit_or", "list_bit_or([1, 2])", "3", "bit_xor", "list_bit_xor([1, 3])", "2",
		"skewness", "list_skewness([1, 2, 3])", "0.0", "kurtosis", "list_kurtosis([1, 2, 3, 4])", "-1.2", "entropy", "list_entropy([1, 2])", "1.0",
		"mad", "list_mad([1, 2, 4])", "1.0", "approx_count_distinct", "list_approx_count_distinct([1, 1, NULL])", "1", "histogram", "list_histogram([1, 1])", "{1=2}")...)

// aggregatesOfLists makes list_sum of sum, and so on; each with an example and its result.
func aggregatesOfLists(table ...string) []*Scalar {
	var out []*Scalar
	for i := 0; i < len(table); i += 3 {
		name := table[i]
		out = append(out, &Scalar{Name: "list_" + name, Category: Nested, Summary: "The aggregate function " + name + " over the elements of a list.",
			Overloads: []Overload{{Args: Types{anyList}, Fallible: true, Resolve: func(args []types.Type, consts []types.Value) (Resolved, error) {
				return listAggregate(args[0], name, nil, nil)
			}}},
			Examples: []Example{ex(table[i+1], table[i+2])}})
	}
	return out
}

func resolveListAggregate(args []types.Type, consts []types.Value) (Resolved, error) {
	name, ok := constAt(consts, 1).(string)
	if !ok {
		return Resolved{}, errs.New(errs.Schema, "bind", "the name of the aggregate function of list_aggregate must be a constant text")
	}
	var extra []types.Value
	for i := 2; i < len(args); i++ {
		extra = append(extra, constAt(consts, i))
	}
	r, err := listAggregate(args[0], name, args[2:], extra)
	if err == nil {
		r.Args = append(Types{r.Args[0], str}, r.Args[1:]...)
	}
	return r, err
}

// listAggregate resolves the aggregate for the elements of a list and further, constant arguments.
func listAggregate(list types.Type, name string, more []types.Type, consts []types.Value) (Resolved, error) {
	if list.Kind != types.List {
		list = types.ListOf(types.NullType)
	}
	agg, sig, o, err := ResolveAggregate(name, append(Types{*list.Elem}, more...), append(Values{nil}, consts...))
	if err != nil {
		return Resolved{}, err
	}
	cfg := AggConfig{Args: sig.Args, Ret: sig.Returns, Data: sig.Data, Plain: len(sig.Args)}
	if agg.Ordering {
		cfg.Args = append(append(Types{}, sig.Args...), types.Int64)
		cfg.Order = []SortKey{{}}
	}
	return Resolved{Args: append(Types{types.ListOf(sig.Args[0])}, sig.Args[1:]...), Returns: sig.Returns, Kernel: func(c *Call) (arrow.Array, error) {
		return aggregateLists(c, agg, o, cfg)
	}}, nil
}

// aggregateLists adds all elements of all lists at once; each list is a group.
func aggregateLists(c *Call, agg *Aggregate, o *AggOverload, cfg AggConfig) (arrow.Array, error) {
	lists := c.Args[0].Array
	offs, elems := listOffsets(lists), lists.(array.ListLike).ListValues()
	valid, elemValid := kernels.Valid(lists), kernels.Valid(elems)
	var idx []int32
	var groups []uint32
	var order []int64
	for g := range lists.Len() {
		if valid != nil && !kernels.Bit(valid, g) {
			continue
		}
		for k := offs[g]; k < offs[g+1]; k++ {
			if agg.KeepNulls || elemValid == nil || kernels.Bit(elemValid, int(k)) {
				idx, groups, order = append(idx, k), append(groups, uint32(g)), append(order, int64(k))
			}
		}
	}
	args := []Arg{{Array: kernels.Take(elems, idx)}}
	for _, a := range c.Args[len(c.Args)-(cfg.Plain-1):] { // the constants
		args = append(args, Arg{Array: kernels.Repeat(kernels.Take(a.Array, []int32{0}), 0, len(idx))})
	}
	if agg.Ordering {
		args = append(args, Arg{Array: kernels.NewFixed(types.Int64.Arrow(), order, nil)})
	}
	acc := o.New(cfg)
	acc.Resize(lists.Len())
	if err := acc.Add(groups, args, nil); err != nil {
		return nil, err
	}
	all := make([]uint32, lists.Len())
	for g := range all {
		all[g] = uint32(g)
	}
	out, err := acc.Result(all)
	if err != nil || !c.Args[0].Const || c.N == 1 {
		return out, err
	}
	return kernels.Repeat(out, 0, c.N), nil
}
