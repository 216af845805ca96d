package exec

import (
	"context"
	"math"
	"sync"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/types"
)

// collected is an input read whole, in scan order.
type collected struct {
	cols []arrow.Array
	rows int
}

// collect reads an input to its end and joins its batches in scan order.
func collect(ctx context.Context, op Operator, env *Env, name string) (collected, int64, error) {
	var mu sync.Mutex
	var all []*flow.Morsel
	var held int64
	err := drain(ctx, op, env.Workers, func(_ int, m *flow.Morsel) error {
		size := batchBytes(m.Batch)
		if err := env.Memory.Grow(name, size); err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		held += size
		all = append(all, m)
		return nil
	})
	if err != nil {
		return collected{}, held, err
	}
	sortBySeq(all)
	return joinMorsels(op.Schema(), all), held, nil
}

// total compiles an order: the keys, then the tie-break columns, over cols.
type total struct {
	prog  *expr.Program
	keys  []kernels.SortKey
	types []types.Type
}

// newTotal compiles ORDER BY keys and the columns that complete them to a total order.
func newTotal(keys []plan.SortItem, tie []expr.ColID, cols []plan.Column) (*total, error) {
	byID := map[expr.ColID]plan.Column{}
	for _, c := range cols {
		byID[c.ID] = c
	}
	t := &total{}
	var es []expr.Expr
	for _, k := range keys {
		es = append(es, k.Expr)
		t.keys = append(t.keys, kernels.SortKey{Desc: k.Key.Desc, NullsFirst: k.Key.NullsFirst, Type: k.Expr.Type()})
	}
	for _, id := range tie {
		if c, ok := byID[id]; ok { // a column pruned since is constant or unused above: it cannot decide
			es = append(es, c.Ref())
			t.keys = append(t.keys, kernels.SortKey{Exact: true, Type: c.Type})
		}
	}
	t.types = exprTypes(es)
	var err error
	t.prog, err = expr.CompileAll(es, layoutOf(cols))
	return t, err
}

// sorted is ORDER BY, with OFFSET and LIMIT when limit >= 0 (top-N). A top-N drops what lies beyond the N-th row seen so
// far before it is stored.
type sorted struct {
	input         Operator
	env           *Env
	order         *total
	offset, limit int64

	ran  once
	held int64
	data collected
	perm []int32
	next atomic.Int64
}

func newSort(in plan.Node, keys []plan.SortItem, tie []expr.ColID, offset, limit int64, env *Env) (Operator, error) {
	input, err := Build(in, env, env.Workers)
	if err != nil {
		return nil, err
	}
	order, err := newTotal(keys, tie, in.Columns())
	if err != nil {
		return nil, err
	}
	return &sorted{input: input, env: env, order: order, offset: offset, limit: limit}, nil
}

func (s *sorted) Schema() *arrow.Schema { return s.input.Schema() }

func (s *sorted) Close() error {
	s.env.Memory.Release(s.held)
	s.held = 0
	return s.input.Close()
}

func (s *sorted) run(ctx context.Context) (err error) {
	if s.limit >= 0 {
		s.data, s.held, err = s.topRows(ctx)
	} else {
		s.data, s.held, err = collect(ctx, s.input, s.env, "ORDER BY")
	}
	if err != nil {
		return err
	}
	s.perm, err = s.sortRows(s.data)
	if err != nil {
		return err
	}
	from := min(s.offset, int64(len(s.perm)))
	s.perm = s.perm[from:]
	if s.limit >= 0 {
		s.perm = s.perm[:min(s.limit, int64(len(s.perm)))]
	}
	return nil
}

func (s *sorted) sortRows(d collected) ([]int32, error) {
	keys, err := s.order.prog.EvalArrays(s.env.Fn, d.cols, d.rows)
	if err != nil {
		return nil, err
	}
	return kernels.SortIndices(keys, s.order.keys, d.rows), nil
}

// topRows keeps, per worker, the rows that were among the first N when they came; what they hold together is cut to
// the first N by the sort that follows.
func (s *sorted) topRows(ctx context.Context) (collected, int64, error) {
	keep := int(min(s.offset, math.MaxInt32) + min(s.limit, math.MaxInt32))
	if keep == 0 {
		return joinMorsels(s.input.Schema(), nil), 0, nil
	}
	tops := make([]*kernels.TopN, s.env.Workers)
	pools := make([][]*flow.Morsel, s.env.Workers)
	err := drain(ctx, s.input, s.env.Workers, func(w int, m *flow.Morsel) error {
		if tops[w] == nil {
			tops[w] = kernels.NewTopN(s.order.types, s.order.keys, keep)
		}
		n := int(m.Batch.NumRows())
		keys, err := s.order.prog.EvalArrays(s.env.Fn, m.Batch.Columns(), n)
		if err != nil {
			return err
		}
		if rows := tops[w].Offer(keys, n); len(rows) > 0 {
			pools[w] = append(pools[w], morsel(s.input.Schema(), m.Seq, kernels.TakeBatch(m.Batch.Columns(), rows), len(rows)))
		}
		return nil
	})
	if err != nil {
		return collected{}, 0, err
	}
	var all []*flow.Morsel
	for _, p := range pools {
		all = append(all, p...)
	}
	return joinMorsels(s.input.Schema(), all), 0, nil
}

func (s *sorted) Next(ctx context.Context, _ int) (*flow.Morsel, error) {
	if err := s.ran.do(func() error { return s.run(ctx) }); err != nil {
		return nil, err
	}
	from := s.next.Add(ChunkRows) - ChunkRows
	if from >= int64(len(s.perm)) {
		return nil, nil
	}
	part := s.perm[from:min(from+ChunkRows, int64(len(s.perm)))]
	return morsel(s.Schema(), from/ChunkRows, kernels.TakeBatch(s.data.cols, part), len(part)), nil
}
