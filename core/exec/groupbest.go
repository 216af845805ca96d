package exec

import (
	"context"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/hashtable"
	"github.com/riverbed/riverbed/core/kernels"
)

// groupBest drops the rows that cannot be among the first of their group, before they are held and sorted: each worker keeps
// the least words of the first order key of each group, and a row with a greater word than all of them has as many rows
// before it as the limit. What it lets through holds the answer and, of groups with many rows, little more.
type groupBest struct {
	Operator
	of      *groupTopN
	workers []bestWords
}

// bestWords is one worker's groups.
type bestWords struct {
	table      hashtable.Table
	ids        []uint32
	words      []uint64
	best       []uint64 // limit words per group, rising
	count      []uint8  // how many of them are set
	seen, kept int      // of the latest rows
	tried      int      // how often it has dropped too few rows
	idle       bool     // too often, or it holds too much
}

const (
	// maxBest is the greatest limit that is worth the words.
	maxBest = 32
	// maxTried is how often it may be of little use before it is given up.
	maxTried = 4
)

func newGroupBest(g *groupTopN) Operator {
	if g.node.Limit < 1 || g.node.Limit > maxBest || len(g.node.Keys) == 0 {
		return g.input
	}
	return &groupBest{Operator: g.input, of: g, workers: make([]bestWords, g.env.Workers)}
}

func (b *groupBest) Next(ctx context.Context, worker int) (*flow.Morsel, error) {
	if err := ctx.Err(); err != nil {
		return nil, errs.New(errs.Cancelled, "run", "the query was cancelled")
	}
	m, err := b.Operator.Next(ctx, worker)
	w := &b.workers[worker]
	if err != nil || m == nil || w.idle || m.Batch.NumRows() == 0 {
		return m, err
	}
	cols, n := m.Batch.Columns(), int(m.Batch.NumRows())
	part, err := b.of.part.EvalArrays(b.of.env.Fn, cols, n)
	if err != nil {
		return nil, err
	}
	keys, err := b.of.order.prog.EvalArrays(b.of.env.Fn, cols, n)
	if err != nil {
		return nil, err
	}
	if w.table == nil {
		w.table = hashtable.NewTable(exprTypes(b.of.node.Part))
	}
	if cap(w.ids) < n {
		w.ids = make([]uint32, n)
	}
	ids := w.ids[:n]
	w.table.FindOrAdd(part, n, ids)
	w.words = kernels.FirstWords(keys[0], b.of.order.types[0], b.of.order.keys[0], w.words[:0])
	rows := w.offer(ids, int(b.of.node.Limit), b.of.node.Rank == "dense_rank")
	w.seen, w.kept = w.seen+n, w.kept+len(rows)
	if w.seen > sampleRows {
		if 4*w.kept > 3*w.seen { // many groups are new at first
			w.tried++
		}
		w.seen, w.kept = 0, 0
	}
	if size := w.table.Bytes() + int64(8*cap(w.best)); w.tried == maxTried || !b.affords(size) {
		b.workers[worker] = bestWords{idle: true}
	}
	if len(rows) == n {
		return m, nil
	}
	return morsel(b.Schema(), m.Seq, kernels.TakeBatch(cols, rows), len(rows)), nil
}

// affords reports whether a worker may hold so much beside the rows.
func (b *groupBest) affords(size int64) bool {
	limit := b.of.acct.budget.Limit()
	return limit == 0 || size <= limit/int64(16*len(b.workers))
}

// offer returns the rows that may be among the first. distinct: equal words count once.
func (w *bestWords) offer(ids []uint32, limit int, distinct bool) []int32 {
	if more := w.table.Len() - len(w.count); more > 0 {
		w.count = append(w.count, make([]uint8, more)...)
		w.best = append(w.best, make([]uint64, more*limit)...)
	}
	rows := make([]int32, 0, len(ids)/4)
	for i, g := range ids {
		x := w.words[i]
		best := w.best[int(g)*limit : (int(g)+1)*limit]
		n := int(w.count[g])
		if n == limit && x > best[n-1] {
			continue
		}
		rows = append(rows, int32(i))
		k := n
		for k > 0 && best[k-1] > x {
			k--
		}
		if distinct && k > 0 && best[k-1] == x || k == limit {
			continue
		}
		if n < limit {
			n++
			w.count[g] = uint8(n)
		}
		copy(best[k+1:n], best[k:n-1])
		best[k] = x
	}
	return rows
}
