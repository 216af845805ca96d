package incremental

import (
	"bytes"
	"math"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/rowkey"
	"github.com/riverbed/riverbed/state"
)

// firstRows keeps the first few rows of each partition over inserts. What falls out can never be shown again, so rows need no identity,
// and of the rows of a batch only those are stored that are among the first behind it.
//
//	in:    inserts            out: changes of the first rows; closing and at end: the first rows, once
//	state: first_rows, group_first_rows    rows; in the key group of their partition
//	time:  partitions that the watermark has settled are dropped by range
type firstRows struct {
	when     emitWhen
	places   int
	numbered bool

	part     *expr.Program
	order    *expr.Program
	partEnc  *keyEncoder
	orderEnc *rowkey.Encoder
	leadEnc  *rowkey.Encoder // of the first order column alone; the whole key begins so
	cols     int
	nPart    int

	rows  *state.Table
	vals  []state.Values
	keyOf state.Bytes // by row: its order key, which no other row but an equal one has

	parts   *state.Table // derived: partition key → slot
	lists   []uint32     // by partition slot, a stretch of places: its rows in order
	lens    []int        // by partition slot
	bound   []uint64     // by partition slot: the beginning of the last row's key where all places are taken
	closing *closing
	timers  *timers
	closes  []int64

	step     uint64
	stamped  []uint64 // by partition slot
	touched  []uint32 // partitions, in order
	before   []uint32 // the rows that they had, one after the other
	counts   []int    // how many of before are of each
	made     []uint32 // rows of this step
	gone     []uint32 // rows that fell out in this step
	partSlot []uint32
	fresh    []candidate
}

// candidate is a row of a batch that stood among the first of its partition. In lists it is its number with the bit isCandidate, until it
// is stored.
type candidate struct {
	row  int32 // of the batch
	key  int32 // its number among the keys
	part uint32
	out  bool // another one has taken its place
}

const isCandidate = 1 << 31

var (
	allFirstRows   = state.Decl{Name: "first_rows", Version: 1, Key: state.Sequence, About: "rows of the first few places"}
	groupFirstRows = state.Decl{Name: "group_first_rows", Version: 1, Key: state.Sequence,
		About: "rows of the first few places; in the key group of their partition"}
)

// newFirstRows takes over from a topN that has no tables yet. What it keeps is no table of a topN and has names of its own, so that a
// snapshot of the one is never taken for the other's.
func newFirstRows(t *topN, decl state.Decl, order []expr.Expr, keys []rowkey.Key, cols []plan.Column) *firstRows {
	f := &firstRows{when: t.when, places: int(t.limit), numbered: t.numbered, part: t.part, order: t.order, partEnc: t.partEnc, orderEnc: t.orderEnc,
		cols: t.cols, nPart: t.nPart, vals: t.vals, closing: t.closing, timers: t.timers}
	f.leadEnc = rowkey.NewEncoder(exprTypes(order[:1]), keys[:1])
	decl.Values = valueNames(cols)
	stored := make([]state.Column, len(f.vals))
	for i, v := range f.vals {
		stored[i] = v
	}
	f.rows = state.NewTable(decl, stored...)
	f.parts = state.NewTable(indexOf(decl))
	f.partEnc.into(f.parts)
	return f
}

// Prepare puts the partition and order columns behind the row's.
func (f *firstRows) Prepare(env *fn.Env, _ int, d flow.Delta) (Batch, error) {
	return withKeys(f.part, f.order, env, d.Columns(), d.Rows())
}

func (f *firstRows) Process(_ *Ctx, _ int, in Batch) error {
	f.partSlot = resize(f.partSlot, in.N)
	f.partitions(&in, f.partSlot)
	order := in.Cols[f.cols+f.nPart:]
	rows := f.promising(order[:1], in.N)
	if len(rows) < in.N {
		order = kernels.TakeBatch(order, rows)
	}
	keys := f.orderEnc.Encode(order, len(rows))
	f.fresh = f.fresh[:0]
	for i, r := range rows {
		if p := f.partSlot[r]; prefix(keys.Row(i)) <= f.bound[p] {
			f.place(candidate{row: r, key: int32(i), part: p}, keys)
		}
	}
	f.store(&in, keys)
	return nil
}

// promising lists the rows that may be among the first by the beginning of their keys: most keys need not be made.
func (f *firstRows) promising(lead []arrow.Array, n int) []int32 {
	keys := f.leadEnc.Encode(lead, n)
	rows := make([]int32, 0, n)
	for i, p := range f.partSlot {
		if b := f.bound[p]; b == math.MaxUint64 || prefix(keys.Row(i)) <= b {
			rows = append(rows, int32(i))
		}
	}
	return rows
}

