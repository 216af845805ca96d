package riverbed

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/types"
	"github.com/riverbed/riverbed/incremental"
)

func TestMaterializedViews(t *testing.T) {
	d := openDB(t)
	dir := t.TempDir()
	d.run(fmt.Sprintf("COPY (SELECT i AS k, 'n' || i AS name FROM range(3) r(i)) TO '%s/names.parquet'", dir))
	d.run("CREATE TABLE t (k INTEGER, v INTEGER); INSERT INTO t VALUES (0, 1), (1, 2)")
	d.run("CREATE MATERIALIZED VIEW sums AS SELECT k, sum(v) AS s FROM t GROUP BY k")
	d.run("CREATE MATERIALIZED VIEW big AS SELECT k, s FROM sums WHERE s > 1") // over a view
	d.run(fmt.Sprintf("CREATE MATERIALIZED VIEW named (n, s) AS SELECT name, s FROM sums JOIN '%s/names.parquet' f ON f.k = sums.k", dir))
	check := func(sums, big, named []string) {
		t.Helper()
		d.has("SELECT * FROM sums", sums...)
		d.has("SELECT * FROM big", big...)
		d.has("SELECT n, s FROM named", named...)
	}
	check([]string{"0|1", "1|2"}, []string{"1|2"}, []string{"n0|1", "n1|2"})
	d.run("INSERT INTO t VALUES (0, 10), (2, 5)") // returns when all of them took it
	check([]string{"0|11", "1|2", "2|5"}, []string{"0|11", "1|2", "2|5"}, []string{"n0|11", "n1|2", "n2|5"})
	d.run("UPDATE t SET v = 0 WHERE k = 0; DELETE FROM t WHERE k = 1")
	check([]string{"0|0", "2|5"}, []string{"2|5"}, []string{"n0|0", "n2|5"})
	d.run("TRUNCATE t")
	check(nil, nil, nil)
	sub := d.follow("SELECT s FROM sums EMIT IMMEDIATE", SubscribeOptions{}) // follows the view, not its present rows
	d.run("INSERT INTO t VALUES (9, 9)")
	expect(t, next(t, sub), "+1 9")
	d.is("SELECT count(*) FROM sums JOIN big USING (k)", "1")
	d.run("CREATE OR REPLACE MATERIALIZED VIEW big AS SELECT k FROM t WHERE v = 9")
	d.is("SELECT * FROM big", "9")
	d.fails("CREATE MATERIALIZED VIEW x AS SELECT now() AS n FROM t", errs.Unsupported, "now()")
	d.fails("CREATE MATERIALIZED VIEW x (a, a) AS SELECT 1, 2 FROM t", errs.Schema, "two columns")
	d.fails("SELECT * FROM x", errs.Schema)
}

// What only a subquery reads is read: the view follows it, and a stream makes the query one that is followed.
func TestViewsReadTheirSubqueries(t *testing.T) {
	for _, c := range []struct {
		query         string
		before, after []string
	}{
		{"SELECT id FROM o WHERE c NOT IN (SELECT id FROM p)", []string{"1", "2", "3"}, []string{"2"}},
		{"SELECT id FROM o WHERE EXISTS (SELECT 1 FROM p WHERE p.id = o.c)", nil, []string{"1"}},
		{"SELECT id, c IN (SELECT id FROM p) FROM o", []string{"1|false", "2|false", "3|false"}, []string{"1|true", "2|false", "3|NULL"}},
		{"SELECT id FROM o WHERE id = (SELECT count(*) FROM p)", nil, []string{"1"}},
		{"SELECT id FROM o WHERE c IN (SELECT id FROM p WHERE id IN (SELECT max(id) FROM p))", nil, []string{"1"}},
	} {
		d := openDB(t)
		d.run("CREATE TABLE o (id INTEGER, c INTEGER); CREATE TABLE p (id INTEGER); INSERT INTO o VALUES (1, 1), (2, 2), (3, NULL)")
		d.run("CREATE MATERIALIZED VIEW v AS " + c.query)
		d.has("SELECT * FROM v", c.before...)
		d.run("INSERT INTO p VALUES (1)")
		d.has("SELECT * FROM v", c.after...)

		d.run("DROP MATERIALIZED VIEW v; DROP TABLE p; CREATE STREAM p (id INTEGER) WITH (connector = 'memory')")
		if q := d.query(c.query); !q.Live() || !q.Followed() {
			t.Errorf("%s over a stream is not live", c.query)
		}
		d.run("CREATE MATERIALIZED VIEW v AS " + c.query)
		d.push("p", "", row{1})
		until(t, "the row is taken", func() bool { return d.cat.Load().get("v").mat.run.metrics().RowsIn == 4 })
		d.run("INSERT INTO o VALUES (9, 9); DELETE FROM o WHERE id = 9") // returns when the view has taken the step
		d.has("SELECT * FROM v", c.after...)
	}
}

