package incremental

import (
	"bytes"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/rowkey"
	"github.com/riverbed/riverbed/state"
)

// topN keeps the rows of each partition in order and shows the first of them, with their numbers where asked for.
// Over an append-only input it keeps no more than it may ever show; over an updating one it keeps all, since a
// retraction pulls up rows that had fallen out.
//
//	in:    any weights        out: changes of the first rows; closing and at end: the first rows, once
//	state: topn_rows, group_topn_rows    row → weight; in the key group of its partition
//	time:  partitions that the watermark has settled are dropped by range
type topN struct {
	when          emitWhen
	limit, offset int64
	rank          string
	numbered      bool
	trims         bool // rows beyond the last place can never be shown, and are not kept

	part     *expr.Program
	order    *expr.Program
	orderEnc *rowkey.Encoder
	rowEnc   *keyEncoder
	nOrder   int // ORDER BY keys among the order columns; tie-breaks follow
	peerEnc  *rowkey.Encoder
	cols     int
	nPart    int

	rows   *state.Table
	vals   []state.Values
	weight *state.Int64s
	keyOf  state.Bytes // by row: its order key, ties and row bytes included
	peerOf state.Bytes // by row: its ORDER BY keys, for rank and dense_rank
	partOf []uint32

	parts *partitions
	lists        // by partition
	full  []bool // by partition, where rows are trimmed: all places are taken

	step     uint64
	stamped  []uint64 // by partition
	at       []int32  // by row slot: scratch, -1
	touched  []uint32 // partitions, in order
	before   []place  // what touched partitions showed
	changed  []uint32 // rows whose weight changed
	slots    []uint32
	partSlot []uint32
}

// place is a row in the output of its partition.
type place struct {
	slot   uint32
	number int64
	weight int64
}

var (
	topNRows      = state.Decl{Name: "topn_rows", Version: 1, Key: state.RowKey, About: "row → weight"}
	groupTopNRows = state.Decl{Name: "group_topn_rows", Version: 1, Key: state.RowKey, About: "row → weight; in the key group of its partition"}
)

func newTopN(n *plan.TopN, emit plan.EmitPolicy) (Operator, error) {
	limit := n.Limit
	if limit < 0 {
		limit = never
	}
	t := &topN{limit: limit, offset: n.Offset, rank: "row_number", when: changelog}
	if !plan.Live(n) {
		t.when = atEnd
	}
	t.parts = newPartitions(nil, nil)
	return t.init(topNRows, allFirstRows, n, n.Input, nil, n.Keys, n.Tie, emit)
}

func newGroupTopN(n *plan.GroupTopN, emit plan.EmitPolicy) (Operator, error) {
	t := &topN{limit: n.Limit, rank: n.Rank, numbered: n.RowNumber != nil}
	if t.rank == "" {
		t.rank = "row_number"
	}
	var c *closing
	t.when, c = emitOf(n, n.Input, emit)
	if c != nil {
		col, _ := plan.ClosingColumn(n)
		found := false
		for i, e := range n.Part {
			if refers(e, col.ID) {
				c.pos, found = i, true
			}
		}
		if !found {
			return nil, errs.Bug("plan", "the closing column %s is not in PARTITION BY", col.Name)
		}
	}
	t.parts = newPartitions(n.Part, c)
	return t.init(groupTopNRows, groupFirstRows, n, n.Input, n.Part, n.Keys, n.Tie, emit)
}

