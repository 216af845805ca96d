package memory

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	ct "github.com/riverbed/riverbed/connectors/connectortest"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/types"
)

var fields = []types.Field{{Name: "v", Type: types.Int64}}

func rows(values ...int64) arrow.RecordBatch {
	b := array.NewInt64Builder(memory.DefaultAllocator)
	b.AppendValues(values, nil)
	return array.NewRecordBatch(types.ArrowSchema(fields), []arrow.Array{b.NewArray()}, int64(len(values)))
}

func TestPushAndRead(t *testing.T) {
	s := New(fields, Options{Updating: true})
	s.Push(t.Context(), "", rows(1, 2, 3), nil)
	s.Push(t.Context(), "b", rows(4), []int64{-1})
	s.Close()
	if err := s.Push(t.Context(), "", rows(5), nil); !errs.Is(err, errs.Usage) {
		t.Errorf("push after close: %v", err)
	}
	got, _ := ct.Flat(ct.Drain(t, s, flow.Split{ID: DefaultSplit}, "", 2, 1))
	if strings.Join(got, " ") != "1|1 2|1 3|1" {
		t.Errorf("got %v", got)
	}
	got, _ = ct.Flat(ct.Drain(t, s, flow.Split{ID: "b"}, "", 2, 1))
	if strings.Join(got, " ") != "4|-1" {
		t.Errorf("got %v", got)
	}
}

func TestUntilLatestLeavesTheRest(t *testing.T) {
	s := New(fields, Options{})
	s.Push(t.Context(), "", rows(1, 2), nil)
	l, err := s.UntilLatest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.Push(t.Context(), "", rows(3), nil)
	if got, _ := ct.Flat(ct.Drain(t, l, flow.Split{ID: DefaultSplit}, "", 10, 1)); strings.Join(got, " ") != "1 2" {
		t.Errorf("got %v", got)
	}
	s.Close()
	if got, _ := ct.Flat(ct.Drain(t, s, flow.Split{ID: DefaultSplit}, "", 10, 1)); strings.Join(got, " ") != "3" {
		t.Errorf("the rest is %v", got)
	}
}

func TestFullQueueBlocksThePush(t *testing.T) {
	s := New(fields, Options{QueueRows: 2})
	s.Push(t.Context(), "", rows(1, 2), nil)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := s.Push(ctx, "", rows(3), nil); !errs.Is(err, errs.Cancelled) {
		t.Fatalf("a push into a full queue: %v", err)
	}
	pushed := make(chan error)
	go func() { pushed <- s.Push(t.Context(), "", rows(3), nil) }()
	r, _ := s.Open(t.Context(), flow.Split{ID: DefaultSplit}, "")
	if _, err := r.Read(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if err := <-pushed; err != nil {
		t.Fatal(err)
	}
}

func TestTryPushDoesNotWait(t *testing.T) {
	s := New(fields, Options{QueueRows: 2})
	for _, want := range []bool{true, true, false} {
		if taken, err := s.TryPush("", rows(1), nil); taken != want || err != nil {
			t.Errorf("%v (%v), want %v", taken, err, want)
		}
	}
	if _, err := s.TryPush("", rows(1), []int64{1}); !errs.Is(err, errs.Usage) {
		t.Errorf("weights: %v", err)
	}
	s.Close()
	if taken, err := s.TryPush("", rows(1), nil); taken || !errs.Is(err, errs.Usage) {
		t.Errorf("after close: %v, %v", taken, err)
	}
	if got, _ := ct.Flat(ct.Drain(t, s, flow.Split{ID: DefaultSplit}, "", 10, 1)); strings.Join(got, " ") != "1 1" {
		t.Errorf("got %v", got)
	}
}

func TestReadWaits(t *testing.T) {
	s := New(fields, Options{})
	r, _ := s.Open(t.Context(), flow.Split{ID: DefaultSplit}, "")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := r.Read(ctx, 1); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("an empty stream: %v", err)
	}
	go s.Close()
	if _, err := r.Read(t.Context(), 1); err != io.EOF {
		t.Errorf("a closed stream: %v", err)
	}
}

func TestWatermarkAndIdle(t *testing.T) {
	s := New(fields, Options{})
	changed := s.Changed()
	if err := s.AdvanceWatermark("", 10); err != nil {
		t.Fatal(err)
	}
	<-changed
	if err := s.AdvanceWatermark("", 9); !errs.Is(err, errs.Watermark) {
		t.Errorf("back: %v", err)
	}
	s.Idle("")
	s.Push(t.Context(), "", rows(1), nil)
	r, _ := s.Open(t.Context(), flow.Split{ID: DefaultSplit}, "")
	var said []string
	for range 3 {
		got, err := r.Read(t.Context(), 10)
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case got.Watermark != nil:
			said = append(said, fmt.Sprint("watermark ", *got.Watermark))
		case got.Idle:
			said = append(said, "idle")
		default:
			said = append(said, fmt.Sprint("rows ", got.Batch.NumRows()))
		}
	}
	if got := strings.Join(said, ", "); got != "watermark 10, idle, rows 1" {
		t.Error(got)
	}
}

func TestWrongRows(t *testing.T) {
	s := New([]types.Field{{Name: "v", Type: types.String}}, Options{})
	err := s.Push(t.Context(), "", rows(1), nil)
	if !errs.Is(err, errs.Schema) {
		t.Errorf("got %v", err)
	}
	if want := `CAST("v" AS VARCHAR) AS "v"`; !strings.Contains(fmt.Sprint(err), want) {
		t.Errorf("the hint is to name the cast %s: %v", want, err)
	}
}

