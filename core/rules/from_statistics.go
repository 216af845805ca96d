package rules

import (
	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/types"
)

// fromStatistics answers COUNT, MIN and MAX over all rows of files from what the files say of themselves:
//
//	Aggregate min(x), count(*) (Scan)  →  Values
//
// The files are looked at again when the query runs, as a scan would. Nothing may come between: no group, no condition, no limit, no judging of rows. A table in memory is left alone, since its rows
// may change between planning and running. Bounds must be values of the column (flow.ColumnStats.Tight), and whole numbers or
// dates: of floats a file does not count NaN, and texts may be cut.
func fromStatistics(c *rewriter, root plan.Node) (plan.Node, error) {
	return plan.Transform(root, func(n plan.Node) plan.Node {
		agg, ok := n.(*plan.Aggregate)
		if !ok || len(agg.Keys) > 0 || agg.Sets != nil || agg.GroupingID != nil || len(agg.Aggs) == 0 {
			return n
		}
		s, ok := agg.Input.(*plan.Scan)
		if !ok || s.Source.Relation == nil || s.Source.Table || s.Source.Upsert != nil || len(s.Filters) > 0 || s.Limit > 0 || s.Guard != nil {
			return n
		}
		of, ok := s.Source.Relation.(flow.Checker)
		if !ok {
			return n
		}
		row := make([]expr.Expr, len(agg.Aggs))
		for i := range agg.Aggs {
			v, ok := known(s, &agg.Aggs[i])
			if !ok {
				return n
			}
			row[i] = &expr.Lit{V: v, T: agg.Aggs[i].Col.Type}
		}
		return &plan.Values{Cols: agg.Columns(), Rows: [][]expr.Expr{row}, Of: of}
	}), nil
}

// known is the value of an aggregate over a whole scan, where the statistics tell it.
func known(s *plan.Scan, a *plan.AggItem) (types.Value, bool) {
	st := s.Source.Relation.Stats()
	if a.Filter != nil || !st.Exact || st.Rows < 0 {
		return nil, false
	}
	if a.Fn.Name == "count" && len(a.Args) == 0 {
		return st.Rows, true
	}
	if len(a.Args) != 1 || a.Distinct && a.Fn.Name == "count" {
		return nil, false
	}
	col, ok := a.Args[0].(*expr.Col)
	if !ok {
		return nil, false
	}
	for i, c := range s.Cols {
		if c.ID != col.ID {
			continue
		}
		cs, ok := st.Columns[s.At[i]]
		if !ok || !cs.Tight {
			return nil, false
		}
		switch a.Fn.Name {
		case "count":
			return st.Rows - cs.Nulls, cs.Nulls >= 0
		case "min":
			return cs.Min, wholeOf(cs.Min, col.T)
		case "max":
			return cs.Max, wholeOf(cs.Max, col.T)
		}
	}
	return nil, false
}

// wholeOf reports whether v is a whole number, or a date, of the type.
func wholeOf(v types.Value, t types.Type) bool {
	x, ok := v.(int64)
	kind := t.Kind
	if kind == types.Date {
		kind = types.Integer
	}
	lo, hi := types.IntRange(kind)
	return ok && lo <= x && x <= hi
}
