package rules

import (
	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/plan"
)

// mergeProjects makes one projection of two. It must not when that would compute something twice: an inner
// expression that the outer reads more than once stays, unless it is a column or a constant, and so does a volatile
// one that CASE or AND might skip.
func mergeProjects(c *rewriter, root plan.Node) (plan.Node, error) {
	return plan.Transform(root, func(n plan.Node) plan.Node {
		outer, ok := n.(*plan.Project)
		if !ok {
			return n
		}
		inner, ok := outer.Input.(*plan.Project)
		if !ok {
			return n
		}
		uses := map[expr.ColID]int{}
		for _, it := range outer.Items {
			expr.Walk(it.Expr, func(x expr.Expr) bool {
				if col, ok := x.(*expr.Col); ok {
					uses[col.ID]++
				}
				return true
			})
		}
		made := map[expr.ColID]expr.Expr{}
		for _, it := range inner.Items {
			_, isCol := it.Expr.(*expr.Col)
			if !isCol && notLit(it.Expr) && uses[it.Col.ID] > 1 || volatile(it.Expr) {
				return n
			}
			made[it.Col.ID] = it.Expr
		}
		m := &plan.Project{Input: inner.Input}
		for _, it := range outer.Items {
			m.Items = append(m.Items, plan.Item{Expr: simplifyExpr(c, expr.Substitute(it.Expr, made)), Col: it.Col})
		}
		return m
	}), nil
}
