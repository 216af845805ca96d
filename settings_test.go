package riverbed

import (
	"testing"

	"github.com/riverbed/riverbed/core/errs"
)

// What ORDER BY means without its words is a setting, and a view keeps the meaning that it was made with.
func TestDefaultOrder(t *testing.T) {
	d := openDB(t)
	d.run("CREATE TABLE t (k INTEGER); INSERT INTO t VALUES (2), (NULL), (1)")
	d.is("SELECT k FROM t ORDER BY k", "1", "2", "NULL")
	for _, c := range []struct {
		nulls     string
		asc, desc []string
	}{
		{"nulls_first", []string{"NULL", "1", "2"}, []string{"NULL", "2", "1"}},
		{"NULLS LAST", []string{"1", "2", "NULL"}, []string{"2", "1", "NULL"}},
		{"sqlite", []string{"NULL", "1", "2"}, []string{"2", "1", "NULL"}},
		{"postgres", []string{"1", "2", "NULL"}, []string{"NULL", "2", "1"}},
	} {
		d.run("SET default_null_order = '" + c.nulls + "'")
		d.is("SELECT k FROM t ORDER BY k", c.asc...)
		d.is("SELECT k FROM t ORDER BY k DESC", c.desc...)
		d.is("SELECT k FROM t ORDER BY k NULLS LAST", "1", "2", "NULL")
	}
	d.run("SET default_null_order = 'nulls_first'; CREATE MATERIALIZED VIEW m AS SELECT k FROM t ORDER BY k LIMIT 1; CREATE VIEW v AS SELECT k FROM t ORDER BY k LIMIT 1")
	d.run("RESET default_null_order; SET default_order = 'DESC'")
	d.is("SELECT k FROM t ORDER BY k", "2", "1", "NULL")
	d.is("SELECT k FROM t ORDER BY k ASC", "1", "2", "NULL")
	d.is("SELECT list(k ORDER BY k), list_sort([1, 3, NULL, 2]) FROM t", "[2, 1, NULL]|[3, 2, 1, NULL]")
	d.run("INSERT INTO t VALUES (0)")
	d.is("SELECT * FROM m UNION ALL SELECT * FROM v", "NULL", "NULL")
	d.run("CREATE OR REPLACE MATERIALIZED VIEW m AS SELECT k FROM t ORDER BY k LIMIT 1; RESET default_order")
	d.is("SELECT * FROM m", "2")
}

// DuckDB's settings that change no result are accepted; those that would are refused, and so are unknown ones.
func TestSettingsOfDuckDB(t *testing.T) {
	d := openDB(t)
	d.run("SET preserve_insertion_order = false; PRAGMA enable_verification; PRAGMA disable_optimizer; SET enable_external_access = true; PRAGMA threads = 2; PRAGMA default_null_order = 'nulls_last'")
	d.is("SELECT current_setting('threads'), current_setting('preserve_insertion_order')", "2|false")
	d.fails("SET integer_division = true", errs.Unsupported, "would change what queries mean")
	d.fails("SET default_collation = 'nocase'", errs.Unsupported, "binary")
	d.fails("SET enable_external_access = false", errs.Unsupported, "enable_external_access")
	d.fails("SET preserve_insertion_ordr = 1", errs.Usage, `did you mean "preserve_insertion_order"?`)
	d.fails("PRAGMA foo", errs.Usage, `unknown PRAGMA "foo"`)
	d.run("ANALYZE; CHECKPOINT; FORCE CHECKPOINT; VACUUM; LOAD parquet")
	d.fails("LOAD spatial", errs.Unsupported, "no extensions")
	d.fails("ANALYZE nothing", errs.Schema, "nothing")
	for _, g := range ignoredSettings {
		if g.why == "" || findSetting(g.name) != nil {
			t.Errorf("%s: every setting that is accepted without effect has a reason, and is no setting that has one", g.name)
		}
	}
}

func TestVariables(t *testing.T) {
	d := openDB(t)
	d.run("SET VARIABLE n = 1 + 1; SET VARIABLE l = [1, 2]; SET VARIABLE r = (SELECT 5)")
	d.is("SELECT getvariable('N') + 1, getvariable('l'), getvariable('none'), typeof(getvariable('n'))", "3|[1, 2]|NULL|INTEGER")
	d.run("CREATE TABLE t (k INTEGER); CREATE MATERIALIZED VIEW m AS SELECT k FROM t WHERE k < getvariable('n'); SET VARIABLE n = 100; INSERT INTO t VALUES (1), (50)")
	d.is("SELECT k FROM m", "1")
	d.run("RESET VARIABLE n")
	d.is("SELECT getvariable('n')", "NULL")
}