// init sets the operator up over a table, and returns it or the one that takes over from it with another table.
func (t *topN) init(decl, first state.Decl, n, input plan.Node, part []expr.Expr, keys []plan.SortItem, tie []expr.ColID, emit plan.EmitPolicy) (op Operator, err error) {
	cols := input.Columns()
	byID := map[expr.ColID]plan.Column{}
	for _, c := range cols {
		byID[c.ID] = c
	}
	var order []expr.Expr
	var orderKeys []rowkey.Key
	for _, k := range keys {
		order = append(order, k.Expr)
		orderKeys = append(orderKeys, rowkey.Key{Desc: k.Key.Desc, NullsFirst: k.Key.NullsFirst})
	}
	t.nOrder = len(order)
	for _, id := range tie {
		if c, ok := byID[id]; ok { // a column pruned since is constant or unused above: it cannot decide
			order = append(order, c.Ref())
			orderKeys = append(orderKeys, rowkey.Key{Exact: true}) // as in batch: rows that differ in the sign of zero have an order too
		}
	}
	if t.part, err = expr.CompileAll(part, layoutOf(cols)); err != nil {
		return nil, err
	}
	if t.order, err = expr.CompileAll(order, layoutOf(cols)); err != nil {
		return nil, err
	}
	ts := columnTypes(cols)
	t.rowEnc = newRowEncoder(ts)
	t.orderEnc = rowkey.NewEncoder(exprTypes(order), orderKeys)
	t.peerEnc = rowkey.NewEncoder(exprTypes(order[:t.nOrder]), orderKeys[:t.nOrder])
	t.cols, t.nPart = len(cols), len(part)
	t.trims = plan.Trims(n, emit)
	t.vals, t.weight = valueColumns(ts), &state.Int64s{}
	if g, ok := n.(*plan.GroupTopN); ok && plan.KeepsBest(n, emit) {
		return newBestRows(t, g, cols)
	}
	if plan.KeepsFirstRows(n, emit) {
		return newFirstRows(t, first, part, order, orderKeys, cols)
	}
	decl.Values = valueNames(cols, "_weight")
	t.rows = state.NewTable(decl, append(stateColumns(t.vals), t.weight)...)
	t.rows.CopyLate()
	return t, nil
}

// Prepare puts the partition and order columns behind the row's.
func (t *topN) Prepare(env *fn.Env, _ int, d flow.Delta) (Batch, error) {
	in, err := withKeys(t.part, t.order, env, d.Columns(), d.Rows())
	in.W = d.Weights()
	return in, err
}

// storedRows are the rows of a table with their keys, and their slots.
func storedRows(table *state.Table, vals []state.Values, part, order *expr.Program, env *fn.Env) (in Batch, slots []uint32, err error) {
	slots = table.All()
	cols, err := gather(vals, slots)
	if err != nil || len(slots) == 0 {
		return Batch{}, nil, err
	}
	in, err = withKeys(part, order, env, cols, len(slots))
	return in, slots, err
}

// withKeys is a batch of the row's columns, its partition's and its order's, by the hash of the partition's.
func withKeys(part, order *expr.Program, env *fn.Env, cols []arrow.Array, n int) (Batch, error) {
	parts, err := part.EvalArrays(env, cols, n)
	if err != nil {
		return Batch{}, err
	}
	orders, err := order.EvalArrays(env, cols, n)
	if err != nil {
		return Batch{}, err
	}
	return Batch{Cols: slices.Concat(cols, parts, orders), N: n, Hash: hashOf(parts, n)}, nil
}

func (t *topN) Process(ctx *Ctx, _ int, in Batch) error {
	t.partSlot = kernels.Sized(t.partSlot, in.N)
	if err := t.parts.fetch(ctx.Env, in.Cols[t.cols:t.cols+t.nPart], in.N, in.Hash); err != nil {
		return err
	}
	t.partitions(&in, t.partSlot)
	if rows := t.promising(&in); len(rows) < in.N {
		for i, r := range rows { // rows rise, so that this runs ahead of itself
			t.partSlot[i] = t.partSlot[r]
		}
		in, t.partSlot = in.take(rows), t.partSlot[:len(rows)]
	}
	if in.N == 0 {
		return nil
	}
	t.slots = kernels.Sized(t.slots, in.N)
	for _, p := range t.partSlot {
		t.touch(p)
	}
	k := t.rowEnc.encode(in.Cols[:t.cols], in.N, nil)
	k.Group = t.parts.groups(in.Hash)
	fresh := t.rows.Upsert(k, t.slots)
	t.rows.Before(t.slots)
	putFresh(t.vals, in.Cols, fresh, t.slots)
	t.index(in.Cols[t.cols+t.nPart:], fresh, t.slots, t.partSlot)
	for i, s := range t.slots {
		t.weight.V[s] += in.weight(i)
	}
	t.changed = append(t.changed, t.slots...)
	return nil
}

