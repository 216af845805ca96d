package riverbed

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/riverbed/riverbed/core/errs"
)

func TestReturning(t *testing.T) {
	d := openDB(t)
	d.run("CREATE TABLE t (a INTEGER, b VARCHAR DEFAULT 'none', c AS (a * 2)); CREATE MATERIALIZED VIEW m AS SELECT sum(c) AS s FROM t")
	d.is("INSERT INTO t (a) VALUES (1), (2) RETURNING *", "1|none|2", "2|none|4")
	d.is("INSERT INTO t AS x VALUES (3, 'z') RETURNING x.a + 1 AS n, upper(b)", "4|Z")
	d.is("UPDATE t SET a = a + 10 WHERE a > 1 RETURNING a, c", "12|24", "13|26")
	d.is("DELETE FROM t WHERE a = 12 RETURNING b, t.c", "none|24")
	d.is("DELETE FROM t WHERE a = 99 RETURNING a")
	d.is("SELECT s FROM m", "28")
	d.fails("INSERT INTO t VALUES (5, 'x') RETURNING nothing", errs.Schema, "nothing")
	d.fails("INSERT INTO t VALUES (5, 'x') RETURNING (SELECT 1)", errs.Schema, "subquery")
	d.fails("INSERT INTO t VALUES (5, 'x') RETURNING b::INTEGER", errs.Data, "x")
	d.is("SELECT count(*) FROM t", "2") // a RETURNING that fails leaves the table as it was
}

// DML with conflicts and MERGE reaches the views in the step of its statement.
func TestConflictsReachViews(t *testing.T) {
	d := openDB(t)
	d.run("CREATE TABLE t (k INTEGER PRIMARY KEY, v INTEGER); CREATE MATERIALIZED VIEW m AS SELECT count(*) AS n, sum(v) AS s FROM t")
	d.is("INSERT INTO t VALUES (1, 1), (2, 2), (1, 9) ON CONFLICT DO NOTHING", "2")
	d.is("SELECT * FROM m", "2|3")
	d.is("INSERT OR REPLACE INTO t VALUES (1, 10), (3, 30) RETURNING k, v", "1|10", "3|30")
	d.is("SELECT * FROM m", "3|42")
	d.is("MERGE INTO t USING (VALUES (1, 100), (4, 400)) s(k, v) ON t.k = s.k WHEN MATCHED THEN UPDATE SET v = t.v + s.v WHEN NOT MATCHED THEN INSERT VALUES (s.k, s.v) WHEN NOT MATCHED BY SOURCE AND v < 5 THEN DELETE", "3")
	d.has("SELECT * FROM t", "1|110", "3|30", "4|400")
	d.is("SELECT * FROM m", "3|540")
	d.run("BEGIN; MERGE INTO t USING t AS s USING (k) WHEN MATCHED THEN DELETE; ROLLBACK")
	d.is("SELECT * FROM m", "3|540")
	d.fails("INSERT INTO t VALUES (1, 1) ON CONFLICT (v) DO NOTHING", errs.Schema, "no PRIMARY KEY")
	d.run("CREATE TABLE u (a INTEGER)")
	d.fails("INSERT OR IGNORE INTO u VALUES (1)", errs.Schema, "has no PRIMARY KEY or UNIQUE")
}

func TestMerge(t *testing.T) {
	d := openDB(t)
	reset := func() {
		d.run("CREATE OR REPLACE TABLE t (a INTEGER PRIMARY KEY, b INTEGER DEFAULT 7, c INTEGER); INSERT INTO t VALUES (1, 10, 100), (2, 20, 200)")
	}
	for _, c := range []struct {
		text string
		want []string
	}{
		{"USING (VALUES (1, 5, 6), (3, 6, 7)) s(a, b, c) USING (a) WHEN MATCHED THEN UPDATE WHEN NOT MATCHED THEN INSERT WHEN NOT MATCHED BY SOURCE THEN DELETE", []string{"1|5|6", "3|6|7"}},
		{"USING (VALUES (3, 6)) s(c, a) ON t.a = s.a WHEN NOT MATCHED THEN INSERT BY NAME", []string{"1|10|100", "2|20|200", "6|7|3"}},
		{"USING (VALUES (1, 5), (3, 6)) s(x, y) ON a = x WHEN MATCHED AND y > 5 THEN DELETE WHEN MATCHED THEN UPDATE SET b = DEFAULT, c = s.y WHEN NOT MATCHED AND y > 10 THEN INSERT (a) VALUES (x) WHEN NOT MATCHED THEN DO NOTHING", []string{"1|7|5", "2|20|200"}},
	} {
		reset()
		d.run("MERGE INTO t " + c.text)
		d.has("SELECT * FROM t", c.want...)
	}
	reset()
	d.fails("MERGE INTO t USING (SELECT 1 AS a) s ON t.a = s.a WHEN MATCHED THEN ERROR 'not this'", errs.Data, "not this")
	d.fails("MERGE INTO t USING (SELECT 5 AS a) s ON t.a = s.a WHEN NOT MATCHED THEN INSERT (a) VALUES (2)", errs.Data, "duplicate key")
	d.fails("MERGE INTO t USING (SELECT 5 AS a) s ON t.a = s.a WHEN NOT MATCHED THEN INSERT (a, nothing) VALUES (2, 1)", errs.Schema, "nothing")
	d.has("SELECT * FROM t", "1|10|100", "2|20|200")
}

