package exec_test

import (
	"slices"
	"testing"

	"github.com/riverbed/riverbed/core/exec"
	"github.com/riverbed/riverbed/core/spill"
)

// A DISTINCT gives what the same aggregate gives over SELECT DISTINCT: of words and of texts, few and many values, few and many
// groups, with NULLs, without keys, by several workers, and when there is too little memory.
func TestDistinctArguments(t *testing.T) {
	c := catalog{"s": series(t, 70000), "small": series(t, 5000), "empty": series(t, 0)}
	c["s"].size = 10000
	for _, v := range []string{
		"x % 7", "x", "x // 3", "CASE WHEN x % 3 > 0 THEN x % 11 END", "CAST(NULL AS BIGINT)", "(x % 100)::TINYINT",
		"x % 2 = 0", "DATE '2020-01-01' + (x % 40)::INTEGER", "(x % 1000)::VARCHAR", "(x % 4) * 0.5::DOUBLE",
	} {
		for _, k := range []string{"", "x % 10", "(x % 5)::VARCHAR", "x // 2", "CASE WHEN x % 3 > 0 THEN x % 700 END"} {
			for _, from := range []string{"s", "small", "empty"} {
				calls, over := "count(DISTINCT "+v+"), max(DISTINCT "+v+"), count(*)", "count(v), max(v), sum(n)"
				text := "SELECT " + calls + " FROM " + from
				other := "SELECT " + over + " FROM (SELECT " + v + " AS v, count(*) AS n FROM " + from + " GROUP BY 1)"
				if k != "" {
					text = "SELECT " + k + ", " + calls + " FROM " + from + " GROUP BY 1"
					other = "SELECT k, " + over + " FROM (SELECT " + k + " AS k, " + v + " AS v, count(*) AS n FROM " + from + " GROUP BY 1, 2) GROUP BY 1"
				} else if from == "empty" {
					other = "SELECT 0, NULL, 0"
				}
				want, err := run(t.Context(), planned(t, c, other).Root, env(1))
				if err != nil {
					t.Fatalf("%s: %v", other, err)
				}
				slices.Sort(want)
				for _, limit := range []int64{0, 1, 8 << 20} {
					if limit == 1 && from == "s" { // the values of one group must have room
						continue
					}
					e := env(3)
					e.Memory, e.Spill = exec.NewBudget(limit), spill.NewDir(t.TempDir())
					got, err := run(t.Context(), planned(t, c, text).Root, e)
					if err != nil {
						t.Fatalf("%s, limit %d: %v", text, limit, err)
					}
					if slices.Sort(got); !slices.Equal(got, want) {
						t.Errorf("%s, limit %d: %d rows %.200q, want %d rows %.200q", text, limit, len(got), got, len(want), want)
					}
				}
			}
		}
	}
}

// The values of a few groups that have no room are parted by themselves, since parting the groups would leave as many together:
// of words, of texts, of several DISTINCTs and sets, of groups that stay few and of those that become many.
func TestDistinctOfFewGroups(t *testing.T) {
	c := catalog{"s": series(t, 300000)}
	c["s"].size = 30000
	for _, text := range []string{
		"SELECT x % 3, count(DISTINCT x), max(x), count(*) FROM s GROUP BY 1",
		"SELECT 7 + 0 * x, count(DISTINCT x) FROM s GROUP BY 1",
		"SELECT (x % 2)::VARCHAR, x % 3, count(DISTINCT x), sum(DISTINCT x // 2) FILTER (WHERE x % 7 > 0), count(DISTINCT (x // 4)::VARCHAR) FROM s GROUP BY 1, 2",
		"SELECT CASE WHEN x < 200000 THEN -1 ELSE x // 2 END, count(DISTINCT x), sum(x) FROM s GROUP BY 1",
		"SELECT CASE WHEN x > 100000 THEN -1 ELSE x // 2 END, count(DISTINCT x), count(DISTINCT x % 90000) FROM s GROUP BY 1",
		"SELECT x % 2 AS a, x // 40000 AS b, count(DISTINCT x), sum(x) FROM s GROUP BY ROLLUP (a, b)",
		"SELECT x % 2 AS a, x // 2 AS b, count(DISTINCT x), sum(x) FROM s GROUP BY GROUPING SETS ((a), (b), ())",
		"SELECT x // 3, count(DISTINCT x // 5) FROM s GROUP BY 1",
	} {
		want, err := run(t.Context(), planned(t, c, text).Root, env(1))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		slices.Sort(want)
		for _, workers := range []int{1, 3} {
			e := env(workers)
			e.Memory, e.Spill = exec.NewBudget(6<<20), spill.NewDir(t.TempDir())
			got, err := run(t.Context(), planned(t, c, text).Root, e)
			if err != nil {
				t.Errorf("%s, %d workers: %v", text, workers, err)
				continue
			}
			if slices.Sort(got); !slices.Equal(got, want) {
				t.Errorf("%s, %d workers: %d rows %.200q, want %d rows %.200q", text, workers, len(got), got, len(want), want)
			}
			if used := e.Memory.Used(); used != 0 {
				t.Errorf("%s, %d workers: %d bytes stay booked", text, workers, used)
			}
		}
	}
}
