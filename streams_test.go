package riverbed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/connectors"
	"github.com/riverbed/riverbed/connectors/all"
	"github.com/riverbed/riverbed/core/clock"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/types"
	"github.com/riverbed/riverbed/incremental"
)

const clicks = "CREATE STREAM clicks (k VARCHAR, v BIGINT, ts TIMESTAMP, WATERMARK FOR ts AS ts) WITH (connector = 'memory')"

const perMinute = "SELECT k, sum(v) AS s FROM clicks GROUP BY k, TUMBLE(ts, INTERVAL '1 minute') EMIT ON WATERMARK"

// until polls: runs go on in goroutines of their own.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for !ok() {
		if err := t.Context().Err(); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		time.Sleep(time.Millisecond)
	}
}

func TestSubscribeToAStream(t *testing.T) {
	d := openDB(t)
	d.run(clicks)
	sub := d.follow(perMinute, SubscribeOptions{})
	d.push("clicks", "", row{"a", 1, sec(10)}, row{"a", 2, sec(20)}, row{"b", 5, sec(30)}, row{"a", 7, sec(61)})
	expect(t, next(t, sub), "+1 a|3", "+1 b|5")
	d.push("clicks", "", row{"a", 9, sec(5)}, row{"b", 1, sec(130)}) // one late
	expect(t, next(t, sub), "+1 a|7")
	m := sub.Metrics()
	if m.RowsIn != 6 || m.RowsOut != 3 || m.LateRows != 1 || m.State != "running" || m.WatermarkUS != sec(130) || m.Sources["clicks"].Rows != 6 ||
		m.Sources["clicks"].Late != 1 || m.Sources["clicks"].Splits != 1 || m.QueueRows != 0 || m.LagMS <= 0 || m.Steps < 2 {
		t.Errorf("metrics %+v", m)
	}
	d.is(fmt.Sprintf("SELECT source, row FROM __late WHERE pipeline = '%s'", m.Pipeline), "clicks|{'k': a, 'v': 9, 'ts': '1970-01-01 00:00:05'}")
	if err := sub.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := sub.Next(t.Context()); !errors.Is(err, io.EOF) {
		t.Errorf("after Close: %v", err)
	}
	if err := sub.Close(); err != nil || sub.Metrics().State != "stopped" {
		t.Errorf("closed twice: %v, %s", err, sub.Metrics().State)
	}
}

func TestUntilLatest(t *testing.T) {
	d := openDB(t)
	d.run(clicks)
	d.push("clicks", "p", row{"a", 1, sec(10)}, row{"a", 2, sec(70)})
	d.push("clicks", "q", row{"b", 3, sec(10)})
	expect(t, accumulate(t, d.follow(perMinute, SubscribeOptions{Until: "latest"})), "a|1", "a|2", "b|3")
	_, err := d.query(perMinute).Subscribe(t.Context(), SubscribeOptions{Until: "tomorrow"})
	failsWith(t, "until", err, errs.Usage, "tomorrow")
}

