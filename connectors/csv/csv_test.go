package csv

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	ct "github.com/riverbed/riverbed/connectors/connectortest"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/types"
)

func file(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.csv")
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestSniffing(t *testing.T) {
	for _, c := range []struct{ name, text, columns, rows string }{
		{"types", "a;b;c;d;e;f;g\n1;x;2020-01-01;2020-01-01 10:00:00;true;1.5;12:30:00\n2;;;;;;\n", "a BIGINT, b VARCHAR, c DATE, d TIMESTAMP, e BOOLEAN, f DOUBLE, g TIME",
			"1|x|2020-01-01|2020-01-01T10:00:00|true|1.5|12:30:00.000000\n2|NULL|NULL|NULL|NULL|NULL|NULL"},
		{"quotes and empty texts", "a,b\n1,\"x, y\"\n2,\"\"\n3,\n4,\"q\"\"z\"\n", "a BIGINT, b VARCHAR", "1|x, y\n2|NULL\n3|NULL\n4|q\"z"},
		{"no header", "1,2\n3,4\n", "column0 BIGINT, column1 BIGINT", "1|2\n3|4"},
		{"all text has a header", "a,b\nx,y\n", "a VARCHAR, b VARCHAR", "x|y"},
		{"offset", "t\n2020-01-01T00:00:00Z\n", "t TIMESTAMP WITH TIME ZONE", "2020-01-01T00:00:00Z"},
		{"integers and a fraction", "a\n1\n2.5\n", "a DOUBLE", "1\n2.5"},
		{"carriage returns", "a,b\r\n1,2\r\n\r\n3,4\r\n", "a BIGINT, b BIGINT", "1|2\n3|4"},
		{"no newline at the end", "a,b\n1,2", "a BIGINT, b BIGINT", "1|2"},
		{"a value that ends in a comma", "a,b\n1,", "a BIGINT, b VARCHAR", "1|NULL"},
		{"byte order mark", "\ufeffa,b\n1,2\n", "a BIGINT, b BIGINT", "1|2"},
		{"tabs", "a\tb\n1\tx,y\n", "a BIGINT, b VARCHAR", "1|x,y"},
		{"names that repeat", "a,a,\n1,2,3\n", "a BIGINT, a_1 BIGINT, column2 BIGINT", "1|2|3"},
		{"a newline in quotes", "a,b\n\"two\nlines\",1\n", "a VARCHAR, b BIGINT", "two\nlines|1"},
		{"leading zeros are text", "a,b,c,d\n00123,0.5,-012,+49\n456,0,3,2\n", "a VARCHAR, b DOUBLE, c BIGINT, d VARCHAR", "00123|0.5|-12|+49\n456|0|3|2"},
		{"zeros and dates are none", "a,b,c\n0,0001-02-03,01:02:03\n", "a BIGINT, b DATE, c TIME", "0|0001-02-03|01:02:03.000000"},
		{"a header of digits", "01,a\n7,x\n", "01 BIGINT, a VARCHAR", "7|x"},
		{"header alone", "a,b\n", "a VARCHAR, b VARCHAR", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			rel := ct.OpenRelation(t, Source, map[string]string{"path": file(t, c.text)})
			if got := ct.Columns(rel.Fields()); got != c.columns {
				t.Errorf("columns %s, want %s", got, c.columns)
			}
			if got := strings.Join(ct.Scan(t, rel, flow.ScanRequest{}), "\n"); got != c.rows {
				t.Errorf("rows\n%s\nwant\n%s", got, c.rows)
			}
		})
	}
}

