package incremental

import (
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/types"
	"github.com/riverbed/riverbed/state"
)

// arrangement is the rows of one join input, indexed by join key. On an append-only input rows have no identity and
// are only ever added; on an updating one equal rows are one row with a weight.
//
// The table is durable. The index (key → rows), the links and the timers are derived from it.
type arrangement struct {
	rows    *state.Table
	vals    []state.Values
	weight  *state.Int64s
	matches *state.Int64s // partners of the row, where the kind asks for it and a condition beyond the keys decides
	shown   *state.Int64s // weight under which the row itself is shown (padded, semi, anti)

	cols    int // columns of the input; key columns follow in a batch
	keyEnc  *keyEncoder
	rowEnc  *keyEncoder // nil when append-only
	keys    *state.Table
	total   *state.Int64s // by key: the sum of the weights of its rows
	head    []uint32      // by key slot: its first row
	next    []uint32      // by row slot
	prev    []uint32
	keyOf   []uint32
	closing *closing // when the watermark settles a row for the join
	timers  *timers
	closes  []int64 // by row slot

	stamp    uint64
	stamped  []uint64   // by row slot: the last step that counted it
	touched  []uint32   // rows whose weight or matches changed in this step
	keyStamp []uint64   // by key slot: the last step that noted its total
	watched  bool       // the other side shows rows for themselves, so totals are noted
	quiet    bool       // rows are only added and never shown for themselves: nothing is to be judged at the step's end
	keysWere []keyTotal // their totals at the step's start, in order of appearance
	slots    []uint32   // scratch
}

type keyTotal struct {
	key   uint32
	total int64
}

// newArrangement lays out one side; its table is join_left or join_right.
func newArrangement(tableName string, input []plan.Column, keyTypes []types.Type, updating bool) *arrangement {
	ts := columnTypes(input)
	a := &arrangement{vals: valueColumns(ts), weight: &state.Int64s{}, matches: &state.Int64s{}, shown: &state.Int64s{},
		cols: len(input), keyEnc: newKeyEncoder(keyTypes), total: &state.Int64s{}, timers: newTimers()}
	decl := state.Decl{Name: tableName, Version: 1, Key: state.Sequence, Values: valueNames(input, "_weight", "_matches", "_shown"),
		About: "row → weight, number of partners, weight shown; in the key group of its join key"}
	if updating {
		decl.Key = state.RowKey
		a.rowEnc = newRowEncoder(ts)
	}
	cols := make([]state.Column, 0, len(a.vals)+3)
	for _, v := range a.vals {
		cols = append(cols, v)
	}
	a.rows = state.NewTable(decl, append(cols, a.weight, a.matches, a.shown)...)
	a.keys = state.NewTable(state.Decl{Name: tableName + "_index", Version: 1, Key: state.RowKey, Values: []string{"total"}}, a.total)
	return a
}

// keysOf encodes the join keys of a batch.
func (a *arrangement) keysOf(in *Batch) state.Keys {
	return a.keyEnc.encode(in.Cols[a.cols:], in.N, in.Hash)
}

// pair is a row of a batch with a row of the other side.
type pair struct {
	row  int32
	slot uint32
}

// find gives the pairs of a batch's rows with the rows here to use, a chunk at a time; the chunk is used again. Rows of weight
// zero wait for the step's end and pair with nobody.
func (a *arrangement) find(k state.Keys, chunk []pair, use func([]pair) error) error {
	a.slots = resize(a.slots, k.Len())
	a.keys.Find(k, a.slots)
	chunk = chunk[:0]
	for i, key := range a.slots {
		if key == state.NoSlot {
			continue
		}
		for s := a.head[key]; s != state.NoSlot; s = a.next[s] {
			if a.weight.V[s] == 0 {
				continue
			}
			if chunk = append(chunk, pair{int32(i), s}); len(chunk) == cap(chunk) {
				if err := use(chunk); err != nil {
					return err
				}
				chunk = chunk[:0]
			}
		}
	}
	if len(chunk) == 0 {
		return nil
	}
	return use(chunk)
}

