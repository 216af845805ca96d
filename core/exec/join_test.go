package exec_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/riverbed/riverbed/core/exec"
	"github.com/riverbed/riverbed/core/plan"
)

func joinTables(t testing.TB) catalog {
	return catalog{
		"l":     define(t, "a BIGINT, p VARCHAR", "1,x", "2,y", "NULL,z", "2,w", "5,v", "7,u", "8,t"),
		"r":     define(t, "b BIGINT, q BIGINT", "2,20", "NULL,30", "2,21", "1,10", "9,90"),
		"u":     define(t, "b BIGINT, q BIGINT", "2,20", "1,10", "9,90"),
		"empty": define(t, "b BIGINT, q BIGINT"),
	}
}

func TestJoins(t *testing.T) {
	c := joinTables(t)
	for _, q := range [][2]string{
		{"SELECT p, q FROM l JOIN r ON a = b", "x,10; y,20; y,21; w,20; w,21"},
		{"SELECT p, q FROM l JOIN r ON a = b AND q > 20", "y,21; w,21"},
		{"SELECT p, q FROM l JOIN r ON a IS NOT DISTINCT FROM b", "x,10; y,20; y,21; w,20; w,21; z,30"},
		{"SELECT p, q FROM l JOIN empty ON a = b", ""},
		{"SELECT p, q FROM l JOIN r ON a > q", ""},
		{"SELECT count(*) FROM l, r", "35"},
		{"SELECT p, q FROM l LEFT JOIN r ON a = b", "x,10; y,20; y,21; w,20; w,21; z,NULL; v,NULL; u,NULL; t,NULL"},
		{"SELECT p, q FROM l LEFT JOIN r ON a = b AND q > 20", "x,NULL; y,21; w,21; z,NULL; v,NULL; u,NULL; t,NULL"},
		{"SELECT p, q FROM l LEFT JOIN empty ON a = b WHERE a < 3", "x,NULL; y,NULL; w,NULL"},
		{"SELECT p, q FROM l RIGHT JOIN r ON a = b", "x,10; y,20; y,21; w,20; w,21; NULL,30; NULL,90"},
		{"SELECT p, q FROM l RIGHT JOIN r ON a = b AND q > 20", "y,21; w,21; NULL,10; NULL,20; NULL,30; NULL,90"},
		{"SELECT p, q FROM l FULL JOIN r ON a = b AND q > 20", "x,NULL; y,21; w,21; z,NULL; v,NULL; u,NULL; t,NULL; NULL,10; NULL,20; NULL,30; NULL,90"},
		{"SELECT p, q FROM l FULL JOIN r ON a = b", "x,10; y,20; y,21; w,20; w,21; z,NULL; v,NULL; u,NULL; t,NULL; NULL,30; NULL,90"},
		{"SELECT p FROM l WHERE EXISTS (SELECT 1 FROM r WHERE a = b)", "x; y; w"},
		{"SELECT p FROM l WHERE NOT EXISTS (SELECT 1 FROM r WHERE a = b)", "z; v; u; t"},
		{"SELECT p FROM l WHERE EXISTS (SELECT 1 FROM r WHERE a = b AND q > a * 10)", "y; w"},
		{"SELECT p FROM l WHERE NOT EXISTS (SELECT 1 FROM r WHERE a = b AND q > a * 10)", "x; z; v; u; t"},
		{"SELECT p FROM l WHERE NOT EXISTS (SELECT 1 FROM empty WHERE a = b AND q > 1)", "x; y; z; w; v; u; t"},
		{"SELECT p FROM l WHERE a IN (SELECT b FROM r)", "x; y; w"},
		{"SELECT p FROM l WHERE a NOT IN (SELECT b FROM r)", ""}, // r has a NULL
		{"SELECT p FROM l WHERE a NOT IN (SELECT b FROM r WHERE b IS NOT NULL)", "v; u; t"},
		{"SELECT p FROM l WHERE a NOT IN (SELECT b FROM empty)", "x; y; z; w; v; u; t"},
		{"SELECT p, a IN (SELECT b FROM r) FROM l", "x,true; y,true; w,true; z,NULL; v,NULL; u,NULL; t,NULL"},
		{"SELECT p, a IN (SELECT b FROM u) FROM l", "x,true; y,true; w,true; z,NULL; v,false; u,false; t,false"},
		{"SELECT p, a IN (SELECT b FROM empty) FROM l", "x,false; y,false; w,false; z,false; v,false; u,false; t,false"},
		{"SELECT p, (a, 20) IN (SELECT b, q FROM r) FROM l", "x,false; y,true; w,true; z,NULL; v,false; u,false; t,false"},
		{"SELECT p, (a, 30) IN (SELECT b, q FROM r) FROM l", "x,NULL; y,NULL; w,NULL; z,NULL; v,NULL; u,NULL; t,NULL"},
		{"SELECT p, a IN (SELECT b FROM r WHERE q > 10 * a) FROM l", "x,NULL; y,true; w,true; z,false; v,false; u,false; t,false"},
		{"SELECT p, (SELECT q FROM u WHERE a = b) FROM l", "x,10; y,20; w,20; z,NULL; v,NULL; u,NULL; t,NULL"},
		{"SELECT p, (SELECT q FROM r WHERE a = b) FROM l", "error: more than one row"},
		{"SELECT p, (SELECT max(q) FROM r WHERE a = b) FROM l", "x,10; y,21; w,21; z,NULL; v,NULL; u,NULL; t,NULL"},
	} {
		check(t, c, q[0], q[1])
	}
}

