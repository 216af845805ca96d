package incremental

import (
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/state"
)

// coldArrangement is an arrangement whose rows may leave memory, all of a join key together.
type coldArrangement struct {
	*state.Table
	a    *arrangement
	join *join
	side int
}

func (c coldArrangement) Limit(in *state.Cold, path string, bytes int64) {
	c.a.units = state.NewUnits(c.Table, c.a.keys, in, path, bytes)
	if c.a.closing != nil {
		c.a.later = state.NewDue(in)
	}
}

func (c coldArrangement) over() bool                { return c.a.units.Over() }
func (c coldArrangement) arrange(env *fn.Env) error { return c.join.restored(env, c.side) }
func (c coldArrangement) undo() error               { return c.a.units.Undo() }

func (c coldArrangement) Stuck() bool { return c.a.units.Stuck() }

func (c coldArrangement) Evict(limit int64) error {
	a := c.a
	return a.units.Evict(limit, func(key uint32, to []uint32) []uint32 {
		for s := a.head[key]; s != state.NoSlot; s = *a.next.At(s) {
			to = append(to, s)
		}
		return to
	}, func(keys []uint32) error {
		if err := a.putOff(keys); err != nil {
			return err
		}
		for _, k := range keys {
			a.head[k] = state.NoSlot
		}
		a.keys.Delete(keys)
		return nil
	})
}

// putOff notes when the first row of each key is settled whose rows leave memory.
func (a *arrangement) putOff(keys []uint32) error {
	if a.closing == nil {
		return nil
	}
	var some, rows []uint32
	var times []int64
	for _, k := range keys {
		if at := a.leastOf(k); at != never {
			some, times = append(some, k), append(times, coarse(at))
		}
		for s := a.head[k]; s != state.NoSlot; s = *a.next.At(s) {
			rows = append(rows, s)
		}
	}
	for _, s := range rows {
		a.closes[s] = never
	}
	a.timers.forget(len(rows), func(s uint32, at int64) bool { return a.closes[s] != never && coarse(a.closes[s]) == at })
	return a.later.Add(a.keys, some, times)
}

// leastOf is when the first row of a key is settled.
func (a *arrangement) leastOf(key uint32) int64 {
	least := never
	for s := a.head[key]; s != state.NoSlot; s = *a.next.At(s) {
		least = min(least, a.closes[s])
	}
	return least
}

// expireOut drops rows that the watermark has settled, of the keys that have left memory or had: rows that come back are in no timer.
func (a *arrangement) expireOut(w flow.Watermark) error {
	for w != flow.NoWatermark {
		k, err := a.later.Take(int64(w))
		if err != nil || k.Len() == 0 {
			return err
		}
		if err := a.bring(k); err != nil {
			return err
		}
		var gone, left []uint32
		var times []int64
		keys := found(a.keys, k)
		slices.Sort(keys) // a key that left several times may have several times
		for _, key := range slices.Compact(keys) {
			least := never
			for s := a.head[key]; s != state.NoSlot; s = *a.next.At(s) {
				if at := a.closes[s]; at != never && at <= int64(w) {
					gone = append(gone, s)
				} else {
					least = min(least, at)
				}
			}
			if least != never {
				left, times = append(left, key), append(times, coarse(least))
			}
		}
		if err := a.later.Add(a.keys, left, times); err != nil {
			return err
		}
		a.remove(gone)
	}
	return nil
}

// fetch brings the rows of some keys into memory, those that have left it.
func (a *arrangement) fetch(k *joinKeys) error {
	if !a.units.Open() {
		return nil
	}
	return a.bring(k.forTable())
}

func (a *arrangement) bring(k state.Keys) error {
	back, rows, err := a.units.Fetch(k)
	if err != nil || len(rows) == 0 {
		return err
	}
	keys := make([]uint32, len(rows))
	a.keys.Upsert(back, keys)
	a.growKeys()
	var slots, keyOf []uint32
	for i, key := range keys {
		for _, s := range rows[i] {
			slots, keyOf = append(slots, s), append(keyOf, key)
			if a.watched {
				a.total.V[key] += a.weightOf(s)
			}
		}
	}
	a.link(nil, allRows(len(slots)), slots, keyOf)
	a.units.Back(keys)
	if a.closing == nil {
		return nil
	}
	times, err := a.vals[a.closing.pos].Save(slots)
	if err != nil {
		return err
	}
	a.closes = grown(a.closes, a.rows.Slots(), never)
	for i, at := range (closing{0, a.closing.after}).at([]arrow.Array{times}) {
		a.closes[slots[i]] = at
	}
	return nil
}

// changedKeys notes whose rows changed in this step.
func (a *arrangement) changedKeys() {
	keys := make([]uint32, 0, len(a.touched))
	for _, s := range a.touched {
		if a.rows.Live(s) {
			keys = append(keys, a.keyOf[s])
		}
	}
	a.units.Changed(keys)
}
