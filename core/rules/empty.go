package rules

import "github.com/riverbed/riverbed/core/plan"

// dropEmpty carries "no rows" upwards, from where a condition that is never true left it. It must not make an
// aggregate without keys empty: that has a row for no rows.
func dropEmpty(c *rewriter, root plan.Node) (plan.Node, error) {
	return plan.Transform(root, func(n plan.Node) plan.Node {
		if isEmpty(n) || !becomesEmpty(n) {
			return withoutEmptySide(n)
		}
		return &plan.Values{Cols: n.Columns()}
	}), nil
}

func isEmpty(n plan.Node) bool {
	v, ok := n.(*plan.Values)
	return ok && len(v.Rows) == 0
}

func becomesEmpty(n plan.Node) bool {
	switch n := n.(type) {
	case *plan.Limit:
		return n.Limit == 0 || isEmpty(n.Input)
	case *plan.TopN:
		return n.Limit == 0 || isEmpty(n.Input)
	case *plan.Aggregate:
		return len(n.Keys) > 0 && n.Sets == nil && isEmpty(n.Input)
	case *plan.Join:
		switch l, r := isEmpty(n.Left), isEmpty(n.Right); n.Kind {
		case plan.Inner, plan.Semi:
			return l || r
		case plan.Right:
			return r
		case plan.Full:
			return l && r
		default:
			return l
		}
	case *plan.SetOp:
		switch l, r := isEmpty(n.Left), isEmpty(n.Right); n.Kind {
		case plan.Union:
			return l && r
		case plan.Intersect:
			return l || r
		default:
			return l
		}
	case *plan.Filter, *plan.Project, *plan.Sort, *plan.Distinct, *plan.GroupTopN, *plan.Window, *plan.TimeWindow, *plan.Unnest:
		return isEmpty(n.Children()[0])
	}
	return false
}

// withoutEmptySide drops the empty side of what then only hands the other on.
func withoutEmptySide(n plan.Node) plan.Node {
	switch n := n.(type) {
	case *plan.Join:
		if n.Kind == plan.Anti && isEmpty(n.Right) {
			return n.Left
		}
	case *plan.SetOp:
		if n.Kind != plan.Union || !n.All {
			return n
		}
		other := n.Left
		switch {
		case isEmpty(n.Left):
			other = n.Right
		case !isEmpty(n.Right):
			return n
		}
		p := &plan.Project{Input: other}
		for i, col := range other.Columns() {
			p.Items = append(p.Items, plan.Item{Expr: col.Ref(), Col: n.Cols[i]})
		}
		return p
	}
	return n
}