// The two forms of semi and anti joins give the same rows in the same order.
func TestBuildLeft(t *testing.T) {
	c := joinTables(t)
	for _, where := range []string{
		"EXISTS (SELECT 1 FROM r WHERE a = b)", "NOT EXISTS (SELECT 1 FROM r WHERE a = b)",
		"EXISTS (SELECT 1 FROM r WHERE a = b AND q > a * 10)", "NOT EXISTS (SELECT 1 FROM r WHERE a = b AND q > a * 10)",
		"EXISTS (SELECT 1 FROM empty WHERE a = b)", "NOT EXISTS (SELECT 1 FROM empty WHERE a = b)",
		"EXISTS (SELECT 1 FROM r WHERE a IS NOT DISTINCT FROM b)",
	} {
		for _, from := range []string{"l", "(SELECT * FROM l WHERE a > 100) l", "(SELECT * FROM l LIMIT 4) l"} {
			root := planned(t, c, "SELECT p FROM "+from+" WHERE "+where).Root
			set := func(left bool) plan.Node {
				n := 0
				out := plan.Transform(root, func(n_ plan.Node) plan.Node {
					if j, ok := n_.(*plan.Join); ok && (j.Kind == plan.Semi || j.Kind == plan.Anti) {
						cp := *j
						cp.BuildLeft = left
						n++
						return &cp
					}
					return n_
				})
				if n == 0 && from == "l" && !strings.Contains(where, "empty") {
					t.Fatalf("%s: no semi or anti join in the plan", where)
				}
				return out
			}
			rows, err := run(t.Context(), set(false), env(1))
			if err != nil {
				t.Fatal(err)
			}
			for _, workers := range []int{1, 3} {
				for _, narrow := range []bool{false, true} {
					c["l"].narrow, c["r"].narrow = narrow, narrow
					name := fmt.Sprintf("%s FROM %s (%d workers, narrow %t)", where, from, workers, narrow)
					checkPlan(t, name, set(true), env(workers), true, strings.Join(rows, "; "))
				}
			}
		}
	}
}

// A build side of several thousand rows on several workers: right and full joins find exactly the rows nobody matched.
func TestUnmatchedAcrossWorkers(t *testing.T) {
	c := catalog{"s": series(t, 5000), "e": series(t, 5000)}
	c["s"].size, c["e"].size = 70, 70
	check(t, c, "SELECT count(*), count(s.x), sum(e.x) FROM (SELECT x FROM s WHERE x % 3 = 0) s RIGHT JOIN e ON s.x = e.x", "5000,1667,12497500")
	check(t, c, "SELECT count(*), count(s.x), count(e.x) FROM (SELECT x * 2 AS x FROM s) s FULL JOIN e ON s.x = e.x", "7500,5000,5000")
}

