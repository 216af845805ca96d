package sql

import (
	"strconv"
	"strings"
)

var literalKinds = map[tokenKind]LitKind{
	tokString: LitString, tokBlob: LitBlob, tokInt: LitInt, tokDecimal: LitDecimal, tokDouble: LitDouble,
}

// primary reads an operand without operators around it.
func (p *parser) primary() Expr {
	t := p.peek()
	at := At{t.pos}
	if kind, ok := literalKinds[t.kind]; ok {
		p.next()
		return &Literal{At: at, Kind: kind, Text: t.text}
	}
	switch t.kind {
	case tokParam:
		p.next()
		if n, err := strconv.Atoi(t.text); err == nil && n > 0 {
			return &Param{At: at, Index: n}
		} else if isDigit(t.text[0]) {
			p.fail(t.pos, "parameters are numbered from $1")
		}
		return &Param{At: at, Name: t.text}
	case tokQuoted:
		return p.nameExpr()
	case tokWord:
		return p.wordExpr(at)
	}
	switch {
	case p.accept("?"):
		p.params++
		return &Param{At: at, Index: p.params}
	case p.at(":"):
		if x := p.colonParam(at); x != nil {
			return x
		}
	case p.at("("):
		return p.paren()
	case p.accept("["):
		return p.listLiteral(at)
	case p.accept("{"):
		return p.structLiteral(at)
	}
	p.failExpected("an expression")
	return nil
}

// wordExpr reads what starts with a word: a form of its own, or a name.
func (p *parser) wordExpr(at At) Expr {
	paren := p.ahead(1).key == "("
	switch t := p.peek(); t.key {
	case "NULL":
		p.next()
		return &Literal{At: at, Kind: LitNull, Text: "null"}
	case "TRUE", "FALSE":
		p.next()
		return &Literal{At: at, Kind: LitBool, Text: strings.ToLower(t.key)}
	case "CASE":
		p.next()
		return p.caseExpr(at)
	case "CAST":
		p.next()
		return p.cast(at, false)
	case "ARRAY":
		p.next()
		if p.accept("[") {
			return p.listLiteral(at)
		}
		if p.queryAfterParen() {
			return &Subquery{At: at, Query: p.parenQuery(), Array: true}
		}
		p.failExpected("[ or ( and a query")
	case "TRY_CAST":
		if paren {
			p.next()
			return p.cast(at, true)
		}
	case "EXISTS":
		if paren {
			p.next()
			return &Exists{At: at, Query: p.parenQuery()}
		}
	case "COLUMNS":
		if paren {
			p.next()
			p.expect("(")
			c := &Columns{At: at, Arg: p.arg().Value}
			p.expect(")")
			return c
		}
	case "ROW":
		if paren {
			p.next()
			row := &Row{At: at}
			p.expect("(")
			if !p.accept(")") {
				row.Items = p.exprList()
				p.expect(")")
			}
			return row
		}
	case "MAP":
		if p.accept("MAP", "{") {
			return p.mapLiteral(at)
		}
	case "INTERVAL":
		if n := p.ahead(1); paren || n.kind == tokString || n.kind == tokInt || n.kind == tokDecimal || n.kind == tokParam {
			return p.interval()
		}
	case "LAMBDA":
		p.failHint(t.pos, "pass it to a function: list_transform(l, lambda x: x + 1)", "expected an expression, found a lambda; it stands only in a function's arguments")
	}
	return p.nameExpr()
}

// nameExpr reads what starts with a name: a column, t.*, a call, or a type before a string.
func (p *parser) nameExpr() Expr {
	t := p.peek()
	at := At{t.pos}
	if typ := p.typeOfLiteral(); typ != nil {
		return &TypedLiteral{At: at, Type: typ, Text: p.next().text}
	}
	if t.kind == tokWord && calledWithoutParens[t.key] && p.ahead(1).key != "(" && p.ahead(1).key != "." {
		p.next()
		return call(at, strings.ToLower(t.key))
	}
	var name Name
	if t.kind == tokWord && functionOnly[t.key] && p.ahead(1).key == "(" {
		name = Name{p.label("a function")}
	} else {
		name = Name{p.name("an expression")}
	}
	for p.at(".") {
		if p.accept(".", "*") {
			return p.star(at, name)
		}
		p.next()
		name = append(name, p.label("a name"))
	}
	if p.at("(") {
		return p.fullCall(name)
	}
	return &ColumnRef{At: at, Parts: name}
}