// promising lists the rows that may be shown: where all places are taken, a row behind the last is forgotten at once.
func (t *topN) promising(in *Batch) []int32 {
	rows := make([]int32, 0, in.N)
	var keys rowkey.Rows
	if t.trims && slices.ContainsFunc(t.partSlot, func(p uint32) bool { return t.full[p] }) {
		keys = t.orderEnc.Encode(in.Cols[t.cols+t.nPart:], in.N)
	}
	for i, p := range t.partSlot {
		if t.full[p] && bytes.Compare(t.keyOf.Get(t.lists[p].last()), keys.Row(i)) < 0 {
			continue
		}
		rows = append(rows, int32(i))
	}
	return rows
}

// partitions finds or makes the partition of each row.
func (t *topN) partitions(in *Batch, slots []uint32) {
	t.begin(t.parts.find(in.Cols[t.cols:t.cols+t.nPart], in.N, in.Hash, slots), slots)
}

// begin sets up partitions that are new.
func (t *topN) begin(fresh []int32, numbers []uint32) {
	n := t.parts.table.Slots()
	t.lists, t.full, t.stamped = grown(t.lists, n, ordered{}), grown(t.full, n, false), grown(t.stamped, n, 0)
	for _, i := range fresh {
		t.lists[numbers[i]], t.full[numbers[i]] = ordered{}, false
	}
}

// index puts new rows into the order of their partitions, by the order columns of a batch.
func (t *topN) index(order []arrow.Array, fresh []int32, slots, parts []uint32) {
	if len(fresh) == 0 {
		return
	}
	order = kernels.TakeBatch(order, fresh)
	keys := t.orderEnc.Encode(order, len(fresh))
	var peers rowkey.Rows
	ranked := t.rank != "row_number"
	if ranked {
		peers = t.peerEnc.Encode(order[:t.nOrder], len(fresh))
	}
	n := t.rows.Slots()
	t.keyOf.Resize(n)
	t.peerOf.Resize(n)
	t.partOf = grown(t.partOf, n, 0)
	for i, r := range fresh {
		s := slots[r]
		t.keyOf.Set(s, keys.Row(i))
		if ranked {
			t.peerOf.Set(s, peers.Row(i))
		}
		t.partOf[s] = parts[r]
		t.lists[parts[r]].insert(s, t.precedes(s))
	}
}

// precedes orders rows by their order keys; rows equal in all of that by their bytes, so that the order is total.
func (t *topN) precedes(s uint32) func(x uint32) bool {
	key := t.keyOf.Get(s)
	return func(x uint32) bool {
		c := bytes.Compare(t.keyOf.Get(x), key)
		return c < 0 || c == 0 && bytes.Compare(t.rows.Key(x), t.rows.Key(s)) < 0
	}
}

// touch remembers what a partition shows before its first change in a step.
func (t *topN) touch(part uint32) {
	if t.stamped[part] == t.step+1 {
		return
	}
	t.stamped[part] = t.step + 1
	t.touched = append(t.touched, part)
	if t.when == changelog {
		t.before = t.first(part, t.before)
	}
}

