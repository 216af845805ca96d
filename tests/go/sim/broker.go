package sim

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/types"
)

// processes are those that live, by number: connectors and stores are found by names, and names are text.
var processes sync.Map

func processOf(id string) *Process {
	p, _ := processes.Load(id)
	out, _ := p.(*Process)
	return out
}

// row is a row of a topic: its key, its value and its event time in microseconds, and how often it is there more.
type row struct{ k, v, ts, weight int64 }

// topic is a stream of the broker: partitions of rows.
type topic struct {
	name       string
	watermark  string
	updating   bool
	partitions [][]row
	freed      []int // rows of each partition that the broker has dropped, since a consumer said that it needs them no more
}

// broker holds topics.
type broker struct{ topics []*topic }

var topicFields = []types.Field{{Name: "k", Type: types.Int64}, {Name: "v", Type: types.Int64}, {Name: "ts", Type: types.TsUS}}

// newBroker draws what a query reads: few keys, so that they meet, and event times that come out of order and late.
func newBroker(w *World, q query) *broker {
	b := &broker{}
	for _, name := range q.topics {
		r := w.draw("topic", name)
		t := &topic{name: name, updating: q.updating}
		if q.watermark {
			t.watermark = fmt.Sprintf("ts - INTERVAL '%d seconds'", lagSeconds)
		}
		for range 1 + r.IntN(3) {
			rows, now := []row{}, int64(0)
			for range 5 + r.IntN(50) {
				now += r.Int64N(1_500_000)
				ts := now - r.Int64N(2_000_000)
				if r.IntN(8) == 0 {
					ts -= 6_000_000
				}
				one := row{r.Int64N(5), r.Int64N(20), max(ts, 0), 1}
				if n := len(rows); t.updating && n > 0 && r.IntN(3) == 0 {
					one = rows[r.IntN(n)] // a row that came goes, if it is still there
					one.weight = -1
					if sum := standing(rows, one); sum <= 0 {
						one.weight = 1
					}
				}
				rows = append(rows, one)
			}
			t.partitions = append(t.partitions, rows)
		}
		t.freed = make([]int, len(t.partitions))
		b.topics = append(b.topics, t)
	}
	return b
}

// standing is how often a row is there.
func standing(rows []row, one row) (n int64) {
	for _, r := range rows {
		if r.k == one.k && r.v == one.v && r.ts == one.ts {
			n += r.weight
		}
	}
	return n
}

// stream is a topic as a process reads it.
type stream struct {
	p *Process
	t *topic
}

func (s *stream) Fields() []types.Field { return topicFields }
func (s *stream) Bounded() bool         { return true }
func (s *stream) Updating() bool        { return s.t.updating }
func (s *stream) Replayable() bool      { return true }

func (s *stream) Splits(ctx context.Context) (out []flow.Split, err error) {
	err = s.p.w.do(ctx, s.p, "broker", "partitions", s.t.name, func() error { return nil })
	for i := range s.t.partitions {
		out = append(out, flow.Split{ID: strconv.Itoa(i)})
	}
	return out, err
}

func (s *stream) Open(ctx context.Context, sp flow.Split, from flow.Position) (flow.Reader, error) {
	part, err := strconv.Atoi(sp.ID)
	at := 0
	if err == nil && from != "" {
		at, err = strconv.Atoi(string(from))
	}
	if err != nil {
		return nil, errs.Bug("read", "%v", err)
	}
	r := &reader{s: s, part: part, at: at, name: s.t.name + "/" + sp.ID}
	freed := 0
	if err := s.p.w.do(ctx, s.p, "broker", "seek", fmt.Sprint(r.name, "@", at), func() error { freed = s.t.freed[part]; return nil }); err != nil {
		return nil, err
	}
	if at < freed {
		s.p.w.told("%s from row %d", r.name, at)
		return nil, errs.New(errs.State, "read", "rows before %d of %s are gone: a checkpoint was said to have them, and now they are read from row %d", freed, r.name, at)
	}
	return r, nil
}

// Acknowledge frees what is behind a checkpoint, as a replication slot does.
func (s *stream) Acknowledge(ctx context.Context, upTo map[string]flow.Position) error {
	return s.p.w.do(ctx, s.p, "broker", "acknowledge", s.t.name, func() error {
		for id, at := range upTo {
			part, err := strconv.Atoi(id)
			n, err2 := strconv.Atoi(string(at))
			if err != nil || err2 != nil {
				return errs.Bug("acknowledge", "%s at %s", id, at)
			}
			s.t.freed[part] = max(s.t.freed[part], n)
		}
		return nil
	})
}

// reader reads a partition.
type reader struct {
	s    *stream
	part int
	at   int
	name string
}

func (r *reader) Close() error { return nil }

func (r *reader) Read(ctx context.Context, _ int) (out flow.Rows, err error) {
	rows := r.s.t.partitions[r.part]
	w := r.s.p.w
	n := min(1+w.draw("read", r.name, r.at).IntN(8), len(rows)-r.at)
	if err := w.do(ctx, r.s.p, "broker", "fetch", fmt.Sprint(r.name, "@", r.at), func() error { return nil }); err != nil {
		return out, err
	}
	if n == 0 {
		return out, io.EOF
	}
	fields := topicFields
	if r.s.t.updating {
		fields = append(fields[:len(fields):len(fields)], types.Field{Name: flow.WeightColumn, Type: types.Int64})
	}
	cols := make([][]types.Value, 4)
	for _, one := range rows[r.at : r.at+n] {
		for c, v := range []int64{one.k, one.v, one.ts, one.weight} {
			cols[c] = append(cols[c], v)
		}
	}
	r.at += n
	out.Next = flow.Position(strconv.Itoa(r.at))
	out.Batch = batchOf(fields, cols)
	return out, nil
}

func batchOf(fields []types.Field, cols [][]types.Value) arrow.RecordBatch {
	arrays := make([]arrow.Array, len(fields))
	for i, f := range fields {
		arrays[i] = types.ArrayOf(cols[i], f.Type)
	}
	return array.NewRecordBatch(types.ArrowSchema(fields), arrays, int64(len(cols[0])))
}
