package service

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"github.com/riverbed/riverbed/connectors/iceberg/meta"
)

// told writes changes as text: "+file" and "-file" for whole files, "file: before > after" for their deletes, which are named by the letters of their files.
func told(changes []meta.Change) []string {
	deletes := func(f meta.File) string {
		var out []string
		for _, d := range f.Deletes {
			out = append(out, strings.TrimSuffix(filepath.Base(d.Path), ".parquet"))
		}
		slices.Sort(out)
		return strings.Join(out, "")
	}
	var out []string
	for _, c := range changes {
		var parts []string
		for _, f := range c.Added {
			parts = append(parts, strings.TrimSuffix("+"+filepath.Base(f.Path)+" "+deletes(f), " "))
		}
		for _, f := range c.Removed {
			parts = append(parts, strings.TrimSuffix("-"+filepath.Base(f.Path)+" "+deletes(f), " "))
		}
		for _, p := range c.Deleted {
			parts = append(parts, fmt.Sprintf("%s:%s>%s", filepath.Base(p.Before.Path), deletes(p.Before), deletes(p.After)))
		}
		out = append(out, strings.Join(parts, " "))
	}
	return out
}

// deletion is a file of deletes as its manifest says it; nothing is in it.
type deletion struct {
	name      string
	of        string // one data file, "" for what its partition has
	equality  bool
	partition any
}

// delete commits files of deletes as other engines write them.
func (l *lake) delete(branch string, ds ...deletion) {
	l.Helper()
	ctx := context.Background()
	c, err := open(ctx, l.catalog)
	if err != nil {
		l.Fatal(err)
	}
	t, err := c.LoadTable(ctx, strings.Split(l.table, "."))
	if err != nil {
		l.Fatal(err)
	}
	spec := t.Spec()
	var files []iceberg.DataFile
	for _, d := range ds {
		kind, path := iceberg.EntryContentPosDeletes, filepath.Join(l.warehouse, "data", d.name+".parquet")
		if d.equality {
			kind = iceberg.EntryContentEqDeletes
		}
		if err := os.WriteFile(path, []byte("PAR1"), 0o600); err != nil {
			l.Fatal(err)
		}
		values := map[int]any{}
		for _, f := range spec.Fields() {
			values[f.FieldID] = d.partition
		}
		b, err := iceberg.NewDataFileBuilder(spec, kind, "file://"+path, iceberg.ParquetFile, values, nil, nil, 1, 4)
		if err != nil {
			l.Fatal(err)
		}
		if d.equality {
			b.EqualityFieldIDs([]int{1})
		}
		if d.of != "" {
			at := []byte("file://" + d.of)
			b.LowerBoundValues(map[int][]byte{filePath: at}).UpperBoundValues(map[int][]byte{filePath: at})
		}
		files = append(files, b.Build())
	}
	tx := t.NewTransactionOnBranch(branch)
	if err := tx.NewRowDelta(nil).AddDeletes(files...).Commit(ctx); err != nil {
		l.Fatal(err)
	}
	if _, err := tx.Commit(ctx); err != nil {
		l.Fatal(err)
	}
}

func TestChangesAndPairing(t *testing.T) {
	l := sqliteLake(t)
	l.create()
	l.begin("p")
	one, two := l.write(row{id: 1}), l.write(row{id: 2})
	first := l.must(commitOf("p", 1, one, two)).Snapshot
	l.delete(table.MainBranch, deletion{name: "a", of: one}, deletion{name: "b", equality: true})
	three := l.write(row{id: 3})
	l.must(commitOf("p", 2, three))
	l.delete(table.MainBranch, deletion{name: "c"})
	l.must(replaceOf("p", 3, l.must(meta.Request{Op: "load"}).Table.Snapshot, []string{l.write(row{id: 4})}, []string{one}))

	want := []string{
		"+00001.parquet +00002.parquet",
		"00001.parquet:>ab 00002.parquet:>b", // the equality delete is of both, the position delete of one
		"+00003.parquet",                     // younger than both deletes
		"00001.parquet:ab>abc 00002.parquet:b>bc 00003.parquet:>c",
		"+00004.parquet -00001.parquet abc",
	}
	sorted := func(lines []string) []string {
		for i, l := range lines {
			parts := strings.Fields(l) // the order of files is no promise
			slices.Sort(parts)
			lines[i] = strings.Join(parts, " ")
		}
		return lines
	}
	all := l.must(meta.Request{Op: "changes"}).Changes
	if got := sorted(told(all)); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if got := sorted(told(l.must(meta.Request{Op: "changes", After: first, Most: 2}).Changes)); len(got) != 2 || got[1] != want[2] {
		t.Errorf("got %v", got)
	}
	if a := l.call(meta.Request{Op: "changes", After: 7}); a.Kind != "expired" {
		t.Errorf("%+v", a)
	}
	t.Run("files", func(t *testing.T) {
		var got []string
		for _, f := range l.must(meta.Request{Op: "files", Ref: meta.Ref{Snapshot: all[3].Snapshot.ID}}).Files {
			line := filepath.Base(f.Path)
			for _, d := range f.Deletes {
				line += " " + d.Kind + filepath.Base(d.Path)[:1]
			}
			got = append(got, line)
		}
		slices.Sort(got)
		if want := []string{"00001.parquet positiona positionc equalityb", "00002.parquet positionc equalityb", "00003.parquet positionc"}; !slices.Equal(got, want) {
			t.Errorf("got %v", got)
		}
	})
}

// A reader that has seen nothing gets all that the oldest snapshot holds, also when those before it have expired.
func TestChangesBehindExpiry(t *testing.T) {
	l := sqliteLake(t)
	l.create()
	l.begin("p")
	first := l.must(commitOf("p", 1, l.write(row{id: 1}))).Snapshot
	l.must(commitOf("p", 2, l.write(row{id: 2})))
	l.must(commitOf("p", 3, l.write(row{id: 3})))
	l.python(fmt.Sprintf(`table.maintenance.expire_snapshots().by_id(%d).commit()`, first), nil)
	if got := told(l.must(meta.Request{Op: "changes"}).Changes); len(got) != 2 || !strings.Contains(got[0], "+00001.parquet") || !strings.Contains(got[0], "+00002.parquet") || got[1] != "+00003.parquet" {
		t.Errorf("got %v", got)
	}
	if a := l.call(meta.Request{Op: "changes", After: first}); a.Kind != "expired" || !strings.Contains(a.Error, "expired") {
		t.Errorf("%+v", a)
	}
}
