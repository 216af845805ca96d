package exec

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/plan"
)

// Filter and Project serve both modes: they are functions of one batch. Further columns that the caller passes
// after the input's (the weight of a delta) ride along.

// Filter keeps the rows where a condition is true.
type Filter struct{ cond *expr.Program }

// NewFilter compiles cond over the columns.
func NewFilter(cond expr.Expr, cols []plan.Column) (*Filter, error) {
	p, err := expr.Compile(cond, layoutOf(cols))
	if err != nil {
		return nil, err
	}
	return &Filter{p}, nil
}

// Apply returns the kept rows of cols; cols itself when nothing is dropped.
func (f *Filter) Apply(env *fn.Env, cols []arrow.Array, n int) ([]arrow.Array, int, error) {
	sel, all, err := f.cond.EvalFilter(env, cols, n)
	if err != nil || all {
		return cols, n, err
	}
	return kernels.TakeBatch(cols, sel), len(sel), nil
}

// Project computes columns.
type Project struct {
	prog *expr.Program
}

// NewProject compiles items over the columns.
func NewProject(items []plan.Item, cols []plan.Column) (*Project, error) {
	es := make([]expr.Expr, len(items))
	for i, it := range items {
		es[i] = it.Expr
	}
	p, err := expr.CompileAll(es, layoutOf(cols))
	if err != nil {
		return nil, err
	}
	return &Project{p}, nil
}

// Apply returns one array of n rows per item.
func (p *Project) Apply(env *fn.Env, cols []arrow.Array, n int) ([]arrow.Array, error) {
	return p.prog.EvalArrays(env, cols, n)
}

// slice returns rows [from, to) of every column.
func slice(cols []arrow.Array, from, to int) []arrow.Array {
	out := make([]arrow.Array, len(cols))
	for i, c := range cols {
		out[i] = array.NewSlice(c, int64(from), int64(to))
	}
	return out
}
