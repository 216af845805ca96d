package repo

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/riverbed/riverbed/connectors"
	"github.com/riverbed/riverbed/connectors/kafka"
	"github.com/riverbed/riverbed/connectors/kafka/kafkatest"
	"github.com/riverbed/riverbed/core/clock"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/types"
)

// epochRows is how many rows an epoch has; epoch n has the numbers from n·epochRows on.
const epochRows = 20_000

var onceFields = []types.Field{{Name: "v", Type: types.Int64}, {Name: "pad", Type: types.String}}

func openOnce(ctx context.Context, addr, topic string) (connectors.Committer, error) {
	s, err := kafka.Sink.Options.Parse("sink", map[string]string{"brokers": addr, "topic": topic, "partitions": "3", "transaction_timeout": "3s", "commit_timeout": "5m"})
	if err != nil {
		return nil, err
	}
	w, err := kafka.Sink.Open(ctx, connectors.SinkRequest{Settings: s, Fields: onceFields, Pipeline: "once", ExactlyOnce: true, Clock: clock.Wall{}})
	if err != nil {
		return nil, err
	}
	return w.(connectors.Committer), nil
}

func onceLink(n int) connectors.Marker { return connectors.Marker(fmt.Sprintf("run:%d", n)) }

func onceEpoch(n int) connectors.StagedEpoch {
	v, pad := array.NewInt64Builder(memory.DefaultAllocator), array.NewStringBuilder(memory.DefaultAllocator)
	for i := range epochRows {
		v.Append(int64(n*epochRows + i))
		pad.Append(strings.Repeat("x", 100))
	}
	b := array.NewRecordBatch(types.ArrowSchema(onceFields), []arrow.Array{v.NewArray(), pad.NewArray()}, epochRows)
	return connectors.StagedEpoch{Epoch: flow.Epoch(n), Marker: onceLink(n), Previous: onceLink(n - 1), Rows: []arrow.RecordBatch{b}}
}

// TestKafkaSinkProcess is no test: it is the process that others start, which commits epochs from where the marker stands to
// the last, and says what it does.
func TestKafkaSinkProcess(t *testing.T) {
	last, err := strconv.Atoi(os.Getenv("RIVERBED_TEST_KAFKA_EPOCHS"))
	if err != nil {
		return // run as one of the tests
	}
	c, err := openOnce(t.Context(), os.Getenv("RIVERBED_TEST_KAFKA_ADDR"), os.Getenv("RIVERBED_TEST_KAFKA_TOPIC"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	stands, err := c.Begin(t.Context(), onceLink(0))
	if err != nil {
		t.Fatal(err)
	}
	_, n, _ := strings.Cut(string(stands), ":")
	at, _ := strconv.Atoi(n)
	for n := at + 1; n <= last; n++ {
		fmt.Printf("commit %d\n", n)
		if err := c.Commit(t.Context(), onceEpoch(n)); err != nil {
			fmt.Printf("failed %d %s\n", errs.As(err).Kind, strings.ReplaceAll(err.Error(), "\n", " "))
			return
		}
	}
	fmt.Println("done")
}

// sinkProcess is TestKafkaSinkProcess, running.
type sinkProcess struct {
	t     *testing.T
	cmd   *exec.Cmd
	lines chan string // closed at its end
}

func startSink(t *testing.T, addr, topic string, last int) *sinkProcess {
	t.Helper()
	p := &sinkProcess{t: t, cmd: exec.Command(os.Args[0], "-test.run=^TestKafkaSinkProcess$"), lines: make(chan string, 1000)}
	p.cmd.Env = append(os.Environ(), "RIVERBED_TEST_KAFKA_EPOCHS="+strconv.Itoa(last), "RIVERBED_TEST_KAFKA_ADDR="+addr, "RIVERBED_TEST_KAFKA_TOPIC="+topic)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	p.cmd.Stderr = t.Output()
	out, err := p.cmd.StdoutPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			p.lines <- s.Text()
		}
		_ = p.cmd.Wait()
	}()
	t.Cleanup(func() { p.signal(syscall.SIGKILL) })
	return p
}

