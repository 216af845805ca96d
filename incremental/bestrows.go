package incremental

import (
	"bytes"
	"math"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/rowkey"
	"github.com/riverbed/riverbed/core/types"
	"github.com/riverbed/riverbed/state"
)

// bestRows keeps of each partition the rows that none precedes, with all their ties, over an input that only gets better: inserts, or
// what plan.Improves says. What a better row has beaten can never be shown again, so it is forgotten at once, and its
// retraction, which is to come, is none of a row that is kept.
//
//	in:    inserts, or changes for the better    out: changes of the best rows; closing and at end: the best rows, once
//	state: group_best_rows    row → weight; in the key group of its partition
//	time:  partitions that the watermark has settled are dropped by range
type bestRows struct {
	when     emitWhen
	numbered bool

	part     *expr.Program
	order    *expr.Program
	orderEnc *rowkey.Encoder
	rowEnc   *keyEncoder
	lead     types.Type // of the first order key
	leadKey  kernels.SortKey
	cols     int
	nPart    int

	rows   *state.Table
	vals   []state.Values
	weight *state.Int64s

	parts *partitions
	lists [][]uint32  // by partition: the best rows
	best  state.Bytes // by partition: their order key
	known []bool      // by partition: there is one
	bound []uint64    // by partition: a word of it, as kernels.FirstWords gives it; the greatest where there is no row

	step    uint64
	stamped []uint64 // by partition
	touched []touchedPart
	at      []uint32 // by partition: its place in touched
	before  []place  // what touched partitions showed
	changed []uint32 // rows whose weight changed
	gone    []uint32 // rows that were beaten in this step

	partSlot []uint32
	words    []uint64
	like     []int32
	seen     []int32
}

// touchedPart is a partition that changes in this step. before[from:to] are the rows that it had.
type touchedPart struct {
	part     uint32
	from, to int
	beaten   bool // none of those is among the best any more
}

var groupBestRows = state.Decl{Name: "group_best_rows", Version: 1, Key: state.RowKey,
	About: "row → weight, of the rows that none precedes; in the key group of its partition"}

// newBestRows takes over from a topN that has no tables yet.
func newBestRows(t *topN, n *plan.GroupTopN, cols []plan.Column) (*bestRows, error) {
	order := make([]expr.Expr, t.nOrder) // without tie-breaks
	for i, k := range n.Keys {
		order[i] = k.Expr
	}
	prog, err := expr.CompileAll(order, layoutOf(cols))
	if err != nil {
		return nil, err
	}
	key := n.Keys[0]
	b := &bestRows{when: t.when, numbered: t.numbered, part: t.part, order: prog, parts: t.parts, orderEnc: t.peerEnc, rowEnc: t.rowEnc,
		lead: key.Expr.Type(), leadKey: kernels.SortKey{Desc: key.Key.Desc, NullsFirst: key.Key.NullsFirst},
		cols: t.cols, nPart: t.nPart, vals: t.vals, weight: t.weight}
	decl := groupBestRows
	decl.Values = valueNames(cols, "_weight")
	b.rows = state.NewTable(decl, append(stateColumns(b.vals), b.weight)...)
	b.rows.CopyLate()
	return b, nil
}

// Prepare puts the partition and order columns behind the row's.
func (b *bestRows) Prepare(env *fn.Env, _ int, d flow.Delta) (Batch, error) {
	in, err := withKeys(b.part, b.order, env, d.Columns(), d.Rows())
	in.W = d.Weights()
	return in, err
}

func (b *bestRows) Process(ctx *Ctx, _ int, in Batch) error {
	b.partSlot = kernels.Sized(b.partSlot, in.N)
	if err := b.partitions(ctx.Env, in.Cols[b.cols:b.cols+b.nPart], in.N, in.Hash, b.partSlot); err != nil {
		return err
	}
	rows := b.promising(&in)
	if len(rows) == 0 {
		return nil
	}
	in = in.take(rows)
	parts := pickRows(b.partSlot, rows)
	order := b.orderEnc.Encode(in.Cols[b.cols+b.nPart:], in.N)
	kept := make([]int32, 0, in.N)
	for i, p := range parts {
		c := 1
		if b.known[p] {
			c = bytes.Compare(b.best.Get(p), order.Row(i))
		}
		if c < 0 || c > 0 && in.weight(i) < 0 {
			continue
		}
		if c > 0 {
			b.beat(p, order.Row(i), b.words[rows[i]])
		}
		kept = append(kept, int32(i))
	}
	b.store(in.take(kept), order, kept, pickRows(parts, kept))
	return nil
}

// promising lists the rows that no row known so far precedes, as far as the words of their first order keys say.
func (b *bestRows) promising(in *Batch) []int32 {
	b.words = kernels.FirstWords(in.Cols[b.cols+b.nPart], b.lead, b.leadKey, b.words[:0])
	least := make([]int32, 0, 16)
	for i, w := range b.words {
		if w <= b.bound[b.partSlot[i]] {
			least = append(least, int32(i))
		}
	}
	if len(least) == 0 {
		return nil
	}
	for _, r := range least {
		if in.weight(int(r)) > 0 {
			b.bound[b.partSlot[r]] = min(b.bound[b.partSlot[r]], b.words[r])
		}
	}
	rows := least[:0]
	for _, r := range least {
		if b.words[r] <= b.bound[b.partSlot[r]] {
			rows = append(rows, r)
		}
	}
	return rows
}

