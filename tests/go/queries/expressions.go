package queries

import (
	"fmt"
	"strings"
)

// expressions writes expressions over a scope.
type expressions struct {
	g     *generator
	scope []column
	outer []column // of the queries around
	depth int      // of subqueries that may still nest
}

// column writes a reference of the kind; empty when there is none.
func (e *expressions) column(k kind) string {
	var fit []string
	for _, c := range e.scope {
		if c.kind == k {
			fit = append(fit, c.name)
		}
	}
	if len(e.outer) > 0 && e.g.chance(4) {
		for _, c := range e.outer {
			if c.kind == k {
				fit = append(fit, c.name)
			}
		}
	}
	if len(fit) == 0 {
		return ""
	}
	return pick(e.g.r, fit...)
}

var literals = [kinds][]string{
	{"0", "1", "-1", "2", "3", "7", "CAST(NULL AS BIGINT)"},
	{"0.0::DOUBLE", "1.5::DOUBLE", "-2.25::DOUBLE", "CAST('NaN' AS DOUBLE)", "CAST('-0.0' AS DOUBLE)", "CAST(NULL AS DOUBLE)"},
	{"''", "'a'", "'b'", "'Äz'", "'a%'", "CAST(NULL AS VARCHAR)"},
	{"TRUE", "FALSE", "CAST(NULL AS BOOLEAN)"},
	{"TIMESTAMP '2024-01-01 00:00:05'", "TIMESTAMP '1969-12-31 23:59:59.5'", "CAST(NULL AS TIMESTAMP)"},
	{"CAST(1.25 AS DECIMAL(9,2))", "CAST(0 AS DECIMAL(9,2))", "CAST(-3.50 AS DECIMAL(9,2))", "CAST(NULL AS DECIMAL(9,2))"},
}

// of writes an expression of the kind, depth levels deep at most.
func (e *expressions) of(k kind, depth int) string {
	g := e.g
	if depth <= 0 || g.chance(3) {
		if c := e.column(k); c != "" && !g.chance(5) {
			return c
		}
		return pick(g.r, literals[k]...)
	}
	if g.chance(6) {
		return e.anyKind(k, depth)
	}
	sub := func(k kind) string { return e.of(k, depth-1) }
	switch k {
	case integer:
		switch g.r.IntN(10) {
		case 0, 1:
			return "(" + sub(integer) + pick(g.r, " + ", " - ", " * ") + sub(integer) + ")"
		case 2:
			return "(" + sub(integer) + pick(g.r, " // ", " % ") + e.divisor(sub(integer)) + ")"
		case 3:
			return "abs(" + sub(integer) + ")"
		case 4:
			return "length(" + sub(text) + ")"
		case 5:
			return pick(g.r, "year", "month", "day", "hour", "minute", "second") + "(" + sub(stamp) + ")"
		case 6:
			return "(- " + sub(integer) + ")"
		case 7:
			return "CAST(" + sub(boolean) + " AS BIGINT)"
		case 8:
			return "strpos(" + sub(text) + ", " + sub(text) + ")"
		}
		return pick(g.r, "greatest", "least") + "(" + sub(integer) + ", " + sub(integer) + ")"
	case double:
		switch g.r.IntN(6) {
		case 0, 1:
			return "(" + sub(double) + pick(g.r, " + ", " - ", " * ", " / ") + sub(double) + ")"
		case 2:
			return pick(g.r, "abs", "floor", "ceil", "trunc") + "(" + sub(double) + ")"
		case 3:
			return "CAST(" + sub(pick(g.r, integer, decimal)) + " AS DOUBLE)"
		case 4:
			return "(- " + sub(double) + ")"
		}
		return "(" + sub(integer) + " / nullif(" + sub(integer) + ", 0))"
	case text:
		switch g.r.IntN(7) {
		case 0:
			return "(" + sub(text) + " || " + sub(text) + ")"
		case 1:
			return pick(g.r, "upper", "lower", "trim", "reverse") + "(" + sub(text) + ")"
		case 2:
			return fmt.Sprintf("substr(%s, %d, %d)", sub(text), g.r.IntN(4), g.r.IntN(3))
		case 3:
			return "CAST(" + sub(pick(g.r, integer, boolean, stamp, decimal)) + " AS VARCHAR)"
		case 4:
			return "replace(" + sub(text) + ", 'a', " + sub(text) + ")"
		case 5:
			return "concat(" + sub(text) + ", " + sub(text) + ")"
		}
		return pick(g.r, "left", "right") + "(" + sub(text) + fmt.Sprintf(", %d)", g.r.IntN(3))
	case boolean:
		return e.predicate(depth)
	case stamp:
		switch g.r.IntN(3) {
		case 0:
			return "(" + sub(stamp) + pick(g.r, " + ", " - ") + pick(g.r, "INTERVAL '1 hour'", "INTERVAL '1 month'", "INTERVAL '2 days'", "INTERVAL '3 seconds'") + ")"
		case 1:
			return "date_trunc('" + pick(g.r, "minute", "hour", "day", "month", "year") + "', " + sub(stamp) + ")"
		}
		return pick(g.r, "greatest", "least") + "(" + sub(stamp) + ", " + sub(stamp) + ")"
	case decimal:
		return "CAST(" + pick(g.r, sub(decimal)+" + "+sub(decimal), sub(decimal)+" - "+sub(decimal), "round("+sub(decimal)+", 1)", "abs("+sub(decimal)+")", sub(integer)+" % 100") + " AS DECIMAL(9,2))"
	}
	panic("kind")
}

