package prop

import "regexp"

var (
	emit        = regexp.MustCompile(` EMIT (ON WATERMARK|IMMEDIATE)$`)
	tumbleStart = regexp.MustCompile(`TUMBLE_START\(ts, (INTERVAL '[^']*')\)`)
	tumbleEnd   = regexp.MustCompile(`TUMBLE_END\(ts, (INTERVAL '[^']*')\)`)
	tumble      = regexp.MustCompile(`TUMBLE\(ts, (INTERVAL '[^']*')\)`)
)

func withoutEmit(q string) string { return emit.ReplaceAllString(q, "") }

// tumbleDuck writes tumbling windows with time_bucket; a row without event time is in the window NULL. DuckDB's buckets of seconds
// start from 2000-01-03, ours from the epoch.
func tumbleDuck(q string) string {
	q = withoutEmit(q)
	q = tumbleStart.ReplaceAllString(q, "time_bucket($1, ts, TIMESTAMP '1970-01-01')")
	q = tumbleEnd.ReplaceAllString(q, "time_bucket($1, ts, TIMESTAMP '1970-01-01') + $1")
	q = tumble.ReplaceAllString(q, "time_bucket($1, ts, TIMESTAMP '1970-01-01')")
	return q
}
