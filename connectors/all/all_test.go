package all

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/riverbed/riverbed/connectors"
	ct "github.com/riverbed/riverbed/connectors/connectortest"
	djson "github.com/riverbed/riverbed/connectors/decode/json"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/types"
)

// Every declaration is whole: a half-added connector fails here with a sentence that names what is missing.
func TestDeclarations(t *testing.T) {
	options := func(of string, o connectors.Options) {
		seen := map[string]bool{}
		for _, opt := range o {
			switch {
			case seen[opt.Name]:
				t.Errorf("%s declares the option %q twice", of, opt.Name)
			case !strings.HasSuffix(opt.Doc, "."):
				t.Errorf("%s: the option %q needs a Doc that ends as a sentence", of, opt.Name)
			case opt.Required && opt.Example == "" && opt.Type != connectors.Enum:
				t.Errorf("%s: the required option %q needs an Example", of, opt.Name)
			case opt.Type == connectors.Enum && len(opt.Values) == 0:
				t.Errorf("%s: the option %q needs Values", of, opt.Name)
			case opt.Required && opt.Default != "":
				t.Errorf("%s: the option %q is required and has a default", of, opt.Name)
			}
			if opt.Default != "" {
				if _, err := (connectors.Options{opt}).Parse(of, nil); err != nil {
					t.Errorf("%s: the default of %q is wrong: %v", of, opt.Name, err)
				}
			}
			seen[opt.Name] = true
		}
	}
	names, functions, endings := map[string]bool{}, map[string]bool{}, map[string]bool{}
	once := func(in map[string]bool, what, name string) {
		if in[name] {
			t.Errorf("two connectors have the %s %q", what, name)
		}
		in[name] = true
	}
	for _, s := range Sources {
		once(names, "name", s.Name)
		for _, f := range s.Functions {
			once(functions, "function", f)
		}
		for _, e := range s.Extensions {
			once(endings, "ending", e)
		}
		if s.Summary == "" || s.Class == "" || s.Relation == nil && s.Stream == nil {
			t.Errorf("the source %q needs a Summary, a Class, and a Relation or a Stream", s.Name)
		}
		options("the source "+s.Name, s.Options)
		if Source(s.Name) == nil || !strings.Contains(s.Markdown(), s.Name) {
			t.Errorf("the source %q is not found", s.Name)
		}
	}
	clear(names)
	for _, s := range Sinks {
		once(names, "name", s.Name)
		if s.Summary == "" || s.Class == "" || s.Open == nil {
			t.Errorf("the sink %q needs a Summary, a Class and Open", s.Name)
		}
		options("the sink "+s.Name, s.Options)
		if Sink(s.Name) == nil || !strings.Contains(s.Markdown(), s.Name) {
			t.Errorf("the sink %q is not found", s.Name)
		}
	}
}

// fields are the types that go through every file format.
var fields = []types.Field{
	{Name: "b", Type: types.Bool}, {Name: "i8", Type: types.Int8}, {Name: "i64", Type: types.Int64}, {Name: "u64", Type: types.Uint64},
	{Name: "huge", Type: types.Int128}, {Name: "f", Type: types.Float64}, {Name: "r", Type: types.Float32}, {Name: "dec", Type: types.Dec(20, 3)},
	{Name: "s", Type: types.String}, {Name: "d", Type: types.Date32}, {Name: "t", Type: types.TimeUS}, {Name: "ts", Type: types.TsUS},
	{Name: "tz", Type: types.TsTZ}, {Name: "u", Type: types.UUIDType}, {Name: "l", Type: types.ListOf(types.Int64)},
	{Name: "st", Type: types.StructOf(types.Field{Name: "a", Type: types.String})},
}

var input = []string{
	`{"b":true,"i8":-128,"i64":9223372036854775807,"u64":18446744073709551615,"huge":-12345678901234567890123456789,"f":0.1,"r":1.5,"dec":-12345678901234567.891,"s":"a,\"b\"\n","d":"1969-12-31","t":"23:59:59.000001","ts":"2020-02-29 12:00:00.5","tz":"2020-01-01T00:00:00+02:00","u":"550e8400-e29b-41d4-a716-446655440000","l":[1,null],"st":{"a":"x"}}`,
	`{}`,
	`{"f":"NaN","s":"é","l":[],"st":{}}`,
	`{"f":-1e300,"dec":0.001}`,
}

