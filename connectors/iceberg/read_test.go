package iceberg

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/connectors"
	ct "github.com/riverbed/riverbed/connectors/connectortest"
	"github.com/riverbed/riverbed/connectors/iceberg/meta"
	"github.com/riverbed/riverbed/connectors/parquet"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/types"
)

// Metadata are written out here: what a table's files are is said by hand, and read by what reads them.

// writeFile writes a data file of some columns, and describes it.
func writeFile(t *testing.T, dir, name string, sequence int64, fields []meta.Field, rows ...[]types.Value) meta.File {
	t.Helper()
	path := filepath.Join(dir, name)
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	var schema []arrow.Field
	var cols []arrow.Array
	for i, field := range fields {
		c, err := columnOf(field, nil)
		if err != nil {
			t.Fatal(err)
		}
		form := arrowField(field, c.Type)
		if field.ID == 0 { // a file that numbers no columns
			form.Metadata = arrow.Metadata{}
		}
		schema = append(schema, form)
		values := make([]types.Value, len(rows))
		for r := range rows {
			values[r] = rows[r][i]
		}
		cols = append(cols, finisher(form.Type)(types.ArrayOf(values, c.Type)))
	}
	w, err := parquet.NewTableWriter(f, arrow.NewSchema(schema, nil), "zstd", 2)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(cols, len(rows)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return meta.File{Path: "file://" + path, Rows: int64(len(rows)), Bytes: info.Size(), Sequence: sequence, Format: "parquet"}
}

// vectorFile writes a deletion vector as Puffin files hold it, behind some other bytes.
func vectorFile(t *testing.T, dir, name string, rows ...uint16) meta.Delete {
	t.Helper()
	le := binary.LittleEndian
	data := le.AppendUint32(nil, 1681511377)
	data = le.AppendUint64(data, 1) // bitmaps
	data = le.AppendUint32(data, 0) // whose values begin at 0
	data = le.AppendUint32(data, 12346)
	data = le.AppendUint32(data, 1) // containers
	data = le.AppendUint16(data, 0)
	data = le.AppendUint16(data, uint16(len(rows)-1))
	data = le.AppendUint32(data, 16) // where it begins
	for _, r := range rows {
		data = le.AppendUint16(data, r)
	}
	blob := binary.BigEndian.AppendUint32(nil, uint32(len(data)))
	blob = append(blob, data...)
	blob = binary.BigEndian.AppendUint32(blob, crc32.ChecksumIEEE(data))
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, append([]byte("PFA1"), blob...), 0o600); err != nil {
		t.Fatal(err)
	}
	return meta.Delete{Path: "file://" + path, Kind: "vector", Rows: int64(len(rows)), Offset: 4, Length: int64(len(blob))}
}

// answering lets the library of metadata say what a test does.
func answering(t *testing.T, answer func(meta.Request) meta.Answer) {
	t.Helper()
	before := Call
	t.Cleanup(func() { Call = before })
	Call = func(_ context.Context, r meta.Request) (meta.Answer, error) { return answer(r), nil }
}

var anyTable = map[string]string{"catalog": "sqlite:///c.db", "table": "n.t"}

func rowsOf(t *testing.T, a meta.Answer, options map[string]string) []string {
	t.Helper()
	answering(t, func(meta.Request) meta.Answer { return a })
	return ct.Scan(t, ct.OpenRelation(t, Source, options), flow.ScanRequest{})
}

func check(t *testing.T, have []string, want ...string) {
	t.Helper()
	if !slices.Equal(have, want) {
		t.Errorf("have %q\nwant %q", have, want)
	}
}

