package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/riverbed/riverbed/connectors"
	ct "github.com/riverbed/riverbed/connectors/connectortest"
	"github.com/riverbed/riverbed/core/clock"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/types"
)

// fake is a host: a source of numbers in batches of ten, and a sink that notes what it is told.
type fake struct {
	mu       sync.Mutex
	rows     int
	splits   int
	kept     bool   // with positions
	failAt   int    // the number at which a reader fails, once
	failing  string // the calls that do; "": those of a sink
	failures int    // calls that fail before one works
	waits    bool   // next waits until it is cancelled
	readers  map[int64]int
	cancels  map[int64]chan struct{}
	said     []string
}

var schema = arrow.NewSchema([]arrow.Field{{Name: "n", Type: arrow.PrimitiveTypes.Int64, Nullable: true}}, nil)

func numbers10(from, n int) arrow.RecordBatch {
	b := array.NewInt64Builder(memory.DefaultAllocator)
	for i := range n {
		b.Append(int64(from + i))
	}
	return array.NewRecordBatch(schema, []arrow.Array{b.NewArray()}, int64(n))
}

func (p *fake) call(text []byte, rows arrow.RecordBatch) ([]byte, arrow.RecordBatch, error) {
	var r struct {
		Object int64
		Call   string
		With   map[string]any
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	answer := func(v any) ([]byte, arrow.RecordBatch, error) {
		b, err := json.Marshal(v)
		return b, nil, err
	}
	if p.failures > 0 && p.failing == r.Call {
		p.failures--
		return nil, nil, errs.New(errs.Source, r.Call, "not now").AsTransient()
	}
	switch r.Call {
	case "describe":
		b, _, err := answer(Description{Rows: int64(p.rows), Splits: max(p.splits, 1), Replayable: p.kept, Where: "numbers"})
		return b, flow.NoRows(schema), err
	case "reader":
		at := 0
		if s, _ := r.With["position"].(string); s != "" {
			at, _ = strconv.Atoi(s)
		}
		p.readers[r.Object], p.cancels[r.Object] = at, make(chan struct{})
	case "next":
		at := p.readers[r.Object]
		switch {
		case p.waits:
			c := p.cancels[r.Object]
			p.mu.Unlock()
			<-c
			p.mu.Lock()
			return nil, nil, errs.New(errs.Source, "next", "it was cancelled")
		case p.failAt > 0 && at >= p.failAt:
			p.failAt = 0
			return nil, nil, errs.New(errs.Source, "next", "broken").AsTransient()
		case at >= p.rows:
			return answer(Next{End: true})
		}
		n := min(10, p.rows-at)
		p.readers[r.Object] = at + n
		beside := flow.Beside{Watermark: flow.Watermark(at + n)}
		if p.kept {
			beside.Position = flow.Position(strconv.Itoa(at + n))
		}
		b, _, err := answer(Next{Beside: string(beside.Bytes())})
		return b, numbers10(at, n), err
	case "cancel":
		close(p.cancels[r.Object])
	case "write", "flush", "stage", "begin", "commit":
		if p.failures > 0 && p.failing == "" {
			p.failures--
			return nil, nil, errs.New(errs.Source, r.Call, "not now").AsTransient()
		}
		line := r.Call
		if rows != nil {
			for i := range int(rows.NumRows()) {
				line += " " + ct.Row(rows, i)
			}
		}
		if s, ok := r.With["beside"].(string); ok {
			line += " " + s
		}
		p.said = append(p.said, line)
		if r.Call == "write" {
			return answer(Room{Full: rows.NumRows() > 2})
		}
		if r.Call == "begin" {
			return answer(Held{Marker: "m"})
		}
		if r.Call == "stage" {
			return answer(Staged{Committable: []byte("c")})
		}
	}
	return answer(struct{}{})
}

func start(t *testing.T, p *fake) *fake {
	p.readers, p.cancels = map[int64]int{}, map[int64]chan struct{}{}
	before := Registered()
	Register(p.call)
	t.Cleanup(func() { Register(before) })
	return p
}

func request0() connectors.OpenRequest { return connectors.OpenRequest{Name: "s", Clock: clock.Wall{}} }

func TestWithoutAHost(t *testing.T) {
	_, err := OpenRelation(t.Context(), "flight", nil, request0())
	if !errs.Is(err, errs.Unsupported) || !strings.Contains(err.Error(), "lives in the Python package") {
		t.Error(err)
	}
}

func TestRelation(t *testing.T) {
	start(t, &fake{rows: 35, splits: 2})
	r, err := OpenRelation(t.Context(), "x", nil, request0())
	if err != nil {
		t.Fatal(err)
	}
	if got := ct.Scan(t, r, flow.ScanRequest{}); len(got) != 70 || got[34] != "34" || got[35] != "0" {
		t.Error(got)
	}
	s, err := r.Scan(t.Context(), flow.ScanRequest{Columns: []int{}, Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	rows := int64(0)
	for {
		m, err := s.Next(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		if m == nil {
			break
		}
		if m.Batch.NumCols() != 0 {
			t.Error("columns that nobody asked for")
		}
		rows += m.Batch.NumRows()
	}
	if rows != 70 {
		t.Error(rows)
	}
}

func TestDeclaredColumns(t *testing.T) {
	start(t, &fake{rows: 1})
	for _, c := range []struct {
		field types.Field
		want  string
	}{
		{types.Field{Name: "N", Type: types.Float64}, ""},
		{types.Field{Name: "m", Type: types.Int64}, `numbers has no column "m"`},
		{types.Field{Name: "n", Type: types.Int32}, `column "n" is declared as INTEGER, and numbers has BIGINT`},
	} {
		req := request0()
		req.Schema = []types.Field{c.field}
		_, err := OpenRelation(t.Context(), "x", nil, req)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v", c.field.Name, err)
		}
	}
}

func TestStreamConformance(t *testing.T) {
	for _, kept := range []bool{false, true} {
		t.Run(fmt.Sprint("positions ", kept), func(t *testing.T) {
			start(t, &fake{rows: 57, splits: 2, kept: kept})
			ct.Stream(t, ct.StreamConfig{Limit: 4, Open: func(t testing.TB) flow.Stream {
				s, err := OpenStream(t.Context(), "x", nil, false, request0())
				if err != nil {
					t.Fatal(err)
				}
				return s
			}})
		})
	}
}

// A reader that fails: with positions it is opened again behind the rows that it gave, otherwise the run ends unless it may restart.
func TestBreak(t *testing.T) {
	for _, c := range []struct {
		kept, restart, transient bool
	}{{true, false, true}, {false, false, false}, {false, true, true}} {
		start(t, &fake{rows: 30, kept: c.kept, failAt: 10})
		s, err := OpenStream(t.Context(), "x", nil, c.restart, request0())
		if err != nil {
			t.Fatal(err)
		}
		r, err := s.Open(t.Context(), flow.Split{ID: "0"}, "")
		if err != nil {
			t.Fatal(err)
		}
		first, err := r.Read(t.Context(), 100)
		if err != nil || first.Batch.NumRows() != 10 {
			t.Fatal(first, err)
		}
		_, err = r.Read(t.Context(), 100)
		if err == nil || errs.As(err).Transient != c.transient {
			t.Errorf("%+v: %v", c, err)
		}
		if !c.transient {
			if !strings.Contains(err.Error(), "on_break = 'restart'") {
				t.Error(err)
			}
			continue
		}
		next, err := r.Read(t.Context(), 100)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := ct.Row(next.Batch, 0), map[bool]string{true: "10", false: "0"}[c.kept]; got != want {
			t.Errorf("%+v goes on with %s", c, got)
		}
	}
}

// A stream's watermark is the least of its splits', once all have one.
func TestWatermarks(t *testing.T) {
	start(t, &fake{rows: 20, splits: 2})
	s, err := OpenStream(t.Context(), "x", nil, false, request0())
	if err != nil {
		t.Fatal(err)
	}
	var marks []string
	var readers [2]flow.Reader
	for i := range readers {
		if readers[i], err = s.Open(t.Context(), flow.Split{ID: strconv.Itoa(i)}, ""); err != nil {
			t.Fatal(err)
		}
	}
	for _, i := range []int{0, 0, 1, 1} {
		rows, err := readers[i].Read(t.Context(), 100)
		if err != nil {
			t.Fatal(err)
		}
		if rows.Watermark == nil {
			marks = append(marks, "-")
		} else {
			marks = append(marks, fmt.Sprint(*rows.Watermark))
		}
	}
	if got := strings.Join(marks, " "); got != "- - 10 20" {
		t.Error(got)
	}
}

func TestCancel(t *testing.T) {
	start(t, &fake{rows: 20, waits: true})
	s, err := OpenStream(t.Context(), "x", nil, false, request0())
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Open(t.Context(), flow.Split{ID: "0"}, "")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := r.Read(ctx, 100)
		done <- err
	}()
	stop()
	if err := <-done; !errs.Is(err, errs.Cancelled) {
		t.Error(err)
	}
}

func TestSink(t *testing.T) {
	p := start(t, &fake{failures: 2})
	fields := []types.Field{{Name: "n", Type: types.Int64}}
	of := SinkOf{Connector: "x", What: "the sink", Fields: fields, Forwards: true}
	w, err := OpenSink(t.Context(), of, connectors.SinkRequest{Clock: clock.Wall{}})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := w.(connectors.Committer); ok {
		t.Error("it is no committer")
	}
	p.failures = 0
	for _, d := range []flow.Delta{
		{Batch: numbers10(1, 2), Step: 1, Watermark: 5}, {Batch: numbers10(3, 3), Step: 2, Watermark: 6}, {Step: 3, Watermark: 6}, {Step: 4, Watermark: 7},
	} {
		if err := w.Write(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	p.failures = 2
	for range 2 {
		if _, err := w.Stage(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
	}
	want := `write 1 2 {"riverbed.step":"1","riverbed.watermark":"5"}
write 3 4 5 {"riverbed.step":"2","riverbed.watermark":"6"}
flush
stage {"riverbed.watermark":"7"}
stage`
	if got := strings.Join(p.said, "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	p.failures = 5
	if _, err := w.Stage(t.Context(), 2); err == nil || !strings.Contains(err.Error(), "not now (tried 5 times)") {
		t.Error(err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

// hasty is a clock on which waiting takes no time.
type hasty struct{ *clock.Fake }

func (h hasty) Sleep(ctx context.Context, d time.Duration) error {
	h.Advance(d)
	return ctx.Err()
}

// A run waits for a service that is away for as long as it has patience.
func TestOutages(t *testing.T) {
	p := start(t, &fake{rows: 1})
	c := hasty{clock.NewFake(time.Unix(0, 0))}
	ctx := clock.NewPatience(c, time.Minute).In(t.Context())
	w, err := OpenSink(ctx, SinkOf{Connector: "x", What: "the sink", Fields: []types.Field{{Name: "n", Type: types.Int64}}}, connectors.SinkRequest{Clock: c, ExactlyOnce: true})
	if err != nil {
		t.Fatal(err)
	}
	full := flow.Delta{Batch: numbers10(1, 3)}
	for name, call := range map[string]func() error{
		"flush": func() error { return w.Write(ctx, full) },
		"stage": func() error { _, err := w.Stage(ctx, 1); return err },
		"begin": func() error { _, err := w.(connectors.Committer).Begin(ctx, ""); return err },
		"open":  func() error { _, err := OpenStream(ctx, "x", nil, false, connectors.OpenRequest{Clock: c}); return err },
	} {
		p.failing, p.failures = name, 12
		if name == "open" {
			p.failing = "source"
		}
		if err := call(); err != nil || p.failures != 0 {
			t.Errorf("%s: %v", name, err)
		}
		p.failures = 1 << 20
		if err := call(); err == nil || !errs.As(err).Transient || !strings.Contains(err.Error(), "not now (tried ") {
			t.Errorf("%s, when the patience is over: %v", name, err)
		}
		p.failures = 0
	}
}

// What had ended before a run went on counts as ended in it.
func TestSplitsThatHadEnded(t *testing.T) {
	start(t, &fake{splits: 2, kept: true})
	opened, err := OpenStream(t.Context(), "x", nil, false, request0())
	if err != nil {
		t.Fatal(err)
	}
	attended, _ := opened.(*stream).Attend()
	s := attended.(*stream)
	changed := s.Changed()
	s.Concluded("0")
	if <-changed; s.Ended() {
		t.Error("one of two has ended")
	}
	r, err := s.Open(t.Context(), flow.Split{ID: "1"}, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Read(t.Context(), 1); !errors.Is(err, io.EOF) || !s.Ended() {
		t.Error(err, s.Ended())
	}
}

func TestWeightsOfASink(t *testing.T) {
	weighted := func(w ...int64) flow.Delta {
		b := array.NewInt64Builder(memory.DefaultAllocator)
		b.AppendValues(w, nil)
		rows := numbers10(1, len(w))
		return flow.Delta{Batch: array.NewRecordBatch(flow.WithWeights(schema), append(rows.Columns(), b.NewArray()), rows.NumRows())}
	}
	fields := []types.Field{{Name: "n", Type: types.Int64}}
	for _, c := range []struct {
		weights bool
		given   []int64
		want    string
	}{
		{false, []int64{2, 1}, "write 1 1 2"},
		{false, []int64{0, 0}, ""},
		{false, []int64{-1}, "the sink can only add rows"},
		{true, []int64{2, -1}, "write 1|2 2|-1"},
	} {
		p := start(t, &fake{})
		w, err := OpenSink(t.Context(), SinkOf{Connector: "x", What: "the sink", Fields: fields, Weights: c.weights}, connectors.SinkRequest{Clock: clock.Wall{}, ExactlyOnce: true})
		if err != nil {
			t.Fatal(err)
		}
		if err = w.Write(t.Context(), weighted(c.given...)); err != nil {
			p.said = []string{err.Error()}
		}
		if got := strings.Join(p.said, "\n"); !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%v: %s", c.given, got)
		}
	}
}

func TestCommitter(t *testing.T) {
	p := start(t, &fake{})
	w, err := OpenSink(t.Context(), SinkOf{Connector: "x"}, connectors.SinkRequest{Clock: clock.Wall{}, ExactlyOnce: true})
	if err != nil {
		t.Fatal(err)
	}
	c := w.(connectors.Committer)
	if m, err := c.Begin(t.Context(), "first"); m != "m" || err != nil {
		t.Error(m, err)
	}
	if s, err := c.Stage(t.Context(), 1); string(s) != "c" || err != nil {
		t.Error(s, err)
	}
	p.failures = 1
	if err := c.Commit(t.Context(), connectors.StagedEpoch{Epoch: 1, Marker: "a", Previous: "m", Committable: []byte("c")}); err == nil || !errs.As(err).Transient {
		t.Error("the engine tries commits again, not the connector: ", err)
	}
	if err := c.Commit(t.Context(), connectors.StagedEpoch{Epoch: 1, Marker: "a", Previous: "m", Committable: []byte("c")}); err != nil {
		t.Error(err)
	}
}
