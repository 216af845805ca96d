package rules

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/plan"
)

// generator writes random queries over the small catalog.
type generator struct {
	r     *rand.Rand
	depth int
	alias int
}

func (g *generator) pick(list ...string) string { return list[g.r.IntN(len(list))] }

var tables = map[string][]string{"a": {"id", "x"}, "b": {"id", "aid", "v"}, "c": {"id", "w"}}

// from returns a FROM clause and the integer columns it offers.
func (g *generator) from() (string, []string) {
	text, cols := g.table()
	for g.r.IntN(3) == 0 && len(cols) < 12 {
		right, more := g.table()
		kind := g.pick("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "JOIN")
		on := g.pick(cols...) + g.pick(" = ", " = ", " < ", " IS NOT DISTINCT FROM ") + g.pick(more...)
		if g.r.IntN(4) == 0 {
			on += " AND " + g.cond(append(append([]string{}, cols...), more...), nil)
		}
		text += " " + kind + " " + right + " ON " + on
		cols = append(append([]string{}, cols...), more...)
	}
	return text, cols
}

func (g *generator) table() (string, []string) {
	g.alias++
	name := fmt.Sprintf("t%d", g.alias)
	var cols []string
	if g.depth < 2 && g.r.IntN(4) == 0 {
		inner, n := g.query(nil)
		for i := range n {
			cols = append(cols, fmt.Sprintf("%s.q%d", name, i))
		}
		return "(" + inner + ") " + name, cols
	}
	table := g.pick("a", "b", "c")
	for _, c := range tables[table] {
		cols = append(cols, name+"."+c)
	}
	return table + " " + name, cols
}

func (g *generator) scalar(cols, outer []string) string {
	switch g.r.IntN(8) {
	case 0:
		return fmt.Sprint(g.r.IntN(10))
	case 1:
		return "(" + g.pick(cols...) + " % 7)"
	case 2:
		return "coalesce(" + g.pick(cols...) + ", 0)"
	case 3:
		if len(outer) > 0 {
			return g.pick(outer...)
		}
	case 4:
		return "CASE WHEN " + g.pick(cols...) + " > 3 THEN " + g.pick(cols...) + " END"
	}
	return g.pick(cols...)
}

func (g *generator) cond(cols, outer []string) string {
	switch g.r.IntN(10) {
	case 0:
		return "(" + g.cond(cols, outer) + " OR " + g.cond(cols, outer) + ")"
	case 1:
		return "NOT (" + g.cond(cols, outer) + " AND " + g.cond(cols, outer) + ")"
	case 2:
		return g.pick(cols...) + g.pick(" IS NULL", " IS NOT NULL")
	case 3:
		return g.pick(cols...) + g.pick(" IN (1, 2)", " NOT IN (3, NULL)")
	}
	return g.scalar(cols, outer) + g.pick(" = ", " < ", " >= ", " <> ") + g.scalar(cols, outer)
}

// subquery is a condition with a subquery.
func (g *generator) subquery(cols, outer []string) string {
	g.depth++
	defer func() { g.depth-- }()
	outer = append(append([]string{}, outer...), cols...)
	switch g.r.IntN(6) {
	case 0:
		from, in := g.from()
		return g.pick("", "NOT ") + "EXISTS (SELECT 1 FROM " + from + " WHERE " + g.cond(in, outer) + " AND " + g.pick(in...) + " = " + g.pick(outer...) + ")"
	case 1:
		from, in := g.from()
		return g.pick(cols...) + g.pick(" IN ", " NOT IN ") + "(SELECT " + g.scalar(in, outer) + " FROM " + from + " WHERE " + g.cond(in, outer) + ")"
	case 2:
		from, in := g.from()
		return g.pick(cols...) + g.pick(" > ", " = ") + "(SELECT " + g.pick("max", "count", "min") + "(" + g.scalar(in, nil) + ") FROM " + from + " WHERE " + g.pick(in...) + g.pick(" = ", " < ") + g.pick(outer...) + ")"
	case 3:
		from, in := g.from()
		return g.pick(cols...) + g.pick(" > ", " = ") + "(SELECT " + g.scalar(in, outer) + " FROM " + from + " WHERE " + g.pick(in...) + " = " + g.pick(outer...) + " ORDER BY " + g.pick(in...) + " LIMIT 1)"
	case 4:
		from, in := g.from()
		return g.pick(cols...) + g.pick(" > ALL ", " < ANY ", " = ANY ") + "(SELECT " + g.pick(in...) + " FROM " + from + ")"
	}
	from, in := g.from()
	where := ""
	if g.r.IntN(2) == 0 {
		where = " WHERE " + g.subquery(in, outer)
		if g.depth > 2 {
			where = ""
		}
	}
	return "EXISTS (SELECT " + g.pick(in...) + " FROM " + from + where + ")"
}

// query returns a query whose columns are q0 … and their number.
func (g *generator) query(outer []string) (string, int) {
	g.depth++
	defer func() { g.depth-- }()
	from, cols := g.from()
	var where []string
	for g.r.IntN(3) > 0 {
		where = append(where, g.cond(cols, outer))
	}
	if g.depth <= 2 && g.r.IntN(2) == 0 {
		where = append(where, g.subquery(cols, outer))
	}
	if g.depth <= 2 && g.r.IntN(6) == 0 {
		where = append(where, "("+g.subquery(cols, outer)+" OR "+g.cond(cols, outer)+")")
	}
	text := from
	if len(where) > 0 {
		text += " WHERE " + strings.Join(where, " AND ")
	}
	n := 1 + g.r.IntN(3)
	var items []string
	switch g.r.IntN(5) {
	case 0:
		key := g.pick(cols...)
		items = append(items, key)
		for len(items) < n {
			items = append(items, g.pick("sum", "count", "min")+"("+g.scalar(cols, nil)+")")
		}
		text += " GROUP BY " + key
		if g.r.IntN(2) == 0 {
			text += " HAVING count(*) > 1"
		}
	case 1:
		items = []string{"count(*)"}
		n = 1
	default:
		for len(items) < n {
			items = append(items, g.scalar(cols, outer))
		}
	}
	for i := range items {
		items[i] += fmt.Sprintf(" AS q%d", i)
	}
	text = "SELECT " + g.pick("", "", "DISTINCT ") + strings.Join(items, ", ") + " FROM " + text
	if g.r.IntN(6) == 0 {
		text += " ORDER BY q0 LIMIT 5"
	}
	return text, n
}

// TestRandomQueries optimizes random queries: no error but a refusal, the same output columns, columns that are unique and visible.
func TestRandomQueries(t *testing.T) {
	c := small(t)
	refused := 0
	const queries = 1000
	for seed := range uint64(queries) {
		g := &generator{r: rand.New(rand.NewPCG(seed, 1))}
		text, _ := g.query(nil)
		q := bound(t, c, text)
		before := plan.Format(q.Root)
		for _, mode := range both {
			out, _, err := Optimize(q, mode, Options{})
			if plan.Format(q.Root) != before {
				t.Fatalf("seed %d, %s: %s\nthe bound plan was changed", seed, mode, text)
			}
			if errs.Is(err, errs.Unsupported) {
				refused++
				continue
			}
			if err != nil {
				t.Fatalf("seed %d, %s: %s\n%v\n%s", seed, mode, text, err, before)
			}
			checkColumns(t, fmt.Sprintf("seed %d, %s: %s", seed, mode, text), q, out)
			again, _, err := Optimize(out, mode, Options{})
			if err != nil {
				t.Fatalf("seed %d, %s: %s\noptimizing again: %v\n%s", seed, mode, text, err, plan.Format(out.Root))
			}
			checkColumns(t, fmt.Sprintf("seed %d, %s, again: %s", seed, mode, text), q, again)
			if t.Failed() {
				t.Fatal(before)
			}
		}
	}
	if refused > queries/3 {
		t.Errorf("%d of %d were refused: the generator tests little", refused, queries)
	}
}