// typeOfLiteral reads the type of DATE '…' when a type and a string follow.
func (p *parser) typeOfLiteral() *TypeName {
	t := p.peek()
	if t.kind == tokWord && (reserved[t.key] || functionOnly[t.key]) {
		return nil
	}
	zoned := (p.ahead(1).key == "WITH" || p.ahead(1).key == "WITHOUT") && p.ahead(2).key == "TIME" &&
		p.ahead(3).key == "ZONE" && p.ahead(4).kind == tokString
	if p.ahead(1).kind == tokString || zoned {
		return p.typeName()
	}
	return nil
}

// paren reads (expr), (a, b) or (query).
func (p *parser) paren() Expr {
	at := p.here()
	if p.queryAfterParen() {
		return &Subquery{At: at, Query: p.parenQuery()}
	}
	p.expect("(")
	first := p.expr()
	if sub, ok := first.(*Subquery); ok && !sub.Array && p.queryGoesOn() {
		sub.Query = p.queryFrom(sub.Query) // ((SELECT …) UNION …) is one query, seen late
		p.expect(")")
		return sub
	}
	if !p.at(",") {
		p.expect(")")
		return first
	}
	row := &Row{At: at, Items: []Expr{first}}
	for p.accept(",") {
		row.Items = append(row.Items, p.expr())
	}
	p.expect(")")
	return row
}

// until reads items separated by commas up to the closing bracket; the list may be empty or end in a comma.
func (p *parser) until(closing string, item func()) {
	for !p.accept(closing) {
		item()
		if !p.accept(",") {
			p.expect(closing)
			return
		}
	}
}

// comprehension reads the rest of [e FOR x, i IN l IF c], where i counts the elements of l: condition and result are computed
// side by side before the filter.
func (p *parser) comprehension(at At, params []Ident, source, result Expr) Expr {
	name := func(s string) Ident { return Ident{At: at, Name: s} }
	part := func(field string) *Lambda {
		return &Lambda{At: at, Params: []Ident{name("item")}, Body: &ColumnRef{At: at, Parts: Name{name("item"), name(field)}}}
	}
	both := &Struct{At: at, Fields: []StructField{{Name: name("filter"), Value: p.expr()}, {Name: name("result"), Value: result}}}
	p.expect("]")
	items := call(at, "list_transform", source, &Lambda{At: at, Params: params, Body: both})
	return call(at, "list_transform", call(at, "list_filter", items, part("filter")), part("result"))
}

// listLiteral reads a, b] or the comprehension e FOR x IN l IF c].
func (p *parser) listLiteral(at At) Expr {
	list := &List{At: at}
	if p.accept("]") {
		return list
	}
	first := p.expr()
	if p.accept("FOR") {
		params := []Ident{p.name("a variable")}
		if p.accept(",") {
			params = append(params, p.name("a variable"))
		}
		p.expect("IN")
		source := p.climb(precIs)
		if p.accept("IF") {
			if len(params) > 1 {
				return p.comprehension(at, params, source, first)
			}
			source = call(at, "list_filter", source, &Lambda{At: at, Params: params, Body: p.expr()})
		}
		p.expect("]")
		return call(at, "list_transform", source, &Lambda{At: at, Params: params, Body: first})
	}
	list.Items = []Expr{first}
	if p.accept("]") {
		return list
	}
	p.expect(",")
	p.until("]", func() { list.Items = append(list.Items, p.expr()) })
	return list
}

func (p *parser) structLiteral(at At) Expr {
	s := &Struct{At: at}
	p.until("}", func() {
		t := p.peek()
		if t.kind != tokString && t.kind != tokQuoted && t.kind != tokWord || t.text == "" {
			p.failExpected("a field name")
		}
		p.next()
		p.expect(":")
		s.Fields = append(s.Fields, StructField{Ident{At{t.pos}, t.text}, p.expr()})
	})
	return s
}

