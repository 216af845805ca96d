package riverbed

import (
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/riverbed/riverbed/core/errs"
)

// with runs a text with parameters and compares its rows, in order.
func (d db) with(params Params, text string, want ...string) {
	d.t.Helper()
	q, err := d.QueryWith(d.t.Context(), text, params, nil)
	if err != nil {
		d.t.Fatalf("%s\n%v", text, err)
	}
	batches, err := q.all(d.t.Context())
	if err != nil {
		d.t.Fatalf("%s\n%v", text, err)
	}
	if got := rowLines(q.columns, batches); !slices.Equal(got, want) {
		d.t.Errorf("%s\ngot  %q\nwant %q", text, got, want)
	}
}

// A parameter is typed where it stands, as a constant there would be.
func TestParameters(t *testing.T) {
	d := openDB(t)
	d.run("CREATE TABLE t (k INTEGER, s VARCHAR, d DATE, x DECIMAL(5, 2)); INSERT INTO t VALUES (1, 'a', '2024-01-01', 1.5), (2, 'b', '2024-01-02', 2.5), (3, NULL, NULL, NULL)")
	d.with(Positional(2), "SELECT k FROM t WHERE k = $1", "2")
	d.with(Positional("2"), "SELECT k FROM t WHERE k = ?", "2")
	d.with(Positional("2024-01-02"), "SELECT k FROM t WHERE d >= ?", "2")
	d.with(Params{"day": "2024-01-02", "K": 1}, "SELECT k FROM t WHERE d >= :day OR k = $k ORDER BY k", "1", "2")
	d.with(Positional(1, 1), "SELECT k FROM t ORDER BY k LIMIT ? OFFSET ?", "2")
	d.with(Positional(1, -3), "SELECT typeof($1), typeof($2), $2 - 1", "INTEGER|INTEGER|-4")
	d.with(Positional(nil, true, 1.5, []byte("x"), new(big.Int).Lsh(big.NewInt(1), 70)), "SELECT $1, $2, $3, $4, typeof($5)", "NULL|true|1.5|x|HUGEINT")
	d.with(Positional([]any{1, 2}, map[string]any{"a": 1, "b": "x"}), "SELECT $1, $2, $2.b", "[1, 2]|{'a': 1, 'b': x}|x")
	d.with(Positional(time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC), 90*time.Second), "SELECT $1 + $2 = TIMESTAMPTZ '2024-01-01 00:01:30+00'", "true")
	d.with(Positional(5, "z"), "INSERT INTO t (k, s) VALUES (?, ?)", "1")
	d.with(Positional("q", 5), "UPDATE t SET s = ? WHERE k = ?", "1")
	d.with(Positional(3), "SELECT count(*), sum(range) FROM range($1)", "3|3")
	for _, c := range []struct {
		params Params
		text   string
		says   string
	}{
		{nil, "SELECT $1", "the parameter $1 has no value"},
		{Positional(1, 2), "SELECT $1", "no parameter $2"},
		{Params{"b": 1}, "SELECT $a", "no parameter $b"},
		{Positional(1), "SELECT ?, $a", "either named parameters or numbered"},
		{Positional("x"), "SELECT k FROM t WHERE k = $1", "x"},
		{Positional(struct{}{}), "SELECT $1", "cannot be a struct"},
	} {
		q, err := d.QueryWith(t.Context(), c.text, c.params, nil)
		if err == nil {
			_, err = q.all(t.Context())
		}
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", c.text, err, c.says)
		}
	}
}

// A view keeps the values that it was made with.
func TestViewsKeepParameters(t *testing.T) {
	d := openDB(t)
	d.run("CREATE TABLE t (k INTEGER); INSERT INTO t VALUES (1), (2), (3)")
	d.with(Positional(1), "CREATE VIEW v AS SELECT k FROM t WHERE k > $1; SELECT 1", "1")
	d.with(Params{"n": 2}, "CREATE MATERIALIZED VIEW m AS SELECT k FROM v WHERE k > :n; SELECT 1", "1")
	d.run("INSERT INTO t VALUES (4), (0)")
	d.is("SELECT * FROM v ORDER BY k", "2", "3", "4")
	d.is("SELECT * FROM m ORDER BY k", "3", "4")
	d.with(Positional(3), "SELECT * FROM m WHERE k > $1", "4") // the view's own parameter is another
	d.run("CREATE MATERIALIZED VIEW over AS SELECT count(*) AS n FROM m; INSERT INTO t VALUES (9)")
	d.is("SELECT n FROM over", "3")
}

