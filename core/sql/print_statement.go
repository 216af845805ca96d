package sql

import (
	"slices"
	"strings"
)

func (w *printer) statement(s Statement) {
	if w.object(s) {
		return
	}
	switch s := s.(type) {
	case *Query:
		w.query(s)
	case *CreateTable:
		w.relation("TABLE", &s.Relation, s.Query)
	case *CreateStream:
		w.relation("STREAM", &s.Relation, nil)
	case *CreateSink:
		w.relation("SINK", &s.Relation, nil)
	case *CreateView:
		w.createView(s)
	case *Drop:
		w.put("DROP ", string(s.Kind), " ")
		w.putIf(s.IfExists, "IF EXISTS ")
		w.name(s.Name)
		w.putIf(s.Cascade, " CASCADE")
	case *Insert:
		w.insert(s)
	case *Update:
		w.with(s.With)
		w.put("UPDATE ")
		w.table(s.Table)
		w.put(" SET ")
		w.assignments(s.Set)
		w.from(" FROM ", s.From)
		w.clause(" WHERE ", s.Where)
		w.returning(s.Returning)
	case *Delete:
		w.with(s.With)
		w.put("DELETE FROM ")
		w.table(s.Table)
		w.from(" USING ", s.Using)
		w.clause(" WHERE ", s.Where)
		w.returning(s.Returning)
	case *Truncate:
		w.put("TRUNCATE ")
		w.name(s.Table)
	case *Merge:
		w.merge(s)
	case *Copy:
		w.copyStatement(s)
	case *Explain:
		w.put("EXPLAIN ")
		w.putIf(s.Analyze, "ANALYZE ")
		if s.Options != nil {
			w.keyOptions(s.Options)
			w.put(" ")
		}
		w.statement(s.Statement)
	case *Set:
		w.put("SET ")
		w.putIf(s.Scope != "", s.Scope, " ")
		w.put(settingText(s.Name), " = ")
		w.optionValue(s.Value)
	case *Reset:
		w.put("RESET ")
		w.putIf(s.Scope != "", s.Scope, " ")
		w.put(settingText(s.Name))
	case *Describe:
		if s.Summarize {
			w.put("SUMMARIZE")
		} else {
			w.put("DESCRIBE")
		}
		switch {
		case s.Table:
			w.put(" ")
			w.table(s.Query.Body.(*Select).From[0])
		case s.Query != nil:
			w.put(" ")
			w.query(s.Query)
		}
	case *Show:
		w.put("SHOW ")
		if slices.Contains(shown, s.What) {
			w.put(strings.ToUpper(s.What))
			if s.In != nil {
				w.put(" FROM ")
				w.name(s.In)
			}
		} else {
			w.put(settingText(s.What))
		}
	case *Transaction:
		w.put(string(s.Kind))
	}
}

// settingText writes the name of a setting; the scopes and the words of SET are quoted when they are names.
func settingText(name string) string {
	parts := strings.Split(name, ".")
	for _, part := range parts {
		switch strings.ToUpper(part) {
		case "SESSION", "GLOBAL", "LOCAL", "VARIABLE", "VARIABLES", "TIME":
			return quoteName(name)
		}
		if !plainName(part) {
			return quoteName(name)
		}
	}
	return name
}

func (w *printer) relation(what string, r *Relation, query *Query) {
	w.put("CREATE ")
	w.putIf(r.OrReplace, "OR REPLACE ")
	w.putIf(r.Temp, "TEMP ")
	w.put(what, " ")
	w.putIf(r.IfNotExists, "IF NOT EXISTS ")
	w.name(r.Name)
	var parts []func()
	for _, c := range r.Columns {
		parts = append(parts, func() { w.column(c) })
	}
	for _, k := range r.Constraints {
		parts = append(parts, func() { w.constraint(k) })
	}
	if m := r.Watermark; m != nil {
		parts = append(parts, func() {
			w.put("WATERMARK FOR ")
			w.ident(m.Column)
			w.put(" AS ")
			w.expr(m.Expr, 0)
		})
	}
	if parts != nil {
		w.put(" (")
		w.list(len(parts), func(i int) { parts[i]() })
		w.put(")")
	}
	if r.With != nil {
		w.put(" WITH (")
		w.list(len(r.With), func(i int) {
			o := r.With[i]
			if plainName(o.Key) {
				w.put(o.Key)
			} else {
				w.put(quoteString(o.Key))
			}
			w.put(" = ")
			w.optionValue(o.Value)
		})
		w.put(")")
	}
	if query != nil {
		w.put(" AS ")
		w.query(query)
	}
}

