package exec

import (
	"sort"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/rowkey"
	"github.com/riverbed/riverbed/core/types"
)

// inPartitions is rows that stand in the order of a window, partition after partition.
type inPartitions struct {
	rows  int
	parts []int32 // the first row of each partition, and the end
	peers []int32 // the first row of each run of peers, and the end
}

// each visits the partitions, with the runs of peers in them.
func (p *inPartitions) each(visit func(from, to int32, peers []int32)) {
	k := 0
	for i, from := range p.parts[:len(p.parts)-1] {
		to, first := p.parts[i+1], k
		for p.peers[k] < to {
			k++
		}
		visit(from, to, p.peers[first:k+1])
	}
}

// overFrame computes frames. Bounds that differ from row to row, and those of a RANGE, are evaluated beside the arguments.
type overFrame struct {
	of         *plan.Frame
	start, end overBound
	desc       bool
	nullsFirst bool
}

// overBound is where the values of a bound are among what is evaluated.
type overBound struct {
	offset, key, limit int
	steps              int64 // of a bound that is as many rows or groups away from every row
	fixed              bool
}

func compileFrame(f *plan.Frame, order []plan.SortItem, add func(expr.Expr) int) *overFrame {
	if f == nil {
		return nil
	}
	o := &overFrame{of: f}
	if len(order) > 0 {
		o.desc, o.nullsFirst = order[0].Key.Desc, order[0].Key.NullsFirst
	}
	bound := func(b plan.FrameBound) (at overBound) {
		switch {
		case b.Limit != nil:
			at.key, at.limit = add(b.Key), add(b.Limit)
		case b.Offset != nil:
			if at.steps, at.fixed = b.Steps(); !at.fixed {
				at.offset = add(b.Offset)
			}
		}
		return at
	}
	o.start, o.end = bound(f.Start), bound(f.End)
	return o
}

// whole says that every frame is its partition.
func (o *overFrame) whole(ordered bool) bool {
	if o == nil {
		return !ordered
	}
	f := o.of
	if f.Exclude != plan.ExcludeNothing || f.Start.Kind != plan.UnboundedPreceding && (f.Mode == plan.FrameRows || ordered || f.Start.Kind != plan.CurrentRow) {
		return false
	}
	return f.End.Kind == plan.UnboundedFollowing || !ordered && f.Mode != plan.FrameRows && f.End.Kind == plan.CurrentRow
}

// frames gives the rows of each row's frame.
func (o *overFrame) frames(p *inPartitions, evaluated []arrow.Array) (*fn.Frames, error) {
	f := &fn.Frames{Lo: make([]int32, p.rows), Hi: make([]int32, p.rows), Rising: true}
	if o == nil {
		p.each(func(from, _ int32, peers []int32) {
			for k, first := range peers[:len(peers)-1] {
				end := peers[k+1]
				for i := first; i < end; i++ {
					f.Lo[i], f.Hi[i] = from, end
				}
			}
		})
		return f, nil
	}
	if err := o.bound(p, evaluated, o.of.Start, o.start, f.Lo, false); err != nil {
		return nil, err
	}
	if err := o.bound(p, evaluated, o.of.End, o.end, f.Hi, true); err != nil {
		return nil, err
	}
	for i, lo := range f.Lo { // a frame without rows is one
		f.Hi[i] = max(f.Hi[i], lo)
	}
	for _, b := range []plan.FrameBound{o.of.Start, o.of.End} {
		if _, fixed := b.Steps(); b.Offset != nil && !fixed && !constantRange(b) {
			f.Rising = false
		}
	}
	if f.Rising { // clamping an end to its start can make it fall back only where ends cross
		for i := 1; i < len(f.Lo); i++ {
			if f.Lo[i] < f.Lo[i-1] || f.Hi[i] < f.Hi[i-1] {
				f.Rising = false
				break
			}
		}
	}
	o.exclude(p, f)
	return f, nil
}

func constantRange(b plan.FrameBound) bool {
	_, lit := b.Offset.(*expr.Lit)
	return b.Limit != nil && lit
}

