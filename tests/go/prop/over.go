package prop

import (
	"slices"
	"strings"
)

// total orders rows by all that they show, so that DuckDB has no ties to break.
const total = "ORDER BY v DESC, ts NULLS FIRST, b, k"

var (
	overPart = []string{"", "PARTITION BY k", "PARTITION BY b, k", "PARTITION BY v"}
	peers    = []string{"", "ORDER BY v", "ORDER BY ts DESC NULLS FIRST", "ORDER BY k, v DESC", "ORDER BY x NULLS FIRST"}
)

// overRanks asks for numbers and shares.
var overRanks = slices.Concat(
	crossed("SELECT k, v, b, ts, {2} OVER ({0} {1}) AS n FROM t", overPart, []string{total}, []string{"row_number()", "ntile(3)", "ntile(1 + v % 2)", "row_number() OVER (ORDER BY k, v, b, ts), rank()"}),
	crossed("SELECT k, v, {2} OVER ({0} {1}) AS n FROM t", overPart, peers, []string{"rank()", "dense_rank()", "percent_rank()", "cume_dist()"}),
	[]string{
		"SELECT k, v, b, ts FROM t QUALIFY row_number() OVER (PARTITION BY k " + total + ") > 1", "SELECT k, v FROM t QUALIFY cume_dist() OVER (ORDER BY v) > 0.5",
		"SELECT k, count(*) AS n, rank() OVER (ORDER BY count(*) DESC) AS r FROM t GROUP BY k", "SELECT k, v, rank() OVER w AS r, dense_rank() OVER w AS d FROM t WINDOW w AS (PARTITION BY b ORDER BY v)",
	},
)

// overValues asks for values of other rows.
var overValues = append(crossed("SELECT k, v, b, ts, {1} OVER ({0} "+total+" {2}) AS n FROM t", overPart, []string{
	"lag(v)", "lead(k)", "lag(v, 2)", "lead(v, 2, -1)", "lag(ts, 0)", "lead(v, -1)", "lag(v, v % 3)", "lag(v IGNORE NULLS)", "lead(k, 2 IGNORE NULLS)", "lag(v, 1, v * 10)",
	"first_value(v)", "last_value(k)", "nth_value(v, 2)", "first_value(v IGNORE NULLS)", "last_value(v IGNORE NULLS)", "nth_value(k, 2 IGNORE NULLS)", "nth_value(v, 1 + v % 2)",
}, []string{"", "ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING", "ROWS BETWEEN 1 FOLLOWING AND 3 FOLLOWING EXCLUDE GROUP", "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE CURRENT ROW", "GROUPS 1 PRECEDING"}),
	"SELECT k, v, v - lag(v) OVER (PARTITION BY k ORDER BY v) AS d FROM t", "SELECT k, v, first_value(v) OVER (PARTITION BY k ORDER BY v) AS f, max(v) OVER (PARTITION BY k) AS m FROM t")

// overAggs are the aggregates asked for over frames.
var overAggs = []string{"sum(v)", "count(*)", "avg(v)", "min(v)", "max(v)", "count(v)", "sum(v) FILTER (WHERE b)", "min(k)", "bool_or(v > 1)", "count(DISTINCT v)", "sum(DISTINCT v) FILTER (WHERE v > 0)"}

// Frames of rows stand in an order without ties.
var overRowFrames = crossed("SELECT k, v, b, ts, {1} OVER ({0} "+total+" ROWS {2}) AS n FROM t", overPart, overAggs, []string{
	"UNBOUNDED PRECEDING", "1 PRECEDING", "BETWEEN 3 PRECEDING AND 1 PRECEDING", "BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING", "BETWEEN 1 PRECEDING AND 2 FOLLOWING", "BETWEEN 2 FOLLOWING AND 5 FOLLOWING",
	"BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING EXCLUDE CURRENT ROW", "BETWEEN 2 PRECEDING AND 2 FOLLOWING EXCLUDE CURRENT ROW", "BETWEEN abs(coalesce(v, 1)) % 3 PRECEDING AND CURRENT ROW", "BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
})

