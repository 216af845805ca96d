package exec

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/plan"
)

// overGroups computes aggregates over whole partitions without an order: rows are grouped by hash, as GROUP BY does, and each
// is given what its group has.
type overGroups struct {
	chunks  []*flow.Morsel
	ids     [][]uint32 // by chunk: the groups of its rows, as its worker numbers them
	owner   []int      // by chunk: the worker
	into    [][]uint32 // by worker: its groups among all
	results []arrow.Array
}

// unordered says that every function is an aggregate over whole partitions.
func (o *OverFuncs) unordered() bool {
	return !slices.ContainsFunc(o.items, func(it overItem) bool { return it.Agg == nil || len(it.Order) > 0 || !it.frame.whole(false) })
}

func newOverGroups(ctx context.Context, n *plan.Window, env *Env, chunks []*flow.Morsel) (*overGroups, error) {
	sortBySeq(chunks)
	g := &overGroups{chunks: chunks, ids: make([][]uint32, len(chunks)), owner: make([]int, len(chunks))}
	agg := &plan.Aggregate{Input: n.Input}
	for _, e := range n.Spec().Part {
		agg.Keys = append(agg.Keys, plan.Item{Expr: e})
	}
	for _, f := range n.Funcs {
		agg.Aggs = append(agg.Aggs, *f.Agg)
	}
	prep, err := PrepareAggregate(agg)
	if err != nil {
		return nil, err
	}
	workers := make([]*grouper, env.Workers)
	var next atomic.Int64
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	err = parallel(cancel, env.Workers, func(w int) error {
		workers[w] = prep.newGrouper(nil, true, 0)
		for i := range n.Funcs {
			if n.Funcs[i].Agg.Distinct { // told apart as they come: nothing finishes pairs here
				workers[w].pairs[i], workers[w].distinct[i] = nil, workers[w].distinctTable(i)
			}
		}
		for ctx.Err() == nil {
			i := int(next.Add(1)) - 1
			if i >= len(chunks) {
				break
			}
			rows := int(chunks[i].Batch.NumRows())
			evaluated, err := prep.Eval(env.Fn, chunks[i].Batch.Columns(), rows)
			if err != nil {
				return err
			}
			if err := workers[w].add(evaluated, rows); err != nil {
				return err
			}
			g.ids[i], g.owner[i] = slices.Clone(workers[w].ids[:rows]), w
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return g, g.merge(workers)
}

func (g *overGroups) merge(workers []*grouper) error {
	all := workers[0]
	g.into = make([][]uint32, len(workers))
	for w, of := range workers[1:] {
		into := make([]uint32, of.n)
		if of.table != nil && of.n > 0 {
			all.table.FindOrAdd(of.table.Keys(0, of.n), of.n, into)
			all.resize(all.table.Len())
		}
		g.into[w+1] = into
		if err := all.merge(of); err != nil {
			return err
		}
	}
	groups := make([]uint32, all.n)
	for i := range groups {
		groups[i] = uint32(i)
	}
	for _, acc := range all.accs {
		res, err := acc.Result(groups)
		if err != nil {
			return err
		}
		g.results = append(g.results, res)
	}
	return nil
}

// chunk gives the columns of a chunk, and the functions'.
func (g *overGroups) chunk(i int) (cols []arrow.Array, rows int, seq int64) {
	b := g.chunks[i].Batch
	idx := make([]int32, len(g.ids[i]))
	into := g.into[g.owner[i]]
	for k, id := range g.ids[i] {
		if into != nil {
			id = into[id]
		}
		idx[k] = int32(id)
	}
	return append(slices.Clone(b.Columns()), kernels.TakeBatch(g.results, idx)...), len(idx), g.chunks[i].Seq
}
