package prop

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// operator is a kind of query to draw cases for.
type operator struct {
	name      string
	relations []string
	queries   []string
	// duck translates the query for DuckDB; nil: as it stands.
	duck func(q string) string
	// otherwise says the query in another way, which batch must answer with the same rows; nil: it is not asked twice.
	otherwise func(q string) string
	// noDuck says why DuckDB is no judge.
	noDuck string
	// calm keeps to domains where a computation in doubles is well-conditioned.
	calm  bool
	wide  bool     // the wide domain only
	setup []string // statements before
	// appendOnly streams only: rows behind the watermark are late.
	appendOnly bool
}

const (
	streamT = "stream t (k TEXT, v BIGINT, x DOUBLE, b BOOLEAN, ts TIMESTAMP)"
	streamU = "stream u (k TEXT, v BIGINT, x DOUBLE, b BOOLEAN, ts TIMESTAMP)"
	tableU  = "table u (k TEXT, v BIGINT, x DOUBLE, b BOOLEAN, ts TIMESTAMP)"
	markedT = "stream t (k TEXT, v BIGINT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '2 seconds')"
	markedU = "stream u (k TEXT, v BIGINT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '1 second')"
	latestT = "stream t (k TEXT, v BIGINT, x DOUBLE, b BOOLEAN, ts TIMESTAMP, PRIMARY KEY (k))"
	latestU = "stream u (k TEXT, v BIGINT, x DOUBLE, b BOOLEAN, ts TIMESTAMP, PRIMARY KEY (v, x))"
	latestM = "stream t (k TEXT, v BIGINT, ts TIMESTAMP, PRIMARY KEY (k), WATERMARK FOR ts AS ts - INTERVAL '2 seconds')"
	streamN = "stream t (k TEXT, i INTEGER, s SMALLINT, n DECIMAL(8,2), d DATE)"
)

var one, two = []string{streamT}, []string{streamT, streamU}

var divert = []string{"SET on_error = 'bad'"}

// conditions and keys fill the holes of joins.
var (
	equi         = []string{"t.k = u.k", "t.v = u.v", "t.x = u.x", "t.k = u.k AND t.v = u.v", "t.k IS NOT DISTINCT FROM u.k", "t.b = u.b AND t.k = u.k"}
	appendedEqui = []string{"t.k = u.k", "t.v = u.v", "t.ts = u.ts", "t.k = u.k AND t.v = u.v", "t.k IS NOT DISTINCT FROM u.k", "t.v IS NOT DISTINCT FROM u.v", "CAST(t.v AS DOUBLE) = u.v", "CAST(t.v AS TEXT) = CAST(u.v AS TEXT)"}
	rest         = []string{"", " AND t.v < u.v", " AND t.x <> u.x", " AND (t.v IS NULL OR u.b)", " AND t.ts <= u.ts", " AND u.v > 0"}
)

// best asks for the rows at the extreme of their group.
var best = []string{
	"SELECT t.k, t.v, t.x, g.m FROM t JOIN (SELECT k, max(v) AS m FROM t GROUP BY k) g ON t.k = g.k AND t.v >= g.m",
	"SELECT t.k, t.v, t.x, g.k, g.m FROM t JOIN (SELECT k, min(v) AS m FROM t GROUP BY k) g ON t.k IS NOT DISTINCT FROM g.k AND g.m >= t.v",
	"SELECT t.k, t.x, t.b FROM t JOIN (SELECT b, max(x) AS m FROM t GROUP BY b) g ON t.b = g.b AND t.x = g.m",
	"SELECT t.k, t.x, g.m FROM t JOIN (SELECT x, min(k) AS m FROM t GROUP BY x) g ON t.x = g.x AND t.k = g.m",
	"SELECT t.v, t.x FROM t JOIN (SELECT max(ts) AS m FROM t) g ON t.ts = g.m", "SELECT * FROM t WHERE (k, v) IN (SELECT k, max(v) FROM t GROUP BY k)",
	"SELECT k, v FROM t WHERE x = (SELECT min(x) FROM t AS o WHERE o.k = t.k AND o.b = t.b)", "SELECT k, v, x FROM t WHERE v = (SELECT max(v) FROM t AS o WHERE o.k = t.k) AND b AND x > 0",
	"SELECT k, v, x FROM (SELECT *, rank() OVER (PARTITION BY k ORDER BY v DESC NULLS LAST) AS r FROM t) WHERE r = 1", "SELECT k, x FROM (SELECT *, dense_rank() OVER (ORDER BY x NULLS FIRST, b) AS r FROM t) WHERE r <= 1",
	"SELECT n.k, n.c, g.m FROM (SELECT k, v, count(*) AS c FROM t GROUP BY k, v) n JOIN (SELECT k, max(c) AS m FROM (SELECT k, v, count(*) AS c FROM t GROUP BY k, v) GROUP BY k) g ON n.k = g.k AND n.c = g.m",
	"SELECT n.k, n.c FROM (SELECT k, v, max(x) AS c FROM t GROUP BY k, v) n JOIN (SELECT k, max(c) AS m FROM (SELECT k, v, max(x) AS c FROM t GROUP BY k, v) GROUP BY k) g ON n.k = g.k AND n.c >= g.m",
	"SELECT n.k, n.c FROM (SELECT k, v, min(ts) AS c FROM t GROUP BY k, v) n JOIN (SELECT min(c) AS m FROM (SELECT k, v, min(ts) AS c FROM t GROUP BY k, v)) g ON n.c = g.m",
	"SELECT n.k, n.c FROM (SELECT k, sum(v) AS c FROM t GROUP BY k) n JOIN (SELECT max(c) AS m FROM (SELECT k, sum(v) AS c FROM t GROUP BY k)) g ON n.c >= g.m",
}

