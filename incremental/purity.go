package incremental

import (
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/plan"
)

// checkPurity refuses what cannot be maintained exactly. A function that gives another value each time would compute other
// rows to retract than it had inserted; one that reads the clock would have to change rows shown long ago.
func checkPurity(root plan.Node, emit plan.EmitPolicy) error {
	var err error
	plan.Walk(root, func(n plan.Node) bool {
		if err != nil || !plan.Live(n) {
			return false
		}
		updating := false
		for _, c := range n.Children() {
			updating = updating || plan.Updating(c, emit)
		}
		if len(n.Children()) == 0 {
			updating = plan.Updating(n, emit)
		}
		if _, ok := n.(*plan.Window); ok {
			updating = true // it computes rows again that others have changed
		}
		if f, ok := n.(*plan.Filter); ok {
			if _, temporal := plan.TemporalOf(f.Cond); temporal && plan.Clocked(f.Cond) {
				return true
			}
		}
		for _, e := range n.Exprs() {
			expr.Walk(e, func(x expr.Expr) bool {
				c, ok := x.(*expr.Call)
				if !ok || err != nil {
					return err == nil
				}
				switch {
				case plan.ReadsClock(c):
					err = errs.E(errs.Unsupported, "plan", c.Pos, "%s() is not supported in incremental mode: rows already shown would have to change as time goes by", c.Fn.Name).
						WithHint("compare a time of the rows with it, as in WHERE ts > now() - INTERVAL '1 hour'; or use the event time of the rows, or a window over it")
				case c.Fn.Name == "nextval" || c.Fn.Name == "currval":
					err = errs.E(errs.Unsupported, "plan", c.Pos, "%s() is not supported in incremental mode: computed again, the rows would get other numbers", c.Fn.Name).
						WithHint("number the rows where they are written: a DEFAULT nextval('…') of a table")
				case updating && c.Fn.Purity == fn.Volatile:
					err = errs.E(errs.Unsupported, "plan", c.Pos, "%s() may give another value when a row is taken back than when it was added", c.Fn.Name).
						WithHint("declare the function deterministic=True if it is, or apply it to append-only input")
				}
				return err == nil
			})
		}
		return err == nil
	})
	return err
}
