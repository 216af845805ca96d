package incremental

import (
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/types"
	"github.com/riverbed/riverbed/state"
)

// normalize makes rows of a source without old images: it keeps the last row of each key and takes it back when another
// comes, or a deletion.
//
//	in:    weight above 0: the row of its key; below 0: the key is gone     out: −1 the row before the step, +1 the row behind it
//	state: normalize_rows      key → the row that stands, its split, how many splits have a row of the key below it
//	       normalize_covered   key, split → row, of keys that a later split has too
//	time:  watermarks pass through and free nothing
//
// Of each split the last row of a key counts, and of several splits' the row of the last split. So only the order within a
// split matters, whatever the order in which splits are read.
type normalize struct {
	src      *source
	key      []int // positions among the columns
	rest     []int // of the others
	keyTypes []types.Type
	enc      *keyEncoder

	rows  *state.Table
	vals  []state.Values // of rest
	split *state.Int64s  // place of the split + 1; 0: there is no row
	below *state.Int64s

	covered     *state.Table
	coveredVals []state.Values
	coveredEnc  *keyEncoder

	batch   uint64   // counts the calls of Process
	step    uint64   // the first of this step
	mark    []uint64 // by slot: the last batch that had the key
	touched []uint32 // slots of this step, in the order of their first batch
	before  rowsBefore
	slots   []uint32
}

// rowsBefore are the rows that stood at the step's start, of the keys that the step touched.
type rowsBefore struct {
	at    []int32         // by position in touched: the row; -1 for none
	n     int             // rows
	parts [][]arrow.Array // by batch: columns of rest
}

var (
	normalizeRows = state.Decl{Name: "normalize_rows", Version: 1, Key: state.RowKey,
		About: "key → the row that stands, place of its split + 1, number of splits that have a row of the key below it"}
	normalizeCovered = state.Decl{Name: "normalize_covered", Version: 1, Key: state.RowKey,
		About: "key, place of the split → row, of keys that a later split has too; in the key group of the key"}
)

func newNormalize(n *plan.Normalize, src *source) (Operator, error) {
	o := &normalize{src: src, split: &state.Int64s{}, below: &state.Int64s{}}
	cols := n.Columns()
	at := layoutOf(cols)
	for _, id := range n.Key {
		o.key = append(o.key, at[id])
		o.keyTypes = append(o.keyTypes, cols[at[id]].Type)
	}
	var rest []plan.Column
	for i, c := range cols {
		if !slices.Contains(n.Key, c.ID) {
			o.rest, rest = append(o.rest, i), append(rest, c)
		}
	}
	o.enc, o.coveredEnc = newKeyEncoder(o.keyTypes), newKeyEncoder(append(slices.Clone(o.keyTypes), types.Int64))
	o.vals, o.coveredVals = valueColumns(columnTypes(rest)), valueColumns(columnTypes(rest))
	o.rows = state.NewTable(named(normalizeRows, rest, "_split", "_below"), append(stateColumns(o.vals), o.split, o.below)...)
	o.enc.into(o.rows)
	o.covered = state.NewTable(named(normalizeCovered, rest), stateColumns(o.coveredVals)...)
	o.rows.CopyLate()
	o.covered.CopyLate()
	return o, nil
}

// named gives a declaration the value columns of a plan.
func named(d state.Decl, cols []plan.Column, more ...string) state.Decl {
	d.Values = valueNames(cols, more...)
	return d
}

func stateColumns(vals []state.Values) []state.Column {
	out := make([]state.Column, len(vals))
	for i, v := range vals {
		out[i] = v
	}
	return out
}

func (o *normalize) Prepare(_ *fn.Env, _ int, d flow.Delta) (Batch, error) {
	b := batchOf(d)
	b.Hash = hashOf(pickCols(b.Cols, o.key), b.N)
	return b, nil
}