// A set of join keys reaches the scan through projections, aggregates and other joins, and changes nothing.
func TestNarrowedScans(t *testing.T) {
	c := catalog{"s": series(t, 3000), "few": define(t, "k BIGINT, n VARCHAR", "7,a", "2001,b", "NULL,c", "9999,d")}
	c["s"].size = 100
	for _, q := range []struct {
		text, want string
		most       int64 // rows that s hands out
	}{
		{"SELECT n, x FROM s JOIN few ON x = k", "a,7; b,2001", 2},
		{"SELECT n, y FROM (SELECT x + 1 AS y FROM s) JOIN few ON y = k", "a,7; b,2001", 3000},
		{"SELECT n, cnt FROM (SELECT x AS g, count(*) AS cnt FROM s GROUP BY x) JOIN few ON g = k", "a,1; b,1", 2},
		{"SELECT n, cnt FROM (SELECT x % 50 AS g, count(*) AS cnt FROM s GROUP BY x % 50) JOIN few ON g = k", "a,60", 3000}, // % may fail
		{"SELECT n, s2.x FROM s JOIN s AS s2 ON s.x = s2.x JOIN few ON s.x = k", "a,7; b,2001", 3002},
		{"SELECT n, s2.x FROM s LEFT JOIN s AS s2 ON s.x = s2.x + 2995 JOIN few ON s.x = k", "a,NULL; b,NULL", 3002},
		{"SELECT count(*) FROM s WHERE x IN (SELECT k FROM few)", "2", 2},
		{"SELECT count(*) FROM s JOIN s AS s2 ON s.x = s2.x", "3000", 6000},
		// by one of two keys, the other a text or an expression
		{"SELECT n, x FROM s JOIN few ON x = k AND x::VARCHAR || '' = k::VARCHAR", "a,7; b,2001", 2},
		{"SELECT n, x FROM s JOIN few ON x = k AND x - 7 = k - 7", "a,7; b,2001", 2},
	} {
		check(t, c, q.text, q.want)
		c["s"].kept.Store(0) // which narrows now
		checkPlan(t, q.text, planned(t, c, q.text).Root, env(1), false, q.want)
		if n := c["s"].kept.Load(); n > q.most {
			t.Errorf("%s\nread %d rows, want at most %d", q.text, n, q.most)
		}
	}
}

// A scan drops the rows that no join wants itself where the relation hands out its batches whole, with and without a filter
// of its own.
func TestNarrowedBehindRelation(t *testing.T) {
	c := catalog{"s": series(t, 3000), "few": define(t, "k BIGINT, n VARCHAR", "7,a", "2001,b", "NULL,c", "9999,d")}
	c["s"].size = 100
	for _, q := range []struct {
		text, want string
		most       int64 // rows that leave the scan of s
	}{
		{"SELECT n, x FROM s JOIN few ON x = k", "a,7; b,2001", 2},
		{"SELECT n, x FROM s JOIN few ON x = k WHERE x BETWEEN 0 AND 1999", "a,7", 1},
		{"SELECT n, cnt FROM (SELECT x AS g, count(*) AS cnt FROM s WHERE x > 6 GROUP BY x) JOIN few ON g = k", "a,1; b,1", 2},
		{"SELECT count(*) FROM (SELECT x FROM s LIMIT 100) s JOIN few ON x = k", "1", 3000},
	} {
		root, e := planned(t, c, q.text).Root, env(1)
		e.Profile = &exec.Profile{}
		checkPlan(t, q.text, root, e, false, q.want)
		plan.Walk(root, func(n plan.Node) bool {
			if scan, ok := n.(*plan.Scan); ok && scan.Source.Name == "s" {
				if rows := e.Profile.Of(scan).Rows.Load(); rows > q.most {
					t.Errorf("%s\nthe scan gave %d rows, want at most %d", q.text, rows, q.most)
				}
			}
			return true
		})
	}
}
