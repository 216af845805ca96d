package plan

import (
	"github.com/riverbed/riverbed/core/expr"
)

// KeepsBest reports whether a top-N per group keeps in an incremental run just the rows that none precedes, with all their ties: rank() = 1
// over an input that only gets better. It decides in which state table they are: see StateOf.
func KeepsBest(n Node, emit EmitPolicy) bool {
	g, ok := n.(*GroupTopN)
	if !ok || g.Limit != 1 || g.Rank != "rank" && g.Rank != "dense_rank" || len(g.Keys) == 0 {
		return false
	}
	return !Updating(g.Input, emit) || len(g.Keys) == 1 && Improves(g.Input, g.Part, g.Keys[0])
}

// Improves reports whether rows get only better in the order of a key: a row that is retracted has its place taken, in the same step, by one
// of the same partition that stands no later, and no row is retracted in the step in which it comes. So are the groups of a count
// or a maximum over inserts, the greatest first.
func Improves(n Node, part []expr.Expr, key SortItem) bool {
	switch n := n.(type) {
	case *Project:
		made := make(map[expr.ColID]expr.Expr, len(n.Items))
		for _, it := range n.Items {
			made[it.Col.ID] = it.Expr
		}
		below := make([]expr.Expr, len(part))
		for i, e := range part {
			below[i] = expr.Substitute(e, made)
		}
		return Improves(n.Input, below, SortItem{expr.Substitute(key.Expr, made), key.Key})
	case *Filter:
		stays := ColSet{} // of a group
		if a := groupsBelow(n.Input); a != nil {
			for _, k := range a.Keys {
				stays[k.Col.ID] = true
			}
		}
		for _, e := range expr.Conjuncts(n.Cond) {
			if !Subset(ExprColumns(e), stays) && !asksForValue(e, key.Expr) || expr.Volatile(e) {
				return false
			}
		}
		return Improves(n.Input, part, key)
	case *Aggregate:
		col, ok := key.Expr.(*expr.Col)
		if !ok || n.Sets != nil || Updating(n.Input, EmitImmediate) {
			return false
		}
		stays := ColSet{}
		for _, k := range n.Keys {
			stays[k.Col.ID] = true
		}
		for _, e := range part {
			if !Subset(ExprColumns(e), stays) || expr.Volatile(e) {
				return false
			}
		}
		for i := range n.Aggs {
			if a := &n.Aggs[i]; a.Col.ID == col.ID && len(a.Args) <= 1 {
				switch a.Fn.Name {
				case "count", "count_star", "count_if":
					return key.Key.Desc
				case "max":
					return key.Key.Desc && !key.Key.NullsFirst
				case "min":
					return !key.Key.Desc && !key.Key.NullsFirst
				}
			}
		}
	}
	return false
}

// groupsBelow is the aggregate that a filter sees through other filters.
func groupsBelow(n Node) *Aggregate {
	switch n := n.(type) {
	case *Filter:
		return groupsBelow(n.Input)
	case *Aggregate:
		return n
	}
	return nil
}

// asksForValue reports whether e is v IS NOT NULL.
func asksForValue(e, v expr.Expr) bool {
	is, ok := e.(*expr.IsNull)
	return ok && is.Negate && expr.Key(is.Arg) == expr.Key(v)
}
