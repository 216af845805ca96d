package riverbed

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/riverbed/riverbed/checkpoint"
	"github.com/riverbed/riverbed/connectors"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
)

// startMain starts the pipeline p over a folder with bad rows.
func (d db) startMain(dir string) *Handle {
	d.t.Helper()
	d.run(badStream(dir))
	p, err := d.query("SELECT k, ts FROM s").Sink(SinkSpec{ConnectorSpec: ConnectorSpec{Connector: "vault_held", Options: map[string]string{"name": d.t.Name()}}, ID: "p"})
	if err != nil {
		d.t.Fatal(err)
	}
	h, err := p.Start(d.t.Context(), "")
	if err != nil {
		d.t.Fatal(err)
	}
	return h
}

// runMain runs the pipeline p over a folder with bad rows to the present end of the folder, without closing anything.
func runMain(t *testing.T, url, dir string) {
	t.Helper()
	d := openDB(t, "checkpoint_url", url, "checkpoint_interval_ms", "1")
	h := d.startMain(dir)
	for { // until all records of the files that are there were taken
		records := 0
		files, _ := filepath.Glob(filepath.Join(dir, "*.json*"))
		for _, f := range files {
			text, _ := os.ReadFile(f)
			records += strings.Count(string(text), "\n")
		}
		taken := 0
		for _, src := range h.Metrics().Sources {
			for _, at := range src.Positions {
				var n int
				fmt.Sscanf(at, "%d of", &n)
				taken += n
			}
		}
		if taken == records {
			break
		}
		if h.Metrics().State == "failed" {
			t.Fatal(h.Metrics().Error)
		}
	}
	if err := h.Stop(false); err != nil {
		t.Fatal(err)
	}
}

func replaySession(t *testing.T, url, dir string) db {
	d := openDB(t, "checkpoint_url", url, "checkpoint_interval_ms", "10")
	d.run(strings.ReplaceAll(badStream(dir), "*.json", "*.json*"))
	return d
}