func (p *sinkProcess) signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) }

// waitFor reads what the process says up to a line that begins so.
func (p *sinkProcess) waitFor(line string) string {
	p.t.Helper()
	for got := range p.lines {
		if strings.HasPrefix(got, line) {
			return got
		}
		if !strings.HasPrefix(got, "commit") {
			p.t.Fatalf("the process says %q and should say %q", got, line)
		}
	}
	p.t.Fatalf("the process ended before it said %q", line)
	return ""
}

// TestRealKafkaSinkOnce kills processes and the broker in the midst of commits, keeps the broker away for longer than a
// transaction may take, and wakes up a process whose place was taken. A reader of committed records must find each row once.
func TestRealKafkaSinkOnce(t *testing.T) {
	kafkad := kafkatest.Start(t)
	addr := kafkad.Addr
	r := clock.NewRand(7)
	pause := func(most time.Duration) { time.Sleep(time.Duration(r.Float64() * float64(most))) }

	t.Run("a process that is killed", func(t *testing.T) {
		for n := range 5 {
			p := startSink(t, addr, "killed", 1000)
			for range 1 + r.IntN(3) {
				p.waitFor("commit")
			}
			pause(300 * time.Millisecond)
			p.signal(syscall.SIGKILL)
			if n == 4 {
				startSink(t, addr, "killed", 10).waitFor("done")
			}
		}
		eachOnce(t, kafkad, "killed", 0)
	})
	t.Run("a zombie that wakes up", func(t *testing.T) {
		zombie := startSink(t, addr, "woken", 1000)
		zombie.waitFor("commit 3")
		pause(200 * time.Millisecond)
		zombie.signal(syscall.SIGSTOP)
		successor := startSink(t, addr, "woken", 30)
		successor.waitFor("commit 10")
		zombie.signal(syscall.SIGCONT)
		line := zombie.waitFor("failed")
		if !strings.Contains(line, fmt.Sprintf("failed %d", errs.ExactlyOnce)) || !strings.Contains(line, "another process") {
			t.Errorf("the zombie says %s", line)
		}
		successor.waitFor("done")
		eachOnce(t, kafkad, "woken", 30)
	})
	for name, away := range map[string]time.Duration{"a broker that is killed": 0, "a broker away for longer than a transaction": 5 * time.Second} {
		t.Run(name, func(t *testing.T) {
			topic := fmt.Sprintf("away-%d", away/time.Second)
			const epochs = 10
			p := startSink(t, addr, topic, epochs)
			p.waitFor("commit 3")
			pause(150 * time.Millisecond)
			if err := kafkad.Kill(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(away)
			if err := kafkad.Up(); err != nil {
				t.Fatal(err)
			}
			p.waitFor("done")
			eachOnce(t, kafkad, topic, epochs)
		})
	}
}

// eachOnce reads the topic with a client of its own, committed records alone, and counts. 0 epochs are as many as there are.
func eachOnce(t *testing.T, kafkad *kafkatest.Broker, topic string, epochs int) {
	t.Helper()
	recs, err := kafkad.Committed(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int64]int{}
	for _, rec := range recs {
		text, _, _ := strings.Cut(strings.TrimPrefix(string(rec.Value), `{"v":`), ",")
		v, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			t.Fatalf("a record %s", rec.Value)
		}
		seen[v]++
	}
	if epochs == 0 {
		epochs = len(seen) / epochRows
	}
	lost, doubled := 0, 0
	for v := int64(epochRows); v < int64((epochs+1)*epochRows); v++ {
		switch n := seen[v]; {
		case n == 0:
			lost++
		case n > 1:
			doubled++
		}
		delete(seen, v)
	}
	t.Logf("%s: %d epochs of %d rows: %d lost, %d doubled, %d strange", topic, epochs, epochRows, lost, doubled, len(seen))
	if lost+doubled+len(seen) > 0 || epochs < 3 {
		t.Fail()
	}
}
