package incremental

import (
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/state"
)

// coldTable is a table whose rows leave memory one by one, and are told to leave before.
type coldTable struct {
	*state.Table
	limited func(in *state.Cold) // may be nil
	leave   func(slots []uint32) error
}

func (c coldTable) Limit(in *state.Cold, path string, bytes int64) {
	c.Table.Limit(in, path, bytes)
	c.OnLeave(c.leave)
	if c.limited != nil {
		c.limited(in)
	}
}

// putOff notes when rows that leave memory are settled, of which closes tells. Those that were out before are noted already.
func putOff(later *state.Due, t *state.Table, slots []uint32, closes func(slots []uint32) []int64) error {
	first := make([]uint32, 0, len(slots))
	for _, s := range slots {
		if !t.InStore(s) {
			first = append(first, s)
		}
	}
	if len(first) == 0 {
		return nil
	}
	return later.Add(t, first, closes(first))
}

// endOut gives rows that have left memory, and that the watermark has settled, to end, which drops them: the earliest first, some at a time.
func endOut(later *state.Due, t *state.Table, w flow.Watermark, end func(slots []uint32) error) error {
	for w != flow.NoWatermark {
		k, err := later.Take(int64(w))
		if err != nil || k.Len() == 0 {
			return err
		}
		if err := t.Fetch(k); err != nil {
			return err
		}
		if err := end(found(t, k)); err != nil {
			return err
		}
	}
	return nil
}

// found are the rows of those of some keys that are in memory.
func found(t *state.Table, k state.Keys) []uint32 {
	slots := make([]uint32, k.Len())
	t.Find(k, slots)
	out := slots[:0]
	for _, s := range slots {
		if s != state.NoSlot {
			out = append(out, s)
		}
	}
	return out
}

// leftSlots marks the closing times of rows that have left memory: other rows come into their slots.
func (t *timers) leftSlots(closes []int64, slots []uint32) {
	for _, s := range slots {
		if int(s) < len(closes) { // while state is restored nobody knows them yet
			closes[s] = never
		}
	}
	t.forget(len(slots), func(s uint32, at int64) bool { return closes[s] == at })
}
