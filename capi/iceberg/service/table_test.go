package service

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/riverbed/riverbed/connectors/iceberg/meta"
)

// replaceOf replaces files as epoch e of a pipeline.
func replaceOf(pipeline string, e int, base int64, add, remove []string) meta.Request {
	r := commitOf(pipeline, e, add...)
	r.Commit.Remove, r.Commit.Base = remove, base
	return r
}

func TestCopyOnWrite(t *testing.T) {
	l := sqliteLake(t)
	l.create()
	l.begin("p")
	l.begin("q")
	one, two := l.write(row{id: 1}, row{id: 2}), l.write(row{id: 3})
	base := l.must(commitOf("p", 1, one, two)).Snapshot
	better := l.write(row{id: 1}, row{id: 20})
	other := l.write(row{id: 4})
	l.must(commitOf("q", 1, other)) // between: it stays
	done := l.must(replaceOf("p", 2, base, []string{better}, []string{"file://" + one}))
	if got := l.ids(""); !slices.Equal(got, []int64{1, 3, 4, 20}) {
		t.Errorf("pyiceberg reads %v", got)
	}
	t.Run("again", func(t *testing.T) {
		a := l.must(replaceOf("p", 2, base, []string{better}, []string{"file://" + one}))
		if a.Conflict || a.Snapshot != done.Snapshot {
			t.Errorf("%+v", a)
		}
	})
	t.Run("a file that is gone", func(t *testing.T) {
		a := l.must(replaceOf("p", 3, base, []string{l.write(row{id: 9})}, []string{"file://" + one}))
		if !a.Conflict || a.Marker != "" {
			t.Errorf("%+v", a)
		}
		if got := l.ids(""); !slices.Equal(got, []int64{1, 3, 4, 20}) {
			t.Errorf("pyiceberg reads %v", got)
		}
	})
	t.Run("a file whose rows somebody else deleted", func(t *testing.T) {
		base := l.must(meta.Request{Op: "load"}).Table.Snapshot
		l.python(`table.delete("id = 20")`, nil)
		a := l.must(replaceOf("p", 3, base, []string{l.write(row{id: 9})}, []string{"file://" + better}))
		if !a.Conflict {
			t.Errorf("%+v", a)
		}
	})
	t.Run("rows that go without others", func(t *testing.T) {
		l.must(replaceOf("p", 3, 0, nil, []string{"file://" + two}))
		if got := l.ids(""); !slices.Equal(got, []int64{1, 4}) {
			t.Errorf("pyiceberg reads %v", got)
		}
	})
}

func TestMarkerOutlivesSnapshots(t *testing.T) {
	l := sqliteLake(t)
	l.create()
	l.begin("p")
	l.begin("q")
	l.must(commitOf("p", 1, l.write(row{id: 1})))
	l.must(commitOf("q", 1, l.write(row{id: 2})))
	l.python(`
old = [s.snapshot_id for s in table.snapshots()][0]
table.maintenance.expire_snapshots().by_id(old).commit()
`, nil)
	if n := len(l.must(meta.Request{Op: "load"}).Table.Snapshots); n != 1 {
		t.Fatalf("%d snapshots", n)
	}
	if a := l.must(meta.Request{Op: "marker", Commit: &meta.Commit{Pipeline: "p"}}); a.Marker != "p/1" {
		t.Errorf("%+v", a)
	}
	if a := l.must(commitOf("p", 1, l.write(row{id: 1}))); a.Marker != "p/1" || a.Snapshot != 0 {
		t.Errorf("again: %+v", a)
	}
	if got := l.ids(""); !slices.Equal(got, []int64{1, 2}) {
		t.Errorf("pyiceberg reads %v", got)
	}
}

func TestBranches(t *testing.T) {
	l := sqliteLake(t)
	l.create()
	l.begin("p")
	first := l.write(row{id: 1})
	l.must(commitOf("p", 1, first))
	audit := func(e int, file string) meta.Request {
		r := commitOf("audit", e, file)
		r.Commit.Branch = "audit"
		return r
	}
	l.must(meta.Request{Op: "begin", Commit: &meta.Commit{Pipeline: "audit", Marker: "audit/0", Branch: "audit"}})
	l.must(audit(1, l.write(row{id: 2})))
	l.must(audit(2, l.write(row{id: 3})))
	if got := l.paths(meta.Ref{}); !slices.Equal(got, bases(first)) {
		t.Errorf("the main branch has %v", got)
	}
	if got := l.paths(meta.Ref{Branch: "audit"}); len(got) != 3 {
		t.Errorf("the branch has %v", got)
	}
	if got := l.ids(`snapshot_id=table.metadata.refs["audit"].snapshot_id`); !slices.Equal(got, sequence(1, 3)) {
		t.Errorf("pyiceberg reads %v", got)
	}
	a := l.call(meta.Request{Op: "files", Ref: meta.Ref{Branch: "audi"}})
	if a.Kind != "absent" || !strings.Contains(a.Hint, "audit") {
		t.Errorf("%+v", a)
	}
	l.python(`table.manage_snapshots().create_tag(table.current_snapshot().snapshot_id, "v1").commit()`, nil)
	l.must(commitOf("p", 2, l.write(row{id: 4})))
	if got := l.paths(meta.Ref{Tag: "v1"}); !slices.Equal(got, bases(first)) {
		t.Errorf("the tag has %v", got)
	}
}

