package incremental

import (
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/state"
)

// arrangement is the rows of one join input, indexed by join key. On an append-only input rows have no identity and
// are only ever added; on an updating one equal rows are one row with a weight.
//
// The table is durable. The index (key → rows), the links and the timers are derived from it.
type arrangement struct {
	rows    *state.Table
	vals    []state.Values
	weight  *state.Int64s // nil when append-only: each row has weight 1
	matches *state.Int64s // partners of the row; nil unless it is shown for itself and a condition beyond the keys decides
	shown   *state.Int64s // weight under which the row itself is shown (padded, semi, anti); nil if it never is

	cols    int // columns of the input; key columns follow in a batch
	keyEnc  *keyEncoders
	rowEnc  *keyEncoder // nil when append-only
	keys    *state.Table
	total   *state.Int64s         // by key: the sum of the weights of its rows; nil unless watched
	head    []uint32              // by key slot: its first row
	next    state.Chunked[uint32] // by row slot
	prev    []uint32              // where rows go
	keyOf   []uint32              // where rows go or are shown for themselves
	closing *closing              // when the watermark settles a row for the join
	timers  *timers
	closes  []int64 // by row slot, where there is a closing

	stamp    uint64
	stamped  []uint64     // by row slot, where rows have weights: the last step that counted it
	touched  []uint32     // rows whose weight or matches changed in this step
	keyStamp []uint64     // by key slot, where watched: the last step that noted its total
	watched  bool         // the other side shows rows for themselves, so totals are noted
	quiet    bool         // rows are only added and never shown for themselves: nothing is to be judged at the step's end
	keysWere []keyTotal   // their totals at the step's start, in order of appearance
	slots    []uint32     // scratch
	units    *state.Units // nil: rows do not leave memory
	later    *state.Due   // keys with rows that have left it, where there is a closing
}

type keyTotal struct {
	key   uint32
	total int64
}

// judged says how much of its rows a side has to remember. What is not needed is not held: join state is the largest there is.
type judged struct {
	kept    bool // rows are shown for themselves
	counted bool // a condition beyond the keys decides on partners
	watched bool // the other side shows rows for themselves by the keys alone
}

// joinTable declares the rows of a side; the table is join_left or join_right, with _rows behind it if it is a log.
func joinTable(name string, input []plan.Column, key state.KeyKind) state.Decl {
	return state.Decl{Name: name, Version: 1, Key: key, Values: valueNames(input, "_weight", "_matches", "_shown"),
		About: "row → weight, number of partners, weight shown; in the key group of its join key"}
}

// newArrangement lays out one side.
func newArrangement(tableName string, input []plan.Column, enc *keyEncoders, updating bool, j judged, closing *closing) *arrangement {
	ts := columnTypes(input)
	a := &arrangement{vals: valueColumns(ts), cols: len(input), keyEnc: enc, timers: newTimers(), closing: closing,
		watched: j.watched, quiet: !updating && !j.kept}
	decl := joinTable(tableName, input, state.Sequence)
	cols := make([]state.Column, 0, len(a.vals)+3)
	for _, v := range a.vals {
		cols = append(cols, v)
	}
	weight, matches, shown := state.Column(state.Same(1)), state.Column(state.Same(0)), state.Column(state.Same(0))
	if updating {
		decl.Key = state.RowKey
		a.rowEnc = newRowEncoder(ts)
		a.weight = &state.Int64s{}
		weight = a.weight
	}
	if j.kept {
		a.shown = &state.Int64s{}
		shown = a.shown
		if j.counted {
			a.matches = &state.Int64s{}
			matches = a.matches
		}
	}
	a.rows = state.NewTable(decl, append(cols, weight, matches, shown)...)
	index := state.Decl{Name: tableName + "_index", Version: 1, Key: state.RowKey}
	if j.watched {
		index.Values, a.total = []string{"total"}, &state.Int64s{}
		a.keys = state.NewTable(index, a.total)
	} else {
		a.keys = state.NewTable(index)
	}
	enc.table.into(a.keys)
	return a
}