func TestGeneratedColumnsAndChecks(t *testing.T) {
	d := openDB(t)
	d.fails("CREATE TABLE t (a AS (b), b AS (a))", errs.Schema, "")
	d.fails("CREATE TABLE t (a INTEGER AS (b + 1), b INTEGER AS (a + 1))", errs.Schema, "computed of itself")
	d.fails("CREATE TABLE t (a INTEGER, CHECK (a > (SELECT 1)))", errs.Schema, "subquery")
	d.fails("CREATE TABLE t (a INTEGER, CHECK (nothing > 1))", errs.Schema, "nothing")
	d.run("CREATE TABLE t (b AS (c + 1), c AS (a + 1), a INTEGER NOT NULL CHECK (a % 2 = 0)); INSERT INTO t VALUES (2), (4)")
	d.is("SELECT * FROM t ORDER BY a", "4|3|2", "6|5|4")
	d.fails("INSERT INTO t VALUES (1)", errs.Data, "CHECK (a % 2 = 0)")
	d.fails("UPDATE t SET c = 1", errs.Schema, "is generated")
	d.fails("INSERT INTO t (c) VALUES (1)", errs.Schema, "is generated")
	d.is("UPDATE t SET a = a * 10", "2")
	d.is("SELECT sum(b) FROM t", "64")
}

// Whatever statements do to a table, a view over it is its query.
func TestViewsFollowAllStatements(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 7))
		d := openDB(t)
		d.run("CREATE TABLE t (k INTEGER PRIMARY KEY, v INTEGER, w AS (v * 2)); CREATE MACRO twice(x) AS x + x")
		query := "SELECT v % 3 AS g, count(*) AS n, sum(twice(w)) AS s, max(k) AS m FROM t GROUP BY v % 3"
		d.run("CREATE MATERIALIZED VIEW m AS " + query)
		n := func() string { return strconv.Itoa(r.IntN(6)) }
		for range 30 {
			text := []string{
				"INSERT INTO t VALUES (" + n() + ", " + n() + ")",
				"INSERT OR REPLACE INTO t VALUES (" + n() + ", " + n() + "), (" + n() + ", " + n() + ")",
				"INSERT INTO t VALUES (" + n() + ", " + n() + "), (" + n() + ", NULL) ON CONFLICT (k) DO UPDATE SET v = t.v + excluded.v WHERE excluded.v > 1",
				"INSERT OR IGNORE INTO t VALUES (" + n() + ", " + n() + ")",
				"UPDATE t SET v = v + 1 WHERE k > " + n() + " RETURNING w",
				"UPDATE t SET k = k + 1 WHERE k = " + n(),
				"DELETE FROM t WHERE v = " + n() + " RETURNING *",
				"MERGE INTO t USING (SELECT " + n() + " AS k, " + n() + " AS v) s USING (k) WHEN MATCHED AND s.v > 3 THEN DELETE WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT (k, v) VALUES (s.k, s.v) WHEN NOT MATCHED BY SOURCE AND t.v > 4 THEN UPDATE SET v = 0",
				"BEGIN; DELETE FROM t; ROLLBACK",
			}[r.IntN(9)]
			if q, err := d.Query(t.Context(), text, nil); err == nil && q != nil {
				if _, err := q.all(t.Context()); err != nil {
					t.Fatal(err)
				}
			} else if err != nil && !strings.Contains(err.Error(), "duplicate key") {
				t.Fatalf("%s: %v", text, err)
			}
			d.has("SELECT * FROM m", d.rows(query)...)
			if t.Failed() {
				t.Fatalf("seed %d, behind %s", seed, text)
			}
		}
	}
}