func TestWatermarksAndIdlenessKeepTheirPlaceAmongTheRows(t *testing.T) {
	s := New(fields, Options{})
	ctx := t.Context()
	for _, say := range []func() error{
		func() error { return s.Push(ctx, "", rows(1), nil) },
		func() error { return s.AdvanceWatermark("", 7) },
		func() error { return s.Push(ctx, "", rows(2), nil) },
		func() error { s.Idle(""); s.Close(); return nil },
	} {
		if err := say(); err != nil {
			t.Fatal(err)
		}
	}
	r, err := s.Open(ctx, flow.Split{ID: DefaultSplit}, "")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for {
		said, err := r.Read(ctx, 10)
		if errors.Is(err, io.EOF) {
			break
		}
		switch {
		case err != nil:
			t.Fatal(err)
		case said.Batch != nil:
			got = append(got, said.Batch.Column(0).ValueStr(0))
		case said.Watermark != nil:
			got = append(got, fmt.Sprint("watermark ", *said.Watermark))
		case said.Idle:
			got = append(got, "idle")
		}
	}
	if want := []string{"1", "watermark 7", "2", "idle"}; !slices.Equal(got, want) {
		t.Errorf("read %q, want %q", got, want)
	}
}

func TestReadersThatAreOpenAtOnceReadTheSame(t *testing.T) {
	s := New(fields, Options{QueueRows: 4})
	ctx := t.Context()
	a, _ := s.Open(ctx, flow.Split{ID: DefaultSplit}, "")
	b, _ := s.Open(ctx, flow.Split{ID: DefaultSplit}, "")
	s.Push(ctx, "", rows(1, 2, 3), nil)
	read := func(r flow.Reader, n int) string {
		got, err := r.Read(ctx, n)
		if err != nil {
			return err.Error()
		}
		return fmt.Sprint(got.Batch.Column(0))
	}
	if got := read(a, 2) + read(a, 2) + read(b, 1); got != "[1 2][3][1]" {
		t.Errorf("read %s", got)
	}
	if n := s.splits[DefaultSplit].rows; n != 2 {
		t.Errorf("%d rows wait; the slower reader decides", n)
	}
	b.Close()
	s.Push(ctx, "", rows(4), nil)
	c, _ := s.Open(ctx, flow.Split{ID: DefaultSplit}, "")
	if got := read(a, 2) + read(c, 2); got != "[4][4]" { // what a had read is gone
		t.Errorf("read %s", got)
	}
}

func TestReadAfterTheEndOfItsContextTakesWhatIsQueued(t *testing.T) {
	s := New(fields, Options{})
	s.Push(t.Context(), "", rows(1, 2), nil)
	r, _ := s.Open(t.Context(), flow.Split{ID: DefaultSplit}, "")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := r.Read(ctx, 1); err != nil || got.Batch.NumRows() != 1 {
		t.Fatal(err)
	}
	s.Push(t.Context(), "", rows(3), nil) // comes after
	if _, err := r.Read(ctx, 10); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Read(ctx, 10); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if got, err := r.Read(t.Context(), 10); err != nil || got.Batch.NumRows() != 1 {
		t.Errorf("another context: %v", err)
	}
}

// counted is lent memory that nobody takes away.
type counted struct{ refs atomic.Int64 }

func (c *counted) Retain()           { c.refs.Add(1) }
func (c *counted) Release()          { c.refs.Add(-1) }
func (c *counted) Holds([]byte) bool { return true }

func TestLentRowsAreHeldUntilTheLastReaderHasThem(t *testing.T) {
	s := New(fields, Options{})
	c := &counted{}
	if err := s.Push(t.Context(), "", flow.LentBatch{RecordBatch: rows(1, 2, 3), Lent: c}, nil); err != nil {
		t.Fatal(err)
	}
	a, _ := s.Open(t.Context(), flow.Split{ID: DefaultSplit}, "")
	b, _ := s.Open(t.Context(), flow.Split{ID: DefaultSplit}, "")
	for i, step := range []struct {
		reader flow.Reader
		limit  int
		held   int64 // by the queue and by what was read so far
	}{{a, 2, 2}, {a, 2, 3}, {b, 2, 4}, {b, 2, 4}} {
		got, err := step.reader.Read(t.Context(), step.limit)
		if err != nil || got.Lent != flow.Lent(c) {
			t.Fatalf("read %d: %v, lent %v", i, err, got.Lent)
		}
		if n := c.refs.Load(); n != step.held {
			t.Errorf("after read %d: held %d times, not %d", i, n, step.held)
		}
	}
}

func TestWeightedRowsAreNotBorrowed(t *testing.T) {
	s := New(fields, Options{Updating: true})
	c := &counted{}
	if err := s.Push(t.Context(), "", flow.LentBatch{RecordBatch: rows(1), Lent: c}, nil); err != nil {
		t.Fatal(err)
	}
	if n := c.refs.Load(); n != 0 {
		t.Errorf("held %d times", n)
	}
}

func TestAStreamThatIsForgottenGivesBackWhatItHolds(t *testing.T) {
	c := &counted{}
	func() {
		s := New(fields, Options{})
		if err := s.Push(t.Context(), "", flow.LentBatch{RecordBatch: rows(1), Lent: c}, nil); err != nil {
			t.Fatal(err)
		}
	}()
	for c.refs.Load() != 0 {
		if t.Context().Err() != nil {
			t.Fatal("it was not given back")
		}
		runtime.GC()
		time.Sleep(time.Millisecond)
	}
}
