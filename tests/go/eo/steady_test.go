package eo

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/riverbed/riverbed"
	"github.com/riverbed/riverbed/checkpoint"
	"github.com/riverbed/riverbed/connectors/kafka/kafkatest"
)

// q5 is NEXMark's question 5: the auctions with the most bids of the last ten seconds, every two seconds.
const q5 = `WITH counts AS (
  SELECT auction, count(*) AS num, HOP_START(dateTime, INTERVAL '2 seconds', INTERVAL '10 seconds') AS starttime
  FROM bid GROUP BY auction, HOP(dateTime, INTERVAL '2 seconds', INTERVAL '10 seconds'))
SELECT c.auction, c.num, c.starttime
FROM counts c JOIN (SELECT starttime, max(num) AS maxn FROM counts GROUP BY starttime) m ON c.starttime = m.starttime AND c.num >= m.maxn`

const (
	steadyRate   = 2000                   // bids a second
	steadyEpochs = 10                     // of a snapshot
	steadyPart   = 100 * time.Millisecond // between two parts of them
	steadyPause  = 30 * time.Second       // between two epochs at most, on a machine that does much else
	steadyMemory = 30 << 20               // by how much memory may grow over the second half, beside a tenth of it
)

// TestSteady runs NEXMark q5 from a topic into an Iceberg table at a steady rate with a checkpoint every second, RIVERBED_EO_DURATION long: memory
// stays flat, epochs come all the time, and each row of the answer is there once. Memory is judged from a minute on. A snapshot takes several epochs: each
// commit writes anew the list of all snapshots.
func TestSteady(t *testing.T) {
	if only := os.Getenv("SINK_PATH"); only != "" && only != "steady" {
		t.Skip("SINK_PATH names another path")
	}
	duration := 8 * time.Second
	if d, err := time.ParseDuration(os.Getenv("RIVERBED_EO_DURATION")); err == nil {
		duration = d
	}
	b, table := kafkatest.Start(t), newIcebergTable(t)
	bids := newBids(t, b, int(duration.Seconds()*steadyRate))
	set := settings(t)
	set["checkpoint_interval_ms"], set["step_rows"] = "1000", "65536"
	j := job{Settings: set, Markers: true, Statements: []string{
		"CREATE STREAM bid (auction BIGINT, dateTime TIMESTAMP, WATERMARK FOR dateTime AS dateTime) WITH (connector = 'kafka', brokers = '" + b.Addr + "', topic = 'bids')",
		table.sink(fmt.Sprintf(", changelog = true, commit_every = %d", steadyEpochs)),
		"INSERT INTO o " + q5 + " EMIT IMMEDIATE",
	}}
	c := start(t, j)
	fed := make(chan struct{})
	go func() {
		defer close(fed)
		bids.produce(t)
	}()
	m := &memory{pid: c.cmd.Process.Pid}
	epochs, longest, last := 0, time.Duration(0), time.Now()
	stopped := false
	for began := time.Now(); ; {
		line, _ := c.line(0, time.Time{})
		if line == "ended" {
			break
		}
		if !strings.HasPrefix(line, "phase ") {
			t.Fatalf("after %s the pipeline says %s", time.Since(began), line)
		}
		if strings.HasPrefix(line, "phase "+checkpoint.Acknowledged) {
			epochs++
			if pause := time.Since(last); pause > steadyPause/10 {
				t.Logf("%.0f s after the start: %.1f s between two epochs", time.Since(began).Seconds(), pause.Seconds())
			}
			longest, last = max(longest, time.Since(last)), time.Now()
			m.sample(t, time.Since(began))
		}
		c.goOn()
		select {
		case <-fed:
			if !stopped {
				stopped = true
				_ = c.cmd.Process.Signal(syscall.SIGTERM)
			}
		default:
		}
	}
	c.wait()
	j.Until = "latest" // what came after the last epoch
	c = start(t, j)
	for line := ""; line != "ended"; c.goOn() {
		if line, _ = c.line(0, time.Time{}); line != "ended" && !strings.HasPrefix(line, "phase ") {
			t.Fatalf("the last run says %s", line)
		}
	}
	c.wait()
	grown, half := m.growth()
	t.Logf("%s at %d bids/s: %d epochs, the longest pause between two %.1f s, memory %d MB, grown by %+.1f MB over the second half", duration, steadyRate, epochs, longest.Seconds(), half>>20, grown/(1<<20))
	if epochs < int(duration.Seconds()/2) {
		t.Errorf("%d epochs in %s", epochs, duration)
	}
	if longest > steadyPause {
		t.Errorf("%s between two epochs", longest)
	}
	if duration >= time.Minute && grown > steadyMemory+float64(half)/10 {
		t.Errorf("memory grew by %.0f MB over the second half, from about %d MB", grown/(1<<20), half>>20)
	}
	got, err := table.read("auction", "num", "starttime")
	if err != nil {
		t.Fatal(err)
	}
	want := bids.answer(t)
	if len(want) == 0 {
		t.Fatal("the query answers nothing")
	}
	lost, twice := 0, 0
	for row, n := range want {
		if got[row] < n {
			lost++
		}
	}
	for row, n := range got {
		if n != 0 && n != want[row] {
			twice++
		}
	}
	t.Logf("%d rows in the answer, %d lost, %d too many", len(want), lost, twice)
	if lost+twice > 0 {
		t.Error("the sink does not hold each row once")
	}
}

