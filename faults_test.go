package riverbed

import (
	"context"
	"errors"
	"io"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/riverbed/riverbed/core/clock"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/types"
)

// scriptStream is a stream whose reads are written down: each split's reads, one after the other. A split ends behind them.
type scriptStream struct {
	fields []types.Field
	splits map[string][]func() (flow.Rows, error)
	open   bool // does not end

	mu    sync.Mutex
	reads map[string]int
	opens int
}

func (s *scriptStream) Fields() []types.Field { return s.fields }
func (s *scriptStream) Bounded() bool         { return !s.open }
func (s *scriptStream) Updating() bool        { return false }
func (s *scriptStream) Replayable() bool      { return true }
func (s *scriptStream) Splits(context.Context) ([]flow.Split, error) {
	var out []flow.Split
	for id := range s.splits {
		out = append(out, flow.Split{ID: id})
	}
	slices.SortFunc(out, func(a, b flow.Split) int { return len(a.ID) - len(b.ID) })
	return out, nil
}

func (s *scriptStream) Open(_ context.Context, sp flow.Split, from flow.Position) (flow.Reader, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opens++
	at, _ := strconv.Atoi(string(from))
	return &scriptReader{s: s, split: sp.ID, at: at}, nil
}

func (s *scriptStream) readsOf(split string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reads[split]
}

type scriptReader struct {
	s     *scriptStream
	split string
	at    int
}

func (r *scriptReader) Close() error { return nil }
func (r *scriptReader) Read(ctx context.Context, _ int) (flow.Rows, error) {
	steps := r.s.splits[r.split]
	if r.at >= len(steps) {
		if r.s.open {
			<-ctx.Done()
			return flow.Rows{}, ctx.Err()
		}
		return flow.Rows{}, io.EOF
	}
	r.s.mu.Lock()
	if r.s.reads == nil {
		r.s.reads = map[string]int{}
	}
	r.s.reads[r.split]++
	r.s.mu.Unlock()
	rows, err := steps[r.at]()
	if err == nil {
		r.at++
		rows.Next = flow.Position(strconv.Itoa(r.at))
	}
	return rows, err
}

type read = func() (flow.Rows, error)

var numbers = []types.Field{{Name: "v", Type: types.Int64}, {Name: "ts", Type: types.TsUS}}

func gives(rows ...row) read {
	return func() (flow.Rows, error) { return flow.Rows{Batch: batchOf(numbers, rows...)}, nil }
}

func fault(times int, err error, then read) read {
	return func() (flow.Rows, error) {
		if times > 0 {
			times--
			return flow.Rows{}, err
		}
		return then()
	}
}

func (d db) script(splits map[string][]read) *scriptStream {
	d.t.Helper()
	st := &scriptStream{fields: numbers, splits: splits}
	if err := d.AddStream("s", st, "ts", ""); err != nil {
		d.t.Fatal(err)
	}
	return st
}

func TestSourceThatFails(t *testing.T) {
	for _, c := range []struct {
		what string
		err  error
		kind errs.Kind
	}{
		{"an error of ours", errs.New(errs.Source, "read", "the broker went away"), errs.Source},
		{"another error", errors.New("the broker went away"), errs.Source},
	} {
		d := openDB(t)
		d.script(map[string][]read{"0": {gives(row{1, sec(1)}), fault(99, c.err, nil)}})
		sub := d.follow("SELECT v FROM s EMIT IMMEDIATE", SubscribeOptions{})
		expect(t, next(t, sub), "+1 1") // what came before is shown
		var err error
		for err == nil {
			_, err = sub.Next(t.Context())
		}
		failsWith(t, c.what, err, c.kind, "s: the broker went away")
		if m := sub.Metrics(); m.State != "failed" || m.Error == "" {
			t.Errorf("%+v", m)
		}
	}
	d := openDB(t)
	d.script(map[string][]read{"0": {func() (flow.Rows, error) { panic("boom") }}})
	sub := d.follow("SELECT v FROM s EMIT IMMEDIATE", SubscribeOptions{})
	var err error
	for err == nil {
		_, err = sub.Next(t.Context())
	}
	failsWith(t, "a panic", err, errs.Internal, "boom")
	d.is("SELECT 1", "1")
}

