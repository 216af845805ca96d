package exec

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/hashtable"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/types"
)

// groupTopN keeps the first rows of each group. It orders the rows by group, part by part, and numbers those of each group
// as they come (inorder.go); where the keys of the groups do not fit into entries it orders all rows once and walks them
// with one counter per group.
type groupTopN struct {
	node  *plan.GroupTopN
	env   *Env
	input Operator
	sch   *arrow.Schema
	order *total
	part  *expr.Program

	acct    *account
	ran     once
	rows    *inOrder // by group
	group   uint     // bits of an entry that are its group
	peer    uint     // and its order keys
	local   []numbered
	data    collected
	perm    []int32
	nums    []int64
	next    atomic.Int64
	spilled *spread // nil: the rows fit
	parts   *parted // what this makes of each part
}

func newGroupTopN(n *plan.GroupTopN, env *Env) (Operator, error) {
	input, err := Build(n.Input, env, env.Workers)
	if err != nil {
		return nil, err
	}
	return newGroupTopNOver(n, env, input, 0)
}

func newGroupTopNOver(n *plan.GroupTopN, env *Env, input Operator, level int) (_ *groupTopN, err error) {
	g := &groupTopN{node: n, env: env, input: input, sch: schemaOf(n.Columns()), acct: env.Memory.account("ROW_NUMBER", level)}
	if g.order, err = newTotal(nil, n.Keys, n.Tie, n.Input.Columns()); err != nil {
		return nil, err
	}
	g.part, err = expr.CompileAll(n.Part, layoutOf(n.Input.Columns()))
	return g, err
}

func (g *groupTopN) Schema() *arrow.Schema { return g.sch }

func (g *groupTopN) Close() error {
	g.acct.close()
	g.data, g.perm, g.rows, g.local = collected{}, nil, nil, nil
	err := g.parts.Close()
	for _, c := range []func() error{g.spilled.close, g.input.Close} {
		if e := c(); err == nil {
			err = e
		}
	}
	return err
}

// numberRows gives equal rows equal dense numbers; without columns all rows are equal.
func numberRows(cols []arrow.Array, ts []types.Type, n int) ([]uint32, int) {
	ids := make([]uint32, n)
	if len(cols) == 0 {
		return ids, 1
	}
	table := hashtable.NewTable(ts)
	table.FindOrAdd(cols, n, ids)
	return ids, table.Len()
}

func exprTypes(es []expr.Expr) []types.Type {
	out := make([]types.Type, len(es))
	for i, e := range es {
		out[i] = e.Type()
	}
	return out
}

func (g *groupTopN) run(ctx context.Context) (err error) {
	rows, spilled, err := collect(ctx, newGroupBest(g), g.env, g.acct, nil, g.overflow())
	if err != nil {
		return err
	}
	if spilled {
		g.parts = newParted(g.env.Workers, fan, func(p int) (Operator, error) {
			if g.spilled.parts[p].rows == 0 {
				return nil, nil
			}
			return newGroupTopNOver(g.node, deeper(g.env), g.spilled.reader(p), g.acct.level+1)
		})
		return g.spilled.finish()
	}
	ok, err := g.byGroup(ctx, rows)
	if ok || err != nil {
		return err
	}
	g.data = rows.joined(g.input.Schema())
	n := g.data.rows
	part, err := g.part.EvalArrays(g.env.Fn, g.data.cols, n)
	if err != nil {
		return err
	}
	perm, err := g.order.sort(g.env, g.data)
	if err != nil {
		return err
	}
	ids, groups := numberRows(part, exprTypes(g.node.Part), n)
	var peers []uint32 // rows of one group with equal order keys, for rank and dense_rank
	if g.node.Rank != "row_number" {
		keys, err := g.order.prog.EvalArrays(g.env.Fn, g.data.cols, n)
		if err != nil {
			return err
		}
		ts := exprTypes(g.node.Part)
		for _, k := range g.node.Keys {
			ts = append(ts, k.Expr.Type())
		}
		peers, _ = numberRows(append(append([]arrow.Array{}, part...), keys[:len(g.node.Keys)]...), ts, n)
	}
	type state struct {
		rows, rank, dense int64
		peer              uint32
	}
	states := make([]state, groups)
	for _, row := range perm {
		st := &states[ids[row]]
		st.rows++
		num := st.rows
		if peers != nil {
			if p := peers[row]; st.rows == 1 || p != st.peer {
				st.peer, st.rank = p, st.rows
				st.dense++
			}
			if num = st.rank; g.node.Rank == "dense_rank" {
				num = st.dense
			}
		}
		if num <= g.node.Limit {
			g.perm = append(g.perm, row)
			g.nums = append(g.nums, num)
		}
	}
	return nil
}

