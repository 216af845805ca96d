package fn

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/types"
)

// rows are the functions of row values.
var rows = []*Scalar{
	{Name: "row", Category: Nested, Nulls: NullAware, Summary: "A row value, (a, b): values without names. Rows are compared from the left, and NULL equals NULL in them.",
		Overloads: []Overload{{Args: Types{types.AnyType}, Variadic: true, Resolve: func(args []types.Type, _ []types.Value) (Resolved, error) {
			return Resolved{Args: args, Returns: types.TupleOf(args), Kernel: packRow}, nil
		}}}, Examples: []Example{ex("row(1, 'a')", "(1, a)"), ex("(1, NULL) = (1, NULL)", "true")}},
}

func packRow(c *Call) (arrow.Array, error) {
	children := make([]arrow.ArrayData, len(c.Args))
	for i, a := range c.Args {
		x := a.Array
		if a.Const && c.N != 1 {
			x = kernels.Repeat(x, 0, c.N)
		}
		children[i] = x.Data()
	}
	return array.MakeFromData(array.NewData(c.Ret.Arrow(), c.N, []*memory.Buffer{nil}, children, 0, 0)), nil
}
