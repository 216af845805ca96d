package sql

import (
	"strconv"
	"strings"
)

// typeName reads a type: name, arguments, and array suffixes.
func (p *parser) typeName() *TypeName {
	p.enter()
	defer p.leave()
	at := p.here()
	quoted := p.peek().kind == tokQuoted
	var name string
	if p.at("UNION", "(") {
		name = p.next().text
	} else {
		name = p.name("a type").Name
	}
	if quoted || !plainWord(name) { // no built-in type: keep it as written
		return p.dims(&TypeName{At: at, Name: name})
	}
	t := &TypeName{At: at, Name: strings.ToUpper(name)}
	switch t.Name {
	case "STRUCT", "ROW", "UNION":
		if t.Name == "ROW" {
			t.Name = "STRUCT"
		}
		if p.at("(") {
			p.parenList(func() { t.Fields = append(t.Fields, TypeField{p.label("a field name"), p.typeName()}) })
		}
		return p.dims(t)
	case "MAP":
		if p.at("(") {
			p.parenList(func() { t.Params = append(t.Params, p.typeName()) })
		}
		return p.dims(t)
	case "ENUM":
		if p.at("(") {
			p.failUnsupported(at.Pos, "an ENUM type")
		}
	case "DOUBLE":
		p.accept("PRECISION")
	case "CHARACTER", "CHAR":
		if p.accept("VARYING") {
			t.Name = "VARCHAR"
		}
	}
	if p.at("(") {
		p.parenList(func() { t.Mods = append(t.Mods, p.wholeNumber()) })
	}
	if t.Name == "TIMESTAMP" || t.Name == "TIME" {
		switch {
		case p.accept("WITH", "TIME", "ZONE"):
			t.Name += "TZ"
		case p.accept("WITHOUT", "TIME", "ZONE"):
		}
	}
	return p.dims(t)
}

// dims reads [] [3] ARRAY ARRAY[3] after a type.
func (p *parser) dims(t *TypeName) *TypeName {
	for {
		array := p.accept("ARRAY")
		switch {
		case p.accept("[", "]"):
			t.Dims = append(t.Dims, ListDim)
		case p.accept("["):
			t.Dims = append(t.Dims, p.wholeNumber())
			p.expect("]")
		case array:
			t.Dims = append(t.Dims, ListDim)
		default:
			return t
		}
	}
}

func (p *parser) wholeNumber() int {
	t := p.peek()
	if t.kind != tokInt {
		p.failExpected("a whole number")
	}
	n, err := strconv.ParseInt(t.text, 10, 32)
	if err != nil {
		p.fail(t.pos, "the number %s is too large here", shorten(t.text))
	}
	p.next()
	return int(n)
}
