package riverbed

import (
	"testing"

	"github.com/riverbed/riverbed/core/errs"
)

func TestDescribe(t *testing.T) {
	d := openDB(t)
	d.run("CREATE TABLE t (a INTEGER PRIMARY KEY, b VARCHAR DEFAULT 'x' NOT NULL, c INTEGER UNIQUE, d AS (a + 1)); CREATE VIEW v AS SELECT a, b FROM t")
	d.is("DESCRIBE t", "a|INTEGER|NO|PRI|NULL|NULL", "b|VARCHAR|NO|NULL|'x'|NULL", "c|INTEGER|YES|UNI|NULL|NULL", "d|INTEGER|YES|NULL|a + 1|NULL")
	d.is("SHOW v", "a|INTEGER|YES|NULL|NULL|NULL", "b|VARCHAR|YES|NULL|NULL|NULL")
	d.is("PRAGMA show('v')", "a|INTEGER|YES|NULL|NULL|NULL", "b|VARCHAR|YES|NULL|NULL|NULL")
	d.is("DESCRIBE SELECT a FROM t", "a|INTEGER|YES|NULL|NULL|NULL")
	d.is("PRAGMA table_info('t')", "0|a|INTEGER|true|NULL|true", "1|b|VARCHAR|true|'x'|false", "2|c|INTEGER|false|NULL|false", "3|d|INTEGER|false|NULL|false")
	d.is("SELECT name FROM pragma_table_info('v') ORDER BY name DESC LIMIT 1", "b")
	d.is("SELECT column_name FROM (DESCRIBE t) WHERE key = 'PRI'", "a")
	d.is("SELECT name FROM (SHOW TABLES) AS s ORDER BY s.name DESC", "v", "t")
	d.is("SELECT count(*) FROM (SUMMARIZE t)", "4")
	d.is("SHOW (SELECT 1 AS x)", "x|INTEGER|YES|NULL|NULL|NULL")
	d.fails("CREATE MATERIALIZED VIEW m AS SELECT name FROM (SHOW TABLES)", errs.Unsupported, "nothing keeps it up to date")
	d.fails("PRAGMA table_info('nothing')", errs.Schema, "nothing")
	d.run("CREATE TABLE threads (x INTEGER)")
	d.is("SHOW threads", "x|INTEGER|YES|NULL|NULL|NULL") // a table before the setting
	d.is("SHOW SELECT 1 AS x", "x|INTEGER|YES|NULL|NULL|NULL")
	d.fails("SHOW nothing", errs.Usage, "nothing")
}

func TestSummarize(t *testing.T) {
	d := openDB(t)
	d.run(`CREATE TABLE t (a INTEGER, "b c" VARCHAR, d DATE, l INTEGER[]); INSERT INTO t VALUES (1, 'x', '2024-01-01', [1]), (NULL, 'y', '2024-01-03', NULL), (3, NULL, NULL, [2])`)
	d.is("SUMMARIZE t",
		"a|INTEGER|1|3|2|2.0|1.4142135623730951|1|1|3|3|33.33",
		"b c|VARCHAR|x|y|2|NULL|NULL|NULL|NULL|NULL|3|33.33",
		"d|DATE|2024-01-01|2024-01-03|2|NULL|NULL|2024-01-01|2024-01-01|2024-01-03|3|33.33",
		"l|INTEGER[]|[1]|[2]|2|NULL|NULL|NULL|NULL|NULL|3|33.33")
	d.is("SUMMARIZE SELECT a FROM t WHERE false", "a|INTEGER|NULL|NULL|0|NULL|NULL|NULL|NULL|NULL|0|NULL")
}

func TestSystemTables(t *testing.T) {
	d := openDB(t)
	d.run("CREATE SCHEMA s; CREATE TABLE t (a INTEGER PRIMARY KEY, b VARCHAR DEFAULT 'x', CHECK (a > 0)); CREATE TABLE s.u (c DATE); CREATE VIEW v AS SELECT a FROM t; CREATE INDEX i ON t (b); CREATE SEQUENCE q START 5; CREATE MACRO f(x) AS x + 1; SET VARIABLE n = 5")
	d.run("COMMENT ON TABLE t IS 'mine'; COMMENT ON COLUMN t.a IS 'key'; COMMENT ON COLUMN t.b IS 'gone'; COMMENT ON COLUMN t.b IS NULL")
	d.is("SELECT schema_name, table_name, comment, has_primary_key, column_count, index_count, check_constraint_count FROM duckdb_tables() ORDER BY table_name", "main|t|mine|true|2|1|1", "s|u|NULL|false|1|0|0")
	d.is("SELECT table_schema, table_name, table_type FROM information_schema.tables ORDER BY ALL", "main|t|BASE TABLE", "main|v|VIEW", "s|u|BASE TABLE")
	d.is("SELECT column_name, ordinal_position, column_default, is_nullable, data_type, COLUMN_COMMENT FROM information_schema.columns WHERE table_name = 't' ORDER BY 2", "a|1|NULL|NO|INTEGER|key", "b|2|'x'|YES|VARCHAR|NULL")
	d.is("SELECT schema_name FROM information_schema.schemata ORDER BY 1", "main", "s")
	d.is("SELECT view_name, column_count FROM duckdb_views()", "v|1")
	d.is("SELECT table_name, column_name FROM duckdb_columns() ORDER BY ALL", "t|a", "t|b", "u|c", "v|a")
	d.is("SELECT index_name, is_unique FROM duckdb_indexes()", "i|false")
	d.is("SELECT sequence_name, start_value, last_value FROM duckdb_sequences()", "q|5|NULL")
	d.is("SELECT constraint_type, constraint_column_names FROM duckdb_constraints() ORDER BY ALL", "CHECK|[a]", "NOT NULL|[a]", "PRIMARY KEY|[a]")
	d.is("SELECT function_type, parameters, macro_definition FROM duckdb_functions() WHERE function_name = 'f'", "macro|[x]|x + 1")
	d.is("SELECT count(*) > 300, bool_or(function_name = 'upper') FROM duckdb_functions()", "true|true")
	d.is("SELECT value FROM duckdb_settings() WHERE name = 'default_null_order'", "nulls_last")
	d.is("FROM duckdb_variables()", "n|5|INTEGER")
	d.is("SHOW TABLES", "t", "v")
	d.is("SHOW TABLES FROM s", "u")
	d.is("SELECT count(*) FROM duckdb_tables", "2")
	d.is("CALL pragma_database_list()", "1|memory|NULL")
	d.fails("SHOW TABLES FROM nothing", errs.Schema, "nothing")
	d.fails("CREATE MATERIALIZED VIEW m AS SELECT table_name FROM duckdb_tables()", errs.Unsupported, "nothing keeps it up to date")
	d.fails("COMMENT ON TABLE nothing IS 'x'", errs.Schema, "nothing")
}