// leaves reports whether rows can go.
func (a *arrangement) leaves() bool { return a.weight != nil || a.closing != nil }

// weightOf is the weight of a row.
func (a *arrangement) weightOf(slot uint32) int64 {
	if a.weight == nil {
		return 1
	}
	return a.weight.V[slot]
}

func (a *arrangement) table() state.Stored { return a.rows }

// at gives the columns of some rows.
func (a *arrangement) at(slots []uint32) func(col int) (arrow.Array, error) {
	return func(col int) (arrow.Array, error) { return a.vals[col].Save(slots) }
}

// find gives the pairs of a batch's rows with the rows here to use, a chunk at a time; the chunk is used again. Rows of weight
// zero wait for the step's end and pair with nobody.
func (a *arrangement) find(k *joinKeys, chunk []pair, use func([]pair) error) error {
	a.slots = kernels.Sized(a.slots, k.n)
	a.keys.Find(k.forTable(), a.slots)
	out := pairs{chunk[:0], use}
	for i, key := range a.slots {
		if key == state.NoSlot {
			continue
		}
		for s := a.head[key]; s != state.NoSlot; s = *a.next.At(s) {
			if a.weight != nil && a.weight.V[s] == 0 {
				continue
			}
			if err := out.add(int32(i), s); err != nil {
				return err
			}
		}
	}
	return out.flush()
}

// add inserts a batch and returns the slot of each row and the positions of the rows that made one.
func (a *arrangement) add(in *Batch, keys *joinKeys) (slots []uint32, fresh []int32) {
	k := keys.forTable()
	keySlots := make([]uint32, in.N)
	a.keys.Upsert(k, keySlots)
	a.growKeys()
	a.units.Changed(keySlots)
	if a.rowEnc == nil {
		slots, fresh = a.append(in, k)
	} else {
		slots = make([]uint32, in.N)
		rk := a.rowEnc.encode(in.Cols[:a.cols], in.N, nil)
		rk.Group = k.Group
		fresh = a.rows.Upsert(rk, slots)
		putFresh(a.vals, in.Cols, fresh, slots)
	}
	var closes []int64
	if a.closing != nil {
		closes = a.closing.at(in.Cols)
	}
	a.link(closes, fresh, slots, keySlots)
	if a.weight != nil {
		for i, s := range slots {
			a.weight.V[s] += in.weight(i)
		}
	}
	if a.watched {
		for i, key := range keySlots {
			if a.keyStamp[key] != a.stamp+1 {
				a.keyStamp[key] = a.stamp + 1
				a.keysWere = append(a.keysWere, keyTotal{key, a.total.V[key]})
			}
			a.total.V[key] += in.weight(i)
		}
	}
	if a.quiet {
		a.rows.Touch(slots)
	} else {
		a.touched = append(a.touched, slots...)
	}
	return slots, fresh
}

// append stores rows without identity.
func (a *arrangement) append(in *Batch, k state.Keys) (slots []uint32, fresh []int32) {
	slots, fresh = make([]uint32, in.N), make([]int32, in.N)
	a.rows.Append(k.Group, slots)
	for i := range fresh {
		fresh[i] = int32(i)
	}
	putFresh(a.vals, in.Cols, fresh, slots)
	return slots, fresh
}

func (a *arrangement) growKeys() {
	n := a.keys.Slots()
	a.head = grown(a.head, n, state.NoSlot)
	if a.watched {
		a.keyStamp = grown(a.keyStamp, n, 0)
	}
}

