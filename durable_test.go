package riverbed

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/checkpoint"
	"github.com/riverbed/riverbed/connectors"
	"github.com/riverbed/riverbed/connectors/all"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/incremental"
)

// vault is a server that takes epochs, outside of the pipelines that the tests end.
type vault struct {
	mu      sync.Mutex
	rows    map[string]int // how often each stands there
	markers map[string]connectors.Marker
	staged  map[string][]string // by committable, of sinks that stage
	changes int                 // that commits brought
	// fail is asked before and after a commit is applied.
	fail func(applied bool) error
}

var vaults = map[string]*vault{}

// held and staging sinks over a vault, beside the connectors' own.
func init() {
	for _, held := range []bool{true, false} {
		name := map[bool]string{true: "vault_held", false: "vault_staging"}[held]
		all.Sinks = append(all.Sinks, connectors.Sink{Name: name, Class: "Vault", Updates: connectors.Changelog, ExactlyOnce: true, Held: held,
			Options: connectors.Options{{Name: "name", Type: connectors.String, Doc: "Which."}},
			Open: func(_ context.Context, req connectors.SinkRequest) (connectors.Writer, error) {
				return &vaultWriter{v: vaults[req.Settings.String("name")], pipeline: req.Pipeline, fields: len(req.Fields)}, nil
			}})
	}
}

func newVault(t *testing.T) *vault { return newNamedVault(t.Name()) }

func newNamedVault(name string) *vault {
	v := &vault{rows: map[string]int{}, markers: map[string]connectors.Marker{}, staged: map[string][]string{}, fail: func(bool) error { return nil }}
	vaults[name] = v
	return v
}

type vaultWriter struct {
	v        *vault
	pipeline string
	fields   int
	rows     []string
}

func changesIn(b arrow.RecordBatch, fields int) []string {
	var out []string
	for r := range int(b.NumRows()) {
		w := int64(1)
		if int(b.NumCols()) > fields {
			w = b.Column(fields).(*array.Int64).Value(r)
		}
		var cells []string
		for c := range fields {
			cells = append(cells, b.Column(c).ValueStr(r))
		}
		out = append(out, fmt.Sprintf("%+d %s", w, strings.Join(cells, "|")))
	}
	return out
}

func (w *vaultWriter) Write(_ context.Context, d flow.Delta) error {
	w.rows = append(w.rows, changesIn(d.Batch, w.fields)...)
	return nil
}

func (w *vaultWriter) Stage(_ context.Context, epoch flow.Epoch) (connectors.Committable, error) {
	if len(w.rows) == 0 {
		return nil, nil
	}
	w.v.mu.Lock()
	defer w.v.mu.Unlock()
	key := fmt.Sprintf("%s/%d/%d", w.pipeline, epoch, len(w.v.staged))
	w.v.staged[key], w.rows = w.rows, nil
	return connectors.Committable(key), nil
}

func (w *vaultWriter) Begin(_ context.Context, first connectors.Marker) (connectors.Marker, error) {
	w.v.mu.Lock()
	defer w.v.mu.Unlock()
	if _, ok := w.v.markers[w.pipeline]; !ok && first != "" {
		w.v.markers[w.pipeline] = first
	}
	return w.v.markers[w.pipeline], nil
}

func (w *vaultWriter) Commit(_ context.Context, e connectors.StagedEpoch) error {
	w.v.mu.Lock()
	defer w.v.mu.Unlock()
	if err := w.v.fail(false); err != nil {
		return err
	}
	switch w.v.markers[w.pipeline] {
	case e.Marker:
		return nil
	case e.Previous:
	default:
		return errs.New(errs.ExactlyOnce, "commit", "the vault holds %s, not %s", w.v.markers[w.pipeline], e.Previous)
	}
	changes := slices.Clone(w.v.staged[string(e.Committable)])
	for _, b := range e.Rows {
		changes = append(changes, changesIn(b, w.fields)...)
	}
	w.v.changes += len(changes)
	for _, c := range changes {
		var n int
		text, row, _ := strings.Cut(c, " ")
		fmt.Sscan(text, &n)
		if w.v.rows[row] += n; w.v.rows[row] == 0 {
			delete(w.v.rows, row)
		}
	}
	w.v.markers[w.pipeline] = e.Marker
	return w.v.fail(true)
}

