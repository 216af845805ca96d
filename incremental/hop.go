package incremental

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/core/exec"
	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/types"
	"github.com/riverbed/riverbed/core/window"
	"github.com/riverbed/riverbed/state"
)

// hopAggregate is an aggregate by hopping windows over inserts. A row is added once, to its slice of time: the greatest common
// divisor of size and slide, so that every window is a number of whole slices. The partial results of a slice are merged into
// its windows when the watermark has settled the slice, or, where changes are shown, at the end of each step.
//
//	in:    inserts            out: that of the aggregate
//	state: aggregate_slices   group key without the window, slice → row count, accumulators; none where changes are shown
//	       aggregate_groups   group key → row count, accumulators, of the slices merged so far
//	time:  slices and windows are dropped as the watermark settles them
type hopAggregate struct {
	windows *aggregate
	cut     window.Cut
	width   int64
	edge    arrow.DataType
	keyAt   []int // plan.Slices.At

	prep  *exec.Prepared // over the input of the window: the other keys, then the arguments
	time  *expr.Program
	typ   types.Type
	other int
	types []types.Type // of the key of a slice

	enc     *keyEncoder
	table   *state.Table
	count   *state.Int64s
	accs    []fn.Accumulator
	fresh   func(i int) fn.Accumulator
	timers  *timers
	closes  []int64
	later   *state.Due // the slices that have left memory
	slots   []uint32
	hash    []uint64
	group   []uint8
	touched []uint32 // changelog: the slices of this step, in order
}

var sliceDecl = state.Decl{Name: "aggregate_slices", Version: 1, Key: state.RowKey,
	About: "group key without the window, slice of time → row count, accumulators"}

// hopOf returns how an aggregate takes over a hopping window; nil when it does not.
func hopOf(n plan.Node, emit plan.EmitPolicy) (*plan.Aggregate, *plan.Slices) {
	a, ok := n.(*plan.Aggregate)
	if !ok {
		return nil, nil
	}
	s := plan.SlicesOf(a)
	if s == nil || plan.Updating(s.Window.Input, emit) {
		return nil, nil
	}
	if when, c := emitOf(a, s.Window, emit); when == atEnd || when == closed && c == nil {
		return nil, nil
	}
	return a, s
}

func newHopAggregate(n *plan.Aggregate, s *plan.Slices, emit plan.EmitPolicy) (Operator, error) {
	w := s.Window
	op, err := newAggregate(n, emit)
	if err != nil {
		return nil, err
	}
	h := &hopAggregate{windows: op.(*aggregate), edge: w.Start.Type.Arrow(), typ: w.Time.Type(), count: &state.Int64s{}, timers: newTimers()}
	if h.cut, err = exec.WindowCut(w); err != nil {
		return nil, err
	}
	h.width = h.cut.Slice().Micros
	inner := &plan.Aggregate{Input: w.Input, Keys: s.Keys, Aggs: n.Aggs}
	for _, k := range s.Keys {
		h.types = append(h.types, k.Expr.Type())
	}
	h.keyAt, h.other = s.At, len(s.Keys)
	h.types = append(h.types, types.TsUS)
	if h.prep, err = exec.PrepareAggregate(inner); err != nil {
		return nil, err
	}
	if h.time, err = expr.Compile(w.Time, layoutOf(w.Input.Columns())); err != nil {
		return nil, err
	}
	h.enc = newKeyEncoder(h.types)
	decl, cols := sliceDecl, []state.Column{h.count}
	decl.Values = []string{"_rows"}
	h.fresh = func(i int) fn.Accumulator { return n.Aggs[i].Overload.New(h.prep.Config(i)) }
	for i := range n.Aggs {
		acc := h.fresh(i)
		h.accs, cols = append(h.accs, acc), append(cols, acc)
		decl.Values = append(decl.Values, n.Aggs[i].Col.Name)
	}
	h.table = state.NewTable(decl, cols...)
	copyLate(h.table, h.accs)
	h.enc.into(h.table)
	return h, nil
}

