package riverbed

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/errs"
)

// function registers a function of one BIGINT that gives its argument back after it has called f.
func (d db) function(name string, f func(ctx context.Context)) {
	d.t.Helper()
	err := d.RegisterUDF(UDF{Name: name, Args: []string{"BIGINT"}, Returns: "BIGINT", Deterministic: true,
		Call: func(ctx context.Context, args []arrow.Array, _ int) (arrow.Array, error) {
			f(ctx)
			return args[0], nil
		}})
	if err != nil {
		d.t.Fatal(err)
	}
}

// waiting registers wait(x), which says that it was called and then waits until it is let go or its run is cancelled.
func (d db) waiting() (called chan struct{}, let func()) {
	called, gate := make(chan struct{}, 100), make(chan struct{})
	d.function("wait", func(ctx context.Context) {
		called <- struct{}{}
		select {
		case <-gate:
		case <-ctx.Done():
		}
	})
	return called, sync.OnceFunc(func() { close(gate) })
}

// begin runs a text beside the test; the channel gives its error.
func (d db) begin(ctx context.Context, text string) <-chan error {
	out := make(chan error, 1)
	go func() {
		_, err := d.Query(ctx, text, nil)
		out <- err
	}()
	return out
}

// While a statement works, everything else of the session goes on.
func TestLongStatementsHoldNobodyUp(t *testing.T) {
	for _, text := range []string{
		"CREATE TABLE new AS SELECT wait(k) AS k FROM t",
		"CREATE MATERIALIZED VIEW new AS SELECT wait(k) AS k FROM t",
		"INSERT INTO u SELECT wait(k) FROM t",
		"UPDATE u SET k = wait(k)",
		"COPY (SELECT wait(k) AS k FROM t) TO '" + t.TempDir() + "/x.csv'",
	} {
		t.Run(text, func(t *testing.T) {
			d := openDB(t)
			d.run("CREATE TABLE t (k BIGINT); INSERT INTO t VALUES (1), (2); CREATE TABLE u (k BIGINT); INSERT INTO u VALUES (0)")
			called, let := d.waiting()
			defer let()
			done := d.begin(t.Context(), text)
			<-called
			d.is("SELECT 1", "1")
			d.is("SELECT sum(k) FROM t", "3")
			d.run("CREATE TABLE other (a BIGINT); DROP TABLE other; CREATE VIEW w AS SELECT * FROM t; SET timezone = 'UTC'")
			d.run("CREATE STREAM s (v BIGINT) WITH (connector = 'memory')")
			d.push("s", "", row{1})
			d.Prepare("SELECT * FROM nowhere")
			sub := d.follow("SELECT k FROM t EMIT IMMEDIATE", SubscribeOptions{})
			expect(t, next(t, sub), "+1 1", "+1 2")
			let()
			if err := <-done; err != nil {
				t.Fatal(err)
			}
		})
	}
}

// A name that another statement takes meanwhile is refused at the end.
func TestTwoStatementsMakeOneName(t *testing.T) {
	for _, c := range []struct {
		long, meanwhile, says string
		rows                  []string // of n, at the end
	}{
		{"CREATE TABLE n AS SELECT wait(k) AS k FROM t", "CREATE TABLE n AS SELECT 5 AS k", `table "n" exists already`, []string{"5"}},
		{"CREATE OR REPLACE TABLE n AS SELECT wait(k) AS k FROM t", "CREATE VIEW n AS SELECT 1 AS k", `"n" is a view, which a table cannot replace`, []string{"1"}},
		{"CREATE TABLE IF NOT EXISTS n AS SELECT wait(k) AS k FROM t", "CREATE TABLE n AS SELECT 5 AS k", "", []string{"5"}},
		{"CREATE OR REPLACE TABLE n AS SELECT wait(k) + 7 AS k FROM t", "CREATE TABLE n AS SELECT 5 AS k", "", []string{"8"}},
		{"CREATE MATERIALIZED VIEW n AS SELECT wait(k) AS k FROM t", "CREATE VIEW n AS SELECT 1 AS k", `view "n" exists already`, []string{"1"}},
		{"CREATE MATERIALIZED VIEW m AS SELECT wait(k) AS k FROM t", "DROP TABLE t", `another statement changed the table "t"`, nil},
		{"CREATE MATERIALIZED VIEW m AS SELECT wait(k) AS k FROM t", "CREATE OR REPLACE TABLE t AS SELECT 5 AS k", `another statement changed the table "t"`, nil},
		{"INSERT INTO t SELECT wait(k) FROM t", "DROP TABLE t", `another statement dropped or replaced the table "t"`, nil},
	} {
		t.Run(c.long, func(t *testing.T) {
			d := openDB(t)
			d.run("CREATE TABLE t (k BIGINT); INSERT INTO t VALUES (1)")
			called, let := d.waiting()
			defer let()
			done := d.begin(t.Context(), c.long)
			<-called
			d.run(c.meanwhile)
			let()
			err := <-done
			if c.says != "" {
				failsWith(t, c.long, err, errs.Schema, c.says)
				d.fails("SELECT * FROM m", errs.Schema) // the view that was given up left nothing
			} else if err != nil {
				t.Fatal(err)
			}
			if c.rows != nil {
				d.is("SELECT * FROM n", c.rows...)
			}
		})
	}
}