func (w *vaultWriter) Close() error { return nil }

func (v *vault) all() map[string]int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return maps.Clone(v.rows)
}

// feedFolder writes n JSON files of rows.
func feedFolder(t *testing.T, dir string, from, to, rows int) {
	t.Helper()
	for f := from; f < to; f++ {
		var b strings.Builder
		for i := range rows {
			fmt.Fprintf(&b, `{"k":%d,"v":%d}`+"\n", i%7, f*rows+i)
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%04d.json", f)), []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// errEnded is how a test ends a pipeline where it stands.
var errEnded = errors.New("ended here")

// runEnded runs a pipeline until it ends by itself or is ended in a phase. What ends it is a panic of the goroutine that is in the phase: the run
// fails, nothing more is published or committed, and only the lease is given back.
func runEnded(t *testing.T, config map[string]string, statements []string, query, sink, id string, at func(phase string, epoch flow.Epoch) bool) (ended bool, err error) {
	t.Helper()
	before := checkpoint.Phase
	defer func() { checkpoint.Phase = before }()
	var mu sync.Mutex
	checkpoint.Phase = func(phase string, epoch flow.Epoch) {
		mu.Lock()
		stop := ended || at(phase, epoch)
		ended = stop
		mu.Unlock()
		if stop {
			panic(errEnded)
		}
	}
	s, err := Open(config)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	for _, st := range statements {
		if _, err := s.Query(t.Context(), st, nil); err != nil {
			t.Fatal(err)
		}
	}
	q, err := s.Query(t.Context(), query, nil)
	if err != nil {
		t.Fatal(err)
	}
	p, err := q.Sink(SinkSpec{ConnectorSpec: ConnectorSpec{Connector: sink, Options: map[string]string{"name": t.Name()}}, ID: id, ExactlyOnce: true})
	if err != nil {
		t.Fatal(err)
	}
	h, err := p.Start(t.Context(), "latest")
	if err == nil {
		err = h.Wait(t.Context())
	}
	return ended, err
}

// A pipeline that is ended in every phase of every epoch, again and again, shows each row once, whatever the sink is handed before the
// commit, the query remembers, and the parallelism is after a restart.
func TestEndedInEveryPhase(t *testing.T) {
	queries := map[string]string{
		"rows":   "SELECT k, v FROM s",
		"groups": "SELECT k, count(*) AS n, sum(v) AS total FROM s GROUP BY k",
		"join":   "SELECT a.v, b.v AS w FROM s AS a JOIN s AS b ON a.v = b.v + 1",
		"top":    "SELECT k, v FROM s QUALIFY row_number() OVER (PARTITION BY k ORDER BY v DESC) <= 2",
	}
	for _, sink := range []string{"vault_held", "vault_staging", "vault_gathering"} {
		for name, query := range queries {
			if sink == "vault_gathering" && name != "groups" {
				continue
			}
			t.Run(sink+"/"+name, func(t *testing.T) {
				v, dir := newVault(t), t.TempDir()
				feedFolder(t, dir, 0, 12, 50)
				config := map[string]string{"checkpoint_url": t.TempDir(), "checkpoint_interval_ms": "1", "step_rows": "60"}
				statements := []string{"CREATE STREAM s (k INT, v INT) WITH (connector = 'json', path = '" + dir + "/*.json')"}
				seen := map[string]bool{}
				for n := 1; ; n++ {
					if n > 400 {
						t.Fatalf("it does not come to an end: %v", slices.Sorted(maps.Keys(seen)))
					}
					config["parallelism"] = fmt.Sprint(1 + n%3)
					count := 0
					ended, err := runEnded(t, config, statements, query, sink, "p", func(phase string, _ flow.Epoch) bool {
						count++
						if key := fmt.Sprint(phase, " ", min(count, 30)); !seen[key] && count > n%5 {
							seen[key] = true
							return true
						}
						return false
					})
					if hasEnded(err) { // the last run was ended behind its last commit
						break
					}
					if ended != (err != nil) || err != nil && !strings.Contains(err.Error(), errEnded.Error()) {
						t.Fatalf("run %d: ended %t, %v", n, ended, err)
					}
					if !ended {
						break
					}
				}
				want := wantRows(t, statements, query)
				if got := v.all(); !maps.Equal(got, want) {
					t.Errorf("the sink has %d rows, and should have %d: %v", len(got), len(want), diff(got, want))
				}
				t.Logf("ended %d times", len(seen))
			})
		}
	}
}

// hasEnded reports whether a pipeline was refused since its streams have ended.
func hasEnded(err error) bool {
	return errs.Is(err, errs.Usage) && strings.Contains(err.Error(), "has ended for the pipeline")
}

// wantRows are the rows of one undisturbed batch run.
func wantRows(t *testing.T, statements []string, query string) map[string]int {
	t.Helper()
	d := openDB(t)
	for _, st := range statements {
		d.run(st)
	}
	sub := d.follow(query, SubscribeOptions{Until: "latest"})
	want := map[string]int{}
	for {
		delta, err := sub.Next(t.Context())
		if err != nil {
			break
		}
		for _, c := range changesIn(delta.Batch, len(sub.Fields())) {
			var n int
			text, row, _ := strings.Cut(c, " ")
			fmt.Sscan(text, &n)
			if want[row] += n; want[row] == 0 {
				delete(want, row)
			}
		}
	}
	return want
}

func diff(got, want map[string]int) []string {
	var out []string
	for row, n := range want {
		if got[row] != n {
			out = append(out, fmt.Sprintf("%s: %d instead of %d", row, got[row], n))
		}
	}
	for row, n := range got {
		if want[row] == 0 {
			out = append(out, fmt.Sprintf("%s: %d instead of none", row, n))
		}
	}
	slices.Sort(out)
	return out[:min(len(out), 10)]
}

// A commit whose answer is lost is not applied twice, and one that was not applied is tried again.
func TestLostAnswers(t *testing.T) {
	v, dir := newVault(t), t.TempDir()
	feedFolder(t, dir, 0, 20, 10)
	n := 0
	v.fail = func(applied bool) error {
		if n++; n%3 == 0 {
			return errs.New(errs.Source, "commit", "no answer (applied %t)", applied).AsTransient()
		}
		return nil
	}
	statements := []string{"CREATE STREAM s (k INT, v INT) WITH (connector = 'json', path = '" + dir + "/*.json')"}
	config := map[string]string{"checkpoint_url": t.TempDir(), "checkpoint_interval_ms": "1", "step_rows": "10"}
	if _, err := runEnded(t, config, statements, "SELECT k, v FROM s", "vault_held", "p", func(string, flow.Epoch) bool { return false }); err != nil {
		t.Fatal(err)
	}
	if want := wantRows(t, statements, "SELECT k, v FROM s"); !maps.Equal(v.all(), want) {
		t.Errorf("%v", diff(v.all(), want))
	}
}

// What does not belong together is refused before anything is written.
func TestRefusedRestarts(t *testing.T) {
	v, dir, url := newVault(t), t.TempDir(), t.TempDir()
	feedFolder(t, dir, 0, 3, 10)
	statements := []string{"CREATE STREAM s (k INT, v INT) WITH (connector = 'json', path = '" + dir + "/*.json')"}
	never := func(string, flow.Epoch) bool { return false }
	start := func(url, query, id string) error {
		config := map[string]string{"checkpoint_url": url, "checkpoint_interval_ms": "1"}
		_, err := runEnded(t, config, statements, query, "vault_held", id, never)
		return err
	}
	group := "SELECT k, count(*) AS n FROM s GROUP BY k"
	if err := start(url, group, "p"); err != nil {
		t.Fatal(err)
	}
	if err := start(url, "SELECT k FROM s", "rows"); err != nil {
		t.Fatal(err)
	}
	before := v.all()
	for _, c := range []struct {
		name, url, query, id string
		kind                 errs.Kind
		says                 string
	}{
		{"another query", url, "SELECT k, max(v) AS n FROM s GROUP BY k", "p", errs.State, "are of another query"},
		{"checkpoints that were deleted", t.TempDir(), group, "p", errs.ExactlyOnce, "holds the marker"},
		{"another EMIT", url, group + " EMIT EVERY INTERVAL '1 hour'", "p", errs.State, "are of another query"},
		{"another query without state", url, "SELECT v FROM s", "rows", errs.State, "are of another query"},
		{"no name", url, group, "../p", errs.Usage, "cannot be the id of a pipeline"},
	} {
		err := start(c.url, c.query, c.id)
		if !errs.Is(err, c.kind) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if !maps.Equal(before, v.all()) {
		t.Error("the sink was written")
	}
	if err := start(url, group, "p"); !errs.Is(err, errs.Usage) || !strings.Contains(err.Error(), `the stream "s" has ended for the pipeline "p"`) {
		t.Errorf("the same pipeline again: %v", err)
	}
	d := openDB(t)
	for _, c := range []struct {
		spec SinkSpec
		says string
	}{
		{SinkSpec{ConnectorSpec: ConnectorSpec{Connector: "vault_held"}, ExactlyOnce: true}, "checkpoint_url is not set"},
	} {
		if _, err := d.query("SELECT 1 AS a").Sink(c.spec); !errs.Is(err, errs.ExactlyOnce) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.says, err)
		}
	}
}

// Late and bad rows are part of their epoch: a restart has each of them once.
func TestKeptRowsSurvive(t *testing.T) {
	newVault(t)
	dir, url := t.TempDir(), t.TempDir()
	for f := range 20 {
		text := fmt.Sprintf(`{"k":1,"ts":"2026-01-01T00:%02d:00"}`+"\n"+`{"k":2,"ts":"2020-01-01T00:00:00"}`+"\n"+`{"k":"no number","ts":"2026-01-01"}`+"\n", f+1)
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%04d.json", f)), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	stream := "CREATE STREAM s (k INT, ts TIMESTAMP, WATERMARK FOR ts AS ts) WITH (connector = 'json', path = '" + dir + "/*.json')"
	config := map[string]string{"checkpoint_url": url, "checkpoint_interval_ms": "1", "step_rows": "3"}
	for n := range 4 {
		count := 0
		if _, err := runEnded(t, config, []string{stream}, "SELECT k, ts FROM s", "vault_held", "p", func(phase string, _ flow.Epoch) bool {
			count++
			return n < 3 && phase == checkpoint.Published && count > 20
		}); err != nil && !strings.Contains(err.Error(), errEnded.Error()) && !hasEnded(err) {
			t.Fatal(err)
		}
	}
	d := openDB(t, "checkpoint_url", url)
	d.run(stream)
	p, err := d.query("SELECT k, ts FROM s").Sink(SinkSpec{ConnectorSpec: ConnectorSpec{Connector: "vault_held", Options: map[string]string{"name": t.Name()}}, ID: "p"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Start(t.Context(), "latest"); !hasEnded(err) {
		t.Fatal(err)
	}
	if got := d.rows("SELECT count(*) FROM __late"); got[0] != "19" && got[0] != "20" {
		t.Errorf("%s late rows", got[0])
	}
	if got := d.rows("SELECT count(*), count(DISTINCT split || ' ' || position) FROM __bad"); got[0] != "20|20" {
		t.Errorf("bad rows and their places: %s", got[0])
	}
}

// A pipeline that reads a table knows its rows after a restart: the same script changes nothing, another one what it says.
func TestTablesSurvive(t *testing.T) {
	v, dir, url := newVault(t), t.TempDir(), t.TempDir()
	feedFolder(t, dir, 0, 10, 30)
	stream := "CREATE STREAM s (k INT, v INT) WITH (connector = 'json', path = '" + dir + "/*.json')"
	query := "SELECT s.v, n.name FROM s JOIN names AS n ON n.k = s.k"
	config := map[string]string{"checkpoint_url": url, "checkpoint_interval_ms": "1", "step_rows": "30"}
	table := "CREATE TABLE names AS SELECT range AS k, 'name ' || range AS name FROM range(7)"
	for n := range 12 {
		count := 0
		config["parallelism"] = fmt.Sprint(1 + n%2)
		ended, err := runEnded(t, config, []string{stream, table}, query, "vault_held", "p", func(string, flow.Epoch) bool { count++; return count == 7*n+3 })
		if hasEnded(err) {
			break
		}
		if ended != (err != nil) {
			t.Fatal(err)
		}
		if !ended {
			break
		}
	}
	want := wantRows(t, []string{stream, table}, query)
	if got := v.all(); !maps.Equal(got, want) || len(want) == 0 {
		t.Errorf("%v", diff(got, want))
	}

	// Without an end the pipeline follows the table, and takes up what was done to it in between.
	d := openDB(t, "checkpoint_url", t.TempDir(), "checkpoint_interval_ms", "1")
	d.run(stream)
	d.run(table)
	live := func(work func()) {
		t.Helper()
		p, err := d.query(query).Sink(SinkSpec{ConnectorSpec: ConnectorSpec{Connector: "vault_staging", Options: map[string]string{"name": t.Name()}}, ID: "live"})
		if err != nil {
			t.Fatal(err)
		}
		h, err := p.Start(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		work()
		want := wantRows(t, []string{stream, "CREATE TABLE names AS " + valuesOf(d.rows("SELECT k, name FROM names"))}, query)
		for still, before := 0, v.all(); !maps.Equal(v.all(), want); still++ {
			if !maps.Equal(v.all(), before) {
				still, before = 0, v.all()
			}
			if still > 3000 {
				t.Fatalf("%v", diff(v.all(), want))
			}
			time.Sleep(time.Millisecond)
		}
		if err := h.Stop(false); err != nil {
			t.Fatal(err)
		}
	}
	v.rows = map[string]int{}
	live(func() { d.run("UPDATE names SET name = 'two' WHERE k = 2") })
	d.run("DELETE FROM names WHERE k = 3; INSERT INTO names VALUES (3, 'three'), (3, 'drei')")
	live(func() {})
	live(func() { d.run("DELETE FROM names WHERE k < 2") })
}

// valuesOf spells rows out as a query.
func valuesOf(rows []string) string {
	var out []string
	for _, r := range rows {
		k, name, _ := strings.Cut(r, "|")
		out = append(out, "SELECT "+k+" AS k, '"+name+"' AS name")
	}
	return strings.Join(out, " UNION ALL ")
}

// What came and went within an epoch is not shown to a sink that takes epochs.
func TestEpochsAreConsolidated(t *testing.T) {
	v, dir := newVault(t), t.TempDir()
	feedFolder(t, dir, 0, 5, 40)
	var committed int
	v.fail = func(applied bool) error {
		if !applied {
			committed++
		}
		return nil
	}
	d := openDB(t, "checkpoint_url", t.TempDir(), "checkpoint_interval_ms", "3600000", "step_rows", "10")
	d.run("CREATE STREAM s (k INT, v INT) WITH (connector = 'json', path = '" + dir + "/*.json')")
	p, err := d.query("SELECT k, max(v) AS m FROM s GROUP BY k").Sink(SinkSpec{ConnectorSpec: ConnectorSpec{Connector: "vault_held", Options: map[string]string{"name": t.Name()}}})
	if err != nil {
		t.Fatal(err)
	}
	h, err := p.Start(t.Context(), "latest")
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if v.changes != 7 || committed != 1 {
		t.Errorf("%d changes in %d epochs for 7 groups", v.changes, committed)
	}
}

// A barrier may come while a transaction of the source is open: its rows belong to the epoch in which it ends.
func TestOpenTransactionAtABarrier(t *testing.T) {
	sp := &splitFeed{}
	sp.moved("1")
	sp.txn = []incremental.Push{{}}
	sp.moved("2")
	if sp.at != "1" {
		t.Fatalf("within a transaction the split is at %s", sp.at)
	}
	sp.txn = nil
	sp.moved("3")
	if sp.at != "3" {
		t.Fatalf("behind it the split is at %s", sp.at)
	}
}

// What a manifest says of the query is its own statement, and nothing that is secret.
func TestStatementsHaveNoSecrets(t *testing.T) {
	for text, want := range map[string]string{
		"SELECT 1": "SELECT 1",
		"CREATE SINK o WITH (url = 'postgres://me:secret@db/x'); INSERT INTO o SELECT k FROM s": "INSERT INTO o SELECT k FROM s",
		"SELECT * FROM read_postgres('t', url = 'postgres://me:s3:cr/t@db:5432/x')":             "SELECT * FROM read_postgres('t', url = 'postgres://me:***@db:5432/x')",
		"SELECT * FROM read_postgres('t', Password => 'it''s', user = 'me')":                    "SELECT * FROM read_postgres('t', Password => '***', user = 'me')",
		"SELECT * FROM iceberg_scan('n.t', credential = 'id:word')":                             "SELECT * FROM iceberg_scan('n.t', credential = '***')",
	} {
		if got := (&Query{text: text}).statement(); got != want {
			t.Errorf("%s\n%s, want %s", text, got, want)
		}
	}
}

// Two statements into one sink are two pipelines, whose names the script gives them.
func TestNamesOfPipelines(t *testing.T) {
	newVault(t)
	d := openDB(t, "checkpoint_url", t.TempDir())
	d.run("CREATE STREAM s (k INT) WITH (connector = 'memory')")
	d.run("CREATE SINK o WITH (connector = 'vault_held', name = '" + t.Name() + "')")
	var ids []string
	for _, text := range []string{"INSERT INTO o SELECT k FROM s", "INSERT INTO o SELECT k + 1 AS k FROM s", "INSERT INTO o SELECT k FROM s"} {
		p, err := d.query(text).AsPipeline(false)
		if err != nil {
			t.Fatal(err)
		}
		id, err := p.id()
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	if !slices.Equal(ids, []string{"o", "o-2", "o"}) {
		t.Error(ids)
	}
}

// A pipeline that is stopped has what it wrote, at once, and goes on where it stood.
func TestStoppedAndStarted(t *testing.T) {
	v, dir := newVault(t), t.TempDir()
	d := openDB(t, "checkpoint_url", t.TempDir(), "checkpoint_interval_ms", "3600000")
	feedFolder(t, dir, 0, 2, 10)
	d.run("CREATE STREAM s (k INT, v INT) WITH (connector = 'json', path = '" + dir + "/*.json')")
	for n := 2; n < 6; n++ {
		p, err := d.query("SELECT k, count(*) AS n FROM s GROUP BY k").Sink(SinkSpec{ConnectorSpec: ConnectorSpec{Connector: "vault_staging", Options: map[string]string{"name": t.Name()}}})
		if err != nil {
			t.Fatal(err)
		}
		h, err := p.Start(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		for h.Metrics().RowsIn < int64(10*max(1, min(n-1, 1)))+map[bool]int64{true: 10}[n == 2] {
			time.Sleep(time.Millisecond)
		}
		if err := h.Stop(false); err != nil {
			t.Fatal(err)
		}
		total := 0
		for row, times := range v.all() {
			var k, count int
			fmt.Sscanf(strings.ReplaceAll(row, "|", " "), "%d %d", &k, &count)
			total += count * times
		}
		if total != n*10 {
			t.Fatalf("the groups have %d rows, and %d were written: %v", total, n*10, v.all())
		}
		feedFolder(t, dir, n, n+1, 10)
	}
}

// A run whose caller has gone leaves nothing behind that still writes to its sink, or holds on to its lease.
func TestEndsBehindItsEpoch(t *testing.T) {
	v, dir := newVault(t), t.TempDir()
	feedFolder(t, dir, 0, 1, 10)
	entered, leave := make(chan struct{}), make(chan struct{})
	v.fail = func(applied bool) error {
		if !applied {
			close(entered)
			<-leave
		}
		return nil
	}
	d := openDB(t, "checkpoint_url", t.TempDir(), "checkpoint_interval_ms", "1")
	d.run("CREATE STREAM s (k INT, v INT) WITH (connector = 'json', path = '" + dir + "/*.json')")
	p, err := d.query("SELECT k, v FROM s").Sink(SinkSpec{ConnectorSpec: ConnectorSpec{Connector: "vault_held", Options: map[string]string{"name": t.Name()}}, ID: "p"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	h, err := p.Start(ctx, "")
	if err != nil {
		t.Fatal(err)
	}
	<-entered
	cancel()
	select {
	case <-h.run.done:
		t.Error("it has ended while an epoch was being committed")
	case <-time.After(50 * time.Millisecond):
	}
	close(leave)
	if err := h.Wait(t.Context()); !errs.Is(err, errs.Cancelled) {
		t.Error(err)
	}
}

// Bounded input of which a checkpoint has all rows and not the end ends after a restart.
func TestResumedBehindTheLastRow(t *testing.T) {
	in := &input{splits: map[string]*splitFeed{"": {at: "3", resumed: true}}}
	r := &runner{s: &Session{}, inputs: []*input{in}}
	if r.take(fed{ended: true, noMore: true}, &cut{}); !in.ended {
		t.Errorf("%d splits are open, all %t", in.open, in.all)
	}
}

// A file that is gone before it was read to its end is missed, also when the rest is read to a present end.
func TestVanishedSplit(t *testing.T) {
	newVault(t)
	dir, url := t.TempDir(), t.TempDir()
	feedFolder(t, dir, 0, 1, 4*readRows)
	feedFolder(t, dir, 1, 2, 10)
	stream := "CREATE STREAM s (k INT, v INT) WITH (connector = 'json', path = '" + dir + "/*.json')"
	config := map[string]string{"checkpoint_url": url, "checkpoint_interval_ms": "1", "step_rows": "10"}
	_, err := runEnded(t, config, []string{stream}, "SELECT k, v FROM s", "vault_held", "p", func(phase string, epoch flow.Epoch) bool {
		manifest, _ := os.ReadFile(filepath.Join(url, "p", fmt.Sprintf("manifest-%010d.json", epoch)))
		return phase == checkpoint.Acknowledging && slices.ContainsFunc([]int{1, 2, 3}, func(n int) bool { return strings.Contains(string(manifest), fmt.Sprintf(`"%d of `, n*readRows)) })
	})
	if err == nil {
		t.Fatal("it has not been ended")
	}
	if err := os.Remove(filepath.Join(dir, "0000.json")); err != nil {
		t.Fatal(err)
	}
	_, err = runEnded(t, config, []string{stream}, "SELECT k, v FROM s", "vault_held", "p", func(string, flow.Epoch) bool { return false })
	if !errs.Is(err, errs.Source) || !strings.Contains(err.Error(), "no longer there") {
		t.Error(err)
	}
}

// Rows of a table that had other columns are not held against those that it has.
func TestTableWithOtherColumns(t *testing.T) {
	newVault(t)
	dir, url := t.TempDir(), t.TempDir()
	feedFolder(t, dir, 0, 2, 10)
	for n, columns := range []string{"", ", 3 AS more"} {
		statements := []string{"CREATE STREAM s (k INT, v INT) WITH (connector = 'json', path = '" + dir + "/*.json')",
			"CREATE TABLE names AS SELECT range AS k, 'n' || range AS name" + columns + " FROM range(7)"}
		_, err := runEnded(t, map[string]string{"checkpoint_url": url}, statements, "SELECT s.v, n.name FROM s JOIN names AS n ON n.k = s.k", "vault_held", "p", func(string, flow.Epoch) bool { return false })
		if n == 0 && err != nil || n == 1 && (!errs.Is(err, errs.State) || !strings.Contains(err.Error(), "other columns")) {
			t.Error(n, err)
		}
	}
}

// While an epoch is copied the loop goes on by itself: no timer wakes it, which under EMIT EVERY would be a tick and make a step of nothing.
func TestCopyingWaitsForNoTimer(t *testing.T) {
	d := &durable{copying: &barrier{}}
	if wait, ok := d.wait(time.Time{}); ok {
		t.Errorf("the loop waits for %v", wait)
	}
	select {
	case <-d.landed():
	default:
		t.Error("nothing wakes the loop")
	}
}

// Barriers of EMIT EVERY come right behind the steps that show, as often as they are asked for: nothing waits in a checkpoint to be shown.
func TestBarriersFollowWhatIsShown(t *testing.T) {
	const tick = 20 * time.Millisecond
	for _, c := range []struct {
		name            string
		every, interval time.Duration
		from, to        time.Duration // steps that change something
		barriers        int           // in twenty seconds
		holding         int           // of them with changes that wait
	}{
		{"as often", time.Second, time.Second, 0, 20 * time.Second, 20, 0},
		{"oftener", 100 * time.Millisecond, time.Second, 0, 20 * time.Second, 20, 0},
		{"no divisor", 700 * time.Millisecond, time.Second, 0, 20 * time.Second, 14, 0},
		{"less often, which is not waited for", 5 * time.Second, time.Second, 0, 20 * time.Second, 19, 19},
		{"changes end", time.Second, time.Second, 0, 300 * time.Millisecond, 19, 0},
		{"changes in each step", 0, time.Second, 0, 20 * time.Second, 19, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			start := time.Unix(100, 0).Add(330 * time.Millisecond)
			d := &durable{r: &runner{every: c.every, cfg: &config{checkpointMS: c.interval.Milliseconds()}}, due: start.Add(c.interval)}
			var barriers, holding int
			holds, last := false, start
			for at := time.Duration(0); at < 20*time.Second; at += tick {
				now := start.Add(at)
				if c.every > 0 {
					shows := now.UnixNano()/int64(c.every) != now.Add(-tick).UnixNano()/int64(c.every)
					holds = !shows && (holds || at >= c.from && at < c.to)
				}
				if !d.isDue(now, holds) {
					continue
				}
				if barriers++; holds {
					holding++
				}
				if gone := now.Sub(last); gone > 2*c.interval {
					t.Errorf("%v without a barrier", gone)
				}
				last, d.due = now, now.Add(c.interval)
			}
			if barriers < c.barriers-1 || barriers > c.barriers+1 || holding < c.holding-2 || holding > c.holding {
				t.Errorf("%d barriers of which %d hold changes, not %d and %d", barriers, holding, c.barriers, c.holding)
			}
		})
	}
}
