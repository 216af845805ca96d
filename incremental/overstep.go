package incremental

import (
	"bytes"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/plan"
)

// changedPart is a partition that a step has changed rows of.
type changedPart struct {
	part  uint32
	slots []uint32 // the rows changed
}

// touched gathers what the step has changed, by partition, in the order in which it came.
func (o *over) touched() []changedPart {
	var out []changedPart
	for _, s := range o.changed {
		p := o.partOf[s]
		if o.placeOf[p] < 0 {
			o.placeOf[p] = int32(len(out))
			out = append(out, changedPart{part: p})
		}
		t := &out[o.placeOf[p]]
		t.slots = append(t.slots, s)
	}
	for _, t := range out {
		o.placeOf[t.part] = -1
	}
	return out
}

// overSide is rows to be computed: of partitions as they were, or as they are. Those of a partition stand together, in order.
type overSide struct {
	slots []uint32 // each as often as its weight says
	bases []int64  // by partition: rows that stand before its first here
	shown []bool   // by row: others are here only because the functions look at them
	made  []arrow.Array
	bytes func(row int) []byte // of what the functions gave
}

// overRowsAtOnce is about how many rows are computed at a time.
const overRowsAtOnce = 256 << 10

func (o *over) emitChanges(ctx *Ctx, touched []changedPart) error {
	var before, after overSide
	flush := func() error {
		err := o.difference(ctx, &before, &after)
		before, after = overSide{}, overSide{}
		return err
	}
	for _, t := range touched {
		o.affected(t, &before, &after)
		if len(before.slots)+len(after.slots) >= overRowsAtOnce {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}

// emitWhole shows all rows of partitions.
func (o *over) emitWhole(ctx *Ctx, parts []uint32) error {
	for len(parts) > 0 {
		var s overSide
		for len(parts) > 0 && len(s.slots) < overRowsAtOnce {
			o.append(&s, o.rowsOf(parts[0], nil), 0, 0, -1, o.weightNow)
			parts = parts[1:]
		}
		if err := o.difference(ctx, &overSide{}, &s); err != nil {
			return err
		}
	}
	return nil
}

func (o *over) weightNow(s uint32) int64 { return o.weight.V[s] }

// weightBefore is a row's weight before the step.
func (o *over) weightBefore(s uint32) int64 {
	if o.stamped[s] == o.step+1 {
		return o.was[s]
	}
	return o.weight.V[s]
}

// append adds a run of a partition's rows, with the weights that they have; those in [from, to) are shown, to -1 is the end.
func (o *over) append(side *overSide, run []uint32, base int64, from, to int, weight func(uint32) int64) {
	n := len(side.slots)
	for i, s := range run {
		for w := weight(s); w > 0; w-- {
			side.slots, side.shown = append(side.slots, s), append(side.shown, i >= from && (to < 0 || i < to))
		}
	}
	if len(side.slots) > n {
		side.bases = append(side.bases, base)
	}
}

// affected adds the rows of a partition that its changes may be seen by, and those that their values are made of.
func (o *over) affected(t changedPart, before, after *overSide) {
	list := &o.lists[t.part]
	if o.reach.Whole() {
		run := o.rowsOf(t.part, nil)
		o.append(before, run, 0, 0, -1, o.weightBefore)
		o.append(after, run, 0, 0, -1, o.weightNow)
		return
	}
	first, last := t.slots[0], t.slots[0]
	for _, s := range t.slots[1:] {
		if o.precedes(first)(s) {
			first = s
		}
		if !o.precedes(last)(s) {
			last = s
		}
	}
	from, to := cursorAt(list, first, o.precedes(first)), cursorAt(list, last, o.precedes(last))
	from = o.walk(from, -1, o.reach.AffectsBack, o.reach.Peers)
	to = o.walk(to, 1, o.reach.AffectsAhead, o.reach.Peers)
	start, end := o.walk(from, -1, o.reach.Back, false), o.walk(to, 1, o.reach.Ahead, false)
	var run []uint32
	shownFrom, shownTo := 0, 0
	for c := start; ; c, _ = c.next(1) {
		if c == from {
			shownFrom = len(run)
		}
		run = append(run, c.slot())
		if c == to {
			shownTo = len(run)
		}
		if c == end {
			break
		}
	}
	base := int64(0)
	if o.reach.Numbers { // nothing has changed before the first change
		base = o.rowsBefore(start)
	}
	o.append(before, run, base, shownFrom, shownTo, o.weightBefore)
	o.append(after, run, base, shownFrom, shownTo, o.weightNow)
}

// rowsBefore counts the rows of a partition before a place.
func (o *over) rowsBefore(c cursor) (n int64) {
	for i, chunk := range c.list.chunks[:c.chunk+1] {
		if i == c.chunk {
			chunk = chunk[:c.at]
		}
		for _, s := range chunk {
			n += max(o.weight.V[s], 0)
		}
	}
	return n
}

// walk goes on by so many rows that are there before and after the step, and then to the end of a run of peers.
func (o *over) walk(c cursor, step int, rows int64, peers bool) cursor {
	if rows == plan.Everything {
		return c.end(step)
	}
	for rows > 0 {
		n, ok := c.next(step)
		if !ok {
			return c
		}
		if c = n; o.weight.V[c.slot()] > 0 && o.stamped[c.slot()] != o.step+1 {
			rows--
		}
	}
	for peers {
		n, ok := c.next(step)
		if !ok || !bytes.Equal(o.peerOf.Get(n.slot()), o.peerOf.Get(c.slot())) {
			break
		}
		c = n
	}
	return c
}

// difference computes both sides and emits what only one of them has. Copies of a row are matched in their order.
func (o *over) difference(ctx *Ctx, before, after *overSide) error {
	for _, s := range []*overSide{before, after} {
		if err := o.compute(ctx, s); err != nil {
			return err
		}
	}
	for i, s := range before.slots {
		if o.at[s] < 0 {
			o.at[s] = int32(i)
		}
	}
	var minus, plus []int32
	same := make([]bool, len(before.slots))
	first := 0
	for i, s := range after.slots {
		if i == 0 || after.slots[i-1] != s {
			first = i
		}
		if !after.shown[i] {
			continue
		}
		if at := int(o.at[s]); at >= 0 {
			if at += i - first; at < len(before.slots) && before.slots[at] == s && bytes.Equal(before.bytes(at), after.bytes(i)) {
				same[at] = true
				continue
			}
		}
		plus = append(plus, int32(i))
	}
	for i, s := range before.slots {
		if o.at[s] = -1; before.shown[i] && !same[i] {
			minus = append(minus, int32(i))
		}
	}
	if err := o.emit(ctx, before, minus, -1); err != nil {
		return err
	}
	return o.emit(ctx, after, plus, 1)
}

// compute makes what the functions give.
func (o *over) compute(ctx *Ctx, s *overSide) error {
	if len(s.slots) == 0 {
		return nil
	}
	cols, err := gather(o.vals, s.slots)
	if err != nil {
		return err
	}
	if s.made, err = o.funcs.Eval(ctx.Env, cols, len(s.slots), s.bases, 1); err != nil {
		return err
	}
	rows := o.valueEnc.Encode(s.made, len(s.slots))
	data, offs := slices.Clone(rows.Data), slices.Clone(rows.Offs)
	s.bytes = func(i int) []byte { return data[offs[i]:offs[i+1]] }
	return nil
}

func (o *over) emit(ctx *Ctx, s *overSide, rows []int32, w int64) error {
	if len(rows) == 0 {
		return nil
	}
	slots, weights := make([]uint32, len(rows)), make([]int64, len(rows))
	for i, r := range rows {
		slots[i], weights[i] = s.slots[r], w
	}
	cols, err := gather(o.vals, slots)
	if err != nil {
		return err
	}
	return ctx.Emit(append(cols, kernels.TakeBatch(s.made, rows)...), len(rows), weights)
}

// cursor is a place in an ordered list.
type cursor struct {
	list      *ordered
	chunk, at int
}

func cursorAt(list *ordered, _ uint32, before func(x uint32) bool) cursor {
	chunk, at := list.place(before)
	return cursor{list, chunk, at}
}

func (c cursor) slot() uint32 { return c.list.chunks[c.chunk][c.at] }

// next is the place behind, or before with step -1; ok is false at the end.
func (c cursor) next(step int) (n cursor, ok bool) {
	c.at += step
	switch {
	case c.at >= 0 && c.at < len(c.list.chunks[c.chunk]):
		return c, true
	case c.chunk+step < 0 || c.chunk+step >= len(c.list.chunks):
		return c, false
	}
	c.chunk += step
	if c.at = 0; step < 0 {
		c.at = len(c.list.chunks[c.chunk]) - 1
	}
	return c, true
}

// end is the last place, or the first with step -1.
func (c cursor) end(step int) cursor {
	if step < 0 {
		return cursor{c.list, 0, 0}
	}
	k := len(c.list.chunks) - 1
	return cursor{c.list, k, len(c.list.chunks[k]) - 1}
}
