package plan

import (
	"fmt"

	"github.com/riverbed/riverbed/core/fn"
)

// StateUse is what EXPLAIN says of one state table of an operator in an incremental run.
type StateUse struct {
	Table   string
	Bounded bool
	Why     string
}

// StateOf returns the state tables that a node keeps in an incremental run, and whether they stay bounded while input
// goes on for ever.
func StateOf(n Node, emit EmitPolicy) []StateUse {
	if !Live(n) {
		return nil // computed once
	}
	switch n := n.(type) {
	case *Filter:
		if TemporalFilter(n) {
			return []StateUse{{"temporal_rows", true, "rows that the clock may still pass"}}
		}
	case *Normalize:
		return []StateUse{{"normalize_rows", false, "the last row of each key, until the key is deleted"}}
	case *Aggregate:
		return aggregateState(n, emit)
	case *Join:
		return joinStateOf(n, emit)
	case *Distinct:
		if c, ok := ClosingColumn(n); ok {
			return []StateUse{{"distinct_seen", true, closedBy(c)}}
		}
		return []StateUse{{"distinct_seen", false, "one entry per different row, for ever"}}
	case *TopN:
		table := "topn_rows"
		if KeepsFirstRows(n, emit) {
			table = "first_rows"
		}
		if Trims(n, emit) {
			return []StateUse{{table, true, fmt.Sprintf("the first %d rows; input only inserts", n.Limit+n.Offset)}}
		}
		return []StateUse{{table, false, allRows(n.Input, emit)}}
	case *GroupTopN:
		table := "group_topn_rows"
		if KeepsFirstRows(n, emit) {
			table = "group_first_rows"
		}
		best := KeepsBest(n, emit)
		if best {
			table = "group_best_rows"
		}
		if c, ok := ClosingColumn(n); ok {
			return []StateUse{{table, true, closedBy(c)}}
		}
		if best {
			return []StateUse{{table, false, "the best rows of each group, one group per key, for ever"}}
		}
		if Trims(n, emit) {
			return []StateUse{{table, false, fmt.Sprintf("%d rows per group, one group per key, for ever", n.Limit)}}
		}
		return []StateUse{{table, false, allRows(n.Input, emit)}}
	case *TimeWindow:
		if n.Kind == Session {
			if _, ok := SessionEnds(n); ok {
				return []StateUse{{"session_rows", true, closedBy(n.End)}}
			}
			return []StateUse{{"session_rows", false, "every row, because a later one may join its session"}}
		}
	case *Window:
		return windowState(n)
	case *SetOp:
		if n.Kind != Union || !n.All {
			return []StateUse{{"setop_rows", false, "one entry per different row, for ever"}}
		}
	}
	return nil
}

// allRows says why a top-N over an input keeps more than it shows.
func allRows(input Node, emit EmitPolicy) string {
	if Updating(input, emit) {
		return "all rows, because a retraction may bring a later row back"
	}
	return "all rows, for ever"
}

func closedBy(c Column) string { return "dropped when the watermark passes " + c.Name }

func aggregateState(n *Aggregate, emit EmitPolicy) []StateUse {
	bounded, why := false, "one entry per group, for ever"
	if c, ok := ClosingColumn(n); ok {
		bounded, why = true, closedBy(c)
	} else if len(n.Keys) == 0 {
		bounded, why = true, "one group"
	}
	groups, values := "aggregate_groups", "aggregate_distinct"
	if n.Sets != nil {
		groups, values = "aggregate_groups_set", "aggregate_distinct_set"
	}
	out := []StateUse{{groups, bounded, why}}
	for _, a := range n.Aggs {
		if keeps := a.Fn.Ordering || a.Fn.Algebra == fn.Ordered && Updating(n.Input, emit); keeps && len(n.Keys) == 0 {
			out[0] = StateUse{groups, false, "one group, which keeps every value of " + a.Fn.Name + "()"}
		}
	}
	for _, a := range n.Aggs {
		if a.Distinct {
			if len(n.Keys) == 0 {
				bounded, why = false, "one entry per different value, for ever"
			}
			return append(out, StateUse{values, bounded, why})
		}
	}
	return out
}

// JoinAsks says what a join asks of the rows of a side (0 is the left) beside their partners: to be shown for themselves, or, to show rows
// of the other side for themselves, their number by the keys alone.
func JoinAsks(n *Join, side int) (kept, watched bool) {
	keeps := [2]bool{n.Kind != Inner && n.Kind != Right, n.Kind == Right || n.Kind == Full}
	return keeps[side], keeps[1-side] && n.On == nil
}

// KeepsRows reports whether the incremental form of a join keeps the rows of a side as they came, in a table of their own: they are
// only added, and nothing is asked of them but their partners.
func KeepsRows(n *Join, side int, emit EmitPolicy) bool {
	kept, watched := JoinAsks(n, side)
	return !kept && !watched && !Updating([2]Node{n.Left, n.Right}[side], emit)
}

// joinStateOf: each side is kept as long as rows of the other may still meet it.
func joinStateOf(n *Join, emit EmitPolicy) []StateUse {
	b, ok := JoinBounds(n)
	tables := [2]string{"join_left", "join_right"}
	for side := range tables {
		if KeepsRows(n, side, emit) {
			tables[side] += "_rows"
		}
	}
	side := func(table string, self, other Node, limited bool) StateUse {
		switch {
		case !Live(self) && Live(other):
			return StateUse{table, true, "the input is bounded"}
		case !Live(other):
			return StateUse{table, true, "not kept: the other input is bounded and read first"}
		case ok && limited:
			return StateUse{table, true, "dropped when the watermark passes: " + b.String()}
		}
		return StateUse{table, false, "every row may still meet a later one of the other side"}
	}
	return []StateUse{
		side(tables[0], n.Left, n.Right, b.Low != nil),
		side(tables[1], n.Right, n.Left, b.High != nil),
	}
}
