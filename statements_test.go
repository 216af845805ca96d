package riverbed

import (
	"context"
	"testing"

	"github.com/riverbed/riverbed/core/errs"
)

func TestInsert(t *testing.T) {
	d := openDB(t)
	d.run("CREATE TABLE t (a INTEGER NOT NULL, b VARCHAR DEFAULT 'none', c DOUBLE)")
	d.is("INSERT INTO t VALUES (1, 'x', 1.5), (2, DEFAULT, DEFAULT)", "2")
	d.is("INSERT INTO t (c, a) VALUES (3, 3)", "1")
	d.is("INSERT INTO t BY NAME SELECT 4 AS A, 'z' AS b", "1")
	d.is("SELECT * FROM t ORDER BY a", "1|x|1.5", "2|none|NULL", "3|none|3.0", "4|z|NULL")
	d.is("WITH s AS (SELECT 5 AS n) INSERT INTO t SELECT n, 'w', n FROM s", "1")
	d.is("INSERT INTO t SELECT a + 100, b, c FROM t", "5") // reads the table as it was
	d.is("SELECT count(*), max(rowid) FROM t", "10|9")
	for _, c := range []struct {
		text string
		kind errs.Kind
		says string
	}{
		{"INSERT INTO t VALUES (1, 'x')", errs.Schema, "3 columns"},
		{"INSERT INTO t (a, a) VALUES (1, 2)", errs.Schema, "named twice"},
		{"INSERT INTO t (a, bb) VALUES (1, 2)", errs.Schema, `did you mean "b"?`},
		{"INSERT INTO t (a, b) VALUES (1)", errs.Schema, "names 2 columns"},
		{"INSERT INTO t BY NAME SELECT 1 AS a, 2 AS a", errs.Schema, "named twice"},
		{"INSERT INTO t BY NAME SELECT 1 AS x", errs.Schema, `no column "x"`},
		{"INSERT INTO t DEFAULT VALUES", errs.Data, "NOT NULL"},
		{"INSERT INTO t VALUES (7, 'x', 1), (NULL, 'x', 1)", errs.Data, `column "a" of table "t" is NOT NULL`},
		{"INSERT INTO t VALUES ('seven', 'x', 1)", errs.Data, `seven`},
		{"INSERT INTO tt VALUES (1)", errs.Schema, `did you mean "t"?`},
		{"INSERT INTO other.t VALUES (1, 'x', 1)", errs.Schema, `no schema or catalog "other"`},
	} {
		d.fails(c.text, c.kind, c.says, "line 1")
	}
	d.is("SELECT count(*) FROM t", "10") // a statement that failed left nothing
	d.run("CREATE TABLE r (x DOUBLE DEFAULT random(), y INTEGER)")
	d.run("INSERT INTO r (y) VALUES (1), (2)")
	d.is("SELECT count(DISTINCT x) FROM r", "2") // each row has a default of its own
}

// A bare NULL, which shows as INTEGER, goes into a column of any type, wherever it comes from.
func TestNullGoesIntoAnyColumn(t *testing.T) {
	d := openDB(t)
	for _, typ := range []string{"DATE", "TIMESTAMP", "TIMESTAMPTZ", "TIME", "INTERVAL", "BLOB", "UUID", "BOOLEAN", "JSON", "INTEGER[]", "STRUCT(a INTEGER)", "MAP(VARCHAR, INTEGER)"} {
		d.run("CREATE OR REPLACE TABLE t (i INTEGER, d " + typ + ")")
		for _, nulls := range []string{"VALUES (1, NULL)", "SELECT 1, NULL", "SELECT 1, n FROM (SELECT NULL AS n)", "SELECT 1, n FROM (VALUES (NULL)) v(n)",
			"SELECT 1, CASE WHEN true THEN NULL END", "SELECT 1, coalesce(NULL, NULL)", "SELECT 1, NULL UNION ALL SELECT 1, NULL LIMIT 1",
			"SELECT 1, (SELECT NULL)", "SELECT 1, max(n) FROM (SELECT NULL AS n)", "SELECT DISTINCT 1, n FROM (SELECT NULL AS n)"} {
			d.is("INSERT INTO t "+nulls, "1")
		}
		d.is("INSERT INTO t BY NAME SELECT NULL AS d, 1 AS i", "1")
		d.is("UPDATE t SET d = NULL", "11")
		d.is("UPDATE t SET d = CASE WHEN i = 1 THEN NULL END", "11")
		d.is("SELECT count(*), count(d) FROM t", "11|0")
		d.is("SELECT CAST(n AS "+typ+") FROM (SELECT NULL AS n UNION ALL SELECT NULL)", "NULL", "NULL")
	}
	d.run("CREATE SINK out (d DATE) WITH (connector = 'json', path = '" + t.TempDir() + "')")
	d.is("INSERT INTO out SELECT NULL", "1")
	d.run("CREATE VIEW v AS SELECT NULL AS n; CREATE MATERIALIZED VIEW m AS SELECT NULL AS n; CREATE OR REPLACE TABLE t (d DATE)")
	d.is("INSERT INTO t SELECT n FROM v UNION ALL SELECT n FROM m", "2")
}