// overflow parts the rows by their group; one group without end cannot be parted.
func (g *groupTopN) overflow() func(worker int, m *flow.Morsel) error {
	if len(g.node.Part) == 0 || g.acct.level >= maxSpillLevel || g.env.Spill == nil {
		return nil
	}
	g.spilled = newSpread(g.env, g.acct, g.input.Schema(), g.env.Workers)
	return func(w int, m *flow.Morsel) error { return g.spilled.addKeyed(w, m, g.part) }
}

func (g *groupTopN) Next(ctx context.Context, worker int) (*flow.Morsel, error) {
	if err := g.ran.do(func() error { return g.run(ctx) }); err != nil {
		return nil, err
	}
	if g.parts != nil {
		return g.parts.Next(ctx, worker)
	}
	if g.rows != nil {
		return g.nextOfGroups(ctx, worker)
	}
	from := g.next.Add(ChunkRows) - ChunkRows
	if from >= int64(len(g.perm)) {
		return nil, nil
	}
	to := min(from+ChunkRows, int64(len(g.perm)))
	cols := kernels.TakeBatch(g.data.cols, g.perm[from:to])
	if g.node.RowNumber != nil {
		cols = append(cols, kernels.NewFixed(arrow.PrimitiveTypes.Int64, g.nums[from:to], nil))
	}
	return morsel(g.sch, from/ChunkRows, cols, int(to-from)), nil
}

// numbered is the rows of a part that one worker is handing out, and their numbers.
type numbered struct {
	e    []kernels.SortEntry
	nums []int64
	at   int64
}

// byGroup begins to order the rows by group; ok is false where a part cannot tell its groups apart, and the rows are as they were.
func (g *groupTopN) byGroup(ctx context.Context, rows *gathered) (ok bool, err error) {
	if len(g.node.Part) == 0 {
		return false, nil
	}
	order, err := newTotal(g.node.Part, g.node.Keys, g.node.Tie, g.node.Input.Columns())
	if err != nil {
		return false, err
	}
	o, err := planInOrder(ctx, g.env, g.acct, order, g.input.Schema(), rows.all)
	if err != nil {
		return false, err
	}
	rows.all = o.chunks
	if g.group, ok = o.bits(len(g.node.Part)); !ok || g.group > 64 {
		return false, nil
	}
	if g.peer, ok = o.bits(len(g.node.Part) + len(g.node.Keys)); !ok && g.node.Rank != "row_number" {
		return false, nil
	}
	g.rows, g.local = o, make([]numbered, g.env.Workers)
	return true, o.fill(ctx, g.group)
}

// nextOfGroups hands out the first rows of the groups of a part.
func (g *groupTopN) nextOfGroups(ctx context.Context, worker int) (*flow.Morsel, error) {
	l := &g.local[worker]
	for len(l.e) == 0 {
		if ctx.Err() != nil {
			return nil, errs.New(errs.Cancelled, "run", "the query was cancelled")
		}
		e, at, ok := g.rows.part(worker)
		if !ok {
			return nil, nil
		}
		l.at = at
		l.e, l.nums = g.number(e, l.nums[:0])
	}
	n := min(len(l.e), ChunkRows)
	cols := g.rows.gather(worker, l.e[:n])
	if g.node.RowNumber != nil {
		cols = append(cols, kernels.NewFixed(arrow.PrimitiveTypes.Int64, slices.Clone(l.nums[:n]), nil))
	}
	m := morsel(g.sch, l.at, cols, n)
	l.e, l.nums, l.at = l.e[n:], l.nums[n:], l.at+int64(n)
	return m, nil
}

// number keeps the entries whose number in their group is within the limit, and gives the numbers.
func (g *groupTopN) number(e []kernels.SortEntry, nums []int64) ([]kernels.SortEntry, []int64) {
	kept := 0
	var last kernels.SortEntry
	var row, rank, dense int64
	for i, x := range e {
		if i == 0 || !x.SameFirst(last, g.group) {
			row, rank, dense = 0, 0, 0
		}
		if row++; row == 1 || !x.SameFirst(last, g.peer) {
			rank = row
			dense++
		}
		last = x
		num := row
		switch g.node.Rank {
		case "rank":
			num = rank
		case "dense_rank":
			num = dense
		}
		if num <= g.node.Limit {
			e[kept] = x
			kept++
			nums = append(nums, num)
		}
	}
	return e[:kept], nums
}
