package fn

import (
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/kernels"
)

// Run evaluates a kernel under a null policy: with NullIfAnyNull the result is NULL where an argument is, and what failed
// there is forgotten. Rows that failed are NULL in the result.
func (c *Call) Run(k Kernel, policy NullPolicy) (arrow.Array, []RowError, error) {
	strict := policy == NullIfAnyNull
	if strict && slices.ContainsFunc(c.Args, func(a Arg) bool { return a.Const && kernels.IsNull(a.Array, 0) }) {
		return kernels.Nulls(c.Ret.Arrow(), c.N), nil, nil
	}
	out, err := k(c)
	if err != nil {
		return nil, nil, err
	}
	failed := c.failed
	if strict {
		if valid := live(c); valid != nil {
			failed = slices.DeleteFunc(failed, func(f RowError) bool { return !kernels.Bit(valid, f.Row) })
			out = kernels.WithValid(out, kernels.AndBits(valid, kernels.Valid(out)))
		}
	}
	return NullRows(out, failed), failed, nil
}

// NullRows makes the rows that failed NULL.
func NullRows(out arrow.Array, failed []RowError) arrow.Array {
	if len(failed) == 0 {
		return out
	}
	valid := kernels.Valid(out)
	if valid == nil {
		valid = kernels.Ones(out.Len())
	} else {
		valid = slices.Clone(valid)
	}
	for _, f := range failed {
		kernels.ClearBit(valid, f.Row)
	}
	return kernels.WithValid(out, valid)
}
