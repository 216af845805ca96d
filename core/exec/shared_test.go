package exec_test

import (
	"testing"

	"github.com/riverbed/riverbed/core/exec"
	"github.com/riverbed/riverbed/core/plan"
)

// What stands in a query twice is read once, however it is read.
func TestShared(t *testing.T) {
	c := catalog{"s": series(t, 3000), "few": define(t, "k BIGINT, n VARCHAR", "7,a", "2001,b", "NULL,c", "9999,d")}
	c["s"].size = 100
	const with = "WITH g AS (SELECT x - x % 30 AS k, count(*) AS n, sum(x) AS t FROM s GROUP BY k) "
	for _, q := range []struct {
		text, want string
	}{
		{"SELECT count(*), sum(a.n), max(b.t) FROM g a JOIN g b ON a.k = b.k", "100,3000,89535"},
		{"SELECT k, t FROM g WHERE t = (SELECT max(t) + 0 FROM g)", "2970,89535"},
		{"SELECT count(*), sum(k) FROM (SELECT * FROM g UNION ALL SELECT * FROM g UNION ALL SELECT * FROM g)", "300,445500"},
		{"SELECT few.n, g.n FROM few JOIN g ON few.k - few.k % 30 = g.k UNION ALL SELECT 'all', count(*) FROM g", "a,30; b,30; all,100"},
		{"(SELECT k FROM g ORDER BY t DESC LIMIT 2) UNION ALL (SELECT k FROM g ORDER BY t DESC LIMIT 2)", "2970; 2940; 2970; 2940"},
		{"SELECT a.k FROM g a LEFT JOIN g b ON a.k = b.k + 1 WHERE a.k = 30 AND b.k IS NULL", "30"},
	} {
		check(t, c, with+q.text, q.want)
		c["s"].handed.Store(0)
		root := planned(t, c, with+q.text).Root
		checkPlan(t, q.text, root, env(2), false, q.want)
		shared := false
		seen := map[plan.Node]bool{}
		plan.Walk(root, func(n plan.Node) bool {
			shared = shared || seen[n]
			seen[n] = true
			return true
		})
		if n := c["s"].handed.Load(); shared && n != 30 {
			t.Errorf("%s\nread %d morsels, want 30", q.text, n)
		} else if !shared && n == 30 {
			t.Errorf("%s\nshares nothing, so it tests nothing", q.text)
		}
	}
}

// A parent that reads nothing of what is shared leaves the others theirs, and nothing behind.
func TestSharedUnread(t *testing.T) {
	c := catalog{"s": series(t, 3000), "none": define(t, "k BIGINT")}
	const text = "WITH g AS (SELECT x, count(*) AS n FROM s GROUP BY x) SELECT count(*) FROM g UNION ALL SELECT count(*) FROM g JOIN none ON x = k"
	for _, text := range []string{text, text + " LIMIT 1", text + " LIMIT 0"} {
		e := env(3)
		e.Memory = exec.NewBudget(1 << 30)
		r, err := exec.Run(t.Context(), planned(t, c, text).Root, e, nil)
		if err != nil {
			t.Fatal(err)
		}
		for r.Next() {
		}
		if r.Release(); r.Err() != nil || e.Memory.Used() != 0 {
			t.Errorf("%s: %v, %d bytes left", text, r.Err(), e.Memory.Used())
		}
	}
}