func pickCols(cols []arrow.Array, at []int) []arrow.Array {
	out := make([]arrow.Array, len(at))
	for i, c := range at {
		out[i] = cols[c]
	}
	return out
}

// Process takes rows of one split: a delta of a source never mixes them.
func (o *normalize) Process(_ *Ctx, _ int, in Batch) error {
	o.batch++
	o.slots = kernels.Sized(o.slots, in.N)
	k := o.enc.encode(pickCols(in.Cols, o.key), in.N, in.Hash)
	if err := o.rows.Fetch(k); err != nil {
		return err
	}
	o.rows.Upsert(k, o.slots)
	o.rows.Before(o.slots)
	o.mark = grown(o.mark, o.rows.Slots(), 0)
	in, err := o.keep(in)
	if err != nil {
		return err
	}
	last, fresh := o.last(in)
	if err := o.remember(fresh); err != nil {
		return err
	}
	own := kernels.Values[int64](in.Cols[len(o.key)+len(o.rest)])[0]
	var put, lower, gone []int32 // rows: to stand, to lie below the row that stands, to be deleted below it
	var cover, drop []uint32     // slots: whose row comes to lie below, whose row goes
	for _, i := range last {
		s, w := o.slots[i], in.weight(int(i))
		held := o.split.V[s] - 1
		switch {
		case held >= 0 && held != own && o.src.inOrder(own, held) < 0:
			if w > 0 {
				lower = append(lower, i)
			} else if o.below.V[s] > 0 {
				gone = append(gone, i)
			}
		case w > 0:
			if held >= 0 && held != own {
				cover = append(cover, s)
			}
			put = append(put, i)
		case held == own:
			drop = append(drop, s)
		}
	}
	rest := pickCols(in.Cols, o.rest)
	if err := o.coverRows(cover); err != nil {
		return err
	}
	slots := pickRows(o.slots, put)
	for c, v := range o.vals {
		v.Put(slots, rest[c], put)
	}
	for _, s := range slots {
		o.split.V[s] = own + 1
	}
	if len(lower) > 0 {
		o.putCovered(pickRows(o.slots, lower), slices.Repeat([]int64{own}, len(lower)), rest, lower)
	}
	if len(gone) > 0 {
		o.dropCovered(pickRows(o.slots, gone), slices.Repeat([]int64{own}, len(gone)))
	}
	return o.drop(drop)
}

// keep fills in the values that rows leave out because they are what they were: those of the row of the key before it in the batch, or of the
// one that stands.
func (o *normalize) keep(in Batch) (Batch, error) {
	partial := false
	for i := range in.N {
		partial = partial || in.weight(i) > 1
	}
	if !partial {
		return in, nil
	}
	own := kernels.Values[int64](in.Cols[len(o.key)+len(o.rest)])[0]
	before := map[uint32]int{}           // the last row of a slot so far
	var there []uint32                   // slots whose standing row is needed
	from := make([][]int32, len(o.rest)) // by column: the row of each value, those of there behind the batch's
	for c := range from {
		from[c] = make([]int32, in.N)
	}
	for i := range in.N {
		s, w := o.slots[i], in.weight(i)
		p, seen := before[s]
		before[s] = i
		if w > 1 && (seen && in.weight(p) < 0 || !seen && o.split.V[s]-1 != own) {
			return in, errs.New(errs.Data, "step", "a row of %s leaves out values that are what they were, and there is no row of its key", o.src.src.Name)
		}
		stands := int32(in.N + len(there))
		if w > 1 && !seen {
			there = append(there, s)
		}
		for c, col := range o.rest {
			switch {
			case !flow.Keeps(w, o.src.columns[col]):
				from[c][i] = int32(i)
			case seen:
				from[c][i] = from[c][p]
			default:
				from[c][i] = stands
			}
		}
	}
	standing, err := gather(o.vals, there)
	if err != nil {
		return in, err
	}
	in.Cols = slices.Clone(in.Cols)
	for c, col := range o.rest {
		in.Cols[col] = kernels.Take(kernels.Concat([]arrow.Array{in.Cols[col], standing[c]}), from[c])
	}
	return in, nil
}

