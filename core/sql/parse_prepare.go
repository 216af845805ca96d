package sql

import "strings"

func (p *parser) prepare() Statement {
	s := &Prepare{At: p.here()}
	p.expect("PREPARE")
	s.Name = p.name("the name of the prepared statement")
	if p.at("(") { // the types of the parameters, which their places tell
		p.parenList(func() { p.typeName() })
	}
	p.expect("AS")
	p.params = 0
	s.Statement = p.statement()
	switch s.Statement.(type) {
	case *Prepare, *Execute, *Deallocate:
		p.fail(s.Statement.Position(), "PREPARE takes no PREPARE, EXECUTE or DEALLOCATE")
	}
	return s
}

func (p *parser) execute() Statement {
	s := &Execute{At: p.here()}
	p.expect("EXECUTE")
	s.Name = p.name("the name of a prepared statement")
	if p.accept("(") {
		p.until(")", func() { s.Args = append(s.Args, p.namedArg()) })
	}
	return s
}

// namedArg reads value, name := value or name => value.
func (p *parser) namedArg() Arg {
	if t := p.peek(); (t.kind == tokWord || t.kind == tokQuoted) && (p.ahead(1).key == ":=" || p.ahead(1).key == "=>") {
		name := p.label("a name")
		p.next()
		return Arg{Name: name, Value: p.expr()}
	}
	return Arg{Value: p.expr()}
}

func (p *parser) deallocate() Statement {
	s := &Deallocate{At: p.here()}
	p.expect("DEALLOCATE")
	p.accept("PREPARE")
	if p.accept("ALL") {
		s.All = true
	} else {
		s.Name = p.name("the name of a prepared statement")
	}
	return s
}

// colonParam reads :name, where the colon and the name stand together.
func (p *parser) colonParam(at At) Expr {
	colon, word := p.peek(), p.ahead(1)
	if colon.key != ":" || word.kind != tokWord || word.pos.Offset != colon.pos.Offset+1 || strings.Contains(word.text, "$") {
		return nil
	}
	p.next()
	p.next()
	return &Param{At: at, Name: word.text}
}