func TestViewOverAStreamAndATable(t *testing.T) {
	d := openDB(t)
	d.run("CREATE STREAM s (k INTEGER, v INTEGER) WITH (connector = 'memory')")
	d.run("CREATE TABLE t (k INTEGER, name VARCHAR); CREATE TABLE other (k INTEGER)")
	d.run("CREATE MATERIALIZED VIEW v AS SELECT name, sum(v) AS n FROM s JOIN t ON s.k = t.k GROUP BY name")
	d.push("s", "", row{1, 5}, row{1, 6})
	until(t, "the rows are taken", func() bool { return d.cat.Load().get("v").mat.run.metrics().RowsIn == 2 })
	d.run("INSERT INTO t VALUES (1, 'one')")
	d.is("SELECT * FROM v", "one|11")     // the statement waited for the run
	d.run("INSERT INTO other VALUES (1)") // concerns the view not at all
	d.run("UPDATE t SET name = 'uno'")
	d.is("SELECT * FROM v", "uno|11")
	d.run("DROP MATERIALIZED VIEW v")
	d.run("INSERT INTO t VALUES (2, 'two')")
}

func TestViewThatFails(t *testing.T) {
	d := openDB(t)
	d.run("CREATE TABLE t (v VARCHAR); CREATE MATERIALIZED VIEW n AS SELECT CAST(v AS INTEGER) AS n FROM t; CREATE MATERIALIZED VIEW c AS SELECT count(*) AS c FROM t")
	d.run("INSERT INTO t VALUES ('1')")
	d.fails("INSERT INTO t VALUES ('one')", errs.Data, `materialized view "n"`, "one", "the change to the table stands")
	d.is("SELECT c FROM c", "2") // the others went on
	d.fails("SELECT * FROM n", errs.Data, `"n" has failed`, "CREATE OR REPLACE MATERIALIZED VIEW n")
	d.run("INSERT INTO t VALUES ('3')") // a broken view breaks no statement
	d.run("DELETE FROM t WHERE v = 'one'; CREATE OR REPLACE MATERIALIZED VIEW n AS SELECT CAST(v AS INTEGER) AS n FROM t")
	d.has("SELECT * FROM n", "1", "3")
}

