package exec

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/hashtable"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/types"
)

// aggregate is an aggregate over frames. Accumulators that can say it of rows in order do; the others are given whole partitions, or
// the rows of short frames one by one, or long frames as nodes of a tree of accumulators.
func (r *overRows) aggregate(it *overItem) (arrow.Array, error) {
	a := &overAgg{r: r, it: it, distinct: it.Agg.Distinct}
	if it.frame.whole(len(it.Order) > 0) {
		return a.whole()
	}
	a.f = r.frames[it.key()]
	acc := r.aggs.fresh(it.agg)
	if framed, ok := acc.(fn.Framed); ok && !a.distinct {
		if out, ok, err := a.framed(framed); ok || err != nil {
			return out, err
		}
	}
	ids := make([]uint32, r.rows)
	for i := range ids {
		ids[i] = uint32(i)
	}
	var rows []uint32
	rows, a.args, _ = r.aggs.Inputs(it.agg, r.args, ids)
	if a.distinct && a.onlyGrows() {
		rows = a.firsts(rows)
		a.distinct = false
	}
	a.compress(rows)
	if !a.distinct && a.long() {
		return a.byTree()
	}
	return a.byRows()
}

// overAgg computes one aggregate over frames whose accumulator cannot do it alone.
type overAgg struct {
	r        *overRows
	it       *overItem
	distinct bool
	f        *fn.Frames
	args     []fn.Arg // of the rows that count
	before   []int32  // by row: how many rows that count are before it; nil: all count
	rows     int      // that count
}

// framed asks the accumulator.
func (a *overAgg) framed(acc fn.Framed) (arrow.Array, bool, error) {
	p, c := a.r.aggs, a.r.aggs.calls[a.it.agg]
	var mask []byte
	args := make([]fn.Arg, len(c.args))
	for i, at := range c.args {
		args[i] = fn.Arg{Array: a.r.args[at]}
		if !p.items[a.it.agg].Fn.KeepNulls {
			mask = kernels.AndBits(mask, kernels.Valid(args[i].Array))
		}
	}
	if c.filter >= 0 {
		m := a.r.args[c.filter].(*array.Boolean)
		mask = kernels.AndBits(mask, kernels.AndBits(kernels.BoolBits(m), kernels.Valid(m)))
	}
	return acc.OverFrames(args, a.r.rows, mask, a.f)
}

// whole groups by partition.
func (a *overAgg) whole() (arrow.Array, error) {
	r := a.r
	groups := make([]uint32, r.rows)
	parts := len(r.parts) - 1
	for g := range parts {
		for i := r.parts[g]; i < r.parts[g+1]; i++ {
			groups[i] = uint32(g)
		}
	}
	acc := r.aggs.fresh(a.it.agg)
	acc.Resize(parts)
	kept, args, _ := r.aggs.Inputs(a.it.agg, r.args, groups)
	if a.distinct {
		ids := a.valueIDs(args, kept, len(kept))
		seen, sel := uint32(0), make([]int32, 0, len(ids))
		for i, id := range ids {
			if id == seen {
				sel = append(sel, int32(i))
				seen++
			}
		}
		kept, args = pickGroups(kept, sel), takeArgs(args, sel)
	}
	if len(kept) > 0 {
		if err := acc.Add(kept, args, nil); err != nil {
			return nil, err
		}
	}
	all := make([]uint32, parts)
	for i := range all {
		all[i] = uint32(i)
	}
	res, err := acc.Result(all)
	if err != nil {
		return nil, err
	}
	idx := make([]int32, r.rows)
	for i, g := range groups {
		idx[i] = int32(g)
	}
	return kernels.Take(res, idx), nil
}

func pickGroups(groups []uint32, sel []int32) []uint32 {
	out := make([]uint32, len(sel))
	for i, s := range sel {
		out[i] = groups[s]
	}
	return out
}

func takeArgs(args []fn.Arg, sel []int32) []fn.Arg {
	out := make([]fn.Arg, len(args))
	for i, a := range args {
		out[i] = fn.Arg{Array: kernels.Take(a.Array, sel)}
	}
	return out
}