// beat forgets the rows of a partition: one with a lesser order key has come.
func (b *bestRows) beat(part uint32, key []byte, word uint64) {
	b.touch(part)
	b.touched[b.at[part]].beaten = true
	b.gone = append(b.gone, b.lists[part]...)
	b.lists[part] = b.lists[part][:0]
	b.best.Set(part, key)
	b.known[part], b.bound[part] = true, word
}

// store adds rows that are as good as the best of their partitions, at this moment: order.Row(kept[i]) is the key of row i.
func (b *bestRows) store(in Batch, order rowkey.Rows, kept []int32, parts []uint32) {
	still := make([]int32, 0, in.N) // a later row may have beaten an earlier one
	for i, p := range parts {
		if bytes.Equal(b.best.Get(p), order.Row(int(kept[i]))) {
			still = append(still, int32(i))
		}
	}
	if len(still) < in.N {
		in, parts = in.take(still), pickRows(parts, still)
	}
	if in.N == 0 {
		return
	}
	slots := make([]uint32, in.N)
	k := b.rowEnc.encode(in.Cols[:b.cols], in.N, nil)
	k.Group = b.parts.groups(in.Hash)
	fresh := b.rows.Upsert(k, slots)
	b.rows.Before(slots)
	putFresh(b.vals, in.Cols, fresh, slots)
	for _, p := range parts {
		b.touch(p)
	}
	for _, i := range fresh {
		b.lists[parts[i]] = append(b.lists[parts[i]], slots[i])
	}
	for i, s := range slots {
		b.weight.V[s] += in.weight(i)
	}
	b.changed = append(b.changed, slots...)
}

// likeRows is how many rows with different keys may lie between two with the same and the later is not looked up.
const likeRows = 64

// partitions finds or makes the partition of each row. Most rows have that of a row shortly before.
func (b *bestRows) partitions(env *fn.Env, part []arrow.Array, n int, hash []uint64, slots []uint32) error {
	b.like, b.seen = kernels.Sized(b.like, n), kernels.Sized(b.seen, likeRows)
	for i := range b.seen {
		b.seen[i] = -1
	}
	for i, h := range hash[:n] {
		last := &b.seen[h%likeRows]
		b.like[i] = -1
		if *last >= 0 && hash[*last] == h {
			b.like[i] = *last
		} else {
			*last = int32(i)
		}
	}
	same := sameRows(part, part, b.like)
	ask := make([]int32, 0, likeRows)
	for i, s := range same {
		if !s {
			ask = append(ask, int32(i))
		}
	}
	found := make([]uint32, len(ask))
	cols, hashes := kernels.TakeBatch(part, ask), pickRows(hash, ask)
	if err := b.parts.fetch(env, cols, len(ask), hashes); err != nil {
		return err
	}
	fresh := b.parts.find(cols, len(ask), hashes, found)
	for i, r := range ask {
		slots[r] = found[i]
	}
	for i, s := range same {
		if s {
			slots[i] = slots[b.like[i]]
		}
	}
	b.begin(fresh, found)
	return nil
}

// begin sets up partitions that are new.
func (b *bestRows) begin(fresh []int32, slots []uint32) {
	if len(fresh) == 0 {
		return
	}
	n := b.parts.table.Slots()
	b.lists, b.known, b.bound, b.at = grown(b.lists, n, nil), grown(b.known, n, false), grown(b.bound, n, 0), grown(b.at, n, 0)
	b.stamped = grown(b.stamped, n, 0)
	b.best.Resize(n)
	for _, i := range fresh {
		p := slots[i]
		b.lists[p], b.known[p], b.bound[p] = nil, false, math.MaxUint64
	}
}

// touch remembers the rows of a partition before its first change in a step.
func (b *bestRows) touch(part uint32) {
	if b.stamped[part] == b.step+1 {
		return
	}
	b.stamped[part] = b.step + 1
	b.at[part] = uint32(len(b.touched))
	from := len(b.before)
	if b.when == changelog {
		b.before = b.first(part, b.before)
	}
	b.touched = append(b.touched, touchedPart{part: part, from: from, to: len(b.before)})
}

// first appends the rows of a partition. Those of a list that was not beaten come first again, in the same order.
func (b *bestRows) first(part uint32, out []place) []place {
	for _, s := range b.lists[part] {
		out = append(out, place{s, 1, b.weight.V[s]})
	}
	return out
}

func (b *bestRows) Advance(ctx *Ctx, w flow.Watermark) error {
	var err error
	switch {
	case b.when == changelog:
		err = b.emitChanges(ctx)
	case b.when == atEnd && w == flow.EndWatermark:
		err = b.parts.all(ctx.Env, func(parts []uint32) error { return b.end(ctx, parts, true) })
	}
	if err != nil {
		return err
	}
	negative := b.endStep()
	if err := b.parts.settle(ctx.Env, w, func(parts []uint32) error { return b.end(ctx, parts, b.when == closed) }); err != nil {
		return err
	}
	if negative > 0 {
		return ctx.missing("top-N", negative)
	}
	return nil
}

