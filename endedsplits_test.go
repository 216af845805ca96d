package riverbed

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/checkpoint"
	"github.com/riverbed/riverbed/connectors/host"
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

// twoParts is a host whose source has two parts of one row each. The first ends at once, the second when it is let go.
type twoParts struct {
	mu    sync.Mutex
	parts map[int64]int // by reader
	given map[int64]bool
	stops map[int64]chan struct{}
	read  atomic.Bool // the row of the second part was
	go1   chan struct{}
}

func (p *twoParts) call(text []byte, _ arrow.RecordBatch) ([]byte, arrow.RecordBatch, error) {
	var r struct {
		Object int64
		Call   string
		With   struct {
			Split    int
			Position string
		}
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var said any = struct{}{}
	var rows arrow.RecordBatch
	switch r.Call {
	case "describe":
		said, rows = host.Description{Splits: 2, Replayable: true, Where: "parts"}, batchOf(numbers)
	case "reader":
		p.parts[r.Object], p.given[r.Object], p.stops[r.Object] = r.With.Split, r.With.Position != "", make(chan struct{})
	case "cancel":
		close(p.stops[r.Object])
	case "next":
		part, stop := p.parts[r.Object], p.stops[r.Object]
		switch {
		case !p.given[r.Object]:
			p.given[r.Object] = true
			said, rows = host.Next{Beside: string(flow.Beside{Position: "1"}.Bytes())}, batchOf(numbers, row{int64(part), sec(int64(part))})
		case part == 0:
			said = host.Next{End: true}
		default:
			p.read.Store(true) // and was handed over, since more is asked for
			p.mu.Unlock()
			select {
			case <-p.go1:
				said = host.Next{End: true}
			case <-stop:
			}
			p.mu.Lock()
		}
	}
	answer, err := json.Marshal(said)
	return answer, rows, err
}

// A stream whose parts end one by one ends in the run in which the last one does, whichever run the others ended in.
func TestStreamsEndAfterARestart(t *testing.T) {
	p := &twoParts{parts: map[int64]int{}, given: map[int64]bool{}, stops: map[int64]chan struct{}{}, go1: make(chan struct{})}
	before := host.Registered()
	host.Register(p.call)
	t.Cleanup(func() { host.Register(before) })
	url, got := t.TempDir(), []string{}
	begin := func() *Handle {
		t.Helper()
		d := openDB(t, "checkpoint_url", url, "checkpoint_interval_ms", "1")
		d.run("CREATE STREAM s WITH (connector = 'flight', location = 'grpc://host:1', path = 'a', event_time = 'ts')")
		q := d.query("SELECT count(*) AS n FROM s GROUP BY TUMBLE(ts, INTERVAL '1 minute') EMIT ON WATERMARK")
		to, err := q.Sink(SinkSpec{ID: "p", Func: func(_ context.Context, delta flow.Delta) error {
			got = append(got, deltaLines(q.columns, delta)...)
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		h, err := to.Start(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	h := begin()
	until(t, "one part has ended in a checkpoint", func() bool {
		found, _ := filepath.Glob(filepath.Join(url, "p", "manifest-*.json"))
		return p.read.Load() && len(found) > 0 && newestManifest(t, filepath.Join(url, "p")).Sources[0].Ended == 1
	})
	if err := h.Stop(false); err != nil {
		t.Fatal(err)
	}
	h = begin()
	close(p.go1)
	if err := h.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	expect(t, got, "+1 2")
}
