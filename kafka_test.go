package riverbed

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

func TestSeveralRunsOfOneTopic(t *testing.T) {
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(2, "t"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	addr := c.ListenAddrs()[0]
	client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	produce := func(from, to int) {
		for i := from; i < to; i++ {
			r := &kgo.Record{Topic: "t", Partition: int32(i % 2), Value: fmt.Appendf(nil, `{"v":%d}`, i)}
			if err := client.ProduceSync(t.Context(), r).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
	}
	produce(0, 10)
	d := openDB(t)
	d.run("CREATE STREAM s (v BIGINT) WITH (connector = 'kafka', brokers = '" + addr + "', topic = 't')")
	var subs []*Subscription
	for range 2 {
		subs = append(subs, d.follow("SELECT v FROM s EMIT IMMEDIATE", SubscribeOptions{}))
	}
	reads := func(sub *Subscription, from, to int) {
		t.Helper()
		seen := map[string]bool{}
		for len(seen) < to-from {
			for _, line := range next(t, sub) {
				seen[line] = true
			}
		}
		for i := from; i < to; i++ {
			if !seen[fmt.Sprintf("+1 %d", i)] {
				t.Errorf("row %d is not there: %v", i, seen)
			}
		}
	}
	for _, sub := range subs {
		reads(sub, 0, 10)
	}
	produce(10, 20)
	for _, sub := range subs {
		reads(sub, 10, 20)
	}
	if err := subs[0].Close(); err != nil {
		t.Fatal(err)
	}
	reads(d.follow("SELECT v FROM s EMIT IMMEDIATE", SubscribeOptions{}), 0, 20) // beside one that goes on
	produce(20, 22)
	reads(subs[1], 20, 22)
}