// The statement of a pipeline says its parameters: with other values it is another query.
func TestStatementsTellParameters(t *testing.T) {
	d := openDB(t)
	statement := func(params Params, text string) (string, map[string]string) {
		q, err := d.QueryWith(t.Context(), text, params, nil)
		if err != nil {
			t.Fatal(err)
		}
		plan, err := q.Explain("incremental")
		if err != nil {
			t.Fatal(err)
		}
		return q.statement(), map[string]string{"plan": plan}
	}
	d.run("CREATE TABLE t (k INTEGER)")
	one, planOne := statement(Positional(1), "SELECT k FROM t WHERE k > ?")
	two, planTwo := statement(Positional(2), "SELECT k FROM t WHERE k > ?")
	if one != "SELECT k FROM t WHERE k > ? -- $1 = 1" || one == two || planOne["plan"] == planTwo["plan"] {
		t.Errorf("%q\n%q\n%s\n%s", one, two, planOne["plan"], planTwo["plan"])
	}
	if got := paramText("SELECT * FROM f(password := $1)", nil); got != "" {
		t.Error(got)
	}
}

// A restart with other values is another query, whose checkpoints the former one's are not.
func TestRestartsKnowParameters(t *testing.T) {
	r := newRestarts(t, "vault_held")
	r.add(1, 2, 3)
	const query = "PREPARE q AS SELECT DISTINCT k FROM s WHERE k > ?; EXECUTE q"
	if err := r.run(query+"(1)", 3); err != nil {
		t.Fatal(err)
	}
	r.has("2", "3")
	r.add(2, 4)
	if err := r.run(query+"(2)", 2); !errs.Is(err, errs.State) || !strings.Contains(err.Error(), "are of another query") {
		t.Fatalf("with another value: %v", err)
	}
	if err := r.run(query+"(1)", 2); err != nil {
		t.Fatal(err)
	}
	r.has("2", "3", "4")
	d := openDB(t)
	d.run("CREATE TABLE t (k INTEGER); PREPARE q AS SELECT k FROM t WHERE k > $least")
	if got := d.query("EXECUTE q(least := 5)").statement(); got != "SELECT k FROM t WHERE k > $least -- $least = 5" {
		t.Error(got)
	}
}

func TestPreparedStatements(t *testing.T) {
	d := openDB(t)
	d.run("CREATE TABLE t (k INTEGER, s VARCHAR); PREPARE add AS INSERT INTO t VALUES (?, ?); PREPARE find AS SELECT s FROM t WHERE k = $key")
	d.is("EXECUTE add(1, 'a')", "1")
	d.run("EXECUTE add(1 + 1, upper('b')); EXECUTE ADD(3, NULL)")
	d.is("EXECUTE find(key := 2)", "B")
	d.is("EXECUTE find(KEY => 3)", "NULL")
	d.run("CREATE MATERIALIZED VIEW m AS SELECT count(*) AS n FROM t")
	d.run("EXECUTE add(4, 'd')")
	d.is("SELECT n FROM m", "4")
	d.with(Positional(2), "EXECUTE find(key := $1)", "B")
	d.fails("EXECUTE find", errs.Schema, "the parameter $key")
	d.fails("EXECUTE find(1)", errs.Schema, "the parameter $key")
	d.fails("EXECUTE add(1, 2, 3)", errs.Schema, "has no parameter $3")
	d.fails("EXECUTE fine(1)", errs.Schema, `did you mean "find"?`)
	d.run("DEALLOCATE find")
	d.fails("EXECUTE find(key := 1)", errs.Schema, "no prepared statement")
	d.run("DEALLOCATE ALL")
	d.fails("EXECUTE add(1, 'a')", errs.Schema, "no prepared statement")
}
