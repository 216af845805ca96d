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