// bids are those of the generator.
type bids struct {
	t      *testing.T
	s      *riverbed.Session
	client *kgo.Client
	rows   int
}

func newBids(t *testing.T, b *kafkatest.Broker, rows int) *bids {
	s, err := riverbed.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if _, err := s.Query(t.Context(), fmt.Sprintf("CREATE TABLE bid WITH (connector = 'generator', kind = 'nexmark_bid', rows = %d)", rows), nil); err != nil {
		t.Fatal(err)
	}
	return &bids{t: t, s: s, client: b.Topic(t, "bids", 1), rows: rows}
}

// each gives the values of a query's columns as text, row by row.
func (b *bids) each(query string, row func(values []string)) {
	q, err := b.s.Query(b.t.Context(), query, nil)
	if err != nil {
		b.t.Error(err)
		return
	}
	res, err := q.Run(b.t.Context())
	if err != nil {
		b.t.Error(err)
		return
	}
	defer res.Release()
	for res.Next() {
		cols := make([]*array.String, res.RecordBatch().NumCols())
		for i := range cols {
			cols[i] = res.RecordBatch().Column(i).(*array.String)
		}
		for i := range int(res.RecordBatch().NumRows()) {
			values := make([]string, len(cols))
			for k := range cols {
				values[k] = cols[k].Value(i)
			}
			row(values)
		}
	}
	if err := res.Err(); err != nil {
		b.t.Error(err)
	}
}

// produce sends the bids at their rate.
func (b *bids) produce(t *testing.T) {
	began, sent, part := time.Now(), 0, steadyRate*int(steadyPart/time.Millisecond)/1000
	b.each("SELECT auction::VARCHAR, dateTime::VARCHAR FROM bid ORDER BY dateTime", func(v []string) {
		b.client.Produce(t.Context(), &kgo.Record{Value: fmt.Appendf(nil, `{"auction":%s,"dateTime":"%s"}`, v[0], v[1])}, func(_ *kgo.Record, err error) {
			if err != nil {
				t.Error(err)
			}
		})
		if sent++; sent%part == 0 {
			time.Sleep(time.Until(began.Add(time.Duration(sent/part) * steadyPart)))
		}
	})
	if err := b.client.Flush(t.Context()); err != nil {
		t.Error(err)
	}
}

// answer is what batch says of the bids.
func (b *bids) answer(t *testing.T) map[string]int {
	t.Helper()
	out := map[string]int{}
	b.each("SELECT auction::VARCHAR, num::VARCHAR, starttime::VARCHAR FROM ("+q5+")", func(v []string) { out[strings.Join(v, "|")]++ })
	return out
}

// memory is what a process held, by and by.
type memory struct {
	pid     int
	at      []float64 // seconds
	resided []float64 // bytes
}

func (m *memory) sample(t *testing.T, at time.Duration) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", m.pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	kb, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		t.Fatal(err)
	}
	m.at, m.resided = append(m.at, at.Seconds()), append(m.resided, float64(kb<<10))
}

// growth is by how much memory grew over the second half, by the line that fits the samples best, and how much there was in the middle of it.
func (m *memory) growth() (bytes float64, half int64) {
	at, resided := m.at[len(m.at)/2:], m.resided[len(m.at)/2:]
	if len(at) < 2 {
		return 0, 0
	}
	n := float64(len(at))
	var sx, sy, sxx, sxy float64
	for i, x := range at {
		y := resided[i]
		sx, sy, sxx, sxy = sx+x, sy+y, sxx+x*x, sxy+x*y
	}
	slope := (n*sxy - sx*sy) / (n*sxx - sx*sx)
	return slope * (slices.Max(at) - slices.Min(at)), int64(sy / n)
}