// Columns are found by their ids: renamed ones keep their values, one that was dropped and added again under its name begins empty, whole numbers
// widen, and what a file does not have is its initial value.
func TestColumnsByID(t *testing.T) {
	dir := t.TempDir()
	id, name, value := meta.Field{ID: 1, Name: "id", Type: "int"}, meta.Field{ID: 2, Name: "old_name", Type: "string"}, meta.Field{ID: 3, Name: "value", Type: "string"}
	long, renamed, anew := meta.Field{ID: 1, Name: "id", Type: "long", Required: true}, meta.Field{ID: 2, Name: "new_name", Type: "string"}, meta.Field{ID: 4, Name: "value", Type: "string"}
	extra, grade := meta.Field{ID: 5, Name: "extra", Type: "double"}, meta.Field{ID: 6, Name: "grade", Type: "string", Initial: `"n/a"`, Default: `"tbd"`}
	old := writeFile(t, dir, "1.parquet", 1, []meta.Field{id, name, value}, []types.Value{int64(1), "before", "old"}, []types.Value{int64(2), "b2", "old2"})
	files := []meta.File{
		old,
		writeFile(t, dir, "2.parquet", 2, []meta.Field{long, renamed, anew}, []types.Value{int64(3), "after", "fresh"}),
		writeFile(t, dir, "3.parquet", 3, []meta.Field{extra, anew, long}, []types.Value{1.5, "reordered", int64(4)}),
	}
	now := meta.Answer{Table: &meta.Table{Schema: []meta.Field{long, renamed, anew, extra, grade}}, Files: files}
	check(t, rowsOf(t, now, anyTable), "1|before|NULL|NULL|n/a", "2|b2|NULL|NULL|n/a", "3|after|fresh|NULL|n/a", "4|NULL|reordered|1.5|n/a")
	then := meta.Answer{Table: &meta.Table{Schema: []meta.Field{id, name, value}}, Files: files[:1]}
	check(t, rowsOf(t, then, anyTable), "1|before|old", "2|b2|old2")
	answering(t, func(meta.Request) meta.Answer { return now })
	r := ct.OpenRelation(t, Source, anyTable, types.Field{Name: "GRADE", Type: types.String}, types.Field{Name: "id", Type: types.Int64})
	check(t, ct.Scan(t, r, flow.ScanRequest{Filters: []flow.Predicate{{Column: 0, Op: flow.CmpEq, Values: []types.Value{"other"}}}}))
	check(t, ct.Scan(t, r, flow.ScanRequest{Columns: []int{1}}), "1", "2", "3", "4")
	if _, err := ct.TryRelation(Source, anyTable, types.Field{Name: "old_name", Type: types.String}); err == nil || !strings.Contains(err.Error(), "new_name") {
		t.Error(err)
	}
}

func TestNestedColumnsByID(t *testing.T) {
	dir := t.TempDir()
	element := func(typ string) meta.Field {
		return meta.Field{ID: 4, Name: "element", Type: typ}
	}
	before := []meta.Field{
		{ID: 1, Name: "s", Type: "struct", Fields: []meta.Field{{ID: 2, Name: "a", Type: "int"}}},
		{ID: 3, Name: "l", Type: "list", Fields: []meta.Field{element("int")}},
	}
	now := []meta.Field{
		{ID: 3, Name: "m", Type: "list", Fields: []meta.Field{element("long")}},
		{ID: 1, Name: "s", Type: "struct", Fields: []meta.Field{{ID: 5, Name: "a", Type: "int", Initial: "7"}, {ID: 2, Name: "b", Type: "long"}}},
	}
	f := writeFile(t, dir, "1.parquet", 1, before, []types.Value{[]types.Value{int64(1)}, []types.Value{int64(10), nil}}, []types.Value{nil, nil})
	check(t, rowsOf(t, meta.Answer{Table: &meta.Table{Schema: now}, Files: []meta.File{f}}, anyTable), `[10,null]|{"a":7,"b":1}`, "NULL|NULL")
}

// Each delete is of its own data files: which, the metadata say.
func TestDeletes(t *testing.T) {
	dir := t.TempDir()
	id, v := meta.Field{ID: 1, Name: "id", Type: "long"}, meta.Field{ID: 2, Name: "v", Type: "string"}
	fields := []meta.Field{id, v}
	path, pos := meta.Field{ID: pathField, Name: "file_path", Type: "string", Required: true}, meta.Field{ID: rowField, Name: "pos", Type: "long", Required: true}
	row := func(id int64, v string) []types.Value { return []types.Value{id, v} }
	d1 := writeFile(t, dir, "d1.parquet", 1, fields, row(1, "a"), row(2, "b"), row(3, "c"))
	d2 := writeFile(t, dir, "d2.parquet", 2, fields, row(1, "a2"), row(4, "d"))
	d3 := writeFile(t, dir, "d3.parquet", 4, fields, row(2, "b4"))
	equality := func(name string, ids ...int64) meta.Delete {
		rows := make([][]types.Value, len(ids))
		for i, id := range ids {
			rows[i] = []types.Value{id}
		}
		f := writeFile(t, dir, name, 0, []meta.Field{{ID: 1, Name: "id", Type: "int"}}, rows...)
		return meta.Delete{Path: f.Path, Kind: "equality", Equal: []int{1}}
	}
	p := writeFile(t, dir, "p.parquet", 3, []meta.Field{path, pos}, []types.Value{d1.Path, int64(2)}, []types.Value{d2.Path, int64(1)})
	positions := meta.Delete{Path: p.Path, Kind: "position"}
	d1.Deletes = []meta.Delete{equality("e1.parquet", 1), positions, equality("e2.parquet", 2)}
	d2.Deletes = []meta.Delete{positions}
	a := meta.Answer{Table: &meta.Table{Schema: fields}, Files: []meta.File{d3, d2, d1}}
	check(t, rowsOf(t, a, anyTable), "1|a2", "2|b4")

	d1.Deletes = []meta.Delete{vectorFile(t, dir, "v.puffin", 0, 2)}
	a.Files = []meta.File{d1}
	check(t, rowsOf(t, a, anyTable), "2|b")
	d1.Deletes[0].Rows = 3
	if err := scanError(t, a); err == nil || !strings.Contains(err.Error(), "v.puffin") {
		t.Error(err)
	}
	d1.Deletes = []meta.Delete{{Path: d1.Path, Kind: "vector", Offset: 4, Length: 20}}
	a.Files = []meta.File{d1}
	if err := scanError(t, a); err == nil || !strings.Contains(err.Error(), "checksum") {
		t.Error(err)
	}
	d1.Deletes = []meta.Delete{{Path: "file://" + filepath.Join(dir, "gone.parquet"), Kind: "position"}}
	a.Files = []meta.File{d1}
	if err := scanError(t, a); err == nil || !strings.Contains(err.Error(), "gone.parquet") {
		t.Error(err)
	}
}

