package exec_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/riverbed/riverbed/core/exec"
	"github.com/riverbed/riverbed/core/spill"
)

// Calls that share state give what each gives alone.
func TestSharedSums(t *testing.T) {
	c := catalog{
		"t": define(t, "g VARCHAR, s SMALLINT, i INTEGER, v BIGINT, d DOUBLE",
			"a,1,10,100,0.5", "b,-2,NULL,20,NULL", "a,NULL,30,NULL,0.25", "NULL,32000,5,9223372036854775000,1", "b,7,-7,-9223372036854775000,NaN", "a,0,0,0,-0.25"),
		"empty": define(t, "g VARCHAR, s SMALLINT, i INTEGER, v BIGINT, d DOUBLE"),
	}
	calls := []string{
		"sum(s)", "sum(s + 1)", "sum(s - 5)", "sum(7 + s)", "sum(s + 100000)", "avg(s + 3)", "avg(s)", "sum(i)", "avg(i + 1)", "sum(i - 2000000000)", "sum(v)", "sum(v + 800)",
		"avg(v - 1)", "sum(s + 1) FILTER (WHERE i > 0)", "avg(s) FILTER (WHERE i > 0)", "sum(DISTINCT s + 1)", "avg(d)", "sum(d)", "count(s + 1)",
		"stddev(d)", "var_pop(d)", "var_samp(v)", "corr(s, i)", "regr_slope(s, i)", "covar_pop(s, i)", "sum(s) + 0 * sum(s + 1)", "sum(-s)", "sum(5 - s)",
	}
	for _, from := range []string{"t", "empty", "t WHERE g = 'a'"} {
		for _, grouped := range []bool{false, true} {
			ask := func(list string) string {
				if grouped {
					return "SELECT g, " + list + " FROM " + from + " GROUP BY g"
				}
				return "SELECT 'all', " + list + " FROM " + from
			}
			var each [][]string
			for _, call := range calls {
				rows, err := run(t.Context(), planned(t, c, ask(call)).Root, env(1))
				if err != nil {
					t.Fatalf("%s: %v", call, err)
				}
				slices.Sort(rows)
				each = append(each, rows)
			}
			q := planned(t, c, ask(strings.Join(calls, ", ")))
			for _, workers := range []int{1, 3} {
				for _, limit := range []int64{0, 1} {
					e := env(workers)
					e.Memory, e.Spill = exec.NewBudget(limit), spill.NewDir(t.TempDir())
					rows, err := run(t.Context(), q.Root, e)
					if err != nil {
						t.Fatal(err)
					}
					slices.Sort(rows)
					for r, row := range rows {
						got := strings.Split(row, ",")
						for k, call := range calls {
							if want := strings.SplitN(each[k][r], ",", 2)[1]; got[k+1] != want {
								t.Errorf("%s of %s, grouped %t, limit %d: %s in row %q, alone %s", call, from, grouped, limit, got[k+1], row, want)
							}
						}
					}
				}
			}
		}
	}
}

// An x + c that leaves its type stays an error of the first row where it does.
func TestSharedSumsOverflow(t *testing.T) {
	c := catalog{"t": define(t, "s SMALLINT, i INTEGER, v BIGINT", "1,1,1", "32000,2147483000,9223372036854775000", "32001,5,-9223372036854775000", "NULL,NULL,NULL")}
	c["t"].size = 2
	for _, q := range [][2]string{
		{"sum(s + 766), sum(s)", "66300"}, // 32767 is the greatest
		{"sum(s + 767)", "error: overflow of SMALLINT in 32001 + 767"},
		{"sum(s + 767), sum(s + 1), sum(s + 800)", "error: overflow of SMALLINT in 32000 + 800"},
		{"sum(i + 647)", "2147484947"},
		{"sum(i + 648)", "error: overflow of INTEGER in 2147483000 + 648"},
		{"sum(i + 100000000000)", "302147483006"},
		{"sum(v + 807)", "2422"},
		{"sum(v + 808)", "error: overflow of BIGINT in 9223372036854775000 + 808"},
		{"sum(v - 808)", "-2423"},
		{"sum(v - 809)", "error: overflow of BIGINT in -9223372036854775000 - 809"},
		{"sum(v + 808) FILTER (WHERE v < 0)", "error: overflow of BIGINT"},
		{"sum(v + 808), sum(10 // (i - 1))", "error: division by zero"}, // in the row before
	} {
		const from = " FROM t"
		want := q[1]
		if !strings.HasPrefix(want, "error: ") {
			rows, err := run(t.Context(), planned(t, c, "SELECT "+q[0]+from).Root, env(1))
			if err != nil || len(rows) != 1 || strings.Split(rows[0], ",")[0] != want {
				t.Errorf("%s: %q, %v, want %s", q[0], rows, err, want)
			}
			continue
		}
		if _, err := run(t.Context(), planned(t, c, "SELECT "+q[0]+from).Root, env(1)); err == nil || !strings.Contains(fmt.Sprint(err), want[len("error: "):]) {
			t.Errorf("%s: %v, want %s", q[0], err, want)
		}
	}
}
