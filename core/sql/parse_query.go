package sql

// queryAhead reports whether a query starts at the current token.
func (p *parser) queryAhead() bool { return p.queryAt(0) }

// queryAfterParen reports whether ( and a query come next.
func (p *parser) queryAfterParen() bool { return p.at("(") && p.queryAt(1) }

func (p *parser) queryAt(n int) bool {
	switch p.ahead(n).key {
	case "SELECT", "WITH", "FROM":
		return true
	case "VALUES":
		return p.ahead(n+1).key == "("
	case "TABLE":
		return p.ahead(n+1).key != "("
	}
	return false
}

// queryGoesOn reports whether a clause follows that belongs to a query already read.
func (p *parser) queryGoesOn() bool {
	return p.atAny("UNION", "INTERSECT", "EXCEPT", "ORDER", "LIMIT", "OFFSET", "FETCH", "EMIT")
}

func (p *parser) parenQuery() *Query {
	p.expect("(")
	q := p.query()
	p.expect(")")
	return q
}

// query reads a whole query: WITH, body, ORDER BY, LIMIT, EMIT.
func (p *parser) query() *Query {
	p.enter()
	defer p.leave()
	q := &Query{At: p.here()}
	if p.at("WITH") {
		q.With = p.with()
	}
	q.Body = p.body(0)
	return p.tail(q)
}

// queryFrom goes on after a query in parentheses that turned out to be the first part of a larger one.
func (p *parser) queryFrom(first *Query) *Query {
	return p.tail(&Query{At: first.At, Body: p.bodyFrom(bare(first), 0)})
}

// bare strips a query that adds nothing to its body.
func bare(q *Query) Body {
	if q.plain() && q.With == nil {
		return q.Body
	}
	return q
}

// plain reports whether nothing follows the body.
func (q *Query) plain() bool {
	return len(q.OrderBy) == 0 && q.Limit == nil && q.Offset == nil && q.Emit == nil
}

func (p *parser) with() *With {
	w := &With{At: p.here()}
	p.expect("WITH")
	w.Recursive = p.accept("RECURSIVE")
	p.list(func() {
		c := CTE{Name: p.name("the name of a subquery")}
		if p.at("(") {
			c.Columns = p.names("a column name")
		}
		if p.at("USING") {
			p.failUnsupported(p.peek().pos, "USING KEY")
		}
		p.expect("AS")
		switch {
		case p.accept("MATERIALIZED"):
			c.Materialized = MaterializedYes
		case p.accept("NOT", "MATERIALIZED"):
			c.Materialized = MaterializedNo
		}
		c.Query = p.parenQuery()
		w.CTEs = append(w.CTEs, c)
	})
	return w
}

// body reads queries combined by UNION, INTERSECT and EXCEPT; INTERSECT binds tighter.
func (p *parser) body(min int) Body { return p.bodyFrom(p.term(), min) }

func (p *parser) bodyFrom(left Body, min int) Body {
	for {
		at := p.here()
		kind := SetKind(p.peek().key)
		if prec := kind.prec(); prec == 0 || prec < min {
			return left
		}
		p.next()
		s := &SetOp{At: at, Kind: kind, Left: left}
		if p.accept("ALL") {
			s.All = true
		} else {
			p.accept("DISTINCT")
		}
		s.ByName = p.accept("BY", "NAME")
		s.Right = p.body(kind.prec() + 1)
		left = s
	}
}

func (k SetKind) prec() int {
	switch k {
	case Union, Except:
		return 1
	case Intersect:
		return 2
	}
	return 0
}

// term reads one operand of a set operation.
func (p *parser) term() Body {
	at := p.here()
	switch {
	case p.at("SELECT"), p.at("FROM"):
		return p.selectBody()
	case p.at("("):
		p.enter()
		defer p.leave()
		return bare(p.parenQuery())
	case p.accept("VALUES"):
		return p.values(at)
	case p.accept("TABLE"):
		return everything(at, &Table{At: p.here(), Name: p.qualified("a table name")})
	}
	p.failExpected("SELECT, FROM, VALUES or WITH")
	return nil
}

// values reads rows in parentheses, after VALUES; a comma may stand after the last.
func (p *parser) values(at At) *Values {
	v := &Values{At: at}
	for len(v.Rows) == 0 || p.accept(",") && p.at("(") {
		var row []Expr
		p.parenList(func() { row = append(row, p.exprOrDefault()) })
		v.Rows = append(v.Rows, row)
	}
	return v
}

// everything is SELECT * FROM t.
func everything(at At, t TableRef) *Select {
	return &Select{At: at, Items: []SelectItem{{Expr: &Star{At: at}}}, From: []TableRef{t}}
}

func (p *parser) exprOrDefault() Expr {
	if at := p.here(); p.accept("DEFAULT") {
		return &Default{at}
	}
	return p.expr()
}