// divisor keeps most divisions from failing: where a query fails, little else of it is compared.
func (e *expressions) divisor(x string) string {
	if e.g.chance(20) {
		return x
	}
	return "nullif(" + x + ", 0)"
}

// anyKind writes what works for every kind.
func (e *expressions) anyKind(k kind, depth int) string {
	g := e.g
	a, b := e.of(k, depth-1), e.of(k, depth-1)
	switch g.r.IntN(5) {
	case 0:
		return "CASE WHEN " + e.predicate(depth-1) + " THEN " + a + " ELSE " + b + " END"
	case 1:
		return "CASE WHEN " + e.predicate(depth-1) + " THEN " + a + " END"
	case 2:
		return "coalesce(" + a + ", " + b + ")"
	case 3:
		return "nullif(" + a + ", " + b + ")"
	}
	if e.depth > 0 {
		return e.scalar(k)
	}
	return a
}

// scalar writes a scalar subquery. It aggregates, so that it has one row.
func (e *expressions) scalar(k kind) string {
	from, scope := e.g.from(0)
	in := &expressions{g: e.g, scope: scope, outer: append(append([]column{}, e.scope...), e.outer...)}
	where := ""
	if e.g.chance(2) {
		where = " WHERE " + in.predicate(1)
	}
	// What is aggregated stems from the subquery alone: an aggregate over outer columns belongs to the query around.
	in.outer = nil
	return "(SELECT " + e.g.aggregate(in, k) + from + where + ")"
}

// predicate writes a condition.
func (e *expressions) predicate(depth int) string {
	g := e.g
	if depth <= 0 {
		if c := e.column(boolean); c != "" && g.chance(3) {
			return c
		}
		return e.comparison(0)
	}
	switch g.r.IntN(9) {
	case 0:
		return "(" + e.predicate(depth-1) + " AND " + e.predicate(depth-1) + ")"
	case 1:
		return "(" + e.predicate(depth-1) + " OR " + e.predicate(depth-1) + ")"
	case 2:
		return "(NOT (" + e.predicate(depth-1) + "))"
	case 3:
		return "(" + e.of(kind(g.r.IntN(int(kinds))), depth-1) + pick(g.r, " IS NULL", " IS NOT NULL") + ")"
	case 4:
		k := kind(g.r.IntN(int(kinds)))
		list := make([]string, 1+g.r.IntN(3))
		for i := range list {
			list[i] = pick(g.r, literals[k]...)
		}
		return "(" + e.of(k, depth-1) + pick(g.r, " IN (", " NOT IN (") + strings.Join(list, ", ") + "))"
	case 5:
		return "(" + e.of(text, depth-1) + pick(g.r, " LIKE ", " NOT LIKE ", " ILIKE ") + pick(g.r, "'a%'", "'%b'", "'_'", "'%'") + ")"
	case 6:
		if e.depth > 0 {
			return e.subquery()
		}
	case 7:
		k := pick(g.r, integer, double, stamp)
		return "(" + e.of(k, depth-1) + " BETWEEN " + e.of(k, depth-1) + " AND " + e.of(k, depth-1) + ")"
	}
	return e.comparison(depth - 1)
}

func (e *expressions) comparison(depth int) string {
	k := kind(e.g.r.IntN(int(kinds)))
	op := pick(e.g.r, " = ", " <> ", " < ", " <= ", " > ", " >= ", " IS DISTINCT FROM ", " IS NOT DISTINCT FROM ")
	return "(" + e.of(k, depth) + op + e.of(k, depth) + ")"
}

// subquery writes IN or EXISTS.
func (e *expressions) subquery() string {
	outer := append(append([]column{}, e.scope...), e.outer...)
	k := pick(e.g.r, integer, text, stamp, double)
	if e.g.chance(2) {
		from, scope := e.g.from(0)
		in := &expressions{g: e.g, scope: scope, outer: outer}
		return "(" + pick(e.g.r, "", "NOT ") + "EXISTS (SELECT 1" + from + " WHERE " + in.predicate(1) + "))"
	}
	from, scope := e.g.from(0)
	in := &expressions{g: e.g, scope: scope}
	where := ""
	if e.g.chance(2) {
		in.outer = outer
		where = " WHERE " + in.predicate(1)
		in.outer = nil
	}
	return "(" + e.of(k, 0) + pick(e.g.r, " IN ", " NOT IN ") + "(SELECT " + in.of(k, 1) + from + where + "))"
}
