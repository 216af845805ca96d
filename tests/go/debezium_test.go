package repo

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/riverbed/riverbed"
	"github.com/riverbed/riverbed/connectors/connectortest"
)

// Change events become sums, these become change events in another topic, and those are read again: what stands is the same.
func TestChangeEventsThereAndBack(t *testing.T) {
	broker, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "orders", "sums"))
	if err != nil {
		t.Fatal(err)
	}
	defer broker.Close()
	addr := broker.ListenAddrs()[0]
	client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.DefaultProduceTopic("orders"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for _, event := range []string{
		`{"op":"r","after":{"id":1,"who":"a","n":10}}`, `{"op":"c","after":{"id":2,"who":"a","n":5}}`, `{"op":"c","after":{"id":3,"who":"b","n":7}}`,
		`{"op":"u","before":{"id":2,"who":"a","n":5},"after":{"id":2,"who":"b","n":6}}`, `{"op":"u","before":{"id":2,"who":"a","n":5},"after":{"id":2,"who":"b","n":6}}`,
		`{"op":"d","before":{"id":1,"who":"a","n":10}}`,
	} {
		if err := client.ProduceSync(t.Context(), &kgo.Record{Value: []byte(event)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	s, err := riverbed.Open(map[string]string{"strict_retractions": "true"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	plan := func(text string) *riverbed.Query {
		t.Helper()
		q, err := s.Query(t.Context(), text, nil)
		if err != nil {
			t.Fatal(err)
		}
		return q
	}
	plan(fmt.Sprintf(`CREATE STREAM orders (id BIGINT, who TEXT, n BIGINT, PRIMARY KEY (id))
		WITH (connector = 'kafka', brokers = '%s', topic = 'orders', format = 'debezium', upsert = true)`, addr))
	for topic, format := range map[string]string{"sums": "debezium", "latest": "json"} {
		options := map[string]string{"brokers": addr, "topic": topic, "format": format, "key": "who", "partitions": "1"}
		if format == "json" {
			options["upsert"] = "true"
		}
		p, err := plan("SELECT who, sum(n) AS n FROM orders GROUP BY who").Sink(riverbed.SinkSpec{ConnectorSpec: riverbed.ConnectorSpec{Connector: "kafka", Options: options}})
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
	}
	stands := func(query string) map[string]bool {
		t.Helper()
		sub, err := plan(query).Subscribe(t.Context(), riverbed.SubscribeOptions{Until: "latest"})
		if err != nil {
			t.Fatal(err)
		}
		sum := riverbed.NewAccumulated(sub.Fields())
		for {
			d, err := sub.Next(t.Context())
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			sum.Add(d)
		}
		rows := map[string]bool{}
		for _, b := range sum.Batches() {
			for i := range int(b.NumRows()) {
				rows[connectortest.Row(b, i)] = true
			}
		}
		return rows
	}
	plan(fmt.Sprintf(`CREATE STREAM sums (who TEXT, n BIGINT) WITH (connector = 'kafka', brokers = '%s', topic = 'sums', format = 'debezium')`, addr))
	plan(fmt.Sprintf(`CREATE STREAM latest (who TEXT, n BIGINT, PRIMARY KEY (who)) WITH (connector = 'kafka', brokers = '%s', topic = 'latest', upsert = true)`, addr))
	for _, query := range []string{"SELECT who, sum(n) FROM orders GROUP BY who", "SELECT who, n FROM sums", "SELECT who, n FROM latest"} {
		if got := stands(query); len(got) != 1 || !got["b|13"] {
			t.Errorf("%s: %v", query, got)
		}
	}
}
