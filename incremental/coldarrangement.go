package incremental

import (
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
		for _, k := range keys {
			a.head[k] = state.NoSlot
		}
		a.keys.Delete(keys)
		return nil
	})
}

// fetch brings the rows of some keys into memory, those that have left it.
func (a *arrangement) fetch(k *joinKeys) error {
	if a.units == nil {
		return nil
	}
	back, rows, err := a.units.Fetch(k.forTable())
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
