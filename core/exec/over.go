package exec

import (
	"context"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/plan"
)

// over computes window functions. It orders the rows by partition, part by part, and computes those of each part as they
// come (inorder.go). Where the keys of the partitions do not fit into entries, or there are none, it orders all rows and cuts
// them between partitions.
type over struct {
	node  *plan.Window
	env   *Env
	input Operator
	sch   *arrow.Schema
	funcs *OverFuncs
	part  *expr.Program

	acct    *account
	ran     once
	rows    *inOrder // in parts of whole partitions
	groups  *overGroups
	data    collected
	cuts    []int32 // of data, between partitions
	next    atomic.Int64
	local   []overLocal
	spilled *spread // nil: the rows fit
	parts   *parted // what this makes of each part
}

// overLocal is the rows that one worker is handing out.
type overLocal struct {
	cols []arrow.Array
	rows int
	from int
	at   int64 // of the first row
}

func newOver(n *plan.Window, env *Env) (Operator, error) {
	input, err := Build(n.Input, env, env.Workers)
	if err != nil {
		return nil, err
	}
	return newOverOver(n, env, input, 0)
}

func newOverOver(n *plan.Window, env *Env, input Operator, level int) (_ *over, err error) {
	o := &over{node: n, env: env, input: input, sch: schemaOf(n.Columns()), acct: env.Memory.account("OVER", level), local: make([]overLocal, env.Workers)}
	if o.funcs, err = NewOverFuncs(n); err != nil {
		return nil, err
	}
	o.part, err = expr.CompileAll(n.Spec().Part, layoutOf(n.Input.Columns()))
	return o, err
}

func (o *over) Schema() *arrow.Schema { return o.sch }

func (o *over) Close() error {
	o.acct.close()
	o.data, o.rows, o.groups, o.local = collected{}, nil, nil, nil
	err := o.parts.Close()
	for _, c := range []func() error{o.spilled.close, o.input.Close} {
		if e := c(); err == nil {
			err = e
		}
	}
	return err
}

func (o *over) run(ctx context.Context) error {
	g, spilled, err := collect(ctx, o.input, o.env, o.acct, nil, o.overflow())
	if err != nil {
		return err
	}
	if spilled {
		o.parts = newParted(o.env.Workers, fan, func(p int) (Operator, error) {
			if o.spilled.parts[p].rows == 0 {
				return nil, nil
			}
			return newOverOver(o.node, deeper(o.env), o.spilled.reader(p), o.acct.level+1)
		})
		return o.spilled.finish()
	}
	if o.funcs.unordered() {
		o.groups, err = newOverGroups(ctx, o.node, o.env, g.all)
		return err
	}
	spec := o.node.Spec()
	order, err := newTotal(spec.Part, spec.Order, spec.Tie, o.node.Input.Columns())
	if err != nil {
		return err
	}
	rows, err := planInOrder(ctx, o.env, o.acct, order, o.input.Schema(), g.all)
	if err != nil {
		return err
	}
	if group, ok := rows.bits(len(spec.Part)); ok && group > 0 && group <= 64 {
		o.rows = rows
		return rows.fill(ctx, group)
	}
	if err := rows.fill(ctx, 64); err != nil {
		return err
	}
	return o.inOne(ctx, rows)
}

// inOne puts the ordered rows together and cuts them between partitions.
func (o *over) inOne(ctx context.Context, rows *inOrder) error {
	sorted := make([][]*flow.Morsel, o.env.Workers)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	err := parallel(cancel, o.env.Workers, func(w int) error {
		for {
			m, err := rows.Next(ctx, w)
			if err != nil || m == nil {
				return err
			}
			sorted[w] = append(sorted[w], m)
		}
	})
	if err != nil {
		return err
	}
	var all []*flow.Morsel
	for _, s := range sorted {
		all = append(all, s...)
	}
	sortBySeq(all)
	o.data = joinMorsels(o.input.Schema(), all)
	if o.data.rows == 0 {
		return nil
	}
	marks := make([]bool, o.data.rows)
	part, err := o.part.EvalArrays(o.env.Fn, o.data.cols, o.data.rows)
	if err != nil {
		return err
	}
	for i, p := range part {
		markChanges(marks, p, o.node.Spec().Part[i].Type())
	}
	o.cuts = []int32{0}
	for _, first := range runsOf(marks)[1:] {
		if first-o.cuts[len(o.cuts)-1] >= ChunkRows || int(first) == o.data.rows {
			o.cuts = append(o.cuts, first)
		}
	}
	return nil
}

// overflow parts the rows by partition; one partition without end cannot be parted.
func (o *over) overflow() func(worker int, m *flow.Morsel) error {
	if len(o.node.Spec().Part) == 0 || o.acct.level >= maxSpillLevel || o.env.Spill == nil {
		return nil
	}
	o.spilled = newSpread(o.env, o.acct, o.input.Schema(), o.env.Workers)
	return func(w int, m *flow.Morsel) error { return o.spilled.addKeyed(w, m, o.part) }
}

// more takes the next rows that are whole partitions; ok is false behind the last.
func (o *over) more(worker int) (cols []arrow.Array, n int, at int64, ok bool) {
	if o.rows != nil {
		e, at, ok := o.rows.part(worker)
		if !ok {
			return nil, 0, 0, false
		}
		return o.rows.gather(worker, e), len(e), at, true
	}
	k := int(o.next.Add(1)) - 1
	if k+1 >= len(o.cuts) {
		return nil, 0, 0, false
	}
	from, to := o.cuts[k], o.cuts[k+1]
	return slice(o.data.cols, int(from), int(to)), int(to - from), int64(from), true
}

func (o *over) Next(ctx context.Context, worker int) (*flow.Morsel, error) {
	if err := o.ran.do(func() error { return o.run(ctx) }); err != nil {
		return nil, err
	}
	if o.parts != nil {
		return o.parts.Next(ctx, worker)
	}
	if o.groups != nil {
		i := int(o.next.Add(1)) - 1
		if i >= len(o.groups.chunks) {
			return nil, nil
		}
		cols, rows, seq := o.groups.chunk(i)
		return morsel(o.sch, seq, cols, rows), nil
	}
	l := &o.local[worker]
	for l.from == l.rows {
		if ctx.Err() != nil {
			return nil, errs.New(errs.Cancelled, "run", "the query was cancelled")
		}
		*l = overLocal{}
		cols, n, at, ok := o.more(worker)
		if !ok {
			return nil, nil
		}
		workers := 1
		if o.rows == nil && len(o.cuts) == 2 {
			workers = o.env.Workers
		}
		made, err := o.funcs.Eval(o.env.Fn, cols, n, nil, workers)
		if err != nil {
			return nil, err
		}
		*l = overLocal{cols: append(append([]arrow.Array{}, cols...), made...), rows: n, at: at}
	}
	from := l.from
	l.from = min(from+ChunkRows, l.rows)
	cols := l.cols
	if from > 0 || l.from < l.rows {
		cols = make([]arrow.Array, len(l.cols))
		for i, c := range l.cols {
			cols[i] = kernels.Slice(c, from, l.from)
		}
	}
	return morsel(o.sch, l.at+int64(from), cols, l.from-from), nil
}
