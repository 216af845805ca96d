package rules

import (
	"slices"

	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/plan"
)

// reduceGroups keeps an aggregate from making groups that a join then drops. Where an aggregate is joined, on group
// keys alone, to a side of far fewer rows, its input is first semi-joined with a copy of that side:
//
//	Join(Aggregate(x) by k, s) on k = s.k  →  Join(Aggregate(x semi join s on k) by k, s)
//
// Decorrelated scalar aggregates look like this. Whole groups stay or go, so no aggregate changes; that is why every
// key must be a group key, and why grouping sets are left alone. The copy must be cheap next to the input: a filtered scan.
func reduceGroups(c *rewriter, root plan.Node) (plan.Node, error) {
	return plan.Transform(root, func(n plan.Node) plan.Node {
		j, ok := n.(*plan.Join)
		if !ok || j.Kind != plan.Inner || len(j.Keys) == 0 {
			return n
		}
		if agg, ok := j.Left.(*plan.Aggregate); ok {
			if m := c.reduced(agg, j.Right, j.Keys); m != nil {
				return j.With([]plan.Node{m, j.Right})
			}
		}
		if agg, ok := j.Right.(*plan.Aggregate); ok {
			flipped := exchanged(j)
			if m := c.reduced(agg, j.Left, flipped.Keys); m != nil {
				return j.With([]plan.Node{j.Left, m})
			}
		}
		return n
	}), nil
}

// fewer is how small the other side must be, as a share of the groups and of the input's rows.
const fewer = 0.2

// reduced returns the aggregate over its reduced input; keys have the aggregate on their left.
func (c *rewriter) reduced(agg *plan.Aggregate, other plan.Node, keys []plan.EquiKey) plan.Node {
	if agg.Sets != nil || len(agg.Keys) == 0 || !filteredScan(other) {
		return nil
	}
	if s, ok := agg.Input.(*plan.Join); ok && s.Kind == plan.Semi && filteredScan(s.Right) {
		return nil // done already
	}
	input := c.est.Of(agg.Input).Rows
	if rows := c.est.Of(other).Rows; rows > fewer*c.est.Of(agg).Rows || scanned(other) > 2*fewer*input {
		return nil
	}
	inputKeys := make([]plan.EquiKey, len(keys))
	for i, k := range keys {
		col, ok := k.Left.(*expr.Col)
		if !ok || k.NullSafe {
			return nil
		}
		at := slices.IndexFunc(agg.Keys, func(it plan.Item) bool { return it.Col.ID == col.ID })
		if at < 0 {
			return nil
		}
		inputKeys[i] = plan.EquiKey{Left: agg.Keys[at].Expr, Right: k.Right}
	}
	copied, to := c.copyOf(other)
	for i, k := range inputKeys {
		inputKeys[i].Right = renamed(k.Right, to)
	}
	m := *agg
	m.Input = &plan.Join{Kind: plan.Semi, Left: agg.Input, Right: copied, Keys: inputKeys}
	return &m
}

// filteredScan reports whether n is a scan with filters, perhaps under projections.
func filteredScan(n plan.Node) bool {
	switch n := n.(type) {
	case *plan.Scan:
		return len(n.Filters) > 0 && n.Limit == 0
	case *plan.Project:
		return filteredScan(n.Input)
	}
	return false
}

// scanned is the number of rows that the scan under n reads.
func scanned(n plan.Node) float64 {
	for {
		switch m := n.(type) {
		case *plan.Project:
			n = m.Input
			continue
		case *plan.Scan:
			if m.Source.Relation != nil {
				return float64(m.Source.Relation.Stats().Rows)
			}
		}
		return 1e18
	}
}
