package exec

import (
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/types"
	"github.com/riverbed/riverbed/core/window"
)

// Keys that are functions of other keys tell no groups apart: GROUP BY x, x - 1, 'a' has the groups of x. They are left out of
// the table, and computed from its keys when the groups are handed out. They were computed for each row too where that may
// fail, so that the errors are those of all rows.

// derivedKeys is the keys of an aggregate that are computed from the others.
type derivedKeys struct {
	told []int // positions of the keys that tell groups apart
	at   []int // positions of the others
	prog *expr.Program
}

// deriveKeys is nil when every key may tell groups apart.
func deriveKeys(n *plan.Aggregate) (*derivedKeys, error) {
	if n.Sets != nil || len(n.Keys) < 2 {
		return nil, nil
	}
	keys := make([]expr.Expr, len(n.Keys))
	for i, k := range n.Keys {
		keys[i] = k.Expr
	}
	if p, ok := n.Input.(*plan.Project); ok { // which computes them
		from := make(map[expr.ColID]expr.Expr, len(p.Items))
		for _, it := range p.Items {
			from[it.Col.ID] = it.Expr
		}
		for i, k := range keys {
			keys[i] = expr.Substitute(k, from)
		}
	}
	if w, ok := n.Input.(*plan.TimeWindow); ok {
		if end := endOf(w); end != nil {
			for i, k := range keys {
				keys[i] = expr.Substitute(k, map[expr.ColID]expr.Expr{w.End.ID: end})
			}
		}
	}
	d := &derivedKeys{}
	layout := map[expr.ColID]int{}
	for i, k := range keys {
		// Of floats and intervals equal values may look different, 0.0 and -0.0, and give different results.
		if c, ok := k.(*expr.Col); ok && k.Type().Alike() {
			if _, again := layout[c.ID]; !again {
				layout[c.ID] = len(d.told)
				d.told = append(d.told, i)
			}
		}
	}
	bases := len(d.told)
	var es []expr.Expr
	for i, k := range keys {
		if slices.Contains(d.told[:bases], i) {
			continue
		}
		// A group shows one of equal values, whichever its rows have: so a key that is no column has to go through the table as well.
		if !k.Type().Alike() || expr.Purity(k) != fn.Immutable || slices.ContainsFunc(columnsOf(k), func(id expr.ColID) bool { _, ok := layout[id]; return !ok }) {
			d.told = append(d.told, i)
			continue
		}
		d.at = append(d.at, i)
		es = append(es, k)
	}
	if len(d.at) == 0 || len(d.told) == 0 { // constants alone: no rows have no group
		return nil, nil
	}
	var err error
	d.prog, err = expr.CompileAll(es, layout)
	return d, err
}

// endOf is the end of a window as a function of its start; nil if windows differ in length.
func endOf(w *plan.TimeWindow) expr.Expr {
	if w.Kind != plan.Tumble && w.Kind != plan.Hop || w.Size.Months != 0 {
		return nil
	}
	size, err := window.SpanOf(w.Size)
	if err != nil {
		return nil
	}
	end, err := expr.NewCall("+", w.Pos, w.Start.Ref(), &expr.Lit{V: types.IntervalValue{Micros: size.Micros}, T: types.Span})
	if err != nil || !end.Type().Equal(w.End.Type) {
		return nil
	}
	return end
}

func columnsOf(e expr.Expr) []expr.ColID {
	set := map[expr.ColID]bool{}
	expr.Columns(e, set)
	out := make([]expr.ColID, 0, len(set))
	for id := range set {
		out = append(out, id)
	}
	return out
}

// fill computes the keys that are missing among the columns of n groups.
func (d *derivedKeys) fill(env *fn.Env, cols []arrow.Array, n int) error {
	told := make([]arrow.Array, len(d.told))
	for i, at := range d.told {
		told[i] = cols[at]
	}
	made, err := d.prog.EvalArrays(env, told, n)
	if err != nil {
		return err
	}
	for i, at := range d.at {
		cols[at] = made[i]
	}
	return nil
}
