package service

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"github.com/riverbed/riverbed/connectors/iceberg/meta"
	"github.com/riverbed/riverbed/core/objstore"
)

// lake is a catalog of a test with one table in it.
type lake struct {
	testing.TB
	catalog   meta.Catalog
	table     string
	warehouse string
	n         int
	mu        sync.Mutex
}

// columns of the tables of these tests.
var columns = []meta.Field{
	{ID: 1, Name: "id", Type: "long"},
	{ID: 2, Name: "name", Type: "string"},
	{ID: 3, Name: "price", Type: "double"},
	{ID: 4, Name: "at", Type: "timestamp"},
	{ID: 5, Name: "amount", Type: "decimal(10, 2)"},
}

func sqliteLake(t testing.TB) *lake {
	dir := t.TempDir()
	warehouse := filepath.Join(dir, "warehouse")
	return &lake{TB: t, table: "shop.orders", warehouse: warehouse, catalog: meta.Catalog{Type: "sql", Properties: map[string]string{
		"uri": "sqlite:///" + filepath.Join(dir, "catalog.db"), "warehouse": "file://" + warehouse,
	}}}
}

func (l *lake) call(r meta.Request) meta.Answer {
	r.Catalog = l.catalog
	if r.Table == "" {
		r.Table = l.table
	}
	return Call(context.Background(), r)
}

// must is call, for what cannot fail.
func (l *lake) must(r meta.Request) meta.Answer {
	l.Helper()
	a := l.call(r)
	if a.Error != "" {
		l.Fatalf("%s: %s (%s; %s)", r.Op, a.Error, a.Kind, a.Hint)
	}
	return a
}

func (l *lake) create(parts ...meta.PartitionField) meta.Answer {
	l.Helper()
	return l.must(meta.Request{Op: "create", Schema: columns, Partition: parts})
}

func (l *lake) begin(pipeline string) {
	l.Helper()
	l.must(meta.Request{Op: "begin", Commit: &meta.Commit{Pipeline: pipeline, Marker: pipeline + "/0"}})
}

// commitOf adds files as epoch e of a pipeline.
func commitOf(pipeline string, e int, add ...string) meta.Request {
	return meta.Request{Op: "commit", Commit: &meta.Commit{
		Pipeline: pipeline, Epoch: int64(e), Marker: fmt.Sprintf("%s/%d", pipeline, e), Previous: fmt.Sprintf("%s/%d", pipeline, e-1), Add: add,
	}}
}

// row is one of the columns' rows; a negative id is one whose name is NULL.
type row struct {
	id   int64
	name string
	at   string
}

// write makes a data file with field ids in it.
func (l *lake) write(rows ...row) string {
	l.Helper()
	id := func(n int) arrow.Metadata {
		return arrow.MetadataFrom(map[string]string{"PARQUET:field_id": fmt.Sprint(n)})
	}
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.PrimitiveTypes.Int64, Nullable: true, Metadata: id(1)},
		{Name: "name", Type: arrow.BinaryTypes.String, Nullable: true, Metadata: id(2)},
		{Name: "price", Type: arrow.PrimitiveTypes.Float64, Nullable: true, Metadata: id(3)},
		{Name: "at", Type: &arrow.TimestampType{Unit: arrow.Microsecond}, Nullable: true, Metadata: id(4)},
		{Name: "amount", Type: &arrow.Decimal128Type{Precision: 10, Scale: 2}, Nullable: true, Metadata: id(5)},
	}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	for _, r := range rows {
		b.Field(0).(*array.Int64Builder).Append(r.id)
		if r.name == "" {
			b.Field(1).AppendNull()
		} else {
			b.Field(1).(*array.StringBuilder).Append(r.name)
		}
		b.Field(2).(*array.Float64Builder).Append(float64(r.id) / 2)
		if r.at == "" {
			b.Field(3).AppendNull()
		} else if err := b.Field(3).AppendValueFromString(r.at); err != nil {
			l.Fatal(err)
		}
		if err := b.Field(4).AppendValueFromString(fmt.Sprintf("%d.50", r.id)); err != nil {
			l.Fatal(err)
		}
	}
	batch := b.NewRecordBatch()
	defer batch.Release()
	var data strings.Builder
	w, err := pqarrow.NewFileWriter(schema, &data, parquet.NewWriterProperties(), pqarrow.NewArrowWriterProperties())
	if err != nil {
		l.Fatal(err)
	}
	if err := w.Write(batch); err != nil {
		l.Fatal(err)
	}
	if err := w.Close(); err != nil {
		l.Fatal(err)
	}
	l.mu.Lock()
	l.n++
	path := fmt.Sprintf("%s/data/%05d.parquet", l.warehouse, l.n)
	l.mu.Unlock()
	s, key, err := objstore.For(path)
	if err != nil {
		l.Fatal(err)
	}
	if _, local := s.(objstore.Local); local {
		if err := os.MkdirAll(filepath.Dir(key), 0o755); err != nil {
			l.Fatal(err)
		}
	}
	if err := objstore.Put(context.Background(), s, key, []byte(data.String())); err != nil {
		l.Fatal(err)
	}
	return path
}

