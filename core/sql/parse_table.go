package sql

import "strings"

// tables reads the items of FROM.
func (p *parser) tables() []TableRef {
	var list []TableRef
	p.list(func() { list = append(list, p.table()) })
	return list
}

// table reads one item of FROM with its joins; they gather in a loop, to the left.
func (p *parser) table() TableRef {
	p.enter()
	defer p.leave()
	left := p.operand()
	for p.joinAhead() {
		left = p.join(left)
	}
	return left
}

func (p *parser) joinAhead() bool {
	return p.atAny("JOIN", "INNER", "LEFT", "RIGHT", "FULL", "CROSS", "NATURAL", "SEMI", "ANTI", "ASOF", "POSITIONAL") ||
		p.at("LATERAL", "JOIN")
}

func (p *parser) join(left TableRef) TableRef {
	p.enter()
	defer p.leave()
	j := &Join{At: p.here(), Kind: InnerJoin, Left: left}
	j.Natural = p.accept("NATURAL")
	j.AsOf = p.accept("ASOF")
	lateral := false
	switch t := p.peek(); t.key {
	case "LEFT", "RIGHT", "FULL":
		j.Kind = JoinKind(p.next().key)
		if j.Kind == LeftJoin && p.atAny("SEMI", "ANTI") { // LEFT SEMI JOIN is SEMI JOIN
			j.Kind = JoinKind(p.next().key)
		}
		p.accept("OUTER")
	case "INNER", "CROSS", "SEMI", "ANTI":
		j.Kind = JoinKind(p.next().key)
	case "POSITIONAL":
		p.failUnsupported(t.pos, "a positional join")
	}
	if p.at("LATERAL", "JOIN") {
		p.next()
		lateral = true
	}
	p.expect("JOIN")
	unconditional := j.Natural || j.Kind == CrossJoin
	if unconditional && j.AsOf || j.Natural && j.Kind == CrossJoin {
		p.fail(j.Pos, "NATURAL, ASOF and CROSS exclude one another")
	}
	j.Right = p.operand()
	if lateral {
		p.makeLateral(j)
	}
	if !unconditional {
		for p.joinAhead() { // a JOIN b JOIN c ON … ON …
			j.Right = p.join(j.Right)
		}
	}
	switch {
	case unconditional:
	case p.accept("ON"):
		j.On = p.expr()
	case p.accept("USING"):
		j.Using = p.names("a column name")
	default:
		p.failExpected("ON or USING")
	}
	return j
}

// makeLateral lets the right side of LATERAL JOIN see the left; a versioned table does anyway.
func (p *parser) makeLateral(j *Join) {
	switch r := j.Right.(type) {
	case *SubqueryTable:
		r.Lateral = true
	case *TableFunction:
		r.Lateral = true
	case *Table:
		if r.AsOf == nil {
			p.fail(r.Pos, "LATERAL JOIN needs a subquery, a function, or a table AS OF SYSTEM TIME")
		}
	default:
		p.fail(r.Position(), "LATERAL JOIN needs a subquery, a function, or a table AS OF SYSTEM TIME")
	}
}

// operand reads a table without joins, and what may follow it.
func (p *parser) operand() TableRef {
	t := p.tablePrimary()
	if p.at("TABLESAMPLE") {
		p.failUnsupported(p.peek().pos, "sampling")
	}
	for p.at("MATCH_RECOGNIZE", "(") {
		t = p.matchRecognize(t)
	}
	if p.atAny("PIVOT", "UNPIVOT") {
		p.failUnsupported(p.peek().pos, p.peek().key)
	}
	return t
}

func (p *parser) tablePrimary() TableRef {
	t := p.peek()
	at := At{t.pos}
	switch {
	case t.kind == tokString:
		p.next()
		if t.text == "" {
			p.fail(t.pos, "the path is empty")
		}
		return &FileTable{at, t.text, p.tableAlias()}
	case p.accept("LATERAL"):
		return p.lateral(at)
	case p.queryAfterParen():
		q := p.parenQuery()
		return &SubqueryTable{At: at, Query: q, Alias: p.tableAlias()}
	case p.at("("):
		if t := p.statementTable(at); t != nil {
			return t
		}
		return p.parenTable(at)
	case p.at("VALUES", "("):
		v := p.term()
		return &SubqueryTable{At: at, Query: &Query{At: at, Body: v}, Alias: p.tableAlias()}
	case p.accept("TABLE", "("):
		f := p.tableFunction(at)
		p.expect(")")
		return p.finishFunction(f)
	case p.functionAhead():
		return p.finishFunction(p.tableFunction(at))
	}
	table := &Table{At: at, Name: p.qualified("a table, a query in parentheses, or a file name in quotes")}
	table.AsOf = p.asOf()
	table.Alias = p.tableAlias()
	if table.AsOf == nil {
		table.AsOf = p.asOf()
	}
	return table
}

