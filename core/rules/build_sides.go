package rules

import "github.com/riverbed/riverbed/core/plan"

// buildSides puts the smaller input of a join on the right, where the table is built: inner joins swap, a left join
// becomes the right join of the exchanged inputs and the other way round, semi and anti joins are told to build over the left.
// Mark and single joins keep their sides: what they give depends on all the right rows of a left row.
// Columns may change places, which only set operations mind; they get a projection.
func buildSides(c *rewriter, root plan.Node) (plan.Node, error) {
	return c.buildBelow(root), nil
}

func (c *rewriter) buildBelow(n plan.Node) plan.Node {
	children := n.Children()
	out := make([]plan.Node, len(children))
	_, positional := n.(*plan.SetOp)
	for i, x := range children {
		out[i] = c.buildBelow(x)
		if positional {
			out[i] = exactly(out[i], x.Columns())
		}
	}
	n = rebuild(n, out...)
	if j, ok := n.(*plan.Join); ok {
		return c.buildSide(j)
	}
	return n
}

// swapAt is how many times larger the right must be estimated before sides change.
const swapAt = 1.2

func (c *rewriter) buildSide(j *plan.Join) plan.Node {
	l, r := c.est.Of(j.Left).Rows, c.est.Of(j.Right).Rows
	if r <= l*swapAt || len(j.Keys) == 0 {
		return j
	}
	switch j.Kind {
	case plan.Inner:
		return exchanged(j)
	case plan.Left:
		m := exchanged(j)
		m.Kind = plan.Right
		return m
	case plan.Right:
		m := exchanged(j)
		m.Kind = plan.Left
		return m
	case plan.Semi, plan.Anti:
		m := *j
		m.BuildLeft = true
		return &m
	}
	return j
}
