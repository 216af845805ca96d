package riverbed

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/checkpoint"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
)

// badFolder writes files with two rows that are right and one that is not in each.
func badFolder(t *testing.T, dir string, from, to int) {
	t.Helper()
	for f := from; f < to; f++ {
		text := fmt.Sprintf(`{"k":1,"ts":"2026-01-01T00:%02d:00"}`+"\n"+`{"k":2,"ts":"2020-01-01T00:00:%02d"}`+"\n"+`{"k":"no number %d","ts":"2026-01-01"}`+"\n", f+1, f, f)
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%04d.json", f)), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func badStream(dir string) string {
	return "CREATE STREAM s (k INT, ts TIMESTAMP, WATERMARK FOR ts AS ts) WITH (connector = 'json', path = '" + dir + "/*.json')"
}

// startFollowed runs a pipeline over s and one behind it in one session, until both end or one of them is ended in a phase.
func startFollowed(t *testing.T, config map[string]string, stream, behind string, at func(phase string, epoch flow.Epoch) bool) (bool, []error) {
	t.Helper()
	before := checkpoint.Phase
	defer func() { checkpoint.Phase = before }()
	var mu sync.Mutex
	ended := false
	checkpoint.Phase = func(phase string, epoch flow.Epoch) {
		mu.Lock()
		ended = ended || at(phase, epoch)
		stop := ended
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
	d := db{s, t}
	d.run(stream)
	d.run("CREATE SINK dead WITH (connector = 'vault_held', name = '" + t.Name() + "')")
	p, err := d.query("SELECT k, ts FROM s").Sink(SinkSpec{ConnectorSpec: ConnectorSpec{Connector: "vault_held", Options: map[string]string{"name": "main"}}, ID: "p"})
	if err != nil {
		t.Fatal(err)
	}
	follower, err := d.query(behind).AsPipeline(true)
	if err != nil {
		t.Fatal(err)
	}
	var out []error
	first, err := p.Start(t.Context(), "latest")
	if err != nil && !hasEnded(err) {
		out = append(out, err)
	}
	second, err := follower.Start(t.Context(), "latest")
	if err != nil {
		out = append(out, err)
	}
	for _, h := range []*Handle{first, second} {
		if h != nil {
			out = append(out, h.Wait(t.Context()))
		}
	}
	return ended, out
}

// What a pipeline leaves out reaches the sink of the one behind it once, whichever of the two is ended in whatever phase.
func TestFollowedOnce(t *testing.T) {
	for name, behind := range map[string]string{
		"bad":  "INSERT INTO dead SELECT pipeline, source, position, CAST(raw AS VARCHAR) AS raw, number FROM __bad",
		"late": "INSERT INTO dead SELECT pipeline, source, row, number FROM __late",
	} {
		t.Run(name, func(t *testing.T) {
			vaults["main"] = newVault(t)
			v, dir := newVault(t), t.TempDir()
			badFolder(t, dir, 0, 20)
			config := map[string]string{"checkpoint_url": t.TempDir(), "checkpoint_interval_ms": "1", "step_rows": "3"}
			seen := map[string]bool{}
			for n := 1; ; n++ {
				if n > 300 {
					t.Fatal("it does not come to an end")
				}
				count := 0
				ended, found := startFollowed(t, config, badStream(dir), behind, func(phase string, _ flow.Epoch) bool {
					count++
					if key := fmt.Sprint(phase, " ", min(count, 20)); !seen[key] && count > n%5 {
						seen[key] = true
						return true
					}
					return false
				})
				if slices.ContainsFunc(found, hasEnded) {
					break // the one behind was ended after its last commit
				}
				for _, err := range found {
					if err != nil && !ended {
						t.Fatal(err)
					}
				}
				if !ended {
					break
				}
			}
			got := v.all()
			if name == "late" {
				if len(got) < 19 {
					t.Errorf("%d late rows: %v", len(got), got)
				}
			} else if len(got) != 20 {
				t.Errorf("%d bad rows: %v", len(got), got)
			}
			numbers := map[string]bool{}
			for row, n := range got {
				if n != 1 {
					t.Errorf("%d times %s", n, row)
				}
				if !strings.HasPrefix(row, "p|s|") {
					t.Errorf("another provenance: %s", row)
				}
				number := row[strings.LastIndex(row, "|"):]
				if numbers[number] {
					t.Errorf("the number %s comes twice", number)
				}
				numbers[number] = true
			}
			t.Logf("ended %d times", len(seen))
		})
	}
}

// Provenance: whose rows, where from, what they were and when they came.
func TestProvenance(t *testing.T) {
	dir := t.TempDir()
	badFolder(t, dir, 0, 1)
	if err := os.WriteFile(filepath.Join(dir, "x.csv"), []byte("k\n1\nnone\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d := openDB(t)
	d.run(badStream(dir))
	d.run("CREATE STREAM c (k INT) WITH (connector = 'csv', path = '" + dir + "/*.csv')")
	accumulate(t, d.follow("SELECT * FROM s", SubscribeOptions{Until: "latest"}))
	accumulate(t, d.follow("SELECT * FROM c", SubscribeOptions{Until: "latest"}))
	d.has("SELECT source, replace(split, '"+dir+"', ''), decode(raw), time > now() - INTERVAL '1 hour', number FROM __bad",
		`s|/0000.json|{"k":"no number 0","ts":"2026-01-01"}|true|0`, "c|/x.csv|none|true|0")
}

// A pipeline that began anew numbers its rows anew: all of them reach the one behind it. One whose checkpoints are older than those behind is refused.
func TestFollowedBeginsAnew(t *testing.T) {
	vaults["main"] = newVault(t)
	v, dir, url := newVault(t), t.TempDir(), t.TempDir()
	never := func(string, flow.Epoch) bool { return false }
	config := map[string]string{"checkpoint_url": url, "checkpoint_interval_ms": "1"}
	badFolder(t, dir, 0, 3)
	behind := "INSERT INTO dead SELECT number, split FROM __bad"
	if _, found := startFollowed(t, config, badStream(dir), behind, never); slices.ContainsFunc(found, func(err error) bool { return err != nil }) {
		t.Fatal(found)
	}
	if len(v.all()) != 3 {
		t.Fatalf("%v", v.all())
	}
	// A follower that has ended does not go on, so this one stops instead.
	s := openDB(t, "checkpoint_url", url, "checkpoint_interval_ms", "1")
	k := s.bad
	k.replace("q", keptTail{})
	for range 5 {
		k.append("q", row{"q", "s", "a", "1", "no", nil, int64(0), nil, nil, nil})
	}
	s.beginKept("q", "first", false)
	open := func(at keptPosition) *keptReader {
		rd, err := (&keptStream{s: s.Session, k: k, durable: true}).Open(t.Context(), flow.Split{ID: "q"}, at.text())
		if err != nil {
			t.Fatal(err)
		}
		return rd.(*keptReader)
	}
	for _, c := range []struct {
		at   keptPosition
		want int64
	}{{keptPosition{2, "first"}, 3}, {keptPosition{4, "before"}, 5}, {keptPosition{}, 5}} {
		rows, err := open(c.at).Read(t.Context(), 10)
		if err != nil || rows.Batch.NumRows() != c.want {
			t.Errorf("from %v: %v, %v", c.at, rows, err)
		}
	}
	if _, err := open(keptPosition{7, "first"}).Read(t.Context(), 10); !errs.Is(err, errs.State) || !strings.Contains(err.Error(), "older than those of the pipeline that follows it") {
		t.Errorf("a follower that is ahead: %v", err)
	}
}

// Rows that memory had no room for come from the checkpoints.
func TestFollowedFromCheckpoints(t *testing.T) {
	vaults["main"] = newVault(t)
	dir, url := t.TempDir(), t.TempDir()
	badFolder(t, dir, 0, 7)
	config := map[string]string{"checkpoint_url": url, "checkpoint_interval_ms": "1", "step_rows": "3"}
	newVault(t)
	never := func(string, flow.Epoch) bool { return false }
	if _, found := startFollowed(t, config, badStream(dir), "INSERT INTO dead SELECT number FROM __bad", never); slices.ContainsFunc(found, func(err error) bool { return err != nil }) {
		t.Fatal(found)
	}
	s := openDB(t, "checkpoint_url", url)
	all := keptTail{fields: badFields}
	run, err := readKept(t.Context(), url, "p", flow.BadRelation, func(b arrow.RecordBatch) error {
		all.take(b, 7)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	s.bad.replace("p", all)
	s.beginKept("p", run, false)
	s.bad.drop(5) // memory was full
	rd := &keptReader{of: &keptStream{s: s.Session, k: s.bad, durable: true}, run: "p", at: keptPosition{1, run}}
	got := map[string]int{}
	for rd.at.number < 7 {
		rows, err := rd.Read(t.Context(), 2)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range rowLines(s.bad.Fields()[len(s.bad.Fields())-1:], []arrow.RecordBatch{lastColumn(rows.Batch)}) {
			got[line]++
		}
	}
	if want := map[string]int{"1": 1, "2": 1, "3": 1, "4": 1, "5": 1, "6": 1}; !maps.Equal(got, want) {
		t.Errorf("%v", got)
	}
}

func lastColumn(b arrow.RecordBatch) arrow.RecordBatch {
	at := int(b.NumCols()) - 1
	return array.NewRecordBatch(arrow.NewSchema(b.Schema().Fields()[at:], nil), b.Columns()[at:], b.NumRows())
}
