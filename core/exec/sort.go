package exec

import (
	"context"
	"math"
	"slices"
	"sync"

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

// rowOverhead is what a breaker needs for each row beside its columns: hashes and slots, or words and positions to sort.
const rowOverhead = 64

// gathered is an input that is being read to its end.
type gathered struct {
	mu    sync.Mutex
	all   []*flow.Morsel
	rows  int64
	size  int64
	twice int64   // of size: texts that the caller copies
	texts []int64 // bytes by column: what is one batch in the end must keep to 32-bit offsets
}

// collect reads an input to its end. Without room for it, it gives what it has and what is left to overflow, which takes
// every morsel from then on; overflow is nil where there is nothing but to fail. copied are columns that the caller needs room
// for twice.
func collect(ctx context.Context, op Operator, env *Env, acct *account, copied []int, overflow func(worker int, m *flow.Morsel) error) (*gathered, bool, error) {
	g := &gathered{}
	over := false
	err := drain(ctx, op, env.Workers, func(w int, m *flow.Morsel) error {
		g.mu.Lock()
		var before []*flow.Morsel
		if !over {
			twice := columnBytes(m.Batch, copied)
			size := g.size + batchBytes(m.Batch) + twice + rowOverhead*m.Batch.NumRows()
			switch {
			case (env.Spill == nil || overflow == nil || g.fits(m.Batch)) && acct.set(size):
				g.add(m, size, twice)
				g.mu.Unlock()
				return nil
			case overflow == nil || env.Spill == nil:
				err := acct.must(size)
				g.add(m, size, twice)
				g.mu.Unlock()
				return err
			}
			over = true
			before, g.all = g.all, nil
			acct.set(0)
		}
		g.mu.Unlock()
		for _, b := range before {
			if err := overflow(w, b); err != nil {
				return err
			}
		}
		return overflow(w, m)
	})
	return g, over, err
}

func (g *gathered) add(m *flow.Morsel, size, twice int64) {
	g.all = append(g.all, m)
	g.rows += m.Batch.NumRows()
	g.size = size
	g.twice += twice
}

// fits counts a batch and reports whether one batch can hold it with the others.
func (g *gathered) fits(b arrow.RecordBatch) bool {
	if g.texts == nil {
		g.texts = make([]int64, b.NumCols())
	}
	for i, c := range b.Columns() {
		if _, ok := c.DataType().(arrow.FixedWidthDataType); !ok {
			if g.texts[i] += arrayBytes(c.Data()); g.texts[i] > math.MaxInt32 {
				return false
			}
		}
	}
	return g.rows+b.NumRows() <= math.MaxInt32
}

// joined is what was gathered as one batch, in scan order.
func (g *gathered) joined(s *arrow.Schema) collected {
	sortBySeq(g.all)
	all := g.all
	g.all = nil
	return joinMorsels(s, all)
}

// total compiles an order: the keys, then the tie-break columns, over cols.
type total struct {
	prog  *expr.Program
	keys  []kernels.SortKey
	types []types.Type
	same  []int // by key: an earlier key that is the same column, or -1
	keyOf []int // by column: the first key that is this column, or -1
}

// newTotal compiles ORDER BY keys and the columns that complete them to a total order. Rows of one group come together where
// there are group keys.
func newTotal(group []expr.Expr, keys []plan.SortItem, tie []expr.ColID, cols []plan.Column) (*total, error) {
	byID := map[expr.ColID]plan.Column{}
	for _, c := range cols {
		byID[c.ID] = c
	}
	t := &total{}
	var es []expr.Expr
	for _, e := range group {
		es = append(es, e)
		t.keys = append(t.keys, kernels.SortKey{Type: e.Type()})
	}
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
	t.types, t.same, t.keyOf = exprTypes(es), sameColumns(es), make([]int, len(cols))
	for i, c := range cols {
		t.keyOf[i] = slices.IndexFunc(es, func(e expr.Expr) bool {
			ref, ok := e.(*expr.Col)
			return ok && ref.ID == c.ID
		})
	}
	var err error
	t.prog, err = expr.CompileAll(es, layoutOf(cols))
	return t, err
}

// sorted is ORDER BY, with OFFSET and LIMIT when limit >= 0. Few rows of a top-N are kept as they come (topn.go); otherwise
// the rows are ordered in memory (inorder.go), or in runs that are spilled and merged (sortruns.go).
type sorted struct {
	input         Operator
	env           *Env
	order         *total
	offset, limit int64

	ran   once
	acct  *account
	rows  *inOrder
	runs  *runs
	merge *runMerge
}

func newSort(in plan.Node, keys []plan.SortItem, tie []expr.ColID, offset, limit int64, env *Env) (Operator, error) {
	input, err := Build(in, env, env.Workers)
	if err != nil {
		return nil, err
	}
	order, err := newTotal(nil, keys, tie, in.Columns())
	if err != nil {
		return nil, err
	}
	return &sorted{input: input, env: env, order: order, offset: offset, limit: limit, acct: env.Memory.account("ORDER BY", 0)}, nil
}

func (s *sorted) Schema() *arrow.Schema { return s.input.Schema() }

func (s *sorted) Close() error {
	s.acct.close()
	s.rows = nil
	err := s.runs.close()
	if e := s.input.Close(); err == nil {
		err = e
	}
	return err
}

func (s *sorted) run(ctx context.Context) (err error) {
	var chunks []*flow.Morsel
	if s.limit >= 0 && s.limit <= maxTopRows && s.offset <= maxTopRows {
		chunks, err = s.topRows(ctx)
	} else {
		chunks, err = s.all(ctx)
	}
	if err != nil || s.runs != nil {
		return err
	}
	if s.rows, err = newInOrder(ctx, s.env, s.acct, s.order, s.Schema(), chunks); err != nil {
		return err
	}
	s.rows.only(s.offset, s.limit)
	return nil
}

// all holds the whole input, or sorts it in runs.
func (s *sorted) all(ctx context.Context) ([]*flow.Morsel, error) {
	r := newRuns(s.env, s.acct, s.order, s.Schema())
	g, spilled, err := collect(ctx, s.input, s.env, s.acct, nil, r.add)
	if !spilled {
		return g.all, err
	}
	s.runs = r
	if err != nil {
		return nil, err
	}
	if s.merge, err = r.finish(ctx); err != nil {
		return nil, err
	}
	s.merge.skip, s.merge.remain = s.offset, s.limit
	return nil, nil
}

// sort returns the rows in order.
func (t *total) sort(env *Env, d collected) ([]int32, error) {
	keys, err := t.prog.EvalArrays(env.Fn, d.cols, d.rows)
	if err != nil {
		return nil, err
	}
	return kernels.SortIndices(keys, t.keys, d.rows), nil
}

func (s *sorted) Next(ctx context.Context, worker int) (*flow.Morsel, error) {
	if err := s.ran.do(func() error { return s.run(ctx) }); err != nil {
		return nil, err
	}
	if s.merge != nil {
		return s.merge.next(ctx)
	}
	return s.rows.Next(ctx, worker)
}
