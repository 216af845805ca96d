package riverbed

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/riverbed/riverbed/core/errs"
)

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestErrorNamesTheRow: an expression that fails says on which row of which source, in batch.
func TestErrorNamesTheRow(t *testing.T) {
	d := openDB(t)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.csv"), "s,n\n1,10\n2,20\n")
	b := write(t, filepath.Join(dir, "b.csv"), "s,n\n3,30\nx,40\n5,0\ny,60\n")
	csv := "read_csv('" + dir + "/*.csv', all_varchar = true)"
	for _, c := range []struct {
		sql   string
		parts []string
	}{
		{"SELECT s::INTEGER FROM " + csv, []string{"could not convert string 'x' to INTEGER, in row 2 of " + b + ": {'s': x}", "(line 1, column 9)", "\n        ^"}},
		{"SELECT n FROM " + csv + " WHERE s::INTEGER > 1", []string{"row 2 of " + b, "{'s': x, 'n': 40}"}},
		{"SELECT sum(s::INTEGER) FROM " + csv, []string{"row 2 of " + b}},
		{"SELECT s::INTEGER, count(*) FROM " + csv + " GROUP BY 1", []string{"row 2 of " + b}},
		{"SELECT 10 // n::INTEGER FROM " + csv, []string{"division by zero", "row 3 of " + b + ": {'n': 0}"}},
		{"SELECT n FROM " + csv + " ORDER BY s::INTEGER LIMIT 1", []string{"row 2 of " + b}},
		{"SELECT strptime(s || '0', '%Y0') FROM " + csv + " WHERE s > '5'", []string{"could not read 'x0'", "row 2 of " + b}},
		{"SELECT v + 1 FROM (SELECT n::TINYINT + 100::TINYINT AS v FROM " + csv + ") q", []string{"overflow of TINYINT in 30 + 100, in row 1 of " + b}},
		{"SELECT s::INTEGER FROM " + csv + " UNION ALL SELECT 1", []string{"row 2 of " + b}},
		// These rows stem from no one row of a source.
		{"SELECT m::INTEGER FROM (SELECT max(s) AS m FROM " + csv + " HAVING max(s) > 'x')", []string{"in a row of the aggregate's output: {'m': y}"}},
		{"SELECT x.s::INTEGER FROM " + csv + " x JOIN " + csv + " y ON x.s = y.s AND x.s > 'x'", []string{"in a row of the inner join's output: {'s': y}"}},
		{"SELECT x.n FROM " + csv + " x JOIN " + csv + " y ON x.n = y.n AND (x.s || y.s)::INTEGER > 0", []string{"in a row of the inner join's output: {'s': x, 's': x}"}},
		{"SELECT s::INTEGER FROM (SELECT DISTINCT s FROM " + csv + " WHERE s >= 'x')", []string{"could not convert", "of the distinct's output: {'s': "}},
	} {
		d.fails(c.sql, errs.Data, c.parts...)
	}

	d.run("CREATE TABLE t (s VARCHAR, v BIGINT); INSERT INTO t VALUES ('1', 1), ('2', 2), ('x', 3); DELETE FROM t WHERE v = 1")
	d.fails("SELECT s::BIGINT + v FROM t", errs.Data, "in rowid 2 of t: {'s': x, 'v': 3}")
	d.fails("UPDATE t SET v = s::BIGINT", errs.Data, "in rowid 2 of t: {")
	d.fails("SELECT v, repeat(s, 400)::INTEGER FROM t", errs.Data, "could not convert")

	pq := filepath.Join(dir, "p.parquet")
	d.run("COPY (SELECT i, CASE WHEN i = 7777 THEN 'bad' ELSE i::VARCHAR END AS s FROM range(10000) r(i)) TO '" + pq + "' (row_group_size 1000)")
	d.fails("SELECT max(s::INTEGER) FROM '"+pq+"' WHERE i > 5000", errs.Data, "row 7778 of "+pq+": {'i': 7777, 's': bad}")
}