// bound writes one end of each frame: its first row, or for an end the row behind its last.
func (o *overFrame) bound(p *inPartitions, evaluated []arrow.Array, b plan.FrameBound, at overBound, out []int32, end bool) error {
	switch {
	case b.Kind == plan.UnboundedPreceding || b.Kind == plan.UnboundedFollowing:
		p.each(func(from, to int32, _ []int32) {
			x := from
			if b.Kind == plan.UnboundedFollowing {
				x = to
			}
			for i := from; i < to; i++ {
				out[i] = x
			}
		})
	case b.Kind == plan.CurrentRow && o.of.Mode == plan.FrameRows:
		add := int32(0)
		if end {
			add = 1
		}
		for i := range out {
			out[i] = int32(i) + add
		}
	case b.Kind == plan.CurrentRow:
		p.each(func(_, _ int32, peers []int32) {
			for k, first := range peers[:len(peers)-1] {
				x := first
				if end {
					x = peers[k+1]
				}
				for i := first; i < peers[k+1]; i++ {
					out[i] = x
				}
			}
		})
	case o.of.Mode == plan.FrameRange:
		return o.rangeBound(p, evaluated, b, at, out, end)
	case at.fixed:
		o.fixedBound(p, at.steps, out, end)
	default:
		return o.stepBound(p, evaluated[at.offset], b, out, end)
	}
	return nil
}

// fixedBound is a number of rows, or of groups of peers, away.
func (o *overFrame) fixedBound(p *inPartitions, steps int64, out []int32, end bool) {
	d := int32(min(max(steps, -int64(p.rows)), int64(p.rows))) // nothing is farther away
	if end {
		d++
	}
	rows := o.of.Mode == plan.FrameRows
	p.each(func(from, to int32, peers []int32) {
		if rows {
			for i := from; i < to; i++ {
				out[i] = min(max(i+d, from), to)
			}
			return
		}
		groups := int32(len(peers) - 1)
		for k := range groups {
			x := peers[min(max(k+d, 0), groups)]
			for i := peers[k]; i < peers[k+1]; i++ {
				out[i] = x
			}
		}
	})
}

// stepBound counts rows, or groups of peers.
func (o *overFrame) stepBound(p *inPartitions, offsets arrow.Array, b plan.FrameBound, out []int32, end bool) error {
	v, valid := kernels.Values[int64](offsets), kernels.Valid(offsets)
	for i := range v {
		if valid != nil && !kernels.Bit(valid, i) {
			return errs.New(errs.Data, "window", "the offset of a frame of %s is NULL", o.of.Mode)
		}
		if v[i] < 0 {
			return errs.New(errs.Data, "window", "the offset of a frame of %s is negative: %d", o.of.Mode, v[i])
		}
	}
	sign := int64(1)
	if b.Kind == plan.Preceding {
		sign = -1
	}
	one := int64(0)
	if end {
		one = 1
	}
	rows := o.of.Mode == plan.FrameRows
	p.each(func(from, to int32, peers []int32) {
		if rows {
			for i := from; i < to; i++ {
				d := min(v[i], int64(p.rows)) // nothing is farther away
				out[i] = int32(min(max(int64(i)+sign*d+one, int64(from)), int64(to)))
			}
			return
		}
		groups := int64(len(peers) - 1)
		for k := range groups {
			for i := peers[k]; i < peers[k+1]; i++ {
				d := min(v[i], int64(p.rows))
				out[i] = peers[min(max(k+sign*d+one, 0), groups)]
			}
		}
	})
	return nil
}

// rangeBound searches the key up to which a frame goes. A row without a key has its peers, which are the others without one.
func (o *overFrame) rangeBound(p *inPartitions, evaluated []arrow.Array, b plan.FrameBound, at overBound, out []int32, end bool) error {
	keys, err := newOrdinals(evaluated[at.key], b.Key.Type(), o.desc)
	if err != nil {
		return err
	}
	limits, err := newOrdinals(evaluated[at.limit], b.Limit.Type(), o.desc)
	if err != nil {
		return err
	}
	p.each(func(from, to int32, _ []int32) {
		first, last := from, to // the rows with keys
		for first < last && keys.null(int(first)) {
			first++
		}
		for last > first && keys.null(int(last-1)) {
			last--
		}
		near := first
		for i := from; i < to; i++ {
			switch {
			case i < first && end:
				out[i] = first
			case i < first:
				out[i] = from
			case i >= last && end:
				out[i] = to
			case i >= last:
				out[i] = last
			case limits.null(int(i)):
				err = errs.New(errs.Data, "window", "the offset of a frame of RANGE is NULL")
			default:
				limit := limits.at(int(i))
				if c := limit.compare(keys.at(int(i))); b.Kind == plan.Preceding && c > 0 || b.Kind == plan.Following && c < 0 {
					err = errs.New(errs.Data, "window", "the offset of a frame of RANGE is negative")
				}
				near = keys.search(limit, first, last, near, end)
				out[i] = near
			}
		}
	})
	return err
}