// Bad rows that were repaired come back through the folder of their stream, once, however often they are given and wherever a replay is ended.
func TestReplay(t *testing.T) {
	v, dir, url := newVault(t), t.TempDir(), t.TempDir()
	badFolder(t, dir, 0, 4)
	runMain(t, url, dir)
	before := len(v.all())
	repaired := filepath.Join(t.TempDir(), "repaired.jsonl")
	repair := func(numbers ...int) {
		var b strings.Builder
		for _, n := range numbers {
			fmt.Fprintf(&b, `{"number":%d,"raw":"{\"k\":%d,\"ts\":\"2026-02-01\"}"}`+"\n", n, 100+n)
		}
		if err := os.WriteFile(repaired, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	spec := ReplaySpec{URL: url, Pipeline: "p", Repaired: repaired}
	ask := func(want ReplayReport) {
		t.Helper()
		got, err := replaySession(t, url, dir).Replay(t.Context(), spec)
		if err != nil || got != want {
			t.Errorf("%+v, not %+v: %v", got, want, err)
		}
	}
	repair(1, 2)
	ask(ReplayReport{Replayed: 2})
	ask(ReplayReport{Already: 2})
	repair(0, 1, 2)
	phases := checkpoint.Phase
	for n := 1; n < 12; n++ { // ended at each phase of its epoch
		count := 0
		checkpoint.Phase = func(string, flow.Epoch) {
			if count++; count == n {
				panic(errEnded)
			}
		}
		_, err := replaySession(t, url, dir).Replay(t.Context(), spec)
		checkpoint.Phase = phases
		if err == nil {
			break
		}
	}
	ask(ReplayReport{Already: 3})
	spec.Repaired = ""
	ask(ReplayReport{Replayed: 1, Already: 3}) // the last as it was
	// The stream's pattern has to fit what a replay writes, or nothing is written.
	d := openDB(t, "checkpoint_url", url)
	d.run(strings.ReplaceAll(badStream(dir), "*.json", "0*.json"))
	if _, err := d.Replay(t.Context(), spec); !errs.Is(err, errs.Unsupported) || !strings.Contains(err.Error(), "would not be read") {
		t.Errorf("a pattern that a new file does not fit: %v", err)
	}
	written, err := filepath.Glob(filepath.Join(dir, "p.replay.s-*"))
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, f := range written {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, strings.Split(strings.TrimSpace(string(text)), "\n")...)
	}
	slices.Sort(lines)
	if len(lines) > 0 && strings.HasPrefix(lines[0], `{"k":"no number `) { // files are read side by side: which was the last is not told
		lines[0] = "the last as it was"
	}
	expect(t, lines, "the last as it was", `{"k":100,"ts":"2026-02-01"}`, `{"k":101,"ts":"2026-02-01"}`, `{"k":102,"ts":"2026-02-01"}`)
	if len(v.all()) != before {
		t.Error("a replay wrote to the pipeline's sink by itself")
	}
	for _, c := range []struct {
		text string
		kind errs.Kind
		says string
	}{
		{`{"number":17,"raw":"{}"}`, errs.Data, "has no bad row of the number 17"},
		{`{"number":1,"raw":"{}"}` + "\n" + `{"number":1,"raw":"{}"}`, errs.Data, "stands there twice"},
		{`{"number":1,"raw_base64":"no base 64"}`, errs.Data, "raw_base64: illegal base64 data"},
		{`{"raw":"{}"}`, errs.Schema, "needs the columns number and raw"},
	} {
		if err := os.WriteFile(repaired, []byte(c.text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		spec.Repaired = repaired
		if _, err := replaySession(t, url, dir).Replay(t.Context(), spec); !errs.Is(err, c.kind) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.text, err)
		}
	}
}

// Another run of the pipeline numbers its bad rows anew: none of them has gone back. What is no text is given in base 64.
func TestReplayOfAnotherRun(t *testing.T) {
	newVault(t)
	back := newNamedVault("back")
	dir, url, repaired := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "repaired.jsonl")
	badFolder(t, dir, 0, 2)
	if err := os.WriteFile(repaired, []byte(`{"number":0,"raw_base64":"//4="}`+"\n"+`{"number":1,"raw":"{}"}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ask := func(want ReplayReport, times int) {
		t.Helper()
		d := replaySession(t, url, dir)
		d.run("CREATE SINK back WITH (connector = 'vault_held', name = 'back')")
		got, err := d.Replay(t.Context(), ReplaySpec{URL: url, Pipeline: "p", Repaired: repaired, Into: "back"})
		if err != nil || got != want {
			t.Errorf("%+v, not %+v: %v", got, want, err)
		}
		if got, want := back.all(), map[string]int{"//4=": times, "e30=": times}; !maps.Equal(got, want) {
			t.Errorf("%v came back, not %v", got, want)
		}
	}
	move := func(from, to string) {
		t.Helper()
		if err := os.Rename(filepath.Join(from, "p"), filepath.Join(to, "p")); err != nil {
			t.Fatal(err)
		}
	}
	runMain(t, url, dir)
	ask(ReplayReport{Replayed: 2}, 1)
	ask(ReplayReport{Already: 2}, 1)
	former := t.TempDir()
	move(url, former) // it begins anew, under the same id
	newVault(t)
	runMain(t, url, dir)
	ask(ReplayReport{Replayed: 2}, 2)
	ask(ReplayReport{Already: 2}, 2)
	move(url, t.TempDir())
	move(former, url) // what went back of a run stays known
	ask(ReplayReport{Already: 2}, 2)
}

// A column that stands in the last of many rows only is read all the same.
func TestReplayOfManyRows(t *testing.T) {
	newVault(t)
	back := newNamedVault("back")
	dir, url, repaired := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "repaired.jsonl")
	const many = 20_500 // more than are looked at for the columns of JSON
	badLines(t, dir, "a", many)
	runMain(t, url, dir)
	var text strings.Builder
	for n := range many - 1 {
		fmt.Fprintf(&text, `{"number":%d,"raw":"{}"}`+"\n", n)
	}
	fmt.Fprintf(&text, `{"number":%d,"raw_base64":"//4="}`+"\n", many-1)
	if err := os.WriteFile(repaired, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	d := replaySession(t, url, dir)
	d.run("CREATE SINK back WITH (connector = 'vault_held', name = 'back')")
	got, err := d.Replay(t.Context(), ReplaySpec{URL: url, Pipeline: "p", Repaired: repaired, Into: "back"})
	if want := (ReplayReport{Replayed: many}); err != nil || got != want {
		t.Errorf("%+v, not %+v: %v", got, want, err)
	}
	if back.all()["//4="] != 1 {
		t.Error("the last row did not go back")
	}
}

// What is in a checkpoint can be read as tables.
func TestStateFunction(t *testing.T) {
	newVault(t)
	dir, url := t.TempDir(), t.TempDir()
	badFolder(t, dir, 0, 3)
	config := map[string]string{"checkpoint_url": url, "checkpoint_interval_ms": "1"}
	never := func(string, flow.Epoch) bool { return false }
	if _, err := runEnded(t, config, []string{strings.ReplaceAll(badStream(dir), ", WATERMARK FOR ts AS ts", "")}, "SELECT k, count(*) AS n FROM s GROUP BY k", "vault_held", "p", never); err != nil {
		t.Fatal(err)
	}
	d := openDB(t, "checkpoint_url", url)
	tables := d.rows("SELECT operator, \"table\" FROM state('p') WHERE kind = 'state'")
	if len(tables) == 0 {
		t.Fatal("no tables of state")
	}
	operator, table, _ := strings.Cut(tables[0], "|")
	d.is(fmt.Sprintf("SELECT count(*) FROM state('p', '%s', '%s')", operator, table), "2")
	d.has("SELECT decode(raw) FROM state('p', '__bad')", `{"k":"no number 0","ts":"2026-01-01"}`, `{"k":"no number 1","ts":"2026-01-01"}`, `{"k":"no number 2","ts":"2026-01-01"}`)
	d.is("SELECT number FROM state('p', '__bad') ORDER BY number", "0", "1", "2")
	d.is("SELECT count(*) FROM state('p', '__late')", "0")
	d.fails("SELECT * FROM state('q')", errs.State, "no checkpoints of the pipeline")
	d.fails("SELECT * FROM state('p', 'nothing')", errs.Schema, "has no state of an operator")
	d.fails("SELECT * FROM state()", errs.Schema, "state takes")
	openDB(t).fails("SELECT * FROM state('p')", errs.Usage, "checkpoint_url is not set")
}

// Names of pipelines tell them apart, or are refused.
func TestPipelineNames(t *testing.T) {
	d := openDB(t, "checkpoint_url", t.TempDir(), "checkpoint_interval_ms", "1")
	dir := t.TempDir()
	feedFolder(t, dir, 0, 1, 5)
	d.run("CREATE STREAM s (k INT, v INT) WITH (connector = 'json', path = '" + dir + "/*.json')")
	newVault(t)
	sink := func(name string) {
		d.run(`CREATE SINK "` + name + `" WITH (connector = 'vault_held', name = '` + t.Name() + `')`)
	}
	sink("m")
	sink("m-2")
	d.query(`INSERT INTO m SELECT k FROM s`)
	d.fails(`INSERT INTO m SELECT v FROM s`, errs.Usage, "would name two pipelines")
	sink("n")
	d.query(`INSERT INTO n SELECT k FROM s`)
	d.query(`INSERT INTO n SELECT v FROM s`)
	sink("n-2")
	d.fails(`INSERT INTO "n-2" SELECT k FROM s`, errs.Usage, "would name two pipelines")
	id := func(spec SinkSpec) string {
		p, err := d.query("SELECT k FROM s").Sink(spec)
		if err != nil {
			t.Fatal(err)
		}
		id, err := p.id()
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	kafka := func(brokers, password string) SinkSpec {
		return SinkSpec{ConnectorSpec: ConnectorSpec{Connector: "kafka", Options: map[string]string{"brokers": brokers, "topic": "t", "sasl_password": password}}}
	}
	if id(kafka("a:1", "x")) == id(kafka("b:1", "x")) {
		t.Error("the brokers do not tell pipelines apart")
	}
	if id(kafka("a:1", "x")) != id(kafka("a:1", "y")) {
		t.Error("a password is a part of the id")
	}
}

// A pipeline that runs in this process already is refused at once, and can run when it has ended.
func TestRunsHereAlready(t *testing.T) {
	leave, err := enter("/checkpoints/", "p")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := enter("/checkpoints", "p"); !errs.Is(err, errs.Usage) || !strings.Contains(err.Error(), "runs in this process already") {
		t.Errorf("%v", err)
	}
	if other, err := enter("/checkpoints", "q"); err != nil {
		t.Error(err)
	} else {
		other()
	}
	leave()
	leave()
	again, err := enter("/checkpoints", "p")
	if err != nil {
		t.Fatal(err)
	}
	again()
}

// A savepoint stays as it is when pipelines begin from it, also under other ids; and it goes into an empty folder only.
func TestFromSavepoint(t *testing.T) {
	v, dir, url, saved := newVault(t), t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "saved")
	feedFolder(t, dir, 0, 60, 50)
	config := map[string]string{"checkpoint_url": url, "checkpoint_interval_ms": "1", "step_rows": "10"}
	statements := []string{"CREATE STREAM s (k INT, v INT) WITH (connector = 'json', path = '" + dir + "/*.json')"}
	query := "SELECT k, count(*) AS n FROM s GROUP BY k"
	published := 0
	if ended, _ := runEnded(t, config, statements, query, "vault_held", "p", func(phase string, _ flow.Epoch) bool {
		if phase == checkpoint.Marked {
			published++
		}
		return published == 1
	}); !ended {
		t.Fatal("it was not ended")
	}
	if err := Savepoint(t.Context(), url, "p", 0, saved); err != nil {
		t.Fatal(err)
	}
	if err := Savepoint(t.Context(), url, "p", 0, saved); err != nil {
		t.Errorf("the same savepoint again: %v", err)
	}
	before := folder(t, saved)
	for _, id := range []string{"q", "r"} {
		vaults[id] = &vault{rows: map[string]int{}, markers: map[string]connectors.Marker{}, staged: map[string][]string{}, fail: func(bool) error { return nil }}
		s := openDB(t, "checkpoint_url", url, "from_savepoint", saved, "checkpoint_interval_ms", "1")
		for _, st := range statements {
			s.run(st)
		}
		p, err := s.query(query).Sink(SinkSpec{ConnectorSpec: ConnectorSpec{Connector: "vault_held", Options: map[string]string{"name": id}}, ID: id, ExactlyOnce: true})
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
		// What the first sink had at the savepoint and what the second got since are together what one run gives.
		sum := v.all()
		for row, n := range vaults[id].all() {
			if sum[row] += n; sum[row] == 0 {
				delete(sum, row)
			}
		}
		if want := wantRows(t, statements, query); !maps.Equal(sum, want) {
			t.Errorf("%s: %v", id, diff(sum, want))
		}
	}
	if !maps.Equal(before, folder(t, saved)) {
		t.Error("the savepoint was changed")
	}
	full := t.TempDir()
	feedFolder(t, full, 0, 1, 1)
	if err := Savepoint(t.Context(), url, "p", 0, full); !errs.Is(err, errs.Usage) || !strings.Contains(err.Error(), "is not empty") {
		t.Errorf("a folder that is not empty: %v", err)
	}
	if err := Savepoint(t.Context(), url, "p", 0, filepath.Join(url, "q")); !errs.Is(err, errs.Usage) {
		t.Errorf("the folder of a pipeline: %v", err)
	}
}

// folder is what the files below a folder hold.
func folder(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	if err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		out[path] = string(text)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

// Columns that are inferred and come out otherwise after a restart are told by name.
func TestOtherColumns(t *testing.T) {
	newVault(t)
	dir, url := t.TempDir(), t.TempDir()
	feedFolder(t, dir, 0, 1, 5)
	config := map[string]string{"checkpoint_url": url, "checkpoint_interval_ms": "1"}
	statements := []string{"CREATE STREAM s WITH (connector = 'json', path = '" + dir + "/*.json')"}
	never := func(string, flow.Epoch) bool { return false }
	if _, err := runEnded(t, config, statements, "SELECT CAST(v AS VARCHAR) AS v FROM s", "vault_held", "p", never); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "0000.json"), []byte(`{"k":1,"v":"text"}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := runEnded(t, config, statements, "SELECT CAST(v AS VARCHAR) AS v FROM s", "vault_held", "p", never)
	if !errs.Is(err, errs.State) || !strings.Contains(err.Error(), `the stream "s" has other columns`) || !strings.Contains(err.Error(), "declare the columns") {
		t.Errorf("%v", err)
	}
}
