package repo

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/riverbed/riverbed"
	"github.com/riverbed/riverbed/checkpoint"
	"github.com/riverbed/riverbed/connectors/kafka/kafkatest"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/types"
)

// hybridSession has the topic "h" behind the history in a folder.
func hybridSession(t *testing.T, addr, history string, config map[string]string) *riverbed.Session {
	t.Helper()
	s, err := riverbed.Open(config)
	if err != nil {
		t.Fatal(err)
	}
	for _, st := range []string{
		"CREATE STREAM topic (v BIGINT, _partition INTEGER, _offset BIGINT) WITH (connector = 'kafka', topic = 'h', brokers = '" + addr + "')",
		"CREATE TABLE old WITH (connector = 'parquet', path = '" + history + "/*.parquet')",
		"CREATE STREAM h (v BIGINT, _partition INTEGER, _offset BIGINT) WITH (connector = 'hybrid', history = 'old', live = 'topic')",
	} {
		if strings.Contains(st, "'parquet'") || strings.Contains(st, "'hybrid'") {
			if found, _ := filepath.Glob(history + "/*.parquet"); len(found) == 0 {
				continue
			}
		}
		if _, err := s.Query(t.Context(), st, nil); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// written are the rows of a folder of Parquet files and how often each stands there.
func written(t *testing.T, dir string) map[string]int {
	t.Helper()
	out := map[string]int{}
	if found, _ := filepath.Glob(dir + "/*.parquet"); len(found) == 0 {
		return out
	}
	s, err := riverbed.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	q, err := s.Query(t.Context(), "SELECT v, count(*) AS n FROM '"+dir+"/*.parquet' GROUP BY v", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := q.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer res.Release()
	for res.Next() {
		b := res.RecordBatch()
		for r := range int(b.NumRows()) {
			out[fmt.Sprint(types.ValueAt(b.Column(0), r, types.Int64))] = int(types.ValueAt(b.Column(1), r, types.Int64).(int64))
		}
	}
	if err := res.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// once reports what of 0 to n-1 is not there exactly once.
func once(got map[string]int, n int) []string {
	var wrong []string
	for v := range n {
		if k := got[fmt.Sprint(v)]; k != 1 {
			wrong = append(wrong, fmt.Sprintf("%d: %d times", v, k))
		}
	}
	if len(got) != n {
		wrong = append(wrong, fmt.Sprintf("%d different rows, not %d", len(got), n))
	}
	return wrong[:min(len(wrong), 10)]
}

// A hybrid stream gives each record of a topic once, whatever retention has left in the topic of what the history has, and whatever ends the process,
// before, at and behind the splice. A gap is refused.
func TestRealHybrid(t *testing.T) {
	addr := kafkatest.Start(t).Addr
	t.Run("dead letters", func(t *testing.T) { testDeadLetters(t, addr) })
	producer, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.DefaultProduceTopic("h"), kgo.RecordPartitioner(kgo.RoundRobinPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer producer.Close()
	admin := kadm.NewClient(producer)
	if _, err := admin.CreateTopic(t.Context(), 3, 1, nil, "h"); err != nil {
		t.Fatal(err)
	}
	sent := 0
	send := func(n int) {
		t.Helper()
		recs := make([]*kgo.Record, n)
		for i := range recs {
			recs[i] = &kgo.Record{Value: fmt.Appendf(nil, `{"v":%d}`, sent)}
			sent++
		}
		if err := producer.ProduceSync(t.Context(), recs...).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	history := t.TempDir()
	run := func(s *riverbed.Session, query, dir, id string) error {
		q, err := s.Query(t.Context(), query, nil)
		if err != nil {
			return err
		}
		p, err := q.Sink(riverbed.SinkSpec{ConnectorSpec: riverbed.ConnectorSpec{Connector: "parquet", Options: map[string]string{"path": dir}}, ID: id})
		if err != nil {
			return err
		}
		h, err := p.Start(t.Context(), "latest")
		if err != nil {
			return err
		}
		return h.Wait(t.Context())
	}

	// The history is the topic as it was; then more comes, and retention removes a part of what the history has.
	send(3000)
	s := hybridSession(t, addr, history, nil)
	if err := run(s, "SELECT v, _partition, _offset FROM topic", history, ""); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	send(2000)
	remove := func(upTo int64) {
		t.Helper()
		offsets := kadm.Offsets{}
		for p := range int32(3) {
			offsets.Add(kadm.Offset{Topic: "h", Partition: p, At: upTo, LeaderEpoch: -1})
		}
		if _, err := admin.DeleteRecords(t.Context(), offsets); err != nil {
			t.Fatal(err)
		}
	}
	remove(500)

	out, config := t.TempDir(), map[string]string{"checkpoint_url": t.TempDir(), "checkpoint_interval_ms": "1", "step_rows": "200"}
	before := checkpoint.Phase
	defer func() { checkpoint.Phase = before }()
	errEnded := errors.New("ended here")
	seen := map[string]bool{}
	for n := 1; ; n++ {
		if n > 200 {
			t.Fatal("it does not come to an end")
		}
		var mu sync.Mutex
		ended, count := false, 0
		checkpoint.Phase = func(phase string, epoch flow.Epoch) {
			mu.Lock()
			count++
			if key := fmt.Sprint(phase, " ", min(count, 12)); !ended && !seen[key] && count > n%4 {
				seen[key], ended = true, true
			}
			stop := ended
			mu.Unlock()
			if stop {
				panic(errEnded)
			}
		}
		s := hybridSession(t, addr, history, config)
		err := run(s, "SELECT v FROM h", out, "p")
		_ = s.Close()
		if err != nil && strings.Contains(err.Error(), "has ended for the pipeline") || err == nil {
			break
		}
		if !ended {
			t.Fatal(err)
		}
	}
	checkpoint.Phase = before
	if wrong := once(written(t, out), sent); len(wrong) > 0 {
		t.Errorf("ended %d times: %q", len(seen), wrong)
	}
	t.Logf("ended %d times: %q", len(seen), slices.Sorted(maps.Keys(seen)))

	remove(1500) // beyond the end of the history
	config["checkpoint_url"] = t.TempDir()
	gap := hybridSession(t, addr, history, config)
	defer func() { _ = gap.Close() }()
	if err := run(gap, "SELECT v FROM h", t.TempDir(), "q"); err == nil || !strings.Contains(err.Error(), "the records between are in neither") {
		t.Errorf("a gap: %v", err)
	}
}