func TestUpdateAndDelete(t *testing.T) {
	d := openDB(t)
	d.run("CREATE TABLE t (k INTEGER, v INTEGER DEFAULT 7); INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)")
	d.run("CREATE TABLE u (k INTEGER, w INTEGER); INSERT INTO u VALUES (1, 1), (1, 2), (3, 5)")
	d.is("UPDATE t SET v = v + 1 WHERE k < 3", "2")
	d.is("UPDATE t AS x SET v = x.v + u.w FROM u WHERE x.k = u.k", "2") // k = 1 matches twice and changes once
	d.is("SELECT * FROM t ORDER BY k", "1|12", "2|21", "3|35")
	d.is("UPDATE t SET v = DEFAULT, k = k * 10 WHERE k = 2", "1")
	d.is("SELECT * FROM t ORDER BY k", "1|12", "3|35", "20|7")
	d.is("UPDATE t SET v = 0 WHERE k = 999", "0")
	d.is("DELETE FROM t USING u WHERE t.k = u.k AND u.w = 5", "1")
	d.is("DELETE FROM t WHERE k = 20", "1")
	d.is("SELECT * FROM t", "1|12")
	d.is("DELETE FROM t", "1")
	d.is("TRUNCATE u", "3")
	d.is("SELECT count(*) FROM u", "0")
	d.fails("UPDATE t SET w = 1", errs.Schema, `no column "w"`, "line 1, column 14")
	d.fails("UPDATE t SET v = 1, v = 2", errs.Schema, "set twice")
	d.fails("UPDATE t SET v = 'x' WHERE k = 1; SELECT k FROM nowhere", errs.Schema)
	d.fails("DELETE FROM t WHERE kk = 1", errs.Schema, `"kk"`, "did you mean")
	d.run("CREATE VIEW v AS SELECT * FROM t")
	d.fails("DELETE FROM v", errs.Schema, "only in-memory tables")
	d.fails("INSERT INTO v VALUES (1, 2)", errs.Schema, "rows go into tables and sinks")
}

func TestKeys(t *testing.T) {
	d := openDB(t)
	d.run("CREATE TABLE t (a INTEGER PRIMARY KEY, b INTEGER UNIQUE, c INTEGER, UNIQUE (b, c))")
	d.run("INSERT INTO t VALUES (1, 1, 1), (2, NULL, 1), (3, NULL, 1)") // NULLs are never equal
	d.fails("INSERT INTO t VALUES (4, 4, 4), (1, 9, 9)", errs.Data, `table "t" has a row with (a) = (1) already`)
	d.fails("INSERT INTO t VALUES (5, 5, 5), (5, 6, 6)", errs.Data, "(a) = (5)")
	d.fails("INSERT INTO t VALUES (NULL, 8, 8)", errs.Data, "NOT NULL")
	d.fails("UPDATE t SET a = 1", errs.Data, "duplicate key")
	d.is("UPDATE t SET a = a + 1", "3") // keys are looked at behind the statement
	d.run("INSERT INTO t VALUES (1, 4, 4)")
	d.run("DELETE FROM t WHERE a = 2; INSERT INTO t VALUES (2, 2, 2)")
	d.is("SELECT a FROM t ORDER BY a", "1", "2", "3", "4")
	d.fails("CREATE TABLE x (a INTEGER, UNIQUE (z))", errs.Schema, `no column "z"`)
}

