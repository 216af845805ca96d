package plan

import (
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/types"
)

// rising finds the column of an expression that never falls while its one column rises, such as k // 32, year(t) or
// CAST(t AS DATE). Its values at the bounds of the column are then bounds of its own. nil: it is none, or not known to be.
func rising(e expr.Expr) *expr.Col {
	switch e := e.(type) {
	case *expr.Col:
		return e
	case *expr.Cast:
		from, to := e.Arg.Type(), e.T
		if from.IsNumeric() && to.IsNumeric() || zoneless(from) && zoneless(to) {
			return rising(e.Arg)
		}
	case *expr.Call:
		switch {
		case e.Fn.Name == "//" && len(e.Args) == 2 && positive(e.Args[1]):
			return rising(e.Args[0])
		case e.Fn.Name == "-" && len(e.Args) == 2 && isNumber(e.Args[1]) && e.Args[0].Type().IsNumeric():
			return rising(e.Args[0])
		case e.Fn.Name == "+" && len(e.Args) == 2 && isNumber(e.Args[1]) && e.Args[0].Type().IsNumeric():
			return rising(e.Args[0])
		case e.Fn.Name == "+" && len(e.Args) == 2 && isNumber(e.Args[0]) && e.Args[1].Type().IsNumeric():
			return rising(e.Args[1])
		case e.Fn.Name == "year" && len(e.Args) == 1 && zoneless(e.Args[0].Type()):
			return rising(e.Args[0])
		case e.Fn.Name == "date_trunc" && len(e.Args) == 2 && zoneless(e.Args[1].Type()):
			if _, fixed := e.Args[0].(*expr.Lit); fixed {
				return rising(e.Args[1])
			}
		}
	}
	return nil
}

// zoneless reports whether a type is a date or a time that no session's clocks move.
func zoneless(t types.Type) bool {
	return t.Kind == types.Date || t.IsTimestamp() && t.Kind != types.TimestampTZ
}

func isNumber(e expr.Expr) bool {
	l, ok := e.(*expr.Lit)
	return ok && l.V != nil && l.T.IsNumeric()
}

func positive(e expr.Expr) bool {
	l, ok := e.(*expr.Lit)
	if !ok || !l.T.IsNumeric() {
		return false
	}
	v, ok := Number(l.V)
	return ok && v > 0
}

// applied is the expression as what a scan may apply to bounds of its column; nil when there is nothing to apply.
func applied(e expr.Expr, c *expr.Col) *flow.Rising {
	if e == expr.Expr(c) {
		return nil
	}
	prog, err := expr.Compile(e, map[expr.ColID]int{c.ID: 0})
	if err != nil {
		return &flow.Rising{Type: e.Type(), Of: func(types.Value) types.Value { return nil }}
	}
	return &flow.Rising{Type: e.Type(), Of: func(v types.Value) types.Value {
		out, err := prog.EvalArray(&fn.Env{}, []arrow.Array{types.ArrayOf([]types.Value{v}, c.T)}, 1)
		if err != nil {
			return nil
		}
		return types.ValueAt(out, 0, e.Type())
	}}
}
