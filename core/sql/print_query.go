package sql

import (
	"strconv"
	"strings"
)

func (w *printer) parenQuery(q *Query) {
	w.put("(")
	w.query(q)
	w.put(")")
}

func (w *printer) query(q *Query) {
	w.with(q.With)
	w.body(q.Body, 0)
	if q.OrderBy != nil {
		w.put(" ")
		w.orderBy(q.OrderBy)
	}
	if q.Limit != nil {
		w.put(" LIMIT ")
		if q.LimitPercent {
			w.expr(q.Limit, precMul+1)
			w.put(" PERCENT")
		} else {
			w.expr(q.Limit, 0)
		}
	}
	if q.Offset != nil {
		w.put(" OFFSET ")
		w.expr(q.Offset, 0)
	}
	if e := q.Emit; e != nil {
		w.put(" EMIT ")
		switch e.Kind {
		case EmitOnWatermark:
			w.put("ON WATERMARK")
		case EmitImmediate:
			w.put("IMMEDIATE")
		case EmitEvery:
			w.put("EVERY ")
			w.interval(e.Every)
		}
	}
}

func (w *printer) with(with *With) {
	if with == nil {
		return
	}
	w.put("WITH ")
	w.putIf(with.Recursive, "RECURSIVE ")
	w.list(len(with.CTEs), func(i int) {
		c := with.CTEs[i]
		w.ident(c.Name)
		if c.Columns != nil {
			w.put(" ")
			w.idents(c.Columns)
		}
		w.put(" AS ")
		w.putIf(c.Materialized == MaterializedYes, "MATERIALIZED ")
		w.putIf(c.Materialized == MaterializedNo, "NOT MATERIALIZED ")
		w.parenQuery(c.Query)
	})
	w.put(" ")
}

// body writes a body, in parentheses when it is a set operation that holds less
// tightly than min. The left spine is written in a loop: it may be long.
func (w *printer) body(b Body, min int) {
	switch b := b.(type) {
	case *Query:
		w.parenQuery(b)
	case *Select:
		w.selectBody(b)
	case *Values:
		w.put("VALUES ")
		w.list(len(b.Rows), func(i int) {
			w.put("(")
			w.exprs(b.Rows[i])
			w.put(")")
		})
	case *SetOp:
		if b.Kind.prec() < min {
			w.put("(")
			defer w.put(")")
		}
		spine := []*SetOp{b}
		for {
			last := spine[len(spine)-1]
			next, ok := last.Left.(*SetOp)
			if !ok || next.Kind.prec() < last.Kind.prec() {
				break
			}
			spine = append(spine, next)
		}
		last := spine[len(spine)-1]
		w.body(last.Left, last.Kind.prec())
		for i := len(spine) - 1; i >= 0; i-- {
			s := spine[i]
			w.put(" ", string(s.Kind))
			w.putIf(s.All, " ALL")
			w.putIf(s.ByName, " BY NAME")
			w.put(" ")
			w.body(s.Right, s.Kind.prec()+1)
		}
	}
}

func (w *printer) selectBody(s *Select) {
	w.put("SELECT ")
	w.putIf(s.Distinct, "DISTINCT ")
	if s.DistinctOn != nil {
		w.put("ON (")
		w.exprs(s.DistinctOn)
		w.put(") ")
	}
	w.items(s.Items)
	w.from(" FROM ", s.From)
	w.clause(" WHERE ", s.Where)
	if g := s.GroupBy; g != nil {
		w.put(" GROUP BY ")
		w.putIf(g.All, "ALL")
		w.groups(g.Items)
	}
	w.clause(" HAVING ", s.Having)
	if s.Windows != nil {
		w.put(" WINDOW ")
		w.list(len(s.Windows), func(i int) {
			w.ident(s.Windows[i].Name)
			w.put(" AS ")
			w.window(s.Windows[i].Window, false)
		})
	}
	w.clause(" QUALIFY ", s.Qualify)
}

// clause writes a word and an expression, if there is one.
func (w *printer) clause(word string, e Expr) {
	if e != nil {
		w.put(word)
		w.expr(e, 0)
	}
}

func (w *printer) items(items []SelectItem) {
	w.list(len(items), func(i int) {
		w.expr(items[i].Expr, 0)
		w.alias(items[i].Alias)
	})
}

func (w *printer) groups(items []GroupItem) {
	w.list(len(items), func(i int) {
		g := items[i]
		switch g.Kind {
		case GroupSet:
			if len(g.Exprs) == 1 {
				w.expr(g.Exprs[0], 0)
			} else {
				w.put("(")
				w.exprs(g.Exprs)
				w.put(")")
			}
			return
		case Rollup:
			w.put("ROLLUP (")
		case Cube:
			w.put("CUBE (")
		case GroupingSets:
			w.put("GROUPING SETS (")
		}
		w.groups(g.Sets)
		w.put(")")
	})
}

func (w *printer) from(word string, list []TableRef) {
	if len(list) > 0 {
		w.put(word)
		w.list(len(list), func(i int) { w.table(list[i]) })
	}
}

