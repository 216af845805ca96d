package bind

import (
	"fmt"
	"slices"
	"strings"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/sql"
	"github.com/riverbed/riverbed/core/types"
	"github.com/riverbed/riverbed/core/window"
)

// isTimeWindow tells the functions that cut time: the window itself, its start, its end, or its last time.
func isTimeWindow(name string) (kind plan.WindowKind, part string) {
	base, part := name, ""
	for _, p := range []string{"_start", "_end", "_rowtime"} {
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
	switch part {
	case "end":
		return bl.time.End.Ref()
	case "rowtime":
		return e.lastTime(bl.time, x.Pos)
	}
	return bl.time.Start.Ref()
}

// lastTime is the last time of a window, a millisecond before its end: what windows over windows take as their event time.
func (e *env) lastTime(w *plan.TimeWindow, pos errs.Pos) expr.Expr {
	return e.call(pos, "-", w.End.Ref(), &expr.Lit{V: types.IntervalValue{Micros: 1000}, T: types.Span})
}

func (bl *block) sameTime(w *plan.TimeWindow) bool {
	t := bl.time
	return w.Kind == t.Kind && w.Size == t.Size && w.Slide == t.Slide && w.OffsetUS == t.OffsetUS && same(w.Time, t.Time)
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
	most := len(names)
	if kind != plan.Session {
		most++ // the offset
	}
	if len(args) < len(names) || len(args) > most {
		fail(pos, "%s takes the event time and %s", kind, strings.Join(names, " and "))
	}
	if t := time.Type(); !t.IsTimestamp() && t.Kind != types.Date {
		failHint(pos, "cast it to TIMESTAMP", "the event time of %s must be a TIMESTAMP or DATE, not %s", kind, t)
	}
	w := &plan.TimeWindow{Kind: kind, Time: time, Pos: pos}
	given := map[string]bool{}
	for i, a := range args {
		name := "offset"
		if i < len(names) {
			name = names[i]
		}
		if !a.Name.IsZero() {
			if name = strings.ToLower(a.Name.Name); !slices.Contains(names, name) && (kind == plan.Session || name != "offset" && name != "origin") {
				fail(a.Name.Pos, "%s has no argument %q; it takes %s", kind, name, strings.Join(names, " and "))
			}
		}
		if given[name] {
			fail(a.Value.Position(), "%s is given its %s twice", kind, name)
		}
		given[name] = true
		switch name {
		case "size":
			w.Size = e.windowSize(a.Value, kind)
		case "slide", "step", "gap":
			w.Slide = e.windowSize(a.Value, kind)
		default:
			w.OffsetUS = e.windowOffset(a.Value, kind)
		}
	}
	return w
}

// windowOffset binds by how much windows are moved on: an interval, or a time at which one of them starts.
func (e *env) windowOffset(x sql.Expr, kind plan.WindowKind) int64 {
	v := e.bind(x)
	to := types.Span
	if v.Type().IsTimestamp() || v.Type().Kind == types.Date {
		to = types.TsUS
	}
	l, ok := e.constantOf(e.cast(v, to, x.Position()))
	if !ok || l.V == nil {
		failHint(x.Position(), "write INTERVAL '1 minute', or a TIMESTAMP at which a window starts", "the offset of %s must be a constant", kind)
	}
	if at, ok := l.V.(int64); ok {
		l = &expr.Lit{V: types.IntervalValue{Micros: at}}
	}
	off, err := window.OffsetOf(l.V.(types.IntervalValue))
	if err != nil {
		fail(x.Position(), "%s", err)
	}
	return off
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
