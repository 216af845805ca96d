package sql

import "strings"

// fullCall reads a call with what may follow its parentheses.
func (p *parser) fullCall(name Name) Expr {
	if len(name) == 1 && p.tokens[p.i-1].kind == tokWord && strings.EqualFold(name[0].Name, "extract") {
		return p.extract(name[0].At)
	}
	f := p.call(name)
	if p.accept("WITHIN") {
		p.expect("GROUP", "(")
		f.WithinGroup = p.orderBy()
		p.expect(")")
	}
	if p.accept("FILTER") {
		p.expect("(")
		p.accept("WHERE") // DuckDB lets it be left out
		f.Filter = p.expr()
		p.expect(")")
	}
	if p.at("EXPORT_STATE") {
		p.failUnsupported(p.peek().pos, "EXPORT_STATE")
	}
	if p.ahead(2).key == "OVER" { // else the words belong to a call around this one: f(g(x) IGNORE NULLS)
		if n := p.nullTreatment(); n != NullsUnstated {
			f.Nulls = n
		}
	}
	if p.accept("OVER") {
		f.Over = p.over()
	}
	return f
}

// call reads ( arguments ) after a function's name.
func (p *parser) call(name Name) *Function {
	f := &Function{At: name[0].At, Name: name}
	p.expect("(")
	if p.accept(")") {
		return f
	}
	if p.accept("DISTINCT") {
		f.Distinct = true
	} else {
		p.accept("ALL")
	}
	if p.at("ORDER") { // rank(ORDER BY x)
		f.OrderBy = p.orderBy()
		p.expect(")")
		return f
	}
	if first := p.standardForm(f); first != nil {
		f.Args = []Arg{{Value: first}}
	} else if len(f.Args) == 0 {
		f.Args = []Arg{p.arg()}
	}
	for p.accept(",") {
		f.Args = append(f.Args, p.arg())
	}
	if p.at("ORDER") {
		f.OrderBy = p.orderBy()
	}
	f.Nulls = p.nullTreatment()
	p.expect(")")
	return f
}

func (p *parser) nullTreatment() NullTreatment {
	switch {
	case p.accept("IGNORE", "NULLS"):
		return IgnoreNulls
	case p.accept("RESPECT", "NULLS"):
		return RespectNulls
	}
	return NullsUnstated
}

// arg reads one argument: *, name := value, a lambda, or an expression.
func (p *parser) arg() Arg {
	t := p.peek()
	switch {
	case p.accept("*"):
		return Arg{Value: p.star(At{t.pos}, nil)}
	case p.at("LAMBDA"):
		return Arg{Value: p.lambda()}
	case (t.kind == tokWord || t.kind == tokQuoted) && (p.ahead(1).key == ":=" || p.ahead(1).key == "=>"):
		name := p.label("an argument's name")
		p.next()
		if p.at("LAMBDA") {
			return Arg{name, p.lambda()}
		}
		return Arg{name, arrowLambda(p.expr())}
	}
	return Arg{Value: arrowLambda(p.expr())}
}

// lambda reads lambda x, y: body.
func (p *parser) lambda() Expr {
	l := &Lambda{At: p.here()}
	p.expect("LAMBDA")
	p.oneOrParens(func() { l.Params = append(l.Params, p.name("a parameter")) })
	for p.accept(",") {
		l.Params = append(l.Params, p.name("a parameter"))
	}
	p.expect(":")
	l.Body = p.expr()
	return l
}

// arrowLambda turns x -> body and (x, y) -> body into a Lambda.
func arrowLambda(e Expr) Expr {
	b, ok := e.(*Binary)
	if !ok || b.Op != OpArrow {
		return e
	}
	heads := []Expr{b.Left}
	if row, ok := b.Left.(*Row); ok && len(row.Items) > 1 {
		heads = row.Items
	}
	var params []Ident
	for _, h := range heads {
		c, ok := h.(*ColumnRef)
		if !ok || len(c.Parts) != 1 {
			return e
		}
		params = append(params, c.Parts[0])
	}
	return &Lambda{At: b.At, Params: params, Body: b.Right, Arrow: true}
}

// extract reads EXTRACT(field FROM x), which is date_part('field', x).
func (p *parser) extract(at At) Expr {
	p.expect("(")
	t := p.peek()
	if t.kind != tokWord && t.kind != tokString && t.kind != tokQuoted {
		p.failExpected("a part of a date such as YEAR")
	}
	p.next()
	field := &Literal{At{t.pos}, LitString, strings.ToLower(t.text)}
	p.expect("FROM")
	x := p.expr()
	p.expect(")")
	return call(at, "date_part", field, x)
}