// bestOfWindows asks for the rows at the extreme of the windows they are in, which may be several: a join gives a row with each
// window, EXISTS and IN give it once. The relation is a stream, its
// keys (which both modes read once), or groups (which batch reads once).
var bestOfWindows = crossed("WITH n AS ({0}) {1} EMIT IMMEDIATE", []string{"SELECT k, v, ts FROM t", "SELECT k, v, ts FROM t GROUP BY k, v, ts", "SELECT k, ts, max(v) AS v FROM t GROUP BY k, ts"}, crossed("{0}", []string{
	"SELECT k, v, ts FROM n WHERE EXISTS (SELECT 1 FROM (SELECT window_start AS b, window_end AS e, max(v) AS m FROM {1} GROUP BY window_start, window_end) g WHERE n.v = g.m AND n.ts >= g.b AND n.ts < g.e)",
	"SELECT k, v, ts FROM n WHERE EXISTS (SELECT 1 FROM (SELECT k, window_start AS b, window_end AS e, max(v) AS m FROM {1} GROUP BY k, window_start, window_end) g WHERE n.k = g.k AND n.v >= g.m AND n.ts >= g.b AND n.ts < g.e)",
	"SELECT k, v FROM n WHERE v IN (SELECT m FROM (SELECT window_start AS b, window_end AS e, max(v) AS m FROM {1} GROUP BY window_start, window_end) g WHERE n.ts >= g.b AND n.ts < g.e)",
	"SELECT k, v FROM n WHERE (k, v) IN (SELECT k, m FROM (SELECT k, window_start AS b, window_end AS e, max(v) AS m FROM {1} GROUP BY k, window_start, window_end) g WHERE n.ts >= g.b AND n.ts < g.e)",
	"SELECT n.k, n.v, n.ts, g.b, g.e, g.m FROM n JOIN (SELECT window_start AS b, window_end AS e, max(v) AS m FROM {1} GROUP BY window_start, window_end) g ON n.v = g.m AND n.ts >= g.b AND n.ts < g.e",
	"SELECT n.k, n.v, n.ts FROM n JOIN (SELECT k, window_start AS b, window_end AS e, max(v) AS m FROM {1} GROUP BY k, window_start, window_end) g ON n.k = g.k AND n.v = g.m AND n.ts >= g.b AND n.ts < g.e",
}, []string{
	"TUMBLE(n, ts, INTERVAL '5 seconds')", "HOP(n, ts, INTERVAL '2 seconds', INTERVAL '6 seconds')", "HOP(n, ts, INTERVAL '4 seconds', INTERVAL '6 seconds')", "HOP(n, ts, INTERVAL '5 seconds', INTERVAL '5 seconds')",
	"HOP(n, ts, INTERVAL '6 seconds', INTERVAL '4 seconds')", "HOP(n, ts, INTERVAL '1 month', INTERVAL '2 months')", "TUMBLE(n, ts, INTERVAL '1 month')", "CUMULATE(n, ts, INTERVAL '2 seconds', INTERVAL '6 seconds')", "CUMULATE(n, ts, INTERVAL '5 seconds', INTERVAL '5 seconds')",
}))

// crossed joins every string with every other.
func crossed(format string, parts ...[]string) []string {
	out := []string{format}
	for i, part := range parts {
		var next []string
		for _, f := range out {
			for _, p := range part {
				next = append(next, replaceHole(f, i, p))
			}
		}
		out = next
	}
	return out
}

func replaceHole(format string, i int, with string) string {
	hole := fmt.Sprintf("{%d}", i)
	for at := 0; at+len(hole) <= len(format); at++ {
		if format[at:at+len(hole)] == hole {
			return format[:at] + with + replaceHole(format[at+len(hole):], i, with)
		}
	}
	return format
}