func TestTransaction(t *testing.T) {
	d := openDB(t)
	d.run("CREATE TABLE t (k INTEGER PRIMARY KEY); INSERT INTO t VALUES (1)")
	d.run("CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n, sum(k) AS s FROM t")
	sub := d.follow("SELECT k FROM t EMIT IMMEDIATE", SubscribeOptions{})
	expect(t, next(t, sub), "+1 1")

	d.run("BEGIN; INSERT INTO t VALUES (2), (3); DELETE FROM t WHERE k = 1")
	d.is("SELECT k FROM t ORDER BY k", "2", "3")
	d.is("SELECT * FROM v", "1|1") // sees COMMIT
	during := d.follow("SELECT k FROM t EMIT IMMEDIATE", SubscribeOptions{})
	expect(t, next(t, during), "+1 1")
	d.run("COMMIT")
	d.is("SELECT * FROM v", "2|5")
	expect(t, next(t, sub), "+1 2", "+1 3", "-1 1") // one step
	expect(t, next(t, during), "+1 2", "+1 3", "-1 1")

	d.run("BEGIN; UPDATE t SET k = k * 10; CREATE TABLE x (a INTEGER); DROP TABLE x; CREATE TABLE y (a INTEGER); INSERT INTO y VALUES (1); ROLLBACK")
	d.is("SELECT k FROM t ORDER BY k", "2", "3")
	d.is("SELECT * FROM v", "2|5")
	d.fails("SELECT * FROM y", errs.Schema, `"y"`)
	d.run("BEGIN; DROP TABLE IF EXISTS nothing; CREATE OR REPLACE VIEW w AS SELECT 1; ROLLBACK")
	d.fails("SELECT * FROM w", errs.Schema)
	d.run("INSERT INTO t VALUES (20)")
	expect(t, next(t, sub), "+1 20") // the rollback was not a change

	d.fails("COMMIT", errs.Usage, "no transaction is open")
	d.fails("ROLLBACK", errs.Usage, "no transaction is open")
	for text, says := range map[string]string{
		"BEGIN": "open already",
		"CREATE MATERIALIZED VIEW v2 AS SELECT * FROM t": "a materialized view cannot be created while a transaction is open",
		"DROP MATERIALIZED VIEW v":                       "a materialized view cannot be dropped while a transaction is open",
	} {
		d.run("BEGIN")
		d.fails(text, errs.Usage, says)
		d.run("ROLLBACK")
	}
}

// As DuckDB has it: any error within a transaction aborts it. Then only its end is accepted, and COMMIT is ROLLBACK.
func TestAnErrorAbortsTheTransaction(t *testing.T) {
	d := openDB(t)
	d.run("CREATE TABLE t (k INTEGER PRIMARY KEY); CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM t")
	for _, bad := range []string{
		"INSERT INTO t VALUES (1)", "SELECT nope", "SELECT FROM WHERE", "SELECT * FROM nosuch", "CREATE TABLE t (b INTEGER)", "BEGIN",
		"SET nosuch = 1", "SELECT CAST(k || 'x' AS INTEGER) FROM t", "DROP TABLE zz", "INSERT INTO t VALUES (2), (2)",
	} {
		for _, end := range []string{"COMMIT", "ROLLBACK"} {
			d.run("BEGIN; INSERT INTO t VALUES (1)")
			if q, err := d.Query(t.Context(), bad, nil); err == nil {
				if _, err = q.all(t.Context()); err == nil {
					t.Fatalf("%s does not fail", bad)
				}
			}
			d.fails("SELECT count(*) FROM t", errs.Usage, "the current transaction is aborted", "ROLLBACK")
			d.fails("INSERT INTO t VALUES (7)", errs.Usage, "aborted")
			d.run(end)
			d.is("SELECT (SELECT count(*) FROM t), n FROM v", "0|0")
		}
	}
	d.run("BEGIN; INSERT INTO t VALUES (1); COMMIT")
	d.is("SELECT n FROM v", "1")
	d.function("f", func(ctx context.Context) { // catches what its own statements fail with
		for _, text := range []string{"INSERT INTO t VALUES (5)", "SELECT nope"} {
			if _, err := d.Query(ctx, text, nil); err == nil {
				t.Errorf("%s does not fail within a function", text)
			}
		}
	})
	d.run("BEGIN; UPDATE t SET k = f(k) + 1; COMMIT")
	d.is("SELECT k FROM t", "2")
	d.fails("SELECT nope", errs.Schema) // outside of one, an error aborts nothing
	d.is("SELECT n FROM v", "1")
}

