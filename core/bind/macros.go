package bind

import (
	"fmt"
	"strings"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/sql"
)

// Macro is a function that is written in SQL. It is expanded where it is called: the body is bound there, and a parameter
// in it is its argument, bound where the call stands. So a name in an argument can never mean something of the body, and a
// parameter hides whatever else has its name. The body sees nothing else of the place where it is called.
type Macro struct {
	Name   string
	Bodies []sql.MacroBody
	SQL    string // the text that positions refer to
}

func (m *Macro) table() bool { return m.Bodies[0].Query != nil }

// expansion is one call of a macro.
type expansion struct {
	macro  *Macro
	args   map[string]argument
	around *expansion   // of the macro in whose body the call stands
	lambda *lambdaScope // the lambda in whose body the call stands
	text   string       // in which the call stands
}

// argument is an expression and the place where its names mean something.
type argument struct {
	x     sql.Expr
	at    *env
	param sql.MacroParam
}

// macro finds a macro: a view's own, or the session's.
func (b *Binder) macro(name sql.Name) *Macro {
	if m := b.macros[strings.ToLower(name.String())]; m != nil {
		return m
	}
	s, ok := b.cat.(SessionCatalog)
	if !ok {
		return nil
	}
	parts := make([]string, len(name))
	for i, p := range name {
		parts[i] = p.Name
	}
	return s.Macro(parts)
}

// expansion is the innermost macro in whose body a name of this scope stands.
func (s *scope) expansion() *expansion {
	for ; s != nil; s = s.parent {
		if s.macro != nil {
			return s.macro
		}
	}
	return nil
}

// hidden are the scopes without their names. Aggregates still find the SELECT that they belong to.
func (s *scope) hidden() *scope {
	if s == nil {
		return nil
	}
	return &scope{block: s.block, parent: s.parent.hidden()}
}

// expand begins a call. at is where the arguments' names mean something.
func (e *env) expand(x *sql.Function, m *Macro, at *env) (*expansion, *sql.MacroBody) {
	ex := &expansion{macro: m, args: map[string]argument{}, around: e.scope.expansion(), lambda: e.lambda, text: e.b.text}
	for outer := ex.around; outer != nil; outer = outer.around {
		if outer.macro == m {
			fail(x.Pos, "the macro %q calls itself", m.Name)
		}
	}
	if e.b.size++; e.b.size > maxRelations {
		fail(x.Pos, "the query is too long once its macros are written out: more than %d calls and relations", maxRelations)
	}
	if x.Distinct || x.Filter != nil || len(x.OrderBy) > 0 || len(x.WithinGroup) > 0 || x.Over != nil {
		fail(x.Pos, "%s is a macro: DISTINCT, FILTER, ORDER BY and OVER stand in its body", m.Name)
	}
	body := m.bodyFor(x)
	for i, a := range x.Args {
		if !a.Name.IsZero() {
			i = paramAt(body, a.Name.Name)
		}
		p := body.Params[i]
		key := strings.ToLower(p.Name.Name)
		if _, twice := ex.args[key]; twice {
			fail(a.Value.Position(), "the parameter %q of the macro %q is given twice", p.Name.Name, m.Name)
		}
		ex.args[key] = argument{a.Value, at, p}
	}
	for _, p := range body.Params {
		if _, ok := ex.args[strings.ToLower(p.Name.Name)]; !ok {
			ex.args[strings.ToLower(p.Name.Name)] = argument{p.Default, &env{b: e.b, scope: &scope{}, clause: clause{name: "a default"}}, p}
		}
	}
	return ex, body
}

func paramAt(body *sql.MacroBody, name string) int {
	for i, p := range body.Params {
		if sameName(p.Name.Name, name) {
			return i
		}
	}
	return -1
}

