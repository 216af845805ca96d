package sql

import "github.com/riverbed/riverbed/core/errs"

func (p *parser) create() Statement {
	at := p.here()
	p.expect("CREATE")
	replace := p.accept("OR", "REPLACE")
	temp := p.acceptAny("TEMP", "TEMPORARY") != ""
	materialized := p.at("MATERIALIZED", "VIEW") && p.accept("MATERIALIZED")
	t := p.peek()
	switch t.key {
	case "VIEW":
		p.next()
		v := &CreateView{At: at, OrReplace: replace, Temp: temp, Materialized: materialized}
		v.IfNotExists = p.accept("IF", "NOT", "EXISTS")
		v.Name = p.qualified("the name of the view")
		if p.at("(") {
			v.Columns = p.names("a column name")
		}
		p.expect("AS")
		v.Query = p.query()
		return v
	case "TABLE":
		p.next()
		c := &CreateTable{At: at, Relation: p.relation(replace, temp, "the name of the table")}
		if p.accept("AS") {
			c.Query = p.query()
			if p.accept("WITH") {
				if p.accept("NO", "DATA") {
					p.failUnsupported(t.pos, "WITH NO DATA")
				}
				p.accept("DATA")
				if c.With == nil && p.at("(") {
					c.With = p.withOptions()
				}
			}
		}
		if c.Query == nil {
			p.needTypes(c.Columns)
			if c.Columns == nil && c.With == nil {
				p.failExpected("( and columns, or AS and a query")
			}
		}
		return c
	case "STREAM":
		p.next()
		c := &CreateStream{At: at, Relation: p.relation(replace, temp, "the name of the stream")}
		p.needTypes(c.Columns)
		return c
	case "SINK":
		p.next()
		c := &CreateSink{At: at, Relation: p.relation(replace, temp, "the name of the sink")}
		p.needTypes(c.Columns)
		return c
	case "SCHEMA":
		p.next()
		return p.createSchema(at, replace)
	case "SEQUENCE":
		p.next()
		return p.createSequence(at, replace, temp)
	case "MACRO", "FUNCTION":
		p.next()
		return p.macro(&CreateMacro{At: at, OrReplace: replace, Temp: temp})
	case "INDEX", "UNIQUE":
		unique := p.accept("UNIQUE")
		p.expect("INDEX")
		return p.createIndex(at, unique)
	case "TYPE", "SECRET", "DATABASE", "TRIGGER":
		p.failUnsupported(t.pos, "CREATE "+t.key)
	}
	p.failHint(t.pos, errs.DidYouMean(t.text, relationWords), "expected TABLE, STREAM, VIEW, MATERIALIZED VIEW or SINK, found %s", t)
	return nil
}

var relationWords = []string{"TABLE", "STREAM", "VIEW", "MATERIALIZED", "SINK"}

// relation reads [IF NOT EXISTS] name [(columns)] [WITH (options)].
func (p *parser) relation(replace, temp bool, what string) Relation {
	r := Relation{OrReplace: replace, Temp: temp}
	r.IfNotExists = p.accept("IF", "NOT", "EXISTS")
	r.Name = p.qualified(what)
	if p.at("(") {
		p.parenList(func() { p.element(&r) })
	}
	if p.accept("WITH") {
		r.With = p.withOptions()
	}
	return r
}

// needTypes fails at a column whose type nothing tells.
func (p *parser) needTypes(columns []ColumnDef) {
	for _, c := range columns {
		if c.Type == nil && c.Generated == nil {
			p.fail(c.Pos, "the column %s has no type", quoteName(c.Name.Name))
		}
	}
}

// element reads a column, a constraint, or the watermark.
func (p *parser) element(r *Relation) {
	at := p.here()
	switch {
	case p.at("WATERMARK", "FOR"):
		if r.Watermark != nil {
			p.fail(at.Pos, "there are two watermarks")
		}
		r.Watermark = p.watermark()
		return
	case p.atAny("PRIMARY", "UNIQUE", "CHECK", "CONSTRAINT"):
		r.Constraints = append(r.Constraints, p.constraint())
		return
	case p.at("FOREIGN"):
		p.failUnsupported(at.Pos, "a foreign key")
	}
	c := ColumnDef{At: at, Name: p.name("a column name")}
	if t := p.peek(); t.kind == tokQuoted || t.kind == tokWord && !reserved[t.key] && t.key != "GENERATED" || p.at("UNION", "(") {
		c.Type = p.typeName()
	}
	for p.columnConstraint(&c) {
	}
	r.Columns = append(r.Columns, c)
}

func (p *parser) columnConstraint(c *ColumnDef) bool {
	t := p.peek()
	switch {
	case p.accept("NOT", "NULL"):
		c.NotNull = true
	case p.accept("NULL"):
	case p.accept("PRIMARY", "KEY"):
		c.PrimaryKey = true
	case p.accept("UNIQUE"):
		c.Unique = true
	case p.accept("DEFAULT"):
		c.Default = p.climb(precOp)
	case p.accept("CHECK", "("):
		c.Checks = append(c.Checks, p.expr())
		p.expect(")")
	case p.accept("GENERATED", "ALWAYS", "AS", "("), p.accept("AS", "("):
		c.Generated = p.expr()
		p.expect(")")
		p.acceptAny("VIRTUAL", "STORED")
	case p.at("REFERENCES"):
		p.failUnsupported(t.pos, "a foreign key")
	case p.at("COLLATE"):
		p.failUnsupported(t.pos, "a collation of a column")
	default:
		return false
	}
	return true
}

func (p *parser) constraint() Constraint {
	k := Constraint{At: p.here()}
	if p.accept("CONSTRAINT") {
		k.Name = p.name("the name of the constraint")
	}
	switch {
	case p.accept("PRIMARY", "KEY"):
		k.Kind = PrimaryKey
		k.Columns = p.names("a column name")
	case p.accept("UNIQUE"):
		k.Kind = Unique
		k.Columns = p.names("a column name")
	case p.accept("CHECK"):
		k.Kind = Check
		p.expect("(")
		k.Check = p.expr()
		p.expect(")")
	default:
		p.failExpected("PRIMARY KEY, UNIQUE or CHECK")
	}
	return k
}

func (p *parser) drop() Statement {
	d := &Drop{At: p.here()}
	p.expect("DROP")
	switch t := p.peek(); t.key {
	case "TABLE", "VIEW", "STREAM", "SINK":
		d.Kind = DropKind(p.next().key)
	case "MATERIALIZED":
		p.next()
		p.expect("VIEW")
		d.Kind = DropMaterializedView
	case "SCHEMA", "INDEX", "SEQUENCE":
		d.Kind = DropKind(p.next().key)
	case "MACRO", "FUNCTION":
		p.next()
		d.Kind = DropMacro
		if p.accept("TABLE") {
			d.Kind = DropMacroTable
		}
	case "TYPE", "SECRET", "DATABASE", "TRIGGER":
		p.failUnsupported(t.pos, "DROP "+t.key)
	default:
		p.failExpected("TABLE, STREAM, VIEW, MATERIALIZED VIEW or SINK")
	}
	d.IfExists = p.accept("IF", "EXISTS")
	if d.Kind == DropMacro || d.Kind == DropMacroTable {
		d.Name = p.qualifiedFunction()
	} else {
		d.Name = p.qualified("a name")
	}
	d.Cascade = p.acceptAny("CASCADE", "RESTRICT") == "CASCADE"
	return d
}
