package repo

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/riverbed/riverbed"
)

// A sink that sends behind has everything when its run has ended, though the run's own context ends with the last step.
func TestAPipelineEndsWhenItsSinkHasEverything(t *testing.T) {
	broker, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(3, "t"))
	if err != nil {
		t.Fatal(err)
	}
	defer broker.Close()
	s, err := riverbed.Open(nil)
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
	const rows = 5000
	with := fmt.Sprintf("WITH (connector = 'kafka', brokers = '%s', topic = 't')", broker.ListenAddrs()[0])
	p, err := plan(fmt.Sprintf("SELECT range AS n FROM range(%d)", rows)).Sink(riverbed.SinkSpec{ConnectorSpec: riverbed.ConnectorSpec{
		Connector: "kafka", Options: map[string]string{"brokers": broker.ListenAddrs()[0], "topic": "t"}}})
	if err != nil {
		t.Fatal(err)
	}
	h, err := p.Start(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	plan("CREATE STREAM back (n BIGINT) " + with)
	sub, err := plan("SELECT n FROM back EMIT IMMEDIATE").Subscribe(t.Context(), riverbed.SubscribeOptions{Until: "latest"})
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	got := 0
	for {
		d, err := sub.Next(t.Context())
		if err != nil {
			break
		}
		got += d.Rows()
	}
	if got != rows {
		t.Errorf("the topic holds %d rows, and %d were sent", got, rows)
	}
}
