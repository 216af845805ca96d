package plan

import (
	"github.com/riverbed/riverbed/core/expr"
)

// Slices is an aggregate by hopping windows that can add each row once, to its slice of time, and make windows of slices: the window tells
// groups apart and is asked for nothing else.
type Slices struct {
	Window *TimeWindow
	Keys   []Item // group keys beside the window's edges
	At     []int  // for each group key of the aggregate its place in Keys, or one of the two below
}

// Places of the window's edges in Slices.At.
const (
	StartKey = -1
	EndKey   = -2
)

// SlicesOf is nil when an aggregate has to see each row in each of its windows.
func SlicesOf(a *Aggregate) *Slices {
	w, ok := a.Input.(*TimeWindow)
	if !ok || w.Kind != Hop || a.Sets != nil || w.Size.Months != 0 || w.Slide.Months != 0 {
		return nil
	}
	if len(a.Keys) == 0 {
		return nil // a total has its row before any input
	}
	edges := ColSet{w.Start.ID: true, w.End.ID: true}
	rest := *a
	rest.Keys = nil
	if Overlap(Reads(&rest), edges) {
		return nil
	}
	for i := range a.Aggs {
		if a.Aggs[i].Distinct {
			return nil // what is distinct in two slices need not be in their window
		}
	}
	s := &Slices{Window: w}
	for _, k := range a.Keys {
		col, isCol := k.Expr.(*expr.Col)
		switch {
		case isCol && col.ID == w.Start.ID:
			s.At = append(s.At, StartKey)
		case isCol && col.ID == w.End.ID:
			s.At = append(s.At, EndKey)
		case Overlap(ExprColumns(k.Expr), edges):
			return nil
		default:
			s.At = append(s.At, len(s.Keys))
			s.Keys = append(s.Keys, k)
		}
	}
	return s
}
