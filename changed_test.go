package riverbed

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/riverbed/riverbed/connectors"
	"github.com/riverbed/riverbed/connectors/all"
	"github.com/riverbed/riverbed/core/errs"
)

// keyedVault is a vault that replaces rows by their first column.
type keyedVault struct{ *vaultWriter }

func init() {
	all.Sinks = append(all.Sinks, connectors.Sink{Name: "vault_keyed", Class: "Vault", Updates: connectors.Keyed, ExactlyOnce: true, Held: true,
		Options: connectors.Options{{Name: "name", Type: connectors.String, Doc: "Which."}},
		Open: func(_ context.Context, req connectors.SinkRequest) (connectors.Writer, error) {
			return keyedVault{&vaultWriter{v: vaults[req.Settings.String("name")], pipeline: req.Pipeline, fields: len(req.Fields)}}, nil
		}})
}

func (w keyedVault) Commit(_ context.Context, e connectors.StagedEpoch) error {
	w.v.mu.Lock()
	defer w.v.mu.Unlock()
	if w.v.markers[w.pipeline] == e.Marker {
		return nil
	}
	if w.v.markers[w.pipeline] != e.Previous {
		return errs.New(errs.ExactlyOnce, "commit", "the vault holds %s, not %s", w.v.markers[w.pipeline], e.Previous)
	}
	for _, sign := range []string{"-", "+"} { // a row that changed is taken away before it comes
		for _, b := range e.Rows {
			for _, c := range changesIn(b, w.fields) {
				if !strings.HasPrefix(c, sign) {
					continue
				}
				_, row, _ := strings.Cut(c, " ")
				key, _, _ := strings.Cut(row, "|")
				maps.DeleteFunc(w.v.rows, func(r string, _ int) bool { return strings.HasPrefix(r, key+"|") })
				if sign == "+" {
					w.v.rows[row] = 1
				}
			}
		}
	}
	w.v.markers[w.pipeline] = e.Marker
	return nil
}

// script is one pipeline over a folder that grows, started again and again.
type restarts struct {
	t    *testing.T
	dir  string
	v    *vault
	url  string
	sink string
	rows int64
	made int
}

func newRestarts(t *testing.T, sink string) *restarts {
	return &restarts{t: t, dir: t.TempDir(), v: newVault(t), url: t.TempDir(), sink: sink}
}

// add writes a file of rows k; v counts them.
func (r *restarts) add(keys ...int) {
	r.t.Helper()
	var b strings.Builder
	for _, k := range keys {
		fmt.Fprintf(&b, `{"k":%d,"v":%d}`+"\n", k, r.rows)
		r.rows++
	}
	if err := os.WriteFile(filepath.Join(r.dir, fmt.Sprintf("%04d.json", r.made)), []byte(b.String()), 0o600); err != nil {
		r.t.Fatal(err)
	}
	r.made++
}

// run starts the query, waits until it has taken new rows, and stops it so that it can go on.
func (r *restarts) run(query string, rows int64, config ...string) error {
	r.t.Helper()
	d := openDB(r.t, append([]string{"checkpoint_url", r.url, "checkpoint_interval_ms", "3600000"}, config...)...)
	for _, name := range []string{"s", "other"} {
		d.run("CREATE STREAM " + name + " (k INT, v INT) WITH (connector = 'json', path = '" + r.dir + "/*.json')")
	}
	p, err := d.query(query).Sink(SinkSpec{ConnectorSpec: ConnectorSpec{Connector: r.sink, Options: map[string]string{"name": r.t.Name()}}, ID: "p", ExactlyOnce: true})
	if err != nil {
		return err
	}
	h, err := p.Start(r.t.Context(), "")
	if err != nil {
		return err
	}
	for ended := false; !ended && h.Metrics().RowsIn < rows; {
		ctx, cancel := context.WithTimeout(r.t.Context(), time.Millisecond)
		_ = h.Wait(ctx)
		ended = ctx.Err() == nil
		cancel()
	}
	return h.Stop(false)
}

func (r *restarts) has(rows ...string) {
	r.t.Helper()
	want := map[string]int{}
	for _, row := range rows {
		want[row]++
	}
	if got := r.v.all(); !maps.Equal(got, want) {
		r.t.Errorf("the sink has %v, not %v", got, want)
	}
}