// standardForm reads the arguments of TRIM, SUBSTRING, POSITION and OVERLAY
// where the standard puts words between them, and sets f's name and arguments.
// When there are no such words, it returns the first argument, if it read one.
func (p *parser) standardForm(f *Function) (first Expr) {
	if len(f.Name) != 1 {
		return nil
	}
	set := func(name string, args ...Expr) Expr {
		g := call(f.At, name, args...)
		f.Name, f.Args = g.Name, g.Args
		return nil
	}
	switch strings.ToUpper(f.Name[0].Name) {
	case "TRIM":
		name := map[string]string{"": "trim", "BOTH": "trim", "LEADING": "ltrim", "TRAILING": "rtrim"}[p.acceptAny("BOTH", "LEADING", "TRAILING")]
		marked := p.tokens[p.i-1].key != "("
		if p.accept("FROM") {
			return set(name, p.expr())
		}
		if p.at("*") || p.at("LAMBDA") || !marked && p.named() {
			return nil
		}
		chars := p.expr()
		if p.accept("FROM") {
			return set(name, p.expr(), chars)
		}
		if marked {
			return set(name, chars)
		}
		return arrowLambda(chars)
	case "SUBSTRING":
		if p.named() {
			return nil
		}
		x := p.expr()
		switch {
		case p.accept("FROM"):
			from := p.expr()
			if p.accept("FOR") {
				return set("substring", x, from, p.expr())
			}
			return set("substring", x, from)
		case p.accept("FOR"):
			return set("substring", x, &Literal{f.At, LitInt, "1"}, p.expr())
		}
		return arrowLambda(x)
	case "POSITION":
		if p.named() {
			return nil
		}
		x := p.climb(precLike + 1)
		if p.accept("IN") {
			return set("position", p.climb(precLike+1), x)
		}
		return arrowLambda(p.climbFrom(x, 0))
	case "OVERLAY":
		if p.named() {
			return nil
		}
		x := p.expr()
		if !p.accept("PLACING") {
			return arrowLambda(x)
		}
		y := p.expr()
		p.expect("FROM")
		from := p.expr()
		if p.accept("FOR") {
			return set("overlay", x, y, from, p.expr())
		}
		return set("overlay", x, y, from)
	}
	return nil
}

// named reports whether an argument follows that is no plain expression.
func (p *parser) named() bool {
	return p.atAny("*", "LAMBDA") || p.ahead(1).key == ":=" || p.ahead(1).key == "=>"
}

// over reads a window's name or (definition).
func (p *parser) over() *Window {
	if !p.at("(") {
		name := p.name("a window name or (")
		return &Window{At: name.At, Base: name}
	}
	return p.window()
}

// window reads ( [base] [PARTITION BY …] [ORDER BY …] [frame] ).
func (p *parser) window() *Window {
	w := &Window{At: p.here()}
	p.expect("(")
	if t := p.peek(); t.kind == tokQuoted || t.kind == tokWord && !windowWords[t.key] && !reserved[t.key] {
		w.Base = p.name("a window name")
	}
	if p.accept("PARTITION") {
		p.expect("BY")
		w.PartitionBy = p.exprList()
	}
	if p.at("ORDER") {
		w.OrderBy = p.orderBy()
	}
	if p.atAny("ROWS", "RANGE", "GROUPS") {
		w.Frame = p.frame()
	}
	p.expect(")")
	return w
}

// windowWords start a part of a window definition.
var windowWords = words("PARTITION ROWS RANGE GROUPS")

func (p *parser) frame() *Frame {
	f := &Frame{At: p.here(), Mode: FrameMode(p.next().key), End: Bound{Kind: CurrentRow}}
	if p.accept("BETWEEN") {
		f.Start = p.bound()
		p.expect("AND")
		f.End = p.bound()
	} else {
		f.Start = p.bound()
	}
	if p.accept("EXCLUDE") {
		switch {
		case p.accept("CURRENT", "ROW"):
			f.Exclude = "CURRENT ROW"
		case p.accept("NO", "OTHERS"):
		case p.atAny("GROUP", "TIES"):
			f.Exclude = p.next().key
		default:
			p.failExpected("CURRENT ROW, GROUP, TIES or NO OTHERS")
		}
	}
	return f
}

func (p *parser) bound() Bound {
	for _, k := range []BoundKind{UnboundedPreceding, UnboundedFollowing, CurrentRow} {
		if p.accept(strings.Fields(string(k))...) {
			return Bound{Kind: k}
		}
	}
	offset := p.climb(precAnd + 1)
	switch {
	case p.accept("PRECEDING"):
		return Bound{Preceding, offset}
	case p.accept("FOLLOWING"):
		return Bound{Following, offset}
	}
	p.failExpected("PRECEDING or FOLLOWING")
	return Bound{}
}

// orderBy reads ORDER BY items.
func (p *parser) orderBy() []OrderItem {
	p.expect("ORDER", "BY")
	var items []OrderItem
	p.list(func() {
		o := OrderItem{At: p.here()}
		if p.accept("ALL") || p.accept("*") {
			o.All = true
		} else {
			o.Expr = p.expr()
		}
		direction := p.acceptAny("ASC", "DESC")
		o.Asc, o.Desc = direction == "ASC", direction == "DESC"
		if p.accept("NULLS") {
			switch p.acceptAny("FIRST", "LAST") {
			case "FIRST":
				o.Nulls = NullsFirst
			case "LAST":
				o.Nulls = NullsLast
			default:
				p.failExpected("FIRST or LAST")
			}
		}
		items = append(items, o)
	})
	return items
}
