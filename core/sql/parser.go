package sql

import (
	"slices"
	"strings"

	"github.com/riverbed/riverbed/core/errs"
)

// maxNesting bounds the parser's recursion, maxHeight the tree it makes: one
// nesting makes a few nodes, and postfix chains (x[1][1]…) add height without
// recursion. Both keep every recursive walk far from the end of the stack,
// which in Go nothing can catch.
const (
	maxNesting = 1000
	maxHeight  = 5000
)

// parser walks over the tokens of one text. It never goes back but for the few
// places that look ahead.
type parser struct {
	tokens []token
	i      int
	depth  int
	params int // how many ? were met
}

// guard runs a parse and turns the panic of fail into an error.
//
// AIDEV-NOTE: the lexer and the parser leave by panic(*errs.Error); only such a panic is caught here.
func guard(text string, parse func(*parser)) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case *errs.Error:
			err = r.WithSQL(text)
		default:
			panic(r)
		}
	}()
	parse(&parser{tokens: lex(text)})
	return nil
}

func (p *parser) peek() token { return p.tokens[p.i] }

// ahead is the token n after the current one.
func (p *parser) ahead(n int) token {
	return p.tokens[min(p.i+n, len(p.tokens)-1)]
}

func (p *parser) next() token {
	t := p.tokens[p.i]
	if t.kind != tokEnd {
		p.i++
	}
	return t
}

// here is the place of the current token, ready to be embedded.
func (p *parser) here() At { return At{p.peek().pos} }

// at reports whether the next tokens are these words and symbols.
func (p *parser) at(keys ...string) bool {
	for n, k := range keys {
		if p.ahead(n).key != k {
			return false
		}
	}
	return true
}

// atAny reports whether the next token is one of these.
func (p *parser) atAny(keys ...string) bool {
	key := p.peek().key
	for _, k := range keys {
		if key == k {
			return true
		}
	}
	return false
}

// accept takes the words and symbols if they come next, all or none.
func (p *parser) accept(keys ...string) bool {
	if !p.at(keys...) {
		return false
	}
	p.i += len(keys)
	return true
}

// acceptAny takes the next token if it is one of these, and says which.
func (p *parser) acceptAny(keys ...string) string {
	if !p.atAny(keys...) {
		return ""
	}
	return p.next().key
}

// expect takes these words and symbols or fails.
func (p *parser) expect(keys ...string) {
	for _, k := range keys {
		if !p.accept(k) {
			p.failExpected("'" + k + "'")
		}
	}
}

// enter counts a level of nesting; leave ends it.
func (p *parser) enter() {
	p.depth++
	if p.depth > maxNesting {
		p.failDeep(p.peek().pos)
	}
}

func (p *parser) leave() { p.depth-- }

func (p *parser) failDeep(pos errs.Pos) {
	p.failHint(pos, "split the expression, or use a list: x IN (…)", "nesting too deep: more than %d levels", maxNesting)
}

// checkHeight fails when the tree is higher than a recursive walk should meet.
func (p *parser) checkHeight(n Node) {
	walk(n, func(n Node, height int) bool {
		if height > maxHeight {
			p.failDeep(n.Position())
		}
		return true
	})
}

func (p *parser) fail(pos errs.Pos, format string, args ...any) {
	p.failHint(pos, "", format, args...)
}

func (p *parser) failHint(pos errs.Pos, hint, format string, args ...any) {
	panic(errs.E(errs.Schema, "parse", pos, format, args...).WithHint("%s", hint))
}

// failUnsupported refuses what the dialect knows and we do not have.
func (p *parser) failUnsupported(pos errs.Pos, what string) {
	p.fail(pos, "%s is not supported yet", what)
}

// failExpected says what should stand here instead of the current token.
func (p *parser) failExpected(what string) {
	t := p.peek()
	p.failHint(t.pos, p.hint(what, t), "expected %s, found %s", what, t)
}

// statementEnd is what is expected after a complete statement.
const statementEnd = "the end of the statement"

const clauseOrder = "the order is SELECT, FROM, WHERE, GROUP BY, HAVING, WINDOW, QUALIFY, ORDER BY, LIMIT, EMIT"

var clauseWords = strings.Fields("SELECT FROM WHERE GROUP HAVING WINDOW QUALIFY ORDER LIMIT EMIT JOIN UNION")

// hint guesses the common mistake behind a token that does not fit.
func (p *parser) hint(what string, t token) string {
	var before token
	if p.i > 0 {
		before = p.tokens[p.i-1]
	}
	switch {
	case before.key == "," && (t.key == "," || t.key == ")" || t.kind == tokEnd):
		return "remove one comma"
	case slices.Contains(clauseWords, t.key) && what == statementEnd:
		return clauseOrder
	case before.kind == tokWord && !reserved[before.key] && what == statementEnd:
		if near := errs.Near(before.text, clauseWords); near != "" && near != before.key {
			return "did you mean " + near + " instead of '" + before.text + "'?"
		}
	case t.kind == tokWord && reserved[t.key] && what[0] != '\'':
		return "'" + t.text + "' is a reserved word; to use it as a name, quote it: " + quoteName(t.text)
	case t.key == "=>" || t.key == ":=":
		return "named arguments stand in a function's parentheses: f(name := value)"
	}
	return ""
}

// name reads an identifier; what says which, for the message.
func (p *parser) name(what string) Ident {
	t := p.peek()
	if t.kind == tokQuoted || t.kind == tokWord && !reserved[t.key] && !functionOnly[t.key] {
		return p.label(what)
	}
	p.failExpected(what)
	return Ident{}
}

// label reads a name where no keyword could stand: after AS and after a dot.
func (p *parser) label(what string) Ident {
	t := p.peek()
	if t.kind != tokQuoted && t.kind != tokWord {
		p.failExpected(what)
	}
	p.next()
	return Ident{At{t.pos}, t.text}
}

// qualified reads name.name.name.
func (p *parser) qualified(what string) Name {
	n := Name{p.name(what)}
	for p.accept(".") {
		n = append(n, p.label(what))
	}
	return n
}

// alias reads [AS] name, or nothing.
func (p *parser) alias() Ident {
	if p.accept("AS") {
		if t := p.peek(); t.kind == tokString && t.text != "" {
			p.next()
			return Ident{At{t.pos}, t.text}
		}
		return p.label("an alias")
	}
	t := p.peek()
	if t.kind == tokQuoted || t.kind == tokWord && !reserved[t.key] && !functionOnly[t.key] && !notAlias[t.key] {
		return p.label("an alias")
	}
	return Ident{}
}

// names reads (a, b, c).
func (p *parser) names(what string) []Ident {
	var list []Ident
	p.parenList(func() { list = append(list, p.name(what)) })
	return list
}

// parenList reads ( item, item ), at least one; a comma may stand after the last.
func (p *parser) parenList(item func()) {
	p.expect("(")
	item()
	for p.accept(",") && !p.at(")") {
		item()
	}
	p.expect(")")
}

// list reads item, item; at least one.
func (p *parser) list(item func()) {
	item()
	for p.accept(",") {
		item()
	}
}

func (p *parser) exprList() []Expr {
	var list []Expr
	p.list(func() { list = append(list, p.expr()) })
	return list
}

// stringLiteral reads a plain string.
func (p *parser) stringLiteral(what string) string {
	if p.peek().kind != tokString {
		p.failExpected(what)
	}
	return p.next().text
}
