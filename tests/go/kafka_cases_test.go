package repo

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/riverbed/riverbed"
)

// The key of the output is a value that changes: each change deletes the row of the old key, and one row stands at the end.
// (A sink that takes the deletion of the old key for an update keeps every past maximum.)
func TestAKeyThatChangesLeavesOneRow(t *testing.T) {
	broker, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "in", "maximum"))
	if err != nil {
		t.Fatal(err)
	}
	defer broker.Close()
	addr := broker.ListenAddrs()[0]
	client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.DefaultProduceTopic("in"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	checkpoints := t.TempDir()
	row := func(ts string) string { return ts + `={"key_ts":` + ts + `,"v":114514}` }
	reader, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.ConsumeTopics("maximum"), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	steps := []string{row("11"), "11= " + row("12"), "12= " + row("13"), row("12") + " 13=", ""} // by step; keys have no order
	for step, event := range []string{
		`{"op":"c","after":{"ts":11}}`, `{"op":"c","after":{"ts":12}}`, `{"op":"c","after":{"ts":13}}`, `{"op":"d","before":{"ts":13}}`, `{"op":"c","after":{"ts":5}}`,
	} {
		if err := client.ProduceSync(t.Context(), &kgo.Record{Value: []byte(event)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
		// Each run goes on from the last one's checkpoint.
		s, err := riverbed.Open(map[string]string{"checkpoint_url": checkpoints, "checkpoint_interval_ms": "20"})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if _, err := s.Query(t.Context(), fmt.Sprintf("CREATE STREAM t (ts INT) WITH (connector = 'kafka', brokers = '%s', topic = 'in', format = 'debezium')", addr), nil); err != nil {
			t.Fatal(err)
		}
		q, err := s.Query(t.Context(), "SELECT max(ts) AS key_ts, 114514 AS v FROM t HAVING max(ts) IS NOT NULL EMIT IMMEDIATE", nil)
		if err != nil {
			t.Fatal(err)
		}
		p, err := q.Sink(riverbed.SinkSpec{ExactlyOnce: true, ConnectorSpec: riverbed.ConnectorSpec{Connector: "kafka",
			Options: map[string]string{"brokers": addr, "topic": "maximum", "upsert": "true", "key": "key_ts"}}})
		if err != nil {
			t.Fatal(err)
		}
		h, err := p.Start(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		var log []string
		want := strings.Fields(steps[step])
		for tries := 0; tries < 200 && (len(log) < len(want) || len(want) == 0 && tries < 10); tries++ {
			poll, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			reader.PollFetches(poll).EachRecord(func(rec *kgo.Record) { log = append(log, string(rec.Key)+"="+string(rec.Value)) })
			cancel()
		}
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
		slices.Sort(log)
		slices.Sort(want)
		if !slices.Equal(log, want) {
			t.Errorf("step %d writes %v, not %v", step+1, log, want)
		}
	}
}