// bodyFor chooses the body that takes the arguments of a call.
func (m *Macro) bodyFor(x *sql.Function) *sql.MacroBody {
	var forms []string
	for i := range m.Bodies {
		body := &m.Bodies[i]
		if takes(body, x) {
			return body
		}
		var names []string
		for _, p := range body.Params {
			n := p.Name.Name
			if p.Default != nil {
				n += " := " + sql.Print(p.Default)
			}
			names = append(names, n)
		}
		forms = append(forms, m.Name+"("+strings.Join(names, ", ")+")")
	}
	failHint(x.Pos, fmt.Sprintf("it is %s", strings.Join(forms, " or ")), "the macro %q does not take these arguments", m.Name)
	return nil
}

func takes(body *sql.MacroBody, x *sql.Function) bool {
	given := map[int]bool{}
	for i, a := range x.Args {
		at := i
		if !a.Name.IsZero() {
			at = paramAt(body, a.Name.Name)
		}
		if at < 0 || at >= len(body.Params) {
			return false
		}
		given[at] = true
	}
	for i, p := range body.Params {
		if !given[i] && p.Default == nil {
			return false
		}
	}
	return true
}

// macroCall binds the body of a macro in the place of a call.
func (e *env) macroCall(x *sql.Function, m *Macro) (out expr.Expr) {
	at := *e
	ex, body := e.expand(x, m, &at)
	in := *e
	in.scope = e.scope.hidden()
	in.scope.macro = ex
	in.clause.aliases = false
	e.b.within(m, func() { out = in.bind(body.Expr) })
	return out
}

// within binds a body. Its positions belong to another text, so an error names the macro.
func (b *Binder) within(m *Macro, bind func()) {
	text := b.text
	b.text = m.SQL
	defer func() {
		b.text = text
		if r := recover(); r != nil {
			e := errs.Recovered("bind", r)
			if e.SQL == "" {
				e.Msg = "in the macro " + m.Name + ": " + e.Msg
			}
			panic(e.WithSQL(m.SQL))
		}
	}()
	bind()
}

// macroTable binds the query of a macro in FROM; nil when the function is no macro.
func (b *Binder) macroTable(t *sql.TableFunction, around *scope, ctes *cte) (node plan.Node, tables *scope) {
	m := b.macro(t.Call.Name)
	if m == nil {
		return nil, nil
	}
	if !m.table() {
		failHint(t.Pos, "SELECT "+m.Name+"(…)", "the macro %q is a value, not a table", m.Name)
	}
	at := &env{b: b, scope: around, ctes: ctes, clause: clause{name: "the arguments of " + m.Name}}
	if around == nil {
		at.scope = &scope{}
	}
	ex, body := at.expand(t.Call, m, at)
	b.within(m, func() { node = b.subquery(body.Query, &scope{macro: ex}, nil) })
	b.whole[node] = true
	name := m.Name
	return node, one(t.Alias, []string{name}, renamed(node.Columns(), nil, name))
}

// macroArg binds the argument that a parameter stands for. A lambda within the body hides parameters of the macro.
func (e *env) macroArg(name sql.Ident) (expr.Expr, bool) {
	ex := e.scope.expansion()
	if ex == nil {
		return nil, false
	}
	a, ok := ex.args[strings.ToLower(name.Name)]
	if !ok {
		return nil, false
	}
	for l := e.lambda; l != nil && l != ex.lambda; l = l.around {
		for _, p := range l.params {
			if sameName(p.Name, name.Name) {
				return nil, false
			}
		}
	}
	at := *a.at
	at.inAgg, at.inOver = at.inAgg || e.inAgg, at.inOver || e.inOver
	outside := e.b.text
	e.b.text = ex.text
	defer func() {
		e.b.text = outside
		if r := recover(); r != nil {
			panic(errs.Recovered("bind", r).WithSQL(ex.text))
		}
	}()
	out := at.bind(a.x)
	if a.param.Type != nil {
		out = e.assign(out, typeOf(a.param.Type), name.Pos, "the argument")
	}
	return out, true
}
