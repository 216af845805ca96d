package rules

import (
	"slices"

	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/plan"
)

// topN makes one operator of a limit over an order: Limit(Sort) → TopN, also with projections between.
// An offset without a limit keeps all rows and stays a Sort.
func topN(c *rewriter, root plan.Node) (plan.Node, error) {
	return plan.Transform(root, topNode), nil
}

func topNode(n plan.Node) plan.Node {
	l, ok := n.(*plan.Limit)
	if !ok || l.Limit < 0 {
		return n
	}
	return throughProjects(l.Input, func(in plan.Node) plan.Node {
		if s, ok := in.(*plan.Sort); ok {
			return &plan.TopN{Input: s.Input, Keys: s.Keys, Tie: s.Tie, Limit: l.Limit, Offset: l.Offset}
		}
		return nil
	}, n)
}

// throughProjects applies f to the first node below projections; when f declines, instead is returned.
func throughProjects(n plan.Node, f func(plan.Node) plan.Node, instead plan.Node) plan.Node {
	if p, ok := n.(*plan.Project); ok {
		in := throughProjects(p.Input, f, nil)
		if in == nil {
			return instead
		}
		return p.With([]plan.Node{in})
	}
	if out := f(n); out != nil {
		return out
	}
	return instead
}

// dropSort drops orders that nobody sees: of subqueries without a limit, and in incremental mode also the order of
// the result, because a changelog has none. It must keep an order below a limit, and never touches the order
// inside an aggregate or a window, which is part of its call.
func dropSort(c *rewriter, root plan.Node) (plan.Node, error) {
	return c.sorts(root, true, false), nil
}

func (c *rewriter) sorts(n plan.Node, top, limited bool) plan.Node {
	switch m := n.(type) {
	case *plan.Sort:
		in := c.sorts(m.Input, false, false)
		if limited || top && c.mode == Batch {
			return rebuild(n, in)
		}
		if top {
			c.note("ORDER BY without LIMIT is dropped: a changelog has no order")
		}
		return in
	case *plan.Project:
		return rebuild(n, c.sorts(m.Input, top, limited))
	case *plan.Limit:
		return rebuild(n, c.sorts(m.Input, false, true))
	}
	children := n.Children()
	out := make([]plan.Node, len(children))
	for i, x := range children {
		out[i] = c.sorts(x, false, false)
	}
	return rebuild(n, out...)
}

// pushLimit moves a limit without order towards the scan, which then stops early: Limit(n, Project(x)) →
// Project(Limit(n, x)), and Limit(Scan) tells the scan. It stops at Filter and Join: they drop rows, so the scan below
// may have to read more than n. A scan with filters counts the rows that pass them, so it takes the limit too.
func pushLimit(c *rewriter, root plan.Node) (plan.Node, error) {
	return plan.Transform(root, func(n plan.Node) plan.Node {
		l, ok := n.(*plan.Limit)
		if !ok || l.Limit < 0 {
			return n
		}
		rows := l.Limit + l.Offset
		if l.Limit == 0 {
			return n // no row is needed; 0 would tell the scan to read all
		}
		return throughProjects(l.Input, func(in plan.Node) plan.Node {
			switch in := in.(type) {
			case *plan.Scan:
				if in.Limit == 0 || in.Limit > rows {
					m := *in
					m.Limit = rows
					return l.With([]plan.Node{&m})
				}
			case *plan.SetOp:
				if in.Kind == plan.Union && in.All {
					m := *in
					m.Left, m.Right = limited(in.Left, rows), limited(in.Right, rows)
					return l.With([]plan.Node{&m})
				}
			}
			if l.Input == in {
				return nil
			}
			return l.With([]plan.Node{in})
		}, n)
	}), nil
}

func limited(n plan.Node, rows int64) plan.Node {
	if _, ok := n.(*plan.Limit); ok {
		return n
	}
	return throughProjects(n, func(in plan.Node) plan.Node {
		if s, ok := in.(*plan.Scan); ok {
			m := *s
			m.Limit = rows
			return &plan.Limit{Input: &m, Limit: rows}
		}
		return nil
	}, &plan.Limit{Input: n, Limit: rows})
}

// trimTies leaves out the tie-break columns that decide nothing: all of them when the order keys (with the partition)
// hold a unique key, and those that are order keys themselves. The order stays the same total order.
func trimTies(c *rewriter, root plan.Node) (plan.Node, error) {
	return plan.Transform(root, func(n plan.Node) plan.Node {
		switch m := n.(type) {
		case *plan.Sort:
			if tie := c.trim(m.Input, nil, m.Keys, m.Tie); len(tie) != len(m.Tie) {
				k := *m
				k.Tie = tie
				return &k
			}
		case *plan.TopN:
			if tie := c.trim(m.Input, nil, m.Keys, m.Tie); len(tie) != len(m.Tie) {
				k := *m
				k.Tie = tie
				return &k
			}
		case *plan.GroupTopN:
			if m.Rank != "row_number" {
				break // ties of rank and dense_rank are told by the keys alone, which order their output too
			}
			if tie := c.trim(m.Input, m.Part, m.Keys, m.Tie); len(tie) != len(m.Tie) {
				k := *m
				k.Tie = tie
				return &k
			}
		}
		return n
	}), nil
}

func (c *rewriter) trim(input plan.Node, part []expr.Expr, keys []plan.SortItem, tie []expr.ColID) []expr.ColID {
	props := c.facts.Of(input)
	fixed := plainColumns(part)
	for _, k := range keys {
		if col, ok := k.Expr.(*expr.Col); ok {
			fixed[col.ID] = true
		}
	}
	alike := map[expr.ColID]bool{}
	for _, col := range input.Columns() {
		alike[col.ID] = col.Type.Alike()
	}
	var out []expr.ColID
	for _, id := range tie {
		if props.Unique(fixed) {
			break
		}
		if fixed[id] && alike[id] || props.Const[id] != nil {
			continue
		}
		fixed[id] = true
		out = append(out, id)
	}
	return slices.Clip(out)
}
