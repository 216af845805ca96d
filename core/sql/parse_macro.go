package sql

// macro reads what follows CREATE … MACRO.
func (p *parser) macro(m *CreateMacro) Statement {
	m.IfNotExists = p.accept("IF", "NOT", "EXISTS")
	m.Name = p.qualifiedFunction()
	p.list(func() {
		body := MacroBody{At: p.here()}
		p.expect("(")
		p.until(")", func() { body.Params = append(body.Params, p.macroParam()) })
		p.expect("AS")
		switch {
		case p.accept("TABLE"):
			if p.at("(") && !p.queryGoesOnAfterParen() {
				body.Query = p.parenQuery()
			} else {
				body.Query = p.query()
			}
		default:
			body.Expr = p.expr()
		}
		m.Bodies = append(m.Bodies, body)
	})
	for i, b := range m.Bodies {
		if (b.Query == nil) != (m.Bodies[0].Query == nil) {
			p.fail(b.Pos, "the bodies of a macro are all expressions, or all tables")
		}
		for _, other := range m.Bodies[:i] {
			if len(other.Params) == len(b.Params) {
				p.fail(b.Pos, "two bodies of the macro take %d parameters", len(b.Params))
			}
		}
	}
	return m
}

// queryGoesOnAfterParen reports whether the parenthesis ahead is a part of a longer query.
func (p *parser) queryGoesOnAfterParen() bool {
	depth := 0
	for i := 0; ; i++ {
		switch t := p.ahead(i); {
		case t.kind == tokEnd:
			return false
		case t.key == "(":
			depth++
		case t.key == ")":
			if depth--; depth == 0 {
				next := p.ahead(i + 1)
				return next.kind == tokWord
			}
		}
	}
}

func (p *parser) macroParam() MacroParam {
	m := MacroParam{Name: p.name("the name of a parameter")}
	if t := p.peek(); t.kind == tokQuoted || t.kind == tokWord && !reserved[t.key] {
		m.Type = p.typeName()
	}
	if p.acceptAny(":=", "=>", "DEFAULT") != "" {
		m.Default = p.expr()
	}
	return m
}

// qualifiedFunction reads the name of a function, which may be a word that no column may have.
func (p *parser) qualifiedFunction() Name {
	t := p.peek()
	if t.kind != tokQuoted && (t.kind != tokWord || reserved[t.key]) {
		p.failExpected("the name of the macro")
	}
	n := Name{p.label("the name of the macro")}
	for p.accept(".") {
		n = append(n, p.label("a name"))
	}
	return n
}
