package exec

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/hashtable"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/types"
)

// normalize makes rows of input without old images. It reads all of it; the last row of each key and split stays, unless it
// deletes, and of one key's the row of its last split.
type normalize struct {
	node  *plan.Normalize
	env   *Env
	input Operator
	sch   *arrow.Schema
	key   []int // positions among the columns
	types []types.Type

	acct *account
	ran  once
	cols []arrow.Array // of what stays
	rows int
	next atomic.Int64
}

func newNormalize(n *plan.Normalize, env *Env) (Operator, error) {
	input, err := Build(n.Input, env, env.Workers)
	if err != nil {
		return nil, err
	}
	o := &normalize{node: n, env: env, input: input, sch: schemaOf(n.Columns()), acct: env.Memory.account("normalize", 0)}
	at := layoutOf(n.Columns())
	for _, id := range n.Key {
		o.key = append(o.key, at[id])
		o.types = append(o.types, n.Columns()[at[id]].Type)
	}
	return o, nil
}

func (o *normalize) Schema() *arrow.Schema { return o.sch }

func (o *normalize) Close() error {
	o.acct.close()
	return o.input.Close()
}

func (o *normalize) run(ctx context.Context) error {
	all, _, err := collect(ctx, o.input, o.env, o.acct, nil, nil) // it follows the scan's order, so there are no parts to spill
	if err != nil {
		return err
	}
	data := all.joined(o.input.Schema())
	n := len(o.sch.Fields()) // behind the columns: the split and the weight, as scan reads them
	split, weight := kernels.Values[int64](data.cols[n]), kernels.Values[int64](data.cols[n+1])
	key := make([]arrow.Array, len(o.key))
	for i, at := range o.key {
		key[i] = data.cols[at]
	}
	groups := hashtable.NewGroups(o.types)
	ids := make([]uint32, data.rows)
	groups.FindOrAdd(key, data.rows, ids)
	own, count := numberRows(slices.Concat(key, data.cols[n:n+1]), slices.Concat(o.types, []types.Type{types.Int64}), data.rows)
	last := make([]int32, count) // by key and split
	for row, id := range own {
		last[id] = int32(row)
	}
	stands := slices.Repeat([]int32{-1}, groups.Len()) // by key
	for _, row := range last {
		if k := ids[row]; weight[row] > 0 && (stands[k] < 0 || split[row] > split[stands[k]]) {
			stands[k] = row
		}
	}
	var rows []int32
	var shown []uint32
	for k, row := range stands {
		if row >= 0 {
			rows, shown = append(rows, row), append(shown, uint32(k))
		}
	}
	o.cols, o.rows = kernels.TakeBatch(data.cols[:n], rows), len(rows)
	for i, col := range groups.KeysOf(shown) { // a key is shown as a group is: 0.0 for -0.0
		o.cols[o.key[i]] = col
	}
	return nil
}

func (o *normalize) Next(ctx context.Context, _ int) (*flow.Morsel, error) {
	if err := o.ran.do(func() error { return o.run(ctx) }); err != nil {
		return nil, err
	}
	from := o.next.Add(ChunkRows) - ChunkRows
	if from >= int64(o.rows) {
		return nil, nil
	}
	to := min(from+ChunkRows, int64(o.rows))
	return morsel(o.sch, from/ChunkRows, slice(o.cols, int(from), int(to)), int(to-from)), nil
}