// TestErrorNamesTheRowOfAStream: in an incremental run too, by split and position.
func TestErrorNamesTheRowOfAStream(t *testing.T) {
	d := openDB(t)
	dir := t.TempDir()
	d.run("CREATE STREAM s (a VARCHAR, ts TIMESTAMP, WATERMARK FOR ts AS ts) WITH (connector = 'memory')")
	fails := func(sub *Subscription, parts ...string) {
		t.Helper()
		for {
			_, err := sub.Next(t.Context())
			if errors.Is(err, io.EOF) {
				t.Fatal("it ended without an error")
			}
			if err != nil {
				failsWith(t, "subscription", err, errs.Data, parts...)
				return
			}
		}
	}
	sub := d.follow("SELECT a::INTEGER FROM s", SubscribeOptions{})
	d.run("CREATE STREAM g (a VARCHAR, ts TIMESTAMP, WATERMARK FOR ts AS ts) WITH (connector = 'memory')")
	grouped := d.follow("SELECT max(a), count(*) FROM g GROUP BY TUMBLE(ts, INTERVAL '1 minute') HAVING max(a)::INTEGER >= 0 EMIT IMMEDIATE", SubscribeOptions{})
	d.push("s", "", row{"1", sec(10)}, row{"2", sec(20)})
	d.push("s", "left", row{"3", sec(30)}, row{"4", sec(5)}, row{"x", sec(40)})
	fails(sub, "could not convert string 'x' to INTEGER, in row 3 of split left of s: {'a': x}", "(line 1, column 9)")
	d.push("g", "", row{"1", sec(10)}, row{"x", sec(20)})
	fails(grouped, "in a row of the aggregate's output: {", ": x")

	path := write(t, filepath.Join(dir, "f.csv"), "a\n1\n2\ny\n")
	d.run("CREATE STREAM f (a VARCHAR) WITH (connector = 'csv', path = '" + path + "')")
	fails(d.follow("SELECT a::INTEGER FROM f", SubscribeOptions{Until: "latest"}), "row 3 of "+path)

	js := write(t, filepath.Join(dir, "j.json"), "{\"s\": \"1\"}\nnot json\nneither\n{\"s\": \"2\"}\n{\"s\": \"x\"}\n")
	d.run("CREATE STREAM j (s VARCHAR) WITH (connector = 'json', path = '" + js + "')")
	fails(d.follow("SELECT s::INTEGER FROM j", SubscribeOptions{Until: "latest"}), "row 5 of "+js) // records that do not decode are counted

	d.run("CREATE TABLE t (a VARCHAR); INSERT INTO t VALUES ('1')")
	table := d.follow("SELECT a::INTEGER FROM t", SubscribeOptions{})
	d.run("INSERT INTO t VALUES ('2'), ('z')")
	fails(table, "rowid 2 of t: {'a': z}")
	d.run("DELETE FROM t WHERE a = 'z'; CREATE MATERIALIZED VIEW v AS SELECT a::INTEGER AS n FROM t")
	d.fails("INSERT INTO t VALUES ('u')", errs.Data, "rowid 3 of t: {'a': u}")
	d.fails("SELECT * FROM v", errs.Data, "rowid 3 of t: {'a': u}")
}