func TestStopWithDrainTakesWhatWasPushed(t *testing.T) {
	d := openDB(t)
	d.run(clicks)
	for _, drain := range []bool{true, false} {
		var got []string
		p, err := d.query(perMinute).Sink(SinkSpec{Func: func(_ context.Context, delta flow.Delta) error {
			got = append(got, deltaLines([]types.Field{{Name: "k", Type: types.String}, {Name: "s", Type: types.Int128}}, delta)...)
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		h, err := p.Start(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		for range 50 {
			d.push("clicks", "", row{"a", 1, sec(10)})
		}
		if err := h.Stop(drain); err != nil {
			t.Fatal(err)
		}
		if drain {
			expect(t, got, "+1 a|50") // the open window was closed
		} else {
			expect(t, got)
		}
		if err := h.Stop(true); err != nil || h.Metrics().State != "stopped" {
			t.Errorf("stopped twice: %v, %s", err, h.Metrics().State)
		}
	}
}

func TestSlowReaderBlocksTheRun(t *testing.T) {
	d := openDB(t)
	d.run("CREATE STREAM s (v BIGINT) WITH (connector = 'memory', queue_rows = 4)")
	sub := d.follow("SELECT v FROM s EMIT IMMEDIATE", SubscribeOptions{QueueSize: 1})
	const n = 500
	var pushed atomic.Int64
	go func() {
		for i := range n {
			d.push("s", "", row{i})
			pushed.Add(1)
		}
		p, _ := d.PushStream("s")
		p.Close()
	}()
	until(t, "the queue fills", func() bool { return pushed.Load() > 4 })
	time.Sleep(20 * time.Millisecond)
	if pushed.Load() == n {
		t.Error("nothing held the pushes back")
	}
	if got := accumulate(t, sub); len(got) != n {
		t.Errorf("%d rows of %d", len(got), n)
	}
}

func TestCancelledCallerIsAnError(t *testing.T) {
	d := openDB(t)
	d.run(clicks)
	ctx, cancel := context.WithCancel(t.Context())
	sub, err := d.query(perMinute).Subscribe(ctx, SubscribeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	waiting, stop := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer stop()
	for err == nil { // deltas without rows
		_, err = sub.Next(waiting)
	}
	if !errs.Is(err, errs.Cancelled) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the wait: %v", err)
	}
	cancel()
	if _, err := sub.Next(t.Context()); !errs.Is(err, errs.Cancelled) { // not the end: the output is not whole
		t.Errorf("the run: %v", err)
	}
}

func TestTablesAreLiveInputs(t *testing.T) {
	d := openDB(t)
	d.run("CREATE TABLE t (k INTEGER, v INTEGER); CREATE TABLE u (k INTEGER, w INTEGER); INSERT INTO t VALUES (1, 10), (2, 20)")
	sub := d.follow("SELECT t.k, v, w FROM t JOIN u ON t.k = u.k EMIT IMMEDIATE", SubscribeOptions{})
	d.run("INSERT INTO u VALUES (1, 100)")
	expect(t, next(t, sub), "+1 1|10|100")
	d.run("UPDATE t SET v = 11 WHERE k = 1")
	expect(t, next(t, sub), "+1 1|11|100", "-1 1|10|100")
	d.run("TRUNCATE t")
	expect(t, next(t, sub), "-1 1|11|100")
	d.run("INSERT INTO t VALUES (1, 1)")
	expect(t, accumulate(t, d.follow("SELECT t.k, w FROM t JOIN u ON t.k = u.k EMIT IMMEDIATE", SubscribeOptions{Until: "latest"})), "1|100")
	if m := sub.Metrics(); m.Sources["t"].Rows < 5 {
		t.Errorf("metrics %+v", m)
	}
}

func TestSeveralSubscribersOfOnePushStream(t *testing.T) {
	d := openDB(t)
	d.run("CREATE STREAM s (v BIGINT) WITH (connector = 'memory')")
	d.run("CREATE MATERIALIZED VIEW total AS SELECT sum(v) AS n FROM s")
	a, b := d.follow("SELECT v FROM s EMIT IMMEDIATE", SubscribeOptions{}), d.follow("SELECT v FROM s EMIT IMMEDIATE", SubscribeOptions{})
	for i := range 20 { // at once: what is pushed after Subscribe has returned is for all
		d.push("s", []string{"", "later"}[i%2], row{i})
	}
	p, _ := d.PushStream("s")
	p.Close()
	if x, y := accumulate(t, a), accumulate(t, b); len(x) != 20 || len(y) != 20 {
		t.Errorf("%d and %d rows of 20", len(x), len(y))
	}
	until(t, "the view", func() bool { return slices.Equal(d.rows("SELECT n FROM total"), []string{"190"}) })
}

// TestSubscribersMissNothing pushes into new splits while subscriptions begin: each has what was pushed after it began.
func TestSubscribersMissNothing(t *testing.T) {
	for range 50 {
		d := openDB(t)
		d.run("CREATE STREAM s (v BIGINT) WITH (connector = 'memory')")
		var subs []*Subscription
		for i := range 3 {
			subs = append(subs, d.follow("SELECT v FROM s EMIT IMMEDIATE", SubscribeOptions{}))
			d.push("s", string(rune('a'+i)), row{i}, row{i})
		}
		latest := d.follow("SELECT v FROM s EMIT IMMEDIATE", SubscribeOptions{Until: "latest"})
		p, _ := d.PushStream("s")
		p.Close()
		for i, sub := range subs {
			if got := accumulate(t, sub); len(got) < 2*(3-i) {
				t.Fatalf("subscription %d has %d rows, pushed were %d since it began", i, len(got), 2*(3-i))
			}
		}
		accumulate(t, latest)
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestEmitEvery(t *testing.T) {
	c := clock.NewFake(time.Unix(100, 0))
	d := openDB(t).withClock(c)
	d.run("CREATE STREAM s (v BIGINT) WITH (connector = 'memory')")
	sub := d.follow("SELECT sum(v) AS n FROM s EMIT EVERY '5 seconds'", SubscribeOptions{})
	until(t, "the first step", func() bool { return sub.Metrics().Steps > 0 })
	d.push("s", "", row{1})
	d.push("s", "", row{2})
	until(t, "the rows are read", func() bool { return sub.Metrics().RowsIn == 2 })
	if m := sub.Metrics(); m.RowsOut != 0 && m.RowsOut != 1 { // the NULL of no rows may have been shown
		t.Errorf("shown before the interval: %+v", m)
	}
	done := make(chan []string)
	go func() {
		sum := NewAccumulated(sub.Fields())
		for {
			delta, err := sub.Next(context.Background())
			if err != nil {
				close(done)
				return
			}
			sum.Add(delta)
			if lines := rowLines(sub.Fields(), sum.Batches()); len(lines) == 1 && lines[0] == "3" {
				done <- lines
				return
			}
		}
	}()
	for {
		c.Advance(time.Second)
		select {
		case got := <-done:
			expect(t, got, "3")
			return
		case <-time.After(time.Millisecond):
		}
	}
}

func TestIdleSplit(t *testing.T) {
	c := clock.NewFake(time.Unix(1000, 0))
	d := openDB(t, "idle_timeout_ms", "5000").withClock(c)
	d.run(clicks)
	sub := d.follow(perMinute, SubscribeOptions{})
	d.push("clicks", "slow", row{"a", 1, sec(10)})
	d.push("clicks", "fast", row{"b", 1, sec(10)}, row{"b", 1, sec(200)})
	until(t, "all is read", func() bool { return sub.Metrics().RowsIn == 3 })
	if m := sub.Metrics(); m.WatermarkUS >= sec(60) {
		t.Errorf("the slow split does not hold the watermark: %d", m.WatermarkUS)
	}
	until(t, "the slow splits are idle", func() bool {
		c.Advance(time.Second)
		return sub.Metrics().WatermarkUS == sec(200)
	})
	expect(t, next(t, sub), "+1 a|1", "+1 b|1")
}

func TestNewSplits(t *testing.T) {
	d := openDB(t)
	d.run("CREATE STREAM s (v BIGINT) WITH (connector = 'memory')")
	sub := d.follow("SELECT v FROM s EMIT IMMEDIATE", SubscribeOptions{})
	for i := range 5 {
		d.push("s", fmt.Sprint("split", i), row{i})
		expect(t, next(t, sub), fmt.Sprintf("+1 %d", i))
	}
	if m := sub.Metrics(); m.Sources["s"].Splits != 6 { // and the default one
		t.Errorf("%d splits", m.Sources["s"].Splits)
	}
}

// A row that is pushed into an idle run is shown at once: on a clock that stands still nothing that waits for a timer
// or polls would ever be.
func TestIdleRunStepsWithoutATimer(t *testing.T) {
	d := openDB(t).withClock(clock.NewFake(time.Unix(0, 0)))
	d.run("CREATE STREAM s (k BIGINT, v BIGINT) WITH (connector = 'memory')")
	sub := d.follow("SELECT k, sum(v) AS n FROM s GROUP BY k EMIT IMMEDIATE", SubscribeOptions{})
	best := time.Hour
	for i := range 200 {
		start := time.Now()
		d.push("s", "", row{i, 1})
		expect(t, next(t, sub), fmt.Sprintf("+1 %d|1", i))
		best = min(best, time.Since(start))
	}
	t.Logf("a pushed row is shown after %v at best", best)
}

func TestForgottenSubscriptionEnds(t *testing.T) {
	d := openDB(t)
	d.run("CREATE STREAM s (v BIGINT) WITH (connector = 'memory')")
	func() {
		if _, err := d.query("SELECT v FROM s EMIT IMMEDIATE").Subscribe(context.Background(), SubscribeOptions{}); err != nil {
			t.Fatal(err)
		}
	}()
	until(t, "the run ends", func() bool {
		runtime.GC()
		d.runs.mu.Lock()
		defer d.runs.mu.Unlock()
		return len(d.runs.open) == 0
	})
}

func TestNothingIsLeftBehind(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 20 {
		s, err := Open(nil)
		if err != nil {
			t.Fatal(err)
		}
		d := db{s, t}
		d.run(clicks)
		d.run("CREATE TABLE t (k VARCHAR); CREATE MATERIALIZED VIEW v AS SELECT t.k, sum(v) AS n FROM clicks JOIN t ON t.k = clicks.k GROUP BY t.k")
		d.push("clicks", "", row{"a", 1, sec(1)})
		d.run("INSERT INTO t VALUES ('a')")
		sub, err := d.query("SELECT k FROM clicks EMIT IMMEDIATE").Subscribe(context.Background(), SubscribeOptions{QueueSize: 1})
		if err != nil {
			t.Fatal(err)
		}
		p, err := d.query(perMinute).Sink(SinkSpec{Func: func(context.Context, flow.Delta) error { return nil }})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Start(context.Background(), ""); err != nil {
			t.Fatal(err)
		}
		d.run("DROP MATERIALIZED VIEW v")
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := sub.Next(t.Context()); !errors.Is(err, io.EOF) {
			t.Error(err)
		}
	}
	until(t, "goroutines end", func() bool { return runtime.NumGoroutine() <= before+2 })
}

func TestAfterClose(t *testing.T) {
	s, _ := Open(nil)
	d := db{s, t}
	d.run(clicks + "; CREATE TABLE t (a INTEGER)")
	q, live := d.query("SELECT a FROM t"), d.query(perMinute)
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for what, call := range map[string]func() error{
		"query":     func() error { _, err := s.Query(t.Context(), "SELECT 1", nil); return err },
		"run":       func() error { _, err := q.Run(t.Context()); return err },
		"subscribe": func() error { _, err := live.Subscribe(t.Context(), SubscribeOptions{}); return err },
		"sink":      func() error { _, err := live.Sink(SinkSpec{}); return err },
		"manual":    func() error { _, err := live.Manual(ManualOptions{}); return err },
		"register":  func() error { return s.Register("x", nil) },
		"stream":    func() error { return s.CreateStream(t.Context(), "x", StreamSpec{}) },
		"table":     func() error { return s.CreateTable(t.Context(), "x", StreamSpec{}) },
		"function":  func() error { return s.RegisterUDF(UDF{Name: "f", Returns: "BIGINT"}) },
		"push":      func() error { _, err := s.PushStream("clicks"); return err },
	} {
		failsWith(t, what, call(), errs.Usage, "the session is closed", "open a new one")
	}
}

// TestCloseWakesPushes: a push that waits for room ends with the session, and so does one that comes later.
func TestCloseWakesPushes(t *testing.T) {
	s, _ := Open(nil)
	d := db{s, t}
	d.run("CREATE STREAM s (v BIGINT) WITH (connector = 'memory', queue_rows = 1)")
	d.push("s", "", row{1})
	p, _ := d.PushStream("s")
	rows := batchOf(d.cat.Load().get("s").source.Fields, row{2})
	waiting := make(chan error, 1)
	go func() { waiting <- p.Push(t.Context(), "", rows, nil) }()
	time.Sleep(10 * time.Millisecond) // most often it waits by then
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	failsWith(t, "the push that waited", <-waiting, errs.Usage, "the stream is closed")
	failsWith(t, "a later push", p.Push(t.Context(), "", rows, nil), errs.Usage, "the stream is closed")
}

func TestSessionsAndQueriesSideBySide(t *testing.T) {
	shared := openDB(t, "parallelism", "2")
	shared.run("CREATE TABLE t AS SELECT i AS a, i % 7 AS b FROM range(50000) r(i)")
	q := shared.query("SELECT b, sum(a) AS s FROM t GROUP BY b ORDER BY b")
	want := strings.Join(shared.rows("SELECT b, sum(a) AS s FROM t GROUP BY b ORDER BY b"), " ")
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			own, err := Open(map[string]string{"parallelism": "2"})
			if err != nil {
				t.Error(err)
				return
			}
			defer own.Close()
			for i := range 5 {
				batches, err := q.all(context.Background()) // one query, several runs at once
				if err != nil || strings.Join(rowLines(q.Fields(), batches), " ") != want {
					t.Errorf("%v", err)
				}
				for _, s := range []*Session{own, shared.Session} {
					text := fmt.Sprintf("CREATE OR REPLACE TABLE x%d AS SELECT random() AS r, %d AS w FROM range(100); SET step_rows = %d; SELECT count(r) FROM x%d", w, i, 1000+i, w)
					q, err := s.Query(context.Background(), text, nil)
					if err != nil {
						t.Error(err)
						return
					}
					if batches, err := q.all(context.Background()); err != nil || rowLines(q.Fields(), batches)[0] != "100" {
						t.Errorf("%v", err)
					}
				}
			}
		}()
	}
	wg.Wait()
}

// ears tell when a source answered.
type ears struct{ since, last time.Time }

func (e *ears) Heard() (since, last time.Time) { return e.since, e.last }

// A split is silent for as long as its source says so: the time of an outage does not count, whether reads wait or fail in it.
func TestAwayIsNotIdle(t *testing.T) {
	at := func(s int64) time.Time { return time.Unix(s, 0) }
	g, e := &gate{}, &ears{at(1000), at(1003)}
	for _, c := range []struct {
		does  func()
		now   int64
		want  time.Duration
		still bool
	}{
		{func() {}, 1004, 4 * time.Second, false}, // nobody to ask: what does not fail answers
		{func() { g.hears(e) }, 1004, 3 * time.Second, true},
		{func() {}, 1060, 3 * time.Second, true},
		{func() { e.last = at(1060) }, 1060, 60 * time.Second, false},
		{func() { g.answers(false, at(1061)); e.last = at(1064) }, 1070, 61 * time.Second, true},
		{func() { g.answers(false, at(1066)) }, 1070, 61 * time.Second, true},
		{func() { g.answers(true, at(1070)); e.last = at(1075) }, 1075, 5 * time.Second, false},
		{func() { g.answers(true, at(1074)) }, 1075, 5 * time.Second, false},
		{func() { e.since, e.last = at(1090), at(1091) }, 1091, time.Second, false},
	} {
		c.does()
		if got, still := g.silence(at(1000), at(c.now)); got != c.want || still != c.still {
			t.Errorf("at %d it is silent for %v (still %v), not %v", c.now, got, still, c.want)
		}
	}
}

// many is a stream of splits of one row each, the later ones of earlier times, which are read in no time.
type many int

var manyFields = []types.Field{{Name: "ts", Type: types.TsUS}}

func init() {
	all.Sources = append(all.Sources, connectors.Source{Name: "many", Class: "Many", Options: connectors.Options{{Name: "splits", Type: connectors.Int, Doc: "How many."}},
		Stream: func(_ context.Context, req connectors.OpenRequest) (flow.Stream, error) {
			return many(req.Settings.Int("splits")), nil
		}})
}

func (n many) Fields() []types.Field { return manyFields }
func (n many) Bounded() bool         { return false }
func (n many) Updating() bool        { return false }
func (n many) Replayable() bool      { return false }

func (n many) Splits(context.Context) ([]flow.Split, error) {
	var out []flow.Split
	for i := range int(n) {
		out = append(out, flow.Split{ID: fmt.Sprintf("%04d", i)})
	}
	return out, nil
}

func (n many) Open(_ context.Context, split flow.Split, _ flow.Position) (flow.Reader, error) {
	i, err := strconv.Atoi(split.ID)
	return &manyReader{at: sec(int64(int(n) - i))}, err
}

type manyReader struct {
	at   int64
	done bool
}

// manyEnded is how many readers have handed over what they have.
var manyEnded atomic.Int64

func (r *manyReader) Read(context.Context, int) (flow.Rows, error) {
	if r.done {
		manyEnded.Add(1)
		return flow.Rows{}, io.EOF
	}
	r.done = true
	schema := arrow.NewSchema([]arrow.Field{{Name: "ts", Type: &arrow.TimestampType{Unit: arrow.Microsecond}, Nullable: true}}, nil)
	column := types.ArrayOf([]types.Value{r.at}, types.TsUS)
	return flow.Rows{Batch: array.NewRecordBatch(schema, []arrow.Array{column}, 1), Next: "1"}, nil
}

func (r *manyReader) Close() error { return nil }

// Of splits that are found together none is late against another, in whatever order they are read and however slow the steps are.
func TestSplitsFoundTogetherAreNotLate(t *testing.T) {
	const splits = 1000
	for range 5 {
		d := openDB(t)
		d.run(fmt.Sprintf("CREATE STREAM s (WATERMARK FOR ts AS ts) WITH (connector = 'many', splits = %d)", splits))
		sub := d.follow("SELECT ts FROM s", SubscribeOptions{})
		until(t, "all is read", func() bool {
			for _, more := sub.Poll(); more; _, more = sub.Poll() { // or the run would wait for who reads
			}
			return sub.Metrics().RowsIn == splits
		})
		if late := sub.Metrics().Sources["s"].Late; late != 0 {
			t.Errorf("%d rows of splits that were there from the beginning are late", late)
		}
		_ = sub.Close()
	}
}

// Rows that wait for the loop are no silence of their splits, however long it is held up: by commits that fall behind or, here, by who reads.
func TestWaitingForTheLoopIsNotIdle(t *testing.T) {
	const splits = 12 // which the queue has room for
	c := clock.NewFake(time.Unix(1000, 0))
	d := openDB(t, "idle_timeout_ms", "5000", "step_rows", "1").withClock(c)
	d.run(fmt.Sprintf("CREATE STREAM s (WATERMARK FOR ts AS ts) WITH (connector = 'many', splits = %d)", splits))
	manyEnded.Store(0)
	sub := d.follow("SELECT ts FROM s", SubscribeOptions{QueueSize: 1})
	until(t, "readers have read", func() bool { return manyEnded.Load() >= splits/2 })
	c.Advance(time.Minute)
	until(t, "all is read", func() bool {
		for _, more := sub.Poll(); more; _, more = sub.Poll() {
		}
		return sub.Metrics().RowsIn == splits
	})
	if late := sub.Metrics().Sources["s"].Late; late != 0 {
		t.Errorf("%d rows are late that were read and waited", late)
	}
	_ = sub.Close()
}

// A split that a checkpoint knows is silent only once its reader asks: a start may wait for the source's list of splits for longer than the timeout.
func TestSplitsThatAreNotReadYetAreNotIdle(t *testing.T) {
	c := clock.NewFake(time.Unix(1000, 0))
	d := openDB(t).withClock(c)
	in := &input{stream: many(2), info: incremental.SourceInfo{Source: &plan.Source{Watermark: &plan.WatermarkSpec{}}, IdleTimeout: 5 * time.Second},
		splits: map[string]*splitFeed{"a": {last: c.Now(), resumed: true}, "b": {last: c.Now(), resumed: true}}}
	r := &runner{s: d.Session, inputs: []*input{in}}
	idle := func() (out []string) {
		cut := &cut{}
		r.idle(cut)
		for _, p := range cut.in.Pushes {
			out = append(out, p.Split)
		}
		return out
	}
	c.Advance(time.Minute)
	if got := idle(); got != nil {
		t.Errorf("before the splits are listed %v are idle", got)
	}
	a, b := newGate(), newGate()
	r.take(fed{split: "a", gate: a}, &cut{})
	if got := idle(); got != nil {
		t.Errorf("while they are listed %v are idle", got)
	}
	r.take(fed{split: "b", gate: b}, &cut{})
	c.Advance(time.Minute)
	if got := idle(); got != nil {
		t.Errorf("before anybody reads %v are idle", got)
	}
	a.begins(c.Now())
	c.Advance(time.Minute)
	if got := fmt.Sprint(idle()); got != "[a]" {
		t.Errorf("of the two the one that is read is silent, and %s are idle", got)
	}
}
