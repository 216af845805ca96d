package bind

import (
	"maps"

	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/plan"
)

// completeOrders makes every order of a plan total: after the keys come the columns of the input that the query uses, in
// the input's order. It runs once, over the whole bound plan, so that what rules do later cannot change which rows a
// LIMIT, a ROW_NUMBER or a FIRST takes.
//
// The nodes are the binder's own and not shared yet, so they are completed in place.
func (b *Binder) completeOrders(root plan.Node) plan.Node {
	o := orders{whole: b.whole}
	o.visit(root, plan.SetOf(root.Columns()))
	return root
}

type orders struct {
	whole map[plan.Node]bool
}

// visit completes n, of which the columns in need are used above it. The set may hold columns of other nodes.
func (o *orders) visit(n plan.Node, need plan.ColSet) {
	if o.whole[n] {
		need = with(need, plan.SetOf(n.Columns()))
	}
	switch n := n.(type) {
	case *plan.Project:
		below := plan.ColSet{}
		for _, it := range n.Items {
			if need[it.Col.ID] {
				o.expr(it.Expr, below)
			}
		}
		o.visit(n.Input, below)
	case *plan.Aggregate:
		o.aggregate(n, need)
	case *plan.Window:
		o.window(n, need)
	case *plan.Sort:
		below := o.with(need, n.Exprs())
		n.Tie = tie(n.Input, below, n.Keys)
		o.visit(n.Input, below)
	case *plan.TopN:
		below := o.with(need, n.Exprs())
		n.Tie = tie(n.Input, below, n.Keys)
		o.visit(n.Input, below)
	case *plan.GroupTopN:
		below := o.with(need, n.Exprs())
		n.Tie = tie(n.Input, below, n.Keys)
		o.visit(n.Input, below)
	case *plan.Recursive:
		for _, c := range n.Children() {
			o.visit(c, plan.SetOf(c.Columns()))
		}
	case *plan.Distinct:
		o.visit(n.Input, plan.SetOf(n.Input.Columns()))
	case *plan.SetOp:
		for _, c := range n.Children() {
			below := plan.ColSet{}
			for i, col := range c.Columns() {
				if need[n.Cols[i].ID] || n.Kind != plan.Union || !n.All {
					below[col.ID] = true
				}
			}
			o.visit(c, below)
		}
	default: // Scan, Values, Filter, TimeWindow, Join, Apply, Limit: columns pass through
		below := o.with(need, n.Exprs())
		if a, ok := n.(*plan.Apply); ok {
			for _, id := range a.Outer {
				below[id] = true
			}
		}
		for _, c := range n.Children() {
			o.visit(c, below)
		}
	}
}

func (o *orders) aggregate(n *plan.Aggregate, need plan.ColSet) {
	below := plan.ColSet{}
	for _, k := range n.Keys {
		o.expr(k.Expr, below)
	}
	used := func(a *plan.AggItem) bool { return need[a.Col.ID] }
	for i := range n.Aggs {
		if used(&n.Aggs[i]) {
			for _, x := range aggExprs(&n.Aggs[i]) {
				o.expr(x, below)
			}
		}
	}
	for i := range n.Aggs {
		if a := &n.Aggs[i]; a.Fn.Ordering && !a.Distinct { // with DISTINCT the arguments make the order total
			a.Tie = tie(n.Input, below, a.Order)
		}
	}
	o.visit(n.Input, below)
}

func (o *orders) window(n *plan.Window, need plan.ColSet) {
	below := maps.Clone(need)
	for i := range n.Funcs {
		if f := &n.Funcs[i]; need[f.Col.ID] {
			one := plan.Window{Funcs: n.Funcs[i : i+1]}
			for _, x := range one.Exprs() {
				o.expr(x, below)
			}
		}
	}
	for i := range n.Funcs {
		f := &n.Funcs[i]
		f.Tie = tie(n.Input, below, f.Order)
		if f.Agg != nil && f.Agg.Fn.Ordering && !f.Agg.Distinct {
			f.Agg.Tie = tie(n.Input, below, f.Agg.Order)
		}
	}
	o.visit(n.Input, below)
}

// expr adds what x reads and completes the plans of its subqueries.
func (o *orders) expr(x expr.Expr, need plan.ColSet) {
	expr.Columns(x, need)
	expr.Walk(x, func(y expr.Expr) bool {
		if s, ok := y.(*expr.Subquery); ok {
			used := plan.ColSet{}
			if s.Kind != expr.ExistsSub {
				used = plan.SetOf(s.Plan.(plan.Node).Columns())
			}
			o.visit(s.Plan.(plan.Node), used)
		}
		return true
	})
}

func (o *orders) with(need plan.ColSet, es []expr.Expr) plan.ColSet {
	out := maps.Clone(need)
	for _, x := range es {
		o.expr(x, out)
	}
	return out
}

func with(a, b plan.ColSet) plan.ColSet {
	out := maps.Clone(a)
	maps.Copy(out, b)
	return out
}

// tie lists the input's columns that are used and are not keys already. A key decides for good only where equal values
// are alike: 0.0 and -0.0 tie as keys and still are two rows.
func tie(input plan.Node, used plan.ColSet, keys []plan.SortItem) []expr.ColID {
	isKey := plan.ColSet{}
	for _, k := range keys {
		if c, ok := k.Expr.(*expr.Col); ok && c.T.Alike() {
			isKey[c.ID] = true
		}
	}
	var out []expr.ColID
	for _, c := range input.Columns() {
		if used[c.ID] && !isKey[c.ID] {
			out = append(out, c.ID)
		}
	}
	return out
}
