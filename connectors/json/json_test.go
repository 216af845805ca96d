package json

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

func file(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestInference(t *testing.T) {
	path := file(t, "a.json", `{"a":1,"b":"2020-01-01T00:00:00Z","c":{"x":1,"y":[1,2.5]},"d":null,"e":"2020-01-01","f":1.5,"g":[{"k":1}],"h":true,"i":"12:34:56","m":"abc","n":9223372036854775808,"u":"550e8400-e29b-41d4-a716-446655440000","w":"2020-01-01 00:00:00"}
{"a":2,"m":5,"z":[]}
`)
	rel := ct.OpenRelation(t, Source, map[string]string{"path": path})
	want := "a BIGINT, b TIMESTAMP WITH TIME ZONE, c STRUCT(x BIGINT, y DOUBLE[]), d JSON, e DATE, f DOUBLE, g STRUCT(k BIGINT)[], h BOOLEAN, i TIME, m JSON, n HUGEINT, u UUID, w TIMESTAMP, z JSON[]"
	if got := ct.Columns(rel.Fields()); got != want {
		t.Errorf("columns\n%s\nwant\n%s", got, want)
	}
	rows := ct.Scan(t, rel, flow.ScanRequest{})
	if rows[0] != `1|2020-01-01T00:00:00Z|{"x":1,"y":[1,2.5]}|NULL|2020-01-01|1.5|[{"k":1}]|true|12:34:56.000000|"abc"|9223372036854775808|VQ6EAOKbQdSnFkRmVUQAAA==|2020-01-01T00:00:00|NULL` ||
		!strings.HasPrefix(rows[1], `2|NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL|5|NULL`) {
		t.Errorf("rows %s", strings.Join(rows, "\n"))
	}
	// As a stream, times in UTC are TIMESTAMP, so that windows apply.
	s := ct.OpenStream(t, Source, map[string]string{"path": path})
	if got := ct.Columns(s.Fields()[1:2]); got != "b TIMESTAMP" {
		t.Errorf("stream: %s", got)
	}
}

func TestLayouts(t *testing.T) {
	for name, text := range map[string]string{
		"lines":                  "{\"v\":1}\n\n{\"v\":2}\n  {\"v\":3}",
		"an array":               "[ {\"v\":1},\n{\"v\":2}, {\"v\":3} ]\n",
		"objects over lines":     "{\n\"v\":1}\n{\"v\":\n2} {\"v\":3}",
		"byte order mark":        "\ufeff{\"v\":1}\n{\"v\":2}\n{\"v\":3}\n",
		"carriage returns":       "{\"v\":1}\r\n{\"v\":2}\r\n{\"v\":3}\r\n",
		"one object without end": "{\"v\":1}{\"v\":2}{\"v\":3}",
	} {
		if got := ct.Scan(t, ct.OpenRelation(t, Source, map[string]string{"path": file(t, "x.json", text)}), flow.ScanRequest{}); strings.Join(got, " ") != "1 2 3" {
			t.Errorf("%s: %v", name, got)
		}
	}
	if got := ct.Scan(t, ct.OpenRelation(t, Source, map[string]string{"path": file(t, "x.json", "[]")}, types.Field{Name: "v", Type: types.Int64}), flow.ScanRequest{}); len(got) != 0 {
		t.Errorf("an empty array: %v", got)
	}
}

// Large files are cut into blocks at line ends; no line is lost or read twice, wherever the cut falls.
func TestBlocks(t *testing.T) {
	var b strings.Builder
	n := 0
	for b.Len() < 2*blockBytes+1000 {
		fmt.Fprintf(&b, "{\"v\":%d,\"pad\":%q}\n", n, strings.Repeat("x", (n*7919)%3000))
		n++
	}
	path := file(t, "big.jsonl", b.String())
	rel := ct.OpenRelation(t, Source, map[string]string{"path": path}, types.Field{Name: "v", Type: types.Int64})
	got := ct.Scan(t, rel, flow.ScanRequest{Workers: 3})
	if len(got) != n {
		t.Fatalf("%d rows, want %d", len(got), n)
	}
	for i, row := range got {
		if row != fmt.Sprint(i) {
			t.Fatalf("row %d is %s", i, row)
		}
	}
	// A line that is longer than a block, and a cut that falls on a line's end.
	long := `{"v":1}` + "\n" + `{"v":2,"pad":"` + strings.Repeat("x", 2*blockBytes) + `"}` + "\n" + `{"v":3}`
	exact := `{"v":1,"pad":"` + strings.Repeat("x", blockBytes-17) + `"}` + "\n" + `{"v":2}` + "\n" + `{"v":3}`
	if exact[blockBytes-1] != '\n' {
		t.Fatal("the second text does not cut at a line's end")
	}
	for _, text := range []string{long, exact} {
		rel := ct.OpenRelation(t, Source, map[string]string{"path": file(t, "l.jsonl", text)}, types.Field{Name: "v", Type: types.Int64})
		if got := ct.Scan(t, rel, flow.ScanRequest{}); strings.Join(got, " ") != "1 2 3" {
			t.Errorf("%v", got)
		}
	}
}

func TestBadFiles(t *testing.T) {
	v := types.Field{Name: "v", Type: types.Int64}
	for _, c := range []struct {
		name, text string
		schema     []types.Field
		parts      []string
	}{
		{"broken line", "{\"v\":1}\n{\"v\":\n", []types.Field{v}, []string{"x.json", "line 2", "too early"}},
		{"wrong type", "{\"v\":1}\n\n{\"v\":[]}\n", []types.Field{v}, []string{"line 3", `field "v"`, "array", "BIGINT"}},
		{"not an object", "{\"v\":1}\n5\n", []types.Field{v}, []string{"line 2", "not a JSON object"}},
		{"broken array", "[{\"v\":1},", []types.Field{v}, []string{"line 1"}},
		{"text behind the array", "[{\"v\":1}] x", []types.Field{v}, []string{"follows"}},
		{"empty", "", nil, []string{"no records"}},
		{"not JSON", "a,b\n1,2\n", nil, []string{"x.json", "line 1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			rel, err := ct.TryRelation(Source, map[string]string{"path": file(t, "x.json", c.text)}, c.schema...)
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
	rel := ct.OpenRelation(t, Source, map[string]string{"path": file(t, "x.json", "{\"v\":1}\nx\n{\"v\":3}\n"), "ignore_errors": "true"}, v)
	if got := ct.Scan(t, rel, flow.ScanRequest{}); strings.Join(got, " ") != "1 3" {
		t.Errorf("ignore_errors: %v", got)
	}
}

func TestStream(t *testing.T) {
	dir := t.TempDir()
	os.WriteFile(filepath.Join(dir, "a.jsonl"), []byte("{\"v\":1}\n{\"v\":\"x\"}\n{\"v\":3}\nbroken\n{\"v\":5}\n{\"v\":6,\"w\":0}\n{}\n"), 0o666)
	os.WriteFile(filepath.Join(dir, "b.json"), []byte("[{\"v\":8},{\"v\":9}]"), 0o666)
	open := func(t testing.TB) flow.Stream {
		return ct.OpenStream(t, Source, map[string]string{"path": dir}, types.Field{Name: "v", Type: types.Int64})
	}
	ct.Stream(t, ct.StreamConfig{Limit: 2, Open: open})
	// Lax: a quoted number would be one; x is none.
	rows, bad := ct.Flat(ct.Drain(t, open(t), flow.Split{ID: filepath.Join(dir, "a.jsonl")}, "", 100, 1))
	if strings.Join(rows, " ") != "1 3 5 6 NULL" || len(bad) != 2 || !strings.HasPrefix(bad[1], "broken: ") {
		t.Errorf("rows %v, bad %v", rows, bad)
	}
}

// What a unit was read with is used for the next one, by a scan that asks for other columns too.
func TestUnitsShareTheirMemory(t *testing.T) {
	var text strings.Builder
	const n = 200_000
	for i := range n {
		fmt.Fprintf(&text, `{"a":%d,"b":"%s","c":%d.5}`+"\n", i, strings.Repeat("b", i%160), i)
	}
	rel := ct.OpenRelation(t, Source, map[string]string{"path": file(t, "x.json", text.String())})
	for _, columns := range [][]int{{0, 1, 2}, {2}, {1, 0}, {0, 1, 2}} {
		half, err := rel.Scan(t.Context(), flow.ScanRequest{Columns: columns, Workers: 1})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := half.Next(t.Context(), 0); err != nil { // and no more of it
			t.Fatal(err)
		}
		if err := half.Close(); err != nil {
			t.Fatal(err)
		}
		rows := ct.Scan(t, rel, flow.ScanRequest{Columns: columns, Workers: 1})
		if len(rows) != n {
			t.Fatalf("%d rows", len(rows))
		}
		for i, row := range rows {
			of := []string{fmt.Sprint(i), strings.Repeat("b", i%160), fmt.Sprintf("%d.5", i)}
			want := make([]string, len(columns))
			for k, c := range columns {
				want[k] = of[c]
			}
			if row != strings.Join(want, "|") {
				t.Fatalf("row %d of %v is %s", i, columns, row)
			}
		}
	}
}
