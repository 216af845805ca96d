package riverbed

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/types"
)

// What COPY writes is read back as it was: DuckDB writes and reads the same texts.
func TestFilesGiveBackWhatWasWritten(t *testing.T) {
	for _, c := range []struct{ ending, query, columns, text string }{
		{"json", "SELECT 'NaN'::DOUBLE AS a, 'inf'::DOUBLE AS b, '-inf'::FLOAT AS c, [1.5, 'nan'::DOUBLE] AS d", "", `{"a":NaN,"b":Infinity,"c":-Infinity,"d":[1.5,NaN]}`},
		{"json", "SELECT INTERVAL '1 month 2 days 3 seconds' AS i, INTERVAL '-1 day' AS j", "i INTERVAL, j INTERVAL", `{"i":"1 month 2 days 00:00:03","j":"-1 day"}`},
		{"json", "SELECT MAP {'a': 1, 'b': NULL} AS m, MAP {1: 'x'} AS n, MAP {DATE '2020-01-02': INTERVAL '1 hour'} AS o", "m MAP(VARCHAR, INTEGER), n MAP(INTEGER, VARCHAR), o MAP(DATE, INTERVAL)", `{"m":{"a":1,"b":null},"n":{"1":"x"},"o":{"2020-01-02":"01:00:00"}}`},
		{"json", "SELECT 99999999999999999999::HUGEINT AS h", "", `{"h":99999999999999999999}`},
		{"csv", "SELECT i::BIGINT AS i FROM (VALUES (1), (NULL), (3), (NULL)) t(i)", "", "i\n1\n\n3\n"},
		{"csv", "SELECT s FROM (VALUES ('x'), (NULL), ('z')) t(s)", "", "s\nx\n\nz"},
		{"csv", "SELECT 99999999999999999999::HUGEINT AS h, 9223372036854775807 AS b", "", "h,b\n99999999999999999999,9223372036854775807"},
		{"csv", "SELECT INTERVAL '1 year 00:00:01.5' AS i, 1 AS one", "i INTERVAL, one INTEGER", "i,one\n1 year 00:00:01.5,1"},
	} {
		d := openDB(t)
		path := filepath.Join(t.TempDir(), "x."+c.ending)
		d.run(fmt.Sprintf("COPY (%s) TO '%s'", c.query, path))
		if text, err := os.ReadFile(path); err != nil || strings.TrimSuffix(string(text), "\n") != c.text {
			t.Errorf("%s\ngot  %q (%v)\nwant %q", c.query, text, err, c.text)
		}
		from := "'" + path + "'"
		if c.columns != "" {
			d.run(fmt.Sprintf("CREATE TABLE x (%s) WITH (connector = '%s', path = '%s')", c.columns, c.ending, path))
			from = "x"
		}
		want := d.rows(c.query)
		d.is("SELECT * FROM "+from, want...)
	}
}

// DuckDB's answers for files of the kinds that people have.
func TestOddFiles(t *testing.T) {
	for _, c := range []struct {
		name, text, columns string
		want                []string
	}{
		{"a.csv", "a\n9223372036854775808\n1\n", "", []string{"a HUGEINT", "9223372036854775808", "1"}},
		{"a.csv", "a\n9223372036854775807\n", "", []string{"a BIGINT", "9223372036854775807"}},
		{"a.csv", "a\n1" + strings.Repeat("0", 60) + "\n", "", []string{"a DOUBLE", "1e+60"}},
		{"a.csv", "a\n99999999999999999999\n1.5\n", "", []string{"a DOUBLE", "1e+20", "1.5"}},
		{"a.csv", "a\n1\n\n\n", "", []string{"a BIGINT", "1", "NULL", "NULL"}},
		{"a.csv", "a\r\n1\r\n\r\n2\r\n", "", []string{"a BIGINT", "1", "NULL", "2"}},
		{"a.csv", "\na\n1\n2\n", "", []string{"a BIGINT", "1", "2"}},
		{"a.csv", "a,b\n1,2\n\n3,4\n", "", []string{"a BIGINT, b BIGINT", "1|2", "3|4"}},
		{"a.csv", "", "a INTEGER", []string{"a INTEGER"}},
		{"a.csv", "\n", "a INTEGER", []string{"a INTEGER", "NULL"}},
		{"a.csv", "\n\n", "a INTEGER, b INTEGER", []string{"a INTEGER, b INTEGER"}},
		{"a.json", "", "a INTEGER", []string{"a INTEGER"}},
		{"a.json", "[]", "a INTEGER", []string{"a INTEGER"}},
		{"a.json", "{\"a\":NaN,\"b\":Infinity}\n{\"a\":1,\"b\":-Infinity}", "", []string{"a DOUBLE, b DOUBLE", "nan|inf", "1.0|-inf"}},
		{"a.json", "{\"a\":\"NaN\"}\n{\"a\":1.5}", "a DOUBLE", []string{"a DOUBLE", "nan", "1.5"}},
	} {
		d := openDB(t)
		path := filepath.Join(t.TempDir(), c.name)
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		from := "'" + path + "'"
		if c.columns != "" {
			d.run(fmt.Sprintf("CREATE TABLE x (%s) WITH (connector = '%s', path = '%s')", c.columns, filepath.Ext(path)[1:], path))
			from = "x"
		}
		got := append([]string{columnList(d.query("SELECT * FROM " + from).Fields())}, d.rows("SELECT * FROM "+from)...)
		if fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s %q\ngot  %q\nwant %q", c.name, c.text, got, c.want)
		}
	}
	d := openDB(t)
	for _, c := range []struct{ name, text string }{{"a.csv", ""}, {"b.csv", "\n"}, {"a.json", ""}, {"b.json", "[]"}} {
		path := filepath.Join(t.TempDir(), c.name)
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		d.fails("SELECT * FROM '"+path+"'", errs.Source, "so its columns are unknown", "declare the columns")
	}
	path := filepath.Join(t.TempDir(), "c.json")
	if err := os.WriteFile(path, []byte(`{"a": {"x": NaN}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	d.run("CREATE TABLE j (a JSON) WITH (connector = 'json', path = '" + path + "')")
	d.fails("SELECT * FROM j", errs.Source, "'N' where a number should stand") // a value of type JSON is JSON
}

func TestPartitionColumnsStandInTheOrderOfTheirNames(t *testing.T) {
	d := openDB(t)
	dir := t.TempDir()
	for _, at := range []string{"z=1/b=x", "z=2/b=y"} {
		if err := os.MkdirAll(filepath.Join(dir, at), 0o700); err != nil {
			t.Fatal(err)
		}
		d.run(fmt.Sprintf("COPY (SELECT 7 AS v) TO '%s/%s/f.parquet'", dir, at))
	}
	d.has(fmt.Sprintf("SELECT * FROM read_parquet('%s/**/*.parquet', hive_partitioning = true)", dir), "7|x|1", "7|y|2")
}

func TestSinksNeedANameToWriteTo(t *testing.T) {
	d := openDB(t)
	for _, format := range []string{"csv", "json", "parquet"} {
		for _, path := range []string{"/", "//", ".", "./", "..", "/tmp/.."} {
			d.fails(fmt.Sprintf("COPY (SELECT 1 AS a) TO '%s' (FORMAT %s)", path, format), errs.Usage, "needs the name of a file", "result."+format)
		}
	}
}

// columnList is columns as CREATE TABLE writes them.
func columnList(fields []types.Field) string {
	parts := make([]string, len(fields))
	for i, f := range fields {
		parts[i] = f.Name + " " + f.Type.String()
	}
	return strings.Join(parts, ", ")
}
