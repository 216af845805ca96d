package riverbed

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"github.com/riverbed/riverbed/checkpoint"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/types"
)

func TestCopy(t *testing.T) {
	d := openDB(t)
	dir := t.TempDir()
	d.run("CREATE TABLE t (a INTEGER, b VARCHAR); INSERT INTO t VALUES (1, 'x'), (2, NULL)")
	for ending, format := range map[string]string{"parquet": "parquet", "csv": "csv", "json": "json", "jsonl": "json", "ndjson": "json"} {
		path := filepath.Join(dir, "t."+ending)
		d.is(fmt.Sprintf("COPY t TO '%s'", path), "2")
		d.is(fmt.Sprintf("COPY (SELECT a FROM t) TO '%s/only' (FORMAT %s)", dir, format), "2")
		d.run("CREATE OR REPLACE TABLE back (a INTEGER, b VARCHAR)")
		d.is(fmt.Sprintf("COPY back FROM '%s'", path), "2")
		d.is("SELECT * FROM back ORDER BY a", "1|x", "2|NULL")
		d.is(fmt.Sprintf("SELECT count(*) FROM '%s'", path), "2")
		os.RemoveAll(filepath.Join(dir, "only"))
	}
	d.fails(fmt.Sprintf("COPY t TO '%s/t.xyz'", dir), errs.Schema, "t.xyz", "FORMAT")
	d.fails(fmt.Sprintf("COPY t TO '%s/t.arrow'", dir), errs.Schema, "t.arrow", "FORMAT") // it is read only
	d.is(fmt.Sprintf("COPY t TO '%s/t.tsv' (FORMAT csv)", dir), "2")
	d.fails(fmt.Sprintf("COPY t TO '%s/t.csv' (FORMAT yaml)", dir), errs.Usage, "yaml", "known connectors")
	d.fails(fmt.Sprintf("COPY t TO '%s/t.csv' (DELIMTER ';')", dir), errs.Usage, "delimter", "did you mean")
	d.fails(fmt.Sprintf("COPY nowhere FROM '%s/t.csv'", dir), errs.Schema, "nowhere")
	d.fails(fmt.Sprintf("COPY t TO '%s/t.csv/t.csv'", dir), errs.Source, "t.csv")
}

