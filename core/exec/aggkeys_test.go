package exec_test

import (
	"testing"

	"github.com/riverbed/riverbed/core/exec"
	"github.com/riverbed/riverbed/core/spill"
)

// Keys that are functions of others are computed from them; with NULLs, without rows, in parts, and where the values of the
// other key are equal but not alike they must not be.
func TestDerivedKeys(t *testing.T) {
	c := catalog{
		"t":     define(t, "g VARCHAR, k INTEGER, d DOUBLE", "a,1,0", "b,1,-0", "NULL,2,1", "a,NULL,0", "a,1,-0", "NULL,2,NULL"),
		"empty": define(t, "g VARCHAR, k INTEGER, d DOUBLE"),
		"s":     series(t, 300000),
	}
	c["s"].size = 30000
	for _, q := range [][2]string{
		{"SELECT k, k - 1, k * 2, count(*) FROM t GROUP BY k, k - 1, k * 2", "1,0,2,3; 2,1,4,2; NULL,NULL,NULL,1"},
		{"SELECT k - 1, k, count(*) FROM t GROUP BY k - 1, k", "0,1,3; 1,2,2; NULL,NULL,1"},
		{"SELECT 'c', g, count(*) FROM t GROUP BY 1, 2", "c,a,3; c,b,1; c,NULL,2"},
		{"SELECT g, k, upper(g) || k, count(*) FROM t GROUP BY 1, 2, 3", "a,1,A1,2; b,1,B1,1; NULL,2,NULL,2; a,NULL,NULL,1"},
		{"SELECT k, k, count(*) FROM t GROUP BY k, k", "1,1,3; 2,2,2; NULL,NULL,1"},
		{"SELECT k + 1, k + 2, count(*) FROM t GROUP BY 1, 2", "2,3,3; 3,4,2; NULL,NULL,1"},
		{"SELECT 1, 2, count(*) FROM t GROUP BY 1, 2", "1,2,6"},
		{"SELECT 1, 2, count(*) FROM empty GROUP BY 1, 2", ""},
		{"SELECT 1, g, count(*) FROM empty GROUP BY 1, 2", ""},
		{"SELECT 1 / d, count(*) FROM t WHERE d = 0 GROUP BY d, 1 / d ORDER BY 1", "-Inf,2; +Inf,2"},
		{"SELECT k, 10 // (k - 1), count(*) FROM t GROUP BY 1, 2", "error: division by zero"},
		{"SELECT DISTINCT k, k + 1 FROM t", "1,2; 2,3; NULL,NULL"},
		{"SELECT k, k + 1, grouping(k, k + 1), count(*) FROM t GROUP BY ROLLUP (k, k + 1)", "1,2,0,3; 2,3,0,2; NULL,NULL,0,1; 1,NULL,1,3; 2,NULL,1,2; NULL,NULL,1,1; NULL,NULL,3,6"},
		{"SELECT count(*), sum(a), sum(b), sum(n), min(n) FROM (SELECT x // 2 AS a, x // 2 + 5 AS b, count(*) AS n FROM s GROUP BY 1, 2)", "150000,11249925000,11250675000,300000,2"},
		{"SELECT count(*), sum(a), sum(b), min(n), max(n) FROM (SELECT x AS a, x % 1000 AS b, 'k', count(*) AS n FROM s GROUP BY 1, 2, 3)", "300000,44999850000,149850000,1,1"},
	} {
		check(t, c, q[0], q[1])
		e := env(2)
		e.Memory, e.Spill = exec.NewBudget(1), spill.NewDir(t.TempDir())
		checkPlan(t, q[0]+" (spilled)", planned(t, c, q[0]).Root, e, false, q[1])
	}
}