// Prepare puts the slice behind the other keys and arguments. Slices and windows of a key lie in the key group of the other keys.
func (h *hopAggregate) Prepare(env *fn.Env, _ int, d flow.Delta) (Batch, error) {
	n := d.Rows()
	cols, err := h.prep.Eval(env, d.Columns(), n)
	if err != nil {
		return Batch{}, err
	}
	at, err := h.time.EvalArray(env, d.Columns(), n)
	if err != nil {
		return Batch{}, err
	}
	us, err := exec.Micros(at, h.typ)
	if err != nil {
		return Batch{}, err
	}
	pieces := make([]int64, n)
	from, to := int64(0), int64(0) // of the slice before: rows of one slice come together
	for i, t := range us[:n] {
		if t < from || t >= to {
			from = h.cut.SliceOf(t, h.width)
			to = addTime(from, h.width)
		}
		pieces[i] = from
	}
	var valid []byte
	if at.NullN() > 0 {
		valid = kernels.Valid(at)
		for i := range pieces {
			if at.IsNull(i) {
				pieces[i] = 0
			}
		}
	}
	all := append(append(make([]arrow.Array, 0, len(cols)+1), cols...), kernels.NewFixed(types.TsUS.Arrow(), pieces, valid))
	return Batch{Cols: all, N: n, W: d.Weights(), Hash: hashOf(cols[:h.other], n)}, nil
}

func (h *hopAggregate) Process(_ *Ctx, _ int, in Batch) error {
	last := len(in.Cols) - 1
	key := append(append(make([]arrow.Array, 0, h.other+1), in.Cols[:h.other]...), in.Cols[last])
	h.slots = kernels.Sized(h.slots, in.N)
	h.hash, h.group = kernels.Sized(h.hash, in.N), groupsOf(in.Hash, h.group)
	pieces := kernels.Values[int64](in.Cols[last])
	for i, x := range in.Hash {
		h.hash[i] = (x ^ uint64(pieces[i])) * hashMix // the slices of a key lie apart in the index
	}
	k := h.enc.encode(key, in.N, h.hash)
	k.Group = h.group
	if err := h.table.Fetch(k); err != nil {
		return err
	}
	fresh := h.table.Upsert(k, h.slots)
	h.table.Before(h.slots)
	if h.windows.when == changelog {
		for _, i := range fresh {
			h.touched = append(h.touched, h.slots[i])
		}
	} else {
		h.setTimers(in.Cols[last], fresh, h.slots)
		h.touched = append(h.touched, h.slots...)
	}
	for i, s := range h.slots {
		h.count.V[s] += in.weight(i)
	}
	for i, acc := range h.accs {
		groups, args, sel := h.prep.Inputs(i, in.Cols, h.slots)
		if len(groups) == 0 {
			continue
		}
		w := in.W
		if w != nil && sel != nil {
			w = pickRows(w, sel)
		}
		if err := acc.Add(groups, args, w); err != nil {
			return h.windows.located(i, err)
		}
	}
	return nil
}

func (h *hopAggregate) setTimers(pieces arrow.Array, rows []int32, slots []uint32) {
	h.closes = grown(h.closes, h.table.Slots(), never)
	if len(rows) == 0 {
		return
	}
	for i, at := range h.closing(kernels.Take(pieces, rows)) {
		s := slots[rows[i]]
		h.closes[s] = at
		h.timers.add(at, s)
	}
}

// closing is when slices are settled.
func (h *hopAggregate) closing(pieces arrow.Array) []int64 {
	return closing{0, h.width}.at([]arrow.Array{pieces})
}

func (h *hopAggregate) Advance(ctx *Ctx, w flow.Watermark) error {
	due := h.touched
	if h.windows.when != changelog {
		h.table.Touch(h.touched)
		due = h.timers.take(w, h.closes, h.table.Live)
	}
	h.touched = h.touched[:0]
	if err := h.settle(due); err != nil {
		return err
	}
	if err := endOut(h.later, h.table, w, h.settle); err != nil {
		return err
	}
	return h.windows.Advance(ctx, w)
}

// settle adds settled slices to their windows and drops them.
func (h *hopAggregate) settle(due []uint32) error {
	if len(due) == 0 {
		return nil
	}
	if err := h.merge(due); err != nil {
		return err
	}
	h.table.Delete(due)
	return nil
}

// merge adds settled slices to their windows. A slice has up to size/slide windows, rounded up; the j-th windows of all
// slices are merged together.
func (h *hopAggregate) merge(due []uint32) error {
	in, rows, err := h.expand(due)
	if err != nil {
		return err
	}
	group := make([]uint8, len(rows))
	for i, r := range rows {
		group[i] = h.table.Group(due[r])
	}
	found, err := h.windows.find(&in, group)
	if err != nil {
		return err
	}
	into := append([]uint32{}, found...)
	var passes [][]int32 // by j: positions in rows
	for k, j := 0, 0; k < len(rows); k++ {
		if k > 0 && rows[k] == rows[k-1] {
			j++
		} else {
			j = 0
		}
		if j == len(passes) {
			passes = append(passes, nil)
		}
		passes[j] = append(passes[j], int32(k))
		h.windows.count.V[into[k]] += h.count.V[due[rows[k]]]
	}
	for i := range h.accs {
		var partial fn.Accumulator
		for _, pass := range passes {
			if partial == nil || len(pass) != len(due) { // where all slices have a j-th window the same partials serve again
				if partial, err = h.partial(i, pickRows(due, pickRows(rows, pass))); err != nil {
					return err
				}
			}
			if err := h.windows.accs[i].Merge(partial, pickRows(into, pass)); err != nil {
				return h.windows.located(i, err)
			}
		}
	}
	return nil
}

