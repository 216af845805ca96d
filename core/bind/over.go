package bind

import (
	"fmt"
	"slices"

	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/sql"
	"github.com/riverbed/riverbed/core/types"
)

// windowFunction describes a function that only exists with OVER.
type windowFunction struct {
	min, max int  // arguments
	framed   bool // it sees the frame, not the partition
	values   bool // it takes a value of a row: NULLs can be ignored
	returns  func(args []expr.Expr) types.Type
}

func returning(t types.Type) func([]expr.Expr) types.Type {
	return func([]expr.Expr) types.Type { return t }
}

func firstType(args []expr.Expr) types.Type { return args[0].Type() }

var windowFunctions = map[string]*windowFunction{
	"row_number":   {0, 0, false, false, returning(types.Int64)},
	"rank":         {0, 0, false, false, returning(types.Int64)},
	"dense_rank":   {0, 0, false, false, returning(types.Int64)},
	"percent_rank": {0, 0, false, false, returning(types.Float64)},
	"cume_dist":    {0, 0, false, false, returning(types.Float64)},
	"ntile":        {1, 1, false, false, returning(types.Int64)},
	"lag":          {1, 3, false, true, firstType},
	"lead":         {1, 3, false, true, firstType},
	"first_value":  {1, 1, true, true, firstType},
	"last_value":   {1, 1, true, true, firstType},
	"nth_value":    {2, 2, true, true, firstType},
}

// valueOfAggregate are the aggregates that take a row of the frame as it stands.
var valueOfAggregate = map[string]string{"first": "first_value", "arbitrary": "first_value", "last": "last_value"}

// windowCall binds f(…) OVER (…) to a column of the block's Window node.
func (e *env) windowCall(x *sql.Function, name string) expr.Expr {
	switch {
	case e.block == nil || !e.clause.windows:
		failHint(x.Pos, "compute it in a subquery, or filter with QUALIFY", "%s cannot contain the window function %s", e.clause.name, name)
	case e.inAgg:
		fail(x.Pos, "an aggregate cannot contain the window function %s", name)
	case e.inOver:
		fail(x.Pos, "window functions cannot be nested: %s is inside another one", name)
	}
	if v := valueOfAggregate[name]; v != "" && !x.Distinct && x.Filter == nil && len(x.OrderBy) == 0 && len(x.WithinGroup) == 0 {
		name = v
	}
	in := *e
	in.inOver = true
	item := plan.WindowItem{Name: name, Pos: x.Pos}
	if w := windowFunctions[name]; w != nil {
		if x.Distinct || x.Filter != nil || len(x.OrderBy) > 0 {
			fail(x.Pos, "%s takes neither DISTINCT nor FILTER nor ORDER BY", name)
		}
		if x.Nulls != sql.NullsUnstated && !w.values {
			fail(x.Pos, "%s looks at no values, so that it takes neither IGNORE NULLS nor RESPECT NULLS", name)
		}
		item.IgnoreNulls = x.Nulls == sql.IgnoreNulls
		item.Args = in.windowArgs(x, name, w)
		item.Col = plan.Column{Name: name, Type: w.returns(item.Args)}
	} else {
		if !isAggregate(name) {
			e.failNoFunction(x.Pos, name)
		}
		if len(x.WithinGroup) > 0 {
			failUnsupported(x.Pos, "WITHIN GROUP with OVER")
		}
		agg := in.aggItem(x, name)
		item.Agg, item.Col = &agg, agg.Col
	}
	spec := e.block.windowSpec(x.Over)
	for _, p := range spec.PartitionBy {
		item.Part = append(item.Part, in.bind(p))
	}
	item.Order = in.windowOrder(spec.OrderBy)
	frame := in.frame(spec.Frame, item.Order)
	if w := windowFunctions[name]; w == nil || w.framed {
		item.Frame = frame
	}
	if a := item.Agg; a != nil && a.Fn.Ordering && len(a.Order) == 0 && !a.Distinct {
		a.Order = item.Order // the rows of a frame come in the order of the window
	}
	bl := e.block
	for i := range bl.windows {
		if sameWindow(&bl.windows[i], &item) {
			return bl.windows[i].Col.Ref()
		}
	}
	item.Col.ID = e.b.id()
	bl.windows = append(bl.windows, item)
	return item.Col.Ref()
}

