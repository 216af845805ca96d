package plan

import (
	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/types"
)

// ReadsClock reports whether a call gives the time of the run or of the step: now(), current_date, age(x).
func ReadsClock(c *expr.Call) bool {
	return c.Fn.Purity == fn.Stable && c.Fn.Category == fn.DateTime && (len(c.Args) == 0 || c.Fn.Name == "age" && len(c.Args) == 1)
}

// Clocked reports whether an expression depends on the time of the run or of the step.
func Clocked(e expr.Expr) bool {
	found := false
	expr.Walk(e, func(x expr.Expr) bool {
		if c, ok := x.(*expr.Call); ok && ReadsClock(c) {
			found = true
		}
		return !found
	})
	return found
}

// Temporal is a condition on the time of a row against the clock: Value Op Bound, where Bound has no columns and rises with the clock.
type Temporal struct {
	Value expr.Expr
	Op    string // <, <=, > or >=
	Bound expr.Expr
}

// TemporalOf takes a condition apart whose answer for a row changes once, as time passes.
func TemporalOf(cond expr.Expr) (Temporal, bool) {
	op, a, b, ok := Comparison(cond)
	if !ok {
		return Temporal{}, false
	}
	if Clocked(a) {
		a, b, op = b, a, Flip(op)
	}
	switch op {
	case "<", "<=", ">", ">=":
	default:
		return Temporal{}, false
	}
	t := a.Type()
	exact := t.Kind == types.Date || t.IsTimestamp() && t.Kind != types.TimestampNS
	if !exact || Clocked(a) || expr.Volatile(a) || !risesWithClock(b) {
		return Temporal{}, false
	}
	return Temporal{a, op, b}, true
}

// risesWithClock: the clock itself, moved by a constant, cut to a unit, or as another type. On local clocks it may fall by an hour or two.
func risesWithClock(e expr.Expr) bool {
	switch e := e.(type) {
	case *expr.Cast:
		to := e.T
		return (to.IsTimestamp() || to.Kind == types.Date) && risesWithClock(e.Arg)
	case *expr.Call:
		if ReadsClock(e) {
			return len(e.Args) == 0 && (e.Type().IsTimestamp() || e.Type().Kind == types.Date)
		}
		constant := func(i int) bool { _, ok := e.Args[i].(*expr.Lit); return ok }
		switch {
		case len(e.Args) != 2:
		case e.Fn.Name == "-" || e.Fn.Name == "+":
			return constant(1) && risesWithClock(e.Args[0]) || e.Fn.Name == "+" && constant(0) && risesWithClock(e.Args[1])
		case e.Fn.Name == "date_trunc":
			return constant(0) && risesWithClock(e.Args[1])
		}
	}
	return false
}

// TemporalFilter reports whether a filter's rows come and go as time passes; the rules give such a condition a filter of its own.
func TemporalFilter(n *Filter) bool { return Clocked(n.Cond) && Live(n) }
