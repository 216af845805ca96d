package exec

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/hashtable"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/plan"
)

func newSetOp(n *plan.SetOp, env *Env, workers int) (Operator, error) {
	if n.Kind == plan.Union {
		if n.All {
			return newUnionAll(n, env, workers)
		}
		all := *n
		all.All = true
		return newDistinct(&plan.Distinct{Input: &all}, env, workers)
	}
	left, err := Build(n.Left, env, env.Workers)
	if err != nil {
		return nil, err
	}
	right, err := Build(n.Right, env, env.Workers)
	if err != nil {
		return nil, err
	}
	return newRowCounts(n, env, left, right, 0), nil
}

// unionAll reads left, then right.
type unionAll struct {
	left, right Operator
	sch         *arrow.Schema
	onRight     []bool // per worker
}

// rightSeq puts the right input behind the left in scan order.
const rightSeq = 1 << 48

func newUnionAll(n *plan.SetOp, env *Env, workers int) (Operator, error) {
	left, err := Build(n.Left, env, workers)
	if err != nil {
		return nil, err
	}
	right, err := Build(n.Right, env, workers)
	if err != nil {
		return nil, err
	}
	return &unionAll{left, right, schemaOf(n.Cols), make([]bool, workers)}, nil
}

func (u *unionAll) Schema() *arrow.Schema { return u.sch }

func (u *unionAll) Next(ctx context.Context, worker int) (*flow.Morsel, error) {
	if !u.onRight[worker] {
		m, err := u.left.Next(ctx, worker)
		if err != nil {
			return nil, err
		}
		if m != nil {
			return morsel(u.sch, m.Seq, m.Batch.Columns(), int(m.Batch.NumRows())), nil
		}
		u.onRight[worker] = true
	}
	m, err := u.right.Next(ctx, worker)
	if err != nil || m == nil {
		return nil, err
	}
	return morsel(u.sch, m.Seq+rightSeq, m.Batch.Columns(), int(m.Batch.NumRows())), nil
}

func (u *unionAll) Close() error {
	err := u.left.Close()
	if e := u.right.Close(); err == nil {
		err = e
	}
	return err
}

// rowCounts is INTERSECT and EXCEPT [ALL]: how often each row stands on either side. Rows without room are parted with
// their counts, and the same is done for each part.
type rowCounts struct {
	node        *plan.SetOp
	env         *Env
	left, right Operator
	sch         *arrow.Schema
	acct        *account

	ran     once
	mu      sync.Mutex
	rows    hashtable.Table
	counts  [2][]int64 // left, right, by number
	out     []uint32   // row numbers, repeated as often as they appear in the result
	next    atomic.Int64
	spilled [2]*spread // nil: the rows fit
	parts   *parted
}

// newRowCounts counts the rows of two inputs. Below the top they have a column of counts behind the others.
func newRowCounts(n *plan.SetOp, env *Env, left, right Operator, level int) *rowCounts {
	return &rowCounts{node: n, env: env, left: left, right: right, sch: schemaOf(n.Cols), acct: env.Memory.account(n.Kind.String(), level),
		rows: hashtable.NewTable(typesOf(n.Cols))}
}

func (r *rowCounts) Schema() *arrow.Schema { return r.sch }

func (r *rowCounts) Close() error {
	r.acct.close()
	err := r.parts.Close()
	for _, c := range []func() error{r.spilled[0].close, r.spilled[1].close, r.left.Close, r.right.Close} {
		if e := c(); err == nil {
			err = e
		}
	}
	return err
}

func (r *rowCounts) run(ctx context.Context) error {
	for side, op := range []Operator{r.left, r.right} {
		err := drain(ctx, op, r.env.Workers, func(_ int, m *flow.Morsel) error { return r.count(side, m) })
		if err != nil {
			return err
		}
	}
	if r.spilled[0] != nil {
		return r.part()
	}
	left, right := r.counts[0], r.counts[1]
	for id, l := range left {
		var rn int64
		if id < len(right) {
			rn = right[id]
		}
		for range SetOpCount(r.node.Kind, r.node.All, l, rn) {
			r.out = append(r.out, uint32(id))
		}
	}
	return nil
}

