package queries

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// The generator writes SQL that is well typed: every expression has a kind, and a function is only given what it takes.
// It keeps to what batch, DuckDB and, if incremental is set, the incremental engine all define: no order of ties that shows,
// no function of chance or time.

// kind is the type of an expression.
type kind uint8

const (
	integer kind = iota // BIGINT
	double
	text
	boolean
	stamp
	decimal
	kinds
)

// column is what a scope offers.
type column struct {
	name string
	kind kind
}

// tables are the relations of all queries.
var tables = []string{
	"stream t (k TEXT, v BIGINT, x DOUBLE, b BOOLEAN, ts TIMESTAMP)",
	"stream u (k TEXT, v BIGINT, n DECIMAL(9,2), b BOOLEAN, ts TIMESTAMP)",
	"table w (k TEXT, v BIGINT, x DOUBLE)",
}

var tableColumns = map[string][]column{
	"t": {{"k", text}, {"v", integer}, {"x", double}, {"b", boolean}, {"ts", stamp}},
	"u": {{"k", text}, {"v", integer}, {"n", decimal}, {"b", boolean}, {"ts", stamp}},
	"w": {{"k", text}, {"v", integer}, {"x", double}},
}

type generator struct {
	r     *rand.Rand
	names int
}

func (g *generator) chance(n int) bool { return g.r.IntN(n) == 0 }

func (g *generator) name(prefix string) string {
	g.names++
	return fmt.Sprintf("%s%d", prefix, g.names)
}

func pick[T any](r *rand.Rand, s ...T) T { return s[r.IntN(len(s))] }

// query writes a query; its columns have the names and kinds that are returned.
func (g *generator) query(depth int) (string, []column) {
	if depth > 0 && g.chance(8) {
		return g.setOperation(depth)
	}
	return g.selection(depth, nil, nil)
}

// top writes a whole statement.
func (g *generator) top() string {
	q, cols := g.query(2)
	if g.chance(4) { // every column is a key, so that ties do not show
		keys := make([]string, len(cols))
		for i := range cols {
			keys[i] = fmt.Sprintf("%d%s%s", i+1, pick(g.r, "", " ASC", " DESC"), pick(g.r, "", "", " NULLS FIRST", " NULLS LAST"))
		}
		g.r.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
		q += " ORDER BY " + strings.Join(keys, ", ")
		if !g.chance(3) {
			q += fmt.Sprintf(" LIMIT %d", 1+g.r.IntN(5))
			if g.chance(3) {
				q += fmt.Sprintf(" OFFSET %d", g.r.IntN(3))
			}
		}
	}
	return q
}

