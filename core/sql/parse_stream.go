package sql

import "strings"

// emit reads EMIT ON WATERMARK | IMMEDIATE | EVERY interval.
func (p *parser) emit() *Emit {
	e := &Emit{At: p.here()}
	p.expect("EMIT")
	switch {
	case p.accept("ON", "WATERMARK"):
		e.Kind = EmitOnWatermark
	case p.accept("IMMEDIATE"):
		e.Kind = EmitImmediate
	case p.accept("EVERY"):
		e.Kind = EmitEvery
		e.Every = p.intervalOrString()
	default:
		p.failExpected("ON WATERMARK, IMMEDIATE or EVERY")
	}
	return e
}

// windowKinds are the functions that put a table's rows into windows.
var windowKinds = map[string]bool{"tumble": true, "hop": true, "session": true, "cumulate": true}

// windowTable reads the arguments of TUMBLE and its relatives in FROM, in the
// standard's form (TABLE t PARTITION BY k, DESCRIPTOR(ts), sizes), with or
// without the names DATA and TIMECOL, or the short form (t, ts, sizes).
func (p *parser) windowTable(at At, kind string) TableRef {
	w := &WindowTable{At: at, Kind: kind}
	p.expect("(")
	p.accept("DATA", "=>")
	w.Input = p.windowInput()
	if p.accept("PARTITION") {
		p.expect("BY")
		w.PartitionBy = p.oneOrRow()
	}
	if p.at("ORDER") {
		p.failUnsupported(p.peek().pos, "ORDER BY in a windowed table")
	}
	p.expect(",")
	p.accept("TIMECOL", "=>")
	if p.accept("DESCRIPTOR", "(") {
		w.Time = p.expr()
		p.expect(")")
	} else {
		w.Time = p.expr()
	}
	for p.accept(",") {
		w.Args = append(w.Args, p.arg())
	}
	p.expect(")")
	return w
}

// windowInput reads the table that is put into windows.
func (p *parser) windowInput() TableRef {
	at := p.here()
	if !p.queryAfterParen() {
		p.accept("TABLE")
	}
	switch {
	case p.at("("):
		return &SubqueryTable{At: at, Query: p.parenQuery()}
	case p.peek().kind == tokString:
		return &FileTable{At: at, Path: p.stringLiteral("a path")}
	}
	return &Table{At: at, Name: p.qualified("a table")}
}

// watermark reads FOR column AS expr, after WATERMARK.
func (p *parser) watermark() *Watermark {
	w := &Watermark{At: p.here()}
	p.expect("WATERMARK", "FOR")
	w.Column = p.name("the event time column")
	p.expect("AS")
	w.Expr = p.expr()
	return w
}

// withOptions reads ( key = value, … ), after WITH.
func (p *parser) withOptions() []Option {
	var list []Option
	p.expect("(")
	p.until(")", func() {
		o := Option{At: p.here()}
		if p.peek().kind == tokString {
			o.Key = p.next().text
		} else {
			parts := []string{p.label("an option").Name}
			for p.accept(".") {
				parts = append(parts, p.label("an option").Name)
			}
			o.Key = strings.Join(parts, ".")
		}
		for _, before := range list {
			if strings.EqualFold(before.Key, o.Key) {
				p.fail(o.Pos, "the option %s is given twice", quoteString(shorten(o.Key)))
			}
		}
		p.expect("=")
		o.Value = p.optionValue()
		list = append(list, o)
	})
	return list
}

// optionValue reads a value of an option or a setting: a bare word is a
// string, a list stands in parentheses, anything else is an expression.
func (p *parser) optionValue() Expr {
	t := p.peek()
	after := p.ahead(1)
	alone := after.kind == tokEnd || after.key == "," || after.key == ")" || after.key == ";"
	literal := t.key == "TRUE" || t.key == "FALSE" || t.key == "NULL"
	switch {
	case (t.kind == tokWord || t.kind == tokQuoted) && alone && !literal:
		p.next()
		return &Literal{At{t.pos}, LitString, t.text}
	case p.accept("("):
		p.enter()
		defer p.leave()
		list := &List{At: At{t.pos}}
		p.until(")", func() { list.Items = append(list.Items, p.optionValue()) })
		return list
	}
	return p.expr()
}