func scanError(t *testing.T, a meta.Answer) error {
	t.Helper()
	answering(t, func(meta.Request) meta.Answer { return a })
	_, err := ct.TryScan(ct.OpenRelation(t, Source, anyTable), flow.ScanRequest{})
	return err
}

// An identity part of a partition gives the values of a column that its files leave out.
func TestPartitionValues(t *testing.T) {
	dir := t.TempDir()
	day, v := meta.Field{ID: 1, Name: "day", Type: "date"}, meta.Field{ID: 2, Name: "v", Type: "int"}
	fields := []meta.Field{v}
	a := writeFile(t, dir, "a.parquet", 1, fields, []types.Value{int64(1)})
	b := writeFile(t, dir, "b.parquet", 2, fields, []types.Value{int64(2)})
	a.Spec, a.Partition = 1, map[string]string{"d": `"2026-11-30"`}
	b.Spec = 1
	answer := meta.Answer{Table: &meta.Table{Schema: []meta.Field{day, v}, Specs: map[int][]meta.PartitionField{1: {{Source: 1, Name: "d", Transform: "identity"}}}}, Files: []meta.File{a, b}}
	check(t, rowsOf(t, answer, anyTable), "2026-11-30|1", "NULL|2")
	if err := os.Remove(strings.TrimPrefix(b.Path, "file://")); err != nil {
		t.Fatal(err)
	}
	r := ct.OpenRelation(t, Source, anyTable)
	on := []flow.Predicate{{Column: 0, Op: flow.CmpGe, Values: []types.Value{must(types.ParseValue("2026-01-01", types.Date32))}}}
	check(t, ct.Scan(t, r, flow.ScanRequest{Filters: on}), "2026-11-30|1") // without a look at the other file
}

// Files are left out by their bounds, also those that are not there.
func TestBounds(t *testing.T) {
	fields := []meta.Field{{ID: 1, Name: "n", Type: "int"}, {ID: 2, Name: "s", Type: "string"}, {ID: 3, Name: "f", Type: "double"}, {ID: 4, Name: "ts", Type: "timestamptz"}}
	f := meta.File{Path: "/gone.parquet", Rows: 10, Nulls: map[int]int64{1: 0, 2: 10},
		Lower: map[int]string{1: "10", 3: "0.5", 4: `"2026-01-01T00:00:00+00:00"`}, Upper: map[int]string{1: "20", 3: "1.5", 4: `"2026-02-01T00:00:00.5+00:00"`}}
	answering(t, func(meta.Request) meta.Answer {
		return meta.Answer{Table: &meta.Table{Schema: fields}, Files: []meta.File{f}}
	})
	r := ct.OpenRelation(t, Source, anyTable)
	at := func(s string) types.Value { return must(types.ParseValue(s, types.TsTZ)) }
	for _, c := range []struct {
		p    flow.Predicate
		read bool
	}{
		{flow.Predicate{Column: 0, Op: flow.CmpGt, Values: []types.Value{int64(20)}}, false},
		{flow.Predicate{Column: 0, Op: flow.CmpGe, Values: []types.Value{int64(20)}}, true},
		{flow.Predicate{Column: 0, Op: flow.CmpIsNull}, false},
		{flow.Predicate{Column: 1, Op: flow.CmpIsNotNull}, false},
		{flow.Predicate{Column: 2, Op: flow.CmpGt, Values: []types.Value{2.0}}, true}, // a NaN may be there
		{flow.Predicate{Column: 2, Op: flow.CmpLt, Values: []types.Value{0.5}}, false},
		{flow.Predicate{Column: 3, Op: flow.CmpGt, Values: []types.Value{at("2026-02-01 00:00:00.6")}}, false},
		{flow.Predicate{Column: 3, Op: flow.CmpEq, Values: []types.Value{at("2026-01-15")}}, true},
	} {
		_, err := ct.TryScan(r, flow.ScanRequest{Filters: []flow.Predicate{c.p}})
		if read := err != nil; read != c.read {
			t.Errorf("%+v: read %t", c.p, read)
		}
	}
}

