package exec_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/riverbed/riverbed/core/exec"
	"github.com/riverbed/riverbed/core/spill"
)

// Hopping windows are as many tumbling ones, each a slide later: where slices gather many rows and where few, with NULLs for
// times, keys and values, before 1970, by several workers, and when there is too little memory.
func TestSlices(t *testing.T) {
	c := catalog{"s": series(t, 24_000), "small": series(t, 900), "empty": series(t, 0)}
	c["s"].size = 1500
	const calls = "count(*), sum(v), avg(v), min(v), sum(v * 0.1::DOUBLE), avg(v + 1), bool_or(v > 7), count(*) FILTER (WHERE v % 2 = 0)"
	for _, in := range []struct{ from, ts, keys string }{
		{"s", "(x // 60 - 100) * INTERVAL '1 second'", "k"},                                        // many rows of each key in a slice
		{"s", "(x % 300) * INTERVAL '7 seconds'", "k"},                                             // the same, out of order
		{"s", "x * INTERVAL '3 seconds'", "k"},                                                     // slices of a row or two
		{"s", "(x // 4) * INTERVAL '1 second'", "x % 3"},                                           // many slices: merged on the way
		{"s", "CASE WHEN x % 3 > 0 THEN (x // 50) * INTERVAL '1 second' END", "k"},                 // many rows without a time
		{"s", "CASE WHEN x > 12000 THEN (x // 50) * INTERVAL '1 second' END", "k, x % 2"},          // at first no time
		{"s", "CASE WHEN x < 3000 THEN x ELSE x // 50 END * INTERVAL '1 second'", "k"},             // few rows in a slice at first
		{"s", "(x // 60) * INTERVAL '1 second'", "(x % 1000)::DOUBLE * 0.0"},                       // zeros
		{"s", "(x // 60) * INTERVAL '1 second'", "CASE WHEN x % 7 > 0 THEN 'key ' || (x % 9) END"}, // texts
		{"small", "x * INTERVAL '1 second'", "k"},
		{"empty", "x * INTERVAL '1 second'", "k"},
	} {
		rows := fmt.Sprintf("(SELECT x, x %% 5 AS k, CASE WHEN x %% 11 > 0 THEN x %% 13 END AS v, TIMESTAMP '1970-01-01 00:00:00' + %s AS ts FROM %s)", in.ts, in.from)
		for _, hop := range [][2]int{{2, 6}} {
			slide, size := hop[0], hop[1]
			text := fmt.Sprintf("SELECT %s, HOP_START(ts, INTERVAL '%[2]d seconds', INTERVAL '%[3]d seconds') AS b, HOP_END(ts, INTERVAL '%[2]d seconds', INTERVAL '%[3]d seconds') AS e, %[4]s FROM %[5]s GROUP BY %[1]s, HOP(ts, INTERVAL '%[2]d seconds', INTERVAL '%[3]d seconds')",
				in.keys, slide, size, calls, rows)
			var each []string
			for late := 0; late < size; late += slide {
				each = append(each, fmt.Sprintf("SELECT *, epoch_us(ts - INTERVAL '%d seconds')::BIGINT AS u, %[1]d AS late FROM %s WHERE ts IS NOT NULL", late, rows))
			}
			want := expected(t, c, in.keys, size, calls, each, rows)
			for _, limit := range []int64{0, 1 << 20} {
				e := env(3)
				e.Memory, e.Spill = exec.NewBudget(limit), spill.NewDir(t.TempDir())
				got, err := run(t.Context(), planned(t, c, text).Root, e)
				if err != nil {
					t.Fatalf("%s, limit %d: %v", text, limit, err)
				}
				if slices.Sort(got); !slices.Equal(got, want) {
					t.Errorf("%s, limit %d: %d rows %.300q, want %d rows %.300q", text, limit, len(got), strings.Join(got, "; "), len(want), strings.Join(want, "; "))
				}
			}
		}
	}
}

// expected answers with tumbling windows.
func expected(t *testing.T, c catalog, keys string, size int, calls string, each []string, rows string) []string {
	t.Helper()
	floor := fmt.Sprintf("(u - ((u %% %[1]d) + %[1]d) %% %[1]d)", size*1_000_000)
	start := fmt.Sprintf("make_timestamp(%s + late * 1000000)", floor)
	text := fmt.Sprintf("SELECT %s, %s AS b, %[2]s + INTERVAL '%[3]d seconds' AS e, %[4]s FROM (%[5]s) GROUP BY ALL UNION ALL SELECT %[1]s, NULL::TIMESTAMP, NULL::TIMESTAMP, %[4]s FROM %[6]s WHERE ts IS NULL GROUP BY %[1]s",
		keys, start, size, calls, strings.Join(each, " UNION ALL "), rows)
	want, err := run(t.Context(), planned(t, c, text).Root, env(1))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	slices.Sort(want)
	return want
}
