package rules

import "github.com/riverbed/riverbed/core/plan"

// setOps leaves one set operation for the operators: UNION ALL.
//
//	a UNION b      → Distinct(a UNION ALL b)
//	a INTERSECT b  → Distinct(a) semi join b, on all columns, null-safe
//	a EXCEPT b     → Distinct(a) anti join b, on all columns, null-safe
//
// The keys must be null-safe: set operations take NULL as equal to NULL. INTERSECT ALL and EXCEPT ALL count copies,
// which no join does, and stay.
func setOps(c *rewriter, root plan.Node) (plan.Node, error) {
	return plan.Transform(root, func(n plan.Node) plan.Node {
		s, ok := n.(*plan.SetOp)
		if !ok || s.All {
			return n
		}
		if s.Kind == plan.Union {
			all := *s
			all.All = true
			return &plan.Distinct{Input: &all}
		}
		p := &plan.Project{Input: s.Left}
		for i, from := range s.Left.Columns() {
			p.Items = append(p.Items, plan.Item{Expr: from.Ref(), Col: s.Cols[i]})
		}
		j := &plan.Join{Kind: plan.Semi, Left: &plan.Distinct{Input: p}, Right: s.Right}
		if s.Kind == plan.Except {
			j.Kind = plan.Anti
		}
		for i, to := range s.Right.Columns() {
			j.Keys = append(j.Keys, plan.EquiKey{Left: s.Cols[i].Ref(), Right: to.Ref(), NullSafe: true})
		}
		return j
	}), nil
}
