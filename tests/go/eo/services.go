package eo

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// broker is Apache Kafka on ports and data of its own.
type broker struct {
	script, addr string
	env          []string
}

// startBroker starts one that ends with the test.
func startBroker(t *testing.T) *broker {
	t.Helper()
	for _, tool := range []string{"java", "mvn"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("no %s on the path, which the broker needs", tool)
		}
	}
	script, err := filepath.Abs(filepath.Join("..", "..", "..", "tools", "services", "kafka.sh"))
	if err != nil {
		t.Fatal(err)
	}
	b := &broker{script: script, env: []string{"KAFKA_DATA=" + t.TempDir()}}
	port := 20000 + os.Getpid()%10000 // see newBroker of the tests beside: never a port that the system would choose
	for _, name := range []string{"KAFKA_PORT", "KAFKA_CONTROLLER_PORT"} {
		for ; port < 32000; port++ {
			free, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
			if err == nil {
				_ = free.Close()
				break
			}
		}
		b.env = append(b.env, fmt.Sprintf("%s=%d", name, port))
		port++
	}
	t.Cleanup(func() { _, _ = b.do("reset") })
	if b.addr, err = b.do("start"); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *broker) do(verb string) (string, error) {
	cmd := exec.Command(b.script, verb)
	cmd.Env = append(cmd.Environ(), b.env...)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("kafka.sh %s: %w\n%s", verb, err, said.String())
	}
	return strings.TrimSpace(string(out)), nil
}

// killed ends the broker with SIGKILL and starts it again while the pipeline runs.
func (b *broker) killed() error {
	if _, err := b.do("kill"); err != nil {
		return err
	}
	time.Sleep(300 * time.Millisecond)
	_, err := b.do("start")
	return err
}

// topic makes one.
func (b *broker) topic(t *testing.T, name string, partitions int32) *kgo.Client {
	t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(b.addr), kgo.DefaultProduceTopic(name), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	if _, err := kadm.NewClient(c).CreateTopic(t.Context(), partitions, 1, nil, name); err != nil {
		t.Fatal(err)
	}
	return c
}

// committed reads all committed records of a topic, as a consumer of its own.
func (b *broker) committed(topic string) ([][]byte, error) {
	ctx, stop := context.WithTimeout(context.Background(), 2*time.Minute)
	defer stop()
	c, err := kgo.NewClient(kgo.SeedBrokers(b.addr), kgo.ConsumeTopics(topic), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.KeepControlRecords()) // the end of a transaction is a record too
	if err != nil {
		return nil, err
	}
	defer c.Close()
	ends, err := kadm.NewClient(c).ListCommittedOffsets(ctx, topic)
	if err != nil {
		return nil, err
	}
	left := map[int32]int64{}
	ends.Each(func(o kadm.ListedOffset) {
		if o.Offset > 0 {
			left[o.Partition] = o.Offset
		}
	})
	var out [][]byte
	at := map[int32]int64{}
	for len(left) > 0 {
		fs := c.PollFetches(ctx)
		if err := fs.Err0(); err != nil {
			return nil, err
		}
		fs.EachPartition(func(p kgo.FetchTopicPartition) {
			for _, r := range p.Records {
				if at[r.Partition] = r.Offset + 1; !r.Attrs.IsControl() {
					out = append(out, r.Value)
				}
			}
		})
		for partition, end := range left {
			if at[partition] >= end {
				delete(left, partition)
			}
		}
	}
	return out, nil
}