func TestPartitions(t *testing.T) {
	l := sqliteLake(t)
	made := l.create(
		meta.PartitionField{Column: "name", Name: "name", Transform: "identity"},
		meta.PartitionField{Column: "at", Name: "day", Transform: "day"},
		meta.PartitionField{Column: "id", Name: "bucket", Transform: "bucket[4]"},
		meta.PartitionField{Column: "amount", Name: "tens", Transform: "truncate[1000]"},
	)
	if len(made.Table.Partition) != 4 || len(made.Table.Specs) != 1 {
		t.Fatalf("%+v", made.Table)
	}
	l.begin("p")
	a, b := l.write(row{id: 1, name: "a", at: "2026-11-30 01:00:00"}, row{id: 1, name: "a", at: "2026-11-30 23:00:00"}), l.write(row{id: 1})
	r := commitOf("p", 1, a, b)
	values := map[string]string{"name": `"a"`, "day": `"2026-11-30"`, "bucket": "0", "tens": `"0.00"`}
	r.Commit.Files = []meta.File{
		{Path: a, Spec: made.Table.Spec, Partition: values, Rows: 2},
		{Path: b, Spec: made.Table.Spec, Partition: map[string]string{"bucket": "0", "tens": `"0.00"`}},
	}
	// Murmur of 1 as a long, which the specification has as an example: 1392991556.
	values["bucket"] = "0"
	l.must(r)
	for _, f := range l.must(meta.Request{Op: "files"}).Files {
		want := values
		if filepath.Base(f.Path) == filepath.Base(b) {
			want = map[string]string{"bucket": "0", "tens": `"0.00"`}
		}
		if len(f.Partition) != len(want) {
			t.Errorf("%s is in %v", f.Path, f.Partition)
		}
		for k, v := range want {
			if f.Partition[k] != v {
				t.Errorf("%s of %s: %s, want %s", k, f.Path, f.Partition[k], v)
			}
		}
	}
	for filter, n := range map[string]int{`row_filter="name = 'a'"`: 2, `row_filter="name is null"`: 1, `row_filter="at < '2026-11-30T00:00:00'"`: 0, `row_filter="id = 1"`: 3, `row_filter="amount < 5"`: 3} {
		if got := l.ids(filter); len(got) != n {
			t.Errorf("pyiceberg reads %v by %s", got, filter)
		}
	}
	t.Run("told by the footer", func(t *testing.T) {
		l := sqliteLake(t)
		l.create(meta.PartitionField{Column: "at", Name: "day", Transform: "day"})
		l.begin("p")
		l.must(commitOf("p", 1, l.write(row{id: 1, at: "2026-11-30 01:00:00"}, row{id: 2, at: "2026-11-30 23:00:00"})))
		if got := l.must(meta.Request{Op: "files"}).Files[0].Partition["day"]; got != `"2026-11-30"` {
			t.Errorf("in %s", got)
		}
		if a := l.call(commitOf("p", 2, l.write(row{id: 1, at: "2026-11-29 01:00:00"}, row{id: 2, at: "2026-11-30 23:00:00"}))); a.Kind != "schema" {
			t.Errorf("%+v", a)
		}
	})
}

func TestEvolve(t *testing.T) {
	l := sqliteLake(t)
	l.must(meta.Request{Op: "create", Schema: []meta.Field{{Name: "id", Type: "int"}, {Name: "tags", Type: "list", Fields: []meta.Field{{Name: "element", Type: "string"}}}}})
	a := l.must(meta.Request{Op: "evolve", Schema: []meta.Field{{Name: "id", Type: "long"}, {Name: "more", Type: "struct", Fields: []meta.Field{{Name: "x", Type: "double"}}}}})
	var got []string
	for _, f := range a.Table.Schema {
		got = append(got, f.Name+" "+f.Type)
	}
	if want := []string{"id long", "tags list", "more struct"}; !slices.Equal(got, want) {
		t.Errorf("columns %v", got)
	}
	if a := l.call(meta.Request{Op: "evolve", Schema: []meta.Field{{Name: "id", Type: "string"}}}); a.Kind != "schema" || a.Transient {
		t.Errorf("%+v", a)
	}
}

