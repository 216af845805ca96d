package incremental

import (
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/types"
	"github.com/riverbed/riverbed/state"
)

// distinct holds one copy of each row whose total weight is positive.
//
//	in:    any weights        out: +1 when a row appears, −1 when its last copy goes
//	state: distinct_seen      row → total weight, absent when zero
//	time:  watermarks pass through; rows that the watermark has settled are forgotten
type distinct struct {
	seen    *state.Table
	types   []types.Type
	weight  *state.Int64s
	enc     *keyEncoder
	closing *closing
	timers  *timers
	closes  *state.Int64s // the watermark that settles the row
	later   *state.Due    // the rows that have left memory, where there is a closing
	touched []uint32
	slots   []uint32
}

var distinctSeen = state.Decl{Name: "distinct_seen", Version: 1, Key: state.RowKey, Values: []string{"_weight", "_closes"},
	About: "row → total weight, absent when zero; the watermark that settles it"}

func newDistinctRows(ts []types.Type, c *closing) *distinct {
	d := &distinct{types: ts, weight: &state.Int64s{}, closes: &state.Int64s{}, enc: newKeyEncoder(ts), closing: c, timers: newTimers()}
	d.seen = state.NewTable(distinctSeen, d.weight, d.closes)
	d.seen.CopyLate()
	d.timers.marks = d.seen.Before
	d.enc.into(d.seen)
	return d
}

func newDistinct(n *plan.Distinct) (Operator, error) {
	var c *closing
	if col, ok := plan.ClosingColumn(n); ok && settled(n.Input) {
		at := closingOf(plan.TimeColumns(n.Input)[col.ID], layoutOf(n.Input.Columns())[col.ID])
		c = &at
	}
	return newDistinctRows(columnTypes(n.Columns()), c), nil
}

func (d *distinct) Prepare(_ *fn.Env, _ int, in flow.Delta) (Batch, error) {
	b := batchOf(in)
	b.Hash = hashOf(b.Cols, b.N)
	return b, nil
}

func (d *distinct) Process(ctx *Ctx, _ int, in Batch) error {
	d.slots = kernels.Sized(d.slots, in.N)
	k := d.enc.encode(in.Cols, in.N, in.Hash)
	if err := d.seen.Fetch(k); err != nil {
		return err
	}
	fresh := d.seen.Upsert(k, d.slots)
	d.seen.Before(d.slots)
	if d.closing != nil && len(fresh) > 0 {
		at := d.closing.at(in.Cols)
		for _, i := range fresh {
			d.closes.V[d.slots[i]] = at[i]
			d.timers.add(coarse(at[i]), d.slots[i])
		}
	}
	var changed []uint32
	var by []int64
	for i, s := range d.slots {
		before := d.weight.V[s]
		after := before + in.weight(i)
		d.weight.V[s] = after
		switch {
		case before <= 0 && after > 0:
			changed, by = append(changed, s), append(by, 1)
		case before > 0 && after <= 0:
			changed, by = append(changed, s), append(by, -1)
		}
	}
	d.touched = append(d.touched, d.slots...)
	// What is shown is the key and not the row at hand: -0.0 may have come first and 0.0 may go last.
	return ctx.Emit(keysOf(d.seen, d.types, changed), len(changed), by)
}

func (d *distinct) Advance(ctx *Ctx, w flow.Watermark) error {
	var negative int64
	d.seen.Touch(d.touched)
	for _, s := range d.touched {
		switch {
		case !d.seen.Live(s):
		case d.weight.V[s] < 0:
			negative++
		case d.weight.V[s] == 0:
			d.seen.Delete([]uint32{s})
		}
	}
	d.touched = d.touched[:0]
	if d.closing != nil {
		d.seen.Delete(d.timers.take(w, d.closes.V, d.seen.Live))
		if err := endOut(d.later, d.seen, w, func(due []uint32) error { d.seen.Delete(due); return nil }); err != nil {
			return err
		}
	}
	if negative > 0 {
		return ctx.missing("distinct", negative)
	}
	return nil
}

func (d *distinct) Tables() []state.Stored { return []state.Stored{d.seen} }

func (d *distinct) evictable() []evicted {
	if d.closing == nil {
		return []evicted{d.seen}
	}
	return []evicted{coldTable{d.seen, func(in *state.Cold) { d.later = state.NewDue(in) }, d.leave}}
}

// leave notes when rows that leave memory are settled.
func (d *distinct) leave(slots []uint32) error {
	d.timers.forget(len(slots), func(s uint32, at int64) bool { return d.seen.Live(s) && coarse(d.closes.V[s]) == at })
	return putOff(d.later, d.seen, slots, func(slots []uint32) []int64 {
		times := make([]int64, len(slots))
		for i, s := range slots {
			times[i] = coarse(d.closes.V[s])
		}
		return times
	})
}

func (d *distinct) Restored(*fn.Env) error {
	if d.closing != nil {
		for _, s := range d.seen.All() {
			d.timers.add(coarse(d.closes.V[s]), s)
		}
	}
	return nil
}