func (r *rowCounts) count(side int, m *flow.Morsel) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	cols, ids := m.Batch.Columns(), make([]uint32, m.Batch.NumRows())
	var times []int64
	if r.acct.level > 0 {
		times = kernels.Values[int64](cols[len(cols)-1])
		cols = cols[:len(cols)-1]
	}
	r.rows.FindOrAdd(cols, len(ids), ids)
	n := &r.counts[side]
	if more := r.rows.Len() - len(*n); more > 0 {
		*n = append(*n, make([]int64, more)...)
	}
	for i, id := range ids {
		if times == nil {
			(*n)[id]++
		} else {
			(*n)[id] += times[i]
		}
	}
	size := 2*r.rows.Bytes() + 8*int64(cap(r.counts[0])+cap(r.counts[1]))
	if r.acct.level >= maxSpillLevel || r.env.Spill == nil {
		return r.acct.must(size)
	}
	if r.acct.set(size) {
		return nil
	}
	return r.flush()
}

// flush parts the rows that are held with their counts, and begins anew.
func (r *rowCounts) flush() error {
	for side, counts := range r.counts {
		if r.spilled[side] == nil {
			fields := append(append([]arrow.Field{}, r.sch.Fields()...), arrow.Field{Name: "count", Type: arrow.PrimitiveTypes.Int64})
			r.spilled[side] = newSpread(r.env, r.acct, arrow.NewSchema(fields, nil), 1)
		}
		var ids []uint32
		var some []int64
		add := func() error {
			if len(ids) == 0 {
				return nil
			}
			cols := r.rows.KeysOf(ids)
			err := r.spilled[side].add(0, append(cols, kernels.NewFixed(arrow.PrimitiveTypes.Int64, some, nil)), cols, len(ids))
			ids, some = ids[:0], nil
			return err
		}
		for id, n := range counts {
			if n == 0 {
				continue
			}
			ids, some = append(ids, uint32(id)), append(some, n)
			if len(ids) == ChunkRows {
				if err := add(); err != nil {
					return err
				}
			}
		}
		if err := add(); err != nil {
			return err
		}
	}
	r.rows, r.counts = hashtable.NewTable(typesOf(r.node.Cols)), [2][]int64{}
	r.acct.set(0)
	return nil
}

// part makes the same operator over each part of what was spilled.
func (r *rowCounts) part() error {
	if err := r.flush(); err != nil {
		return err
	}
	for _, s := range r.spilled {
		if err := s.finish(); err != nil {
			return err
		}
	}
	r.parts = newParted(r.env.Workers, fan, func(p int) (Operator, error) {
		left, right := r.spilled[0], r.spilled[1]
		if left.parts[p].rows == 0 {
			return nil, nil
		}
		return newRowCounts(r.node, deeper(r.env), left.reader(p), right.reader(p), r.acct.level+1), nil
	})
	return nil
}

// SetOpCount is how often a row stands in the result when it stands l times on the left and r times on the right.
func SetOpCount(kind plan.SetKind, all bool, l, r int64) int64 {
	switch {
	case kind == plan.Intersect && all:
		return min(l, r)
	case kind == plan.Intersect:
		return min(l, r, 1)
	case all:
		return max(l-r, 0)
	case r == 0:
		return min(l, 1)
	}
	return 0
}

func (r *rowCounts) Next(ctx context.Context, worker int) (*flow.Morsel, error) {
	if err := r.ran.do(func() error { return r.run(ctx) }); err != nil {
		return nil, err
	}
	if r.parts != nil {
		return r.parts.Next(ctx, worker)
	}
	from := r.next.Add(ChunkRows) - ChunkRows
	if from >= int64(len(r.out)) {
		return nil, nil
	}
	ids := r.out[from:min(from+ChunkRows, int64(len(r.out)))]
	return morsel(r.sch, from/ChunkRows, r.rows.KeysOf(ids), len(ids)), nil
}
