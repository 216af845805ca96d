package sql

import (
	"strings"

	"github.com/riverbed/riverbed/core/errs"
)

// statementWords start the statements we have, for "did you mean".
var statementWords = strings.Fields(`SELECT FROM WITH VALUES CREATE DROP INSERT UPDATE DELETE TRUNCATE MERGE COPY EXPLAIN
	SET RESET DESCRIBE SUMMARIZE SHOW BEGIN COMMIT ROLLBACK PREPARE EXECUTE DEALLOCATE ALTER COMMENT PRAGMA CALL USE
	ANALYZE CHECKPOINT VACUUM LOAD INSTALL`)

// foreign are statements of DuckDB that we do not have.
var foreign = words(`
	ATTACH DETACH EXPORT GRANT IMPORT PIVOT REVOKE UNPIVOT`)

func (p *parser) statement() Statement {
	p.enter()
	defer p.leave()
	at := p.here()
	if p.queryAhead() && !p.at("WITH") || p.at("(") {
		return p.query()
	}
	switch key := p.peek().key; key {
	case "WITH":
		return p.withStatement()
	case "CREATE":
		return p.create()
	case "DROP":
		return p.drop()
	case "INSERT":
		return p.insert(at, nil)
	case "UPDATE":
		return p.update(at, nil)
	case "DELETE":
		return p.delete(at, nil)
	case "MERGE":
		return p.merge(at, nil)
	case "TRUNCATE":
		p.next()
		p.accept("TABLE")
		return &Truncate{at, p.qualified("a table name")}
	case "COPY":
		return p.copyStatement()
	case "EXPLAIN":
		return p.explain()
	case "SET":
		return p.set()
	case "PREPARE":
		return p.prepare()
	case "EXECUTE":
		return p.execute()
	case "DEALLOCATE":
		return p.deallocate()
	case "ALTER":
		return p.alter()
	case "COMMENT":
		return p.comment()
	case "PRAGMA":
		return p.pragma()
	case "CALL":
		return p.callStatement()
	case "USE":
		return p.use()
	case "ANALYZE", "ANALYSE", "CHECKPOINT", "FORCE", "VACUUM", "LOAD", "INSTALL":
		return p.maintain()
	case "RESET":
		p.next()
		if p.at("VARIABLE") && p.ahead(1).kind != tokEnd && p.ahead(1).key != ";" {
			p.next()
			return &SetVariable{At: at, Name: p.name("the name of a variable")}
		}
		return &Reset{at, p.scope(), p.setting()}
	case "DESCRIBE", "DESC", "SUMMARIZE":
		return p.describe()
	case "SHOW":
		return p.show()
	case "BEGIN", "START", "COMMIT", "END", "ROLLBACK", "ABORT":
		return p.transaction()
	default:
		if foreign[key] {
			p.failUnsupported(at.Pos, key)
		}
	}
	t := p.peek()
	hint := ""
	if t.kind == tokWord {
		hint = errs.DidYouMean(t.text, statementWords)
	}
	p.failHint(t.pos, hint, "expected a statement such as SELECT, found %s", t)
	return nil
}

// withStatement reads WITH … and the query or change that it belongs to.
func (p *parser) withStatement() Statement {
	at := p.here()
	w := p.with()
	switch p.peek().key {
	case "INSERT":
		return p.insert(at, w)
	case "UPDATE":
		return p.update(at, w)
	case "DELETE":
		return p.delete(at, w)
	case "MERGE":
		return p.merge(at, w)
	}
	return p.tail(&Query{At: at, With: w, Body: p.body(0)})
}

func (p *parser) explain() Statement {
	e := &Explain{At: p.here()}
	p.expect("EXPLAIN")
	e.Analyze = p.acceptAny("ANALYZE", "ANALYSE") != ""
	if p.at("(") && !p.queryAfterParen() && p.ahead(1).key != "(" {
		e.Options = p.keyOptions()
	}
	e.Statement = p.statement()
	return e
}

