package sql

// matchRecognize reads MATCH_RECOGNIZE ( … ) [alias] after its table.
func (p *parser) matchRecognize(input TableRef) TableRef {
	m := &MatchRecognize{At: p.here(), Input: input, Skip: SkipPastLastRow}
	p.expect("MATCH_RECOGNIZE", "(")
	if p.accept("PARTITION") {
		p.expect("BY")
		m.PartitionBy = p.exprList()
	}
	if p.at("ORDER") {
		m.OrderBy = p.orderBy()
	}
	if p.accept("MEASURES") {
		p.list(func() {
			e := p.expr()
			p.expect("AS")
			m.Measures = append(m.Measures, SelectItem{e, p.label("a name")})
		})
	}
	switch {
	case p.accept("ONE", "ROW"):
		p.expect("PER", "MATCH")
	case p.accept("ALL"):
		p.expect("ROWS", "PER", "MATCH")
		m.AllRows = true
	}
	if p.accept("AFTER") {
		p.expect("MATCH", "SKIP")
		p.skip(m)
	}
	p.expect("PATTERN", "(")
	m.Pattern = p.pattern()
	p.expect(")")
	if p.accept("WITHIN") {
		m.Within = p.intervalOrString()
	}
	p.expect("DEFINE")
	p.list(func() {
		name := p.name("a row variable")
		p.expect("AS")
		m.Define = append(m.Define, Definition{name, p.expr()})
	})
	p.expect(")")
	m.Alias = p.tableAlias()
	return m
}

func (p *parser) skip(m *MatchRecognize) {
	switch {
	case p.accept("PAST", "LAST", "ROW"):
		m.Skip = SkipPastLastRow
	case p.accept("TO", "NEXT", "ROW"):
		m.Skip = SkipToNextRow
	case p.accept("TO", "FIRST"):
		m.Skip, m.SkipTo = SkipToFirst, p.name("a row variable")
	case p.accept("TO", "LAST"):
		m.Skip, m.SkipTo = SkipToLast, p.name("a row variable")
	default:
		p.failExpected("PAST LAST ROW, TO NEXT ROW, TO FIRST or TO LAST")
	}
}

// pattern reads alternatives a | b.
func (p *parser) pattern() *Pattern {
	p.enter()
	defer p.leave()
	alt := &Pattern{At: p.here(), Kind: PatternAlt, Items: []*Pattern{p.sequence()}}
	for p.accept("|") {
		alt.Items = append(alt.Items, p.sequence())
	}
	if len(alt.Items) == 1 {
		return alt.Items[0]
	}
	return alt
}

// sequence reads a b+ c?.
func (p *parser) sequence() *Pattern {
	seq := &Pattern{At: p.here(), Kind: PatternSeq, Items: []*Pattern{p.repeat()}}
	for !p.atAny("|", ")") {
		seq.Items = append(seq.Items, p.repeat())
	}
	if len(seq.Items) == 1 {
		return seq.Items[0]
	}
	return seq
}

// repeat reads a variable or a group with at most one quantifier.
func (p *parser) repeat() *Pattern {
	at := p.here()
	var one *Pattern
	if p.accept("(") {
		one = p.pattern()
		p.expect(")")
	} else {
		one = &Pattern{At: at, Kind: PatternVar, Var: p.name("a row variable")}
	}
	rep := &Pattern{At: at, Kind: PatternRepeat, Items: []*Pattern{one}}
	switch {
	case p.accept("?"):
		rep.Min, rep.Max = 0, 1
	case p.accept("*"):
		rep.Min, rep.Max = 0, Unlimited
	case p.accept("+"):
		rep.Min, rep.Max = 1, Unlimited
	case p.accept("{"):
		p.counts(rep)
	default:
		return one
	}
	rep.Reluctant = p.accept("?")
	return rep
}

// counts reads n}, n,}, ,m} or n,m}.
func (p *parser) counts(rep *Pattern) {
	pos := p.peek().pos
	if !p.at(",") {
		rep.Min = p.wholeNumber()
	}
	rep.Max = rep.Min
	if p.accept(",") {
		rep.Max = Unlimited
		if !p.at("}") {
			rep.Max = p.wholeNumber()
		}
	}
	p.expect("}")
	if rep.Max != Unlimited && rep.Max < rep.Min || rep.Max == 0 {
		p.fail(pos, "bad repetition {%d,%d}", rep.Min, rep.Max)
	}
}
