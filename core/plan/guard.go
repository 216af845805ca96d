package plan

import (
	"slices"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/expr"
)

// Guard judges the rows of a scan before any operator sees them, for on_error = 'bad'. A row that does not meet a condition
// is dropped, as the plan above would drop it. A row that meets all conditions it has a value for, and fails in one of the
// expressions, is bad. What passes fails nowhere in the plan.
//
// So a row is bad by what the query says, never by how a mode or a rule orders its work.
type Guard struct {
	Keep   []expr.Expr // conditions that every row must meet
	Values []expr.Expr // what is computed of the rows that meet them
	Show   []Column    // what __bad shows of a row
	// ID is the same in copies of the scan that a rule has made. One of them tells the bad rows; the others are Quiet.
	ID    int
	Quiet bool
}

// Sure are the conditions that no row fails in. By them a relation may skip rows unseen: what does not meet them is not bad.
func (g *Guard) Sure() []expr.Expr {
	var out []expr.Expr
	for _, e := range g.Keep {
		if !expr.Fallible(e) {
			out = append(out, e)
		}
	}
	return out
}

// fallible are the expressions that a row may fail in.
func (g *Guard) fallible() []expr.Expr {
	return slices.DeleteFunc(slices.Concat(g.Keep, g.Values), func(e expr.Expr) bool { return !expr.Fallible(e) })
}

// Has reports whether the expression at a place of the text is among those that are judged.
func (g *Guard) Has(pos errs.Pos) bool {
	found := false
	for _, e := range slices.Concat(g.Keep, g.Values) {
		expr.Walk(e, func(x expr.Expr) bool {
			switch x := x.(type) {
			case *expr.Call:
				found = found || x.Pos == pos
			case *expr.Cast:
				found = found || x.Pos == pos
			}
			return !found
		})
	}
	return found
}

// InputRows says in words which rows a node's expressions are computed on: those of a source, where only operators that
// look at one row after the other lie between, or those of the operator that made them.
func InputRows(n Node) string {
	switch n := n.(type) {
	case *Scan:
		return "a row of " + n.Source.Name
	case *Join:
		return "a row that the " + OpOf(n).Name + " compares"
	}
	if c := n.Children(); len(c) == 1 {
		return outputRows(c[0])
	}
	return "a row of the " + OpOf(n).Name + "'s input"
}

func outputRows(n Node) string {
	switch n := n.(type) {
	case *Scan:
		return "a row of " + n.Source.Name
	case *Filter, *Project, *Sort, *TimeWindow, *Unnest:
		return outputRows(n.Children()[0])
	}
	return "a row of the " + OpOf(n).Name + "'s output"
}
