package riverbed

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/riverbed/riverbed/core/errs"
)

// A check finds a query that the checkpoints or the savepoint are not of, and leaves everything as it is.
func TestCheckFindsAnotherQueryAndTakesNothing(t *testing.T) {
	dir, url, saved := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "saved")
	feedFolder(t, dir, 0, 1, 10)
	const count, other = "SELECT k, count(*) AS n FROM s GROUP BY k", "SELECT v, count(*) AS n FROM s GROUP BY v"
	pipeline := func(query string, settings ...string) *Pipeline {
		s := openDB(t, settings...)
		s.run("CREATE STREAM s (k INT, v INT) WITH (connector = 'json', path = '" + dir + "/*.json')")
		p, err := s.query(query).Sink(SinkSpec{ConnectorSpec: ConnectorSpec{Connector: "json", Options: map[string]string{"path": filepath.Join(dir, "out"), "changelog": "true"}}, ID: "p"})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	if err := pipeline(count).Check(t.Context()); err != nil {
		t.Errorf("without checkpoints: %v", err)
	}
	h, err := pipeline(count, "checkpoint_url", url).Start(t.Context(), "latest")
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := Savepoint(t.Context(), url, "p", 0, saved); err != nil {
		t.Fatal(err)
	}
	fresh := t.TempDir()
	before := [3]map[string]string{folder(t, url), folder(t, saved), folder(t, fresh)}
	for _, c := range []struct {
		name, query string
		settings    []string
		refused     string
	}{
		{"its own checkpoints", count, []string{"checkpoint_url", url}, ""},
		{"a savepoint", count, []string{"checkpoint_url", fresh, "from_savepoint", saved}, ""},
		{"another query", other, []string{"checkpoint_url", url}, "are of another query"},
		{"another query, a savepoint", other, []string{"checkpoint_url", fresh, "from_savepoint", saved}, "are of another query"},
		{"state that cannot be reused", other, []string{"checkpoint_url", fresh, "from_savepoint", saved, "changed_query", "reuse"}, "cannot go on with the changed query"},
		{"no savepoint", count, []string{"checkpoint_url", fresh, "from_savepoint", t.TempDir()}, "holds no savepoint"},
		{"own checkpoints before a savepoint", count, []string{"checkpoint_url", url, "from_savepoint", t.TempDir()}, ""},
	} {
		err := pipeline(c.query, c.settings...).Check(t.Context())
		switch {
		case c.refused == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.refused != "" && (!errs.Is(err, errs.State) || !strings.Contains(err.Error(), c.refused)):
			t.Errorf("%s: %v", c.name, err)
		}
	}
	for i, was := range before {
		if now := folder(t, []string{url, saved, fresh}[i]); len(now) != len(was) {
			t.Errorf("a check changed a folder: %d files, and %d before", len(now), len(was))
		}
	}
}
