package incremental

import (
	"bytes"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/exec"
	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/rowkey"
	"github.com/riverbed/riverbed/state"
)

// over keeps the rows of each partition in order and computes window functions of them. In a step it computes, of the partitions
// touched, the rows that a change may be seen by, as they were and as they are, and shows what differs (overstep.go).
//
//	in:    any weights        out: changes of rows or of their values; closing and at end: all rows, once
//	state: over_rows          row → weight; in the key group of its partition
//	time:  partitions that the watermark has settled are dropped by range
type over struct {
	when  emitWhen
	funcs *exec.OverFuncs
	reach plan.Reach

	part     *expr.Program
	order    *expr.Program
	orderEnc *rowkey.Encoder
	peerEnc  *rowkey.Encoder
	rowEnc   *keyEncoder
	valueEnc *rowkey.Encoder // of what the functions give
	nOrder   int             // ORDER BY keys among the order columns; tie-breaks follow
	cols     int
	nPart    int

	rows   *state.Table
	vals   []state.Values
	weight *state.Int64s
	keyOf  state.Bytes // by row: its order key
	peerOf state.Bytes // by row: its ORDER BY keys, where whole runs of peers change
	partOf []uint32

	parts *partitions
	lists // by partition

	step    uint64
	stamped []uint64 // by row: the step that changed it last, from 1 on
	was     []int64  // by row: its weight before that
	changed []uint32 // rows whose weight changed
	placeOf []int32  // by partition: its place among those touched, -1

	at       []int32 // by row: scratch, -1
	slots    []uint32
	partSlot []uint32
}

var overRows = state.Decl{Name: "over_rows", Version: 1, Key: state.RowKey, About: "row → weight; in the key group of its partition"}

func newOver(n *plan.Window, emit plan.EmitPolicy) (Operator, error) {
	spec := n.Spec()
	o := &over{reach: plan.ReachOf(n), cols: len(n.Input.Columns()), nPart: len(spec.Part)}
	var c *closing
	o.when, c = emitOf(n, n.Input, emit)
	if c != nil {
		col, _ := plan.ClosingColumn(n)
		found := false
		for i, e := range spec.Part {
			if refers(e, col.ID) {
				c.pos, found = i, true
			}
		}
		if !found {
			return nil, errs.Bug("plan", "the closing column %s is not in PARTITION BY", col.Name)
		}
	}
	o.parts = newPartitions(spec.Part, c)
	cols := n.Input.Columns()
	byID := map[expr.ColID]plan.Column{}
	for _, c := range cols {
		byID[c.ID] = c
	}
	var order []expr.Expr
	var keys []rowkey.Key
	for _, k := range spec.Order {
		order = append(order, k.Expr)
		keys = append(keys, rowkey.Key{Desc: k.Key.Desc, NullsFirst: k.Key.NullsFirst})
	}
	o.nOrder = len(order)
	for _, id := range spec.Tie {
		if c, ok := byID[id]; ok { // a column pruned since is constant or unused above: it cannot decide
			order = append(order, c.Ref())
			keys = append(keys, rowkey.Key{Exact: true})
		}
	}
	var err error
	if o.funcs, err = exec.NewOverFuncs(n); err != nil {
		return nil, err
	}
	if o.part, err = expr.CompileAll(spec.Part, layoutOf(cols)); err != nil {
		return nil, err
	}
	if o.order, err = expr.CompileAll(order, layoutOf(cols)); err != nil {
		return nil, err
	}
	ts := columnTypes(cols)
	o.rowEnc = newRowEncoder(ts)
	o.orderEnc = rowkey.NewEncoder(exprTypes(order), keys)
	o.peerEnc = rowkey.NewEncoder(exprTypes(order[:o.nOrder]), keys[:o.nOrder])
	made := columnTypes(n.Columns()[len(cols):])
	o.valueEnc = rowkey.NewEncoder(made, exactKeys(len(made)))
	o.vals, o.weight = valueColumns(ts), &state.Int64s{}
	decl := overRows
	decl.Values = valueNames(cols, "_weight")
	o.rows = state.NewTable(decl, append(stateColumns(o.vals), o.weight)...)
	o.rows.CopyLate()
	return o, nil
}

// Prepare puts the partition and order columns behind the row's.
func (o *over) Prepare(env *fn.Env, _ int, d flow.Delta) (Batch, error) {
	in, err := withKeys(o.part, o.order, env, d.Columns(), d.Rows())
	in.W = d.Weights()
	return in, err
}

func (o *over) Process(ctx *Ctx, _ int, in Batch) error {
	o.partSlot, o.slots = kernels.Sized(o.partSlot, in.N), kernels.Sized(o.slots, in.N)
	if err := o.parts.fetch(ctx.Env, in.Cols[o.cols:o.cols+o.nPart], in.N, in.Hash); err != nil {
		return err
	}
	o.partitions(&in, o.partSlot)
	k := o.rowEnc.encode(in.Cols[:o.cols], in.N, nil)
	k.Group = o.parts.groups(in.Hash)
	fresh := o.rows.Upsert(k, o.slots)
	o.rows.Before(o.slots)
	putFresh(o.vals, in.Cols, fresh, o.slots)
	o.index(in.Cols[o.cols+o.nPart:], fresh, o.slots, o.partSlot)
	for i, s := range o.slots {
		if o.stamped[s] != o.step+1 {
			o.stamped[s], o.was[s] = o.step+1, o.weight.V[s]
			o.changed = append(o.changed, s)
		}
		o.weight.V[s] += in.weight(i)
	}
	return nil
}

