// Package sql turns SQL text into a syntax tree and back: a hand-written lexer,
// a recursive-descent parser with a Pratt loop for expressions, and a printer.
// The dialect is DuckDB's with streaming extensions; the parser knows no
// catalog, no types and no functions.
//
// Invariant: parse(print(x)) equals x but for positions, for every tree the parser makes.
package sql

import "github.com/riverbed/riverbed/core/errs"

// Parse reads statements separated by semicolons; empty ones are left out.
// Every error is an *errs.Error of kind Schema with its place and the text.
func Parse(text string) ([]Statement, error) {
	var list []Statement
	err := guard(text, func(p *parser) {
		for {
			for p.accept(";") {
			}
			if p.peek().kind == tokEnd {
				return
			}
			p.params = 0
			s := p.statement()
			p.checkHeight(s)
			list = append(list, s)
			if !p.at(";") && p.peek().kind != tokEnd {
				p.failExpected(statementEnd)
			}
		}
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// ParseOne reads exactly one statement; a semicolon may end it.
func ParseOne(text string) (Statement, error) {
	list, err := Parse(text)
	switch {
	case err != nil:
		return nil, err
	case len(list) == 0:
		return nil, errs.New(errs.Schema, "parse", "there is no statement in the text")
	case len(list) > 1:
		return nil, errs.E(errs.Schema, "parse", list[1].Position(), "expected one statement, found %d", len(list)).
			WithHint("run them one by one").WithSQL(text)
	}
	return list[0], nil
}

// ParseExpr reads one expression, such as the watermark of a connector.
func ParseExpr(text string) (Expr, error) {
	var e Expr
	err := guard(text, func(p *parser) {
		e = p.expr()
		p.checkHeight(e)
		if p.peek().kind != tokEnd {
			p.failExpected("the end of the expression")
		}
	})
	if err != nil {
		return nil, err
	}
	return e, nil
}