// selectBody reads SELECT …, or FROM … with SELECT after it or left out.
func (p *parser) selectBody() *Select {
	s := &Select{At: p.here()}
	if p.accept("FROM") {
		s.From = p.tables()
	}
	if p.at("SELECT") {
		p.selectList(s)
	} else {
		s.Items = []SelectItem{{Expr: &Star{At: s.At}}}
	}
	if s.From == nil && p.accept("FROM") {
		s.From = p.tables()
	}
	if p.accept("WHERE") {
		s.Where = p.expr()
	}
	if p.at("GROUP") {
		s.GroupBy = p.groupBy()
	}
	if p.accept("HAVING") {
		s.Having = p.expr()
	}
	if p.accept("WINDOW") {
		p.list(func() {
			name := p.name("a window name")
			p.expect("AS")
			s.Windows = append(s.Windows, NamedWindow{name, p.window()})
		})
	}
	if p.accept("QUALIFY") {
		s.Qualify = p.expr()
	}
	if p.at("USING", "SAMPLE") || p.at("TABLESAMPLE") {
		p.failUnsupported(p.peek().pos, "sampling")
	}
	return s
}

func (p *parser) selectList(s *Select) {
	p.expect("SELECT")
	if p.accept("DISTINCT") {
		s.Distinct = true
		if p.accept("ON") {
			p.parenList(func() { s.DistinctOn = append(s.DistinctOn, p.expr()) })
		}
	} else {
		p.accept("ALL")
	}
	s.Items = p.selectItems()
	if p.at("INTO") {
		p.failHint(p.peek().pos, "CREATE TABLE … AS SELECT, or INSERT INTO … SELECT", "SELECT INTO is not supported")
	}
}

// selectItems reads a select list, which may end in a comma.
func (p *parser) selectItems() []SelectItem {
	items := []SelectItem{p.selectItem()}
	for p.accept(",") {
		if p.atAny("FROM", ")", ";") || p.peek().kind == tokEnd {
			break
		}
		items = append(items, p.selectItem())
	}
	return items
}

func (p *parser) selectItem() SelectItem {
	t := p.peek()
	if p.accept("*") {
		return SelectItem{Expr: p.star(At{t.pos}, nil)}
	}
	if (t.kind == tokWord || t.kind == tokQuoted) && p.ahead(1).key == ":" { // alias: expr
		alias := p.name("an alias")
		p.next()
		return SelectItem{p.expr(), alias}
	}
	e := p.expr()
	return SelectItem{e, p.alias()}
}

func (p *parser) groupBy() *GroupBy {
	g := &GroupBy{At: p.here()}
	p.expect("GROUP", "BY")
	if p.accept("ALL") || p.accept("*") {
		g.All = true
		return g
	}
	g.Items = p.groupItems()
	return g
}

func (p *parser) groupItems() []GroupItem {
	var items []GroupItem
	p.list(func() { items = append(items, p.groupItem()) })
	return items
}

func (p *parser) groupItem() GroupItem {
	p.enter()
	defer p.leave()
	g := GroupItem{At: p.here()}
	switch {
	case p.at("ROLLUP", "("):
		g.Kind = Rollup
		p.next()
	case p.at("CUBE", "("):
		g.Kind = Cube
		p.next()
	case p.accept("GROUPING", "SETS"):
		g.Kind = GroupingSets
	case p.accept("(", ")"):
		return g
	default:
		g.Exprs = p.oneOrRow()
		return g
	}
	p.expect("(")
	g.Sets = p.groupItems()
	p.expect(")")
	return g
}

// oneOrRow reads one expression, or several in parentheses; ROW(…) is one.
func (p *parser) oneOrRow() []Expr {
	start := p.peek()
	e := p.expr()
	if row, ok := e.(*Row); ok && start.key == "(" && row.Pos == start.pos {
		return row.Items
	}
	return []Expr{e}
}

// tail reads what follows a body. A parenthesised query that nothing follows is the query itself.
func (p *parser) tail(q *Query) *Query {
	if p.at("ORDER") {
		q.OrderBy = p.orderBy()
	}
	for {
		switch {
		case q.Limit == nil && p.accept("LIMIT"):
			p.limit(q)
			continue
		case q.Offset == nil && p.accept("OFFSET"):
			q.Offset = p.expr()
			p.acceptAny("ROW", "ROWS")
			continue
		case q.Limit == nil && p.accept("FETCH"):
			p.fetch(q)
			continue
		}
		break
	}
	if p.at("EMIT") {
		q.Emit = p.emit()
	}
	if inner, ok := q.Body.(*Query); ok && q.plain() && q.With == nil {
		return inner
	}
	return q
}

func (p *parser) limit(q *Query) {
	if p.accept("ALL") {
		return
	}
	e := p.climb(precMul + 1)
	if p.accept("PERCENT") || p.at("%") && p.endsAt(1) && p.accept("%") {
		q.LimitPercent = true
	} else {
		e = p.climbFrom(e, 0)
	}
	q.Limit = e
}

// endsAt reports whether no operand can start n tokens ahead.
func (p *parser) endsAt(n int) bool {
	t := p.ahead(n)
	return t.kind == tokEnd || t.key == ")" || t.key == ";" || t.key == "OFFSET" || t.key == "EMIT"
}

// fetch reads FIRST n ROWS ONLY.
func (p *parser) fetch(q *Query) {
	if p.acceptAny("FIRST", "NEXT") == "" {
		p.failExpected("FIRST")
	}
	q.Limit = &Literal{p.here(), LitInt, "1"}
	if !p.atAny("ROW", "ROWS") {
		q.Limit = p.climb(precMul)
	}
	if p.acceptAny("ROW", "ROWS") == "" {
		p.failExpected("ROWS")
	}
	p.expect("ONLY")
}
