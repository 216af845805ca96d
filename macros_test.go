package riverbed

import (
	"testing"

	"github.com/riverbed/riverbed/core/errs"
)

// A materialized view keeps the body that its macros had; a view has what they are.
func TestViewsAndMacros(t *testing.T) {
	d := openDB(t)
	d.run("CREATE TABLE t (k INTEGER); INSERT INTO t VALUES (1), (2)")
	d.run("CREATE MACRO f(x) AS x + 1; CREATE MACRO g() AS TABLE SELECT f(k) AS y FROM t")
	d.run("CREATE MATERIALIZED VIEW m AS SELECT y FROM g(); CREATE VIEW v AS SELECT y FROM g()")
	d.run("CREATE OR REPLACE MACRO f(x) AS x * 100; INSERT INTO t VALUES (3)")
	d.is("SELECT y FROM m ORDER BY y", "2", "3", "4")
	d.is("SELECT y FROM v ORDER BY y", "100", "200", "300")
	d.run("CREATE MATERIALIZED VIEW n AS SELECT y FROM m")
	d.is("SELECT y FROM n ORDER BY y", "2", "3", "4")
	d.run("DROP MACRO f; DROP MACRO g; INSERT INTO t VALUES (4)")
	d.is("SELECT y FROM n ORDER BY y", "2", "3", "4", "5")
	d.fails("SELECT * FROM v", errs.Schema, "g")
	d.fails("DROP TABLE t", errs.Schema, "is read by")
}

// A name in an argument never means something of the body, and a parameter hides what has its name.
func TestMacrosAreHygienic(t *testing.T) {
	d := openDB(t)
	d.run("CREATE TABLE t (x INTEGER, y INTEGER); INSERT INTO t VALUES (1, 10), (2, 20)")
	d.run("CREATE MACRO larger(y) AS (SELECT count(*) FROM t WHERE t.x > y)")
	d.is("SELECT larger(x) FROM t ORDER BY x", "1", "0")
	d.run("CREATE MACRO lambdas(x) AS list_transform([1, 2], lambda x: x + 1); CREATE MACRO inside(x) AS x * 2")
	d.is("SELECT lambdas(100), list_transform([1, 2], lambda x: inside(x + 1))", "[2, 3]|[4, 6]")
	d.run("CREATE MACRO nested(a) AS sum(a)")
	d.fails("SELECT nested(sum(x)) FROM t", errs.Schema, "nested")
	d.is("SELECT nested(x + y) FROM t", "33")
	d.run("CREATE MACRO first_of(s) AS s.a")
	d.is("SELECT first_of({'a': 5})", "5")
	d.run("CREATE MACRO outer_of(a) AS inner_of(a + 1); CREATE MACRO inner_of(b) AS b * 2")
	d.is("SELECT outer_of(x) FROM t ORDER BY 1", "4", "6")
}

func TestMacroMistakes(t *testing.T) {
	d := openDB(t)
	d.run("CREATE MACRO f(a, b := 2) AS a + b + nothing")
	d.fails("SELECT f(1)", errs.Schema, "in the macro f: ", "nothing")
	d.fails("SELECT f(other)", errs.Schema, "SELECT f(other)", `no column "other"`)
	d.fails("SELECT f()", errs.Schema, "does not take these arguments", "f(a, b := 2)")
	d.fails("SELECT f(1, 2, 3)", errs.Schema, "does not take these arguments")
	d.run("CREATE TABLE t (nothing INTEGER)")
	d.fails("SELECT f(1) FROM t", errs.Schema, "nothing") // the body does not see where it is called
	d.fails("CREATE MACRO f(a) AS a", errs.Schema, "exists already")
	d.run("CREATE MACRO IF NOT EXISTS f(a) AS a")
	d.fails("CREATE MACRO g(a, a) AS a", errs.Schema, "two parameters")
	d.fails("CREATE MACRO g(a := 1, b) AS a", errs.Schema, "has no default")
	d.fails("DROP MACRO ff", errs.Schema, `did you mean "f"?`)
	d.run("DROP MACRO IF EXISTS ff; CREATE MACRO loop(a) AS loop(a)")
	d.fails("SELECT loop(1)", errs.Schema, "calls itself")
	d.run("CREATE MACRO cast_to(a DATE) AS a")
	d.is("SELECT cast_to('2024-01-01') + 1", "2024-01-02")
	d.fails("SELECT cast_to('x')", errs.Data, "x")
	d.run("BEGIN; CREATE MACRO h() AS 1; ROLLBACK")
	d.fails("SELECT h()", errs.Schema, "no function")
	d.fails("SELECT * FROM cast_to('2024-01-01')", errs.Schema, "is a value, not a table")
}

func TestSchemas(t *testing.T) {
	d := openDB(t)
	d.run("CREATE SCHEMA s; CREATE TABLE s.t (a INTEGER); INSERT INTO s.t VALUES (1); CREATE TABLE t (a INTEGER)")
	d.is("SELECT a, t.a, s.t.a FROM s.t", "1|1|1")
	d.is("SELECT count(*) FROM main.t", "0")
	d.run("CREATE MATERIALIZED VIEW s.m AS SELECT sum(a) AS n FROM s.t; INSERT INTO s.t VALUES (4)")
	d.is("SELECT n FROM s.m", "5")
	d.run("USE s; INSERT INTO t VALUES (10); CREATE MACRO f(a) AS a + 1; CREATE TABLE u AS SELECT f(a) AS b FROM t")
	d.is("SELECT sum(a), current_schema() FROM t", "15|s")
	d.run("USE main")
	d.is("SELECT sum(b), s.f(1), current_schema() FROM s.u", "18|2|main")
	d.fails("SELECT f(1)", errs.Schema, "no function")
	d.fails("DROP SCHEMA s", errs.Schema, "not empty")
	d.fails("CREATE TABLE q.t (a INTEGER)", errs.Schema, `no schema or catalog "q"`)
	d.fails("USE q", errs.Schema, `no schema or catalog "q"`)
	d.run("DROP SCHEMA s CASCADE")
	d.fails("SELECT * FROM s.t", errs.Schema, "s.t")
}
