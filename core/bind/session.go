package bind

import (
	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/sql"
	"github.com/riverbed/riverbed/core/types"
)

// SessionCatalog is a Catalog with what only a session has.
type SessionCatalog interface {
	Catalog
	// Known is the value of a function that the session knows while a statement is planned, such as getvariable('x'); known
	// is false when there is no such function.
	Known(name string, args []types.Value) (v *expr.Lit, known bool, err error)
	// Macro finds a macro; nil when there is none.
	Macro(name []string) *Macro
	// StatementRows runs DESCRIBE, SHOW or SUMMARIZE, which stands in FROM.
	StatementRows(st sql.Statement) (*plan.Source, error)
}

// statementTable binds FROM (DESCRIBE t).
func (b *Binder) statementTable(t *sql.StatementTable) (plan.Node, *scope) {
	s, ok := b.cat.(SessionCatalog)
	if !ok {
		failUnsupported(t.Pos, "a statement in FROM")
	}
	src, err := s.StatementRows(t.Statement)
	if err != nil {
		raise(err, t.Pos)
	}
	return b.scan(src, t.Alias, []string{"unnamed_subquery"}, t.Pos)
}

// sessionCall binds a call of a macro, or of a function whose value the session knows; nil for others.
func (e *env) sessionCall(x *sql.Function, name string) expr.Expr {
	if m := e.b.macro(x.Name); m != nil && !m.table() {
		return e.macroCall(x, m)
	}
	s, ok := e.b.cat.(SessionCatalog)
	if !ok || !knownFunctions[name] {
		return nil
	}
	var args []types.Value
	for _, a := range e.positional(x) {
		l, ok := e.constantOf(a)
		if !ok {
			fail(x.Pos, "%s takes a constant", name)
		}
		args = append(args, l.V)
	}
	v, known, err := s.Known(name, args)
	if err != nil {
		raise(err, x.Pos)
	}
	if !known {
		return nil
	}
	return v
}

var knownFunctions = map[string]bool{"current_schema": true, "current_database": true, "current_catalog": true, "current_user": true, "session_user": true, "user": true,
	"current_setting": true, "getvariable": true}