func (w *printer) table(t TableRef) {
	switch t := t.(type) {
	case *Table:
		w.name(t.Name)
		if t.AsOf != nil {
			w.putIf(t.AsOf.Version, " FOR VERSION AS OF ")
			w.putIf(!t.AsOf.Version, " FOR SYSTEM_TIME AS OF ")
			w.expr(t.AsOf.Value, 0)
		}
		w.tableAlias(t.Alias)
	case *FileTable:
		w.put(quoteString(t.Path))
		w.tableAlias(t.Alias)
	case *TableFunction:
		w.putIf(t.Lateral, "LATERAL ")
		w.function(t.Call)
		w.putIf(t.Ordinality, " WITH ORDINALITY")
		w.tableAlias(t.Alias)
	case *WindowTable:
		w.windowTable(t)
	case *StatementTable:
		w.put("(")
		w.statement(t.Statement)
		w.put(")")
		w.tableAlias(t.Alias)
	case *SubqueryTable:
		w.putIf(t.Lateral, "LATERAL ")
		w.parenQuery(t.Query)
		w.tableAlias(t.Alias)
	case *Join:
		w.join(t)
	case *MatchRecognize:
		w.matchRecognize(t)
	}
}

func (w *printer) windowTable(t *WindowTable) {
	w.put("TABLE(", strings.ToUpper(t.Kind), "(")
	w.putIf(!isSubquery(t.Input), "TABLE ")
	w.table(t.Input)
	if t.PartitionBy != nil {
		w.put(" PARTITION BY ")
		if len(t.PartitionBy) == 1 {
			w.expr(t.PartitionBy[0], 0)
		} else {
			w.put("(")
			w.exprs(t.PartitionBy)
			w.put(")")
		}
	}
	w.put(", DESCRIPTOR(")
	w.expr(t.Time, 0)
	w.put(")")
	w.putIf(t.Args != nil, ", ")
	w.args(t.Args, 0)
	w.put("))")
	w.tableAlias(t.Alias)
}

func isSubquery(t TableRef) bool {
	_, ok := t.(*SubqueryTable)
	return ok
}

// join writes the left spine in a loop: it may be long.
func (w *printer) join(top *Join) {
	spine := []*Join{top}
	for {
		next, ok := spine[len(spine)-1].Left.(*Join)
		if !ok {
			break
		}
		spine = append(spine, next)
	}
	w.table(spine[len(spine)-1].Left)
	for i := len(spine) - 1; i >= 0; i-- {
		j := spine[i]
		w.put(" ")
		w.putIf(j.Natural, "NATURAL ")
		w.putIf(j.AsOf, "ASOF ")
		w.putIf(j.Kind != InnerJoin, string(j.Kind), " ")
		w.put("JOIN ")
		w.operand(j.Right)
		w.clause(" ON ", j.On)
		if j.Using != nil {
			w.put(" USING ")
			w.idents(j.Using)
		}
	}
}

// operand writes a table, a join in parentheses.
func (w *printer) operand(t TableRef) {
	if _, ok := t.(*Join); ok {
		w.put("(")
		defer w.put(")")
	}
	w.table(t)
}

func (w *printer) matchRecognize(m *MatchRecognize) {
	w.operand(m.Input)
	var parts []func()
	if m.PartitionBy != nil {
		parts = append(parts, func() {
			w.put("PARTITION BY ")
			w.exprs(m.PartitionBy)
		})
	}
	if m.OrderBy != nil {
		parts = append(parts, func() { w.orderBy(m.OrderBy) })
	}
	if m.Measures != nil {
		parts = append(parts, func() {
			w.put("MEASURES ")
			w.items(m.Measures)
		})
	}
	w.put(" MATCH_RECOGNIZE (")
	for _, part := range parts {
		part()
		w.put(" ")
	}
	if m.AllRows {
		w.put("ALL ROWS PER MATCH")
	} else {
		w.put("ONE ROW PER MATCH")
	}
	w.put(" AFTER MATCH SKIP ", string(m.Skip))
	if !m.SkipTo.IsZero() {
		w.put(" ")
		w.ident(m.SkipTo)
	}
	w.put(" PATTERN (")
	w.pattern(m.Pattern, PatternAlt)
	w.put(")")
	if m.Within != nil {
		w.put(" WITHIN ")
		w.interval(m.Within)
	}
	w.put(" DEFINE ")
	w.list(len(m.Define), func(i int) {
		w.ident(m.Define[i].Name)
		w.put(" AS ")
		w.expr(m.Define[i].Cond, 0)
	})
	w.put(")")
	w.tableAlias(m.Alias)
}

// pattern writes a pattern, in parentheses unless it is as tight as its place asks for:
// PatternAlt takes any, PatternSeq no alternatives, PatternVar only a variable.
func (w *printer) pattern(p *Pattern, place PatternKind) {
	paren := place == PatternSeq && p.Kind == PatternAlt || place == PatternVar && p.Kind != PatternVar
	w.putIf(paren, "(")
	switch p.Kind {
	case PatternVar:
		w.ident(p.Var)
	case PatternSeq:
		for i, item := range p.Items {
			w.putIf(i > 0, " ")
			if item.Kind == PatternSeq {
				w.pattern(item, PatternVar)
			} else {
				w.pattern(item, PatternSeq)
			}
		}
	case PatternAlt:
		for i, item := range p.Items {
			w.putIf(i > 0, " | ")
			w.pattern(item, PatternSeq)
		}
	case PatternRepeat:
		w.pattern(p.Items[0], PatternVar)
		w.put(quantifier(p))
	}
	w.putIf(paren, ")")
}

func quantifier(p *Pattern) string {
	var q string
	switch {
	case p.Min == 0 && p.Max == 1:
		q = "?"
	case p.Min == 0 && p.Max == Unlimited:
		q = "*"
	case p.Min == 1 && p.Max == Unlimited:
		q = "+"
	case p.Max == Unlimited:
		q = "{" + strconv.Itoa(p.Min) + ",}"
	default:
		q = "{" + strconv.Itoa(p.Min) + "," + strconv.Itoa(p.Max) + "}"
	}
	if p.Reluctant {
		q += "?"
	}
	return q
}
