package rules

import (
	"math"
	"slices"

	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/plan"
)

// groupTopN recognises the first rows of each group:
//
//	Filter(rn <= k, Window(row_number() OVER (PARTITION BY p ORDER BY o) AS rn)) → GroupTopN(k, p, o)
//
// for row_number, rank and dense_rank, and for =, < and <= of a constant. The filter goes where the limit says the
// same; rn = 2 keeps it. Other window functions of the node must see all rows, so they stay below. A bare
// row_number() without such a condition is no top-N and is refused later.
func groupTopN(c *rewriter, root plan.Node) (plan.Node, error) {
	return plan.Transform(root, func(n plan.Node) plan.Node {
		f, ok := n.(*plan.Filter)
		if !ok {
			return n
		}
		w, ok := f.Input.(*plan.Window)
		if !ok {
			return n
		}
		conds := expr.Conjuncts(f.Cond)
		for i, item := range w.Funcs {
			if item.Name != "row_number" && item.Name != "rank" && item.Name != "dense_rank" || len(item.Args) > 0 {
				continue
			}
			limit, rest, found := rankLimit(conds, item.Col.ID)
			if !found {
				continue
			}
			col := item.Col
			g := &plan.GroupTopN{Input: w.Input, Part: item.Part, Keys: item.Order, Tie: item.Tie, Limit: limit, Rank: item.Name, RowNumber: &col}
			if len(w.Funcs) > 1 {
				others := *w
				others.Funcs = slices.Delete(slices.Clone(w.Funcs), i, i+1)
				g.Input = &others
			}
			return exactly(where(g, rest), f.Columns())
		}
		return n
	}), nil
}

// rankLimit finds the smallest upper bound that conditions set for a rank, and what they say besides.
func rankLimit(conds []expr.Expr, id expr.ColID) (limit int64, rest []expr.Expr, found bool) {
	limit = math.MaxInt64
	for _, e := range conds {
		op, l, r, ok := plan.Comparison(e)
		col, isCol := l.(*expr.Col)
		lit, isLit := r.(*expr.Lit)
		if !ok || !isCol || !isLit || col.ID != id {
			rest = append(rest, e)
			continue
		}
		k, isInt := lit.V.(int64)
		switch {
		case !isInt:
			rest = append(rest, e)
			continue
		case op == "<=":
		case op == "<":
			k--
		case op == "=":
			if k != 1 {
				rest = append(rest, e)
			}
		default:
			rest = append(rest, e)
			continue
		}
		found = true
		limit = min(limit, max(k, 0))
	}
	return limit, rest, found
}
