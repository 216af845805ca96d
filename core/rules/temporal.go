package rules

import (
	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/plan"
)

// temporalFilters gives each condition that reads the clock a filter of its own, above those that do not: it keeps its rows.
func temporalFilters(_ *rewriter, root plan.Node) (plan.Node, error) {
	return plan.Transform(root, func(n plan.Node) plan.Node {
		switch n := n.(type) {
		case *plan.Scan:
			plain, clocked := split(n.Filters, func(e expr.Expr) bool { return !plan.Clocked(e) })
			if len(clocked) == 0 || !plan.Live(n) {
				return n
			}
			m := *n
			m.Filters = plain
			return eachFilter(&m, clocked)
		case *plan.Filter:
			plain, clocked := split(expr.Conjuncts(n.Cond), func(e expr.Expr) bool { return !plan.Clocked(e) })
			if len(clocked) == 0 || len(plain)+len(clocked) == 1 || !plan.Live(n) {
				return n
			}
			return eachFilter(where(n.Input, plain), clocked)
		}
		return n
	}), nil
}

func eachFilter(n plan.Node, conds []expr.Expr) plan.Node {
	for _, c := range conds {
		n = &plan.Filter{Input: n, Cond: c}
	}
	return n
}
