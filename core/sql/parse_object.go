package sql

import "strings"

func (p *parser) createSchema(at At, replace bool) Statement {
	s := &CreateSchema{At: at, OrReplace: replace}
	s.IfNotExists = p.accept("IF", "NOT", "EXISTS")
	s.Name = p.qualified("the name of the schema")
	return s
}

func (p *parser) createSequence(at At, replace, temp bool) Statement {
	s := &CreateSequence{At: at, OrReplace: replace, Temp: temp}
	s.IfNotExists = p.accept("IF", "NOT", "EXISTS")
	s.Name = p.qualified("the name of the sequence")
	for {
		switch {
		case p.accept("INCREMENT"):
			p.accept("BY")
			s.Increment = p.climb(precSign)
		case p.accept("MINVALUE"):
			s.Min = p.climb(precSign)
		case p.accept("MAXVALUE"):
			s.Max = p.climb(precSign)
		case p.accept("START"):
			p.accept("WITH")
			s.Start = p.climb(precSign)
		case p.accept("NO", "MINVALUE"), p.accept("NO", "MAXVALUE"):
		case p.accept("NO", "CYCLE"):
			s.Cycle = false
		case p.accept("CYCLE"):
			s.Cycle = true
		default:
			return s
		}
	}
}

func (p *parser) createIndex(at At, unique bool) Statement {
	s := &CreateIndex{At: at, Unique: unique}
	p.accept("CONCURRENTLY")
	s.IfNotExists = p.accept("IF", "NOT", "EXISTS")
	if !p.at("ON") {
		s.Name = p.qualified("the name of the index").Last()
	}
	p.expect("ON")
	s.Table = p.qualified("a table")
	if p.accept("USING") {
		s.Method = p.name("the kind of index")
	}
	p.parenList(func() {
		s.Keys = append(s.Keys, p.expr())
		p.acceptAny("ASC", "DESC")
		if p.accept("NULLS") {
			p.acceptAny("FIRST", "LAST")
		}
	})
	if p.accept("WITH") {
		p.withOptions()
	}
	return s
}

func (p *parser) alter() Statement {
	s := &Alter{At: p.here()}
	p.expect("ALTER")
	switch what := p.peek(); {
	case p.accept("TABLE"):
	case p.accept("VIEW"):
		s.View = true
	default:
		p.failUnsupported(what.pos, "ALTER "+strings.ToUpper(what.text))
	}
	s.IfExists = p.accept("IF", "EXISTS")
	s.Name = p.qualified("a name")
	p.change(s)
	if p.at(",") {
		p.fail(p.peek().pos, "ALTER makes one change at a time")
	}
	return s
}

// change reads what ALTER does.
func (p *parser) change(s *Alter) {
	at := p.here()
	switch {
	case p.accept("RENAME", "TO"):
		s.Kind, s.To = AlterRename, p.name("the new name")
	case p.accept("RENAME"):
		p.accept("COLUMN")
		s.Kind, s.Column = AlterRenameColumn, p.columnOf()
		p.expect("TO")
		s.To = p.name("the new name")
	case p.at("ADD", "PRIMARY"), p.at("ADD", "UNIQUE"), p.at("ADD", "CONSTRAINT"), p.at("ADD", "CHECK"):
		p.next()
		k := p.constraint()
		s.Kind, s.Constraint = AlterAddKey, &k
	case p.accept("ADD"):
		p.accept("COLUMN")
		s.Kind, s.ColumnIf = AlterAddColumn, p.accept("IF", "NOT", "EXISTS")
		var r Relation
		p.element(&r)
		if len(r.Columns) != 1 {
			p.fail(at.Pos, "ADD wants a column")
		}
		p.needTypes(r.Columns)
		s.Add = &r.Columns[0]
	case p.accept("DROP"):
		p.accept("COLUMN")
		s.Kind, s.ColumnIf = AlterDropColumn, p.accept("IF", "EXISTS")
		s.Column = p.columnOf()
		p.acceptAny("CASCADE", "RESTRICT")
	case p.accept("ALTER"):
		p.accept("COLUMN")
		s.Column = p.columnOf()
		p.changeColumn(s)
	default:
		p.failExpected("RENAME, ADD, DROP or ALTER")
	}
}

