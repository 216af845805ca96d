package riverbed

import (
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/hashtable"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/types"
)

func (t *memTable) uniqueKeys() [][]int {
	var out [][]int
	for _, k := range t.keys {
		solid := true
		for _, c := range k {
			solid = solid && t.notNull[c] // UNIQUE allows several NULLs
		}
		if solid {
			out = append(out, k)
		}
	}
	return out
}

// checkKeys finds two rows with the same key. NULLs are never equal here.
func (t *memTable) checkKeys() error {
	chunks := t.snapshot()
	for _, key := range t.keys {
		ts := make([]types.Type, len(key))
		for k, c := range key {
			ts[k] = t.columns[c].Type
		}
		seen := hashtable.NewGroups(ts)
		for _, b := range chunks {
			var sel []int32
			for r := 0; r < int(b.NumRows()); r++ {
				null := false
				for _, c := range key {
					null = null || b.Column(c).IsNull(r)
				}
				if !null {
					sel = append(sel, int32(r))
				}
			}
			cols := make([]arrow.Array, len(key))
			for k, c := range key {
				cols[k] = kernels.Take(b.Column(c), sel)
			}
			ids := make([]uint32, len(sel))
			next := uint32(seen.Len())
			seen.FindOrAdd(cols, len(sel), ids)
			for r, id := range ids {
				if id != next {
					var names, vals []string
					for k, c := range key {
						names = append(names, t.columns[c].Name)
						vals = append(vals, types.Format(types.ValueAt(cols[k], r, ts[k]), ts[k]))
					}
					return errs.New(errs.Data, "insert", "duplicate key: table %q has a row with (%s) = (%s) already", t.name, strings.Join(names, ", "), strings.Join(vals, ", "))
				}
				next++
			}
		}
	}
	return nil
}