// last lists the last row of each key in a batch, and the slots that the step has not seen before.
func (o *normalize) last(in Batch) (rows []int32, fresh []uint32) {
	if o.step == 0 {
		o.step = o.batch
	}
	for i := in.N - 1; i >= 0; i-- {
		s := o.slots[i]
		if o.mark[s] == o.batch {
			continue
		}
		if o.mark[s] < o.step {
			fresh = append(fresh, s)
		}
		o.mark[s] = o.batch
		rows = append(rows, int32(i))
	}
	return rows, fresh
}

// remember copies the rows that stand of keys that the step touches first.
func (o *normalize) remember(fresh []uint32) error {
	var there []uint32
	b := &o.before
	for _, s := range fresh {
		at := int32(-1)
		if o.split.V[s] > 0 {
			at = int32(b.n + len(there))
			there = append(there, s)
		}
		b.at = append(b.at, at)
	}
	o.touched = append(o.touched, fresh...)
	if len(there) == 0 {
		return nil
	}
	cols, err := gather(o.vals, there)
	b.parts, b.n = append(b.parts, cols), b.n+len(there)
	return err
}

// take returns the rows that stood and starts again; without rows there are no columns.
func (b *rowsBefore) take(columns int) (cols []arrow.Array, at []int32) {
	if b.n > 0 {
		cols = make([]arrow.Array, columns)
	}
	for c := range cols {
		parts := make([]arrow.Array, len(b.parts))
		for i, p := range b.parts {
			parts[i] = p[c]
		}
		cols[c] = kernels.Concat(parts)
	}
	at = b.at
	*b = rowsBefore{}
	return cols, at
}

// Advance shows, of each key that the step touched, what it changed.
func (o *normalize) Advance(ctx *Ctx, _ flow.Watermark) error {
	if len(o.touched) == 0 {
		return nil
	}
	was, wasAt := o.before.take(len(o.rest))
	var stand, gone, minusSlots []uint32
	var at, minus []int32 // at is by position in stand: the row before
	for i, s := range o.touched {
		if o.split.V[s] > 0 {
			stand, at = append(stand, s), append(at, wasAt[i])
			continue
		}
		gone = append(gone, s)
		if wasAt[i] >= 0 {
			minus, minusSlots = append(minus, wasAt[i]), append(minusSlots, s)
		}
	}
	now, err := gather(o.vals, stand)
	if err != nil {
		return err
	}
	var plus []int32
	equal := sameRows(now, was, at)
	for i, s := range stand {
		if equal[i] {
			continue
		}
		plus = append(plus, int32(i))
		if at[i] >= 0 {
			minus, minusSlots = append(minus, at[i]), append(minusSlots, s)
		}
	}
	if err := o.emit(ctx, was, minus, minusSlots, -1); err != nil {
		return err
	}
	if err := o.emit(ctx, now, plus, pickRows(stand, plus), 1); err != nil {
		return err
	}
	o.rows.Touch(o.touched)
	o.rows.Delete(gone)
	o.touched, o.step = o.touched[:0], 0
	return nil
}

// emit shows rows of keys; a key is shown as a group is, 0.0 for -0.0.
func (o *normalize) emit(ctx *Ctx, rest []arrow.Array, rows []int32, slots []uint32, weight int64) error {
	if len(rows) == 0 {
		return nil
	}
	cols := make([]arrow.Array, len(o.key)+len(o.rest))
	for i, k := range keysOf(o.rows, o.keyTypes, slots) {
		cols[o.key[i]] = k
	}
	for i, c := range o.rest {
		cols[c] = kernels.Take(rest[i], rows)
	}
	return ctx.Emit(cols, len(rows), slices.Repeat([]int64{weight}, len(rows)))
}