func TestFilesThatAreNotWhatWasSaid(t *testing.T) {
	l := sqliteLake(t)
	l.create()
	l.begin("p")
	if a := l.call(commitOf("p", 1, l.warehouse+"/data/gone.parquet")); a.Kind != "io" || !strings.Contains(a.Error, "gone.parquet") || a.Transient {
		t.Errorf("%+v", a)
	}
	r := commitOf("p", 1, l.write(row{id: 1}))
	r.Commit.Files = []meta.File{{Path: r.Commit.Add[0], Rows: 2}}
	if a := l.call(r); a.Kind != "io" || !strings.Contains(a.Error, "2") {
		t.Errorf("%+v", a)
	}
	if a := l.call(commitOf("p", 1)); a.Kind != "usage" {
		t.Errorf("%+v", a)
	}
}

func TestSecretsAreInNoAnswer(t *testing.T) {
	for _, c := range []meta.Catalog{
		{Type: "rest", Properties: map[string]string{"uri": "http://user:hunter2!@127.0.0.1:1/", "token": "hunter2!", "credential": "id:hunter2!"}},
		{Type: "sql", Properties: map[string]string{"uri": "postgresql://user:hunter2!@127.0.0.1:1/db", "warehouse": "/tmp"}},
		{Type: "hunter2!", Properties: map[string]string{"password": "hunter2!"}},
		{Type: "glue", Properties: map[string]string{"glue.secret-access-key": "hunter2!", "glue.access-key-id": "hunter2!", "glue.endpoint": "http://127.0.0.1:1", "glue.region": "x", "glue.max-retries": "1"}},
	} {
		a := Call(t.Context(), meta.Request{Op: "load", Catalog: c, Table: "a.b"})
		if a.Error == "" || strings.Contains(a.Error+a.Hint, "hunter2") {
			t.Errorf("%s: %+v", c.Type, a)
		}
	}
}

func TestUsage(t *testing.T) {
	for _, r := range []meta.Request{
		{Op: "dance", Table: "a.b"}, {Op: "load", Table: "a"}, {Op: "load", Table: "a..b"},
		{Op: "load", Table: "a.b", Catalog: meta.Catalog{Type: "hadoop"}},
		{Op: "create", Table: "a.b", Catalog: meta.Catalog{Type: "hadoop", Properties: map[string]string{"warehouse": "s3://bucket/x"}}},
		{Op: "load", Table: "a.b", Catalog: meta.Catalog{Type: "sql", Properties: map[string]string{"uri": "mysql://x/y"}}},
		{Op: "load", Table: "a.b", Catalog: meta.Catalog{Type: "sql", Properties: map[string]string{"uri": "sqlite:///:memory:"}}},
	} {
		if a := Call(t.Context(), r); a.Kind != "usage" || a.Error == "" {
			t.Errorf("%s of %s: %+v", r.Op, r.Table, a)
		}
	}
}

func TestCommitsOfNoPipeline(t *testing.T) {
	l := sqliteLake(t)
	l.create()
	r := meta.Request{Op: "commit", Commit: &meta.Commit{Marker: "alone", Add: []string{l.write(row{id: 1})}}}
	first := l.must(r)
	if again := l.must(r); again.Snapshot != first.Snapshot || again.Marker != "alone" {
		t.Errorf("%+v", again)
	}
	r.Commit.Marker, r.Commit.Add = "another", []string{l.write(row{id: 2})}
	l.must(r)
	if got := l.ids(""); !slices.Equal(got, []int64{1, 2}) {
		t.Errorf("pyiceberg reads %v", got)
	}
}

func TestHadoop(t *testing.T) {
	l := sqliteLake(t)
	l.catalog = meta.Catalog{Type: "hadoop", Properties: map[string]string{"warehouse": l.warehouse}}
	l.create()
	l.begin("p")
	one, two := l.write(row{id: 1}), l.write(row{id: 2})
	l.must(commitOf("p", 1, one))
	l.must(commitOf("p", 2, two))
	if got := l.paths(meta.Ref{}); !slices.Equal(got, bases(one, two)) {
		t.Errorf("files %v", got)
	}
}
