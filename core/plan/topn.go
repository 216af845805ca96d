package plan

import (
	"slices"

	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/types"
)

// topN is what TopN and GroupTopN have in common.
type topN struct {
	input         Node
	part          []expr.Expr
	keys          []SortItem
	tie           []expr.ColID
	limit, offset int64
	rank          string
}

// topNOf is the top-N that n is; ok is false if it is none.
func topNOf(n Node) (t topN, ok bool) {
	switch n := n.(type) {
	case *TopN:
		return topN{n.Input, nil, n.Keys, n.Tie, n.Limit, n.Offset, "row_number"}, true
	case *GroupTopN:
		t = topN{n.Input, n.Part, n.Keys, n.Tie, n.Limit, 0, n.Rank}
		if t.rank == "" {
			t.rank = "row_number"
		}
		return t, true
	}
	return topN{}, false
}

// Trims reports whether a top-N forgets the rows behind its last place in an incremental run: over inserts they never come up.
func Trims(n Node, emit EmitPolicy) bool {
	t, ok := topNOf(n)
	return ok && t.limit >= 0 && t.rank == "row_number" && !Updating(t.input, emit)
}

// fewPlaces is up to how many places a partition's rows are moved to make room for one.
const fewPlaces = 16

// KeepsFirstRows reports whether a top-N keeps in an incremental run just the rows of a few places, which need no identity. It decides
// in which state table they are: see StateOf.
func KeepsFirstRows(n Node, emit EmitPolicy) bool {
	t, _ := topNOf(n)
	return Trims(n, emit) && t.offset == 0 && t.limit >= 1 && t.limit <= fewPlaces && t.decided()
}

// decided reports whether rows of a partition that stand at one place of the order are equal.
func (t topN) decided() bool {
	known, ordered := ColSet{}, len(t.keys) > 0
	know := func(e expr.Expr) {
		if c, ok := e.(*expr.Col); ok && PrintsAsItCompares(c.T) {
			known[c.ID] = true
		}
	}
	for _, k := range t.keys {
		know(k.Expr)
	}
	for _, e := range t.part {
		know(e)
	}
	for _, c := range t.input.Columns() {
		ties := slices.Contains(t.tie, c.ID) // by all that makes values differ
		if !ties && !known[c.ID] {
			return false
		}
		ordered = ordered || ties
	}
	return ordered
}

// PrintsAsItCompares reports whether equal values are the same: not so 0.0 and -0.0, or a month and 30 days.
func PrintsAsItCompares(t types.Type) bool {
	return t.IsInteger() || t.IsTemporal() || t.Kind == types.Boolean || t.Kind == types.Varchar
}
