package exec

import (
	"bytes"
	"context"
	"slices"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/rowkey"
	"github.com/riverbed/riverbed/core/types"
	"github.com/riverbed/riverbed/core/window"
)

// SessionGap reads the gap of a session window.
func SessionGap(n *plan.TimeWindow) (window.Gap, error) {
	g, err := window.GapOf(n.Slide)
	if err != nil {
		e := errs.As(err)
		e.Pos = n.Pos
		return 0, e
	}
	return g, nil
}

// sessions adds to each row the start and end of its session. It reads its input by key and time, and gives rows on when the
// session of the last of them has ended, so that it holds the rows of one session.
type sessions struct {
	input Operator
	env   *Env
	acct  *account
	sch   *arrow.Schema
	gap   window.Gap
	keys  *expr.Program
	enc   *rowkey.Encoder
	time  *expr.Program
	typ   types.Type
	edge  arrow.DataType

	mu   sync.Mutex
	done bool
	seq  int64
	// waiting are batches with a row of the open session, or behind one; ready are others.
	waiting, ready []*inSessions
	held           int64
	key            []byte // of the last row
	last           int64  // its time
	open           bool   // a session is open: from row `from` of waiting[0]
	from           int
}

// inSessions is a batch and the edges of its rows.
type inSessions struct {
	cols         []arrow.Array
	times        []int64
	starts, ends []int64
	valid        []byte // nil: all have a time
	bytes        int64
}

func newSessions(n *plan.TimeWindow, env *Env) (Operator, error) {
	gap, err := SessionGap(n)
	if err != nil {
		return nil, err
	}
	order := make([]plan.SortItem, 0, len(n.Keys)+1)
	for _, e := range append(slices.Clone(n.Keys), n.Time) {
		order = append(order, plan.SortItem{Expr: e, Key: fn.SortKey{}})
	}
	s := &sessions{env: env, gap: gap, sch: schemaOf(n.Columns()), acct: env.Memory.account("SESSION", 0), typ: n.Time.Type(), edge: n.Start.Type.Arrow(), enc: rowkey.NewEncoder(exprTypes(n.Keys), nil)}
	if s.keys, err = expr.CompileAll(n.Keys, layoutOf(n.Input.Columns())); err != nil {
		return nil, err
	}
	if s.time, err = expr.Compile(n.Time, layoutOf(n.Input.Columns())); err != nil {
		return nil, err
	}
	s.input, err = newSort(n.Input, order, nil, 0, -1, env)
	return s, err
}

func (s *sessions) Schema() *arrow.Schema { return s.sch }

func (s *sessions) Close() error {
	s.acct.close()
	return s.input.Close()
}

func (s *sessions) Next(ctx context.Context, _ int) (*flow.Morsel, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.ready) == 0 && !s.done {
		m, err := s.input.Next(ctx, 0)
		if err != nil {
			return nil, err
		}
		if m == nil {
			s.end()
			s.ready, s.waiting, s.done = append(s.ready, s.waiting...), nil, true
		} else if err := s.add(m); err != nil {
			return nil, err
		}
	}
	if len(s.ready) == 0 {
		return nil, nil
	}
	b := s.ready[0]
	s.ready = s.ready[1:]
	s.held -= b.bytes
	s.acct.force(s.held)
	cols := append(slices.Clone(b.cols), kernels.NewFixed(s.edge, b.starts, b.valid), kernels.NewFixed(s.edge, b.ends, b.valid))
	s.seq++
	return morsel(s.sch, s.seq, cols, len(b.starts)), nil
}

// add walks over a batch, which follows the others in the order of keys and times.
func (s *sessions) add(m *flow.Morsel) error {
	cols, n := m.Batch.Columns(), int(m.Batch.NumRows())
	if n == 0 {
		return nil
	}
	keys, err := s.keys.EvalArrays(s.env.Fn, cols, n)
	if err != nil {
		return err
	}
	at, err := s.time.EvalArray(s.env.Fn, cols, n)
	if err != nil {
		return err
	}
	times, err := Micros(at, s.typ)
	if err != nil {
		return err
	}
	b := &inSessions{cols: cols, times: times[:n], starts: kernels.Room[int64](n), ends: kernels.Room[int64](n), bytes: batchBytes(m.Batch) + int64(24*n)}
	valid := func(int) bool { return true }
	if at.NullN() > 0 {
		b.valid, valid = kernels.Ones(n), at.IsValid
	}
	if err := s.gap.Check(b.times, valid); err != nil {
		return err
	}
	s.held += b.bytes
	if err := s.acct.must(s.held); err != nil {
		return err
	}
	s.waiting = append(s.waiting, b)
	rows := s.enc.Encode(keys, n)
	for i, t := range b.times {
		key, known := rows.Row(i), valid(i)
		if s.open && (!known || !bytes.Equal(key, s.key) || !s.gap.Joins(s.last, t)) {
			s.endBefore(i)
		}
		if !known {
			kernels.ClearBit(b.valid, i)
			b.starts[i], b.ends[i] = 0, 0
			continue
		}
		if !s.open {
			s.open, s.from = true, i
			s.ready, s.waiting = append(s.ready, s.waiting[:len(s.waiting)-1]...), s.waiting[len(s.waiting)-1:]
		}
		s.last = t
		s.key = append(s.key[:0], key...)
	}
	if !s.open {
		s.ready, s.waiting = append(s.ready, s.waiting...), nil
	}
	return nil
}

// end closes the open session behind the last row.
func (s *sessions) end() {
	if s.open {
		s.endBefore(len(s.waiting[len(s.waiting)-1].times))
	}
}

// endBefore closes the open session before a row of the last batch.
func (s *sessions) endBefore(row int) {
	from := s.from
	start := s.waiting[0].times[from]
	for i, b := range s.waiting {
		to := len(b.times)
		if i == len(s.waiting)-1 {
			to = row
		}
		for j := from; j < to; j++ {
			b.starts[j], b.ends[j] = start, s.gap.End(s.last)
		}
		from = 0
	}
	s.open = false
}
