package exec

import (
	"context"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/plan"
)

// rowwise is a streaming operator: a function of one batch.
type rowwise struct {
	input  Operator
	schema *arrow.Schema
	apply  func(cols []arrow.Array, n int) ([]arrow.Array, int, error)
	// fallible: a row may fail here, which must not depend on what is above, so that no row is dropped early.
	fallible bool
	items    []plan.Item // of a projection
}

func (r *rowwise) narrow(m *membership) {
	in, ok := r.input.(narrowed)
	if ok && r.items != nil {
		m, ok = m.through(r.items)
	}
	if ok && !r.fallible {
		in.narrow(m)
	}
}

func (r *rowwise) Schema() *arrow.Schema { return r.schema }
func (r *rowwise) Close() error          { return r.input.Close() }

func (r *rowwise) Next(ctx context.Context, worker int) (*flow.Morsel, error) {
	m, err := r.input.Next(ctx, worker)
	if err != nil || m == nil {
		return nil, err
	}
	n := int(m.Batch.NumRows())
	if n == 0 {
		return emptyMorsel(r.schema, m.Seq), nil
	}
	cols, n, err := r.apply(m.Batch.Columns(), n)
	if err != nil {
		return nil, err
	}
	return morsel(r.schema, m.Seq, cols, n), nil
}

func newFilter(n *plan.Filter, env *Env, workers int) (Operator, error) {
	input, err := Build(n.Input, env, workers)
	if err != nil {
		return nil, err
	}
	f, err := NewFilter(n.Cond, n.Input.Columns())
	if err != nil {
		return nil, err
	}
	return &rowwise{input: input, schema: input.Schema(), fallible: expr.Fallible(n.Cond), apply: func(cols []arrow.Array, rows int) ([]arrow.Array, int, error) {
		return f.Apply(env.Fn, cols, rows)
	}}, nil
}

func newProject(n *plan.Project, env *Env, workers int) (Operator, error) {
	input, err := Build(n.Input, env, workers)
	if err != nil {
		return nil, err
	}
	p, err := NewProject(n.Items, n.Input.Columns())
	if err != nil {
		return nil, err
	}
	fallible := slices.ContainsFunc(n.Items, func(it plan.Item) bool { return expr.Fallible(it.Expr) })
	return &rowwise{input: input, schema: schemaOf(n.Columns()), fallible: fallible, items: n.Items, apply: func(cols []arrow.Array, rows int) ([]arrow.Array, int, error) {
		out, err := p.Apply(env.Fn, cols, rows)
		return out, rows, err
	}}, nil
}
