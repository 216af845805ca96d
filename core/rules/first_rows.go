package rules

import "github.com/riverbed/riverbed/core/plan"

// firstRows gives a LIMIT without ORDER BY at the top of an incremental query the total order of its rows: a changelog has no
// other that does not depend on how the input was cut. As batch such a query takes rows as they are read and stops.
//
// It must leave a LIMIT below the top alone: what batch takes there would decide about the rest of the query.
func firstRows(c *rewriter, root plan.Node) (plan.Node, error) {
	return throughProjects(root, func(n plan.Node) plan.Node {
		l, ok := n.(*plan.Limit)
		if !ok || l.Limit < 0 {
			return nil
		}
		if _, ordered := topNode(l).(*plan.Limit); !ordered {
			return nil
		}
		top := &plan.TopN{Input: l.Input, Limit: l.Limit, Offset: l.Offset}
		for _, col := range l.Input.Columns() {
			top.Tie = append(top.Tie, col.ID)
		}
		c.note("LIMIT without ORDER BY takes the first rows of their total order; as batch it takes them as they are read")
		return top
	}, root), nil
}
