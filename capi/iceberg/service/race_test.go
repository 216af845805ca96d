package service

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"

	"github.com/riverbed/riverbed/connectors/iceberg/meta"
)

// Writers race for one table, half of them in another process: every file is there once, and every marker is each writer's last.
func TestWritersRace(t *testing.T) {
	const writers, commits = 8, 20
	l := sqliteLake(t)
	l.create()
	var want []int64
	jobs := make([][]meta.Request, writers)
	for w := range writers {
		pipeline := fmt.Sprintf("writer %d", w)
		l.begin(pipeline)
		for e := range commits {
			id := int64(w*commits + e)
			want = append(want, id)
			jobs[w] = append(jobs[w], commitOf(pipeline, e+1, l.write(row{id: id, name: "x"})))
		}
	}
	var wait sync.WaitGroup
	for w := range writers {
		wait.Go(func() {
			if w%2 == 0 {
				for _, r := range jobs[w] {
					if a := l.call(r); a.Error != "" {
						t.Errorf("%s: %s", r.Commit.Marker, a.Error)
						return
					}
				}
				return
			}
			l.elsewhere(jobs[w])
		})
	}
	wait.Wait()
	if got := l.ids(""); !slices.Equal(got, want) {
		t.Errorf("pyiceberg reads %d rows of %d", len(got), len(want))
	}
	for w := range writers {
		pipeline := fmt.Sprintf("writer %d", w)
		if a := l.must(meta.Request{Op: "marker", Commit: &meta.Commit{Pipeline: pipeline}}); a.Marker != fmt.Sprintf("%s/%d", pipeline, commits) {
			t.Errorf("%s holds %q", pipeline, a.Marker)
		}
	}
}

// elsewhere makes the requests in a process of their own.
func (l *lake) elsewhere(requests []meta.Request) {
	for i := range requests {
		requests[i].Catalog, requests[i].Table = l.catalog, l.table
	}
	text, err := json.Marshal(requests)
	if err != nil {
		l.Error(err)
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run", "^TestChild$", "-test.timeout", "0")
	cmd.Env = append(os.Environ(), "RIVERBED_TEST_WRITER=1")
	cmd.Stdin = strings.NewReader(string(text))
	if out, err := cmd.CombinedOutput(); err != nil {
		l.Errorf("the child: %v\n%s", err, out)
	}
}

// TestChild is the other process of tests that need one.
func TestChild(t *testing.T) {
	if os.Getenv("RIVERBED_TEST_WRITER") == "" {
		return
	}
	var requests []meta.Request
	if err := json.NewDecoder(os.Stdin).Decode(&requests); err != nil {
		t.Fatal(err)
	}
	for _, r := range requests {
		if a := Call(context.Background(), r); a.Error != "" {
			t.Fatalf("%s: %s", r.Commit.Marker, a.Error)
		}
	}
}

// unreliable is a catalog between whose commits and us things happen.
type unreliable struct {
	catalog.Catalog
	commit func(do doer) (table.Metadata, string, error)
}

type doer func() (table.Metadata, string, error)

func (u *unreliable) LoadTable(ctx context.Context, ident []string) (*table.Table, error) {
	t, err := u.Catalog.LoadTable(ctx, ident)
	if err != nil {
		return nil, err
	}
	return table.New(ident, t.Metadata(), t.MetadataLocation(), t.FS, u), nil
}

func (u *unreliable) CommitTable(ctx context.Context, ident []string, reqs []table.Requirement, updates []table.Update) (table.Metadata, string, error) {
	return u.commit(func() (table.Metadata, string, error) { return u.Catalog.CommitTable(ctx, ident, reqs, updates) })
}

// through puts what happens in the way of the lake's commits.
func (l *lake) through(commit func(do doer) (table.Metadata, string, error)) {
	l.Helper()
	c, err := open(context.Background(), l.catalog)
	if err != nil {
		l.Fatal(err)
	}
	real := c.Catalog
	c.Catalog = &unreliable{real, commit}
	l.Cleanup(func() { c.Catalog = real })
}

func TestLostAnswers(t *testing.T) {
	reset := fmt.Errorf("read tcp: %w", syscall.ECONNRESET)
	for _, c := range []struct {
		name string
		fail func(n int) (before, after bool)
		is   string // kind of the error
	}{
		{"an answer", func(n int) (bool, bool) { return false, n == 1 }, ""},
		{"a request", func(n int) (bool, bool) { return n == 1, false }, ""},
		{"every answer", func(int) (bool, bool) { return false, true }, ""},
		{"every request", func(int) (bool, bool) { return true, false }, "io"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := sqliteLake(t)
			l.create()
			l.begin("p")
			file, n := l.write(row{id: 1, name: "a"}), 0
			l.through(func(do doer) (table.Metadata, string, error) {
				n++
				before, after := c.fail(n)
				if before {
					return nil, "", reset
				}
				m, where, err := do()
				if err == nil && after {
					return nil, "", reset
				}
				return m, where, err
			})
			a := l.call(commitOf("p", 1, file))
			want := []string{}
			if c.is == "" {
				want = bases(file)
			}
			if a.Kind != c.is || a.Error == "" && (a.Marker != "p/1" || a.Snapshot == 0) || a.Error != "" && !a.Transient {
				t.Errorf("%+v", a)
			}
			if got := l.paths(meta.Ref{}); !slices.Equal(got, want) {
				t.Errorf("files %v, want %v", got, want)
			}
			if n := len(l.must(meta.Request{Op: "load"}).Table.Snapshots); n != len(want) {
				t.Errorf("%d snapshots", n)
			}
		})
	}
}

// A request that is served after its repetition was done must be refused.
func TestLateRequests(t *testing.T) {
	l := sqliteLake(t)
	l.create()
	l.begin("p")
	var late doer
	l.through(func(do doer) (table.Metadata, string, error) {
		if late == nil {
			late = do
			return nil, "", fmt.Errorf("read tcp: %w", syscall.ECONNRESET)
		}
		return do()
	})
	l.must(commitOf("p", 1, l.write(row{id: 1, name: "a"})))
	if _, _, err := late(); err == nil {
		t.Error("a commit was done twice")
	}
	if got := l.ids(""); !slices.Equal(got, []int64{1}) {
		t.Errorf("pyiceberg reads %v", got)
	}
}

// What other writers do between our look and our commit is kept, and so is what we do.
func TestConflicts(t *testing.T) {
	l := sqliteLake(t)
	l.create()
	l.begin("p")
	l.begin("q")
	ours, theirs, again := l.write(row{id: 1}), l.write(row{id: 2}), false
	l.through(func(do doer) (table.Metadata, string, error) {
		if !again {
			again = true
			l.must(commitOf("q", 1, theirs))
		}
		return do()
	})
	l.must(commitOf("p", 1, ours))
	if got := l.ids(""); !slices.Equal(got, []int64{1, 2}) {
		t.Errorf("pyiceberg reads %v", got)
	}
}