// paths are the files of a reference, by their last parts.
func (l *lake) paths(r meta.Ref) []string {
	l.Helper()
	var out []string
	for _, f := range l.must(meta.Request{Op: "files", Ref: r}).Files {
		out = append(out, filepath.Base(f.Path))
	}
	slices.Sort(out)
	return out
}

func bases(paths ...string) []string {
	out := make([]string, len(paths))
	for i, p := range paths {
		out[i] = filepath.Base(p)
	}
	slices.Sort(out)
	return out
}

// ids asks pyiceberg for the ids of the rows, in order.
func (l *lake) ids(more string) []int64 {
	l.Helper()
	var out []int64
	l.python(`print(json.dumps(sorted(table.scan(`+more+`).to_arrow()["id"].to_pylist())))`, &out)
	return out
}

// python runs a program of pyiceberg over the table and reads what it prints.
func (l *lake) python(program string, out any) {
	l.Helper()
	properties := map[string]string{"type": l.catalog.Type}
	for k, v := range l.catalog.Properties {
		properties[k] = v
	}
	if l.catalog.Type == "sql" {
		properties["uri"] = strings.Replace(properties["uri"], "sqlite:///", "sqlite:///", 1)
	}
	if endpoint := os.Getenv("AWS_ENDPOINT_URL"); endpoint != "" {
		properties["s3.endpoint"], properties["s3.access-key-id"], properties["s3.secret-access-key"] = endpoint, os.Getenv("AWS_ACCESS_KEY_ID"), os.Getenv("AWS_SECRET_ACCESS_KEY")
		properties["s3.region"] = os.Getenv("AWS_REGION")
	}
	given, err := json.Marshal(properties)
	if err != nil {
		l.Fatal(err)
	}
	python := os.Getenv("RIVERBED_PYTHON")
	if python == "" {
		python = filepath.Join("..", "..", "..", ".venv", "bin", "python")
	}
	cmd := exec.Command(python, "-W", "ignore", "-c", `
import json, sys
import pyarrow as pa
from pyiceberg.catalog import load_catalog
catalog = load_catalog("default", **json.loads(sys.argv[1]))
table = catalog.load_table(sys.argv[2])
`+program, string(given), l.table)
	var errors strings.Builder
	cmd.Stderr = &errors
	text, err := cmd.Output()
	if err != nil {
		l.Fatalf("pyiceberg: %v\n%s", err, errors.String())
	}
	if out != nil {
		if err := json.Unmarshal(text, out); err != nil {
			l.Fatalf("pyiceberg printed %q: %v", text, err)
		}
	}
}

func sequence(from, to int64) []int64 {
	var out []int64
	for i := from; i <= to; i++ {
		out = append(out, i)
	}
	return out
}