// TestBadRows: with on_error = 'bad' a row that an expression fails on is left out and told; all others come as they would.
func TestBadRows(t *testing.T) {
	d := openDB(t)
	dir := t.TempDir()
	path := write(t, filepath.Join(dir, "b.csv"), "k,s,n\na,3,1\na,x,2\nb,5,0\nb,y,4\nc,,5\n")
	csv := "read_csv('" + path + "', all_varchar = true)"
	d.run("CREATE TABLE none (k VARCHAR, i INTEGER); SET on_error = 'bad'")
	for _, c := range []struct {
		sql, rows, bad string
	}{
		{"SELECT k, s::INTEGER FROM $", "a|3 b|5 c|NULL", "2 4"},
		{"SELECT k FROM $ WHERE s::INTEGER > 3", "b", "2 4"},
		{"SELECT k, sum(s::INTEGER) FROM $ GROUP BY k", "a|3 b|5 c|NULL", "2 4"},
		{"SELECT s::INTEGER AS i, count(*) FROM $ GROUP BY i", "3|1 5|1 NULL|1", "2 4"},
		{"SELECT k FROM $ ORDER BY s::INTEGER LIMIT 1", "a", "2 4"},
		{"SELECT 12 // n::INTEGER FROM $ WHERE s::INTEGER >= 3", "12", "2 3 4"},
		// A condition that drops a row keeps it from being bad, wherever it stands.
		{"SELECT s::INTEGER FROM $ WHERE k = 'a'", "3", "2"},
		{"SELECT k FROM $ WHERE s::INTEGER > 0 AND k <> 'a'", "b", "4"},
		{"SELECT k FROM $ WHERE k <> 'a' AND s::INTEGER > 0", "b", "4"},
		{"SELECT k FROM $ WHERE s::INTEGER > 0 AND 1 // n::INTEGER > 0", "a", "3"},
		{"SELECT i FROM (SELECT k, s::INTEGER AS i FROM $) WHERE k = 'b'", "5", "4"},
		{"SELECT k FROM $ WHERE s::INTEGER = 1 AND false", "", ""},
		// What nobody reads is not computed; branches are computed for the rows that take them.
		{"SELECT k FROM (SELECT k, s::INTEGER FROM $)", "a a b b c", ""},
		{"SELECT CASE WHEN k = 'a' THEN s::INTEGER END FROM $", "3 NULL NULL NULL", "2"},
		{"SELECT try_cast(s AS INTEGER) FROM $ WHERE k = 'a'", "3 NULL", ""},
		// Each side of a join judges its own rows, before the join.
		{"SELECT x.k, y.n FROM $ x JOIN $ y ON x.s::INTEGER = y.n::INTEGER + 3", "a|0 b|2", "2 4"},
		{"SELECT x.n FROM $ x, (SELECT 'a' AS k) y WHERE x.k = y.k AND x.s::INTEGER > 0", "1", "2 4"},
		{"SELECT x.n FROM $ x LEFT JOIN (SELECT 'a' AS k) y ON x.k = y.k AND x.s::INTEGER > 0 WHERE y.k IS NULL", "0 5", "2 4"},
		{"SELECT n FROM $ WHERE s::INTEGER IN (SELECT 5)", "0", "2 4"},
		{"SELECT x.n FROM $ x JOIN none y ON x.s::INTEGER = y.i", "", "2 4"},
		{"SELECT x.n FROM none y JOIN $ x ON x.s::INTEGER = y.i", "", "2 4"},
		{"SELECT x.n FROM $ x JOIN none y ON x.k = y.k WHERE x.s::INTEGER > 0", "", "2 4"},
		{"SELECT i FROM none WHERE k NOT IN (SELECT k FROM $ WHERE s::INTEGER > 0)", "", "2 4"},
		{"SELECT s::INTEGER FROM $ UNION ALL SELECT 7", "3 5 7 NULL", "2 4"},
		{"SELECT count(*) FROM $ x WHERE NOT EXISTS (SELECT 1 FROM $ y WHERE y.s::INTEGER = x.n::INTEGER)", "4", "2 4"},
	} {
		text := strings.ReplaceAll(c.sql, "$", csv)
		before := d.rows("SELECT count(*) FROM __bad")[0]
		q := d.query(text)
		batches, err := q.all(t.Context())
		if err != nil {
			t.Errorf("%s\n%v", text, err)
			continue
		}
		got := rowLines(q.columns, batches)
		slices.Sort(got)
		if have := strings.Join(got, " "); have != c.rows {
			t.Errorf("%s\nrows %q\nwant %q", text, have, c.rows)
		}
		bad := d.rows("SELECT position FROM __bad LIMIT 1000000 OFFSET " + before)
		for i, p := range bad {
			bad[i] = strings.TrimPrefix(p, "row ")
		}
		slices.Sort(bad)
		if have := strings.Join(bad, " "); have != c.bad {
			t.Errorf("%s\nbad  %q\nwant %q", text, have, c.bad)
		}
		if n := q.BadRows(); n != int64(len(bad)) {
			t.Errorf("%s\n%d bad rows are counted and %d stand in __bad", text, n, len(bad))
		}
	}
	q := d.query("SELECT s::INTEGER FROM " + csv + " WHERE n = '2'")
	if _, err := q.all(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.is("SELECT source, split, position, error, raw, row, query FROM __bad WHERE pipeline = (SELECT max(pipeline) FROM __bad WHERE row LIKE '%''n'': 2%' AND query LIKE '%n = ''2''')",
		fmt.Sprintf("read_csv|%s|row 2|could not convert string 'x' to INTEGER (line 1, column 9)|NULL|{'s': x, 'n': 2}|SELECT s::INTEGER FROM %s WHERE n = '2'", path, csv))
	d.fails("SELECT (k || s)::INTEGER FROM (SELECT DISTINCT k, s FROM "+csv+")", errs.Data, "of the distinct's output, which on_error = 'bad' does not leave out: {")
	d.fails("SELECT n::INTEGER + CAST('x' AS INTEGER) FROM "+csv, errs.Data, "'x'")
	d.fails("SET on_error = 'null'", errs.Usage, "expected 'fail' or 'bad'")
	d.run("CREATE TABLE t AS SELECT k, s FROM " + csv)
	d.fails("UPDATE t SET k = s::INTEGER", errs.Data, "rowid 1 of t")
	d.run("RESET on_error")
	d.fails("SELECT s::INTEGER FROM "+csv, errs.Data, "row 2")
}

// TestBadRowsOfStreams: an incremental run leaves out the same rows, goes on, and tells where they stood.
func TestBadRowsOfStreams(t *testing.T) {
	d := openDB(t, "on_error", "bad")
	d.run("CREATE STREAM s (a VARCHAR, ts TIMESTAMP, WATERMARK FOR ts AS ts) WITH (connector = 'memory')")
	sub := d.follow("SELECT a::INTEGER AS n FROM s", SubscribeOptions{})
	d.push("s", "", row{"1", sec(10)}, row{"x", sec(20)}, row{"3", sec(30)})
	expect(t, next(t, sub), "+1 1", "+1 3")
	d.push("s", "", row{"late", sec(5)}, row{"y", sec(40)}, row{"4", sec(50)})
	expect(t, next(t, sub), "+1 4")
	m := sub.Metrics()
	if m.BadRows != 2 || m.LateRows != 1 {
		t.Errorf("metrics %+v", m)
	}
	d.is("SELECT source, split, position, error, row, query FROM __bad WHERE pipeline = '"+m.Pipeline+"' ORDER BY position",
		"s|0|row 2|could not convert string 'x' to INTEGER (line 1, column 9)|{'a': x}|SELECT a::INTEGER AS n FROM s",
		"s|0|row 5|could not convert string 'y' to INTEGER (line 1, column 9)|{'a': y}|SELECT a::INTEGER AS n FROM s")

	d.run("CREATE TABLE t (a VARCHAR); CREATE MATERIALIZED VIEW v AS SELECT sum(a::INTEGER) AS n FROM t")
	d.run("INSERT INTO t VALUES ('1'), ('z'), ('5')")
	d.is("SELECT n FROM v", "6")
	d.is("SELECT a FROM t", "1", "z", "5") // left out of the one query
	d.run("DELETE FROM t WHERE a IN ('z', '1')")
	d.is("SELECT n FROM v", "5")
	d.run("UPDATE t SET a = 'w'")
	d.is("SELECT n FROM v", "NULL")
	d.is("SELECT source, position, row FROM __bad WHERE pipeline = 'v'", "t|rowid 1|{'a': z}", "t|rowid 3|{'a': w}")
}

// TestBadRowsOfADrainedFile: a file read as a stream and as a relation have the same bad rows at the same places.
func TestBadRowsOfADrainedFile(t *testing.T) {
	d := openDB(t, "on_error", "bad", "step_rows", "7")
	var text strings.Builder
	text.WriteString("a\n")
	for i := range 1000 {
		if i%97 == 5 {
			fmt.Fprintf(&text, "bad%d\n", i)
		} else {
			fmt.Fprintf(&text, "%d\n", i)
		}
	}
	path := write(t, filepath.Join(t.TempDir(), "f.csv"), text.String())
	d.run("CREATE STREAM f (a VARCHAR) WITH (connector = 'csv', path = '" + path + "')")
	inc := accumulate(t, d.follow("SELECT a::BIGINT AS n FROM f", SubscribeOptions{Until: "latest"}))
	batch := d.rows("SELECT a::BIGINT AS n FROM read_csv('" + path + "', all_varchar = true)")
	slices.Sort(batch)
	expect(t, inc, batch...)
	const bad = "SELECT split, position, error, row FROM __bad WHERE pipeline = 'query-%d' ORDER BY position"
	want := d.rows(fmt.Sprintf(bad, 1))
	if len(want) != 11 || !strings.HasPrefix(want[0], path+"|row 103|") {
		t.Fatalf("%q", want)
	}
	d.is(strings.ReplaceAll(fmt.Sprintf(bad, 2), "error", "replace(error, '(line 1, column 9)', '(line 1, column 9)')"), want...)
}
