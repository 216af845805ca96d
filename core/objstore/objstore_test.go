package objstore

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/riverbed/riverbed/core/errs"
)

// conformance is what every store does.
func conformance(t *testing.T, s Store, dir string) {
	ctx := context.Background()
	name := filepath.Join(dir, "a", "x.txt")
	if _, err := s.Open(ctx, name); !errors.Is(err, ErrNotExist) {
		t.Fatalf("open of nothing: %v", err)
	}
	u, err := s.Create(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	u.Write([]byte("hello"))
	if found, _ := s.Glob(ctx, filepath.Join(dir, "**/*.txt")); len(found) != 0 {
		t.Fatalf("an upload is visible before its commit: %v", found)
	}
	if err := u.Commit(); err != nil {
		t.Fatal(err)
	}
	if got, err := Get(ctx, s, name); err != nil || string(got) != "hello" {
		t.Fatalf("got %q, %v", got, err)
	}
	if err := s.PutIfAbsent(ctx, name, []byte("x")); !errors.Is(err, ErrExists) {
		t.Fatalf("a taken name: %v", err)
	}
	if err := s.PutIfAbsent(ctx, filepath.Join(dir, "b.txt"), []byte("b")); err != nil {
		t.Fatal(err)
	}
	if err := Put(ctx, s, name, []byte("new")); err != nil {
		t.Fatal(err)
	}
	found, err := s.Glob(ctx, filepath.Join(dir, "**/*.txt"))
	if err != nil || len(found) != 2 || found[0].Size != 3 {
		t.Fatalf("glob: %v, %v", found, err)
	}
	for range 2 {
		if err := s.Delete(ctx, name); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Stat(ctx, name); !errors.Is(err, ErrNotExist) {
		t.Fatalf("stat after delete: %v", err)
	}
}

func TestLocal(t *testing.T) {
	dir := t.TempDir()
	conformance(t, Local{}, dir)
	if left, _ := filepath.Glob(filepath.Join(dir, "*", ".*.tmp")); len(left) != 0 {
		t.Errorf("temporary files are left: %v", left)
	}
	u, err := Local{}.Create(context.Background(), filepath.Join(dir, "gone"))
	if err != nil {
		t.Fatal(err)
	}
	u.Abort()
	if entries, _ := os.ReadDir(dir); len(entries) != 2 {
		t.Errorf("an aborted upload leaves something: %v", entries)
	}
}

func TestDouble(t *testing.T) { conformance(t, NewDouble(), "/d") }

func TestDoubleForgetsUnsynced(t *testing.T) {
	d, ctx := NewDouble(), context.Background()
	d.Lazy = true
	Put(ctx, d, "a", []byte("1"))
	d.Sync()
	Put(ctx, d, "a", []byte("2"))
	Put(ctx, d, "b", []byte("2"))
	d.Crash()
	if got, err := Get(ctx, d, "a"); string(got) != "1" || err != nil {
		t.Errorf("a is %q, %v", got, err)
	}
	if _, err := d.Stat(ctx, "b"); !errors.Is(err, ErrNotExist) {
		t.Errorf("b survived: %v", err)
	}
}

func TestDoubleFailsAndAnswersTwice(t *testing.T) {
	d, ctx := NewDouble(), context.Background()
	faults := map[int]Fault{1: Fail, 2: Ambiguous}
	d.Plan = func(n int, _, _ string) Fault { return faults[n] }
	for range 2 {
		err := d.PutIfAbsent(ctx, "a", []byte("1"))
		if e := errs.As(err); e == nil || !e.Transient {
			t.Fatalf("want a transient error, got %v", err)
		}
	}
	// The second attempt was done although it failed: the retry learns that the name is taken.
	if err := d.PutIfAbsent(ctx, "a", []byte("1")); !errors.Is(err, ErrExists) {
		t.Errorf("retry: %v", err)
	}
}

func TestForRefusesS3(t *testing.T) {
	if _, _, err := For("s3://b/k"); !errs.Is(err, errs.Unsupported) {
		t.Errorf("got %v", err)
	}
	if _, name, err := For("file:///tmp/x"); name != "/tmp/x" || err != nil {
		t.Errorf("got %q, %v", name, err)
	}
}
