package repo

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/riverbed/riverbed"
	"github.com/riverbed/riverbed/connectors/connectortest"
	"github.com/riverbed/riverbed/connectors/kafka"
	"github.com/riverbed/riverbed/connectors/kafka/kafkatest"
	"github.com/riverbed/riverbed/core/clock"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/types"
)

// TestRealKafka reads and writes through Apache Kafka itself: transactions, positions, and a broker that dies while a
// partition is being read.
func TestRealKafka(t *testing.T) {
	kafkad := kafkatest.Start(t)
	addr := kafkad.Addr

	producer, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.TransactionalID("real"), kgo.DefaultProduceTopic("t"), kgo.RecordPartitioner(kgo.RoundRobinPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer producer.Close()
	if _, err := kadm.NewClient(producer).CreateTopic(t.Context(), 3, 1, nil, "t"); err != nil {
		t.Fatal(err)
	}
	send := func(from, n int, how kgo.TransactionEndTry) {
		t.Helper()
		if err := producer.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		recs := make([]*kgo.Record, n)
		for i := range recs {
			recs[i] = &kgo.Record{Value: fmt.Appendf(nil, `{"v":%d,"pad":"%s"}`, from+i, strings.Repeat("x", 150))}
		}
		if err := producer.ProduceSync(t.Context(), recs...).FirstErr(); err != nil {
			t.Fatal(err)
		}
		if err := producer.EndTransaction(t.Context(), how); err != nil {
			t.Fatal(err)
		}
	}
	send(0, 20_000, kgo.TryCommit)
	send(-1_000, 1_000, kgo.TryAbort)

	open := func(t testing.TB) flow.Stream {
		return connectortest.OpenStream(t, kafka.Source, map[string]string{"brokers": addr, "topic": "t"}, types.Field{Name: "v", Type: types.Int64})
	}
	connectortest.Stream(t, connectortest.StreamConfig{Open: open, Limit: 3_000})
	t.Run("upsert", func(t *testing.T) { testUpserts(t, addr) })
	t.Run("losses", func(t *testing.T) { testLosses(t, addr) })

	// A reader that was at the end goes on by itself when the broker has been killed and is back.
	s := open(t)
	seen := map[string]int{}
	readers := map[string]flow.Reader{}
	splits, err := s.Splits(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, split := range splits {
		if readers[split.ID], err = s.Open(t.Context(), split, ""); err != nil {
			t.Fatal(err)
		}
		defer readers[split.ID].Close()
	}
	stands := map[string]flow.Position{}
	read := func(total int) {
		t.Helper()
		for len(seen) < total {
			for _, split := range splits {
				rows, err := readers[split.ID].Read(t.Context(), 5_000)
				if err != nil {
					t.Fatal(err)
				}
				stands[split.ID] = rows.Next
				if rows.Batch == nil {
					continue
				}
				for i := range int(rows.Batch.NumRows()) {
					seen[connectortest.Row(rows.Batch, i)]++
				}
			}
		}
	}
	// Each partition has a third of the rows, so that reading them in turn never waits for one that is at its end.
	read(15_000)
	restart(t, kafkad)
	send(20_000, 3_000, kgo.TryCommit)
	read(23_000)
	// And so does one that is opened anew at positions from before, when the partitions have another leader's epoch.
	restart(t, kafkad)
	send(23_000, 3_000, kgo.TryCommit)
	s = open(t)
	for _, split := range splits {
		readers[split.ID].Close()
		if readers[split.ID], err = s.Open(t.Context(), split, stands[split.ID]); err != nil {
			t.Fatal(err)
		}
		defer readers[split.ID].Close()
	}
	read(26_000)
	for row, n := range seen {
		if n != 1 || strings.HasPrefix(row, "-") {
			t.Fatalf("row %s was read %d times", row, n)
		}
	}
}

// restart kills a broker and starts it again.
func restart(t *testing.T, b *kafkatest.Broker) {
	t.Helper()
	if err := b.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := b.Up(); err != nil {
		t.Fatal(err)
	}
}

// testLosses removes records that a position needs, and then the topic.
func testLosses(t *testing.T, addr string) {
	client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.DefaultProduceTopic("lost"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	create := func() {
		t.Helper()
		if _, err := admin.CreateTopic(t.Context(), 1, 1, nil, "lost"); err != nil {
			t.Fatal(err)
		}
		for i := range 10 {
			if err := client.ProduceSync(t.Context(), &kgo.Record{Value: fmt.Appendf(nil, `{"v":%d}`, i)}).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
	}
	fails := func(from flow.Position, words string) (position flow.Position) {
		t.Helper()
		s := connectortest.OpenStream(t, kafka.Source, map[string]string{"brokers": addr, "topic": "lost"}, types.Field{Name: "v", Type: types.Int64})
		r, err := s.Open(t.Context(), flow.Split{ID: "0"}, from)
		for err == nil {
			var rows flow.Rows
			if rows, err = r.Read(t.Context(), 3); err == nil && words == "" {
				defer r.Close()
				return rows.Next
			}
		}
		if r != nil {
			r.Close()
		}
		if !strings.Contains(err.Error(), words) {
			t.Errorf("reading from %s: %v", from, err)
		}
		return ""
	}
	create()
	stands := fails("", "")
	if _, err := admin.DeleteRecords(t.Context(), kadm.Offsets{"lost": {0: {Topic: "lost", At: 5}}}); err != nil {
		t.Fatal(err)
	}
	fails(stands, "does not hold the offset 3 any more; it begins at 5")
	fails("17", "has lost records: it ends at 10")
	if _, err := admin.DeleteTopic(t.Context(), "lost"); err != nil {
		t.Fatal(err)
	}
	client.PurgeTopicsFromClient("lost")
	create()
	fails(stands, "was deleted and made anew")
}

// testUpserts reads a compacted topic as a table by key: updates and tombstones of keys that Kafka spreads over partitions.
func testUpserts(t *testing.T, addr string) {
	client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.DefaultProduceTopic("latest"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	compact := "compact"
	if _, err := kadm.NewClient(client).CreateTopic(t.Context(), 3, 1, map[string]*string{"cleanup.policy": &compact}, "latest"); err != nil {
		t.Fatal(err)
	}
	r := clock.NewRand(1)
	stands := map[string]int{}
	say := func(n int) {
		t.Helper()
		recs := make([]*kgo.Record, n)
		for i := range recs {
			key := fmt.Sprintf("key %d", r.IntN(500))
			recs[i] = &kgo.Record{Key: []byte(key)}
			if r.IntN(6) == 0 {
				delete(stands, key)
				continue
			}
			stands[key] = i
			recs[i].Value = fmt.Appendf(nil, `{"v":%d}`, i)
		}
		if err := client.ProduceSync(t.Context(), recs...).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	s, err := riverbed.Open(map[string]string{"parallelism": "2", "strict_retractions": "true"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Query(t.Context(), "CREATE STREAM t (k TEXT, v INT, PRIMARY KEY (k)) WITH (connector = 'kafka', upsert = true, topic = 'latest', brokers = '"+addr+"')", nil); err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{1, 20_000, 3_000} {
		say(n)
		q, err := s.Query(t.Context(), "SELECT k, v FROM t", nil)
		if err != nil {
			t.Fatal(err)
		}
		sub, err := q.Subscribe(t.Context(), riverbed.SubscribeOptions{Until: "latest"})
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
		rows := 0
		for _, b := range sum.Batches() {
			for i := range int(b.NumRows()) {
				rows++
				key, v, _ := strings.Cut(connectortest.Row(b, i), "|")
				if want, ok := stands[key]; !ok || fmt.Sprint(want) != v {
					t.Fatalf("%s has %s, and should have %d (%t)", key, v, want, ok)
				}
			}
		}
		if rows != len(stands) {
			t.Fatalf("%d keys stand, and should be %d", rows, len(stands))
		}
	}
}
