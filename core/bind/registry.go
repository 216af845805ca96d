package bind

import (
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/types"
)

func isAggregate(name string) bool { return stubAggs[name] != nil }
func aggregateNames() []string     { return nil }
func resolveAggregate(name string, args []types.Type, consts []types.Value) (*fn.Aggregate, fn.Resolved, *fn.AggOverload, error) {
	a := stubAggs[name]
	if a == nil {
		return nil, fn.Resolved{}, nil, errs.New(errs.Schema, "bind", "no aggregate %s", name)
	}
	r := types.Int64
	switch {
	case name == "sum":
		r = types.Int128
	case name == "avg":
		r = types.Float64
	case len(args) > 0 && name != "count":
		r = args[0]
	}
	return a, fn.Resolved{Args: args, Returns: r}, nil, nil
}

var stubAggs = func() map[string]*fn.Aggregate {
	m := map[string]*fn.Aggregate{}
	for _, n := range []string{"sum", "avg", "min", "max", "count", "array_agg", "string_agg", "first", "any_value", "bool_and"} {
		m[n] = &fn.Aggregate{Name: n, Ordering: n == "array_agg" || n == "string_agg" || n == "first"}
	}
	return m
}()