// list is the rows of a partition in order.
func (f *firstRows) list(part uint32) []uint32 {
	from := int(part) * f.places
	return f.lists[from : from+f.lens[part]]
}

// key is the order key of an entry of a list.
func (f *firstRows) key(entry uint32, keys rowkey.Rows) []byte {
	if entry&isCandidate != 0 {
		return keys.Row(int(f.fresh[entry&^isCandidate].key))
	}
	return f.keyOf.Get(entry)
}

// place gives a row of the batch its place in its partition, if it has one. It stands behind the rows that are equal.
func (f *firstRows) place(c candidate, keys rowkey.Rows) {
	part, key := c.part, keys.Row(int(c.key))
	list := f.list(part)
	at := len(list)
	for at > 0 && bytes.Compare(f.key(list[at-1], keys), key) > 0 {
		at--
	}
	if at == f.places {
		return
	}
	f.touch(part)
	if len(list) == f.places {
		f.dismiss(list[len(list)-1])
	} else {
		f.lens[part]++
		list = f.list(part)
	}
	copy(list[at+1:], list[at:])
	list[at] = isCandidate | uint32(len(f.fresh))
	f.fresh = append(f.fresh, c)
	if len(list) == f.places {
		f.bound[part] = prefix(f.key(list[len(list)-1], keys))
	}
}

func (f *firstRows) dismiss(entry uint32) {
	if entry&isCandidate != 0 {
		f.fresh[entry&^isCandidate].out = true
	} else {
		f.gone = append(f.gone, entry)
	}
}

// store keeps the candidates that are still among the first.
func (f *firstRows) store(in *Batch, keys rowkey.Rows) {
	rows, groups := make([]int32, 0, len(f.fresh)), make([]uint8, 0, len(f.fresh))
	for _, c := range f.fresh {
		if !c.out {
			rows, groups = append(rows, c.row), append(groups, uint8(kernels.KeyGroup(in.Hash[c.row])))
		}
	}
	if len(rows) == 0 {
		return
	}
	slots := make([]uint32, len(rows))
	f.rows.Append(groups, slots)
	for i, v := range f.vals {
		v.Put(slots, in.Cols[i], rows)
	}
	f.keyOf.Resize(f.rows.Slots())
	n := 0
	for i, c := range f.fresh {
		if c.out {
			continue
		}
		f.keyOf.Set(slots[n], keys.Row(int(c.key)))
		list := f.list(c.part)
		list[slices.Index(list, isCandidate|uint32(i))] = slots[n]
		n++
	}
	f.made = append(f.made, slots...)
}

// partitions finds or makes the partition of each row.
func (f *firstRows) partitions(in *Batch, slots []uint32) {
	fresh := f.parts.Upsert(f.partEnc.encode(in.Cols[f.cols:f.cols+f.nPart], in.N, in.Hash), slots)
	n := f.parts.Slots()
	f.lists, f.lens, f.bound = grown(f.lists, n*f.places, 0), grown(f.lens, n, 0), grown(f.bound, n, math.MaxUint64)
	f.closes, f.stamped = grown(f.closes, n, never), grown(f.stamped, n, 0)
	for _, i := range fresh {
		p := slots[i]
		f.lens[p], f.bound[p], f.closes[p] = 0, math.MaxUint64, never
	}
	if f.closing == nil || len(fresh) == 0 {
		return
	}
	at := closing{0, f.closing.after}.at([]arrow.Array{kernels.Take(in.Cols[f.cols+f.closing.pos], fresh)})
	for i, r := range fresh {
		f.closes[slots[r]] = at[i]
		f.timers.add(at[i], slots[r])
	}
}

// touch remembers the rows of a partition before its first change in a step.
func (f *firstRows) touch(part uint32) {
	if f.stamped[part] == f.step+1 {
		return
	}
	f.stamped[part] = f.step + 1
	if f.when == changelog {
		was := f.list(part)
		f.touched, f.before, f.counts = append(f.touched, part), append(f.before, was...), append(f.counts, len(was))
	}
}

func (f *firstRows) Advance(ctx *Ctx, w flow.Watermark) error {
	var err error
	switch {
	case f.when == changelog:
		err = f.emitChanges(ctx)
	case f.when == atEnd && w == flow.EndWatermark:
		all := f.parts.All()
		err = f.emitAll(ctx, all)
		f.drop(all)
	}
	if err != nil {
		return err
	}
	f.endStep()
	if f.closing == nil {
		return nil
	}
	due := f.timers.take(w, f.closes, f.parts.Live)
	if f.when == closed {
		if err := f.emitAll(ctx, due); err != nil {
			return err
		}
	}
	f.drop(due)
	f.endStep()
	return nil
}

