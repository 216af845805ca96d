package bind

import (
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/sql"
)

// Params are the values of a statement's parameters, by sql.Param.Key. A parameter is bound to its value: a plan holds
// constants alone, so that one that runs for ever, and its checkpoints, say what they were made with. The value takes
// part in typing as a constant in its place would.
type Params map[string]*expr.Lit

func (e *env) parameter(x *sql.Param) expr.Expr {
	v := e.b.params[x.Key()]
	if v == nil {
		panic(errs.E(errs.Schema, "bind", x.Pos, "the parameter %s has no value", sql.Print(x)).
			WithHint("give one with the statement: sql(text, params=[…]) or params={…}, or EXECUTE"))
	}
	return v
}
