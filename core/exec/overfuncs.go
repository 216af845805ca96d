package exec

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/types"
)

// OverFuncs are the window functions of a node, compiled. Both modes compute them from rows that stand in order. All functions have
// one PARTITION BY, and ORDER BYs that begin each other (the rules see to that).
type OverFuncs struct {
	node  *plan.Window
	prog  *expr.Program
	types []types.Type
	part  int   // partition keys come first among what is evaluated
	order []int // then the order keys
	items []overItem
	aggs  *Prepared
}

// overItem is one function: where its arguments are among what is evaluated.
type overItem struct {
	plan.WindowItem
	args  []int
	frame *overFrame
	agg   int // among the aggregates; -1: none
}

// NewOverFuncs compiles the functions of a node.
func NewOverFuncs(n *plan.Window) (*OverFuncs, error) {
	o := &OverFuncs{node: n}
	spec := n.Spec()
	var es []expr.Expr
	add := func(e expr.Expr) int {
		es = append(es, e)
		return len(es) - 1
	}
	for _, e := range spec.Part {
		add(e)
	}
	o.part = len(spec.Part)
	for _, k := range spec.Order {
		o.order = append(o.order, add(k.Expr))
	}
	aggs := &plan.Aggregate{Input: n.Input}
	for _, f := range n.Funcs {
		it := overItem{WindowItem: f, agg: -1}
		if f.Agg != nil {
			it.agg = len(aggs.Aggs)
			aggs.Aggs = append(aggs.Aggs, *f.Agg)
		}
		for _, a := range f.Args {
			it.args = append(it.args, add(a))
		}
		it.frame = compileFrame(f.Frame, f.Order, add)
		o.items = append(o.items, it)
	}
	o.types = exprTypes(es)
	var err error
	if o.aggs, err = PrepareAggregate(aggs); err != nil {
		return nil, err
	}
	o.prog, err = expr.CompileAll(es, layoutOf(n.Input.Columns()))
	return o, err
}

// overRows is one evaluation.
type overRows struct {
	*OverFuncs
	rows    int
	bases   []int64 // by partition: its rows that come before these
	cols    []arrow.Array
	args    []arrow.Array // of the aggregates
	parts   []int32
	byOrder map[int]*inPartitions
	frames  map[string]*fn.Frames
}

// Eval computes the functions over rows in order: a column for each. bases, when not nil, has for each partition how many of its rows
// come before those that are here.
func (o *OverFuncs) Eval(env *fn.Env, cols []arrow.Array, n int, bases []int64, workers int) ([]arrow.Array, error) {
	r := &overRows{OverFuncs: o, rows: n, bases: bases, byOrder: map[int]*inPartitions{}, frames: map[string]*fn.Frames{}}
	var err error
	if r.cols, err = o.prog.EvalArrays(env, cols, n); err != nil {
		return nil, err
	}
	if len(o.aggs.items) > 0 {
		if r.args, err = o.aggs.Eval(env, cols, n); err != nil {
			return nil, err
		}
	}
	r.mark()
	for i := range o.items {
		if err := r.frame(&o.items[i]); err != nil {
			return nil, err
		}
	}
	out := make([]arrow.Array, len(o.items))
	if workers = min(workers, len(out)); n < fewSorted {
		workers = 1
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	err = parallel(cancel, workers, func(w int) (err error) {
		for i := w; i < len(out) && ctx.Err() == nil; i += workers {
			if out[i], err = r.eval(&o.items[i]); err != nil {
				return err
			}
		}
		return nil
	})
	return out, err
}

// mark finds the partitions, and the peers of every order that a function has.
func (r *overRows) mark() {
	marks := make([]bool, r.rows)
	for i := range r.part {
		markChanges(marks, r.cols[i], r.types[i])
	}
	r.parts = runsOf(marks)
	if r.rows == 0 {
		r.parts = []int32{0}
	}
	wanted := map[int]bool{}
	for i := range r.items {
		wanted[len(r.items[i].Order)] = true
	}
	for k := 0; k <= len(r.order); k++ {
		if k > 0 {
			at := r.order[k-1]
			markChanges(marks, r.cols[at], r.types[at])
		}
		if wanted[k] {
			p := &inPartitions{rows: r.rows, parts: r.parts, peers: r.parts}
			if k > 0 && r.rows > 0 {
				p.peers = runsOf(marks)
			}
			r.byOrder[k] = p
		}
	}
}

// key names the frames of a function: functions of one window share them.
func (it *overItem) key() string {
	s := string(rune('0' + len(it.Order)))
	if it.Frame != nil {
		s += it.Frame.String()
	}
	return s
}

func (it *overItem) framed() bool {
	switch it.Name {
	case "first_value", "last_value", "nth_value":
		return true
	}
	return it.Agg != nil && !it.frame.whole(len(it.Order) > 0)
}

// frame makes a function's frames, where it looks at them.
func (r *overRows) frame(it *overItem) (err error) {
	if !it.framed() || r.frames[it.key()] != nil {
		return nil
	}
	r.frames[it.key()], err = it.frame.frames(r.byOrder[len(it.Order)], r.cols)
	return err
}

func (r *overRows) eval(it *overItem) (arrow.Array, error) {
	if it.Agg != nil {
		return r.aggregate(it)
	}
	p := r.byOrder[len(it.Order)]
	switch it.Name {
	case "row_number", "rank", "dense_rank":
		return r.rank(it.Name, p), nil
	case "percent_rank", "cume_dist":
		return r.share(it.Name, p), nil
	case "ntile":
		return r.ntile(it, p)
	case "lag", "lead":
		return r.neighbour(it, p)
	}
	return r.valueOfFrame(it)
}