func rows(t *testing.T, fields []types.Field) arrow.RecordBatch {
	t.Helper()
	d, err := djson.New(fields, djson.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range input {
		if err := d.Append([]byte(line)); err != nil {
			t.Fatal(err)
		}
	}
	return d.Batch()
}

func openSink(t *testing.T, name string, updating bool, fields []types.Field, options map[string]string) (connectors.Writer, error) {
	t.Helper()
	s := Sink(name)
	set, err := s.Options.Parse("sink", options)
	if err != nil {
		t.Fatal(err)
	}
	return s.Open(context.Background(), connectors.SinkRequest{Settings: set, Fields: fields, Updating: updating, Pipeline: "p"})
}

// What a file sink writes its source reads back, value for value.
func TestFilesRoundTrip(t *testing.T) {
	for _, c := range []struct {
		name   string
		fields []types.Field
		schema bool // declared, as the format does not carry types
	}{{"parquet", fields, false}, {"json", fields, true}, {"csv", fields[:14], true}} {
		t.Run(c.name, func(t *testing.T) {
			b := rows(t, c.fields)
			dir := filepath.Join(t.TempDir(), "out")
			w, err := openSink(t, c.name, false, c.fields, map[string]string{"path": dir})
			if err != nil {
				t.Fatal(err)
			}
			for epoch := range flow.Epoch(3) {
				if epoch != 1 { // an epoch without rows makes no file
					if err := w.Write(t.Context(), flow.Delta{Batch: b}); err != nil {
						t.Fatal(err)
					}
				}
				if entries, _ := os.ReadDir(dir); epoch == 0 && strings.Contains(names(entries), "p-") && !strings.Contains(names(entries), ".tmp") {
					t.Error("a file is visible before its epoch ends")
				}
				if _, err := w.Stage(t.Context(), epoch+1); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.Write(t.Context(), flow.Delta{Batch: b}); err != nil {
				t.Fatal(err)
			}
			w.Close() // what was not staged is dropped
			entries, _ := os.ReadDir(dir)
			if len(entries) != 2 {
				t.Fatalf("files %s", names(entries))
			}
			var schema []types.Field
			if c.schema {
				schema = c.fields
			}
			rel := ct.OpenRelation(t, *Source(c.name), map[string]string{"path": dir}, schema...)
			if got, want := ct.Columns(rel.Fields()), ct.Columns(c.fields); got != want {
				t.Fatalf("columns\n%s\nwant\n%s", got, want)
			}
			got := ct.Scan(t, rel, flow.ScanRequest{})
			for i := range 2 * len(input) {
				if want := ct.Row(b, i%len(input)); got[i] != want {
					t.Errorf("row %d\ngot  %s\nwant %s", i, got[i], want)
				}
			}
			// Another run goes on behind the files that are there.
			again, err := openSink(t, c.name, false, c.fields, map[string]string{"path": dir})
			if err != nil {
				t.Fatal(err)
			}
			again.Write(t.Context(), flow.Delta{Batch: b})
			again.Stage(t.Context(), 1)
			again.Close()
			if entries, _ = os.ReadDir(dir); len(entries) != 3 {
				t.Errorf("after a second run: %s", names(entries))
			}
		})
	}
}

func names(entries []os.DirEntry) string {
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return strings.Join(out, " ")
}

func text(weights []int64, values ...string) flow.Delta {
	b := array.NewStringBuilder(memory.DefaultAllocator)
	b.AppendValues(values, nil)
	schema, cols := types.ArrowSchema(fields[8:9]), []arrow.Array{b.NewArray()}
	if weights != nil {
		wb := array.NewInt64Builder(memory.DefaultAllocator)
		wb.AppendValues(weights, nil)
		schema, cols = flow.WithWeights(schema), append(cols, wb.NewArray())
	}
	return flow.Delta{Batch: array.NewRecordBatch(schema, cols, int64(len(values)))}
}

func TestWeights(t *testing.T) {
	for _, name := range []string{"parquet", "json", "csv"} {
		path := filepath.Join(t.TempDir(), "x."+name)
		if _, err := openSink(t, name, true, fields[8:9], map[string]string{"path": path}); !errs.Is(err, errs.Unsupported) || !strings.Contains(err.Error(), "changelog = true") {
			t.Errorf("%s takes an updating edge: %v", name, err)
		}
		w, err := openSink(t, name, false, fields[8:9], map[string]string{"path": path})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Write(t.Context(), text([]int64{2, 1, 0}, "a", "b", "c")); err != nil {
			t.Fatal(err)
		}
		if err := w.Write(t.Context(), text([]int64{-1}, "a")); !errs.Is(err, errs.Unsupported) {
			t.Errorf("%s takes a retraction: %v", name, err)
		}
		w.Stage(t.Context(), 1)
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s: a single file is visible before the query ends", name)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if got := ct.Scan(t, ct.OpenRelation(t, *Source(name), map[string]string{"path": path}), flow.ScanRequest{}); strings.Join(got, " ") != "a a b" {
			t.Errorf("%s: %v", name, got)
		}
		w, err = openSink(t, name, true, fields[8:9], map[string]string{"path": path, "changelog": "true"})
		if err != nil {
			t.Fatal(err)
		}
		w.Write(t.Context(), text([]int64{-1}, "a"))
		w.Write(t.Context(), text(nil, "b"))
		w.Stage(t.Context(), 1)
		w.Close()
		rel := ct.OpenRelation(t, *Source(name), map[string]string{"path": path})
		if got := ct.Columns(rel.Fields()) + ": " + strings.Join(ct.Scan(t, rel, flow.ScanRequest{}), " "); got != "s VARCHAR, __weight BIGINT: a|-1 b|1" {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// A query that fails leaves no file, and one without rows leaves a file without rows.
func TestSingleFile(t *testing.T) {
	dir := t.TempDir()
	w, _ := openSink(t, "parquet", false, fields[8:9], map[string]string{"path": filepath.Join(dir, "x.parquet")})
	w.Write(t.Context(), text(nil, "a"))
	w.Close()
	if entries, _ := os.ReadDir(dir); len(entries) != 0 {
		t.Errorf("left %s", names(entries))
	}
	w, _ = openSink(t, "parquet", false, fields[8:9], map[string]string{"path": filepath.Join(dir, "x.parquet")})
	w.Stage(t.Context(), 1)
	w.Close()
	rel := ct.OpenRelation(t, *Source("parquet"), map[string]string{"path": filepath.Join(dir, "x.parquet")})
	if got := ct.Scan(t, rel, flow.ScanRequest{}); len(got) != 0 || ct.Columns(rel.Fields()) != "s VARCHAR" {
		t.Errorf("got %v of %s", got, ct.Columns(rel.Fields()))
	}
}

// The least that a page shows is what the connector takes, and files have an ending of its format.
func TestExamplesAreOfTheConnector(t *testing.T) {
	check := func(name string, options connectors.Options, endings []string, page string) {
		given := map[string]string{}
		for _, o := range options {
			if !o.Required && !o.Shown {
				continue
			}
			given[o.Name] = o.Example
			if o.Name == "path" && len(endings) > 0 && !slices.ContainsFunc(endings, func(e string) bool { return strings.HasSuffix(o.Example, e) }) {
				t.Errorf("%s: %s is no file of it", name, o.Example)
			}
			if o.Example != "" && !strings.Contains(page, o.Name+" = '"+o.Example+"'") {
				t.Errorf("%s: its page has no example with %s", name, o.Name)
			}
		}
		if _, err := options.Parse(name, given); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, s := range Sources {
		check(s.Name, s.Options, s.Extensions, s.Markdown())
	}
	for _, s := range Sinks {
		check(s.Name, s.Options, s.Extensions, s.Markdown())
	}
}