func (b *bestRows) emitChanges(ctx *Ctx) error {
	var minus, plus, now []place
	for _, t := range b.touched {
		was := b.before[t.from:t.to]
		now = b.first(t.part, now[:0])
		if !t.beaten {
			for i, p := range was { // the weight that comes or goes
				now[i].weight -= p.weight
			}
			was = nil
		}
		minus = append(minus, was...)
		for _, p := range now {
			if p.weight < 0 {
				minus = append(minus, place{p.slot, 1, -p.weight})
			} else {
				plus = append(plus, p)
			}
		}
	}
	if err := b.emit(ctx, minus, -1); err != nil {
		return err
	}
	return b.emit(ctx, plus, 1)
}

// end drops partitions, and shows them before.
func (b *bestRows) end(ctx *Ctx, parts []uint32, shown bool) error {
	if shown {
		var out []place
		for _, p := range parts {
			out = b.first(p, out)
		}
		if err := b.emit(ctx, out, 1); err != nil {
			return err
		}
	}
	b.drop(parts)
	b.forget()
	return nil
}

func (b *bestRows) emit(ctx *Ctx, places []place, sign int64) error {
	slots, weights := make([]uint32, 0, len(places)), make([]int64, 0, len(places))
	for _, p := range places {
		if p.weight > 0 {
			slots, weights = append(slots, p.slot), append(weights, sign*p.weight)
		}
	}
	if len(slots) == 0 {
		return nil
	}
	cols, err := gather(b.vals, slots)
	if err != nil {
		return err
	}
	if b.numbered {
		ones := make([]int64, len(slots))
		for i := range ones {
			ones[i] = 1
		}
		cols = append(cols, int64Array(ones))
	}
	return ctx.Emit(cols, len(slots), weights)
}

// endStep drops rows that were beaten or are of weight zero.
func (b *bestRows) endStep() (negative int64) {
	b.rows.Touch(b.changed)
	for _, t := range b.touched {
		list := b.lists[t.part]
		kept := list[:0]
		for _, s := range list {
			switch w := b.weight.V[s]; {
			case w == 0:
				b.gone = append(b.gone, s)
				continue
			case w < 0:
				negative++
			}
			kept = append(kept, s)
		}
		if b.lists[t.part] = kept; len(kept) == 0 {
			b.known[t.part], b.bound[t.part] = false, math.MaxUint64
		}
	}
	b.forget()
	if b.parts.units.Open() {
		changed := make([]uint32, len(b.touched))
		for i, t := range b.touched {
			changed[i] = t.part
		}
		b.parts.units.Changed(changed)
	}
	b.changed, b.touched, b.before = b.changed[:0], b.touched[:0], b.before[:0]
	b.step++
	return negative
}

func (b *bestRows) forget() {
	b.rows.Delete(b.gone)
	b.gone = b.gone[:0]
}

// drop forgets whole partitions.
func (b *bestRows) drop(parts []uint32) {
	for _, p := range parts {
		b.gone = append(b.gone, b.lists[p]...)
		b.lists[p] = nil
	}
	b.best.Reset(parts)
	b.parts.drop(parts)
}

func (b *bestRows) Tables() []state.Stored { return []state.Stored{b.rows} }

func (b *bestRows) evictable() []evicted { return b.parts.evictableBy(b, b.rows, b.nPart) }

func (b *bestRows) rowsOf(part uint32, to []uint32) []uint32 { return append(to, b.lists[part]...) }

func (b *bestRows) leave(parts []uint32) {
	for _, p := range parts {
		b.lists[p] = nil
	}
	b.best.Reset(parts)
}

func (b *bestRows) arrange(env *fn.Env, slots, parts []uint32) error {
	order, err := orderOfStored(b.order, b.vals, env, slots)
	if err == nil {
		b.index(order, slots, parts)
	}
	return err
}

// index puts stored rows into the lists of their partitions.
func (b *bestRows) index(order []arrow.Array, slots, parts []uint32) {
	if len(slots) == 0 {
		return
	}
	keys := b.orderEnc.Encode(order, len(slots))
	words := kernels.FirstWords(order[0], b.lead, b.leadKey, nil)
	for i, s := range slots {
		p := parts[i]
		b.lists[p] = append(b.lists[p], s)
		b.best.Set(p, keys.Row(i))
		b.known[p], b.bound[p] = true, words[i]
	}
}

func (b *bestRows) Restored(env *fn.Env) error {
	in, slots, err := storedRows(b.rows, b.vals, b.part, b.order, env)
	if err != nil || in.N == 0 {
		return err
	}
	parts := make([]uint32, in.N)
	if err := b.partitions(env, in.Cols[b.cols:b.cols+b.nPart], in.N, in.Hash, parts); err != nil {
		return err
	}
	b.parts.units.Changed(parts)
	b.index(in.Cols[b.cols+b.nPart:], slots, parts)
	return nil
}