// ordinal orders as the value of a key does, in the direction of the window.
type ordinal [2]uint64

func (a ordinal) compare(b ordinal) int {
	switch {
	case a[0] < b[0] || a[0] == b[0] && a[1] < b[1]:
		return -1
	case a == b:
		return 0
	}
	return 1
}

type ordinals struct {
	words  []uint64
	wide   [][2]uint64
	valid  []byte
	invert uint64
}

func newOrdinals(a arrow.Array, t types.Type, desc bool) (*ordinals, error) {
	o := &ordinals{valid: kernels.Valid(a)}
	if desc {
		o.invert = ^uint64(0)
	}
	switch w := rowkey.Width(t); {
	case w > 0 && w <= 8:
		o.words = rowkey.Words(a, t, false, make([]uint64, 0, a.Len()))
	case w == 16:
		o.wide = rowkey.Wide(a, t, make([][2]uint64, 0, a.Len()))
	default:
		return nil, errs.New(errs.Unsupported, "plan", "a frame of RANGE over %s is not supported", t)
	}
	return o, nil
}

func (o *ordinals) null(i int) bool { return o.valid != nil && !kernels.Bit(o.valid, i) }

func (o *ordinals) at(i int) ordinal {
	if o.words != nil {
		return ordinal{o.words[i] ^ o.invert}
	}
	return ordinal{o.wide[i][0] ^ o.invert, o.wide[i][1] ^ o.invert}
}

// search finds the first row of [from, to) whose key is not before limit, or with beyond, behind limit. Limits mostly rise
// with the rows, so that the place is near the last one.
func (o *ordinals) search(limit ordinal, from, to, near int32, beyond bool) int32 {
	before := func(i int32) bool {
		c := o.at(int(i)).compare(limit)
		return c < 0 || beyond && c == 0
	}
	var lo, hi int32
	near = min(max(near, from), to)
	if near < to && before(near) {
		step := int32(1)
		for lo = near + 1; lo < to && to-lo >= step && before(lo+step-1); step *= 2 {
			lo += step
		}
		hi = min(to, lo+step-1)
		if to-lo < step {
			hi = to
		}
	} else {
		step := int32(1)
		for hi = near; hi > from && hi-from >= step && !before(hi-step); step *= 2 {
			hi -= step
		}
		lo = from
		if hi-from >= step {
			lo = hi - step + 1
		}
	}
	return lo + int32(sort.Search(int(hi-lo), func(k int) bool { return !before(lo + int32(k)) }))
}

// exclude makes the holes of frames.
func (o *overFrame) exclude(p *inPartitions, f *fn.Frames) {
	if o.of.Exclude == plan.ExcludeNothing {
		return
	}
	f.HoleLo, f.HoleHi, f.Self = make([]int32, p.rows), make([]int32, p.rows), o.of.Exclude == plan.ExcludeTies
	hole := func(i, lo, hi int32) {
		lo, hi = max(lo, f.Lo[i]), min(hi, f.Hi[i])
		if lo >= hi {
			lo, hi = f.Hi[i], f.Hi[i]
		}
		f.HoleLo[i], f.HoleHi[i] = lo, hi
	}
	if o.of.Exclude == plan.ExcludeCurrentRow {
		for i := range int32(p.rows) {
			hole(i, i, i+1)
		}
		return
	}
	for k, first := range p.peers[:len(p.peers)-1] {
		for i := first; i < p.peers[k+1]; i++ {
			hole(i, first, p.peers[k+1])
		}
	}
}