func (e *env) windowArgs(x *sql.Function, name string, w *windowFunction) []expr.Expr {
	args := e.positional(x)
	if len(args) < w.min || len(args) > w.max {
		want := fmt.Sprint(w.min)
		if w.max > w.min {
			want = fmt.Sprintf("%d to %d", w.min, w.max)
		}
		fail(x.Pos, "%s takes %s arguments, not %d", name, want, len(args))
	}
	whole := func(i int) {
		if t := args[i].Type(); !t.IsInteger() && t.Kind != types.Null {
			fail(x.Pos, "%s counts in whole numbers, not in %s", name, t)
		}
		args[i] = e.cast(args[i], types.Int64, x.Pos)
	}
	switch name {
	case "ntile":
		whole(0)
	case "lag", "lead", "nth_value":
		if len(args) > 1 {
			whole(1)
		}
		if len(args) > 2 {
			args[2] = e.cast(args[2], args[0].Type(), x.Pos)
		}
	}
	return args
}

// windowSpec completes a window that starts from a named one.
func (bl *block) windowSpec(w *sql.Window) sql.Window {
	out := *w
	for depth := 0; !out.Base.IsZero(); depth++ {
		var base *sql.Window
		var names []string
		for _, n := range bl.sel.Windows {
			names = append(names, n.Name.Name)
			if sameName(n.Name.Name, out.Base.Name) {
				base = n.Window
			}
		}
		name := out.Base
		switch {
		case base == nil || depth > len(names):
			failHint(name.Pos, candidates("windows", name.Name, names), "there is no window %q", name.Name)
		case len(out.PartitionBy) > 0 && len(base.PartitionBy) > 0:
			fail(name.Pos, "the window %q has a PARTITION BY, which cannot be replaced", name.Name)
		case len(out.OrderBy) > 0 && len(base.OrderBy) > 0:
			fail(name.Pos, "the window %q has an ORDER BY, which cannot be replaced", name.Name)
		case base.Frame != nil && (out.Frame != nil || len(out.OrderBy) > 0 || len(out.PartitionBy) > 0):
			failHint(name.Pos, "leave the frame out of the named window", "the window %q has a frame, so that nothing can be added to it", name.Name)
		}
		if len(out.PartitionBy) == 0 {
			out.PartitionBy = base.PartitionBy
		}
		if len(out.OrderBy) == 0 {
			out.OrderBy = base.OrderBy
		}
		if out.Frame == nil {
			out.Frame = base.Frame
		}
		out.Base = base.Base
	}
	return out
}

// windowOrder binds the ORDER BY of a window. A constant orders nothing: all rows are peers.
func (e *env) windowOrder(order []sql.OrderItem) []plan.SortItem {
	return slices.DeleteFunc(e.sortItems(order), func(o plan.SortItem) bool { return constant(o.Expr) != nil })
}

func sameWindow(a, b *plan.WindowItem) bool {
	if a.Name != b.Name || a.IgnoreNulls != b.IgnoreNulls || len(a.Order) != len(b.Order) || (a.Agg == nil) != (b.Agg == nil) || !sameFrame(a.Frame, b.Frame) {
		return false
	}
	for i := range a.Order {
		if a.Order[i].Key != b.Order[i].Key || !same(a.Order[i].Expr, b.Order[i].Expr) {
			return false
		}
	}
	return sameList(a.Args, b.Args) && sameList(a.Part, b.Part) && (a.Agg == nil || sameAgg(a.Agg, b.Agg))
}