// add inserts a batch and returns the slot of each row and the positions of the rows that made one.
func (a *arrangement) add(in *Batch, k state.Keys) (slots []uint32, fresh []int32) {
	keySlots := make([]uint32, in.N)
	a.keys.Upsert(k, keySlots)
	a.growKeys()
	slots = make([]uint32, in.N)
	if a.rowEnc == nil {
		a.rows.Append(k.Group, slots)
		fresh = make([]int32, in.N)
		for i := range fresh {
			fresh[i] = int32(i)
		}
	} else {
		rk := a.rowEnc.encode(in.Cols[:a.cols], in.N, nil)
		rk.Group = k.Group
		fresh = a.rows.Upsert(rk, slots)
	}
	putFresh(a.vals, in.Cols, fresh, slots)
	a.link(in.Cols, fresh, slots, keySlots)
	for i, s := range slots {
		w, key := in.weight(i), keySlots[i]
		if a.watched && a.keyStamp[key] != a.stamp+1 {
			a.keyStamp[key] = a.stamp + 1
			a.keysWere = append(a.keysWere, keyTotal{key, a.total.V[key]})
		}
		a.weight.V[s] += w
		a.total.V[key] += w
	}
	if a.quiet {
		a.rows.Touch(slots)
	} else {
		a.touched = append(a.touched, slots...)
	}
	return slots, fresh
}

func (a *arrangement) growKeys() {
	n := a.keys.Slots()
	a.head, a.keyStamp = grown(a.head, n, state.NoSlot), grown(a.keyStamp, n, 0)
}

// link hangs new rows into the chains of their keys and sets their timers.
func (a *arrangement) link(cols []arrow.Array, fresh []int32, slots, keySlots []uint32) {
	n := a.rows.Slots()
	a.next, a.prev, a.keyOf = grown(a.next, n, 0), grown(a.prev, n, 0), grown(a.keyOf, n, 0)
	a.closes, a.stamped = grown(a.closes, n, never), grown(a.stamped, n, 0)
	var closes []int64
	if a.closing != nil {
		closes = a.closing.at(cols)
	}
	for _, i := range fresh {
		s, key := slots[i], keySlots[i]
		first := a.head[key]
		a.next[s], a.prev[s], a.keyOf[s] = first, state.NoSlot, key
		if first != state.NoSlot {
			a.prev[first] = s
		}
		a.head[key] = s
		if closes != nil && closes[i] != never {
			a.closes[s] = closes[i]
			a.timers.add(coarse(closes[i]), s)
		}
	}
}

// coarse rounds a closing time up, so that a timer serves many rows. Rows are only kept longer for it.
func coarse(t int64) int64 { return addTime(t|(1<<20-1), 1) }

// remove drops rows; a key without rows goes too.
func (a *arrangement) remove(slots []uint32) {
	var keys []uint32
	for _, s := range slots {
		key := a.keyOf[s]
		if p := a.prev[s]; p != state.NoSlot {
			a.next[p] = a.next[s]
		} else {
			a.head[key] = a.next[s]
		}
		if n := a.next[s]; n != state.NoSlot {
			a.prev[n] = a.prev[s]
		}
		a.total.V[key] -= a.weight.V[s]
		a.closes[s] = never
		if a.head[key] == state.NoSlot {
			keys = append(keys, key)
		}
	}
	a.rows.Delete(slots)
	a.keys.Delete(keys)
}

// expire drops the rows that the watermark has settled: no partner comes or goes any more.
func (a *arrangement) expire(w flow.Watermark) {
	if a.closing != nil {
		a.remove(a.timers.take(w, a.closes, a.rows.Live))
	}
}

// endStep forgets what belongs to the step, drops rows of weight zero and returns how many rows have a negative weight.
func (a *arrangement) endStep() (negative int64) {
	var gone []uint32
	a.stamp++
	for _, s := range a.touched {
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
	keySlots := make([]uint32, in.N)
	a.keys.Upsert(a.keysOf(&in), keySlots)
	a.growKeys()
	all := make([]int32, in.N)
	for i, s := range slots {
		all[i] = int32(i)
		a.total.V[keySlots[i]] += a.weight.V[s]
	}
	a.link(in.Cols, all, slots, keySlots)
	return nil
}