// partitions finds or makes the partition of each row.
func (o *over) partitions(in *Batch, slots []uint32) {
	o.begin(o.parts.find(in.Cols[o.cols:o.cols+o.nPart], in.N, in.Hash, slots), slots)
}

// begin sets up partitions that are new.
func (o *over) begin(fresh []int32, numbers []uint32) {
	n := o.parts.table.Slots()
	o.lists, o.placeOf = grown(o.lists, n, ordered{}), grown(o.placeOf, n, -1)
	for _, i := range fresh {
		o.lists[numbers[i]] = ordered{}
	}
}

// index puts new rows into the order of their partitions, by the order columns of a batch.
func (o *over) index(order []arrow.Array, fresh []int32, slots, parts []uint32) {
	if len(fresh) == 0 {
		return
	}
	order = kernels.TakeBatch(order, fresh)
	keys := o.orderEnc.Encode(order, len(fresh))
	n := o.rows.Slots()
	o.keyOf.Resize(n)
	o.partOf, o.stamped, o.was, o.at = grown(o.partOf, n, 0), grown(o.stamped, n, 0), grown(o.was, n, 0), grown(o.at, n, -1)
	var peers rowkey.Rows
	if o.reach.Peers {
		o.peerOf.Resize(n)
		peers = o.peerEnc.Encode(order[:o.nOrder], len(fresh))
	}
	for i, r := range fresh {
		s := slots[r]
		o.keyOf.Set(s, keys.Row(i))
		if o.reach.Peers {
			o.peerOf.Set(s, peers.Row(i))
		}
		o.partOf[s], o.stamped[s] = parts[r], 0
		o.lists[parts[r]].insert(s, o.precedes(s))
	}
}

// precedes orders rows by their order keys; rows equal in all of that by their bytes, so that the order is total.
func (o *over) precedes(s uint32) func(x uint32) bool {
	key := o.keyOf.Get(s)
	return func(x uint32) bool {
		c := bytes.Compare(o.keyOf.Get(x), key)
		return c < 0 || c == 0 && bytes.Compare(o.rows.Key(x), o.rows.Key(s)) < 0
	}
}

func (o *over) Advance(ctx *Ctx, w flow.Watermark) error {
	touched := o.touched()
	var err error
	switch {
	case o.when == changelog:
		err = o.emitChanges(ctx, touched)
	case o.when == atEnd && w == flow.EndWatermark:
		err = o.parts.all(ctx.Env, func(parts []uint32) error { return o.end(ctx, parts, true) })
	}
	if err != nil {
		return err
	}
	negative := o.endStep(touched)
	// The partitions that the watermark has settled are shown now, or were all along.
	if err := o.parts.settle(ctx.Env, w, func(parts []uint32) error { return o.end(ctx, parts, o.when == closed) }); err != nil {
		return err
	}
	if negative > 0 {
		return ctx.missing("OVER", negative)
	}
	return nil
}

// endStep drops rows of weight zero.
func (o *over) endStep(touched []changedPart) (negative int64) {
	o.rows.Touch(o.changed)
	var gone []uint32
	for _, s := range o.changed {
		switch {
		case !o.rows.Live(s):
		case o.weight.V[s] < 0:
			negative++
		case o.weight.V[s] == 0:
			o.lists[o.partOf[s]].remove(s, o.precedes(s))
			gone = append(gone, s)
		}
	}
	o.forget(gone)
	parts := make([]uint32, len(touched))
	var empty []uint32
	for i, t := range touched {
		if parts[i] = t.part; o.parts.table.Live(t.part) && len(o.lists[t.part].chunks) == 0 {
			empty = append(empty, t.part)
		}
	}
	o.parts.units.Changed(parts)
	o.parts.drop(empty)
	o.changed = o.changed[:0]
	o.step++
	return negative
}

// forget drops rows that no list has any more.
func (o *over) forget(gone []uint32) {
	o.rows.Delete(gone)
	o.keyOf.Reset(gone)
	if o.reach.Peers {
		o.peerOf.Reset(gone)
	}
}

// end drops partitions, and shows them before.
func (o *over) end(ctx *Ctx, parts []uint32, shown bool) error {
	if shown {
		if err := o.emitWhole(ctx, parts); err != nil {
			return err
		}
	}
	var gone []uint32
	for _, p := range parts {
		gone = o.rowsOf(p, gone)
		o.lists[p] = ordered{}
	}
	o.forget(gone)
	o.parts.drop(parts)
	return nil
}

func (o *over) Tables() []state.Stored { return []state.Stored{o.rows} }

func (o *over) evictable() []evicted { return o.parts.evictableBy(o, o.rows, o.nPart) }

func (o *over) leave(parts []uint32) {
	for _, p := range parts {
		rows := o.rowsOf(p, nil)
		o.keyOf.Reset(rows)
		if o.reach.Peers {
			o.peerOf.Reset(rows)
		}
		o.lists[p] = ordered{}
	}
}

func (o *over) arrange(env *fn.Env, slots, parts []uint32) error {
	order, err := orderOfStored(o.order, o.vals, env, slots)
	if err == nil {
		o.index(order, allRows(len(slots)), slots, parts)
	}
	return err
}

func (o *over) Restored(env *fn.Env) error {
	in, slots, err := storedRows(o.rows, o.vals, o.part, o.order, env)
	if err != nil || in.N == 0 {
		return err
	}
	if err := o.parts.fetch(env, in.Cols[o.cols:o.cols+o.nPart], in.N, in.Hash); err != nil { // those with rows that left while others came
		return err
	}
	parts := make([]uint32, in.N)
	o.partitions(&in, parts)
	o.parts.units.Changed(parts)
	o.index(in.Cols[o.cols+o.nPart:], allRows(in.N), slots, parts)
	return nil
}