func TestOptions(t *testing.T) {
	for _, c := range []struct {
		name, text string
		options    map[string]string
		columns    string
		rows       string
	}{
		{"no header", "a,b\nx,y\n", map[string]string{"header": "false"}, "column0 VARCHAR, column1 VARCHAR", "a|b x|y"},
		{"skip", "# made by hand\n#\na,b\n1,2\n", map[string]string{"skip": "2"}, "a BIGINT, b BIGINT", "1|2"},
		{"delim", "a,b;c\n1,2;3\n", map[string]string{"delim": ";"}, "a,b VARCHAR, c BIGINT", "1,2|3"},
		{"all_varchar", "a\n1\n", map[string]string{"all_varchar": "true"}, "a VARCHAR", "1"},
		{"nullstr", "a\n1\nNA\n", map[string]string{"nullstr": "NA"}, "a BIGINT", "1 NULL"},
		{"quote and escape", "a,b\n'it\\'s',1\n", map[string]string{"quote": "'", "escape": `\`}, "a VARCHAR, b BIGINT", "it's|1"},
		{"ignore_errors", "a\n1\nx\n3\n", map[string]string{"ignore_errors": "true", "sample_size": "2"}, "a BIGINT", "1 3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.options["path"] = file(t, c.text)
			rel := ct.OpenRelation(t, Source, c.options)
			if got := ct.Columns(rel.Fields()); got != c.columns {
				t.Errorf("columns %s, want %s", got, c.columns)
			}
			if got := strings.Join(ct.Scan(t, rel, flow.ScanRequest{}), " "); got != c.rows {
				t.Errorf("rows %s, want %s", got, c.rows)
			}
		})
	}
	if _, err := ct.TryRelation(Source, map[string]string{"path": file(t, "a\n"), "delim": "::"}); !errs.Is(err, errs.Usage) {
		t.Errorf("two characters: %v", err)
	}
}

func TestDeclaredColumns(t *testing.T) {
	// By name where there is a header, wherever the columns stand; by position otherwise.
	rel := ct.OpenRelation(t, Source, map[string]string{"path": file(t, "b,a\nx,1\n")}, types.Field{Name: "a", Type: types.Dec(5, 2)}, types.Field{Name: "b", Type: types.String})
	if got := ct.Scan(t, rel, flow.ScanRequest{}); got[0] != "1|x" {
		t.Errorf("by name: %v", got)
	}
	rel = ct.OpenRelation(t, Source, map[string]string{"path": file(t, "x,1\n"), "header": "false"}, types.Field{Name: "p", Type: types.String}, types.Field{Name: "q", Type: types.Int32})
	if got := ct.Scan(t, rel, flow.ScanRequest{}); got[0] != "x|1" {
		t.Errorf("by position: %v", got)
	}
}

// Quotes that first appear after the sample are still quotes.
func TestQuoteAfterSample(t *testing.T) {
	var b strings.Builder
	b.WriteString("name,qty\n")
	for i := range 21000 {
		fmt.Fprintf(&b, "n%d,%d\n", i, i%7)
	}
	b.WriteString("\"Beth, Bens. Co.\",3\n\"say \"\"hi\"\"\",4\n\"two\nlines\",5\nplain,6\n")
	rel := ct.OpenRelation(t, Source, map[string]string{"path": file(t, b.String())})
	got := ct.Scan(t, rel, flow.ScanRequest{})
	if len(got) != 21004 {
		t.Fatalf("%d rows", len(got))
	}
	if tail := strings.Join(got[21000:], " / "); tail != "Beth, Bens. Co.|3 / say \"hi\"|4 / two\nlines|5 / plain|6" {
		t.Errorf("tail %s", tail)
	}
	if got := ct.Scan(t, rel, flow.ScanRequest{Columns: []int{}}); len(got) != 21004 {
		t.Errorf("count without columns: %d", len(got))
	}
}

func TestBadFiles(t *testing.T) {
	long := "a,b\n" + strings.Repeat("1,2\n", 30000)
	for _, c := range []struct {
		name, text string
		parts      []string
	}{
		{"a value of another type behind the sample", long + "3,x\n", []string{"x.csv", "line 30002", `column "b"`, `"x" is not a value of BIGINT`, "ignore_errors"}},
		{"a record too short", long + "3\n", []string{"line 30002", "it has 1 values where the file has 2 columns"}},
		{"a quote that never closes", long + "\"3,4\n", []string{"line 30002", "not closed"}},
		{"text behind a quote", long + "\"3\"x,4\n", []string{"line 30002", "follows a closing quote"}},
		{"not UTF-8", "a\nx\n\xff\n", []string{"line 3", "UTF-8"}},
		{"empty", "", []string{"is empty"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			rel, err := ct.TryRelation(Source, map[string]string{"path": file(t, c.text)})
			if err == nil {
				_, err = ct.TryScan(rel, flow.ScanRequest{})
			}
			if !errs.Is(err, errs.Source) {
				t.Fatalf("got %v", err)
			}
			for _, p := range c.parts {
				if !strings.Contains(err.Error(), p) {
					t.Errorf("the error lacks %q: %v", p, err)
				}
			}
		})
	}
}

func TestStream(t *testing.T) {
	dir := t.TempDir()
	os.WriteFile(filepath.Join(dir, "a.csv"), []byte("v\n1\nx\n3\n4\ny\n6\n7\n8\n"), 0o666)
	os.WriteFile(filepath.Join(dir, "b.csv"), []byte("v\n9\n"), 0o666)
	open := func(t testing.TB) flow.Stream {
		return ct.OpenStream(t, Source, map[string]string{"path": dir}, types.Field{Name: "v", Type: types.Int64})
	}
	ct.Stream(t, ct.StreamConfig{Limit: 3, Open: open})
	rows, bad := ct.Flat(ct.Drain(t, open(t), flow.Split{ID: filepath.Join(dir, "a.csv")}, "", 100, 1))
	if strings.Join(rows, " ") != "1 3 4 6 7 8" || len(bad) != 2 || !strings.HasPrefix(bad[0], `x: column "v"`) {
		t.Errorf("rows %v, bad %v", rows, bad)
	}
}
