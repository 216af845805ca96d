package exec

import (
	"context"
	"slices"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/rowkey"
	"github.com/riverbed/riverbed/core/types"
)

// recursive runs WITH RECURSIVE: it hands out the rows of each round as they come, and keeps those of the last round, which the next one reads,
// and of UNION a key of every row. What is kept counts against the budget; where that has no room the query fails.
type recursive struct {
	node   *plan.Recursive
	env    *Env
	schema *arrow.Schema
	acct   *account

	mu    sync.Mutex
	round int
	work  []*flow.Morsel // the rows of the last round
	next  int            // of them, the next to hand out
	done  bool
	seen  map[string]bool // UNION: all rows
	keys  *rowkey.Encoder
	held  int64 // by seen
	seq   int64
}

func newRecursive(n *plan.Recursive, env *Env) (Operator, error) {
	r := &recursive{node: n, env: env, schema: schemaOf(n.Cols), acct: env.Memory.account("a recursive query", 0)}
	if !n.All {
		r.seen, r.keys = map[string]bool{}, rowkey.NewEncoder(typesOf(n.Cols), nil)
	}
	return r, nil
}

func (r *recursive) Schema() *arrow.Schema { return r.schema }
func (r *recursive) Close() error          { r.acct.close(); return nil }

func (r *recursive) Next(ctx context.Context, _ int) (*flow.Morsel, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for !r.done {
		if r.next < len(r.work) {
			m := r.work[r.next]
			r.next++
			r.seq++
			return &flow.Morsel{Seq: r.seq, Batch: m.Batch}, nil
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := r.turn(ctx); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// turn runs the next round.
func (r *recursive) turn(ctx context.Context) error {
	n := r.node.Base
	if r.round > 0 {
		rows := &workRows{WorkTable: r.node.Work, morsels: r.work}
		n = plan.MapSources(r.node.Step, func(s *plan.Source) *plan.Source {
			if s.Relation != flow.Relation(r.node.Work) {
				return s
			}
			c := *s
			c.Relation = rows
			return &c
		})
	}
	r.round++
	env := *r.env
	env.shared = nil // what a round shares it does not share with the next
	op, err := Build(n, withShared(&env, n), env.Workers)
	if err != nil {
		return err
	}
	var mu sync.Mutex
	var got []*flow.Morsel
	size := int64(0)
	err = drain(ctx, op, env.Workers, func(_ int, m *flow.Morsel) error {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, m)
		size += batchBytes(m.Batch)
		return r.acct.must(r.held + size)
	})
	if closed := op.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	sortBySeq(got)
	r.work, r.next = r.work[:0:0], 0
	for _, m := range got {
		cols, rows := m.Batch.Columns(), int(m.Batch.NumRows())
		if r.seen != nil {
			cols, rows = r.fresh(cols, rows)
		}
		if rows > 0 {
			r.work = append(r.work, &flow.Morsel{Seq: int64(len(r.work)), Batch: array.NewRecordBatch(r.schema, cols, int64(rows))})
		}
	}
	r.done = len(r.work) == 0
	return r.acct.must(r.held + size)
}

// fresh keeps the rows that were not there before.
func (r *recursive) fresh(cols []arrow.Array, n int) ([]arrow.Array, int) {
	keys := r.keys.Encode(cols, n)
	var rows []int32
	for i := range n {
		if k := string(keys.Row(i)); !r.seen[k] {
			r.seen[k] = true
			r.held += int64(len(k)) + 48
			rows = append(rows, int32(i))
		}
	}
	if len(rows) == n {
		return cols, n
	}
	return kernels.TakeBatch(cols, rows), len(rows)
}

// workRows are the rows of a round as a relation.
type workRows struct {
	*plan.WorkTable
	morsels []*flow.Morsel
}

// Stats implements flow.Relation.
func (w *workRows) Stats() flow.Stats { return flow.Stats{Rows: -1} }

// Scan implements flow.Relation.
func (w *workRows) Scan(_ context.Context, req flow.ScanRequest) (flow.Scan, error) {
	fields := make([]types.Field, len(req.Columns))
	for i, at := range req.Columns {
		fields[i] = w.Of[at]
	}
	return &workScan{rows: w, at: slices.Clone(req.Columns), schema: types.ArrowSchema(fields)}, nil
}

type workScan struct {
	rows   *workRows
	at     []int
	schema *arrow.Schema
	mu     sync.Mutex
	next   int
}

func (s *workScan) Next(context.Context, int) (*flow.Morsel, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next == len(s.rows.morsels) {
		return nil, nil
	}
	m := s.rows.morsels[s.next]
	s.next++
	cols := make([]arrow.Array, len(s.at))
	for i, at := range s.at {
		cols[i] = m.Batch.Column(at)
	}
	return &flow.Morsel{Seq: m.Seq, Batch: array.NewRecordBatch(s.schema, cols, m.Batch.NumRows())}, nil
}

func (s *workScan) Close() error { return nil }
