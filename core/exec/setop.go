package exec

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/hashtable"
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
	return &rowCounts{node: n, env: env, left: left, right: right, sch: schemaOf(n.Cols)}, nil
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

// rowCounts is INTERSECT and EXCEPT [ALL]: how often each row stands on either side.
type rowCounts struct {
	node        *plan.SetOp
	env         *Env
	left, right Operator
	sch         *arrow.Schema

	ran  once
	rows *hashtable.Groups
	out  []uint32 // row numbers, repeated as often as they appear in the result
	next atomic.Int64
}

func (r *rowCounts) Schema() *arrow.Schema { return r.sch }

func (r *rowCounts) Close() error {
	err := r.left.Close()
	if e := r.right.Close(); err == nil {
		err = e
	}
	return err
}

func (r *rowCounts) run(ctx context.Context) error {
	r.rows = hashtable.NewGroups(typesOf(r.node.Cols))
	var mu sync.Mutex
	count := func(op Operator) ([]int64, error) {
		var n []int64
		err := drain(ctx, op, r.env.Workers, func(_ int, m *flow.Morsel) error {
			mu.Lock()
			defer mu.Unlock()
			ids := make([]uint32, m.Batch.NumRows())
			r.rows.FindOrAdd(m.Batch.Columns(), len(ids), ids)
			for len(n) < r.rows.Len() {
				n = append(n, 0)
			}
			for _, id := range ids {
				n[id]++
			}
			return nil
		})
		return n, err
	}
	left, err := count(r.left)
	if err != nil {
		return err
	}
	right, err := count(r.right)
	if err != nil {
		return err
	}
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

func (r *rowCounts) Next(ctx context.Context, _ int) (*flow.Morsel, error) {
	if err := r.ran.do(func() error { return r.run(ctx) }); err != nil {
		return nil, err
	}
	from := r.next.Add(ChunkRows) - ChunkRows
	if from >= int64(len(r.out)) {
		return nil, nil
	}
	ids := r.out[from:min(from+ChunkRows, int64(len(r.out)))]
	return morsel(r.sch, from/ChunkRows, r.rows.KeysOf(ids), len(ids)), nil
}
