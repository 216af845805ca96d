package exec

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/hashtable"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/plan"
)

// leftBuilt is a semi or anti join whose left input is much the smaller: it is the left that is held, and the right streams
// past it and marks the rows that it matches. The rows come out in scan order as from a join that holds its right.
type leftBuilt struct {
	node        *plan.Join
	env         *Env
	left, right Operator
	leftKeys    *expr.Program
	rightKeys   *expr.Program
	on          *pairFilter // nil: always true

	acct    *account
	ran     once
	table   *hashtable.Join
	texts   []int // columns of the left side whose bytes the table copies
	build   collected
	spilled *graceJoin // nil: the left side fits
	rows    []int32    // of the result
	next    atomic.Int64
}

func newLeftBuilt(n *plan.Join, env *Env) (Operator, error) {
	left, err := Build(n.Left, env, env.Workers)
	if err != nil {
		return nil, err
	}
	right, err := Build(n.Right, env, env.Workers)
	if err != nil {
		return nil, err
	}
	return newLeftBuiltOver(n, env, left, right, 0)
}

func newLeftBuiltOver(n *plan.Join, env *Env, left, right Operator, level int) (*leftBuilt, error) {
	c, err := compileJoin(n)
	return &leftBuilt{node: n, env: env, left: left, right: right, leftKeys: c.left, rightKeys: c.right, on: c.on, table: c.table,
		acct:  env.Memory.account("join", level),
		texts: keyTexts(n.Left.Columns(), n.Keys, func(k plan.EquiKey) expr.Expr { return k.Left })}, err
}

func (j *leftBuilt) Schema() *arrow.Schema { return j.left.Schema() }

func (j *leftBuilt) Close() error {
	j.acct.close()
	j.build = collected{}
	err := j.spilled.close()
	if e := closeBoth(j.left, j.right); err == nil {
		err = e
	}
	return err
}

// narrow passes a set of a join above on: a left row that it drops drops only itself.
func (j *leftBuilt) narrow(m *membership) { narrowInput(j.left, j.node, m) }

func (j *leftBuilt) run(ctx context.Context) (err error) {
	grace := j.grace()
	g, spilled, err := collect(ctx, j.left, j.env, j.acct, j.texts, grace.overflow())
	if spilled {
		j.spilled = grace
		if err != nil {
			return err
		}
		return grace.run(ctx, j.right, j.env.Workers, j.rightKeys)
	}
	if j.build = g.joined(j.left.Schema()); err != nil || j.build.rows == 0 && j.env.Bad == nil {
		return err
	}
	keys, err := j.leftKeys.EvalArrays(j.env.Fn, j.build.cols, j.build.rows)
	if err != nil {
		return err
	}
	j.table.Build(keys, j.build.rows)
	j.acct.force(max(g.size, j.table.Bytes()+g.size-g.twice-rowOverhead*g.rows))
	j.table.TrackMatches()
	if j.on == nil {
		j.table.TrackKeys()
	}
	offerKeys(j.right, j.table, keys, j.node.Keys, func(k plan.EquiKey) expr.Expr { return k.Right })
	probers := make([]*prober, j.env.Workers)
	err = drain(ctx, j.right, j.env.Workers, func(w int, m *flow.Morsel) error {
		p := probers[w]
		if p == nil {
			p = &prober{p: j.table.Prober()}
			if j.on != nil {
				p.probe, p.bld = make([]int32, pairRows), make([]int32, pairRows)
			}
			probers[w] = p
		}
		n := int(m.Batch.NumRows())
		keys, err := j.rightKeys.EvalArrays(j.env.Fn, m.Batch.Columns(), n)
		if err != nil {
			return err
		}
		if j.on == nil {
			p.p.MarkKeys(keys, n)
			return nil
		}
		p.p.Probe(keys, n)
		return j.markPairs(p, m.Batch.Columns())
	})
	if err != nil {
		return err
	}
	j.table.SpreadKeys()
	list := j.table.Matched
	if j.node.Kind == plan.Anti {
		list = j.table.Unmatched
	}
	rows := make([]int32, j.build.rows)
	k, _ := list(0, rows)
	j.rows = slices.Clip(rows[:k])
	return nil
}

// markPairs forms the pairs with the rows of a batch of the right and marks the left rows of those that pass On.
func (j *leftBuilt) markPairs(p *prober, right []arrow.Array) error {
	for {
		k := p.p.Next(p.probe, p.bld)
		if k == 0 {
			return nil
		}
		left, _, err := j.on.keep(j.env.Fn, j.build.cols, right, p.bld[:k], p.probe[:k])
		if err != nil {
			return err
		}
		j.table.Mark(left)
	}
}

func (j *leftBuilt) Next(ctx context.Context, worker int) (*flow.Morsel, error) {
	if err := j.ran.do(func() error { return j.run(ctx) }); err != nil {
		return nil, err
	}
	if j.spilled != nil {
		return j.spilled.parts.Next(ctx, worker)
	}
	from := j.next.Add(ChunkRows) - ChunkRows
	if from >= int64(len(j.rows)) {
		return nil, nil
	}
	part := j.rows[from:min(from+ChunkRows, int64(len(j.rows)))]
	return morsel(j.Schema(), from/ChunkRows, kernels.TakeBatch(j.build.cols, part), len(part)), nil
}