func (p *parser) mapLiteral(at At) Expr {
	m := &Map{At: at}
	p.until("}", func() {
		key := p.expr()
		p.expect(":")
		m.Entries = append(m.Entries, MapEntry{key, p.expr()})
	})
	return m
}

func (p *parser) caseExpr(at At) Expr {
	c := &Case{At: at}
	if !p.at("WHEN") {
		c.Operand = p.expr()
	}
	for p.accept("WHEN") {
		w := When{Cond: p.expr()}
		p.expect("THEN")
		w.Then = p.expr()
		c.Whens = append(c.Whens, w)
	}
	if len(c.Whens) == 0 {
		p.failExpected("'WHEN'")
	}
	if p.accept("ELSE") {
		c.Else = p.expr()
	}
	p.expect("END")
	return c
}

func (p *parser) cast(at At, try bool) Expr {
	c := &Cast{At: at, Try: try}
	p.expect("(")
	c.X = p.expr()
	p.expect("AS")
	c.Type = p.typeName()
	p.expect(")")
	return c
}

// units maps the unit words of INTERVAL to their singular.
var units = func() map[string]string {
	m := map[string]string{"CENTURIES": "CENTURY", "MILLENNIA": "MILLENNIUM"}
	for u := range words("YEAR MONTH DAY HOUR MINUTE SECOND MILLISECOND MICROSECOND WEEK QUARTER DECADE CENTURY MILLENNIUM") {
		m[u], m[u+"S"] = u, u
	}
	return m
}()

// interval reads INTERVAL '5 seconds', INTERVAL '5' SECOND, INTERVAL 5 SECOND, INTERVAL (expr) SECOND.
func (p *parser) interval() *Interval {
	iv := &Interval{At: p.here()}
	p.expect("INTERVAL")
	text := p.peek().kind == tokString
	iv.Value = p.primary()
	t := p.peek()
	iv.Unit = units[t.key]
	switch {
	case iv.Unit != "":
		p.next()
		if p.at("TO") && units[p.ahead(1).key] != "" {
			p.failUnsupported(p.peek().pos, "an interval of two units")
		}
	case !text:
		p.failExpected("a unit such as SECOND, DAY or MONTH")
	}
	return iv
}

// intervalOrString reads an interval that may leave out the word INTERVAL.
func (p *parser) intervalOrString() *Interval {
	if t := p.peek(); t.kind == tokString {
		p.next()
		return &Interval{At: At{t.pos}, Value: &Literal{At{t.pos}, LitString, t.text}}
	}
	if !p.at("INTERVAL") {
		p.failExpected("an interval such as '5 seconds'")
	}
	return p.interval()
}

// star reads the modifiers of * after it.
func (p *parser) star(at At, qualifier Name) Expr {
	s := &Star{At: at, Qualifier: qualifier}
	if p.accept("EXCLUDE") || p.exceptColumns() && p.accept("EXCEPT") {
		p.oneOrParens(func() { s.Exclude = append(s.Exclude, p.qualified("a column name")) })
	}
	if p.accept("REPLACE") {
		p.oneOrParens(func() {
			e := p.expr()
			p.expect("AS")
			s.Replace = append(s.Replace, StarReplace{e, p.label("a column name")})
		})
	}
	if p.accept("RENAME") {
		p.oneOrParens(func() {
			from := p.qualified("a column name")
			p.expect("AS")
			s.Rename = append(s.Rename, StarRename{from, p.label("a column name")})
		})
	}
	return s
}

// exceptColumns reports whether EXCEPT after a star leaves out columns, and is not the set operation.
func (p *parser) exceptColumns() bool {
	if !p.at("EXCEPT") {
		return false
	}
	if p.ahead(1).key == "(" {
		return p.ahead(2).key != "(" && !p.queryAt(2)
	}
	t := p.ahead(1)
	return t.kind == tokQuoted || t.kind == tokWord && !reserved[t.key] && t.key != "BY" && !p.queryAt(1)
}

// oneOrParens reads one item, or several in parentheses.
func (p *parser) oneOrParens(item func()) {
	if p.at("(") {
		p.parenList(item)
		return
	}
	item()
}