func TestAppend(t *testing.T) {
	l := sqliteLake(t)
	made := l.create()
	if made.Table.Format != 2 || len(made.Table.Schema) != len(columns) || made.Table.Snapshot != 0 {
		t.Fatalf("made %+v", made.Table)
	}
	if a := l.call(meta.Request{Op: "create", Schema: columns}); a.Kind != "exists" {
		t.Errorf("made it twice: %+v", a)
	}
	l.begin("p")
	l.begin("p") // again: it stays
	one, two := l.write(row{id: 1, name: "a"}, row{id: 2}), l.write(row{id: 3, name: "c", at: "2026-11-30 12:00:00"})
	first := l.must(commitOf("p", 1, one))
	second := l.must(commitOf("p", 2, two))
	if got := l.paths(meta.Ref{}); !slices.Equal(got, bases(one, two)) {
		t.Errorf("files %v", got)
	}
	if got := l.ids(""); !slices.Equal(got, sequence(1, 3)) {
		t.Errorf("pyiceberg reads %v", got)
	}
	t.Run("the same commit again changes nothing", func(t *testing.T) {
		again := l.must(commitOf("p", 2, two))
		if again.Snapshot != second.Snapshot || again.Marker != "p/2" {
			t.Errorf("%+v, want snapshot %d", again, second.Snapshot)
		}
		if got := l.paths(meta.Ref{}); len(got) != 2 {
			t.Errorf("files %v", got)
		}
	})
	t.Run("an older or unknown marker is refused", func(t *testing.T) {
		for _, r := range []meta.Request{commitOf("p", 1, one), commitOf("p", 4, one), commitOf("q", 1, one)} {
			if a := l.call(r); a.Kind != "marker" {
				t.Errorf("%s: %+v", r.Commit.Marker, a)
			}
		}
	})
	t.Run("marker", func(t *testing.T) {
		a := l.must(meta.Request{Op: "marker", Commit: &meta.Commit{Pipeline: "p"}})
		if a.Marker != "p/2" || a.Snapshot != second.Snapshot {
			t.Errorf("%+v", a)
		}
	})
	t.Run("time travel", func(t *testing.T) {
		if got := l.paths(meta.Ref{Snapshot: first.Snapshot}); !slices.Equal(got, bases(one)) {
			t.Errorf("files %v", got)
		}
		at := l.must(meta.Request{Op: "load"}).Table.Snapshots[0].At
		if got := l.paths(meta.Ref{AsOf: at}); !slices.Equal(got, bases(one)) {
			t.Errorf("files as of the first snapshot: %v", got)
		}
		if a := l.call(meta.Request{Op: "files", Ref: meta.Ref{AsOf: 1}}); a.Kind != "expired" {
			t.Errorf("%+v", a)
		}
		if a := l.call(meta.Request{Op: "files", Ref: meta.Ref{Snapshot: 7}}); a.Kind != "expired" {
			t.Errorf("%+v", a)
		}
	})
	t.Run("bounds", func(t *testing.T) {
		for _, f := range l.must(meta.Request{Op: "files"}).Files {
			if filepath.Base(f.Path) != filepath.Base(two) {
				continue
			}
			want := map[int]string{1: "3", 2: `"c"`, 3: "1.5", 4: `"2026-11-30T12:00:00.000000"`, 5: `"3.50"`}
			for id, text := range want {
				if f.Lower[id] != text || f.Upper[id] != text {
					t.Errorf("column %d: %s to %s, want %s", id, f.Lower[id], f.Upper[id], text)
				}
			}
			if f.Rows != 1 || f.Bytes == 0 || f.Format != "parquet" || f.Sequence != 2 {
				t.Errorf("%+v", f)
			}
		}
	})
	t.Run("drop", func(t *testing.T) {
		l.must(meta.Request{Op: "drop"})
		for _, op := range []string{"load", "files", "drop"} {
			if a := l.call(meta.Request{Op: op}); a.Kind != "absent" || a.Error == "" {
				t.Errorf("%s: %+v", op, a)
			}
		}
	})
}
