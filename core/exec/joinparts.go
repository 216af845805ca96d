package exec

import (
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/hashtable"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/types"
)

// joinParts is what both forms of a join compile.
type joinParts struct {
	left, right *expr.Program // keys
	on          *pairFilter
	table       *hashtable.Join
}

func compileJoin(n *plan.Join) (c joinParts, err error) {
	var lk, rk []expr.Expr
	var ts []types.Type
	var nullSafe []bool
	for _, k := range n.Keys {
		lk, rk = append(lk, k.Left), append(rk, k.Right)
		ts, nullSafe = append(ts, k.Left.Type()), append(nullSafe, k.NullSafe)
	}
	if c.left, err = expr.CompileAll(lk, layoutOf(n.Left.Columns())); err != nil {
		return c, err
	}
	if c.right, err = expr.CompileAll(rk, layoutOf(n.Right.Columns())); err != nil {
		return c, err
	}
	if n.On != nil {
		if c.on, err = newPairFilter(n); err != nil {
			return c, err
		}
	}
	c.table = hashtable.NewJoin(ts, nullSafe)
	return c, nil
}

// pairFilter is the On of a join. It gathers only the columns that it reads.
type pairFilter struct {
	prog        *expr.Program
	left, right []int
}

func newPairFilter(n *plan.Join) (*pairFilter, error) {
	set := map[expr.ColID]bool{}
	expr.Columns(n.On, set)
	f, layout := &pairFilter{}, map[expr.ColID]int{}
	for i, c := range n.Left.Columns() {
		if set[c.ID] {
			layout[c.ID] = len(layout)
			f.left = append(f.left, i)
		}
	}
	for i, c := range n.Right.Columns() {
		if set[c.ID] {
			layout[c.ID] = len(layout)
			f.right = append(f.right, i)
		}
	}
	var err error
	f.prog, err = expr.Compile(n.On, layout)
	return f, err
}

// keep returns the pairs of rows for which the condition is true; the given slices when all are.
func (f *pairFilter) keep(env *fn.Env, left, right []arrow.Array, l, r []int32) ([]int32, []int32, error) {
	cols := make([]arrow.Array, 0, len(f.left)+len(f.right))
	for _, c := range f.left {
		cols = append(cols, kernels.Take(left[c], l))
	}
	for _, c := range f.right {
		cols = append(cols, kernels.Take(right[c], r))
	}
	sel, all, err := f.prog.EvalFilter(env, cols, len(l))
	if err != nil || all {
		return l, r, err
	}
	return pick(l, sel), pick(r, sel), nil
}

func pick(rows, sel []int32) []int32 {
	out := make([]int32, len(sel))
	for i, s := range sel {
		out[i] = rows[s]
	}
	return out
}
