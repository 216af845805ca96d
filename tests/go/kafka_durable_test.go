package repo

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/riverbed/riverbed"
	"github.com/riverbed/riverbed/core/clock"
)

// A pipeline from topic to topic is ended again and again in the midst of its work; committed records are each once there.
func TestKafkaToKafkaOnce(t *testing.T) {
	broker, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(2, "in", "out"))
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
	checkpoints := "file://" + t.TempDir()
	r := clock.NewRand(3)
	const perRound, rounds = 3000, 6
	for round := range rounds {
		recs := make([]*kgo.Record, perRound)
		for i := range recs {
			recs[i] = &kgo.Record{Value: fmt.Appendf(nil, `{"v":%d}`, round*perRound+i)}
		}
		if err := client.ProduceSync(t.Context(), recs...).FirstErr(); err != nil {
			t.Fatal(err)
		}
		until := ""
		if round == rounds-1 {
			until = "latest"
		}
		runOnce(t, addr, checkpoints, until, time.Duration(100+r.IntN(500))*time.Millisecond)
	}
	seen := map[string]int{}
	reader, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.ConsumeTopics("out"), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	for n := 0; n < perRound*rounds; {
		fetches := reader.PollFetches(t.Context())
		fetches.EachRecord(func(rec *kgo.Record) { n++; seen[string(rec.Value)]++ })
	}
	poll, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	reader.PollFetches(poll).EachRecord(func(rec *kgo.Record) { seen[string(rec.Value)]++ })
	for v, n := range seen {
		if n != 1 {
			t.Errorf("%s is there %d times", v, n)
		}
	}
	if len(seen) != perRound*rounds {
		t.Errorf("%d rows", len(seen))
	}
	groups, err := kadm.NewClient(client).FetchOffsets(t.Context(), "watched")
	if err != nil {
		t.Fatal(err)
	}
	if total := sumOffsets(groups); total < perRound*rounds {
		t.Errorf("the group that is watched has read %d records", total)
	}
}

func sumOffsets(o kadm.OffsetResponses) (total int64) {
	o.Each(func(r kadm.OffsetResponse) { total += r.At })
	return total
}

// runOnce runs the pipeline in a session of its own: up to the present end, or until it is ended after a while.
func runOnce(t *testing.T, addr, checkpoints, until string, after time.Duration) {
	t.Helper()
	s, err := riverbed.Open(map[string]string{"checkpoint_url": checkpoints, "checkpoint_interval_ms": "50", "parallelism": "2"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Query(t.Context(), fmt.Sprintf("CREATE STREAM i (v BIGINT) WITH (connector = 'kafka', brokers = '%s', topic = 'in', group_id = 'watched')", addr), nil); err != nil {
		t.Fatal(err)
	}
	q, err := s.Query(t.Context(), "SELECT v FROM i", nil)
	if err != nil {
		t.Fatal(err)
	}
	p, err := q.Sink(riverbed.SinkSpec{ExactlyOnce: true, ConnectorSpec: riverbed.ConnectorSpec{Connector: "kafka", Options: map[string]string{"brokers": addr, "topic": "out"}}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	h, err := p.Start(ctx, until)
	if err != nil {
		t.Fatal(err)
	}
	if until == "" {
		time.Sleep(after)
		cancel()
	}
	if err := h.Wait(t.Context()); err != nil && !strings.Contains(err.Error(), "cancel") {
		t.Fatal(err)
	}
}
