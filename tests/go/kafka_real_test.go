package repo

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/riverbed/riverbed/connectors/connectortest"
	"github.com/riverbed/riverbed/connectors/kafka"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/types"
)

// service runs the script of the broker.
func service(t *testing.T, verb string) string {
	t.Helper()
	script, err := filepath.Abs(filepath.Join("..", "..", "tools", "services", "kafka.sh"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(script, verb)
	cmd.Env = append(cmd.Environ(), "KAFKA_PORT=19192")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("kafka.sh %s: %v\n%s", verb, err, out)
	}
	return strings.TrimSpace(string(out))
}

// TestRealKafka reads and writes through Apache Kafka itself: transactions, positions, and a broker that dies while a
// partition is being read.
func TestRealKafka(t *testing.T) {
	for _, tool := range []string{"java", "mvn"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("no %s on the path, which the broker needs", tool)
		}
	}
	service(t, "reset")
	addr := service(t, "start")
	t.Cleanup(func() { service(t, "reset") })

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
	read := func(total int) {
		t.Helper()
		for len(seen) < total {
			for _, split := range splits {
				rows, err := readers[split.ID].Read(t.Context(), 5_000)
				if err != nil {
					t.Fatal(err)
				}
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
	service(t, "kill")
	service(t, "start")
	send(20_000, 3_000, kgo.TryCommit)
	read(23_000)
	for row, n := range seen {
		if n != 1 || strings.HasPrefix(row, "-") {
			t.Fatalf("row %s was read %d times", row, n)
		}
	}
}