// Columns of one name get different names where they are written and where they are read, as in DuckDB.
func TestColumnsOfOneName(t *testing.T) {
	d := openDB(t)
	dir := t.TempDir()
	const two = "SELECT a.x, b.x FROM (VALUES (1)) a(x), (VALUES ('b')) b(x)"
	for _, ext := range []string{"csv", "json"} {
		d.run(fmt.Sprintf("COPY (%s) TO '%s/t.%s'", two, dir, ext))
	}
	for name, want := range map[string]string{"t.csv": "x,x_1\n1,b\n", "t.json": `{"x":1,"x_1":"b"}` + "\n"} {
		if got, _ := os.ReadFile(filepath.Join(dir, name)); string(got) != want {
			t.Errorf("%s holds %q, not %q", name, got, want)
		}
	}
	d.run(fmt.Sprintf("CREATE TABLE t AS %s, (VALUES (3)) c(X)", strings.Replace(two, "b.x", "b.x, c.X", 1)))
	d.is("SELECT x, x_1, X_2 FROM t", "1|b|3")

	// Files of others hold two columns of one name.
	fields := []types.Field{{Name: "x", Type: types.Int64}, {Name: "x", Type: types.String}, {Name: "X", Type: types.Int64}}
	rec := batchOf(fields, row{1, "b", 3})
	var buf bytes.Buffer
	w := ipc.NewWriter(&buf, ipc.WithSchema(rec.Schema()))
	if err := errors.Join(w.Write(rec), w.Close(), os.WriteFile(filepath.Join(dir, "t.arrow"), buf.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
	buf.Reset()
	pw, err := pqarrow.NewFileWriter(rec.Schema(), &buf, nil, pqarrow.DefaultWriterProps())
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(pw.Write(rec), pw.Close(), os.WriteFile(filepath.Join(dir, "t.parquet"), buf.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, ext := range []string{"arrow", "parquet"} {
		path := filepath.Join(dir, "t."+ext)
		d.is(fmt.Sprintf("FROM '%s'", path), "1|b|3")
		d.is(fmt.Sprintf("SELECT x_1, X_2 FROM '%s' WHERE X_2 = 3 AND x_1 = 'b'", path), "b|3")
		d.is(fmt.Sprintf("SELECT X_2, x FROM read_%s('%s', union_by_name = true)", ext, path), "3|1")
	}
}

// As in DuckDB, 01 is no number.
func TestHiveKeysKeepLeadingZeros(t *testing.T) {
	d := openDB(t)
	for _, c := range []struct {
		values string
		want   []string
	}{{"1 10", []string{"1|BIGINT", "10|BIGINT"}}, {"01 10", []string{"01|VARCHAR", "10|VARCHAR"}}, {"0 1", []string{"0|BIGINT", "1|BIGINT"}},
		{"00 1", []string{"00|VARCHAR", "1|VARCHAR"}}, {"-1 2", []string{"-1|BIGINT", "2|BIGINT"}}, {"2024-01-01", []string{"2024-01-01|DATE"}}} {
		dir := t.TempDir()
		for _, v := range strings.Fields(c.values) {
			if err := errors.Join(os.Mkdir(filepath.Join(dir, "m="+v), 0o700), os.WriteFile(filepath.Join(dir, "m="+v, "a.csv"), []byte("a\n1\n"), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		d.is(fmt.Sprintf("SELECT m, typeof(m) FROM '%s/*/*.csv' ORDER BY m", dir), c.want...)
	}
}

func TestCompressedTextIsRefused(t *testing.T) {
	d := openDB(t)
	path := filepath.Join(t.TempDir(), "a.csv.gz")
	var buf bytes.Buffer
	w := gzip.NewWriter(&buf)
	_, err := w.Write([]byte("a\n1\n"))
	if err := errors.Join(err, w.Close(), os.WriteFile(path, buf.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
	d.fails(fmt.Sprintf("FROM '%s'", path), errs.Source, "CSV", "a.csv.gz", "gzip", "unpack")
	d.fails(fmt.Sprintf("FROM read_json('%s')", path), errs.Source, "JSON", "gzip")
	// The columns are known, and only the reader sees the file.
	d.run(fmt.Sprintf("CREATE STREAM s (a BIGINT) WITH (connector = 'csv', path = '%s')", path))
	sub, err := d.query("SELECT a FROM s").Subscribe(t.Context(), SubscribeOptions{Until: "latest"})
	for err == nil {
		_, err = sub.Next(t.Context())
	}
	failsWith(t, "a stream", err, errs.Source, "gzip")
}

// Files of a pattern are called by their folder.
func TestNamesOfFiles(t *testing.T) {
	d := openDB(t)
	dir := filepath.Join(t.TempDir(), "orders")
	if err := errors.Join(os.MkdirAll(filepath.Join(dir, "m=1"), 0o700), os.WriteFile(filepath.Join(dir, "m=1", "x.y.csv"), []byte("a\n1\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	d.is(fmt.Sprintf("SELECT x.a FROM '%s/m=1/x.y.csv'", dir), "1")
	d.is(fmt.Sprintf("SELECT orders.a FROM '%s/*/*.csv'", dir), "1")
	t.Chdir(filepath.Join(dir, "m=1"))
	d.is("SELECT files.a FROM '*.csv'", "1")
}

func TestSinks(t *testing.T) {
	d := openDB(t)
	dir := t.TempDir()
	d.run(fmt.Sprintf("CREATE SINK out WITH (connector = 'json', path = '%s/out')", dir))
	d.run(fmt.Sprintf("CREATE SINK typed (a BIGINT) WITH (connector = 'json', path = '%s/typed')", dir))
	d.is("INSERT INTO out SELECT i AS a FROM range(3) r(i)", "3") // bounded: at once
	d.is(fmt.Sprintf("SELECT sum(a) FROM read_json('%s/out')", dir), "3")
	d.fails("INSERT INTO typed SELECT 'x'", errs.Schema, "cast it")
	d.fails("INSERT INTO typed SELECT 1, 2", errs.Schema, "1 columns")
	d.fails("INSERT INTO out VALUES (1); SELECT * FROM out", errs.Schema, "written, not read")
	d.fails("CREATE SINK x WITH (connector = 'jsn')", errs.Usage, `did you mean "json"?`)
	d.fails("CREATE SINK x WITH (path = 'y')", errs.Usage, "no connector")
	d.fails("CREATE SINK x WITH (connector = 'json')", errs.Usage, "path")

	d.run("CREATE STREAM s (v BIGINT) WITH (connector = 'memory')")
	q := d.query("INSERT INTO typed SELECT v FROM s")
	if !q.Pipeline() {
		t.Fatal("a live INSERT is a pipeline")
	}
	d.fails("INSERT INTO typed SELECT v FROM s; SELECT 1", errs.Usage, "pipeline")
	p, err := q.AsPipeline(false)
	if err != nil {
		t.Fatal(err)
	}
	h, err := p.Start(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	d.push("s", "", row{1}, row{2})
	// What was written becomes visible although no further row comes.
	until(t, "the rows are visible", func() bool {
		files, _ := filepath.Glob(dir + "/typed/*.json*")
		return len(files) > 0
	})
	d.push("s", "", row{3})
	if err := h.Stop(true); err != nil {
		t.Fatal(err)
	}
	d.is(fmt.Sprintf("SELECT count(*), sum(a) FROM read_json('%s/typed')", dir), "3|6")
	_, err = d.query("SELECT v FROM s").Sink(SinkSpec{ConnectorSpec: ConnectorSpec{Connector: "json", Options: map[string]string{"path": dir}}, ExactlyOnce: true})
	failsWith(t, "exactly once", err, errs.ExactlyOnce, "checkpoint_url is not set")
}

func TestSinkThatFails(t *testing.T) {
	d := openDB(t)
	d.run("CREATE STREAM s (v BIGINT) WITH (connector = 'memory')")
	for what, fault := range map[string]func() error{
		"an error": func() error { return errs.New(errs.Source, "write", "the disk is full") },
		"a panic":  func() error { panic("the disk is full") },
	} {
		p, err := d.query("SELECT v FROM s EMIT IMMEDIATE").Sink(SinkSpec{Func: func(context.Context, flow.Delta) error { return fault() }})
		if err != nil {
			t.Fatal(err)
		}
		h, err := p.Start(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		d.push("s", "", row{1}) // and nothing more
		err = h.Wait(t.Context())
		if err == nil || !strings.Contains(err.Error(), "the disk is full") || h.Metrics().State != "failed" {
			t.Errorf("%s: %v, %s", what, err, h.Metrics().State)
		}
	}
}

// morsels is a relation of n batches that counts how many were read.
type morsels struct {
	n    int64
	read atomic.Int64
	fail error // at the end
}

func (m *morsels) Fields() []types.Field { return []types.Field{{Name: "a", Type: types.Int64}} }
func (m *morsels) Stats() flow.Stats     { return flow.Stats{Rows: -1} }
func (m *morsels) Close() error          { return nil }
func (m *morsels) Scan(context.Context, flow.ScanRequest) (flow.Scan, error) {
	return m, nil
}

func (m *morsels) Next(context.Context, int) (*flow.Morsel, error) {
	i := m.read.Add(1)
	if i > m.n {
		if m.fail != nil {
			return nil, m.fail
		}
		return nil, nil
	}
	return &flow.Morsel{Seq: i, Batch: batchOf(m.Fields(), row{i}, row{-i})}, nil
}

func TestResultsAreStreamed(t *testing.T) {
	d := openDB(t)
	big := &morsels{n: 1 << 20}
	if err := d.Register("big", big); err != nil {
		t.Fatal(err)
	}
	if n := len(d.rows("SELECT * FROM big LIMIT 10")); n != 10 {
		t.Errorf("%d rows", n)
	}
	res, err := d.query("SELECT a + 1 FROM big").Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !res.Next() {
		t.Fatal(res.Err())
	}
	if n := big.read.Load(); n > 1000 {
		t.Errorf("%d batches were read for the first rows", n)
	}
	res.Release()
	res, err = d.query("SELECT a FROM big").Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	q := d.query("SELECT sum(a) FROM big")
	_, err = q.all(ctx)
	failsWith(t, "cancelled", err, errs.Cancelled)
	res.Release()
	if err := d.Register("torn", &morsels{n: 3, fail: errs.New(errs.Source, "read", "torn.parquet is cut short")}); err != nil {
		t.Fatal(err)
	}
	d.fails("SELECT sum(a) FROM torn", errs.Source, "torn.parquet")
	d.Drop("torn")
	d.fails("SELECT * FROM torn", errs.Schema)
	if names, _ := d.Prepare("SELECT * FROM big, df, DF, other"); strings.Join(names, " ") != "df other" {
		t.Errorf("unknown: %v", names)
	}
}

func TestBadInput(t *testing.T) {
	d := openDB(t)
	dir := t.TempDir()
	write := func(name, content string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("garbage.parquet", "PAR1 this is no parquet file PAR1")
	write("empty.parquet", "")
	d.run("CREATE TABLE orders (id INTEGER, price DOUBLE, placed TIMESTAMP)")
	d.run(fmt.Sprintf("COPY (SELECT i AS a FROM range(1000) r(i)) TO '%s/whole.parquet'", dir))
	whole, err := os.ReadFile(filepath.Join(dir, "whole.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	write("cut.parquet", string(whole[:len(whole)/2]))
	d.run(fmt.Sprintf("COPY (SELECT 'x' AS a) TO '%s/m1.parquet'", dir))
	d.run(fmt.Sprintf("COPY (SELECT TRUE AS b) TO '%s/m2.parquet'", dir))
	write("bad.json", "{\"a\": 1}\n{\"a\": \n")
	for _, c := range []struct {
		text string
		kind errs.Kind
		says []string
	}{
		{"SELECT prise FROM orders", errs.Schema, []string{`"prise"`, `did you mean "price"?`, "line 1, column 8", "^"}},
		{"SELECT *\nFROM ordrs", errs.Schema, []string{`did you mean "orders"?`, "line 2, column 6"}},
		{"SELECT uper('x')", errs.Schema, []string{`did you mean "upper"?`, "column 8"}},
		{"SELECT * FROM reed_parquet('x')", errs.Schema, []string{`read_parquet`}},
		{"SELECT id FROM orders UNION ALL SELECT placed FROM orders", errs.Schema, []string{"INTEGER", "TIMESTAMP"}},
		{"SELECT price + placed FROM orders", errs.Schema, []string{"DOUBLE", "TIMESTAMP", "column"}},
		{"SELEC 1", errs.Schema, []string{"line 1, column 1", "SELEC"}},
		{"SELECT (1", errs.Schema, []string{"line 1", ")"}},
		{fmt.Sprintf("SELECT * FROM '%s/none.parquet'", dir), errs.Source, []string{"none.parquet"}},
		{fmt.Sprintf("SELECT * FROM '%s/none*.parquet'", dir), errs.Source, []string{"none*.parquet"}},
		{fmt.Sprintf("SELECT * FROM '%s/garbage.parquet'", dir), errs.Source, []string{"garbage.parquet"}},
		{fmt.Sprintf("SELECT * FROM '%s/empty.parquet'", dir), errs.Source, []string{"empty.parquet"}},
		{fmt.Sprintf("SELECT * FROM '%s/cut.parquet'", dir), errs.Source, []string{"cut.parquet"}},
		{fmt.Sprintf("SELECT * FROM '%s/m*.parquet'", dir), errs.Source, []string{"m2.parquet"}},
		{fmt.Sprintf("SELECT a FROM '%s/bad.json'", dir), errs.Source, []string{"bad.json"}},
		{fmt.Sprintf("SELECT * FROM '%s/file.xyz'", dir), errs.Schema, []string{"file.xyz", "known endings", "read_parquet"}},
		{"SELECT CAST('abc' AS INTEGER)", errs.Data, []string{"abc", "INTEGER"}},
		{"SELECT 9223372036854775807 + i FROM range(1, 3) r(i)", errs.Data, []string{"9223372036854775807"}},
		{"CREATE STREAM s (a BIGINT) WITH (connector = 'kafca', topic = 't')", errs.Usage, []string{`did you mean "kafka"?`}},
		{"CREATE STREAM s (a BIGINT, WATERMARK FOR a AS a) WITH (connector = 'memory')", errs.Schema, []string{`"a"`, "timestamp"}},
		{"CREATE STREAM s (a BIGINT) WITH (connector = 'memory', qeue_rows = 4)", errs.Usage, []string{"qeue_rows", `queue_rows`}},
		{"CREATE STREAM s WITH (connector = 'memory')", errs.Schema, []string{"columns declared"}},
		{"CREATE STREAM s (a BIGINT, ts TIMESTAMP, WATERMARK FOR ts AS ts) WITH (connector = 'memory', allowed_lateness = '1 month')", errs.Usage, []string{"allowed_lateness"}},
		{"CREATE STREAM s (a BIGINT, ts TIMESTAMP, WATERMARK FOR ts AS ts) WITH (connector = 'memory', allowed_lateness = '2 minutes')", errs.Usage, []string{"allowed_lateness", "max_watermark_lag_ms = 120000"}},
		{"CREATE STREAM s (a BIGINT, ts TIMESTAMP, WATERMARK FOR ts AS ts) WITH (connector = 'memory', updating = true, allowed_lateness = '1 second')", errs.Unsupported, []string{"allowed_lateness", "updating"}},
		{"CREATE TABLE x (a BIGINT) WITH (connector = 'memory')", errs.Usage, []string{"CREATE STREAM"}},
		{"SELECT * FROM range('x')", errs.Data, []string{"'x'", "BIGINT"}},
		{"SELECT * FROM range(1, 2, 0)", errs.Schema, []string{"step", "0"}},
	} {
		d.fails(c.text, c.kind, c.says...)
	}
	d.is("SELECT count(*) FROM generate_series(9223372036854775806, 9223372036854775807)", "2")
	d.is("SELECT count(*) FROM generate_series(3, 1, -1)", "3")
	d.is("SELECT count(*) FROM range(3, 1)", "0")
	if _, err := d.query("CREATE STREAM s (v BIGINT) WITH (connector = 'memory'); SELECT v FROM s").Run(t.Context()); !errs.Is(err, errs.Usage) {
		t.Errorf("a live stream as batch: %v", err)
	}
	_, err = d.PushStream("orders")
	failsWith(t, "push", err, errs.Usage, "orders", "memory")
}

func TestFunctions(t *testing.T) {
	d := openDB(t)
	register := func(name string, deterministic bool, f func(args []arrow.Array, n int) (arrow.Array, error)) {
		t.Helper()
		err := d.RegisterUDF(UDF{Name: name, Args: []string{"BIGINT"}, Returns: "BIGINT", Deterministic: deterministic,
			Call: func(_ context.Context, args []arrow.Array, n int) (arrow.Array, error) { return f(args, n) }})
		if err != nil {
			t.Fatal(err)
		}
	}
	same := func(args []arrow.Array, _ int) (arrow.Array, error) { return args[0], nil }
	register("same", true, same)
	register("dice", false, same)
	register("short", true, func([]arrow.Array, int) (arrow.Array, error) { return types.ArrayOf(nil, types.Int64), nil })
	register("text", true, func(_ []arrow.Array, n int) (arrow.Array, error) {
		return types.ArrayOf(make([]types.Value, n), types.String), nil
	})
	register("nothing", true, func([]arrow.Array, int) (arrow.Array, error) { return nil, nil })
	register("raises", true, func([]arrow.Array, int) (arrow.Array, error) { return nil, io.ErrUnexpectedEOF })
	register("panics", true, func([]arrow.Array, int) (arrow.Array, error) { panic("boom") })
	d.is("SELECT same(i) + SAME(1) FROM range(3) r(i)", "1", "2", "3")
	for f, says := range map[string]string{"short": "0 values for 3 rows", "text": "BIGINT", "nothing": "returned nothing", "raises": "unexpected EOF"} {
		d.fails(fmt.Sprintf("SELECT %s(i) FROM range(3) r(i)", f), errs.Data, f, says, "line 1")
	}
	d.fails("SELECT panics(i) FROM range(3) r(i)", errs.Internal, "boom")
	d.is("SELECT 1", "1") // the session lives
	d.run("CREATE TABLE t (a BIGINT)")
	d.fails("CREATE MATERIALIZED VIEW v AS SELECT dice(a) FROM t", errs.Unsupported, "dice", "deterministic=True")
	d.run("CREATE MATERIALIZED VIEW v AS SELECT same(a) AS a FROM t; INSERT INTO t VALUES (1); DELETE FROM t")
	d.is("SELECT count(*) FROM v", "0")
	failsWith(t, "built-in", d.RegisterUDF(UDF{Name: "Upper", Returns: "BIGINT"}), errs.Usage, "built-in")
	failsWith(t, "type", d.RegisterUDF(UDF{Name: "f", Returns: "NUMBR"}), errs.Usage, "NUMBR")
	failsWith(t, "argument", d.RegisterUDF(UDF{Name: "f", Args: []string{"NUMBR"}, Returns: "BIGINT"}), errs.Usage, "NUMBR")
	d.fails("SELECT same('x', 2)", errs.Schema, "same")
}

// What files say of themselves is asked again when the query runs, although no row is read.
func TestStatisticsOfFilesThatChanged(t *testing.T) {
	d := openDB(t)
	path := filepath.Join(t.TempDir(), "t.parquet")
	d.run(fmt.Sprintf("COPY (SELECT i AS a FROM range(3) r(i)) TO '%s'", path))
	q := d.query(fmt.Sprintf("SELECT count(*), max(a) FROM '%s'", path))
	rows, err := q.all(t.Context())
	if err != nil || rows[0].Column(0).ValueStr(0) != "3" || rows[0].Column(1).ValueStr(0) != "2" {
		t.Fatal(rows, err)
	}
	d.run(fmt.Sprintf("COPY (SELECT i AS a FROM range(99) r(i)) TO '%s'", path))
	_, err = q.all(t.Context())
	failsWith(t, "changed", err, errs.Source, "t.parquet", "changed")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	_, err = q.all(t.Context())
	failsWith(t, "deleted", err, errs.Source, "t.parquet", "no longer there")
}

// A table of files that is read by a pipeline goes on after a restart where it was, if it is the same.
func TestTableOfFilesThatChanges(t *testing.T) {
	v, dir := newVault(t), t.TempDir()
	feedFolder(t, dir, 1, 401, 50)
	config := map[string]string{"checkpoint_url": t.TempDir(), "checkpoint_interval_ms": "1", "step_rows": "20"}
	query := "SELECT k, v FROM '" + dir + "/*.json'"
	end := func(after int) func(string, flow.Epoch) bool {
		return func(phase string, _ flow.Epoch) bool {
			if phase == checkpoint.Marked {
				after--
			}
			return after == 0
		}
	}
	if ended, err := runEnded(t, config, nil, query, "vault_staging", "p", end(1)); !ended {
		t.Fatal(err)
	}
	feedFolder(t, dir, 0, 1, 50)
	_, err := runEnded(t, config, nil, query, "vault_staging", "p", end(-1))
	failsWith(t, "another file", err, errs.State, "has other files", "put back what it had")
	if err := os.Remove(filepath.Join(dir, "0000.json")); err != nil {
		t.Fatal(err)
	}
	if _, err := runEnded(t, config, nil, query, "vault_staging", "p", end(-1)); err != nil {
		t.Fatal(err)
	}
	if got := v.all(); len(got) != 20_000 {
		t.Errorf("%d rows instead of 20000", len(got))
	}
}
