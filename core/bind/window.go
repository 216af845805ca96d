package bind

import (
	"fmt"
	"strings"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/sql"
	"github.com/riverbed/riverbed/core/types"
)

// windowFunction describes a function that only exists with OVER.
type windowFunction struct {
	min, max int // arguments
	returns  func(args []expr.Expr) types.Type
}

func returning(t types.Type) func([]expr.Expr) types.Type {
	return func([]expr.Expr) types.Type { return t }
}

func firstType(args []expr.Expr) types.Type { return args[0].Type() }

var windowFunctions = map[string]*windowFunction{
	"row_number":   {0, 0, returning(types.Int64)},
	"rank":         {0, 0, returning(types.Int64)},
	"dense_rank":   {0, 0, returning(types.Int64)},
	"percent_rank": {0, 0, returning(types.Float64)},
	"cume_dist":    {0, 0, returning(types.Float64)},
	"ntile":        {1, 1, returning(types.Int64)},
	"lag":          {1, 3, firstType},
	"lead":         {1, 3, firstType},
	"first_value":  {1, 1, firstType},
	"last_value":   {1, 1, firstType},
	"nth_value":    {2, 2, firstType},
}

// windowCall binds f(…) OVER (…) to a column of the block's Window node.
func (e *env) windowCall(x *sql.Function, name string) expr.Expr {
	switch {
	case e.block == nil || !e.clause.windows:
		failHint(x.Pos, "compute it in a subquery, or filter with QUALIFY", "%s cannot contain the window function %s", e.clause.name, name)
	case e.inAgg:
		fail(x.Pos, "an aggregate cannot contain the window function %s", name)
	case e.inOver:
		fail(x.Pos, "window functions cannot be nested: %s is inside another one", name)
	case x.Nulls == sql.IgnoreNulls:
		failUnsupported(x.Pos, "IGNORE NULLS")
	}
	in := *e
	in.inOver = true
	item := plan.WindowItem{Name: name, Pos: x.Pos}
	if w := windowFunctions[name]; w != nil {
		if x.Distinct || x.Filter != nil || len(x.OrderBy) > 0 {
			fail(x.Pos, "%s takes neither DISTINCT nor FILTER nor ORDER BY", name)
		}
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
	item.Order = in.sortItems(spec.OrderBy)
	item.Frame = in.frame(spec.Frame)
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
	switch name {
	case "ntile":
		args[0] = e.cast(args[0], types.Int64, x.Pos)
	case "lag", "lead", "nth_value":
		if len(args) > 1 {
			args[1] = e.cast(args[1], types.Int64, x.Pos)
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
		if base == nil || depth > len(names) {
			failHint(out.Base.Pos, candidates("windows", out.Base.Name, names), "there is no window %q", out.Base.Name)
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

// frame prints a frame clause in one form; the default frame is empty.
func (e *env) frame(f *sql.Frame) string {
	if f == nil {
		return ""
	}
	bound := func(b sql.Bound) string {
		if b.Offset == nil {
			return string(b.Kind)
		}
		l, ok := e.constantOf(e.bind(b.Offset))
		if !ok {
			fail(b.Offset.Position(), "the offset of a frame must be a constant")
		}
		return plan.ExprString(l) + " " + string(b.Kind)
	}
	s := string(f.Mode) + " BETWEEN " + bound(f.Start) + " AND " + bound(f.End)
	if f.Exclude != "" {
		s += " EXCLUDE " + f.Exclude
	}
	if s == "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW" {
		return ""
	}
	return s
}

func sameWindow(a, b *plan.WindowItem) bool {
	if a.Name != b.Name || a.Frame != b.Frame || len(a.Order) != len(b.Order) || (a.Agg == nil) != (b.Agg == nil) {
		return false
	}
	for i := range a.Order {
		if a.Order[i].Key != b.Order[i].Key || !same(a.Order[i].Expr, b.Order[i].Expr) {
			return false
		}
	}
	return sameList(a.Args, b.Args) && sameList(a.Part, b.Part) && (a.Agg == nil || sameAgg(a.Agg, b.Agg))
}

// isTimeWindow tells the functions that cut time: the window itself, its start or its end.
func isTimeWindow(name string) (kind plan.WindowKind, part string) {
	base, part := name, ""
	for _, p := range []string{"_start", "_end"} {
		if b, ok := strings.CutSuffix(name, p); ok {
			base, part = b, p[1:]
		}
	}
	kind = map[string]plan.WindowKind{"tumble": plan.Tumble, "hop": plan.Hop, "session": plan.Session, "cumulate": plan.Cumulate}[base]
	return kind, part
}

// timeWindowCall resolves TUMBLE_START(ts, size) and its relatives to the columns of the window in GROUP BY. The window
// itself, TUMBLE(ts, size), is its start. Nil: x is no such call.
func (e *env) timeWindowCall(x *sql.Function, name string) expr.Expr {
	kind, part := isTimeWindow(name)
	if kind == 0 {
		return nil
	}
	bl := e.block
	if bl == nil || e.inAgg || !e.clause.aggs {
		failHint(x.Pos, "write it in GROUP BY, or use FROM "+strings.ToUpper(kind.String())+"(table, column, size)",
			"%s cannot stand in %s", strings.ToUpper(name), e.clause.name)
	}
	if bl.time == nil && bl.sel.GroupBy != nil && bl.sel.GroupBy.All {
		bl.setTime(e, x, kind)
	}
	if bl.time == nil {
		failHint(x.Pos, fmt.Sprintf("add GROUP BY %s(…)", kind), "%s needs %s in GROUP BY", strings.ToUpper(name), kind)
	}
	if len(x.Args) > 0 || kind != bl.time.Kind {
		in := *e
		in.inAgg = true // the arguments are over the rows, not over the groups
		if w := in.timeWindow(kind, x.Pos, x.Args); !bl.sameTime(w) {
			failHint(x.Pos, "repeat the arguments of the window in GROUP BY", "%s has other arguments than the window in GROUP BY", strings.ToUpper(name))
		}
	}
	if part == "end" {
		return bl.time.End.Ref()
	}
	return bl.time.Start.Ref()
}

func (bl *block) sameTime(w *plan.TimeWindow) bool {
	t := bl.time
	return w.Kind == t.Kind && w.Size == t.Size && w.Slide == t.Slide && same(w.Time, t.Time)
}

// setTime makes the block's time window, which its GROUP BY names once.
func (bl *block) setTime(e *env, x *sql.Function, kind plan.WindowKind) {
	in := *e
	in.inAgg = true
	w := in.timeWindow(kind, x.Pos, x.Args)
	if bl.time != nil {
		if !bl.sameTime(w) {
			failUnsupported(x.Pos, "GROUP BY with two different time windows")
		}
		return
	}
	w.Start, w.End = bl.b.column("window_start", windowType(w.Time)), bl.b.column("window_end", windowType(w.Time))
	bl.time = w
	bl.addKey(w.Start.Ref(), "window_start")
	bl.addKey(w.End.Ref(), "window_end")
}

// windowType is the type of a window's edges.
func windowType(time expr.Expr) types.Type {
	if time.Type().Kind == types.TimestampTZ {
		return types.TsTZ
	}
	return types.TsUS
}

// timeArgs names the arguments after the time column, in order.
var timeArgs = map[plan.WindowKind][]string{
	plan.Tumble: {"size"}, plan.Hop: {"slide", "size"}, plan.Session: {"gap"}, plan.Cumulate: {"step", "size"},
}

// timeWindow binds the time and the sizes of a window; Start, End and Input are the caller's.
func (e *env) timeWindow(kind plan.WindowKind, pos errs.Pos, args []sql.Arg) *plan.TimeWindow {
	if len(args) == 0 {
		fail(pos, "%s takes the event time and %s", kind, strings.Join(timeArgs[kind], " and "))
	}
	time := e.bind(args[0].Value)
	return e.timeWindowOf(kind, pos, time, args[1:])
}

func (e *env) timeWindowOf(kind plan.WindowKind, pos errs.Pos, time expr.Expr, args []sql.Arg) *plan.TimeWindow {
	names := timeArgs[kind]
	if len(args) != len(names) {
		fail(pos, "%s takes the event time and %s", kind, strings.Join(names, " and "))
	}
	if t := time.Type(); !t.IsTimestamp() && t.Kind != types.Date {
		failHint(pos, "cast it to TIMESTAMP", "the event time of %s must be a TIMESTAMP or DATE, not %s", kind, t)
	}
	w := &plan.TimeWindow{Kind: kind, Time: time, Pos: pos}
	for i, a := range args {
		name := names[i]
		if !a.Name.IsZero() {
			name = strings.ToLower(a.Name.Name)
		}
		v := e.windowSize(a.Value, kind)
		switch name {
		case "size":
			w.Size = v
		case "slide", "step", "gap":
			w.Slide = v
		default:
			fail(a.Name.Pos, "%s has no argument %q; it takes %s", kind, name, strings.Join(names, " and "))
		}
	}
	return w
}

func (e *env) windowSize(x sql.Expr, kind plan.WindowKind) types.IntervalValue {
	v := e.bind(x)
	if t := v.Type(); t.Kind != types.Interval && t.Kind != types.Varchar {
		failHint(x.Position(), "write INTERVAL '1 minute'", "the size of %s must be an INTERVAL, not %s", kind, t)
	}
	l, ok := e.constantOf(e.cast(v, types.Span, x.Position()))
	if !ok || l.V == nil {
		failHint(x.Position(), "write INTERVAL '1 minute'", "the size of %s must be a constant interval", kind)
	}
	size := l.V.(types.IntervalValue)
	if size.Months < 0 || size.Days < 0 || size.Micros < 0 || size == (types.IntervalValue{}) {
		fail(x.Position(), "the size of %s must be positive", kind)
	}
	if size.Months != 0 && (size.Days != 0 || size.Micros != 0) {
		fail(x.Position(), "the size of %s mixes months with days or time", kind)
	}
	return size
}
