package objstore

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"syscall"
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
	strange := filepath.Join(dir, "names", "a b+%41ü=&?'(x)~;,@:.txt")
	if err := Put(ctx, s, strange, []byte("s")); err != nil {
		t.Fatal(err)
	}
	if found, err := s.Glob(ctx, filepath.Join(dir, "names", "*.txt")); err != nil || len(found) != 1 || found[0].Name != strange {
		t.Fatalf("found %v, %v", found, err)
	}
	if got, err := Get(ctx, s, strange); string(got) != "s" || err != nil {
		t.Fatalf("got %q, %v", got, err)
	}
	stagedObjects(t, s, dir)
	reading(t, s, dir)
}

// stagedObjects is what every store does with objects that are published later.
func stagedObjects(t *testing.T, s Store, dir string) {
	ctx := context.Background()
	stage := func(name, text string) Staged {
		u, err := s.Create(ctx, name)
		if err != nil {
			t.Fatal(err)
		}
		u.Write([]byte(text))
		st, err := u.Stage()
		if err != nil {
			t.Fatal(err)
		}
		if err := u.Abort(); err != nil {
			t.Fatalf("abort after stage: %v", err)
		}
		written, err := json.Marshal(st)
		if err != nil {
			t.Fatal(err)
		}
		var read Staged
		if err := json.Unmarshal(written, &read); err != nil {
			t.Fatal(err)
		}
		return read
	}
	name := filepath.Join(dir, "st", "k=1", "x.bin")
	first := stage(name, "first")
	if found, _ := s.Glob(ctx, filepath.Join(dir, "st/**/*")); len(found) != 0 {
		t.Fatalf("what is staged is visible: %v", found)
	}
	if first.Name != name || first.Size != 5 {
		t.Errorf("staged %+v", first)
	}
	listed, err := s.ListStaged(ctx, filepath.Join(dir, "st"))
	if err != nil || len(listed) != 1 || listed[0].Name != name || listed[0].Key != first.Key {
		t.Fatalf("listed %+v, %v", listed, err)
	}
	if other, err := s.ListStaged(ctx, filepath.Join(dir, "s")); len(other) != 0 || err != nil {
		t.Fatalf("below another folder %+v, %v", other, err)
	}
	second := stage(name, "other")
	for range 2 { // an answer may be lost
		if err := s.Publish(ctx, first); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Publish(ctx, second); !errors.Is(err, ErrExists) {
		t.Fatalf("the name is taken: %v", err)
	}
	if got, err := Get(ctx, s, name); string(got) != "first" || err != nil {
		t.Fatalf("got %q, %v", got, err)
	}
	for range 2 {
		if err := s.Discard(ctx, second); err != nil {
			t.Fatal(err)
		}
	}
	if listed, err := s.ListStaged(ctx, filepath.Join(dir, "st")); len(listed) != 0 || err != nil {
		t.Fatalf("left %+v, %v", listed, err)
	}
	gone := stage(filepath.Join(dir, "st", "gone"), "x")
	if err := s.Discard(ctx, gone); err != nil {
		t.Fatal(err)
	}
	if err := s.Publish(ctx, gone); !errors.Is(err, ErrNotExist) {
		t.Fatalf("a discarded object: %v", err)
	}
	empty := stage(filepath.Join(dir, "st", "empty"), "")
	if err := s.Publish(ctx, empty); err != nil {
		t.Fatal(err)
	}
	if info, err := s.Stat(ctx, empty.Name); info.Size != 0 || err != nil {
		t.Fatalf("%+v, %v", info, err)
	}
}

// reading compares reads at random places with the bytes that were written.
func reading(t *testing.T, s Store, dir string) {
	ctx, r := context.Background(), rand.New(rand.NewPCG(1, 2))
	data := make([]byte, 20<<20+7)
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	name := filepath.Join(dir, "big")
	u, err := s.Create(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	for at := 0; at < len(data); at += 300_000 {
		if _, err := u.Write(data[at:min(at+300_000, len(data))]); err != nil {
			t.Fatal(err)
		}
	}
	if err := u.Commit(); err != nil {
		t.Fatal(err)
	}
	if got, err := Get(ctx, s, name); err != nil || !bytes.Equal(got, data) {
		t.Fatalf("%d bytes of %d, %v", len(got), len(data), err)
	}
	f, err := s.Open(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	walks := []int{0, 5 << 20, 10 << 20, len(data) - 9}
	for i := range 400 {
		n, at := 1+r.IntN(200_000), r.IntN(len(data)+10)
		if i%4 != 0 { // some readers walk on
			w := r.IntN(len(walks))
			at = walks[w]
			walks[w] += n
		}
		p := make([]byte, n)
		got, err := f.ReadAt(p, int64(at))
		want := data[min(at, len(data)):min(at+n, len(data))]
		if !bytes.Equal(p[:got], want) {
			t.Fatalf("%d bytes at %d: %d are read, not the ones that were written", n, at, got)
		}
		if wantEnd := at+n > len(data); (err == io.EOF) != wantEnd || err != nil && err != io.EOF {
			t.Fatalf("%d bytes at %d: %v", n, at, err)
		}
	}
	if err := Put(ctx, s, name, nil); err != nil {
		t.Fatal(err)
	}
	if got, err := Get(ctx, s, name); len(got) != 0 || err != nil {
		t.Fatalf("an empty object: %d bytes, %v", len(got), err)
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
	if entries, _ := os.ReadDir(dir); len(entries) != 5 {
		t.Errorf("an aborted upload leaves something: %v", entries)
	}
}

// Ended between its link and its removal, a publication has left both names.
func TestLocalPublishesAgain(t *testing.T) {
	ctx, name := context.Background(), filepath.Join(t.TempDir(), "x")
	u, err := Local{}.Create(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	u.Write([]byte("x"))
	st, err := u.Stage()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Link(st.Key, name); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := (Local{}).Publish(ctx, st); err != nil {
			t.Fatal(err)
		}
		if entries, _ := os.ReadDir(filepath.Dir(name)); len(entries) != 1 {
			t.Fatalf("left %v", entries)
		}
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

func TestFor(t *testing.T) {
	s, name, err := For("s3://b/k/*.parquet")
	if _, ok := s.(*S3); !ok || name != "b/k/*.parquet" || err != nil || URL(s, name) != "s3://b/k/*.parquet" {
		t.Errorf("got %T %q, %v", s, name, err)
	}
	for _, bad := range []string{"s3://", "s3:///k", "s3://b*/k"} {
		if _, _, err := For(bad); !errs.Is(err, errs.Usage) {
			t.Errorf("%s: %v", bad, err)
		}
	}
	if _, _, err := For("gs://b/k"); !errs.Is(err, errs.Unsupported) {
		t.Errorf("got %v", err)
	}
	if _, name, err := For("file:///tmp/x"); name != "/tmp/x" || err != nil {
		t.Errorf("got %q, %v", name, err)
	}
}

// noting is the machine's file system. It notes which folders are synced, and some syncs fail.
type noting struct {
	osFS
	fails  map[string]error
	synced []string
}

type notingHandle struct {
	Handle
	f *noting
}

func (f *noting) Open(name string) (Handle, error) {
	h, err := f.osFS.Open(name)
	return notingHandle{h, f}, err
}

func (h notingHandle) Sync() error {
	if err := h.f.fails[h.Name()]; err != nil {
		return &os.PathError{Op: "sync", Path: h.Name(), Err: err}
	}
	h.f.synced = append(h.f.synced, h.Name())
	return h.Handle.Sync()
}

// A folder that is there may be of a process that ended before it was durable: what is synced in it would be lost with it.
func TestLocalSyncsFoldersOfOthers(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	above, a, b := filepath.Join(dir, "above"), filepath.Join(dir, "above", "a"), filepath.Join(dir, "above", "a", "b")
	if err := os.Mkdir(above, 0o777); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(b, "x")
	if err := Put(ctx, On(&noting{fails: map[string]error{a: syscall.EIO}}), name, nil); !errors.Is(err, syscall.EIO) {
		t.Fatalf("the sync of a folder failed, and the answer is %v", err)
	}
	another := &noting{}
	s := On(another)
	for i, want := range [][]string{{dir, above, a, b}, {b}} { // the first also syncs what is above the test
		another.synced = nil
		if err := Put(ctx, s, name, nil); err != nil {
			t.Fatal(err)
		}
		if got := another.synced; len(got) < len(want) || !slices.Equal(got[len(got)-len(want):], want) || i > 0 && len(got) > len(want) {
			t.Errorf("write %d syncs %v, and not %v", i+1, got, want)
		}
	}
	another.synced = nil
	if err := Keep(ctx, On(another), name); err != nil || !slices.Contains(another.synced, b) || !slices.Contains(another.synced, a) {
		t.Errorf("to keep a file syncs %v: %v", another.synced, err)
	}
	if err := Keep(ctx, NewDouble(), name); err != nil {
		t.Errorf("a store that shows nothing early: %v", err)
	}
}

// Folders far above are not ours to open, or of a file system that knows no sync.
func TestLocalNeedNotSyncAllAbove(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "above"), 0o777); err != nil {
		t.Fatal(err)
	}
	for i, e := range []error{syscall.EACCES, syscall.EINVAL, syscall.EROFS, syscall.ENOTSUP} {
		s := On(&noting{fails: map[string]error{filepath.Dir(dir): e, dir: e}})
		if err := Put(ctx, s, filepath.Join(dir, "above", "x"), nil); err != nil {
			t.Errorf("%v: %v", e, err)
		}
		if err := Put(ctx, s, filepath.Join(dir, "new"+string(rune('0'+i)), "x"), nil); err == nil {
			t.Errorf("%v: a folder was made where it cannot be made durable", e)
		}
	}
}
