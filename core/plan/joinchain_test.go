package plan

import (
	"testing"

	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/types"
)

// TestTimesOfALongChainOfJoins: what is asked of a chain of joins takes each join once. With a doubling at each join a chain of 60
// would never end.
func TestTimesOfALongChainOfJoins(t *testing.T) {
	next := expr.ColID(0)
	scan := func() Node {
		next++
		return &Values{Cols: []Column{{ID: next, Name: "v", Type: types.Int32}}, Rows: [][]expr.Expr{{&expr.Lit{V: int64(1), T: types.Int32}}}}
	}
	n := scan()
	for range 60 {
		r := scan()
		n = &Join{Kind: Full, Left: n, Right: r, Keys: []EquiKey{{Left: n.Columns()[0].Ref(), Right: r.Columns()[0].Ref()}}}
	}
	if got := TimeColumns(n); len(got) != 0 {
		t.Errorf("constants are bound to a watermark: %v", got)
	}
	Updating(n, EmitImmediate)
	StateOf(n, EmitImmediate)
}