func (g *generator) setOperation(depth int) (string, []column) {
	n := 1 + g.r.IntN(2)
	want := make([]kind, n)
	for i := range want {
		want[i] = pick(g.r, integer, text, boolean, stamp)
	}
	l, cols := g.selection(depth-1, want, nil)
	r, _ := g.selection(depth-1, want, nil)
	return l + " " + pick(g.r, "UNION ALL", "UNION", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL") + " " + r, cols
}

// selection writes a SELECT. want fixes the kinds of its columns; outer are columns that it may refer to.
func (g *generator) selection(depth int, want []kind, outer []column) (string, []column) {
	from, scope := g.from(depth)
	e := &expressions{g: g, scope: scope, outer: outer, depth: depth}
	where := ""
	if !g.chance(3) {
		where = " WHERE " + e.predicate(2)
	}
	if want == nil {
		for range 1 + g.r.IntN(3) {
			want = append(want, kind(g.r.IntN(int(kinds))))
		}
	}
	if g.chance(3) {
		return g.aggregation(e, from, where, want)
	}
	cols := make([]column, len(want))
	items := make([]string, len(want))
	for i, k := range want {
		cols[i] = column{g.name("c"), k}
		items[i] = e.of(k, 2) + " AS " + cols[i].name
	}
	distinct := ""
	if g.chance(6) {
		distinct = "DISTINCT "
	}
	return "SELECT " + distinct + strings.Join(items, ", ") + from + where, cols
}

// aggregation groups.
func (g *generator) aggregation(e *expressions, from, where string, want []kind) (string, []column) {
	var keys []string
	var grouped []column
	for range g.r.IntN(3) {
		k := pick(g.r, integer, text, boolean, stamp)
		// A number is a position, and a subquery is not found again in the select list.
		key := (&expressions{g: g, scope: e.scope, outer: e.outer}).of(k, 1)
		if strings.Trim(key, "-( )0123456789") == "" {
			continue
		}
		keys = append(keys, key)
		grouped = append(grouped, column{"", k})
	}
	var items []string
	var cols []column
	used := make([]bool, len(keys))
	for _, k := range want {
		c := column{g.name("c"), k}
		item := ""
		for i := range keys {
			if grouped[i].kind == k && !used[i] && g.chance(2) {
				used[i], item = true, keys[i]
			}
		}
		if item == "" {
			item = g.aggregate(e, k)
		}
		items, cols = append(items, item+" AS "+c.name), append(cols, c)
	}
	q := "SELECT " + strings.Join(items, ", ") + from + where
	if len(keys) > 0 {
		q += " GROUP BY " + strings.Join(keys, ", ")
	}
	if g.chance(3) {
		q += " HAVING " + pick(g.r, "count(*) > 1", "count(*) <= 3", g.aggregate(e, integer)+" IS NOT NULL", g.aggregate(e, boolean))
	}
	return q, cols
}

// aggregate writes a call that gives the kind.
func (g *generator) aggregate(e *expressions, k kind) string {
	filter := ""
	if g.chance(5) {
		filter = " FILTER (WHERE " + e.predicate(1) + ")"
	}
	switch k {
	case integer:
		switch g.r.IntN(5) {
		case 0:
			return "count(*)" + filter
		case 1:
			return "count(" + e.of(kind(g.r.IntN(int(kinds))), 1) + ")" + filter
		case 2:
			return "count(DISTINCT " + e.of(pick(g.r, integer, text, boolean), 1) + ")" + filter
		case 3:
			return "CAST(sum(" + e.of(integer, 1) + ")" + filter + " AS BIGINT)"
		}
	case double:
		if g.chance(2) {
			return pick(g.r, "sum", "avg") + "(" + e.of(double, 1) + ")" + filter
		}
		return "avg(" + e.of(integer, 1) + ")" + filter
	case boolean:
		return pick(g.r, "bool_and", "bool_or", "min", "max") + "(" + e.of(boolean, 1) + ")" + filter
	case decimal:
		return "CAST(sum(" + e.of(decimal, 1) + ")" + filter + " AS DECIMAL(9,2))"
	}
	return pick(g.r, "min", "max") + "(" + e.of(k, 1) + ")" + filter
}

// from writes FROM with one to three relations.
func (g *generator) from(depth int) (string, []column) {
	n := pick(g.r, 1, 1, 1, 2, 2, 3)
	var b strings.Builder
	var scope []column
	for i := range n {
		item, cols, alias := g.relation(depth)
		added := make([]column, len(cols))
		for j, c := range cols {
			added[j] = column{alias + "." + c.name, c.kind}
		}
		if i == 0 {
			b.WriteString(" FROM " + item)
			scope = added
			continue
		}
		join := pick(g.r, "JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", ",")
		on := g.joinCondition(scope, added)
		if join == "," || on == "" {
			b.WriteString(" CROSS JOIN " + item)
		} else {
			b.WriteString(" " + join + " " + item + " ON " + on)
		}
		scope = append(scope, added...)
	}
	return b.String(), scope
}

func (g *generator) joinCondition(left, right []column) string {
	var parts []string
	for range 1 + g.r.IntN(2) {
		l := pick(g.r, left...)
		var same []column
		for _, c := range right {
			if c.kind == l.kind {
				same = append(same, c)
			}
		}
		if len(same) == 0 {
			continue
		}
		r := pick(g.r, same...)
		parts = append(parts, l.name+pick(g.r, " = ", " = ", " = ", " IS NOT DISTINCT FROM ", " < ", " <> ")+r.name)
	}
	if len(parts) > 0 && !strings.Contains(parts[0], " = ") && !strings.Contains(parts[0], "NOT DISTINCT") && g.chance(2) {
		return "" // keep products rare
	}
	return strings.Join(parts, " AND ")
}

func (g *generator) relation(depth int) (text string, cols []column, alias string) {
	alias = g.name("r")
	if depth > 0 && g.chance(4) {
		q, cols := g.query(depth - 1)
		return "(" + q + ") " + alias, cols, alias
	}
	name := pick(g.r, "t", "t", "u", "w")
	return name + " " + alias, tableColumns[name], alias
}