func TestViewOverABoundedStream(t *testing.T) {
	d := openDB(t)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.json"), []byte("{\"v\":1}\n{\"v\":2}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d.run(fmt.Sprintf("CREATE STREAM s (v BIGINT) WITH (connector = 'json', path = '%s/*.json')", dir))
	d.run("CREATE MATERIALIZED VIEW v AS SELECT sum(v) AS n FROM s")
	until(t, "the files are read", func() bool { return slices.Equal(d.rows("SELECT n FROM v"), []string{"3"}) })
}

// A view that is being made can be given up; nothing of it stays, and the session goes on.
func TestMakingAViewCanBeCancelled(t *testing.T) {
	s, err := Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Query(context.Background(), "CREATE TABLE big AS SELECT range AS x FROM range(200000)", nil); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	_, err = s.Query(ctx, "CREATE MATERIALIZED VIEW m AS SELECT count(*) AS n FROM big a, big b WHERE a.x < b.x", nil)
	if !errs.Is(err, errs.Cancelled) {
		t.Fatalf("got %v, want a cancellation", err)
	}
	if _, err := s.Query(context.Background(), "SELECT * FROM m", nil); !errs.Is(err, errs.Schema) {
		t.Errorf("the view that was given up is still there: %v", err)
	}
}

// Variables of the caller are found by their own spelling first, then without regard to case.
func TestVariablesByName(t *testing.T) {
	s, err := Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	fields := []types.Field{{Name: "a", Type: types.Int64}}
	table := func(v int64) flow.Relation {
		b := batchOf(fields, []types.Value{v})
		r, err := NewArrowTable(b.Schema(), []arrow.RecordBatch{b})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	locals := map[string]flow.Relation{"Df": table(1), "df": table(2), "Other": table(3)}
	for sql, want := range map[string]string{"SELECT a FROM Df": "1", `SELECT a FROM "df"`: "2", "SELECT a FROM other": "3"} {
		q, err := s.Query(context.Background(), sql, locals)
		if err != nil {
			t.Fatal(err)
		}
		out, err := q.Render(context.Background(), RenderOptions{})
		if err != nil || !strings.Contains(out, " "+want+" ") {
			t.Errorf("%s: %v\n%s", sql, err, out)
		}
	}
}

// What a change costs grows with the change, not with the table: as many rows of state are touched at any size.
func TestStepsTouchTheSameStateAtAnySize(t *testing.T) {
	touched := func(rows int) (n int64) {
		d := openDB(t)
		d.run(fmt.Sprintf("CREATE TABLE o AS SELECT range AS k, range %% 1000 AS c FROM range(%d); CREATE TABLE l AS SELECT range // 4 AS k, range AS v FROM range(%d)", rows, 4*rows))
		d.run("CREATE MATERIALIZED VIEW m AS SELECT c, sum(v) AS v, count(*) AS n FROM o JOIN l USING (k) GROUP BY c ORDER BY v DESC LIMIT 10")
		look := func() int64 {
			b, err := d.query("SHOW MATERIALIZED VIEWS").all(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return b[0].Column(4).(*array.Int64).Value(0)
		}
		before := look()
		d.run("BEGIN; DELETE FROM l WHERE k BETWEEN 500 AND 600; INSERT INTO l SELECT 500 + range // 4, range FROM range(404); COMMIT")
		return look() - before
	}
	small, large := touched(1000), touched(10_000)
	if small != large || small < 808 {
		t.Errorf("%d rows of state are touched in small tables, %d in tables ten times as large", small, large)
	}
}

func TestShowMaterializedViews(t *testing.T) {
	d := openDB(t)
	d.run("CREATE TABLE t (k BIGINT); INSERT INTO t VALUES (1), (2); CREATE MATERIALIZED VIEW m AS SELECT k % 2 AS g, count(*) AS n FROM t GROUP BY 1")
	d.run("INSERT INTO t VALUES (3)")
	if q := d.query("SHOW MATERIALIZED VIEWS"); len(q.columns) != 5 || q.columns[4].Name != "state_touched" {
		t.Errorf("%v", q.columns)
	}
	if got := d.rows("SHOW MATERIALIZED VIEWS"); len(got) != 1 || !strings.HasPrefix(got[0], "m|2|2|") {
		t.Errorf("%q", got)
	}
}

// A view begins with its rows in several steps, which are seen as one.
func TestAViewBeginsInParts(t *testing.T) {
	in := incremental.Input{Ticks: []incremental.Tick{{Kind: incremental.SourceEnded}}}
	for range 5 {
		b := array.NewRecordBatch(arrow.NewSchema(nil, nil), nil, buildRows/2)
		in.Pushes = append(in.Pushes, incremental.Push{Batch: b}, incremental.Push{})
	}
	var parts []string
	for part, rest := firstPushes(in); ; part, rest = firstPushes(rest) {
		parts = append(parts, fmt.Sprint(len(part.Pushes), " ", len(part.Ticks)))
		if len(rest.Pushes) == 0 {
			break
		}
	}
	if got := strings.Join(parts, ", "); got != "3 0, 4 0, 3 1" {
		t.Error(got)
	}
	d := openDB(t)
	d.run("CREATE TABLE t AS SELECT range AS k FROM range(2500000); CREATE MATERIALIZED VIEW m AS SELECT k % 3 AS g, count(*) AS n, sum(k) AS s FROM t GROUP BY 1")
	d.is("SELECT * FROM m ORDER BY g", "0|833334|1041667083333", "1|833333|1041665416667", "2|833333|1041666250000")
	d.run("DELETE FROM t WHERE k > 2")
	d.is("SELECT * FROM m ORDER BY g", "0|1|0", "1|1|1", "2|1|2")
}
