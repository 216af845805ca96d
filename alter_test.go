package riverbed

import (
	"testing"

	"github.com/riverbed/riverbed/core/errs"
)

func TestAlter(t *testing.T) {
	d := openDB(t)
	d.run("CREATE TABLE t (a INTEGER PRIMARY KEY, b INTEGER DEFAULT 7, c AS (b + 1), CHECK (b < 100)); INSERT INTO t VALUES (1, 10), (2, NULL)")
	d.run("ALTER TABLE t ADD COLUMN d VARCHAR DEFAULT 'x'; ALTER TABLE t ADD COLUMN IF NOT EXISTS d INTEGER")
	d.is("SELECT * FROM t ORDER BY a", "1|10|11|x", "2|NULL|NULL|x")
	d.run("ALTER TABLE t RENAME b TO z; INSERT INTO t (a, z) VALUES (3, 30)")
	d.is("SELECT z, c, d FROM t WHERE a = 3", "30|31|x")
	d.fails("INSERT INTO t (a, z) VALUES (4, 300)", errs.Data, "CHECK (z < 100)")
	d.fails("INSERT INTO t (a) VALUES (3)", errs.Data, "duplicate key")
	d.fails("ALTER TABLE t DROP COLUMN z", errs.Schema, `"c" is computed of "z"`)
	d.fails("ALTER TABLE t DROP COLUMN a", errs.Schema, "a key or an index")
	d.fails("ALTER TABLE t ALTER z TYPE VARCHAR", errs.Schema, "CHECK")
	d.run("ALTER TABLE t DROP c; ALTER TABLE t ALTER a TYPE BIGINT; ALTER TABLE t ALTER d TYPE VARCHAR USING d || '!'; ALTER TABLE t ALTER d SET DEFAULT 'new'; ALTER TABLE t ALTER d SET NOT NULL")
	d.is("INSERT INTO t (a) VALUES (9) RETURNING *, typeof(a)", "9|7|new|BIGINT")
	d.fails("INSERT INTO t VALUES (10, 1, NULL)", errs.Data, "NOT NULL")
	d.run("ALTER TABLE t ALTER d DROP NOT NULL; ALTER TABLE t ALTER d DROP DEFAULT; INSERT INTO t (a) VALUES (11)")
	d.is("SELECT d FROM t ORDER BY a", "x!", "x!", "x!", "new", "NULL")
	d.run("ALTER TABLE t RENAME TO u; ALTER TABLE IF EXISTS t RENAME TO w; CREATE VIEW v AS SELECT count(*) AS n FROM u; ALTER VIEW v RENAME TO w")
	d.is("SELECT n FROM w", "5")
	d.fails("SELECT * FROM t", errs.Schema, `"t"`)
	d.run("CREATE MATERIALIZED VIEW m AS SELECT sum(z) AS s FROM u")
	d.fails("ALTER TABLE u ADD COLUMN e INTEGER", errs.Schema, `is read by the materialized view "m"`)
	d.fails("ALTER TABLE u RENAME TO t", errs.Schema, `is read by the materialized view "m"`)
	d.run("DROP MATERIALIZED VIEW m; CREATE TABLE k (a INTEGER); INSERT INTO k VALUES (1), (1)")
	d.fails("ALTER TABLE k ADD PRIMARY KEY (a)", errs.Data, "duplicate key")
	d.run("DELETE FROM k; INSERT INTO k VALUES (1); ALTER TABLE k ADD PRIMARY KEY (a)")
	d.fails("INSERT INTO k VALUES (1)", errs.Data, "duplicate key")
	d.fails("BEGIN; ALTER TABLE k ADD COLUMN b INTEGER", errs.Usage, "transaction")
}

func TestIndexes(t *testing.T) {
	d := openDB(t)
	d.run("CREATE TABLE t (a INTEGER, b INTEGER); INSERT INTO t VALUES (1, 1), (2, 1); CREATE INDEX i ON t (a, b + 1); CREATE UNIQUE INDEX u ON t (a)")
	d.fails("INSERT INTO t VALUES (1, 5)", errs.Data, "duplicate key")
	d.fails("CREATE UNIQUE INDEX w ON t (b)", errs.Data, "duplicate key")
	d.fails("CREATE INDEX i ON t (b)", errs.Schema, "exists already")
	d.fails("CREATE INDEX j ON t (nothing)", errs.Schema, "nothing")
	d.run("CREATE INDEX IF NOT EXISTS i ON t (b); INSERT INTO t VALUES (1, 9) ON CONFLICT (a) DO UPDATE SET b = excluded.b; DROP INDEX u; INSERT INTO t VALUES (1, 2); DROP INDEX i")
	d.has("SELECT * FROM t", "1|9", "1|2", "2|1")
	d.fails("DROP INDEX i", errs.Schema, "no index")
	d.fails("BEGIN; CREATE UNIQUE INDEX u ON t (a, b)", errs.Usage, "transaction")
}

func TestSequences(t *testing.T) {
	d := openDB(t)
	d.run("CREATE SEQUENCE s; CREATE SEQUENCE down INCREMENT -2 START 5 MINVALUE 1 MAXVALUE 5 CYCLE; CREATE TABLE t (id BIGINT DEFAULT nextval('s'), v INTEGER)")
	d.fails("SELECT currval('s')", errs.Data, "no number yet")
	d.is("SELECT nextval('s'), nextval('down')", "1|5")
	d.run("INSERT INTO t (v) VALUES (10), (20), (30)")
	d.is("SELECT id, v FROM t ORDER BY v", "2|10", "3|20", "4|30")
	d.is("SELECT currval('s'), nextval('down'), nextval('down'), nextval('down')", "4|3|1|5")
	d.fails("CREATE MATERIALIZED VIEW m AS SELECT nextval('s') AS n, v FROM t", errs.Unsupported, "nextval()", "other numbers")
	d.fails("DROP SEQUENCE s", errs.Schema, "a default of table")
	d.fails("SELECT nextval('nothing')", errs.Schema, "no sequence")
	d.run("CREATE SEQUENCE two MAXVALUE 2; DROP SEQUENCE down; SELECT nextval('two'); SELECT nextval('two')")
	d.fails("SELECT nextval('two')", errs.Data, "all of its numbers")
	d.fails("CREATE SEQUENCE x INCREMENT 0", errs.Schema, "cannot be 0")
	d.fails("CREATE SEQUENCE x MINVALUE 5 START 1", errs.Schema, "within its range")
}