var overPeerFrames = slices.Concat(
	crossed("SELECT k, v, b, {1} OVER ({0} ORDER BY v {2}) AS n FROM t", []string{"", "PARTITION BY k"}, overAggs, []string{
		"RANGE BETWEEN 1 PRECEDING AND CURRENT ROW", "RANGE BETWEEN 1 PRECEDING AND 2 FOLLOWING", "RANGE BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING", "RANGE BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING", "RANGE BETWEEN CURRENT ROW AND CURRENT ROW",
		"GROUPS 1 PRECEDING", "GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING", "GROUPS BETWEEN 1 FOLLOWING AND 2 FOLLOWING", "GROUPS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW", "GROUPS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING", "",
	}),
	crossed("SELECT k, v, ts, {1} OVER ({0} ORDER BY ts {2}) AS n FROM t", []string{"", "PARTITION BY k", "PARTITION BY b"}, []string{"sum(v)", "count(*)", "min(v)"}, []string{
		"RANGE INTERVAL '2 seconds' PRECEDING", "DESC RANGE BETWEEN INTERVAL '1 second' PRECEDING AND INTERVAL '3 seconds' FOLLOWING", "NULLS FIRST RANGE BETWEEN UNBOUNDED PRECEDING AND INTERVAL '1 second' FOLLOWING",
	}),
)

var overExclude = crossed("SELECT k, v, b, {1} OVER ({0} ORDER BY v {2} {3}) AS n FROM t", []string{"", "PARTITION BY k"}, []string{"sum(v)", "count(*)", "max(v)", "min(k)", "count(DISTINCT k)"},
	[]string{"RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW", "RANGE BETWEEN 2 PRECEDING AND 2 FOLLOWING", "GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING", "RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"},
	[]string{"EXCLUDE CURRENT ROW", "EXCLUDE GROUP", "EXCLUDE TIES"})

// overUpdating reads what changes below: groups, joins, other windows.
var overUpdating = []string{
	"SELECT k, n, sum(n) OVER (ORDER BY n, k) AS s FROM (SELECT k, count(*) AS n FROM t GROUP BY k)", "SELECT k, s, lag(s) OVER (ORDER BY s, k) AS p FROM (SELECT k, sum(v) AS s FROM t GROUP BY k)",
	"SELECT k, v, n, avg(v) OVER (PARTITION BY k ORDER BY v ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS a FROM (SELECT k, v, count(*) AS n FROM t GROUP BY k, v)",
	"SELECT k, v, r, sum(r) OVER (PARTITION BY k) AS s FROM (SELECT k, v, rank() OVER (ORDER BY v) AS r FROM t)", "SELECT k, max(r) FROM (SELECT k, dense_rank() OVER (PARTITION BY b ORDER BY v) AS r FROM t) GROUP BY k",
	"SELECT t.k, t.v, count(*) OVER (PARTITION BY t.k ORDER BY t.v) AS c FROM t JOIN (SELECT k, max(v) AS m FROM t GROUP BY k) g ON t.k = g.k AND t.v < g.m",
	"SELECT k, v, sum(v) OVER (PARTITION BY k) - v AS rest, row_number() OVER (ORDER BY v, k) AS n FROM (SELECT DISTINCT k, v FROM t)",
}

// overWindows asks within windows of time, which the watermark closes.
var overWindows = crossed("{0} EMIT {1}", []string{
	"SELECT k, v, window_end, rank() OVER (PARTITION BY window_start, window_end ORDER BY v) AS r FROM TUMBLE(t, ts, INTERVAL '5 seconds')",
	"SELECT k, n, window_end, sum(n) OVER (PARTITION BY window_end ORDER BY n, k ROWS 1 PRECEDING) AS s FROM (SELECT k, window_start, window_end, count(*) AS n FROM TUMBLE(t, ts, INTERVAL '5 seconds') GROUP BY k, window_start, window_end)",
}, []string{"ON WATERMARK", "IMMEDIATE"})

// overInserts reads what only grows, in the order of its time.
var overInserts = crossed("SELECT k, v, ts, {1} OVER ({0} ORDER BY ts, v, k {2}) AS n FROM t EMIT IMMEDIATE", []string{"", "PARTITION BY k"},
	[]string{"row_number()", "sum(v)", "lag(v)", "lead(v)", "avg(v)", "max(v)", "last_value(v)"}, []string{"", "ROWS 2 PRECEDING", "ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING"})

// overWindowsDuck writes the windows with time_bucket, as tumbleDuck does.
func overWindowsDuck(q string) string {
	const bucket = "time_bucket(INTERVAL '5 seconds', ts, TIMESTAMP '1970-01-01')"
	return strings.ReplaceAll(withoutEmit(q), "TUMBLE(t, ts, INTERVAL '5 seconds')",
		"(SELECT *, "+bucket+" AS window_start, "+bucket+" + INTERVAL '5 seconds' AS window_end FROM t)")
}