// keyOptions reads ( KEY value, KEY, … ).
func (p *parser) keyOptions() []Option {
	var list []Option
	p.expect("(")
	p.until(")", func() {
		o := Option{At: p.here(), Key: p.label("an option").Name}
		if p.atAny(",", ")") {
			o.Value = &Literal{o.At, LitBool, "true"}
		} else {
			p.accept("=")
			o.Value = p.optionValue()
		}
		list = append(list, o)
	})
	return list
}

// scope reads SESSION, GLOBAL or LOCAL before the name of a setting.
func (p *parser) scope() string {
	if k := p.ahead(1).key; k == "=" || k == "TO" || k == ";" || p.ahead(1).kind == tokEnd {
		return ""
	}
	return p.acceptAny("SESSION", "GLOBAL", "LOCAL")
}

// setting reads the name of a setting; parts are joined with dots.
func (p *parser) setting() string {
	parts := []string{p.label("the name of a setting").Name}
	for p.accept(".") {
		parts = append(parts, p.label("a name").Name)
	}
	return strings.Join(parts, ".")
}

func (p *parser) set() Statement {
	at := p.here()
	p.expect("SET")
	if p.atAny("VARIABLE", "VARIABLES") && p.ahead(1).key != "=" && p.ahead(1).key != "TO" {
		return p.setVariable(at)
	}
	s := &Set{At: at, Scope: p.scope()}
	if p.accept("TIME", "ZONE") {
		s.Name = "TimeZone"
		s.Value = p.optionValue()
		return s
	}
	s.Name = p.setting()
	if p.acceptAny("=", "TO") == "" {
		p.failExpected("'=' or TO")
	}
	if p.accept("DEFAULT") {
		return &Reset{at, s.Scope, s.Name}
	}
	first := p.here()
	s.Value = p.optionValue()
	if p.at(",") {
		list := &List{At: first, Items: []Expr{s.Value}}
		for p.accept(",") {
			list.Items = append(list.Items, p.optionValue())
		}
		s.Value = list
	}
	return s
}

func (p *parser) describe() Statement {
	d := &Describe{At: p.here()}
	d.Summarize = p.next().key == "SUMMARIZE"
	switch {
	case p.peek().kind == tokEnd || p.at(";"):
		if d.Summarize {
			p.failExpected("a table or a query")
		}
	case p.queryAhead() || p.at("("):
		d.Query = p.query()
	default:
		p.accept("TABLE")
		at := p.here()
		d.Table = true
		d.Query = &Query{At: at, Body: everything(at, p.tablePrimary())}
	}
	return d
}

// shown are the words of SHOW that are no settings.
var shown = []string{"all tables", "databases", "schemas", "variables", "materialized views", "tables", "streams", "views", "sinks", "functions", "all"}

func (p *parser) show() Statement {
	s := &Show{At: p.here()}
	p.expect("SHOW")
	if p.at("(") && p.queryAfterParen() || p.atAny("SELECT", "WITH", "VALUES") {
		return &Describe{At: s.At, Query: p.query()}
	}
	for _, what := range shown {
		if p.accept(strings.Fields(strings.ToUpper(what))...) {
			s.What = what
			if what == "tables" && p.acceptAny("FROM", "IN") != "" {
				s.In = p.qualified("the name of a schema")
			}
			return s
		}
	}
	if p.accept("TIME", "ZONE") {
		s.What = "TimeZone"
		return s
	}
	s.What = p.setting()
	return s
}

func (p *parser) transaction() Statement {
	t := &Transaction{At: p.here()}
	switch p.next().key {
	case "BEGIN", "START":
		t.Kind = Begin
	case "COMMIT", "END":
		t.Kind = Commit
	default:
		t.Kind = Rollback
	}
	p.acceptAny("TRANSACTION", "WORK")
	return t
}