// valueIDs numbers the different arguments, within their groups where there are some, in order of appearance.
func (a *overAgg) valueIDs(args []fn.Arg, groups []uint32, n int) []uint32 {
	ids := make([]uint32, n)
	if n == 0 {
		return ids
	}
	var cols []arrow.Array
	var ts []types.Type
	if groups != nil {
		cols, ts = append(cols, kernels.NewFixed(arrow.PrimitiveTypes.Uint32, groups, nil)), append(ts, types.Uint32)
	}
	c := a.r.aggs.calls[a.it.agg]
	for i, x := range args[:len(a.it.Agg.Args)] {
		cols, ts = append(cols, x.Array), append(ts, c.types[i])
	}
	hashtable.NewTable(ts).FindOrAdd(cols, n, ids)
	return ids
}

// onlyGrows says that every frame holds that of the row before it, within a partition.
func (a *overAgg) onlyGrows() bool {
	if a.f.HoleLo != nil {
		return false
	}
	k := 0
	for i, lo := range a.f.Lo {
		for int32(i) >= a.r.parts[k+1] {
			k++
		}
		if lo != a.r.parts[k] {
			return false
		}
	}
	return true
}

// firsts keeps, of the rows that count, the first of each value in its partition.
func (a *overAgg) firsts(rows []uint32) []uint32 {
	groups := make([]uint32, len(rows))
	k := 0
	for i, row := range rows {
		for int32(row) >= a.r.parts[k+1] {
			k++
		}
		groups[i] = uint32(k)
	}
	seen, sel := uint32(0), []int32{}
	for i, id := range a.valueIDs(a.args, groups, len(rows)) {
		if id == seen {
			sel = append(sel, int32(i))
			seen++
		}
	}
	a.args = takeArgs(a.args, sel)
	return pickGroups(rows, sel)
}

// compress counts in rows that count from here on.
func (a *overAgg) compress(rows []uint32) {
	a.rows = len(rows)
	if a.rows == a.r.rows {
		return
	}
	a.before = make([]int32, a.r.rows+1)
	k := 0
	for i := range a.before {
		for k < len(rows) && int(rows[k]) < i {
			k++
		}
		a.before[i] = int32(k)
	}
}

// spans are the runs of a frame, in rows that count.
func (a *overAgg) spans(i int, out *[3][2]int32) [][2]int32 {
	n := a.f.Spans(i, out)
	if a.before != nil {
		for k := range out[:n] {
			out[k] = [2]int32{a.before[out[k][0]], a.before[out[k][1]]}
		}
	}
	return out[:n]
}

// shortFrame is up to how many rows a frame has in the mean, so that they are added one by one.
const shortFrame = 40

func (a *overAgg) long() bool {
	total := 0
	var spans [3][2]int32
	for i := range a.f.Lo {
		for _, s := range a.spans(i, &spans) {
			total += int(s[1] - s[0])
		}
		if total > shortFrame*(len(a.f.Lo)+8) {
			return true
		}
	}
	return false
}

// frameEntries is about how many rows and nodes are added at a time.
const frameEntries = 64 << 10

// byRows adds the rows of each frame.
func (a *overAgg) byRows() (arrow.Array, error) {
	var ids, stamps []uint32
	if a.distinct {
		ids = a.valueIDs(a.args, nil, a.rows)
		most := uint32(0)
		for _, id := range ids {
			most = max(most, id+1)
		}
		stamps = make([]uint32, most)
	}
	var spans [3][2]int32
	var groups []uint32
	var rows []int32
	return a.inChunks(func(i int, g uint32) int {
		for _, s := range a.spans(i, &spans) {
			for row := s[0]; row < s[1]; row++ {
				if ids != nil {
					if stamps[ids[row]] == uint32(i)+1 {
						continue
					}
					stamps[ids[row]] = uint32(i) + 1
				}
				groups, rows = append(groups, g), append(rows, row)
			}
		}
		return len(rows)
	}, func(acc fn.Accumulator) error {
		if len(rows) == 0 {
			return nil
		}
		err := acc.Add(groups, takeArgs(a.args, rows), nil)
		groups, rows = groups[:0], rows[:0]
		return err
	})
}