func TestCreateAndDrop(t *testing.T) {
	d := openDB(t)
	d.run("CREATE TABLE t AS SELECT 1 AS a, NULL AS b")
	d.is("DESCRIBE t", "a|INTEGER|YES|NULL|NULL|NULL", "b|INTEGER|YES|NULL|NULL|NULL")
	d.run("CREATE TABLE IF NOT EXISTS t (z INTEGER)")
	d.fails("CREATE TABLE t (z INTEGER)", errs.Schema, `table "t" exists already`, "OR REPLACE", "column 14")
	d.run("CREATE OR REPLACE TABLE t AS SELECT a + 1 AS a FROM t") // reads the old one
	d.is("SELECT * FROM t", "2")
	d.fails("CREATE OR REPLACE TABLE t AS SELECT nothing FROM t", errs.Schema)
	d.is("SELECT * FROM t", "2") // the old one stands
	d.run("CREATE TABLE named (x, y) AS SELECT 1, 2")
	d.is("SELECT x, y FROM named", "1|2")
	d.fails("CREATE TABLE n (x, y, z) AS SELECT 1, 2", errs.Schema, "3 columns are named")
	d.fails("CREATE TABLE n (a INTEGER, A INTEGER)", errs.Schema, "two columns", "AS")
	d.fails("CREATE TABLE n (a INTEGER, rowid INTEGER)", errs.Schema, "rowid")
	d.fails("CREATE TABLE n (a NOSUCHTYPE)", errs.Schema, "NOSUCHTYPE")
	d.fails("CREATE TABLE n (a INTEGER DEFAULT 'x' || b)", errs.Schema)
	d.fails("CREATE OR REPLACE VIEW t AS SELECT 1", errs.Schema, `"t" is a table`, "DROP TABLE t")

	d.run("CREATE VIEW v AS SELECT a FROM t; CREATE VIEW w AS SELECT a + 1 AS a FROM v")
	d.is("SELECT * FROM w", "3")
	d.fails("CREATE OR REPLACE VIEW v AS SELECT * FROM w", errs.Schema, "would read itself")
	d.run("CREATE OR REPLACE VIEW v (b) AS SELECT a * 10 FROM t")
	d.is("SELECT b FROM v", "20")
	d.fails("SELECT * FROM w", errs.Schema, `"a"`) // found where it is used
	d.fails("CREATE VIEW bad AS SELECT x FROM t", errs.Schema, `"x"`)

	d.run("CREATE MATERIALIZED VIEW m AS SELECT b FROM v")
	d.fails("DROP TABLE t", errs.Schema, `read by the materialized view "m"`, "drop the view first")
	d.fails("DROP VIEW v", errs.Schema, `"m"`)
	d.fails("CREATE OR REPLACE TABLE t (a INTEGER)", errs.Schema, `"m"`)
	d.fails("DROP TABLE m", errs.Schema, "DROP MATERIALIZED VIEW m")
	d.fails("DROP TABLE namd", errs.Schema, `did you mean "named"?`, "line 1, column 12")
	d.run("DROP TABLE IF EXISTS nothing")
	d.run("DROP TABLE t CASCADE")
	d.fails("SELECT * FROM m", errs.Schema)
	d.run("DROP VIEW v; DROP TABLE named")
	d.has("SHOW TABLES", "w")
}