// coveredKeys encodes keys of slots of rows, each with a split.
func (o *normalize) coveredKeys(slots []uint32, splits []int64) state.Keys {
	k := o.coveredEnc.encode(append(keysOf(o.rows, o.keyTypes, slots), int64Array(splits)), len(slots), nil)
	for i, s := range slots {
		k.Group[i] = o.rows.Group(s) // an instance must hold what belongs to its keys
	}
	return k
}

// putCovered stores rows of a key that lie below the one that stands.
func (o *normalize) putCovered(slots []uint32, splits []int64, cols []arrow.Array, rows []int32) {
	at := make([]uint32, len(slots))
	for _, i := range o.covered.Upsert(o.coveredKeys(slots, splits), at) {
		o.below.V[slots[i]]++
	}
	o.covered.Before(at)
	for c, v := range o.coveredVals {
		v.Put(at, cols[c], rows)
	}
	o.covered.Touch(at)
}

// dropCovered deletes rows that lie below the one that stands; those that are not there are no loss.
func (o *normalize) dropCovered(slots []uint32, splits []int64) {
	at := make([]uint32, len(slots))
	o.covered.Find(o.coveredKeys(slots, splits), at)
	var gone []uint32
	for i, s := range at {
		if s != state.NoSlot {
			gone = append(gone, s)
			o.below.V[slots[i]]--
		}
	}
	o.covered.Delete(gone)
}

// coverRows moves rows that stand below the row of a later split that comes.
func (o *normalize) coverRows(slots []uint32) error {
	if len(slots) == 0 {
		return nil
	}
	cols, err := gather(o.vals, slots)
	if err != nil {
		return err
	}
	rows, splits := make([]int32, len(slots)), make([]int64, len(slots))
	for i, s := range slots {
		rows[i], splits[i] = int32(i), o.split.V[s]-1
	}
	o.putCovered(slots, splits, cols, rows)
	return nil
}

// drop takes away rows that stand; where another split has a row of the key, that of the last one stands again.
func (o *normalize) drop(slots []uint32) error {
	for _, s := range slots {
		o.split.V[s] = 0
	}
	slots = slices.DeleteFunc(slots, func(s uint32) bool { return o.below.V[s] == 0 })
	if len(slots) == 0 {
		return nil
	}
	order := make([]int64, len(o.src.splits))
	for i := range order {
		order[i] = int64(i)
	}
	slices.SortFunc(order, func(a, b int64) int { return o.src.inOrder(b, a) })
	for _, sp := range order {
		at := make([]uint32, len(slots))
		o.covered.Find(o.coveredKeys(slots, slices.Repeat([]int64{sp}, len(slots))), at)
		var from, to []uint32
		for i, s := range at {
			if s != state.NoSlot {
				from, to = append(from, s), append(to, slots[i])
				o.split.V[slots[i]] = sp + 1
				o.below.V[slots[i]]--
			}
		}
		cols, err := gather(o.coveredVals, from)
		if err != nil {
			return err
		}
		rows := make([]int32, len(from))
		for i := range rows {
			rows[i] = int32(i)
		}
		for c, v := range o.vals {
			v.Put(to, cols[c], rows)
		}
		o.covered.Delete(from)
		slots = slices.DeleteFunc(slots, func(s uint32) bool { return o.split.V[s] > 0 })
		if len(slots) == 0 {
			return nil
		}
	}
	return nil
}

func (o *normalize) Tables() []state.Stored { return []state.Stored{o.rows, o.covered} }

// evictable: of the rows below others there are few.
func (o *normalize) evictable() []evicted { return []evicted{o.rows} }

func (o *normalize) Restored(*fn.Env) error { return nil }

// scanSchema is what a scan below a normalize gives: its columns, the split and the weight.
func scanSchema(s *plan.Scan) *arrow.Schema {
	fields := append(slices.Clone(schemaOf(s.Cols).Fields()), flow.SplitField, flow.WeightField)
	return arrow.NewSchema(fields, nil)
}