// partial copies the accumulators of some slices.
func (h *hopAggregate) partial(i int, slots []uint32) (fn.Accumulator, error) {
	saved, err := h.accs[i].Save(slots)
	if err != nil {
		return nil, err
	}
	acc := h.fresh(i)
	acc.Resize(len(slots))
	all := make([]uint32, len(slots))
	for k := range all {
		all[k] = uint32(k)
	}
	return acc, acc.Load(all, saved)
}

// expand makes the group keys of the windows of each slice, and says of which slice each is.
func (h *hopAggregate) expand(due []uint32) (Batch, []int32, error) {
	key := keysOf(h.table, h.types, due)
	slice := key[h.other].(*array.Timestamp)
	rows, starts, ends, err := h.windowsOf(slice, len(due))
	if err != nil {
		return Batch{}, nil, err
	}
	var mask []byte
	if slice.NullN() > 0 {
		mask = kernels.Ones(len(rows))
		for i, s := range starts {
			if s == window.NullStart {
				kernels.ClearBit(mask, i)
			}
		}
	}
	cols := make([]arrow.Array, len(h.keyAt))
	for i, at := range h.keyAt {
		switch at {
		case plan.StartKey:
			cols[i] = kernels.NewFixed(h.edge, starts, mask)
		case plan.EndKey:
			cols[i] = kernels.NewFixed(h.edge, ends, mask)
		default:
			cols[i] = kernels.Take(key[at], rows)
		}
	}
	return Batch{Cols: cols, N: len(rows), Hash: hashOf(cols, len(rows))}, rows, nil
}

// windowsOf lists the windows of slices, as Cut.Windows does: slices of one time have the same and come together.
func (h *hopAggregate) windowsOf(slice *array.Timestamp, n int) (rows []int32, starts, ends []int64, err error) {
	times, nulls := kernels.Values[int64](slice)[:n], slice.NullN() > 0
	var each []int32
	var from, to []int64 // the windows of the last slice
	for i, t := range times {
		if null := nulls && slice.IsNull(i); i == 0 || nulls || t != times[i-1] {
			valid := func(int) bool { return !null }
			if each, from, to, err = h.cut.Windows(times[i:i+1], valid, each[:0], from[:0], to[:0]); err != nil {
				return nil, nil, nil, err
			}
		}
		if i == 0 { // the others have as many, or one more or less
			room := (len(each) + 1) * n
			rows, starts, ends = make([]int32, 0, room), make([]int64, 0, room), make([]int64, 0, room)
		}
		for range each {
			rows = append(rows, int32(i))
		}
		starts, ends = append(starts, from...), append(ends, to...)
	}
	return rows, starts, ends, nil
}

func (h *hopAggregate) Tables() []state.Stored {
	if h.windows.when == changelog {
		return h.windows.Tables() // no slice outlives its step
	}
	return append(h.windows.Tables(), h.table)
}

func (h *hopAggregate) evictable() []evicted {
	if h.windows.when == changelog {
		return h.windows.evictable()
	}
	return append(h.windows.evictable(), coldTable{h.table, func(in *state.Cold) { h.later = state.NewDue(in) }, h.leave})
}

// leave notes when slices that leave memory are settled.
func (h *hopAggregate) leave(slots []uint32) error {
	h.timers.leftSlots(h.closes, slots)
	return putOff(h.later, h.table, slots, func(slots []uint32) []int64 { return h.closing(keysOf(h.table, h.types, slots)[h.other]) })
}

func (h *hopAggregate) Restored(env *fn.Env) error {
	if all := h.table.All(); len(all) > 0 {
		rows := make([]int32, len(all))
		for i := range rows {
			rows[i] = int32(i)
		}
		h.setTimers(keysOf(h.table, h.types, all)[h.other], rows, all)
	}
	return h.windows.Restored(env)
}
