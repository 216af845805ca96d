package sqltest

import (
	"slices"

	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/types"
)

// keyed is what was said of the keys of an upsert stream, split by split.
type keyed struct {
	*Relation
	splits []string // in their order
	said   map[string][]Event
}

func (k *keyed) add(e Event) {
	if k.said == nil {
		k.said = map[string][]Event{}
	}
	if k.said[e.Split] == nil {
		k.splits = append(k.splits, e.Split)
		slices.SortFunc(k.splits, flow.CompareSplits)
	}
	k.said[e.Split] = append(k.said[e.Split], e)
}

// log is all that was said, as an upsert relation holds it: split behind split, with the split's number and the weight.
func (k *keyed) log() [][]types.Value {
	var out [][]types.Value
	for nth, name := range k.splits {
		for _, e := range k.said[name] {
			out = append(out, append(slices.Clone(e.Values), int64(nth), e.Weight))
		}
	}
	return out
}

// list is the rows that stand: of each split the last of a key, of several splits' that of the last.
func (k *keyed) list() [][]types.Value {
	stands := map[string][]types.Value{}
	var order []string
	for _, name := range k.splits {
		last := map[string]Event{}
		var keys []string
		for _, e := range k.said[name] {
			text := RowText(at(plainZeros(e.Values), k.Key), k.keyFields())
			if _, known := last[text]; !known {
				keys = append(keys, text)
			}
			last[text] = e
		}
		for _, text := range keys {
			if last[text].Weight < 0 {
				continue
			}
			if stands[text] == nil {
				order = append(order, text)
			}
			row, zeros := slices.Clone(last[text].Values), plainZeros(last[text].Values)
			for _, c := range k.Key {
				row[c] = zeros[c]
			}
			stands[text] = row
		}
	}
	out := make([][]types.Value, len(order))
	for i, text := range order {
		out[i] = stands[text]
	}
	return out
}

// plainZeros gives 0.0 for -0.0, which as keys are the same and shown as 0.0.
func plainZeros(row []types.Value) []types.Value {
	out := slices.Clone(row)
	for i, v := range out {
		if f, ok := v.(float64); ok && f == 0 {
			out[i] = 0.0
		}
	}
	return out
}