// first appends the places that a partition shows now. They have numbers where those are asked for: otherwise a row that
// moves up shows no change.
func (t *topN) first(part uint32, out []place) []place {
	var row, rank, dense int64 // numbers of the last row visited
	var peer []byte
	t.lists[part].each(func(s uint32) bool {
		w := t.weight.V[s]
		if w <= 0 {
			return true
		}
		if t.rank == "row_number" {
			for ; w > 0 && row < addTime(t.limit, t.offset); w-- {
				if row++; row <= t.offset {
					continue
				}
				if n := len(out); t.numbered {
					out = append(out, place{s, row, 1})
				} else if n > 0 && out[n-1].slot == s {
					out[n-1].weight++
				} else {
					out = append(out, place{s, 0, 1})
				}
			}
			return row < addTime(t.limit, t.offset)
		}
		if p := t.peerOf.Get(s); row == 0 || !bytes.Equal(p, peer) {
			peer, rank = p, row+1
			dense++
		}
		row += w
		number := rank
		if t.rank == "dense_rank" {
			number = dense
		}
		if number > t.limit {
			return false
		}
		if !t.numbered {
			number = 0
		}
		out = append(out, place{s, number, w})
		return true
	})
	return out
}

func (t *topN) Advance(ctx *Ctx, w flow.Watermark) error {
	var err error
	switch {
	case t.when == changelog:
		err = t.emitChanges(ctx)
	case t.when == atEnd && w == flow.EndWatermark:
		err = t.parts.all(ctx.Env, func(parts []uint32) error { return t.end(ctx, parts, true) })
	}
	if err != nil {
		return err
	}
	negative := t.endStep()
	// The partitions that the watermark has settled are shown now, or were all along.
	if err := t.parts.settle(ctx.Env, w, func(parts []uint32) error { return t.end(ctx, parts, t.when == closed) }); err != nil {
		return err
	}
	if negative > 0 {
		return ctx.missing("top-N", negative)
	}
	return nil
}

func (t *topN) emitChanges(ctx *Ctx) error {
	var after []place
	for _, p := range t.touched {
		after = t.first(p, after)
	}
	minus, plus := t.difference(t.before, after)
	if err := t.emit(ctx, minus, -1); err != nil {
		return err
	}
	return t.emit(ctx, plus, 1)
}

// difference drops what stands in both lists, and takes before apart for it. The places of a row stand together in both, with
// rising numbers.
func (t *topN) difference(before, after []place) (minus, plus []place) {
	t.at = grown(t.at, t.rows.Slots(), -1)
	for i, p := range before {
		if t.at[p.slot] < 0 {
			t.at[p.slot] = int32(i)
		}
	}
	for _, p := range after {
		if i := int64(t.at[p.slot]); i >= 0 {
			i += p.number - before[i].number
			if i >= 0 && i < int64(len(before)) && before[i].slot == p.slot && before[i].number == p.number {
				both := min(before[i].weight, p.weight)
				before[i].weight -= both
				p.weight -= both
			}
		}
		if p.weight > 0 {
			plus = append(plus, p)
		}
	}
	for _, p := range before {
		t.at[p.slot] = -1
		if p.weight > 0 {
			minus = append(minus, p)
		}
	}
	return minus, plus
}

func (t *topN) emit(ctx *Ctx, places []place, sign int64) error {
	if len(places) == 0 {
		return nil
	}
	slots, numbers, weights := make([]uint32, 0, len(places)), make([]int64, 0, len(places)), make([]int64, 0, len(places))
	spell := !flow.HasWeights(ctx.schema) // append-only output has no weights: a row of weight n is n rows
	for _, p := range places {
		w := sign * p.weight
		for n := p.weight; ; n-- {
			if spell {
				w = 1
			}
			slots, numbers, weights = append(slots, p.slot), append(numbers, p.number), append(weights, w)
			if !spell || n <= 1 {
				break
			}
		}
	}
	cols, err := gather(t.vals, slots)
	if err != nil {
		return err
	}
	if t.numbered {
		cols = append(cols, int64Array(numbers))
	}
	return ctx.Emit(cols, len(slots), weights)
}

