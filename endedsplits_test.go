package riverbed

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/riverbed/riverbed/checkpoint"
	"github.com/riverbed/riverbed/core/flow"
)

// newestManifest reads the newest manifest in a folder.
func newestManifest(t *testing.T, folder string) *checkpoint.Manifest {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(folder, "manifest-*.json"))
	if err != nil || len(found) == 0 {
		t.Fatal(found, err)
	}
	data, err := os.ReadFile(found[len(found)-1])
	if err != nil {
		t.Fatal(err)
	}
	m := &checkpoint.Manifest{}
	if err := json.Unmarshal(data, m); err != nil {
		t.Fatal(err)
	}
	return m
}

// Files that were read are rows of the checkpoints, which manifests only count, and are not read again, whatever comes in between.
func TestFilesThatWereReadAreRows(t *testing.T) {
	v, dir, url := newVault(t), t.TempDir(), t.TempDir()
	feedFolder(t, dir, 0, 30, 10)
	statements := []string{"CREATE STREAM s (k INT, v INT) WITH (connector = 'json', path = '" + dir + "/*.json')"}
	config := map[string]string{"checkpoint_url": url, "checkpoint_interval_ms": "1", "step_rows": "10"}
	query := "SELECT k, v FROM s"
	for n := range 8 {
		count := 0
		ended, err := runEnded(t, config, statements, query, "vault_held", "p", func(phase string, _ flow.Epoch) bool {
			if phase == checkpoint.Published {
				count++
			}
			return n < 7 && count > n
		})
		if hasEnded(err) {
			break
		}
		if ended != (err != nil) {
			t.Fatal(err)
		}
		m := newestManifest(t, filepath.Join(url, "p"))
		if n := m.Rows(checkpoint.Log, checkpoint.EndedSplits, "s"); n != m.Sources[0].Ended {
			t.Errorf("%d files were read to their end, and %d are noted", m.Sources[0].Ended, n)
		}
		for id, at := range m.Sources[0].Splits {
			if at.Ended {
				t.Errorf("%s has ended and stands in the manifest", id)
			}
		}
		if !ended {
			break
		}
	}
	m := newestManifest(t, filepath.Join(url, "p"))
	if s := m.Sources[0]; s.Ended != 30 || len(s.Splits) != 0 || strings.Contains(string(s.State), ".json") {
		t.Errorf("%d files were read, the manifest names %v and %s", s.Ended, s.Splits, s.State)
	}
	if want := wantRows(t, statements, query); !maps.Equal(v.all(), want) {
		t.Errorf("%v", diff(v.all(), want))
	}
}

// A table that changes for ever takes as much room in the checkpoints as it has rows.
func TestChangesOfTablesArePutTogether(t *testing.T) {
	defer func(n int64) { tablesLogged = n }(tablesLogged)
	tablesLogged = 20
	v, dir, url := newVault(t), t.TempDir(), t.TempDir()
	feedFolder(t, dir, 0, 1, 7)
	d := openDB(t, "checkpoint_url", url, "checkpoint_interval_ms", "1")
	d.run("CREATE STREAM s (k INT, v INT) WITH (connector = 'json', path = '" + dir + "/*.json')")
	d.run("CREATE TABLE names AS SELECT range AS k, 'name ' || range AS name FROM range(7)")
	start := func() *Handle {
		p, err := d.query("SELECT s.v, n.name FROM s JOIN names AS n ON n.k = s.k").
			Sink(SinkSpec{ConnectorSpec: ConnectorSpec{Connector: "vault_staging", Options: map[string]string{"name": t.Name()}}, ID: "p"})
		if err != nil {
			t.Fatal(err)
		}
		h, err := p.Start(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	shows := func(name string) bool {
		for row := range v.all() {
			if strings.HasSuffix(row, "|"+name) {
				return true
			}
		}
		return false
	}
	h := start()
	for n := range 60 {
		name := fmt.Sprintf("turn %d", n)
		d.run("UPDATE names SET name = '" + name + "' WHERE k = 2")
		for !shows(name) {
			time.Sleep(time.Millisecond)
		}
		if n == 40 {
			if err := h.Stop(false); err != nil {
				t.Fatal(err)
			}
			h = start()
		}
	}
	if err := h.Stop(false); err != nil {
		t.Fatal(err)
	}
	m := newestManifest(t, filepath.Join(url, "p"))
	whole, log := m.Rows(checkpoint.Whole, tableOwner, "names"), m.Rows(checkpoint.Log, tableOwner, "names")
	if whole != 7 || log > 24 {
		t.Errorf("a table of 7 rows that changed 60 times takes %d rows and %d changes", whole, log)
	}
	if len(v.all()) != 7 {
		t.Errorf("%v", v.all())
	}
}
