package incremental

import (
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/exec"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/state"
)

// groupingSets is an aggregate for each of several sets of keys. A row goes to the groups that it is in, one of each set, wherever these
// are; the keys that a set leaves out are NULL in its rows.
//
//	in:    any weights        out: that of the aggregates
//	state: aggregate_groups_set_0, …_1, …    group key of one set → row count, accumulators
//	time:  as an aggregate's; a key that is in every set closes the groups
type groupingSets struct {
	node *plan.Aggregate
	prep *exec.Prepared // over all keys, then the arguments
	sets []*aggregate
	rows [][]int32 // of the batch, by set
}

func newGroupingSets(n *plan.Aggregate, emit plan.EmitPolicy) (Operator, error) {
	g := &groupingSets{node: n, rows: make([][]int32, len(n.Sets))}
	var err error
	if g.prep, err = exec.PrepareAggregate(n); err != nil {
		return nil, err
	}
	for i, set := range n.Sets {
		of := &plan.Aggregate{Input: n.Input, Aggs: n.Aggs}
		for _, k := range set {
			of.Keys = append(of.Keys, n.Keys[k])
		}
		a, err := newAggregateOf(of, emit, "_set_"+strconv.Itoa(i))
		if err != nil {
			return nil, err
		}
		a.shape = func(cols []arrow.Array, rows int) []arrow.Array { return g.shown(set, cols, rows) }
		g.sets = append(g.sets, a)
	}
	return g, nil
}

// shown puts the keys of a set in their places, and NULLs in those of the others.
func (g *groupingSets) shown(set []int, cols []arrow.Array, n int) []arrow.Array {
	out := make([]arrow.Array, len(g.node.Keys), len(g.node.Keys)+len(cols)+1)
	var left int64
	for i, k := range g.node.Keys {
		out[i] = kernels.Nulls(k.Expr.Type().Arrow(), n)
		left |= 1 << (len(g.node.Keys) - 1 - i)
	}
	for i, k := range set {
		out[k] = cols[i]
		left &^= 1 << (len(g.node.Keys) - 1 - k)
	}
	out = append(out, cols[len(set):]...)
	if g.node.GroupingID != nil {
		out = append(out, int64Array(filled(n, left)))
	}
	return out
}

func (g *groupingSets) own(instance, of int) {
	for _, a := range g.sets {
		a.own(instance, of)
	}
}

// Prepare repeats the rows for each set, with the hash of its keys and its number behind the columns.
func (g *groupingSets) Prepare(env *fn.Env, _ int, d flow.Delta) (Batch, error) {
	n, m := d.Rows(), len(g.sets)
	cols, err := g.prep.Eval(env, d.Columns(), n)
	if err != nil {
		return Batch{}, err
	}
	rows, numbers := make([]int32, 0, n*m), make([]int64, 0, n*m)
	hash := make([]uint64, 0, n*m)
	for j, set := range g.node.Sets {
		keys := make([]arrow.Array, len(set))
		for i, k := range set {
			keys[i] = cols[k]
		}
		hash = append(hash, hashOf(keys, n)...)
		for i := range n {
			rows, numbers = append(rows, int32(i)), append(numbers, int64(j))
		}
	}
	out := Batch{Cols: cols, N: n, W: d.Weights()}
	out = out.take(rows)
	out.Hash = hash
	out.Cols = append(out.Cols, int64Array(numbers))
	return out, nil
}

func (g *groupingSets) Process(ctx *Ctx, port int, in Batch) error {
	for j := range g.rows {
		g.rows[j] = g.rows[j][:0]
	}
	last := len(in.Cols) - 1
	for i, j := range kernels.Values[int64](in.Cols[last])[:in.N] {
		g.rows[j] = append(g.rows[j], int32(i))
	}
	nk := len(g.node.Keys)
	for j, rows := range g.rows {
		if len(rows) == 0 {
			continue
		}
		own := Batch{N: in.N, W: in.W, Hash: in.Hash}
		for _, k := range g.node.Sets[j] {
			own.Cols = append(own.Cols, in.Cols[k])
		}
		own.Cols = append(own.Cols, in.Cols[nk:last]...)
		if err := g.sets[j].Process(ctx, port, own.take(rows)); err != nil {
			return err
		}
	}
	return nil
}

func (g *groupingSets) Advance(ctx *Ctx, w flow.Watermark) error {
	for _, a := range g.sets {
		if err := a.Advance(ctx, w); err != nil {
			return err
		}
	}
	return nil
}

func (g *groupingSets) Tables() (out []state.Stored) {
	for _, a := range g.sets {
		out = append(out, a.Tables()...)
	}
	return out
}

func (g *groupingSets) evictable() (out []evicted) {
	for _, a := range g.sets {
		out = append(out, a.evictable()...)
	}
	return out
}

func (g *groupingSets) Restored(env *fn.Env) error {
	for _, a := range g.sets {
		if err := a.Restored(env); err != nil {
			return err
		}
	}
	return nil
}
