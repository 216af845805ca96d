package repo

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/riverbed/riverbed"
)

// testDeadLetters: what does not decode goes to a topic as it is, with where it came from as headers; repaired, it comes back with its key. Both once.
func testDeadLetters(t *testing.T, addr string) {
	client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.DefaultProduceTopic("r"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := kadm.NewClient(client).CreateTopic(t.Context(), 1, 1, nil, "r"); err != nil {
		t.Fatal(err)
	}
	for _, value := range []string{`{"v":1}`, `{"v":"one"}`, `{"v":2}`, "none"} {
		if err := client.ProduceSync(t.Context(), &kgo.Record{Key: []byte("key of " + value), Value: []byte(value)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	open := func() *riverbed.Session {
		s, err := riverbed.Open(map[string]string{"checkpoint_url": dir, "checkpoint_interval_ms": "20"})
		if err != nil {
			t.Fatal(err)
		}
		with := " WITH (connector = 'kafka', brokers = '" + addr + "', topic = "
		for _, st := range []string{
			"CREATE STREAM r (v BIGINT)" + with + "'r')", "CREATE SINK good" + with + "'good')",
			"CREATE SINK dead" + with + "'dead', format = 'raw', headers = 'source, split, position, error')",
		} {
			if _, err := s.Query(t.Context(), st, nil); err != nil {
				t.Fatal(err)
			}
		}
		return s
	}
	for range 2 { // the second time nothing is left to do
		s := open()
		var handles []*riverbed.Handle
		for _, st := range []string{"INSERT INTO good SELECT v FROM r", "INSERT INTO dead SELECT raw, source, split, position, error FROM __bad"} {
			q, err := s.Query(t.Context(), st, nil)
			if err != nil {
				t.Fatal(err)
			}
			p, err := q.AsPipeline(true)
			if err != nil {
				t.Fatal(err)
			}
			h, err := p.Start(t.Context(), "")
			if err != nil {
				t.Fatal(err)
			}
			handles = append(handles, h)
		}
		for records(t, addr, "dead", 2) == nil {
		}
		for _, h := range handles {
			if err := h.Stop(false); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	dead := records(t, addr, "dead", 2)
	slices.SortFunc(dead, func(a, b *kgo.Record) int { return strings.Compare(string(b.Value), string(a.Value)) }) // of several partitions
	if len(dead) != 2 || string(dead[0].Value) != `{"v":"one"}` || string(dead[1].Value) != "none" {
		t.Fatalf("dead letters: %v", dead)
	}
	headers := map[string]string{}
	for _, h := range dead[0].Headers {
		headers[h.Key] = string(h.Value)
	}
	if headers["source"] != "r" || headers["split"] != "0" || headers["position"] != "1" || headers["error"] == "" {
		t.Errorf("headers %v", headers)
	}
	repaired := filepath.Join(t.TempDir(), "repaired.jsonl")
	if err := os.WriteFile(repaired, []byte(`{"number":0,"raw":"{\"v\":3}"}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, want := range []riverbed.ReplayReport{{Replayed: 1}, {Already: 1}} {
		s := open()
		got, err := s.Replay(t.Context(), riverbed.ReplaySpec{Pipeline: "good", Repaired: repaired})
		if err != nil || got != want {
			t.Errorf("%+v, not %+v: %v", got, want, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	all := records(t, addr, "r", 5)
	if last := all[len(all)-1]; len(all) != 5 || string(last.Value) != `{"v":3}` || string(last.Key) != `key of {"v":"one"}` {
		t.Errorf("%d records, the last is %s: %s", len(all), last.Key, last.Value)
	}
}

// records are those of a topic that are committed; nil when there are fewer than so many.
func records(t *testing.T, addr, topic string, least int) []*kgo.Record {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	var out []*kgo.Record
	for {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		found := client.PollFetches(ctx).Records()
		cancel()
		if out = append(out, found...); len(found) == 0 {
			break
		}
	}
	if len(out) < least {
		return nil
	}
	return out
}
