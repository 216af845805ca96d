package rules

import (
	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/plan"
)

// splitWindows makes one node of the window functions that one order of the rows serves: they have the same PARTITION BY, and their
// ORDER BYs begin each other. A shorter one may stand in the longer one's order only if peers may come in any order. A node
// whose functions do not look at the order of peers needs no tie-break.
func splitWindows(c *rewriter, root plan.Node) (plan.Node, error) {
	return plan.Transform(root, func(n plan.Node) plan.Node {
		w, ok := n.(*plan.Window)
		if !ok {
			return n
		}
		var groups [][]plan.WindowItem
		for _, f := range w.Funcs {
			groups = placeWindow(groups, f)
		}
		changed := len(groups) > 1
		out := w.Input
		for _, funcs := range groups {
			m := &plan.Window{Input: out, Funcs: funcs}
			changed = c.trimWindow(m) || changed
			out = m
		}
		if !changed {
			return n
		}
		return exactly(out, w.Columns())
	}), nil
}

func placeWindow(groups [][]plan.WindowItem, f plan.WindowItem) [][]plan.WindowItem {
	for i, g := range groups {
		spec := (&plan.Window{Funcs: g}).Spec()
		if !equalExprs(spec.Part, f.Part) {
			continue
		}
		switch {
		case len(f.Order) == len(spec.Order) && begins(f.Order, spec.Order),
			len(f.Order) < len(spec.Order) && begins(f.Order, spec.Order) && !f.Tied():
			groups[i] = append(g, f)
			return groups
		case len(f.Order) > len(spec.Order) && begins(spec.Order, f.Order) && !anyTied(g):
			groups[i] = append(g, f)
			return groups
		}
	}
	return append(groups, []plan.WindowItem{f})
}

func anyTied(fs []plan.WindowItem) bool {
	for i := range fs {
		if fs[i].Tied() {
			return true
		}
	}
	return false
}

// trimWindow leaves out tie-breaks that nothing looks at, or that a unique key makes idle.
func (c *rewriter) trimWindow(w *plan.Window) bool {
	spec := w.Spec()
	var tie []expr.ColID
	if anyTied(w.Funcs) {
		tie = c.trim(w.Input, spec.Part, spec.Order, spec.Tie)
	}
	changed := false
	for i := range w.Funcs {
		changed = changed || len(w.Funcs[i].Tie) != len(tie)
		w.Funcs[i].Tie = tie
	}
	return changed
}

func equalExprs(a, b []expr.Expr) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !expr.Equal(a[i], b[i]) {
			return false
		}
	}
	return true
}

func begins(a, b []plan.SortItem) bool {
	for i := range a {
		if a[i].Key != b[i].Key || !expr.Equal(a[i].Expr, b[i].Expr) {
			return false
		}
	}
	return true
}
