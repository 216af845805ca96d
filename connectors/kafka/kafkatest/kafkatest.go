// Package kafkatest runs a real Apache Kafka for tests: one node on free loopback ports, with data of its own.
//
// Invariant: a broker outlives neither its test nor the process of the test, however that ends.
package kafkatest

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Broker is one broker.
type Broker struct {
	Addr string // host:port
	env  []string
}

// Start starts a broker that ends with the test.
func Start(t testing.TB) *Broker {
	t.Helper()
	for _, tool := range []string{"java", "mvn"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("no %s on the path, which the broker needs", tool)
		}
	}
	b := &Broker{env: append(os.Environ(), "KAFKA_DATA="+t.TempDir())}
	for _, name := range []string{"KAFKA_PORT", "KAFKA_CONTROLLER_PORT"} {
		b.env = append(b.env, fmt.Sprintf("%s=%d", name, freePort(t)))
	}
	end, err := b.watch()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := end(); err != nil {
			t.Errorf("ending the broker: %v", err)
		}
	})
	if b.Addr, err = b.do("start"); err != nil {
		t.Fatal(err)
	}
	return b
}

// ports are apart from those of a process that was started just before or behind: what looks free to both is not.
var ports = 20000 + os.Getpid()*7%11000

// freePort is not one that the system would choose: a client that reconnects to a dead broker on one of those may be given the same port as its
// own end and so connect to itself, and then the port is taken. Each number is tried once in a process, so that brokers side by side do not meet.
func freePort(t testing.TB) int {
	t.Helper()
	for ports++; ports < 32000; ports++ {
		if free, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", ports)); err == nil {
			_ = free.Close()
			return ports
		}
	}
	t.Fatal("no port is free")
	return 0
}

func script() string {
	_, here, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(here), "..", "..", "..", "tools", "services", "kafka.sh")
}

// watch starts a shell that waits for the end of this process, whose pipe closes then, and clears up. end does it now.
func (b *Broker) watch() (end func() error, err error) {
	cmd := exec.Command("/bin/sh", "-c", `trap '' INT TERM HUP; cat >/dev/null; exec "$0" reset`, script())
	cmd.Env, cmd.SysProcAttr = b.env, &syscall.SysProcAttr{Setpgid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return func() error {
		_ = in.Close()
		return cmd.Wait()
	}, nil
}

// do what kafka.sh calls by this name, and give what it prints.
func (b *Broker) do(verb string) (string, error) {
	cmd := exec.Command(script(), verb)
	cmd.Env = b.env
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("kafka.sh %s: %w\n%s", verb, err, said.String())
	}
	return strings.TrimSpace(string(out)), nil
}

// Kill ends the broker by SIGKILL.
func (b *Broker) Kill() error {
	_, err := b.do("kill")
	return err
}

// Up starts the broker again, with the data that it had, and waits until it answers.
func (b *Broker) Up() error {
	_, err := b.do("start")
	return err
}

// Topic makes a topic and gives a client that writes to it; records say which partition they go to.
func (b *Broker) Topic(t testing.TB, name string, partitions int32) *kgo.Client {
	t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(b.Addr), kgo.DefaultProduceTopic(name), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	if _, err := kadm.NewClient(c).CreateTopic(t.Context(), partitions, 1, nil, name); err != nil {
		t.Fatal(err)
	}
	return c
}

// Committed reads all committed records of a topic, as a consumer of its own.
func (b *Broker) Committed(ctx context.Context, topic string) ([]*kgo.Record, error) {
	c, err := kgo.NewClient(kgo.SeedBrokers(b.Addr), kgo.ConsumeTopics(topic), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.KeepControlRecords()) // the end of a transaction is a record too
	if err != nil {
		return nil, err
	}
	defer c.Close()
	ends, err := kadm.NewClient(c).ListCommittedOffsets(ctx, topic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return nil, err
	}
	left := map[int32]int64{}
	ends.Each(func(o kadm.ListedOffset) {
		if o.Offset > 0 {
			left[o.Partition] = o.Offset
		}
	})
	var out []*kgo.Record
	for len(left) > 0 {
		fs := c.PollFetches(ctx)
		if err := fs.Err0(); err != nil {
			return nil, err
		}
		fs.EachRecord(func(r *kgo.Record) {
			if !r.Attrs.IsControl() {
				out = append(out, r)
			}
			if end, ok := left[r.Partition]; ok && r.Offset+1 >= end {
				delete(left, r.Partition)
			}
		})
	}
	return out, nil
}
