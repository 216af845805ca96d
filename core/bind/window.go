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