var operators = []operator{
	{name: "filter", relations: one, queries: []string{
		"SELECT * FROM t WHERE v > 0", "SELECT * FROM t WHERE NOT (x >= 0)", "SELECT * FROM t WHERE b", "SELECT * FROM t WHERE b IS NOT TRUE",
		"SELECT * FROM t WHERE k = 'a' OR v IS NULL", "SELECT * FROM t WHERE k IN ('a', '', NULL)", "SELECT * FROM t WHERE x = x AND v BETWEEN -1 AND 1",
		"SELECT * FROM t WHERE k NOT IN ('a', 'b') AND NOT b", "SELECT * FROM t WHERE (v > 0) IS NULL", "SELECT k FROM t WHERE k LIKE '%a%' OR ts IS NULL",
	}},
	{name: "project", relations: one, queries: []string{
		"SELECT k || '!', -x, NOT b FROM t", "SELECT k FROM t", "SELECT CASE WHEN b THEN k WHEN v > 0 THEN 'pos' END, coalesce(v, 0) FROM t",
		"SELECT x * 2 + 1, v % 3, v IS NULL FROM t", "SELECT nullif(k, 'a'), upper(k), length(k) FROM t", "SELECT x > 0, x = 'NaN'::DOUBLE, v // 2 FROM t", "SELECT 1 AS one FROM t",
	}},
	{name: "project-narrow", relations: []string{streamN}, queries: []string{
		"SELECT n + 1, n * 2, round(n, 1) FROM t", "SELECT i::BIGINT + s, -s::INTEGER FROM t", "SELECT d + 1, year(d), k FROM t", "SELECT sum(n), sum(i), avg(s), min(d), max(n) FROM t",
		"SELECT k, sum(n), avg(n), min(s) FROM t GROUP BY k", "SELECT d, count(*), max(i) FROM t GROUP BY d", "SELECT n, count(*) FROM t GROUP BY n",
	}},
	{name: "union", relations: two, queries: []string{
		"SELECT * FROM t UNION ALL SELECT * FROM u", "SELECT k, v FROM t UNION ALL SELECT k, v + 1 FROM u WHERE v < 100", "SELECT v FROM t UNION ALL SELECT x FROM u",
		"SELECT k FROM t UNION ALL SELECT k FROM t", "SELECT k, count(*) FROM (SELECT k FROM t UNION ALL SELECT k FROM u) GROUP BY k",
	}},
	{name: "normalize", relations: []string{latestT}, queries: []string{
		"SELECT * FROM t", "SELECT k FROM t", "SELECT v, x FROM t WHERE b", "SELECT k, v FROM t WHERE k <> 'a' AND v > 0", "SELECT count(*), sum(v) FROM t", "SELECT v, count(*), max(k) FROM t GROUP BY v",
		"SELECT DISTINCT v FROM t", "SELECT k, v FROM t ORDER BY v, k LIMIT 2", "SELECT a.k, b.v FROM t a JOIN t b ON a.v = b.v",
	}},
	{name: "normalize-keys", relations: []string{latestU}, queries: []string{"SELECT * FROM u", "SELECT x, v FROM u WHERE x <= 1", "SELECT x, count(*) FROM u WHERE v > 0 GROUP BY x", "SELECT k, x FROM u WHERE 1 / x > 0"}},
	{name: "normalize-join", relations: []string{streamT, latestU}, queries: crossed("SELECT t.k, t.v, u.k, u.x FROM t {1} JOIN u ON {0}", equi, []string{"INNER", "LEFT", "FULL"})},
	{name: "normalize-tumble", relations: []string{latestM}, queries: []string{
		"SELECT k, TUMBLE_START(ts, INTERVAL '5 seconds') AS s, count(*), sum(v) FROM t GROUP BY k, TUMBLE(ts, INTERVAL '5 seconds') EMIT IMMEDIATE",
		"SELECT TUMBLE_END(ts, INTERVAL '5 seconds') AS e, count(*), min(v) FROM t GROUP BY TUMBLE(ts, INTERVAL '5 seconds')",
	}, noDuck: "rows without event time; judged by tumble"},
	{name: "bad-rows", relations: one, setup: divert, noDuck: "on_error is not DuckDB's", queries: []string{
		"SELECT k, 10 // v FROM t", "SELECT v FROM t WHERE 10 // v > 1 AND k <> 'a'", "SELECT v FROM t WHERE k <> 'a' AND 10 // v > 1", "SELECT k, sum(10 // v) FROM t GROUP BY k",
		"SELECT 10 // v AS q, count(*), bool_or(k::BIGINT > 0) FROM t GROUP BY q", "SELECT k::BIGINT FROM t", "SELECT q FROM (SELECT 10 // v AS q, b FROM t) WHERE b",
		"SELECT DISTINCT 10 // v FROM t", "SELECT 10 // v FROM t UNION ALL SELECT 7 % v FROM t WHERE b", "SELECT 10 // v AS q, x FROM t ORDER BY q, x LIMIT 3",
		"SELECT CASE WHEN b THEN 10 // v ELSE coalesce(v, k::BIGINT) END FROM t", "SELECT k, count(*) FILTER (WHERE 10 // v > 1) FROM t WHERE x > 0 GROUP BY k",
		"SELECT k, 10 // v FROM t QUALIFY row_number() OVER (PARTITION BY k ORDER BY 10 // v, x) = 1", "SELECT count(*) FROM t WHERE 10 // v IN (1, 2, 3) OR b",
	}},
	{name: "bad-rows-join", relations: two, setup: divert, noDuck: "on_error is not DuckDB's", queries: append(
		crossed("SELECT t.k, t.v, u.v FROM t {0} JOIN u ON 10 // t.v = u.v{1}", []string{"INNER", "LEFT", "RIGHT", "FULL"}, []string{"", " AND t.k = u.k", " AND 10 // u.v > 1", " AND 7 // t.v > 0"}),
		"SELECT t.v FROM t, u WHERE t.k = u.k AND 10 // t.v > 1 AND u.b", "SELECT t.v FROM t WHERE 10 // v IN (SELECT 7 // v FROM u)", "SELECT v FROM t WHERE 10 // v NOT IN (SELECT v FROM u WHERE k::BIGINT > 0)",
		"SELECT v FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE 10 // u.v = t.v)", "SELECT k, sum(q) FROM (SELECT t.k, 10 // t.v AS q FROM t LEFT JOIN u ON t.k = u.k WHERE 10 // t.v > 0) GROUP BY k HAVING false",
		"SELECT t.k, s FROM t JOIN (SELECT k, sum(10 // v) AS s FROM u GROUP BY k) g ON t.k = g.k", "SELECT a.v, b.v FROM t a JOIN t b ON 10 // a.v = b.v AND a.k = b.k",
	)},
	{name: "bad-rows-tumble", relations: []string{markedT}, appendOnly: true, setup: divert, noDuck: "on_error is not DuckDB's", queries: []string{
		"SELECT TUMBLE_START(ts, INTERVAL '5 seconds') AS s, count(*), sum(10 // v) FROM t GROUP BY TUMBLE(ts, INTERVAL '5 seconds')",
		"SELECT k, TUMBLE_END(ts, INTERVAL '5 seconds') AS s, count(*) FROM t WHERE 10 // v > 0 GROUP BY k, TUMBLE(ts, INTERVAL '5 seconds') EMIT IMMEDIATE",
		"SELECT HOP_START(ts, INTERVAL '2 seconds', INTERVAL '6 seconds') AS s, max(10 // v) FROM t GROUP BY HOP(ts, INTERVAL '2 seconds', INTERVAL '6 seconds')",
	}},
	{name: "count", relations: one, queries: grouped("count(*), count(v), count(x)")},
	{name: "sum-integer", relations: one, queries: grouped("sum(v), avg(v)")},
	{name: "sum-double", relations: one, queries: grouped("sum(x), avg(x)")},
	{name: "min-max", relations: one, queries: append(grouped("min(v), max(v), min(x), max(x)"), grouped("min(k), max(ts), max(b)")...)},
	{name: "bool", relations: one, queries: grouped("bool_and(b), bool_or(b)")},
	{name: "variance", relations: one, calm: true, queries: append(grouped("var_samp(x), var_pop(x)"), grouped("stddev_samp(v), stddev_pop(v)")...)},
	{name: "lambda", relations: one, queries: lambdas},
	{name: "lists", relations: one, queries: lists, noDuck: "its json_group functions take no order; the values are judged in core/fn"},
	{name: "having", relations: one, queries: []string{
		"SELECT k, sum(v) FROM t GROUP BY k HAVING count(*) > 1", "SELECT k FROM t GROUP BY k HAVING min(x) < 1 OR bool_or(b)", "SELECT count(*) FROM t HAVING sum(v) IS NOT NULL",
	}},
	{name: "distinct", relations: one, queries: []string{"SELECT DISTINCT * FROM t", "SELECT DISTINCT k FROM t", "SELECT DISTINCT x, b FROM t", "SELECT DISTINCT v > 0 FROM t", "SELECT count(*) FROM (SELECT DISTINCT k, v FROM t)"}},
	{name: "count-distinct", relations: one, queries: append(
		grouped("count(DISTINCT v), count(DISTINCT x), sum(DISTINCT v)"), grouped("count(DISTINCT v) FILTER (WHERE b), count(*) FILTER (WHERE b IS NULL), sum(v) FILTER (WHERE x > 0)")...)},
	{name: "inner-join", relations: two, queries: crossed("SELECT t.k, t.v, u.v, u.x FROM t JOIN u ON {0}{1}", equi, rest)},
	{name: "left-join", relations: two, queries: append(crossed("SELECT t.k, t.v, u.v, u.b FROM t LEFT JOIN u ON {0}{1}", equi, rest), "SELECT t.k FROM t LEFT JOIN u ON t.v = u.v WHERE u.v IS NULL")},
	{name: "right-join", relations: two, queries: crossed("SELECT t.v, u.k, u.v FROM t RIGHT JOIN u ON {0}{1}", equi, rest)},
	{name: "full-join", relations: two, queries: crossed("SELECT t.k, t.v, u.k, u.v FROM t FULL JOIN u ON {0}{1}", equi, rest)},
	{name: "cross-join", relations: two, queries: []string{"SELECT t.k, u.v FROM t, u", "SELECT t.v, u.v FROM t JOIN u ON t.v < u.v", "SELECT t.v, u.v FROM t LEFT JOIN u ON t.v < u.v OR u.b", "SELECT count(*), sum(t.v) FROM t, u WHERE t.x <= u.x"}},
	{name: "self-join", relations: one, queries: []string{"SELECT a.v, b.v FROM t a JOIN t b ON a.k = b.k", "SELECT a.v, b.x FROM t a LEFT JOIN t b ON a.v = b.v AND a.x < b.x", "SELECT a.k, s.n FROM t a JOIN (SELECT k, count(*) AS n FROM t GROUP BY k) s ON a.k = s.k"}},
	{name: "table-join", relations: []string{streamT, tableU}, queries: crossed("SELECT t.v, u.v FROM t {1} JOIN u ON {0}", equi, []string{"INNER", "LEFT", "FULL"})},
	{name: "semi", relations: two, queries: []string{
		"SELECT k, v FROM t WHERE v IN (SELECT v FROM u)", "SELECT * FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k)", "SELECT v FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k AND u.v > t.v)",
		"SELECT v FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.b)", "SELECT v FROM t WHERE (k, v) IN (SELECT k, v FROM u)",
	}},
	{name: "anti", relations: two, queries: []string{
		"SELECT k, v FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.k = t.k)", "SELECT v FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.v = t.v AND u.x <> t.x)", "SELECT v FROM t WHERE NOT EXISTS (SELECT 1 FROM u)",
	}},
	{name: "not-in", relations: two, queries: []string{
		"SELECT k, v FROM t WHERE v NOT IN (SELECT v FROM u)", "SELECT k FROM t WHERE k NOT IN (SELECT k FROM u WHERE b)", "SELECT v FROM t WHERE v NOT IN (SELECT v FROM u WHERE u.k = t.k)",
		"SELECT x FROM t WHERE x NOT IN (SELECT x FROM u)",
	}},
	{name: "mark", relations: two, queries: []string{"SELECT v, v IN (SELECT v FROM u) FROM t", "SELECT k, v NOT IN (SELECT v FROM u WHERE u.k = t.k) FROM t", "SELECT v FROM t WHERE b OR v IN (SELECT v FROM u)"}},
	{name: "interval-join", relations: []string{markedT, markedU}, queries: []string{
		"SELECT t.v, u.v FROM t JOIN u ON t.k = u.k AND u.ts BETWEEN t.ts AND t.ts + INTERVAL '3 seconds' EMIT IMMEDIATE",
		"SELECT t.v, t.ts, u.ts FROM t JOIN u ON t.k = u.k AND u.ts >= t.ts - INTERVAL '2 seconds' AND u.ts <= t.ts + INTERVAL '2 seconds' EMIT IMMEDIATE",
		"SELECT t.v, u.v FROM t LEFT JOIN u ON t.k = u.k AND u.ts BETWEEN t.ts - INTERVAL '1 second' AND t.ts + INTERVAL '1 second' EMIT IMMEDIATE",
		"SELECT t.v, u.v FROM t JOIN u ON u.ts > t.ts - INTERVAL '2 seconds' AND u.ts < t.ts EMIT IMMEDIATE",
		"SELECT k, v FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k AND u.ts BETWEEN t.ts AND t.ts + INTERVAL '2 seconds') EMIT IMMEDIATE",
	}, appendOnly: true, duck: withoutEmit},
	{name: "appended-join", relations: []string{markedT, markedU}, queries: append(crossed("SELECT t.k, t.v, u.v FROM t JOIN u ON {0}{1} EMIT IMMEDIATE", appendedEqui, []string{"", " AND t.v < u.v", " AND t.ts <= u.ts"}),
		"SELECT t.v, u.v FROM t, u EMIT IMMEDIATE", "SELECT t.k, t.v FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k AND u.v < t.v) EMIT IMMEDIATE",
		"SELECT u.k, count(*), min(t.v) FROM t JOIN u ON t.v = u.v GROUP BY u.k EMIT IMMEDIATE"), appendOnly: true, duck: withoutEmit},
	{name: "keys-join", relations: []string{markedT, markedU}, appendOnly: true, queries: []string{
		"SELECT t.k, t.v, u.k AS w FROM (SELECT k, v FROM t GROUP BY k, v) t JOIN (SELECT k FROM u GROUP BY k) u ON t.k = u.k EMIT IMMEDIATE",
		"SELECT t.k, t.v, t.s FROM (SELECT k, v, TUMBLE_START(ts, INTERVAL '5 seconds') AS s FROM t GROUP BY k, v, TUMBLE(ts, INTERVAL '5 seconds')) t JOIN (SELECT v, TUMBLE_START(ts, INTERVAL '5 seconds') AS s FROM u GROUP BY v, TUMBLE(ts, INTERVAL '5 seconds')) u ON t.v = u.v AND t.s = u.s EMIT IMMEDIATE",
		"SELECT k, count(*) AS n, min(v) AS least FROM (SELECT k, v FROM t GROUP BY k, v) GROUP BY k EMIT IMMEDIATE",
	}, duck: tumbleDuck},
	{name: "tumble", relations: []string{markedT}, appendOnly: true, queries: windows("TUMBLE", "INTERVAL '5 seconds'"), duck: tumbleDuck},
	{name: "tumble-updating", relations: one, queries: []string{
		"SELECT k, TUMBLE_START(ts, INTERVAL '10 seconds') AS s, count(*), sum(v), max(x) FROM t GROUP BY k, TUMBLE(ts, INTERVAL '10 seconds') EMIT IMMEDIATE",
		"SELECT TUMBLE_END(ts, INTERVAL '7 seconds') AS e, count(DISTINCT k), min(v) FROM t GROUP BY TUMBLE(ts, INTERVAL '7 seconds') EMIT IMMEDIATE",
	}, noDuck: "rows without event time; judged by tumble"},
	{name: "tumble-epoch", relations: []string{"stream t (v BIGINT, ts TIMESTAMP)"}, wide: true, duck: tumbleDuck, queries: []string{
		"SELECT TUMBLE_START(ts, INTERVAL '1 hour') AS s, count(*) FROM t GROUP BY TUMBLE(ts, INTERVAL '1 hour') EMIT IMMEDIATE",
		"SELECT TUMBLE_START(ts, INTERVAL '7 days') AS s, TUMBLE_END(ts, INTERVAL '7 days') AS e, min(v) FROM t GROUP BY TUMBLE(ts, INTERVAL '7 days') EMIT IMMEDIATE",
	}},
	{name: "grouping-sets", relations: one, queries: []string{
		"SELECT k, v, count(*), sum(v), grouping(k, v) FROM t GROUP BY ROLLUP (k, v)", "SELECT k, b, count(*), max(x), min(v) FROM t GROUP BY CUBE (k, b)", "SELECT k, count(DISTINCT v), count(*) FROM t GROUP BY GROUPING SETS ((k), ())",
		"SELECT k, v, b, sum(x) FROM t GROUP BY b, GROUPING SETS ((k), (v), (k))", "SELECT k, grouping(k) AS g, count(*) FROM t GROUP BY ROLLUP (k) HAVING count(*) > 1", "SELECT v > 0 AS p, count(*) FROM t WHERE b GROUP BY ROLLUP (v > 0)",
		"SELECT n, count(*) FROM (SELECT k, v, count(*) AS n FROM t GROUP BY CUBE (k, v)) GROUP BY n", "SELECT count(*), sum(v) FROM t GROUP BY GROUPING SETS ((), ())",
	}},
	{name: "grouping-sets-tumble", relations: []string{markedT}, appendOnly: true, queries: crossed("SELECT k, TUMBLE_START(ts, INTERVAL '5 seconds') AS s, count(*), sum(v) FROM t GROUP BY TUMBLE(ts, INTERVAL '5 seconds'), {0} EMIT {1}",
		[]string{"ROLLUP (k)", "CUBE (k, v)", "GROUPING SETS ((k), (v))"}, []string{"IMMEDIATE", "ON WATERMARK"}), duck: tumbleDuck},
	{name: "tumble-offset", relations: []string{markedT}, appendOnly: true, queries: append(windows("TUMBLE", "INTERVAL '5 seconds', INTERVAL '2 seconds'"), windows("TUMBLE", "INTERVAL '5 seconds', INTERVAL '-1 seconds'")...), duck: offsetDuck},
	{name: "hop-offset", relations: []string{markedT}, appendOnly: true, queries: windows("HOP", "INTERVAL '4 seconds', INTERVAL '6 seconds', INTERVAL '1 second'"), noDuck: "no such function; judged by batch"},
	{name: "cumulate", relations: []string{markedT}, appendOnly: true, queries: append(windows("CUMULATE", "INTERVAL '2 seconds', INTERVAL '6 seconds'"), windows("CUMULATE", "INTERVAL '2 seconds', INTERVAL '6 seconds', INTERVAL '1 second'")...), noDuck: "no such function; judged by batch"},
	{name: "hop", relations: []string{markedT}, appendOnly: true, queries: append(windows("HOP", "INTERVAL '2 seconds', INTERVAL '6 seconds'"), windows("HOP", "INTERVAL '4 seconds', INTERVAL '6 seconds'")...), noDuck: "no such function; judged by batch"},
	{name: "hop-updating", relations: one, queries: []string{"SELECT k, HOP_START(ts, INTERVAL '5 seconds', INTERVAL '10 seconds') AS s, count(*), sum(v) FROM t GROUP BY k, HOP(ts, INTERVAL '5 seconds', INTERVAL '10 seconds') EMIT IMMEDIATE"}, noDuck: "no such function; judged by batch"},
	{name: "session", relations: []string{markedT}, appendOnly: true, queries: append(sessions("ON WATERMARK"), sessions("IMMEDIATE")...), duck: sessionDuck},
	{name: "session-updating", relations: one, queries: sessions("IMMEDIATE"), duck: sessionDuck},
	{name: "top-n", relations: one, queries: crossed("SELECT {1} FROM t ORDER BY {0} {2}", []string{"v", "v DESC", "x", "x DESC NULLS FIRST", "k, v DESC", "ts NULLS FIRST"}, []string{"*", "k, v, x"}, []string{"LIMIT 1", "LIMIT 3", "LIMIT 2 OFFSET 1", "LIMIT 5 OFFSET 2"}), noDuck: "leaves the order of ties open"},
	{name: "top-n-total", relations: one, queries: []string{"SELECT k, v, b FROM t ORDER BY k, v, b LIMIT 3", "SELECT k, v, b FROM t ORDER BY v DESC, k DESC, b LIMIT 2 OFFSET 1", "SELECT k, sum(v) AS s FROM t GROUP BY k ORDER BY s, k LIMIT 2"}},
	{name: "best-rows", relations: one, queries: best, duck: withoutEmit},
	{name: "best-rows-inserts", relations: one, appendOnly: true, queries: best, duck: withoutEmit},
	{name: "best-windows", relations: []string{markedT}, appendOnly: true, duck: tumbleDuck, queries: []string{
		"SELECT t.k, t.v, t.ts FROM t JOIN (SELECT TUMBLE_START(ts, INTERVAL '5 seconds') AS b, TUMBLE_END(ts, INTERVAL '5 seconds') AS e, max(v) AS most FROM t GROUP BY TUMBLE(ts, INTERVAL '5 seconds')) m ON t.v = m.most AND t.ts >= m.b AND t.ts < m.e EMIT IMMEDIATE",
		"SELECT n.k, n.num, n.s, m.most FROM (SELECT k, count(*) AS num, TUMBLE_START(ts, INTERVAL '5 seconds') AS s FROM t GROUP BY k, TUMBLE(ts, INTERVAL '5 seconds')) n JOIN (SELECT s, max(num) AS most FROM (SELECT k, count(*) AS num, TUMBLE_START(ts, INTERVAL '5 seconds') AS s FROM t GROUP BY k, TUMBLE(ts, INTERVAL '5 seconds')) GROUP BY s) m ON n.s = m.s AND n.num >= m.most EMIT IMMEDIATE",
	}},
	{name: "best-of-windows", relations: []string{markedT}, appendOnly: true, queries: bestOfWindows, noDuck: "no such windows; judged by the maximum of a sum", otherwise: maxOfSum},
	{name: "group-top-n", relations: one, queries: []string{
		"SELECT k, v, rn FROM (SELECT *, row_number() OVER (PARTITION BY k ORDER BY v) AS rn FROM t) WHERE rn <= 2", "SELECT k, v FROM (SELECT *, row_number() OVER (PARTITION BY k ORDER BY v DESC) AS rn FROM t) WHERE rn = 1",
		"SELECT k, v, ts, b FROM t QUALIFY row_number() OVER (PARTITION BY k ORDER BY v DESC, ts, b) <= 2", "SELECT b, k, v FROM t QUALIFY row_number() OVER (PARTITION BY b ORDER BY k, v DESC NULLS FIRST) <= 3",
		"SELECT k, v FROM t QUALIFY row_number() OVER (PARTITION BY k ORDER BY v DESC NULLS LAST) <= 2", "SELECT v, rn FROM (SELECT v, row_number() OVER (ORDER BY v) AS rn FROM t) WHERE rn <= 3",
	}},
	{name: "over-rank", relations: one, queries: overRanks},
	{name: "over-value", relations: one, queries: overValues},
	{name: "over-rows", relations: one, queries: overRowFrames},
	{name: "over-range-groups", relations: one, queries: overPeerFrames},
	{name: "over-exclude", relations: one, queries: overExclude},
	{name: "over-updating", relations: one, queries: overUpdating},
	{name: "over-inserts", relations: []string{markedT}, appendOnly: true, queries: overInserts, duck: withoutEmit},
	{name: "over-windows", relations: []string{markedT}, appendOnly: true, queries: overWindows, duck: overWindowsDuck},
	{name: "distinct-on", relations: one, queries: []string{"SELECT DISTINCT ON (k) k, v, x FROM t ORDER BY k, v DESC", "SELECT DISTINCT ON (b) b, ts FROM t ORDER BY b, ts"}, noDuck: "leaves the order of ties open"},
	{name: "scalar-subquery", relations: two, queries: []string{
		"SELECT k, v FROM t WHERE v > (SELECT avg(v) FROM u)", "SELECT k, (SELECT max(v) FROM u) FROM t", "SELECT k, v, (SELECT count(*) FROM u WHERE u.k = t.k) FROM t", "SELECT k, (SELECT sum(v) FROM u WHERE u.k = t.k AND u.b) FROM t",
		"SELECT v FROM t WHERE v = (SELECT min(v) FROM u WHERE u.k = t.k)", "SELECT k FROM t GROUP BY k HAVING count(*) > (SELECT count(*) FROM u)",
	}},
	{name: "unnest", relations: two, queries: unnests},
	{name: "set-op", relations: two, queries: crossed("SELECT {1} FROM t {0} SELECT {1} FROM u", []string{"UNION", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL"}, []string{"k", "k, v", "x, b"})},
	{name: "two-levels", relations: one, queries: []string{
		"SELECT n, count(*) FROM (SELECT k, count(*) AS n FROM t GROUP BY k) GROUP BY n", "SELECT max(s), min(s) FROM (SELECT k, sum(v) AS s FROM t GROUP BY k)",
		"SELECT k, m, n FROM (SELECT k, max(v) AS m, count(*) AS n FROM t GROUP BY k) ORDER BY n DESC, k LIMIT 2", "SELECT DISTINCT n FROM (SELECT k, count(DISTINCT v) AS n FROM t GROUP BY k)",
	}},
}

// grouped asks for aggregates by different keys.
func grouped(aggs string) []string {
	return []string{
		"SELECT " + aggs + " FROM t", "SELECT k, " + aggs + " FROM t GROUP BY k", "SELECT x, " + aggs + " FROM t GROUP BY x", "SELECT k, b, " + aggs + " FROM t GROUP BY k, b",
		"SELECT v > 0 AS p, " + aggs + " FROM t GROUP BY v > 0", "SELECT ts, " + aggs + " FROM t GROUP BY ts",
	}
}

func windows(fn, args string) []string {
	var out []string
	for _, emit := range []string{"ON WATERMARK", "IMMEDIATE"} {
		w := fn + "(ts, " + args + ")"
		start, end := fn+"_START(ts, "+args+") AS s", fn+"_END(ts, "+args+") AS e"
		out = append(out,
			"SELECT k, "+start+", "+end+", count(*), sum(v) FROM t GROUP BY k, "+w+" EMIT "+emit,
			"SELECT "+end+", min(v), max(v), count(DISTINCT k) FROM t GROUP BY "+w+" EMIT "+emit,
			"SELECT "+start+", k, avg(v) FROM t WHERE v > 0 GROUP BY k, "+w+" HAVING count(*) > 1 EMIT "+emit,
		)
	}
	return out
}

// maxOfSum keeps a join with one's own maximum a join: what is compared is not what is aggregated.
func maxOfSum(q string) string {
	return strings.ReplaceAll(q, "max(v) AS m ", "max(v + 0) AS m ")
}

func pick[T any](r *rand.Rand, s []T) T { return s[r.IntN(len(s))] }
