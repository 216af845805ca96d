package exec

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/plan"
)

// Unnest makes a row of each item of lists. It serves both modes.
type Unnest struct {
	lists   *expr.Program
	pass    []int // where the columns that are handed on lie in the input
	ordinal bool
	outer   bool
}

// NewUnnest compiles the node.
func NewUnnest(n *plan.Unnest) (*Unnest, error) {
	layout := layoutOf(n.Input.Columns())
	es := make([]expr.Expr, len(n.Lists))
	for i, it := range n.Lists {
		es[i] = it.Expr
	}
	prog, err := expr.CompileAll(es, layout)
	if err != nil {
		return nil, err
	}
	u := &Unnest{lists: prog, pass: make([]int, len(n.Pass)), ordinal: n.Ordinality != nil, outer: n.Outer}
	for i, c := range n.Pass {
		u.pass[i] = layout[c.ID]
	}
	return u, nil
}

// Items are the rows that one batch becomes, made piece by piece: a list may be much longer than a batch.
type Items struct {
	u    *Unnest
	env  *fn.Env
	cols []arrow.Array
	n    int
	// The lists of rows [from, to) are there. How many rows are evaluated at once follows from how many items they had.
	from, to, step int
	lists          []list
	row, item      int // the next row, counted from from, and the item in it
}

// list is one column of lists.
type list struct {
	arr    arrow.Array
	spans  []int32
	values arrow.Array
}

// length of row i.
func (l *list) length(i int) int {
	if l.arr.IsNull(i) {
		return 0
	}
	return int(l.spans[i+1] - l.spans[i])
}

const firstRowsOfLists = 256

// Of begins with a batch of n rows.
func (u *Unnest) Of(env *fn.Env, cols []arrow.Array, n int) *Items {
	return &Items{u: u, env: env, cols: cols, n: n, step: firstRowsOfLists}
}

// Next returns at most ChunkRows rows, and for each the row of the batch that it stems from; none at the end.
func (x *Items) Next() ([]arrow.Array, []int32, error) {
	for {
		if x.row == x.to-x.from {
			if x.to == x.n {
				return nil, nil, nil
			}
			if err := x.evaluate(); err != nil {
				return nil, nil, err
			}
		}
		if cols, rows := x.piece(); len(rows) > 0 {
			return cols, rows, nil
		}
	}
}

// evaluate computes the lists of the next rows.
func (x *Items) evaluate() error {
	x.from, x.row, x.item = x.to, 0, 0
	x.to = min(x.n, x.from+x.step)
	arrs, err := x.u.lists.EvalArrays(x.env, slice(x.cols, x.from, x.to), x.to-x.from)
	if err != nil {
		return err
	}
	x.lists = make([]list, len(arrs))
	items := 0
	for i, a := range arrs {
		x.lists[i] = list{a, kernels.ListSpans(a), a.(*array.List).ListValues()}
		items += x.lists[i].values.Len()
	}
	switch {
	case items < ChunkRows:
		x.step *= 4
	case items > 4*ChunkRows:
		x.step = max(1, x.step/4)
	}
	return nil
}

// piece lays out the next rows of those whose lists are there.
func (x *Items) piece() ([]arrow.Array, []int32) {
	rows := make([]int32, 0, min(ChunkRows, x.to-x.from))
	var ordinals []int64
	at := make([][]int32, len(x.lists))
	for ; x.row < x.to-x.from && len(rows) < ChunkRows; x.row++ {
		most := 0
		for i := range x.lists {
			most = max(most, x.lists[i].length(x.row))
		}
		lone := most == 0 && x.u.outer
		if lone {
			most = 1
		}
		end := min(most, x.item+ChunkRows-len(rows))
		for i := range x.lists {
			l := &x.lists[i]
			have := l.length(x.row)
			for k := x.item; k < end; k++ {
				if k < have {
					at[i] = append(at[i], l.spans[x.row]+int32(k))
				} else {
					at[i] = append(at[i], -1)
				}
			}
		}
		for k := x.item; k < end; k++ {
			rows = append(rows, int32(x.from+x.row))
			if x.u.ordinal && !lone {
				ordinals = append(ordinals, int64(k+1))
			} else if x.u.ordinal {
				ordinals = append(ordinals, 0) // no item: NULL
			}
		}
		if end < most {
			x.item = end
			break
		}
		x.item = 0
	}
	if len(rows) == 0 {
		return nil, nil
	}
	out := make([]arrow.Array, 0, len(x.u.pass)+len(x.lists)+1)
	whole := isIdentity(rows, x.n)
	for _, p := range x.u.pass {
		if whole {
			out = append(out, x.cols[p])
		} else {
			out = append(out, kernels.Take(x.cols[p], rows))
		}
	}
	for i := range x.lists {
		out = append(out, kernels.Take(x.lists[i].values, at[i]))
	}
	if x.u.ordinal {
		valid := kernels.Ones(len(ordinals))
		for i, o := range ordinals {
			if o == 0 {
				kernels.ClearBit(valid, i)
			}
		}
		out = append(out, kernels.NewFixed(arrow.PrimitiveTypes.Int64, ordinals, valid))
	}
	return out, rows
}

// unnest is the batch operator. What a morsel becomes goes out in several, under its number.
type unnest struct {
	input  Operator
	schema *arrow.Schema
	u      *Unnest
	env    *Env
	open   []opened // of each worker
}

type opened struct {
	items *Items
	seq   int64
	some  bool // something came of the morsel
}

func newUnnest(n *plan.Unnest, env *Env, workers int) (Operator, error) {
	input, err := Build(n.Input, env, workers)
	if err != nil {
		return nil, err
	}
	u, err := NewUnnest(n)
	if err != nil {
		return nil, err
	}
	return &unnest{input: input, schema: schemaOf(n.Columns()), u: u, env: env, open: make([]opened, workers)}, nil
}

func (o *unnest) Schema() *arrow.Schema { return o.schema }
func (o *unnest) Close() error          { return o.input.Close() }

func (o *unnest) Next(ctx context.Context, worker int) (*flow.Morsel, error) {
	for w := &o.open[worker]; ; {
		if w.items == nil {
			m, err := o.input.Next(ctx, worker)
			if err != nil || m == nil {
				return nil, err
			}
			*w = opened{items: o.u.Of(o.env.Fn, m.Batch.Columns(), int(m.Batch.NumRows())), seq: m.Seq}
		}
		cols, rows, err := w.items.Next()
		if err != nil {
			return nil, err
		}
		if rows != nil {
			w.some = true
			return morsel(o.schema, w.seq, cols, len(rows)), nil
		}
		if w.items = nil; !w.some {
			return emptyMorsel(o.schema, w.seq), nil
		}
	}
}