func TestTransientErrorsAreRetried(t *testing.T) {
	busy := errs.New(errs.Source, "read", "try later").AsTransient()
	for _, faults := range []int{4, 5} {
		c := clock.NewFake(time.Unix(0, 0))
		d := openDB(t).withClock(c)
		st := d.script(map[string][]read{"0": {gives(row{1, sec(1)}), fault(faults, busy, gives(row{2, sec(2)})), gives(row{3, sec(3)})}})
		sub := d.follow("SELECT v FROM s EMIT IMMEDIATE", SubscribeOptions{})
		stop := make(chan struct{})
		go func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(100 * time.Microsecond):
					c.Advance(time.Second)
				}
			}
		}()
		if faults < 5 {
			expect(t, accumulate(t, sub), "1", "2", "3")
			if st.opens != 1+faults {
				t.Errorf("opened %d times", st.opens)
			}
		} else {
			var err error
			for err == nil {
				_, err = sub.Next(t.Context())
			}
			failsWith(t, "five failures", err, errs.Source, "try later")
		}
		close(stop)
	}
}

func TestSourceTransactionIsOneStep(t *testing.T) {
	d := openDB(t, "step_rows", "1")
	open := func(r read) read {
		return func() (flow.Rows, error) {
			rows, err := r()
			rows.TxnOpen = true
			return rows, err
		}
	}
	d.script(map[string][]read{"0": {open(gives(row{1, sec(1)})), open(gives(row{2, sec(2)})), gives(row{3, sec(3)}), gives(row{4, sec(4)})}})
	sub := d.follow("SELECT v FROM s EMIT IMMEDIATE", SubscribeOptions{})
	expect(t, next(t, sub), "+1 1", "+1 2", "+1 3")
	expect(t, next(t, sub), "+1 4")
}

func TestSplitFarAheadWaits(t *testing.T) {
	d := openDB(t, "max_split_lead_ms", "10000")
	gate, began := make(chan struct{}), make(chan struct{})
	ahead := []read{func() (flow.Rows, error) {
		<-began // a split that has had no row holds none back
		return gives(row{0, sec(0)})()
	}}
	for i := range 199 {
		ahead = append(ahead, gives(row{i + 1, sec(int64(i + 1))}))
	}
	st := d.script(map[string][]read{"a": {gives(row{-1, sec(1)}), func() (flow.Rows, error) {
		close(began)
		<-gate
		return gives(row{-2, sec(1000)})()
	}}, "bb": ahead})
	sub := d.follow("SELECT v FROM s EMIT IMMEDIATE", SubscribeOptions{})
	go func() {
		until(t, "the split stands", func() bool {
			n := st.readsOf("bb")
			time.Sleep(20 * time.Millisecond)
			return n > 0 && n == st.readsOf("bb")
		})
		if n := st.readsOf("bb"); n == len(ahead) {
			t.Error("nothing held the split back")
		}
		close(gate)
	}()
	if got := accumulate(t, sub); len(got) != 202 {
		t.Errorf("%d rows of 202", len(got))
	}
}

func TestUndecodableRowsGoToBad(t *testing.T) {
	d := openDB(t)
	d.script(map[string][]read{"0": {func() (flow.Rows, error) {
		return flow.Rows{Batch: batchOf(numbers, row{1, sec(1)}), Bad: []flow.BadRow{{Source: "s", Split: "0", Position: "7", Raw: []byte("{x"), Error: "no JSON", Time: time.Unix(5, 0)}}}, nil
	}}})
	sub := d.follow("SELECT v FROM s EMIT IMMEDIATE", SubscribeOptions{})
	expect(t, accumulate(t, sub), "1")
	if m := sub.Metrics(); m.BadRows != 1 || m.Sources["s"].Bad != 1 {
		t.Errorf("%+v", m)
	}
	d.is("SELECT pipeline, source, split, position, error, raw, time FROM __bad", "query-1|s|0|7|no JSON|{x|1970-01-01 00:00:05")
}