// lateral reads what follows LATERAL.
func (p *parser) lateral(at At) TableRef {
	if p.at("(") {
		q := p.parenQuery()
		return &SubqueryTable{At: at, Query: q, Lateral: true, Alias: p.tableAlias()}
	}
	f, ok := p.tableFunction(at).(*TableFunction)
	if !ok {
		p.fail(at.Pos, "LATERAL stands before a subquery or a function")
	}
	f.Lateral = true
	return p.finishFunction(f)
}

// parenTable reads (a JOIN b …), or a query in more parentheses than needed.
func (p *parser) parenTable(at At) TableRef {
	p.expect("(")
	inner := p.table()
	sub, isQuery := inner.(*SubqueryTable)
	isQuery = isQuery && sub.Alias.Name.IsZero() && !sub.Lateral
	if isQuery && p.queryGoesOn() {
		sub.Query = p.queryFrom(sub.Query)
	}
	p.expect(")")
	pos := p.peek().pos
	alias := p.tableAlias()
	switch {
	case alias.Name.IsZero():
	case isQuery:
		sub.Alias = alias
	default:
		p.failHint(pos, "name the tables inside, or use (SELECT * FROM …) AS name", "an alias on a join in parentheses is not supported yet")
	}
	return inner
}

// functionAhead reports whether name(…) or a.b.name(…) comes next.
func (p *parser) functionAhead() bool {
	n := 0
	for {
		if k := p.ahead(n).kind; k != tokWord && k != tokQuoted {
			return false
		}
		n++
		if p.ahead(n).key != "." {
			return p.ahead(n).key == "("
		}
		n++
	}
}

// tableFunction reads name(arguments), or a windowing of a table.
func (p *parser) tableFunction(at At) TableRef {
	name := p.qualified("a table function")
	if kind := strings.ToLower(name[0].Name); len(name) == 1 && windowKinds[kind] {
		return p.windowTable(at, kind)
	}
	if !p.at("(") {
		p.failExpected("'('")
	}
	f := p.call(name)
	for i, a := range f.Args {
		// read_csv('f', header = true): here = names an argument.
		b, ok := a.Value.(*Binary)
		if !ok || b.Op != OpEq || !a.Name.IsZero() {
			continue
		}
		if c, ok := b.Left.(*ColumnRef); ok && len(c.Parts) == 1 {
			f.Args[i] = Arg{c.Parts[0], b.Right}
		}
	}
	return &TableFunction{At: at, Call: f}
}

func (p *parser) finishFunction(t TableRef) TableRef {
	switch t := t.(type) {
	case *TableFunction:
		t.Ordinality = p.accept("WITH", "ORDINALITY")
		t.Alias = p.tableAlias()
	case *WindowTable:
		t.Alias = p.tableAlias()
	}
	return t
}

// tableAlias reads [AS] name [(columns)], or nothing.
func (p *parser) tableAlias() Alias {
	if p.at("AS", "OF") && (p.ahead(2).key == "SYSTEM" || p.ahead(2).key == "SYSTEM_TIME") {
		return Alias{}
	}
	a := Alias{Name: p.alias()}
	if !a.Name.IsZero() && p.at("(") {
		a.Columns = p.names("a column name")
	}
	return a
}

// asOf reads the forms that ask for an earlier state of a table; nil when none follows.
func (p *parser) asOf() *AsOf {
	a := &AsOf{At: p.here()}
	switch {
	case p.accept("AS", "OF", "SYSTEM", "TIME"), p.accept("AS", "OF", "SYSTEM_TIME"),
		p.accept("FOR", "SYSTEM_TIME", "AS", "OF"), p.accept("FOR", "TIMESTAMP", "AS", "OF"):
	case p.accept("FOR", "VERSION", "AS", "OF"):
		a.Version = true
	case p.accept("AT", "("):
		switch p.acceptAny("VERSION", "TIMESTAMP") {
		case "VERSION":
			a.Version = true
		case "":
			p.failExpected("VERSION or TIMESTAMP")
		}
		p.expect("=>")
		a.Value = p.expr()
		p.expect(")")
		return a
	default:
		return nil
	}
	a.Value = p.expr()
	return a
}