// A changed query goes on with the state of the operators that it has kept, wherever they stand now, and is then the pipeline's query.
func TestChangedQueryReusesState(t *testing.T) {
	r := newRestarts(t, "vault_held")
	r.add(1, 2, 2)
	if err := r.run("SELECT DISTINCT k FROM s", 3); err != nil {
		t.Fatal(err)
	}
	r.has("1", "2")
	r.add(2, 3)
	const changed = "SELECT k * 10 AS tens, k FROM (SELECT DISTINCT k FROM s)"
	if err := r.run(changed, 2); !errs.Is(err, errs.State) || !strings.Contains(err.Error(), "are of another query") {
		t.Fatalf("without the setting: %v", err)
	}
	if err := r.run(changed, 2, "changed_query", "reuse"); err != nil {
		t.Fatal(err)
	}
	r.has("1", "2", "30|3")
	r.add(3, 4)
	if err := r.run(changed, 2); err != nil { // its checkpoints are its own
		t.Fatal(err)
	}
	r.has("1", "2", "30|3", "40|4")
	r.add(1, 4, 5)
	if err := r.run("SELECT DISTINCT k FROM s", 3, "changed_query", "reuse"); err != nil { // and back, to the path that it had
		t.Fatal(err)
	}
	r.has("1", "2", "30|3", "40|4", "5")
	r.add(6)
	for _, c := range []struct{ query, mode, says string }{
		{"SELECT DISTINCT v FROM s", "reuse", "have no state of"},
		{"SELECT DISTINCT k FROM s UNION ALL SELECT k FROM other", "reuse", "it reads s, other, and the former query read s"},
		{"SELECT DISTINCT k FROM s EMIT EVERY INTERVAL '1 hour'", "reuse", "it was shown by EMIT"},
		{"SELECT k, count(*) AS n FROM (SELECT DISTINCT k FROM s) GROUP BY k", "reuse", "takes rows back"},
		{"SELECT DISTINCT v FROM s", "rebuild", "does not replace rows by a key"},
	} {
		if err := r.run(c.query, 1, "changed_query", c.mode); !errs.Is(err, errs.State) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %s: %v", c.mode, c.query, err)
		}
	}
	if err := r.run("SELECT DISTINCT k FROM s", 1); err != nil { // what was refused has changed nothing
		t.Fatal(err)
	}
	r.has("1", "2", "30|3", "40|4", "5", "6")
}

// Into a sink with keys a changed query replaces the rows that change from now on, and one that is rebuilt those of all keys that it has.
func TestChangedQueryOfKeys(t *testing.T) {
	r := newRestarts(t, "vault_keyed")
	r.add(1, 2, 2)
	if err := r.run("SELECT k, count(*) AS n FROM s GROUP BY k", 3); err != nil {
		t.Fatal(err)
	}
	r.has("1|1", "2|2")
	r.add(2, 3)
	if err := r.run("SELECT k, n * 100 AS n FROM (SELECT k, count(*) AS n FROM s GROUP BY k)", 2, "changed_query", "reuse"); err != nil {
		t.Fatal(err)
	}
	r.has("1|1", "2|300", "3|100")
	if err := r.run("SELECT k, max(v) AS n FROM s GROUP BY k", 5, "changed_query", "rebuild"); err != nil {
		t.Fatal(err)
	}
	r.has("1|0", "2|3", "3|4")
	r.add(1)
	if err := r.run("SELECT k, max(v) AS n FROM s GROUP BY k", 1); err != nil {
		t.Fatal(err)
	}
	r.has("1|5", "2|3", "3|4")
}

// A sink that was emptied, or has another marker, is refused, unless duplicates are accepted; then the chain goes on from what the sink says. The epoch
// whose mark only the sink had is committed again, and none before it.
func TestAcceptDuplicates(t *testing.T) {
	const query = "SELECT k FROM s"
	for _, sink := range []string{"vault_held", "vault_staging"} {
		t.Run(sink, func(t *testing.T) {
			r := newRestarts(t, sink)
			r.add(1)
			if err := r.run(query, 1); err != nil {
				t.Fatal(err)
			}
			want := []string{"1"}
			for i, change := range []func(){
				func() { delete(r.v.markers, "p") },
				func() { r.v.markers["p"] = "another:7" },
			} {
				change()
				r.add(2 + i)
				if err := r.run(query, 1); !errs.Is(err, errs.ExactlyOnce) || !strings.Contains(err.Error(), "accept_duplicates") {
					t.Fatalf("change %d: %v", i, err)
				}
				if err := r.run(query, 1, "accept_duplicates", "true"); err != nil {
					t.Fatal(err)
				}
				r.add(10 + i)
				if err := r.run(query, 1); err != nil { // the chain is whole again
					t.Fatal(err)
				}
				want = append(want, want[len(want)-1], fmt.Sprint(2+i), fmt.Sprint(10+i))
				r.has(want...)
			}
		})
	}
}

// A start that is refused collects nothing: what somebody tries to rescue is still there when it is put right.
func TestRefusedStartsCollectNothing(t *testing.T) {
	r := newRestarts(t, "vault_held")
	for i := range 6 {
		r.add(i)
		if err := r.run("SELECT DISTINCT k FROM s", 1); err != nil {
			t.Fatal(err)
		}
	}
	manifests, _ := filepath.Glob(filepath.Join(r.url, "p", "manifest-*.json"))
	newest := manifests[len(manifests)-1]
	aside := filepath.Join(t.TempDir(), "newest")
	if err := os.Rename(newest, aside); err != nil {
		t.Fatal(err)
	}
	if err := r.run("SELECT DISTINCT k FROM s", 1); !errs.Is(err, errs.ExactlyOnce) {
		t.Fatalf("a sink that is ahead: %v", err)
	}
	written, _ := filepath.Glob(filepath.Join(r.url, "p", "manifest-*.json"))
	for _, m := range written { // the refused start has fenced
		if !slices.Contains(manifests, m) {
			if err := os.Remove(m); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.Rename(aside, newest); err != nil {
		t.Fatal(err)
	}
	r.add(100)
	if err := r.run("SELECT DISTINCT k FROM s", 1); err != nil {
		t.Fatal(err)
	}
	r.has("0", "1", "2", "3", "4", "5", "100")
}
