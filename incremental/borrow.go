package incremental

import (
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/plan"
)

// Borrows reports whether pushes may lie in memory that is taken away behind their step: nothing that outlives the step keeps more of
// them than copies, except the output, which may be the pushed columns themselves.
//
// AIDEV-NOTE: state tables copy what they are given; a log of rows copies what lies in lent memory (keep). An accumulator of texts or
// nested values may keep the strings or arrays that it has seen, changes that wait for EMIT EVERY are kept as they are, and a function
// of the host gets the columns themselves: such plans do not borrow.
func (g *Graph) Borrows() bool { return g.borrows }

func borrows(root plan.Node, emit plan.EmitPolicy) bool {
	ok := emit != plan.EmitEvery
	plan.Walk(root, func(n plan.Node) bool {
		switch n := n.(type) {
		case *plan.Normalize:
			ok = false
		case *plan.Aggregate:
			for _, a := range n.Aggs {
				for _, x := range a.Args {
					ok = ok && plain(x)
				}
				for _, k := range a.Order {
					ok = ok && plain(k.Expr)
				}
			}
		}
		for _, e := range n.Exprs() {
			expr.Walk(e, func(x expr.Expr) bool {
				if c, is := x.(*expr.Call); is {
					builtin, known := fn.Lookup(c.Fn.Name)
					ok = ok && known && builtin == c.Fn
				}
				return ok
			})
		}
		return ok
	})
	return ok
}

// plain reports whether values are numbers or times, which are kept by value.
func plain(e expr.Expr) bool {
	_, fixed := e.Type().Arrow().(arrow.FixedWidthDataType)
	return fixed
}