// shown are rows to emit, with their numbers where those are asked for, and weights.
type shownRows struct {
	slots   []uint32
	numbers []int64
	weights []int64
}

func (f *firstRows) emitChanges(ctx *Ctx) error {
	var minus, plus shownRows
	from := 0
	for i, p := range f.touched {
		was, now := f.before[from:from+f.counts[i]], f.list(p)
		from += f.counts[i]
		if f.numbered {
			f.renumbered(was, now, &minus, &plus)
			continue
		}
		f.missing(&minus, was, now, -1)
		f.missing(&plus, now, was, 1)
	}
	if err := f.emit(ctx, &minus); err != nil {
		return err
	}
	return f.emit(ctx, &plus)
}

// renumbered compares place by place. Rows do not get fewer.
func (f *firstRows) renumbered(was, now []uint32, minus, plus *shownRows) {
	for k, s := range now {
		if k < len(was) {
			if was[k] == s || bytes.Equal(f.keyOf.Get(was[k]), f.keyOf.Get(s)) {
				continue
			}
			minus.add(was[k], int64(k)+1, -1)
		}
		plus.add(s, int64(k)+1, 1)
	}
}

// missing adds the rows that others lacks. Equal rows are one of a higher weight; they stand together, and the first to come is the last to
// go, so that none is in both lists.
func (f *firstRows) missing(to *shownRows, rows, others []uint32, sign int64) {
	first := len(to.slots)
	for _, s := range rows {
		switch n := len(to.slots); {
		case slices.Contains(others, s):
		case n > first && bytes.Equal(f.keyOf.Get(to.slots[n-1]), f.keyOf.Get(s)):
			to.weights[n-1] += sign
		default:
			to.add(s, 0, sign)
		}
	}
}

func (r *shownRows) add(slot uint32, number, weight int64) {
	r.slots, r.numbers, r.weights = append(r.slots, slot), append(r.numbers, number), append(r.weights, weight)
}

// emitAll emits the rows of whole partitions.
func (f *firstRows) emitAll(ctx *Ctx, parts []uint32) error {
	var out shownRows
	for _, p := range parts {
		for k, s := range f.list(p) {
			out.add(s, int64(k)+1, 1)
		}
	}
	return f.emit(ctx, &out)
}

func (f *firstRows) emit(ctx *Ctx, r *shownRows) error {
	if len(r.slots) == 0 {
		return nil
	}
	cols, err := gather(f.vals, r.slots)
	if err != nil {
		return err
	}
	if f.numbered {
		cols = append(cols, int64Array(r.numbers))
	}
	return ctx.Emit(cols, len(r.slots), r.weights)
}

func (f *firstRows) endStep() {
	f.rows.Touch(f.made)
	f.rows.Delete(f.gone)
	f.keyOf.Reset(f.gone)
	f.made, f.gone = f.made[:0], f.gone[:0]
	f.touched, f.before, f.counts = f.touched[:0], f.before[:0], f.counts[:0]
	f.step++
}

// drop forgets whole partitions.
func (f *firstRows) drop(parts []uint32) {
	for _, p := range parts {
		f.gone = append(f.gone, f.list(p)...)
		f.lens[p], f.closes[p] = 0, never
	}
	f.parts.Delete(parts)
}

func (f *firstRows) Tables() []state.Stored { return []state.Stored{f.rows} }

func (f *firstRows) Restored(env *fn.Env) error {
	slots := f.rows.All()
	if len(slots) == 0 {
		return nil
	}
	cols, err := gather(f.vals, slots)
	if err != nil {
		return err
	}
	in, err := withKeys(f.part, f.order, env, cols, len(slots))
	if err != nil {
		return err
	}
	parts := make([]uint32, in.N)
	f.partitions(&in, parts)
	keys := f.orderEnc.Encode(in.Cols[f.cols+f.nPart:], in.N)
	f.keyOf.Resize(f.rows.Slots())
	for i, s := range slots {
		p, key := parts[i], keys.Row(i)
		f.keyOf.Set(s, key)
		list := f.list(p)
		at := len(list)
		for at > 0 && bytes.Compare(f.keyOf.Get(list[at-1]), key) > 0 {
			at--
		}
		f.lens[p]++
		list = f.list(p)
		copy(list[at+1:], list[at:])
		list[at] = s
		if len(list) == f.places {
			f.bound[p] = prefix(f.keyOf.Get(list[len(list)-1]))
		}
	}
	return nil
}
