package riverbed

import (
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/hashtable"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/types"
)

// tableKey is a PRIMARY KEY or UNIQUE constraint and the keys that the table has, so that an INSERT looks only at its
// own rows. Where rows go, the keys are forgotten and found anew at the next check.
type tableKey struct {
	columns []int
	seen    *hashtable.Groups // nil: not known
	primary bool
	index   bool // a unique index, which may go: plans do not build on it
}

func (t *memTable) uniqueKeys() [][]int {
	var out [][]int
	for _, k := range t.keys {
		solid := !k.index
		for _, c := range k.columns {
			solid = solid && t.notNull[c] // UNIQUE allows several NULLs
		}
		if solid {
			out = append(out, k.columns)
		}
	}
	return out
}

func (t *memTable) forgetKeys() {
	for _, k := range t.keys {
		k.seen = nil
	}
}

// checkKeys takes the keys of rows that were added and finds the first that is there already. Who gives the edit up
// forgets the keys.
func (e *tableEdit) checkKeys(added []arrow.RecordBatch) error {
	t := e.t
	for _, k := range t.keys {
		batches := added
		if k.seen == nil {
			batches = presentOf(e.chunks) // added ones included
			k.seen = hashtable.NewGroups(t.keyTypes(k))
		}
		for _, b := range batches {
			if err := t.addKeys(k, b); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t *memTable) keyTypes(k *tableKey) []types.Type {
	ts := make([]types.Type, len(k.columns))
	for i, c := range k.columns {
		ts[i] = t.columns[c].Type
	}
	return ts
}

// addKeys adds one batch's keys. NULLs are never equal here.
func (t *memTable) addKeys(k *tableKey, b arrow.RecordBatch) error {
	var sel []int32
	for r := range int(b.NumRows()) {
		null := false
		for _, c := range k.columns {
			null = null || b.Column(c).IsNull(r)
		}
		if !null {
			sel = append(sel, int32(r))
		}
	}
	cols := make([]arrow.Array, len(k.columns))
	for i, c := range k.columns {
		cols[i] = kernels.Take(b.Column(c), sel)
	}
	ids := make([]uint32, len(sel))
	next := uint32(k.seen.Len())
	k.seen.FindOrAdd(cols, len(sel), ids)
	for r, id := range ids {
		if id != next {
			return t.duplicate(k, cols, r)
		}
		next++
	}
	return nil
}

func (t *memTable) duplicate(k *tableKey, cols []arrow.Array, r int) error {
	names, vals := make([]string, len(cols)), make([]string, len(cols))
	for i, c := range k.columns {
		typ := t.columns[c].Type
		names[i], vals[i] = t.columns[c].Name, types.Format(types.ValueAt(cols[i], r, typ), typ)
	}
	return errs.New(errs.Data, "insert", "duplicate key: table %q has a row with (%s) = (%s) already", t.name, strings.Join(names, ", "), strings.Join(vals, ", "))
}
