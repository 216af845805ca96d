package sql

func (p *parser) insert(at At, w *With) Statement {
	s := &Insert{At: at, With: w}
	p.expect("INSERT")
	if p.accept("OR") {
		if s.Or = p.acceptAny("REPLACE", "IGNORE"); s.Or == "" {
			p.failExpected("REPLACE or IGNORE")
		}
	}
	p.expect("INTO")
	s.Table = p.qualified("a table, a stream or a sink")
	if p.accept("AS") {
		s.Alias = p.name("an alias")
	}
	if p.at("(") && !p.queryAfterParen() && p.ahead(1).key != "(" {
		s.Columns = p.names("a column name")
	}
	if p.accept("BY", "NAME") {
		s.ByName = true
	} else {
		p.accept("BY", "POSITION")
	}
	if !p.accept("DEFAULT", "VALUES") {
		s.Query = p.query()
	}
	if p.at("ON", "CONFLICT") {
		if s.Or != "" {
			p.fail(p.peek().pos, "INSERT OR %s says already what a conflict does", s.Or)
		}
		s.Conflict = p.conflict()
	}
	s.Returning = p.returning()
	return s
}

func (p *parser) conflict() *Conflict {
	c := &Conflict{At: p.here()}
	p.expect("ON", "CONFLICT")
	if p.at("(") {
		c.Columns = p.names("a column name")
		if p.accept("WHERE") {
			p.failUnsupported(p.peek().pos, "a condition on the rows that conflict")
		}
	}
	p.expect("DO")
	if p.accept("NOTHING") {
		return c
	}
	p.expect("UPDATE", "SET")
	c.Set = p.assignments()
	if p.accept("WHERE") {
		c.Where = p.expr()
	}
	return c
}

func (p *parser) returning() []SelectItem {
	if !p.accept("RETURNING") {
		return nil
	}
	return p.selectItems()
}

// target reads a table that is changed, with its alias.
func (p *parser) target() *Table {
	at := p.here()
	t := &Table{At: at, Name: p.qualified("a table name")}
	t.Alias.Name = p.alias()
	return t
}

func (p *parser) assignments() []Assignment {
	var list []Assignment
	p.list(func() {
		column := p.name("a column name")
		p.expect("=")
		list = append(list, Assignment{column, p.exprOrDefault()})
	})
	return list
}

func (p *parser) update(at At, w *With) Statement {
	s := &Update{At: at, With: w}
	p.expect("UPDATE")
	s.Table = p.target()
	p.expect("SET")
	s.Set = p.assignments()
	if p.accept("FROM") {
		s.From = p.tables()
	}
	if p.accept("WHERE") {
		s.Where = p.expr()
	}
	s.Returning = p.returning()
	return s
}

func (p *parser) delete(at At, w *With) Statement {
	s := &Delete{At: at, With: w}
	p.expect("DELETE", "FROM")
	s.Table = p.target()
	if p.accept("USING") {
		s.Using = p.tables()
	}
	if p.accept("WHERE") {
		s.Where = p.expr()
	}
	s.Returning = p.returning()
	return s
}

func (p *parser) merge(at At, w *With) Statement {
	s := &Merge{At: at, With: w}
	p.expect("MERGE", "INTO")
	s.Target = p.target()
	p.expect("USING")
	s.Source = p.operand()
	switch {
	case p.accept("ON"):
		s.On = p.expr()
	case p.accept("USING"):
		s.Using = p.names("a column name")
	default:
		p.failExpected("ON or USING")
	}
	for p.at("WHEN") {
		s.Whens = append(s.Whens, p.mergeWhen())
	}
	if len(s.Whens) == 0 {
		p.failExpected("'WHEN'")
	}
	s.Returning = p.returning()
	return s
}

func (p *parser) mergeWhen() MergeWhen {
	w := MergeWhen{At: p.here()}
	p.expect("WHEN")
	switch {
	case p.accept("MATCHED"):
		w.Match = Matched
	case p.accept("NOT", "MATCHED", "BY", "SOURCE"):
		w.Match = NotMatchedBySource
	case p.accept("NOT", "MATCHED"):
		w.Match = NotMatched
		p.accept("BY", "TARGET")
	default:
		p.failExpected("MATCHED or NOT MATCHED")
	}
	if p.accept("AND") {
		w.Cond = p.expr()
	}
	p.expect("THEN")
	switch {
	case p.accept("DELETE"):
		w.Action = MergeDelete
	case p.accept("DO", "NOTHING"):
		w.Action = MergeNothing
	case p.accept("UPDATE"):
		w.Action = MergeUpdate
		if p.accept("BY", "NAME") {
			w.ByName = true
		} else {
			p.accept("BY", "POSITION")
		}
		if p.accept("SET") && !p.accept("*") {
			w.Set = p.assignments()
		}
	case p.accept("ERROR"):
		w.Action = MergeError
		if !p.atAny("WHEN", "RETURNING", ";") && p.peek().kind != tokEnd {
			w.Message = p.expr()
		}
	case p.accept("INSERT"):
		w.Action = MergeInsert
		if p.accept("BY", "NAME") {
			w.ByName = true
		} else {
			p.accept("BY", "POSITION")
		}
		if p.accept("*") {
			break
		}
		if p.at("(") {
			w.Columns = p.names("a column name")
		}
		if w.Columns != nil || p.at("VALUES") {
			p.expect("VALUES")
			p.parenList(func() { w.Values = append(w.Values, p.exprOrDefault()) })
		}
	default:
		p.failExpected("UPDATE, INSERT, DELETE or DO NOTHING")
	}
	return w
}

func (p *parser) copyStatement() Statement {
	c := &Copy{At: p.here()}
	p.expect("COPY")
	if p.at("FROM", "DATABASE") {
		p.failUnsupported(c.Pos, "COPY FROM DATABASE")
	}
	if p.at("(") {
		c.Query = p.parenQuery()
		p.expect("TO")
	} else {
		at := p.here()
		c.Table = p.qualified("a table, or a query in parentheses")
		if p.at("(") {
			c.Columns = p.names("a column name")
		}
		switch p.acceptAny("TO", "FROM") {
		case "TO":
			s := everything(at, &Table{At: at, Name: c.Table})
			if c.Columns != nil {
				s.Items = nil
				for _, col := range c.Columns {
					s.Items = append(s.Items, SelectItem{Expr: &ColumnRef{col.At, Name{col}}})
				}
			}
			c.Query, c.Table, c.Columns = &Query{At: at, Body: s}, nil, nil
		case "":
			p.failExpected("TO or FROM")
		}
	}
	c.Path = p.stringLiteral("a file name in quotes")
	p.accept("WITH")
	if p.at("(") {
		c.Options = p.keyOptions()
	}
	return c
}
