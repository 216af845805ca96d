package bind

import (
	"strings"

	"github.com/riverbed/riverbed/core/sql"
)

// displayQuery prints a subquery as DuckDB does in column names: like its text, with expressions as display prints them.
// What it does not know it prints as canonical SQL.
func (n namer) displayQuery(q *sql.Query) string {
	sel, ok := q.Body.(*sql.Select)
	if !ok || q.With != nil || len(sel.Windows) > 0 || sel.Qualify != nil || len(sel.DistinctOn) > 0 || q.LimitPercent {
		return sql.Print(q)
	}
	var b strings.Builder
	clause := func(word, s string) { b.WriteString(" " + word + " " + s) }
	b.WriteString("SELECT ")
	if sel.Distinct {
		b.WriteString("DISTINCT ")
	}
	items := make([]string, len(sel.Items))
	for i, it := range sel.Items {
		items[i] = n.display(it.Expr)
		if !it.Alias.IsZero() {
			items[i] += " AS " + quoted(it.Alias.Name)
		}
	}
	b.WriteString(strings.Join(items, ", "))
	if len(sel.From) > 0 {
		tables := make([]string, len(sel.From))
		for i, t := range sel.From {
			tables[i] = n.displayTable(t)
		}
		clause("FROM", strings.Join(tables, " , "))
	}
	if sel.Where != nil {
		clause("WHERE", n.display(sel.Where))
	}
	if g := sel.GroupBy; g != nil {
		var keys []string
		for _, it := range g.Items {
			if it.Kind != sql.GroupSet {
				return sql.Print(q)
			}
			keys = append(keys, n.displayAll(it.Exprs))
		}
		if g.All {
			keys = []string{"ALL"}
		}
		clause("GROUP BY", strings.Join(keys, ", "))
	}
	if sel.Having != nil {
		clause("HAVING", n.display(sel.Having))
	}
	if len(q.OrderBy) > 0 {
		b.WriteString(" " + n.displayOrder(q.OrderBy))
	}
	if q.Limit != nil {
		clause("LIMIT", n.display(q.Limit))
	}
	if q.Offset != nil {
		clause("OFFSET", n.display(q.Offset))
	}
	return b.String()
}

func (n namer) displayTable(t sql.TableRef) string {
	switch t := t.(type) {
	case *sql.Table:
		parts := make([]string, len(t.Name))
		for i, p := range t.Name {
			parts[i] = quoted(p.Name)
		}
		return strings.Join(parts, ".") + displayAlias(t.Alias)
	case *sql.SubqueryTable:
		return "(" + n.displayQuery(t.Query) + ")" + displayAlias(t.Alias)
	case *sql.Join:
		if t.AsOf {
			break
		}
		kind := string(t.Kind) + " JOIN "
		if t.Natural {
			kind = "NATURAL " + kind
		}
		s := "(" + n.displayTable(t.Left) + " " + kind + n.displayTable(t.Right)
		if t.On != nil {
			s += " ON (" + n.display(t.On) + ")"
		}
		if len(t.Using) > 0 {
			names := make([]string, len(t.Using))
			for i, n := range t.Using {
				names[i] = quoted(n.Name)
			}
			s += " USING (" + strings.Join(names, ", ") + ")"
		}
		return s + ")"
	}
	return sql.Print(t)
}

func displayAlias(a sql.Alias) string {
	if a.Name.IsZero() {
		return ""
	}
	s := " AS " + quoted(a.Name.Name)
	if len(a.Columns) > 0 {
		names := make([]string, len(a.Columns))
		for i, n := range a.Columns {
			names[i] = quoted(n.Name)
		}
		s += "(" + strings.Join(names, ", ") + ")"
	}
	return s
}