// columnOf reads the name of a column; a field of one is refused.
func (p *parser) columnOf() Ident {
	n := p.qualified("a column name")
	if len(n) > 1 {
		p.failUnsupported(n.Position(), "a change of a struct's field")
	}
	return n[0]
}

func (p *parser) changeColumn(s *Alter) {
	switch {
	case p.accept("SET", "DEFAULT"):
		s.Kind, s.Value = AlterSetDefault, p.climb(precOp)
	case p.accept("DROP", "DEFAULT"):
		s.Kind = AlterDropDefault
	case p.accept("SET", "NOT", "NULL"):
		s.Kind = AlterSetNotNull
	case p.accept("DROP", "NOT", "NULL"):
		s.Kind = AlterDropNotNull
	default:
		if p.accept("SET") {
			p.accept("DATA")
		}
		p.expect("TYPE")
		s.Kind, s.Type = AlterType, p.typeName()
		if p.accept("USING") {
			s.Value = p.expr()
		}
	}
}

func (p *parser) comment() Statement {
	s := &Comment{At: p.here()}
	p.expect("COMMENT", "ON")
	s.Kind = strings.ToUpper(p.label("what the comment is on").Name)
	if s.Kind == "MATERIALIZED" || s.Kind == "MACRO" && p.at("TABLE") {
		s.Kind += " " + p.next().key
	}
	s.Name = p.qualified("a name")
	p.expect("IS")
	if !p.accept("NULL") {
		at := p.here()
		s.Text = &Literal{At: at, Kind: LitString, Text: p.stringLiteral("a text in quotes, or NULL")}
	}
	return s
}

func (p *parser) pragma() Statement {
	s := &Pragma{At: p.here()}
	p.expect("PRAGMA")
	s.Name = p.setting()
	switch {
	case p.accept("="):
		s.Value = p.optionValue()
	case p.accept("("):
		p.until(")", func() { s.Args = append(s.Args, p.namedArg()) })
	}
	return s
}

// callStatement reads CALL f(x), which is FROM f(x).
func (p *parser) callStatement() Statement {
	at := p.here()
	p.expect("CALL")
	return &Query{At: at, Body: everything(at, p.tablePrimary())}
}

func (p *parser) use() Statement {
	s := &Use{At: p.here()}
	p.expect("USE")
	s.Name = p.qualified("the name of a schema")
	return s
}

// maintain reads ANALYZE, CHECKPOINT, VACUUM, LOAD and INSTALL.
func (p *parser) maintain() Statement {
	s := &Maintain{At: p.here()}
	if p.accept("FORCE") && !p.at("CHECKPOINT") && !p.at("INSTALL") {
		p.failExpected("CHECKPOINT")
	}
	s.What = p.next().key
	if s.What == "ANALYSE" {
		s.What = "ANALYZE"
	}
	if s.What == "VACUUM" {
		if p.at("(") {
			p.keyOptions()
		}
		p.acceptAny("ANALYZE", "ANALYSE")
	}
	switch t := p.peek(); {
	case (s.What == "LOAD" || s.What == "INSTALL") && t.kind == tokString:
		s.Target = Name{{p.here(), p.next().text}}
	case t.kind == tokWord || t.kind == tokQuoted:
		s.Target = p.qualified("a name")
	case s.What == "LOAD" || s.What == "INSTALL":
		p.failExpected("the name of an extension")
	}
	if s.Target != nil && p.at("(") {
		p.names("a column name")
	}
	if s.What == "INSTALL" && p.accept("FROM") {
		p.next()
	}
	return s
}

// statementTable reads (DESCRIBE t) AS x; nil when no such statement is ahead.
func (p *parser) statementTable(at At) TableRef {
	switch p.ahead(1).key {
	case "DESCRIBE", "SHOW", "SUMMARIZE":
	default:
		return nil
	}
	p.expect("(")
	t := &StatementTable{At: at, Statement: p.statement()}
	p.expect(")")
	t.Alias = p.tableAlias()
	return t
}

func (p *parser) setVariable(at At) Statement {
	p.acceptAny("VARIABLE", "VARIABLES")
	s := &SetVariable{At: at, Name: p.name("the name of a variable")}
	if p.acceptAny("=", "TO") == "" {
		p.failExpected("'=' or TO")
	}
	s.Value = p.expr()
	return s
}
