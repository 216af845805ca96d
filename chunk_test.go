package riverbed

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/riverbed/riverbed/core/errs"
)

// A table whose rows come and go in large chunks, where rows are left out, and small ones, which are made anew, holds what a
// map holds; and so does a view over it.
func TestRowsComeAndGo(t *testing.T) {
	d := openDB(t, "parallelism", "2")
	d.run("CREATE TABLE t (k BIGINT, v BIGINT, s VARCHAR); CREATE MATERIALIZED VIEW m AS SELECT v % 3 AS g, count(*) AS n, sum(k) AS k, max(s) AS s FROM t GROUP BY v % 3")
	r := rand.New(rand.NewPCG(1, 2))
	model := map[int64]int64{}
	next := int64(0)
	insert := func(n int64) {
		d.run(fmt.Sprintf("INSERT INTO t SELECT range, range %% 7, CASE WHEN range %% 5 = 0 THEN NULL ELSE 's' || range END FROM range(%d, %d)", next, next+n))
		for ; n > 0; n-- {
			model[next] = next % 7
			next++
		}
	}
	remove := func(where string, gone func(k, v int64) bool) {
		d.run("DELETE FROM t WHERE " + where)
		for k, v := range model {
			if gone(k, v) {
				delete(model, k)
			}
		}
	}
	check := func(where string, has func(k, v int64) bool) {
		t.Helper()
		var n, sum, text int64
		for k, v := range model {
			if has(k, v) {
				n, sum = n+1, sum+k
				if k%5 != 0 {
					text++
				}
			}
		}
		d.is("SELECT count(*), coalesce(sum(k), 0), count(s), count(DISTINCT rowid) FROM t WHERE "+where, fmt.Sprintf("%d|%d|%d|%d", n, sum, text, n))
	}
	insert(70_000)
	insert(3000)
	kept, seen := 0, 0
	for step := range 30 {
		switch a := r.Int64N(next); step % 6 {
		case 0:
			insert(r.Int64N(3000))
		case 1, 2:
			remove(fmt.Sprintf("k BETWEEN %d AND %d", a, a+2000), func(k, _ int64) bool { return a <= k && k <= a+2000 })
		case 3:
			remove(fmt.Sprintf("k %% 97 = %d", a%97), func(k, _ int64) bool { return k%97 == a%97 })
		case 4:
			d.run("BEGIN")
			d.run(fmt.Sprintf("DELETE FROM t WHERE k > %d", a))
			d.run("INSERT INTO t VALUES (-1, -1, 'x')")
			d.run("ROLLBACK")
		case 5:
			d.run(fmt.Sprintf("UPDATE t SET v = v + 1 WHERE k BETWEEN %d AND %d", a, a+500))
			for k := range model {
				if a <= k && k <= a+500 {
					model[k]++
				}
			}
		}
		check("TRUE", func(_, _ int64) bool { return true })
		check("v = 3", func(_, v int64) bool { return v == 3 })
		check("k > 5000 AND v IN (1, 2) AND (s IS NULL OR s <> 'x')", func(k, v int64) bool { return k > 5000 && (v == 1 || v == 2) })
		check("k IN (SELECT a.k FROM t a JOIN t b ON a.k = b.k + 1)", func(k, _ int64) bool { _, ok := model[k-1]; return ok })
		d.is("SELECT count(*) FROM m FULL JOIN (SELECT v % 3 AS g, count(*) AS n, sum(k) AS k, max(s) AS s FROM t GROUP BY v % 3) q USING (g, n, k, s)", strings.TrimSpace(fmt.Sprint(len(slices.Compact(d.rows("SELECT g FROM m"))))))
		for _, c := range d.cat.Load().get("t").table.snapshot() {
			seen++
			if c.left != nil {
				kept++
			}
		}
	}
	if kept == 0 || kept == seen {
		t.Errorf("of %d chunks %d have rows that are left out", seen, kept)
	}
	d.run("DELETE FROM t")
	d.is("SELECT count(*) FROM t", "0")
	d.is("SELECT count(*) FROM m", "0")
}

// A row that has gone makes no statement fail any more, and is not seen by functions.
func TestRowsThatHaveGoneFailNothing(t *testing.T) {
	d := openDB(t)
	d.run("CREATE TABLE t AS SELECT range AS k, CASE WHEN range = 700 THEN 'x' ELSE CAST(range AS VARCHAR) END AS s FROM range(5000)")
	d.fails("SELECT count(*) FROM t WHERE CAST(s AS BIGINT) >= 0", errs.Data)
	d.run("DELETE FROM t WHERE k = 700")
	if c := d.cat.Load().get("t").table.snapshot()[0]; c.left == nil {
		t.Fatal("the chunk was made anew")
	}
	d.is("SELECT count(*), sum(CAST(s AS BIGINT)) FROM t WHERE CAST(s AS BIGINT) >= 0 AND k > 600", "4398|12316500")
	d.is("SELECT s FROM t WHERE k BETWEEN 699 AND 701 ORDER BY rowid", "699", "701")
	d.run("SET on_error = 'bad'")
	d.is("SELECT count(*) FROM t WHERE CAST(s AS BIGINT) >= 0 AND k > 600", "4398")
	d.is("SELECT count(*) FROM __bad", "0")
}

func TestDeleteTakesRowsOnce(t *testing.T) {
	d := openDB(t)
	d.run("CREATE TABLE t AS SELECT range AS k FROM range(3000); CREATE TABLE u AS SELECT range % 10 AS k FROM range(100)")
	d.is("SELECT count(*) FROM t", "3000")
	d.run("DELETE FROM t USING u WHERE t.k = u.k") // each matches ten times
	d.is("SELECT count(*), min(k) FROM t", "2990|10")
	d.run("DELETE FROM t WHERE k >= 2000")
	d.is("SELECT count(*), max(k) FROM t", "1990|1999")
}