// link hangs new rows into the chains of their keys and sets their timers, if they have closing times.
func (a *arrangement) link(closes []int64, fresh []int32, slots, keySlots []uint32) {
	n := a.rows.Slots()
	a.next.Resize(n)
	leaves := a.leaves()
	if leaves {
		a.prev = grown(a.prev, n, 0)
	}
	if leaves || a.shown != nil {
		a.keyOf = grown(a.keyOf, n, 0)
	}
	if a.weight != nil {
		a.stamped = grown(a.stamped, n, 0)
	}
	for _, i := range fresh {
		s, key := slots[i], keySlots[i]
		first := a.head[key]
		*a.next.At(s), a.head[key] = first, s
		if leaves {
			a.prev[s] = state.NoSlot
			if first != state.NoSlot {
				a.prev[first] = s
			}
		}
		if a.keyOf != nil {
			a.keyOf[s] = key
		}
	}
	if closes == nil {
		return
	}
	a.closes = grown(a.closes, n, never)
	for _, i := range fresh {
		if closes[i] != never {
			a.closes[slots[i]] = closes[i]
			a.timers.add(coarse(closes[i]), slots[i])
		}
	}
}

// coarse rounds a closing time up, so that a timer serves many rows. Rows are only kept longer for it.
func coarse(t int64) int64 { return addTime(t|(1<<20-1), 1) }

// remove drops rows; a key without rows goes too.
func (a *arrangement) remove(slots []uint32) {
	var keys []uint32
	var changed []uint32
	cold := a.units.Open()
	for _, s := range slots {
		key := a.keyOf[s]
		if p := a.prev[s]; p != state.NoSlot {
			*a.next.At(p) = *a.next.At(s)
		} else {
			a.head[key] = *a.next.At(s)
		}
		if n := *a.next.At(s); n != state.NoSlot {
			a.prev[n] = a.prev[s]
		}
		if a.watched {
			a.total.V[key] -= a.weightOf(s)
		}
		if a.closing != nil {
			a.closes[s] = never
		}
		if a.head[key] == state.NoSlot {
			keys = append(keys, key)
		}
		if cold {
			changed = append(changed, key)
		}
	}
	a.rows.Delete(slots)
	a.units.Changed(changed)
	a.units.Forget(keys)
	a.keys.Delete(keys)
}

func (a *arrangement) forget() error {
	a.rows.Clear()
	a.keys.Clear()
	for i := range a.head {
		a.head[i] = state.NoSlot
	}
	return nil
}

func (a *arrangement) expire(w flow.Watermark) error {
	if a.closing == nil {
		return nil
	}
	a.remove(a.timers.take(w, a.closes, a.rows.Live))
	return a.expireOut(w)
}

// endStep forgets what belongs to the step, drops rows of weight zero and returns how many rows have a negative weight.
func (a *arrangement) endStep() (negative int64) {
	var gone []uint32
	a.stamp++
	touched := a.touched
	if a.weight == nil {
		touched = nil // each row has weight 1
	}
	for _, s := range touched {
		if a.stamped[s] == a.stamp {
			continue
		}
		a.stamped[s] = a.stamp
		if w := a.weight.V[s]; w < 0 {
			negative++
		} else if w == 0 {
			gone = append(gone, s)
		}
	}
	a.rows.Touch(a.touched)
	if a.units != nil && a.keyOf != nil {
		a.changedKeys()
	}
	a.touched = a.touched[:0]
	a.keysWere = a.keysWere[:0]
	a.remove(gone)
	return negative
}

// restored rebuilds the index from the rows.
func (a *arrangement) restored(prepare func(cols []arrow.Array, n int) (Batch, error)) error {
	slots := a.rows.All()
	cols, err := gather(a.vals, slots)
	if err != nil || len(slots) == 0 {
		return err
	}
	in, err := prepare(cols, len(slots))
	if err != nil {
		return err
	}
	var closes []int64
	if a.closing != nil {
		closes = a.closing.at(in.Cols)
	}
	keys := &joinKeys{cols: in.Cols[a.cols:], n: in.N, hash: in.Hash, enc: a.keyEnc}
	if err := a.fetch(keys); err != nil { // those with rows that left while others came
		return err
	}
	keySlots := make([]uint32, in.N)
	a.keys.Upsert(keys.forTable(), keySlots)
	a.growKeys()
	a.units.Changed(keySlots)
	all := make([]int32, in.N)
	for i, s := range slots {
		all[i] = int32(i)
		if a.watched {
			a.total.V[keySlots[i]] += a.weightOf(s)
		}
	}
	a.link(closes, all, slots, keySlots)
	return nil
}