// inChunks gives results some frames at a time: gather notes what frame i consists of, for group g, and says how much is noted; add
// gives it to the accumulator.
func (a *overAgg) inChunks(gather func(i int, g uint32) int, add func(acc fn.Accumulator) error) (arrow.Array, error) {
	var parts []arrow.Array
	n := len(a.f.Lo)
	var all []uint32
	for i := 0; i < n; {
		g := uint32(0)
		for ; i < n; i++ {
			noted := gather(i, g)
			g++
			if noted >= frameEntries {
				i++
				break
			}
		}
		for len(all) < int(g) {
			all = append(all, uint32(len(all)))
		}
		acc := a.r.aggs.fresh(a.it.agg)
		acc.Resize(int(g))
		if err := add(acc); err != nil {
			return nil, err
		}
		res, err := acc.Result(all[:g])
		if err != nil {
			return nil, err
		}
		parts = append(parts, res)
	}
	if len(parts) == 0 {
		return kernels.Nulls(a.it.Col.Type.Arrow(), 0), nil
	}
	return kernels.Concat(parts), nil
}

// frameFan is how many children a node of the tree has.
const (
	frameFanBits = 4
	frameFan     = 1 << frameFanBits
)

// byTree builds accumulators of frameFan rows each, of as many of these, and so on, and merges the few that a frame consists of.
func (a *overAgg) byTree() (arrow.Array, error) {
	fresh := func(n int) fn.Accumulator {
		acc := a.r.aggs.fresh(a.it.agg)
		acc.Resize(n)
		return acc
	}
	parents := func(n int) []uint32 {
		into := make([]uint32, n)
		for i := range into {
			into[i] = uint32(i) >> frameFanBits
		}
		return into
	}
	var levels []arrow.Array // saved accumulators
	var below fn.Accumulator
	for n := a.rows; n > frameFan; {
		up := (n + frameFan - 1) >> frameFanBits
		acc := fresh(up)
		var err error
		if below == nil {
			err = acc.Add(parents(n), a.args, nil)
		} else {
			err = acc.Merge(below, parents(n))
		}
		if err != nil {
			return nil, err
		}
		all := make([]uint32, up)
		for i := range all {
			all[i] = uint32(i)
		}
		if f, ok := acc.(fn.Finisher); ok {
			f.Finish()
		}
		saved, err := acc.Save(all)
		if err != nil {
			return nil, err
		}
		levels, below, n = append(levels, saved), acc, up
	}
	type entries struct {
		groups []uint32
		at     []int32
	}
	noted := make([]entries, len(levels)+1)
	count := 0
	var spans [3][2]int32
	return a.inChunks(func(i int, g uint32) int {
		for _, s := range a.spans(i, &spans) {
			lo, hi := s[0], s[1]
			for l := range noted {
				e := &noted[l]
				note := func(from, to int32) {
					for k := from; k < to; k++ {
						e.groups, e.at = append(e.groups, g), append(e.at, k)
					}
					count += int(max(to-from, 0))
				}
				first, last := (lo+frameFan-1)>>frameFanBits, hi>>frameFanBits
				if l == len(levels) || first >= last {
					note(lo, hi)
					break
				}
				note(lo, first<<frameFanBits)
				note(last<<frameFanBits, hi)
				lo, hi = first, last
			}
		}
		return count
	}, func(acc fn.Accumulator) error {
		count = 0
		for l := range noted {
			e := &noted[l]
			if len(e.at) == 0 {
				continue
			}
			var err error
			if l == 0 {
				err = acc.Add(e.groups, takeArgs(a.args, e.at), nil)
			} else {
				err = a.mergeNodes(acc, levels[l-1], e.groups, e.at)
			}
			if err != nil {
				return err
			}
			e.groups, e.at = e.groups[:0], e.at[:0]
		}
		return nil
	})
}

// mergeNodes adds saved accumulators to groups.
func (a *overAgg) mergeNodes(acc fn.Accumulator, saved arrow.Array, groups []uint32, at []int32) error {
	nodes := a.r.aggs.fresh(a.it.agg)
	nodes.Resize(len(at))
	all := make([]uint32, len(at))
	for i := range all {
		all[i] = uint32(i)
	}
	if err := nodes.Load(all, kernels.Take(saved, at)); err != nil {
		return err
	}
	return acc.Merge(nodes, groups)
}