func (w *printer) column(c ColumnDef) {
	w.ident(c.Name)
	if c.Type != nil {
		w.put(" ")
		w.typeName(c.Type)
	}
	w.putIf(c.NotNull, " NOT NULL")
	w.putIf(c.PrimaryKey, " PRIMARY KEY")
	w.putIf(c.Unique, " UNIQUE")
	if c.Default != nil {
		w.put(" DEFAULT ")
		w.expr(c.Default, precOp)
	}
	for _, check := range c.Checks {
		w.put(" CHECK (")
		w.expr(check, 0)
		w.put(")")
	}
	if c.Generated != nil {
		w.put(" GENERATED ALWAYS AS (")
		w.expr(c.Generated, 0)
		w.put(")")
	}
}

func (w *printer) constraint(k Constraint) {
	if !k.Name.IsZero() {
		w.put("CONSTRAINT ")
		w.ident(k.Name)
		w.put(" ")
	}
	w.put(string(k.Kind), " ")
	if k.Kind == Check {
		w.put("(")
		w.expr(k.Check, 0)
		w.put(")")
		return
	}
	w.idents(k.Columns)
}

func (w *printer) optionValue(e Expr) {
	list, ok := e.(*List)
	if !ok {
		w.expr(e, 0)
		return
	}
	w.put("(")
	w.list(len(list.Items), func(i int) { w.optionValue(list.Items[i]) })
	w.put(")")
}

func (w *printer) keyOptions(list []Option) {
	w.put("(")
	w.list(len(list), func(i int) {
		w.put(nameText(list[i].Key), " ")
		w.optionValue(list[i].Value)
	})
	w.put(")")
}

func (w *printer) createView(v *CreateView) {
	w.put("CREATE ")
	w.putIf(v.OrReplace, "OR REPLACE ")
	w.putIf(v.Temp, "TEMP ")
	w.putIf(v.Materialized, "MATERIALIZED ")
	w.put("VIEW ")
	w.putIf(v.IfNotExists, "IF NOT EXISTS ")
	w.name(v.Name)
	if v.Columns != nil {
		w.put(" ")
		w.idents(v.Columns)
	}
	w.put(" AS ")
	w.query(v.Query)
}

func (w *printer) insert(s *Insert) {
	w.with(s.With)
	w.put("INSERT ")
	w.putIf(s.Or != "", "OR ", s.Or, " ")
	w.put("INTO ")
	w.name(s.Table)
	if !s.Alias.IsZero() {
		w.put(" AS ")
		w.ident(s.Alias)
	}
	if s.Columns != nil {
		w.put(" ")
		w.idents(s.Columns)
	}
	w.putIf(s.ByName, " BY NAME")
	if s.Query != nil {
		w.put(" ")
		w.query(s.Query)
	} else {
		w.put(" DEFAULT VALUES")
	}
	if c := s.Conflict; c != nil {
		w.put(" ON CONFLICT ")
		if c.Columns != nil {
			w.idents(c.Columns)
			w.put(" ")
		}
		if c.Set == nil {
			w.put("DO NOTHING")
		} else {
			w.put("DO UPDATE SET ")
			w.assignments(c.Set)
			w.clause(" WHERE ", c.Where)
		}
	}
	w.returning(s.Returning)
}

func (w *printer) returning(items []SelectItem) {
	if items != nil {
		w.put(" RETURNING ")
		w.items(items)
	}
}

func (w *printer) assignments(list []Assignment) {
	w.list(len(list), func(i int) {
		w.ident(list[i].Column)
		w.put(" = ")
		w.expr(list[i].Value, 0)
	})
}

func (w *printer) merge(s *Merge) {
	w.with(s.With)
	w.put("MERGE INTO ")
	w.table(s.Target)
	w.put(" USING ")
	w.operand(s.Source)
	w.clause(" ON ", s.On)
	if s.Using != nil {
		w.put(" USING ")
		w.idents(s.Using)
	}
	for _, when := range s.Whens {
		w.put(" WHEN ", string(when.Match))
		w.clause(" AND ", when.Cond)
		w.put(" THEN ", string(when.Action))
		w.putIf(when.ByName, " BY NAME")
		w.clause(" ", when.Message)
		if when.Set != nil {
			w.put(" SET ")
			w.assignments(when.Set)
		}
		if when.Columns != nil {
			w.put(" ")
			w.idents(when.Columns)
		}
		if when.Values != nil {
			w.put(" VALUES (")
			w.exprs(when.Values)
			w.put(")")
		}
	}
	w.returning(s.Returning)
}

func (w *printer) copyStatement(c *Copy) {
	w.put("COPY ")
	if c.Query != nil {
		w.parenQuery(c.Query)
		w.put(" TO ")
	} else {
		w.name(c.Table)
		if c.Columns != nil {
			w.put(" ")
			w.idents(c.Columns)
		}
		w.put(" FROM ")
	}
	w.put(quoteString(c.Path))
	if c.Options != nil {
		w.put(" ")
		w.keyOptions(c.Options)
	}
}
