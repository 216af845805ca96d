package prop

import (
	"regexp"
	"strings"
)

// sessions asks for groups by sessions, and for rows with the edges of theirs.
func sessions(emit string) []string {
	return append(crossed("{0} EMIT "+emit, []string{
		"SELECT k, SESSION_START(ts, INTERVAL '2 seconds') AS s, SESSION_END(ts, INTERVAL '2 seconds') AS e, count(*), sum(v) FROM t GROUP BY k, SESSION(ts, INTERVAL '2 seconds')",
		"SELECT SESSION_END(ts, INTERVAL '1 second') AS e, min(v), max(v), count(DISTINCT k) FROM t GROUP BY SESSION(ts, INTERVAL '1 second')",
		"SELECT SESSION_START(ts, INTERVAL '3 seconds') AS s, k, count(*) FROM t WHERE v > 0 GROUP BY k, SESSION(ts, INTERVAL '3 seconds') HAVING count(*) > 1",
		"SELECT k, v, window_start, window_end, count(*) FROM SESSION(t PARTITION BY (k, v), ts, INTERVAL '2 seconds') GROUP BY k, v, window_start, window_end",
	}),
		"SELECT * FROM SESSION(t PARTITION BY k, ts, INTERVAL '2 seconds') EMIT IMMEDIATE",
		"SELECT k, v, window_end FROM SESSION(t PARTITION BY v, ts, INTERVAL '1 second') WHERE k = 'a' OR v = 1 EMIT IMMEDIATE",
		"SELECT n, count(*), max(window_end) FROM (SELECT k, window_start, window_end, count(*) AS n FROM SESSION(t PARTITION BY k, ts, INTERVAL '1 second') GROUP BY k, window_start, window_end) GROUP BY n EMIT IMMEDIATE",
		"SELECT a.k, a.v, b.v FROM SESSION(t PARTITION BY k, ts, INTERVAL '1 second') a JOIN SESSION(t PARTITION BY k, ts, INTERVAL '1 second') b ON a.k = b.k AND a.window_start = b.window_start EMIT IMMEDIATE",
	)
}

var (
	sessionEdge  = regexp.MustCompile(`SESSION_(START|END)\(ts, INTERVAL '[^']*'\)`)
	sessionGroup = regexp.MustCompile(`FROM t( WHERE .*)? GROUP BY (k, )?SESSION\(ts, (INTERVAL '[^']*')\)`)
	sessionTable = regexp.MustCompile(`SESSION\((t|\(.*?\))(?: PARTITION BY \(?([a-z, ]*?)\)?)?, ts, (INTERVAL '[^']*')\)`)
)

var tumbleOffset = regexp.MustCompile(`TUMBLE(_START|_END)?\(ts, (INTERVAL '[^']*'), (INTERVAL '[^']*')\)`)

// offsetDuck writes tumbling windows that are moved on with time_bucket, which takes where they are counted from.
func offsetDuck(q string) string {
	return tumbleOffset.ReplaceAllStringFunc(withoutEmit(q), func(s string) string {
		m := tumbleOffset.FindStringSubmatch(s)
		bucket := "time_bucket(" + m[2] + ", ts, TIMESTAMP '1970-01-01' + " + m[3] + ")"
		if m[1] == "_END" {
			bucket += " + " + m[2]
		}
		return bucket
	})
}

// sessionDuck writes sessions as islands: where the row before is farther away than the gap, another one begins.
func sessionDuck(q string) string {
	q = sessionEdge.ReplaceAllStringFunc(withoutEmit(q), func(s string) string {
		if strings.HasPrefix(s, "SESSION_START") {
			return "window_start"
		}
		return "window_end"
	})
	if m := sessionGroup.FindStringSubmatch(q); m != nil {
		by := ""
		if m[2] != "" {
			by = " PARTITION BY k"
		}
		table := "t"
		if m[1] != "" {
			table = "(SELECT * FROM t" + m[1] + ")"
		}
		q = strings.Replace(q, m[0], "FROM SESSION("+table+by+", ts, "+m[3]+") GROUP BY "+m[2]+"window_start, window_end", 1)
	}
	return sessionTable.ReplaceAllStringFunc(q, func(s string) string {
		m := sessionTable.FindStringSubmatch(s)
		by := "ts IS NULL"
		if m[2] != "" {
			by += ", " + m[2]
		}
		return "(SELECT * EXCLUDE (far, number), min(ts) OVER w AS window_start, max(ts) OVER w + " + m[3] + " AS window_end FROM " +
			"(SELECT *, sum(far) OVER (PARTITION BY " + by + " ORDER BY ts) AS number FROM " +
			"(SELECT *, CASE WHEN ts - lag(ts) OVER (PARTITION BY " + by + " ORDER BY ts) <= " + m[3] + " THEN 0 ELSE 1 END AS far FROM " + m[1] + "))" +
			" WINDOW w AS (PARTITION BY " + by + ", number))"
	})
}