func TestSettings(t *testing.T) {
	t.Setenv("RIVERBED_STEP_ROWS", "77")
	t.Setenv("KAFKA_BROKERS", "env:9092")
	d := openDB(t, "Parallelism", "3", "memory_limit", "64MB")
	d.is("SHOW step_rows", "77")
	d.is("SHOW parallelism", "3")
	d.is("SHOW memory_limit", "64000000")
	d.is("SHOW kafka_brokers", "env:9092")
	d.run("SET threads = 2; SET idle_timeout_ms = 5; SET timezone = 'Europe/London'")
	d.is("SHOW parallelism", "2")
	d.is("SHOW timezone", "Europe/London")
	d.is("SELECT TIMESTAMPTZ '2024-07-01 12:00:00+00' :: VARCHAR", "2024-07-01 13:00:00+01")
	d.run("RESET threads; RESET timezone")
	d.is("SHOW parallelism", "3") // what it was opened with
	d.is("SHOW timezone", "UTC")
	d.fails("SET paralelism = 2", errs.Usage, `did you mean "parallelism"?`, "line 1")
	d.fails("SET parallelism = 0", errs.Usage, "positive number")
	d.fails("SET memory_limit = 'lots'", errs.Usage, "memory_limit", "4GB")
	for _, limit := range []string{"NaN", "inf", "-1", "1e30", "20000000TB", ""} {
		d.fails("SET memory_limit = '"+limit+"'", errs.Usage, "expected a size")
	}
	d.fails("SET timezone = 'Mars'", errs.Usage, "Mars", "Europe/London")
	d.fails("SET telemetry = 'perhaps'", errs.Usage, "true or false")
	d.fails("SET log_level = 'loud'", errs.Usage, "trace")
	d.fails("SET checkpoint_url = 'ftp://x'", errs.Unsupported, "no store understands")
	d.fails("RESET nothing", errs.Usage, "nothing")
	d.fails("SHOW nothing", errs.Usage, "nothing")
	for _, config := range []map[string]string{{"paralelism": "2"}, {"step_rows": "x"}, {"timezone": "Mars"}} {
		if _, err := Open(config); !errs.Is(err, errs.Usage) {
			t.Errorf("%v: %v", config, err)
		}
	}
	t.Setenv("RIVERBED_STEP_ROWS", "many")
	_, err := Open(nil)
	failsWith(t, "the environment", err, errs.Usage, "RIVERBED_STEP_ROWS", "many")
}

func TestMemoryLimit(t *testing.T) {
	d := openDB(t, "memory_limit", "1MB")
	d.is("SELECT count(*) FROM (SELECT i, count(*) FROM range(300000) r(i) GROUP BY i)", "300000") // spills
	one := "SELECT len(string_agg(i, ',')) FROM range(300000) r(i)"                                // one group has no parts to spill
	d.fails(one, errs.Usage, "memory_limit", "raise")
	d.run("SET memory_limit = '4GB'")
	d.is(one, "1988889")
}

func TestShowAndExplain(t *testing.T) {
	d := openDB(t)
	d.run("CREATE TABLE t (a INTEGER, b VARCHAR); CREATE VIEW v AS SELECT a FROM t; CREATE MATERIALIZED VIEW m AS SELECT count(*) AS n FROM t")
	d.run("CREATE STREAM s (ts TIMESTAMP, WATERMARK FOR ts AS ts) WITH (connector = 'memory')")
	d.run("CREATE SINK k WITH (connector = 'console')")
	d.is("SHOW TABLES", "m", "s", "t", "v")
	d.is("SHOW STREAMS", "s")
	d.is("SHOW ALL TABLES", "memory|main|k|[]|[]|false|SINK", "memory|main|m|[n]|[BIGINT]|false|MATERIALIZED VIEW", "memory|main|s|[ts]|[TIMESTAMP]|false|STREAM", "memory|main|t|[a, b]|[INTEGER, VARCHAR]|false|TABLE", "memory|main|v|[a]|[INTEGER]|false|VIEW")
	d.is("DESCRIBE SELECT a, b || 'x' AS c FROM t", "a|INTEGER|YES|NULL|NULL|NULL", "c|VARCHAR|YES|NULL|NULL|NULL")
	if n := len(d.rows("SHOW FUNCTIONS")); n < 80 {
		t.Errorf("%d functions", n)
	}
	if n := len(d.rows("SHOW ALL")); n != len(settings) {
		t.Errorf("%d settings of %d", n, len(settings))
	}
	for text, says := range map[string]string{
		"EXPLAIN SELECT b, count(*) FROM t GROUP BY b":               "batch",
		"EXPLAIN (incremental) SELECT b, count(*) FROM t GROUP BY b": "incremental",
		"EXPLAIN SELECT ts FROM s":                                   "incremental",
		"EXPLAIN ANALYZE SELECT count(*) FROM t":                     "rows",
		"EXPLAIN INSERT INTO t SELECT * FROM t":                      "scan",
		"EXPLAIN (mode incremental) SELECT n FROM m":                 "aggregate",
	} {
		out := ""
		for _, line := range d.rows(text) {
			out += line + "\n"
		}
		if !containsFold(out, says) {
			t.Errorf("%s does not say %q:\n%s", text, says, out)
		}
	}
	d.fails("EXPLAIN ANALYZE SELECT ts FROM s", errs.Usage, "never ends")
	d.fails("EXPLAIN DROP TABLE t", errs.Unsupported, "EXPLAIN takes")
	if _, err := d.query("SELECT 1").Explain("sideways"); !errs.Is(err, errs.Usage) {
		t.Error(err)
	}
}