// A view that is being made misses nothing that statements change meanwhile.
func TestViewsMissNothingWhileTheyAreMade(t *testing.T) {
	d := openDB(t)
	d.run("CREATE TABLE t (k BIGINT); INSERT INTO t VALUES (1), (2)")
	called, let := d.waiting()
	defer let()
	done := d.begin(t.Context(), "CREATE MATERIALIZED VIEW m AS SELECT sum(wait(k)) AS s, count(*) AS n FROM t")
	<-called
	d.run("INSERT INTO t VALUES (10); DELETE FROM t WHERE k = 1; BEGIN; INSERT INTO t VALUES (100); COMMIT; BEGIN; INSERT INTO t VALUES (1000); ROLLBACK")
	let()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	d.is("SELECT * FROM m", "112|3")
	d.run("INSERT INTO t VALUES (7)")
	d.is("SELECT * FROM m", "119|4")
}

// A function may call the session that calls it: it reads and creates, and what would wait for itself is refused.
func TestFunctionsCallTheirSession(t *testing.T) {
	reads := "SELECT count(*) FROM t"
	for _, c := range []struct{ text, inside, says string }{
		{"SELECT f(k) FROM t", reads, ""},
		{"SELECT f(k) FROM t", "INSERT INTO log VALUES (1)", ""},
		{"CREATE TABLE n AS SELECT f(k) AS k FROM t", "INSERT INTO log VALUES (1)", ""},
		{"CREATE TABLE n AS SELECT f(k) AS k FROM t", "CREATE TABLE IF NOT EXISTS made AS SELECT 1 AS a", ""},
		{"INSERT INTO u SELECT f(k) FROM t", reads, ""},
		{"INSERT INTO u SELECT f(k) FROM t", "CREATE OR REPLACE TABLE made AS SELECT 1 AS a", ""},
		{"INSERT INTO u SELECT f(k) FROM t", "INSERT INTO log VALUES (1)", "a function within a statement that changes rows called this statement"},
		{"INSERT INTO u SELECT f(k) FROM t", "BEGIN", "would wait for its own caller"},
		{"INSERT INTO u SELECT f(k) FROM t", "CREATE MATERIALIZED VIEW mv AS SELECT * FROM t", "would wait for its own caller"},
		{"INSERT INTO u SELECT f(k) FROM t", "SELECT g(1)", "would wait for its own caller"},
		{"UPDATE u SET k = f(k)", "DELETE FROM u", "would wait for its own caller"},
		{"CREATE MATERIALIZED VIEW m AS SELECT f(k) AS k FROM t", reads, ""},
		{"CREATE MATERIALIZED VIEW m AS SELECT f(k) AS k FROM t", "INSERT INTO t VALUES (9)", "a function within a materialized view"},
		{"CREATE MATERIALIZED VIEW m AS SELECT f(t.k) AS k FROM t JOIN s ON s.v = t.k", "INSERT INTO t VALUES (9)", "a function within a materialized view"},
	} {
		t.Run(c.text+"/"+c.inside, func(t *testing.T) {
			d := openDB(t)
			d.run("CREATE TABLE t (k BIGINT); INSERT INTO t VALUES (1); CREATE TABLE u (k BIGINT); INSERT INTO u VALUES (1); CREATE TABLE log (a BIGINT)")
			d.run("CREATE STREAM s (v BIGINT) WITH (connector = 'memory')")
			answers := make(chan error, 100)
			call := func(text string) func(context.Context) {
				return func(ctx context.Context) {
					q, err := d.Query(ctx, text, nil)
					if err == nil && q != nil {
						_, err = q.all(ctx)
					}
					answers <- err
				}
			}
			d.function("f", call(c.inside))
			d.function("g", call("INSERT INTO log VALUES (1)"))
			d.run(c.text)
			d.push("s", "", row{1})
			if err := <-answers; c.says != "" {
				failsWith(t, c.inside, err, errs.Usage, c.says)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}

// A statement that is cancelled while its views step leaves tables and views as they were, and they go on from there.
func TestCancelledChangeLeavesTablesAndViewsTogether(t *testing.T) {
	for _, c := range []struct{ before, text string }{
		{"", "INSERT INTO t VALUES (3)"}, {"", "UPDATE t SET k = k + 1"}, {"", "DELETE FROM t WHERE k = 1"}, {"", "TRUNCATE t"},
		{"BEGIN; INSERT INTO t VALUES (3), (4); UPDATE t SET k = k * 2", "COMMIT"},
	} {
		t.Run(c.text, func(t *testing.T) {
			d := openDB(t)
			armed := false
			called := make(chan struct{}, 100)
			d.function("slow", func(ctx context.Context) {
				if armed {
					called <- struct{}{}
					<-ctx.Done()
				}
			})
			d.run("CREATE TABLE t (k BIGINT PRIMARY KEY); INSERT INTO t VALUES (1), (2)")
			d.run("CREATE MATERIALIZED VIEW first AS SELECT sum(k) AS s FROM t")
			d.run("CREATE MATERIALIZED VIEW slows AS SELECT slow(k) AS k FROM t")
			d.run("CREATE MATERIALIZED VIEW last AS SELECT count(*) AS n FROM t")
			together := func(rows ...string) {
				t.Helper()
				d.is("SELECT s, n FROM first, last", rows[0])
				d.has("SELECT k FROM t", rows[1:]...)
				d.has("SELECT k FROM slows", rows[1:]...)
			}
			sub := d.follow("SELECT k FROM t EMIT IMMEDIATE", SubscribeOptions{})
			expect(t, next(t, sub), "+1 1", "+1 2")
			if c.before != "" {
				d.run(c.before)
			}
			armed = true
			ctx, cancel := context.WithCancel(t.Context())
			done := d.begin(ctx, c.text)
			<-called
			d.is("SELECT 1", "1")
			cancel()
			failsWith(t, c.text, <-done, errs.Cancelled, "nothing was changed")
			armed = false
			together("3|2", "1", "2")
			d.run("INSERT INTO t VALUES (3)") // the views are built anew, and step
			together("6|3", "1", "2", "3")
			expect(t, next(t, sub), "+1 3")
			d.run("UPDATE t SET k = k + 10; DELETE FROM t WHERE k = 11")
			together("25|2", "12", "13")
			d.fails("INSERT INTO t VALUES (12)", errs.Data, "duplicate key")
		})
	}
}

// A query reads one moment of the session: a table twice, and a table beside a view of it, whatever is changed meanwhile.
func TestAQueryReadsOneMoment(t *testing.T) {
	d := openDB(t)
	d.run("CREATE TABLE t (k BIGINT); CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM t; INSERT INTO t VALUES (0)")
	ctx, stop := context.WithCancel(t.Context())
	changed := make(chan error, 1)
	go func() {
		var err error
		for i := 0; err == nil && ctx.Err() == nil; i++ {
			_, err = d.Query(t.Context(), fmt.Sprintf("INSERT INTO t VALUES (%d)", i), nil)
		}
		changed <- err
	}()
	for range 50 {
		for _, text := range []string{
			"SELECT (SELECT count(*) FROM t) = (SELECT n FROM v)",
			"SELECT count(*) = 0 FROM t WHERE rowid NOT IN (SELECT rowid FROM t)",
			"SELECT a.n = b.n FROM (SELECT count(DISTINCT rowid) AS n FROM t) a, (SELECT count(*) AS n FROM t) b",
		} {
			d.is(text, "true")
		}
		d.run("CREATE OR REPLACE TABLE pair AS SELECT (SELECT count(*) FROM t) AS a, (SELECT n FROM v) AS b")
		d.is("SELECT a = b FROM pair", "true")
	}
	stop()
	if err := <-changed; err != nil {
		t.Fatal(err)
	}
}

// Closing a session ends its queries too, those that compute and those whose result is half read.
func TestClosingASessionEndsItsQueries(t *testing.T) {
	s, err := Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	d := db{t: t, Session: s}
	called, let := d.waiting()
	defer let()
	d.run("CREATE TABLE t AS SELECT i AS k FROM range(500000) r(i)")
	half, err := d.query("SELECT k FROM t").Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer half.Release()
	if !half.Next() {
		t.Fatal(half.Err())
	}
	done := make(chan error, 1)
	q := d.query("SELECT sum(wait(k)) FROM t")
	go func() {
		_, err := q.all(t.Context())
		done <- err
	}()
	<-called
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	failsWith(t, "a query that computes", <-done, errs.Cancelled)
	for half.Next() {
	}
	failsWith(t, "a result that is half read", half.Err(), errs.Cancelled)
}

// A view that is built anew tells of its bad rows once.
func TestAViewBuiltAnewTellsNothingTwice(t *testing.T) {
	d := openDB(t, "on_error", "bad")
	armed, called := false, make(chan struct{}, 1)
	d.function("slow", func(ctx context.Context) {
		if armed {
			called <- struct{}{}
			<-ctx.Done()
		}
	})
	d.run("CREATE TABLE t (k BIGINT, s VARCHAR); INSERT INTO t VALUES (1, '1'), (2, 'x')")
	d.run("CREATE MATERIALIZED VIEW v AS SELECT s::INTEGER AS n, slow(k) AS k FROM t")
	armed = true
	ctx, cancel := context.WithCancel(t.Context())
	done := d.begin(ctx, "INSERT INTO t VALUES (3, '3')")
	<-called
	cancel()
	failsWith(t, "INSERT", <-done, errs.Cancelled)
	armed = false
	d.run("INSERT INTO t VALUES (4, '4'), (5, 'y')")
	d.has("SELECT * FROM v", "1|1", "4|4")
	d.is("SELECT count(*) FROM __bad", "2")
}

// An INSERT whose table is not there yet takes its turn all the same: another statement may make the table meanwhile.
func TestInsertIntoWhatIsNotThereTakesTurns(t *testing.T) {
	d := openDB(t)
	d.run("CREATE TABLE t (k BIGINT); INSERT INTO t VALUES (1)")
	called, let := d.waiting()
	defer let()
	first := d.begin(t.Context(), "UPDATE t SET k = wait(k)")
	<-called
	second := d.begin(t.Context(), "INSERT INTO late VALUES (1)")
	select {
	case err := <-second:
		t.Fatalf("it did not wait: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	d.run("CREATE TABLE late (k BIGINT)")
	let()
	if err := <-first; err != nil {
		t.Fatal(err)
	}
	if err := <-second; err != nil {
		t.Fatal(err)
	}
	d.is("SELECT * FROM late", "1")
}

// Who waits for another statement's end can be cancelled too.
func TestWaitingForAnotherStatementCanBeCancelled(t *testing.T) {
	d := openDB(t)
	d.run("CREATE TABLE t (k BIGINT); INSERT INTO t VALUES (1)")
	called, let := d.waiting()
	defer let()
	done := d.begin(t.Context(), "INSERT INTO t SELECT wait(k) FROM t")
	<-called
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err := d.Query(ctx, "DELETE FROM t", nil)
	failsWith(t, "DELETE", err, errs.Cancelled, "another statement")
	let()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	d.is("SELECT count(*) FROM t", "2")
}

// Statements of many goroutines: changes take turns, and views keep up with all of them.
func TestManyGoroutines(t *testing.T) {
	d := openDB(t)
	d.run("CREATE TABLE t (g BIGINT, n BIGINT); CREATE VIEW w AS SELECT g, n FROM t WHERE n >= 0; CREATE MATERIALIZED VIEW m AS SELECT g, sum(n) AS n FROM w GROUP BY g")
	const goroutines, rounds = 4, 20
	var all sync.WaitGroup
	for g := range goroutines {
		all.Go(func() {
			for range rounds {
				for _, text := range []string{
					"INSERT INTO t VALUES (" + string(rune('0'+g)) + ", 0)", "UPDATE t SET n = n + 1", "SELECT count(*) FROM w JOIN m USING (g)",
					"CREATE OR REPLACE TABLE x AS SELECT * FROM w", "CREATE MATERIALIZED VIEW IF NOT EXISTS m2 AS SELECT count(*) AS n FROM w",
				} {
					q, err := d.Query(context.Background(), text, nil)
					if err == nil && q != nil {
						_, err = q.all(context.Background())
					}
					if err != nil {
						t.Errorf("%s: %v", text, err)
					}
				}
			}
		})
	}
	all.Wait()
	d.is("SELECT n FROM m2", "80")
	d.has("SELECT * FROM m", d.rows("SELECT g, sum(n) FROM t GROUP BY g")...)
	d.is("SELECT max(n) FROM t", "80")
}