// A file that numbers no columns is read by the table's name mapping, or refused.
func TestNameMapping(t *testing.T) {
	dir := t.TempDir()
	f := writeFile(t, dir, "a.parquet", 1, []meta.Field{{Name: "n", Type: "int"}, {Name: "other", Type: "int"}}, []types.Value{int64(1), int64(2)})
	a := meta.Answer{Table: &meta.Table{Schema: []meta.Field{{ID: 1, Name: "number", Type: "int"}}}, Files: []meta.File{f}}
	if err := scanError(t, a); err == nil || !strings.Contains(err.Error(), "field ids") {
		t.Error(err)
	}
	a.Table.Properties = map[string]string{"schema.name-mapping.default": `[{"field-id": 1, "names": ["n", "number"]}]`}
	check(t, rowsOf(t, a, anyTable), "1")
}

func TestTypes(t *testing.T) {
	for word := range scalarTypes {
		typ := must(typeOf(word))
		back, _, err := wordOf(typ)
		if err != nil && word != "timestamp_ns" || err == nil && back != word {
			t.Errorf("%s: %s, %v", word, back, err)
		}
	}
	for _, word := range []string{"variant", "geometry", "timestamptz_ns", "unknown", "decimal(39, 0)"} {
		if _, err := typeOf(word); !errs.Is(err, errs.Unsupported) {
			t.Errorf("%s: %v", word, err)
		}
	}
	if _, err := fieldsOf([]types.Field{{Name: "s", Type: types.ListOf(types.StructOf(types.Field{Name: "i", Type: types.Span}))}}); err == nil || !strings.Contains(err.Error(), `"s"`) || !strings.Contains(err.Error(), `"i"`) {
		t.Error(err)
	}
}

func TestCatalogs(t *testing.T) {
	cwd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		options map[string]string
		want    string
	}{
		{map[string]string{"catalog": "sqlite:///lake/c.db"}, fmt.Sprintf("sql default uri=sqlite:///lake/c.db warehouse=file://%s/lake", cwd)},
		{map[string]string{"catalog": "sqlite:////lake/c.db", "catalog_name": "x"}, "sql x uri=sqlite:////lake/c.db warehouse=file:///lake"},
		{map[string]string{"catalog": "https://c:8181", "warehouse": "w", "token": "t", "catalog_properties": "a=b, c=d=e"}, "rest default a=b c=d=e token=t uri=https://c:8181 warehouse=w"},
		{map[string]string{"catalog": "glue:123"}, "glue default glue.id=123"},
		{map[string]string{"catalog": "/lake"}, "hadoop default warehouse=file:///lake"},
		{map[string]string{"catalog": "s3://b/lake"}, "hadoop default warehouse=s3://b/lake"},
		{map[string]string{"catalog": "http://c", "catalog_type": "glue"}, "glue default glue.id=c"},
	} {
		c.options["table"] = "a.b"
		s := ct.Parse(t, Source.Options, c.options)
		have, err := catalogOf(s)
		if err != nil {
			t.Fatal(err)
		}
		text := have.Type + " " + have.Name
		for _, k := range slices.Sorted(maps.Keys(have.Properties)) {
			text += " " + k + "=" + have.Properties[k]
		}
		if text != c.want {
			t.Errorf("%s, not %s", text, c.want)
		}
	}
	answering(t, func(meta.Request) meta.Answer {
		return meta.Answer{Error: "cannot connect to postgres://u:secret@h/d", Kind: "io", Transient: true}
	})
	_, err = Source.Relation(t.Context(), connectors.OpenRequest{Settings: ct.Parse(t, Source.Options, anyTable)})
	if e := errs.As(err); !e.Transient || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "n.t") {
		t.Error(err)
	}
}