// endStep drops rows of weight zero and, over append-only input, rows that can never be shown.
func (t *topN) endStep() (negative int64) {
	t.rows.Touch(t.changed)
	for _, s := range t.changed {
		switch {
		case !t.rows.Live(s):
		case t.weight.V[s] < 0:
			negative++
		case t.weight.V[s] == 0:
			t.remove(s)
		}
	}
	if t.trims {
		t.trim(t.touched)
	}
	t.parts.units.Changed(t.touched)
	t.forgetEmpty(t.touched)
	t.changed, t.touched, t.before = t.changed[:0], t.touched[:0], t.before[:0]
	t.step++
	return negative
}

// trim drops what lies beyond the last row that the partitions can show.
func (t *topN) trim(parts []uint32) {
	var gone []uint32
	places := addTime(t.limit, t.offset)
	for _, p := range parts {
		var row int64
		gone = t.lists[p].cut(gone, func(s uint32) bool {
			if row >= places {
				return false
			}
			row = addTime(row, t.weight.V[s])
			return true
		})
		t.full[p] = row >= places
	}
	t.forget(gone)
}

// forget drops rows that no list has any more.
func (t *topN) forget(gone []uint32) {
	t.rows.Delete(gone)
	t.keyOf.Reset(gone)
	t.peerOf.Reset(gone)
}

func (t *topN) remove(s uint32) {
	t.lists[t.partOf[s]].remove(s, t.precedes(s))
	t.forget([]uint32{s})
}

func (t *topN) forgetEmpty(parts []uint32) {
	var gone []uint32
	for _, p := range parts {
		if t.parts.table.Live(p) && len(t.lists[p].chunks) == 0 {
			gone = append(gone, p)
		}
	}
	t.parts.drop(gone)
}

// drop forgets whole partitions.
func (t *topN) drop(parts []uint32) {
	var gone []uint32
	for _, p := range parts {
		gone = t.rowsOf(p, gone)
		t.lists[p] = ordered{}
	}
	t.forget(gone)
	t.parts.drop(parts)
}

// end drops partitions, and shows them before.
func (t *topN) end(ctx *Ctx, parts []uint32, shown bool) error {
	if shown {
		var show []place
		for _, p := range parts {
			show = t.first(p, show)
		}
		if err := t.emit(ctx, show, 1); err != nil {
			return err
		}
	}
	t.drop(parts)
	return nil
}

func (t *topN) Tables() []state.Stored { return []state.Stored{t.rows} }

func (t *topN) evictable() []evicted { return t.parts.evictableBy(t, t.rows, t.nPart) }

func (t *topN) leave(parts []uint32) {
	for _, p := range parts {
		rows := t.rowsOf(p, nil)
		t.keyOf.Reset(rows)
		t.peerOf.Reset(rows)
		t.lists[p] = ordered{}
	}
}

func (t *topN) arrange(env *fn.Env, slots, parts []uint32) error {
	order, err := orderOfStored(t.order, t.vals, env, slots)
	if err == nil {
		t.index(order, allRows(len(slots)), slots, parts)
	}
	return err
}

// orderOfStored are the order columns of stored rows.
func orderOfStored(order *expr.Program, vals []state.Values, env *fn.Env, slots []uint32) ([]arrow.Array, error) {
	cols, err := gather(vals, slots)
	if err != nil || len(slots) == 0 {
		return nil, err
	}
	return order.EvalArrays(env, cols, len(slots))
}

func (t *topN) Restored(env *fn.Env) error {
	in, slots, err := storedRows(t.rows, t.vals, t.part, t.order, env)
	if err != nil || in.N == 0 {
		return err
	}
	if err := t.parts.fetch(env, in.Cols[t.cols:t.cols+t.nPart], in.N, in.Hash); err != nil { // those with rows that left while others came
		return err
	}
	parts := make([]uint32, in.N)
	t.partitions(&in, parts)
	t.parts.units.Changed(parts)
	t.index(in.Cols[t.cols+t.nPart:], allRows(in.N), slots, parts)
	return nil
}
