package incremental

import (
	"bytes"
	"cmp"
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
// and of the rows of a step only those are stored that are among the first behind it: until then a row is its place in the batch that
// brought it.
//
//	in:    inserts            out: changes of the first rows; closing and at end: the first rows, once
//	state: first_rows, group_first_rows    rows; in the key group of their partition
//	time:  partitions that the watermark has settled are dropped by range
type firstRows struct {
	when     emitWhen
	places   int
	numbered bool

	part     *expr.Program
	computed *expr.Program // the order columns that are none of the row's
	words    *orderWords
	order    []int  // by order column: which one of the row's it is, or the complement of which one of those computed
	reads    []bool // of the row's columns: what is evaluated needs it
	cols     int
	nPart    int

	rows *state.Table
	vals []state.Values
	keys storedOrder // of rows

	parts *partitions
	heads state.Chunked[partHead] // by partition
	lists [2]rooms                // of few rows and of all places: those of a partition, in order

	batches  []rowsOfStep
	touched  []uint32   // partitions with rows of this step, in order
	before   []firstRow // the rows that they had, one after the other
	fresh    []uint32   // rows to be stored
	groups   []uint8    // their key groups
	made     []uint32   // rows of this step that were stored
	gone     []uint32   // rows that fell out in this step
	partSlot []uint32
	lead     []uint64
	out      shownRows
	plus     shownRows
}

// partHead is what is looked at for every row.
type partHead struct {
	bound   uint64 // the lead of the last row; while places are free one that no lead is greater than
	before  uint32 // once touched: where before has its rows
	list    uint32
	n, had  uint8 // rows, and how many there were before the step
	group   uint8
	touched bool
}

// firstRow is a row among the first of its partition: stored, or of a batch of this step.
type firstRow struct {
	lead uint64
	slot uint32 // NoSlot: it is not stored
	row  uint32 // then: number of the batch, shifted, and the row there
}

// fewRows is how many rows a partition has room for at first: with one stored row among many places it would take more than the row.
const fewRows = 4

// batchShift is how far the number of a batch is shifted: a batch has up to that many rows.
const (
	batchShift = 16
	batchRows  = 1 << batchShift
	maxBatches = 1 << (32 - batchShift)
)

var (
	allFirstRows   = state.Decl{Name: "first_rows", Version: 1, Key: state.Sequence, About: "rows of the first few places"}
	groupFirstRows = state.Decl{Name: "group_first_rows", Version: 1, Key: state.Sequence,
		About: "rows of the first few places; in the key group of their partition"}
)

// newFirstRows takes over from a topN that has no tables yet. What it keeps is no table of a topN and has names of its own, so that a
// snapshot of the one is never taken for the other's.
func newFirstRows(t *topN, decl state.Decl, part, order []expr.Expr, keys []rowkey.Key, cols []plan.Column) (*firstRows, error) {
	f := &firstRows{when: t.when, places: int(t.limit), numbered: t.numbered, part: t.part, parts: t.parts, cols: t.cols, nPart: t.nPart, vals: t.vals}
	order, keys = undecided(part, order, keys)
	var err error
	f.words = newOrderWords(exprTypes(order), keys)
	f.order = make([]int, len(order))
	var computed []expr.Expr
	layout := layoutOf(cols)
	for i, e := range order {
		if c, ok := e.(*expr.Col); ok {
			f.order[i] = layout[c.ID]
			continue
		}
		f.order[i] = ^len(computed)
		computed = append(computed, e)
	}
	if f.computed, err = expr.CompileAll(computed, layout); err != nil {
		return nil, err
	}
	f.reads = make([]bool, len(cols))
	for _, e := range slices.Concat(part, computed) {
		for id := range plan.ExprColumns(e) {
			f.reads[layout[id]] = true
		}
	}
	decl.Values = valueNames(cols)
	f.rows = state.NewTable(decl, stateColumns(f.vals)...)
	f.rows.CopyLate() // a row is written when it is made, and never after
	f.lists = [2]rooms{{each: min(fewRows, f.places)}, {each: f.places}}
	return f, nil
}

// undecided leaves out the order columns that are alike in all rows of a partition.
func undecided(part, order []expr.Expr, keys []rowkey.Key) ([]expr.Expr, []rowkey.Key) {
	var left []expr.Expr
	var leftKeys []rowkey.Key
	for i, e := range order {
		c, ok := e.(*expr.Col)
		alike := ok && plan.PrintsAsItCompares(c.T) && slices.ContainsFunc(part, func(p expr.Expr) bool {
			k, ok := p.(*expr.Col)
			return ok && k.ID == c.ID
		})
		if !alike {
			left, leftKeys = append(left, e), append(leftKeys, keys[i])
		}
	}
	return left, leftKeys
}

// Prepare puts the partition columns and what the order computes behind the row's columns.
func (f *firstRows) Prepare(env *fn.Env, _ int, d flow.Delta) (Batch, error) {
	b := late(d)
	if b == nil {
		return withKeys(f.part, f.computed, env, d.Columns(), d.Rows())
	}
	cols := make([]arrow.Array, f.cols)
	for i, read := range f.reads {
		if read {
			cols[i] = b.Column(i)
		}
	}
	in, err := withKeys(f.part, f.computed, env, cols, b.n)
	in.late = b
	return in, err
}

// orderOf gives the order columns of rows by the columns of these and what was computed of them.
func (f *firstRows) orderOf(column func(i int) arrow.Array, computed []arrow.Array) orderColumns {
	return func(i int) arrow.Array {
		if at := f.order[i]; at < 0 {
			return computed[^at]
		}
		return column(f.order[i])
	}
}

func (f *firstRows) Process(ctx *Ctx, _ int, in Batch) error {
	for from := 0; from < in.N; from += batchRows {
		some := in.slice(from, min(in.N, from+batchRows))
		if err := f.parts.fetch(ctx.Env, some.Cols[f.cols:f.cols+f.nPart], some.N, some.Hash); err != nil {
			return err
		}
		f.offer(some)
	}
	return nil
}

// offer gives the rows of a batch their places, as far as they have one.
func (f *firstRows) offer(in Batch) {
	if len(f.batches) == maxBatches {
		f.store()
	}
	f.partSlot = kernels.Sized(f.partSlot, in.N)
	f.find(&in, f.partSlot)
	b := rowsOfStep{cols: in.Cols[:f.cols], late: in.late, computed: in.Cols[f.cols+f.nPart:]}
	rows := b
	b.order = orderOfBatch{of: f.words, cols: f.orderOf(rows.column, b.computed), n: in.N}
	f.lead = f.words.read(0, b.order.cols, in.N, f.lead[:0])
	first := uint32(len(f.batches)) << batchShift
	f.batches = append(f.batches, b)
	for i, p := range f.partSlot {
		if h := f.heads.At(p); f.lead[i] <= h.bound {
			f.place(p, h, firstRow{f.lead[i], state.NoSlot, first | uint32(i)})
		}
	}
}

// find writes the partition of each row.
func (f *firstRows) find(in *Batch, numbers []uint32) {
	f.begin(f.parts.find(in.Cols[f.cols:f.cols+f.nPart], in.N, in.Hash, numbers), numbers)
}

// begin sets up partitions that are new.
func (f *firstRows) begin(fresh []int32, numbers []uint32) {
	f.heads.Resize(f.parts.table.Slots())
	for _, i := range fresh {
		n := numbers[i]
		*f.heads.At(n) = partHead{bound: math.MaxUint64, list: f.lists[0].take(), group: f.parts.table.Group(n)}
	}
}

// place gives a row of this step its place in its partition, if it has one.
func (f *firstRows) place(part uint32, h *partHead, r firstRow) {
	list, n := f.room(h), int(h.n)
	at := f.search(list[:n], &r)
	if at == f.places {
		return
	}
	f.touch(part, h, list)
	if n == f.places {
		n--
		if s := list[n].slot; s != state.NoSlot {
			f.gone = append(f.gone, s)
		}
	}
	f.insert(h, at, n, r)
}

// room is where the rows of a partition are, and more may be.
func (f *firstRows) room(h *partHead) []firstRow { return f.lists[f.size(h)].of(h.list) }

// size is which of the lists a partition has room in.
func (f *firstRows) size(h *partHead) int {
	if int(h.n) > f.lists[0].each {
		return 1
	}
	return 0
}

// listOf is the rows of a partition in order.
func (f *firstRows) listOf(h *partHead) []firstRow { return f.room(h)[:h.n] }

// search is where a row stands in a list: behind the rows that are equal.
func (f *firstRows) search(list []firstRow, r *firstRow) int {
	at := len(list)
	for at > 0 && (list[at-1].lead > r.lead || list[at-1].lead == r.lead && f.compareRest(&list[at-1], r) > 0) {
		at--
	}
	return at
}

// insert puts a row into a list of which n rows stay.
func (f *firstRows) insert(h *partHead, at, n int, r firstRow) {
	list := f.room(h)
	if n == len(list) {
		from := h.list
		h.list = f.lists[1].take()
		list = f.lists[1].of(h.list)
		copy(list, f.lists[0].of(from))
		f.lists[0].free = append(f.lists[0].free, from)
	}
	for k := n; k > at; k-- {
		list[k] = list[k-1]
	}
	list[at] = r
	if h.n = uint8(n + 1); int(h.n) == f.places {
		h.bound = list[n].lead
	}
}

// compareRest compares the order keys of two rows of equal leads.
func (f *firstRows) compareRest(a, b *firstRow) int {
	nulls := f.nulls(a) ^ f.nulls(b)
	for w, x := range f.words.words {
		if w > 0 {
			if c := cmp.Compare(f.word(w, a), f.word(w, b)); c != 0 {
				return c
			}
		}
		if nulls&x.null == 0 {
			continue
		}
		if f.nulls(a)&x.null != 0 == x.key.NullsFirst { // the least or the greatest value has the word of NULL
			return -1
		}
		return 1
	}
	if f.words.rest == nil {
		return 0
	}
	return bytes.Compare(f.rest(a), f.rest(b))
}

func (f *firstRows) word(w int, r *firstRow) uint64 {
	if r.slot != state.NoSlot {
		return *f.keys.words[w].At(r.slot)
	}
	return f.batches[r.row>>batchShift].order.word(w, r.row%batchRows)
}

func (f *firstRows) nulls(r *firstRow) uint8 {
	if r.slot != state.NoSlot {
		return f.keys.nullsOf(r.slot)
	}
	return f.batches[r.row>>batchShift].order.nullsOf(r.row % batchRows)
}

func (f *firstRows) rest(r *firstRow) []byte {
	if r.slot != state.NoSlot {
		return f.keys.rest.Get(r.slot)
	}
	return f.batches[r.row>>batchShift].order.restOf(r.row % batchRows)
}

// touch remembers the rows of a partition before its first change in a step.
func (f *firstRows) touch(part uint32, h *partHead, list []firstRow) {
	if h.touched {
		return
	}
	h.touched, h.had, h.before = true, h.n, uint32(len(f.before))
	f.touched = append(f.touched, part)
	if f.when == changelog {
		f.before = append(f.before, list[:h.n]...)
	}
}

// store keeps the rows of the step that are among the first now.
func (f *firstRows) store() {
	f.fresh, f.groups = f.fresh[:0], f.groups[:0]
	for _, p := range f.touched {
		h := f.heads.At(p)
		for _, r := range f.listOf(h) {
			if r.slot == state.NoSlot {
				f.fresh, f.groups = append(f.fresh, r.row), append(f.groups, h.group)
			}
		}
	}
	if len(f.fresh) > 0 {
		f.narrow()
		from := len(f.made)
		f.made = slices.Grow(f.made, len(f.fresh))[:from+len(f.fresh)]
		f.put(f.made[from:])
		slots := f.made[from:]
		for _, p := range f.touched {
			list := f.listOf(f.heads.At(p))
			for i := range list {
				if list[i].slot == state.NoSlot {
					list[i].slot, slots = slots[0], slots[1:]
				}
			}
		}
	}
	clear(f.batches)
	f.batches = f.batches[:0]
}

// narrow gathers of late batches the rows that are to be stored.
func (f *firstRows) narrow() {
	rows := make([][]int32, len(f.batches)) // of those that are late
	for i := range rows {
		if f.batches[i].late != nil {
			rows[i] = []int32{}
		}
	}
	for i, r := range f.fresh {
		if at := r >> batchShift; rows[at] != nil {
			f.fresh[i] = at<<batchShift | uint32(len(rows[at]))
			rows[at] = append(rows[at], int32(r%batchRows))
		}
	}
	for i, some := range rows {
		if some != nil {
			f.batches[i] = f.batches[i].take(some)
		}
	}
}

// put makes slots of fresh rows.
func (f *firstRows) put(slots []uint32) {
	f.rows.Append(f.groups, slots)
	cols, all := make([]arrow.Array, f.cols), allRows(len(slots))
	for i, v := range f.vals {
		cols[i] = f.take(func(b *rowsOfStep) arrow.Array { return b.cols[i] })
		v.Put(slots, cols[i], all)
	}
	computed := make([]arrow.Array, len(f.batches[0].computed))
	for i := range computed {
		computed[i] = f.take(func(b *rowsOfStep) arrow.Array { return b.computed[i] })
	}
	f.keys.put(f.words, f.orderOf(func(i int) arrow.Array { return cols[i] }, computed), slots, f.rows.Slots())
}

// allRows are the numbers of n rows.
func allRows(n int) []int32 {
	out := make([]int32, n)
	for i := range out {
		out[i] = int32(i)
	}
	return out
}

// take gathers a column of fresh rows.
func (f *firstRows) take(column func(*rowsOfStep) arrow.Array) arrow.Array {
	parts := make([]arrow.Array, len(f.batches))
	for i := range f.batches {
		parts[i] = column(&f.batches[i])
	}
	return kernels.NewChunked(parts, batchShift).Take(f.fresh)
}

func (f *firstRows) Advance(ctx *Ctx, w flow.Watermark) error {
	f.store()
	var err error
	switch {
	case f.when == changelog:
		err = f.emitChanges(ctx)
	case f.when == atEnd && w == flow.EndWatermark:
		f.endStep()
		err = f.parts.all(ctx.Env, func(parts []uint32) error { return f.end(ctx, parts, true) })
	}
	if err != nil {
		return err
	}
	f.endStep()
	return f.parts.settle(ctx.Env, w, func(parts []uint32) error { return f.end(ctx, parts, f.when == closed) })
}

// end drops partitions, and shows them before.
func (f *firstRows) end(ctx *Ctx, parts []uint32, shown bool) error {
	if shown {
		if err := f.emitAll(ctx, parts); err != nil {
			return err
		}
	}
	f.drop(parts)
	f.endStep()
	return nil
}

// shownRows are rows to emit, with their numbers where those are asked for, and weights.
type shownRows struct {
	slots   []uint32
	numbers []int64
	weights []int64
}

func (f *firstRows) emitChanges(ctx *Ctx) error {
	out, plus := &f.out, &f.plus
	for _, p := range f.touched {
		h := f.heads.At(p)
		was, now := f.before[h.before:h.before+uint32(h.had)], f.listOf(h)
		if f.numbered {
			f.renumbered(was, now, out, plus)
			continue
		}
		f.missing(out, was, now, -1)
		f.missing(plus, now, was, 1)
	}
	if len(out.slots) == 0 {
		*out, *plus = *plus, *out
	} else {
		out.slots, out.numbers, out.weights = append(out.slots, plus.slots...), append(out.numbers, plus.numbers...), append(out.weights, plus.weights...)
		plus.reset()
	}
	return f.emit(ctx)
}

// renumbered compares place by place. Rows do not get fewer.
func (f *firstRows) renumbered(was, now []firstRow, minus, plus *shownRows) {
	for k := range now {
		if k < len(was) {
			if was[k].slot == now[k].slot || f.equal(&was[k], &now[k]) {
				continue
			}
			minus.add(was[k].slot, int64(k)+1, -1)
		}
		plus.add(now[k].slot, int64(k)+1, 1)
	}
}

// missing adds the rows that others lacks. Equal rows are one of a higher weight; they stand together, and the first to come is the last to
// go, so that none is in both lists.
func (f *firstRows) missing(to *shownRows, rows, others []firstRow, sign int64) {
	var last *firstRow
	for i := range rows {
		r := &rows[i]
		switch {
		case slices.ContainsFunc(others, func(o firstRow) bool { return o.slot == r.slot }):
		case last != nil && f.equal(last, r):
			to.weights[len(to.weights)-1] += sign
		default:
			to.add(r.slot, 0, sign)
			last = r
		}
	}
}

// equal reports whether two rows of a partition are the same.
func (f *firstRows) equal(a, b *firstRow) bool { return a.lead == b.lead && f.compareRest(a, b) == 0 }

func (r *shownRows) add(slot uint32, number, weight int64) {
	r.slots, r.numbers, r.weights = append(r.slots, slot), append(r.numbers, number), append(r.weights, weight)
}

func (r *shownRows) reset() {
	r.slots, r.numbers, r.weights = r.slots[:0], r.numbers[:0], r.weights[:0]
}

// emitAll emits the rows of whole partitions.
func (f *firstRows) emitAll(ctx *Ctx, parts []uint32) error {
	for _, p := range parts {
		for k, r := range f.listOf(f.heads.At(p)) {
			f.out.add(r.slot, int64(k)+1, 1)
		}
	}
	return f.emit(ctx)
}

// emit shows what out holds.
func (f *firstRows) emit(ctx *Ctx) error {
	r := &f.out
	if len(r.slots) == 0 {
		return nil
	}
	cols, err := gather(f.vals, r.slots)
	if err != nil {
		return err
	}
	if f.numbered {
		cols = append(cols, int64Array(slices.Clone(r.numbers)))
	}
	n, weights := len(r.slots), slices.Clone(r.weights)
	r.reset()
	return ctx.Emit(cols, n, weights)
}

func (f *firstRows) endStep() {
	for _, p := range f.touched {
		f.heads.At(p).touched = false
	}
	f.parts.units.Changed(f.touched)
	f.rows.Touch(f.made)
	f.rows.Delete(f.gone)
	f.keys.forget(f.words, f.gone)
	f.made, f.gone, f.touched, f.before = f.made[:0], f.gone[:0], f.touched[:0], f.before[:0]
}

// drop forgets whole partitions.
func (f *firstRows) drop(parts []uint32) {
	for _, p := range parts {
		h := f.heads.At(p)
		for _, r := range f.listOf(h) {
			f.gone = append(f.gone, r.slot)
		}
		f.giveRoom(h)
	}
	f.parts.drop(parts)
}

// giveRoom gives the room of a partition's rows to another.
func (f *firstRows) giveRoom(h *partHead) {
	rooms := &f.lists[f.size(h)]
	rooms.free = append(rooms.free, h.list)
}

func (f *firstRows) Tables() []state.Stored { return []state.Stored{f.rows} }

func (f *firstRows) evictable() []evicted { return f.parts.evictableBy(f, f.rows, f.nPart) }

func (f *firstRows) rowsOf(part uint32, to []uint32) []uint32 {
	for _, r := range f.listOf(f.heads.At(part)) {
		to = append(to, r.slot)
	}
	return to
}

func (f *firstRows) leave(parts []uint32) {
	for _, p := range parts {
		f.keys.forget(f.words, f.rowsOf(p, nil))
		f.giveRoom(f.heads.At(p))
	}
}

func (f *firstRows) arrange(env *fn.Env, slots, parts []uint32) error {
	cols, err := gather(f.vals, slots)
	if err != nil || len(slots) == 0 {
		return err
	}
	computed, err := f.computed.EvalArrays(env, cols, len(slots))
	if err != nil {
		return err
	}
	f.index(cols, computed, slots, parts)
	return nil
}

// index puts stored rows into the order of their partitions, by their columns and what was computed of them.
func (f *firstRows) index(cols, computed []arrow.Array, slots, parts []uint32) {
	order := f.orderOf(func(i int) arrow.Array { return cols[i] }, computed)
	f.keys.put(f.words, order, slots, f.rows.Slots())
	lead := f.words.read(0, order, len(slots), nil)
	for i, s := range slots {
		h, r := f.heads.At(parts[i]), firstRow{lead: lead[i], slot: s}
		f.insert(h, f.search(f.listOf(h), &r), int(h.n), r)
	}
}

func (f *firstRows) Restored(env *fn.Env) error {
	in, slots, err := storedRows(f.rows, f.vals, f.part, f.computed, env)
	if err != nil || in.N == 0 {
		return err
	}
	if err := f.parts.fetch(env, in.Cols[f.cols:f.cols+f.nPart], in.N, in.Hash); err != nil { // those with rows that left while others came
		return err
	}
	parts := make([]uint32, in.N)
	f.find(&in, parts)
	f.parts.units.Changed(parts)
	f.index(in.Cols[:f.cols], in.Cols[f.cols+f.nPart:], slots, parts)
	return nil
}
