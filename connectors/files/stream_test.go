package files_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	ct "github.com/riverbed/riverbed/connectors/connectortest"
	"github.com/riverbed/riverbed/connectors/csv"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/objstore"
	"github.com/riverbed/riverbed/core/types"
)

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func follow(t *testing.T, dir string) flow.Stream {
	return ct.OpenStream(t, csv.Source, map[string]string{"path": dir}, types.Field{Name: "v", Type: types.Int64})
}

func ids(t *testing.T, s flow.Stream) []string {
	t.Helper()
	splits, err := s.Splits(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, sp := range splits {
		out = append(out, filepath.Base(sp.ID))
	}
	return out
}

// New files are new splits, whatever their names; what is hidden is none.
func TestStreamFindsLateFiles(t *testing.T) {
	dir := t.TempDir()
	s := follow(t, dir)
	put(t, filepath.Join(dir, "b.csv"), "v\n1\n")
	if got := fmt.Sprint(ids(t, s)); got != "[b.csv]" {
		t.Fatal(got)
	}
	for _, name := range []string{"c.csv", "a.csv", "k=1/d.csv", ".x.csv", "_y.csv", "_riverbed/z.csv", ".git/z.csv"} {
		put(t, filepath.Join(dir, name), "v\n2\n")
	}
	if got := fmt.Sprint(ids(t, s)); got != "[a.csv b.csv c.csv d.csv]" {
		t.Fatal(got)
	}
	hidden := filepath.Join(dir, "_riverbed")
	if got := fmt.Sprint(ids(t, follow(t, hidden))); got != "[z.csv]" {
		t.Fatalf("a folder that is named is read: %s", got)
	}
}

// torn lists as stores may while files come: of two that came during the listing it shows the later one alone.
type torn struct {
	*objstore.Double
	coming [][]string // during each listing, in the order of their coming
}

func (s *torn) URL(name string) string { return "torn://" + name }

func (s *torn) Glob(ctx context.Context, pattern string) ([]objstore.Info, error) {
	var missed []string
	if len(s.coming) > 0 {
		for _, name := range s.coming[0] {
			if err := objstore.Put(ctx, s.Double, name, []byte("v\n1\n")); err != nil {
				return nil, err
			}
		}
		missed, s.coming = s.coming[0], s.coming[1:]
		missed = missed[:max(len(missed)-1, 0)]
	}
	found, err := s.Double.Glob(ctx, pattern)
	return slices.DeleteFunc(found, func(i objstore.Info) bool { return slices.Contains(missed, i.Name) }), err
}

// Files that come in the order of their names are found in it, although no listing is of one moment.
func TestStreamFindsFilesInOrder(t *testing.T) {
	store := &torn{Double: objstore.NewDouble(), coming: [][]string{nil, {"in/a.csv", "in/b.csv"}, {"in/c.csv", "in/d.csv"}, nil, {"in/e.csv", "in/f.csv"}}}
	objstore.Mount("torn", func(rest string) (objstore.Store, string, error) { return store, rest, nil })
	s := follow(t, "torn://in/*.csv")
	before := "" // the first listing was for the columns
	for range 4 {
		now := ids(t, s)
		if !slices.IsSorted(now) || fmt.Sprint(now) != fmt.Sprint([]string{"a.csv", "b.csv", "c.csv", "d.csv", "e.csv", "f.csv"}[:len(now)]) {
			t.Errorf("found %v behind %s", now, before)
		}
		before = fmt.Sprint(now)
	}
	if before != "[a.csv b.csv c.csv d.csv e.csv f.csv]" {
		t.Errorf("at last there are %s", before)
	}
}

// A file that changes after it was read ends the stream: while it runs, where it is opened again, and after a restart.
func TestStreamNoticesChangedFiles(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.csv")
	put(t, path, "v\n1\n2\n3\n")
	put(t, filepath.Join(dir, "b.csv"), "v\n1\n")
	running := follow(t, dir)
	split := flow.Split{ID: path}
	stretches := ct.Drain(t, running, split, "", 1, 1)
	at := stretches[0].Next
	if got := fmt.Sprint(ct.Drain(t, follow(t, dir), split, at, 10, 1)[0].Rows); got != "[2 3]" {
		t.Fatalf("from %s: %s", at, got)
	}
	put(t, path, "v\n1\n2\n3\n4\n")
	changed := func(err error) {
		t.Helper()
		if err == nil || !errs.Is(err, errs.Source) || !strings.Contains(err.Error(), `a.csv" changed after it was read`) {
			t.Errorf("got %v", err)
		}
	}
	_, err := running.Splits(t.Context())
	changed(err)
	restarted := follow(t, dir)
	_, err = restarted.Open(t.Context(), split, at)
	changed(err)
	ended := follow(t, dir) // a file that had ended is not opened again
	ended.(flow.Rememberer).Remember(map[string]flow.Position{path: stretches[2].Next})
	_, err = ended.Splits(t.Context())
	changed(err)
	bounded, err := follow(t, dir).(flow.LatestStream).UntilLatest(t.Context()) // nor where the files are those of now
	if err != nil {
		t.Fatal(err)
	}
	bounded.(flow.Rememberer).Remember(map[string]flow.Position{path: stretches[2].Next})
	_, err = bounded.Splits(t.Context())
	changed(err)
}
