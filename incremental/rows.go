package incremental

import (
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/rowkey"
	"github.com/riverbed/riverbed/core/types"
	"github.com/riverbed/riverbed/state"
)

// keyEncoder turns columns into state keys. Hash and group come from the columns' SQL equality, bytes or words from rowkey.
type keyEncoder struct {
	enc   *rowkey.Encoder
	types []types.Type
	pack  *rowkey.Packing // not nil: keys are words
	words rowkey.Packed
	hash  []uint64
	offs  []uint32
	grp   []uint8
}

// newKeyEncoder encodes keys by SQL equality.
func newKeyEncoder(ts []types.Type) *keyEncoder {
	return &keyEncoder{enc: rowkey.NewEncoder(ts, nil), types: ts}
}

// into makes keys words where columns fit, for a table, which holds them so. Nobody may ask such keys for their bytes.
func (k *keyEncoder) into(t *state.Table, follows ...rowkey.Follows) *keyEncoder {
	if k.pack = rowkey.NewPacking(k.types, false, follows...); k.pack != nil {
		t.Pack(k.pack)
	}
	return k
}

// newRowEncoder encodes whole rows by what they print: a row is retracted by the very row that was inserted, and
// -0.0 is another row than 0.0.
func newRowEncoder(ts []types.Type) *keyEncoder {
	return &keyEncoder{enc: rowkey.NewEncoder(ts, exactKeys(len(ts)))}
}

func exactKeys(n int) []rowkey.Key {
	keys := make([]rowkey.Key, n)
	for i := range keys {
		keys[i].Exact = true
	}
	return keys
}

// encode returns the keys of n rows; valid until the next call. hash, when not nil, is the rows' hash, already known.
func (k *keyEncoder) encode(cols []arrow.Array, n int, hash []uint64) state.Keys {
	if hash == nil {
		k.hash = kernels.Sized(k.hash, n)
		kernels.HashColumns(cols, n, k.hash)
		hash = k.hash
	}
	k.grp = groupsOf(hash, k.grp)
	if k.pack != nil {
		k.pack.Pack(cols, n, &k.words)
		return state.Keys{Words: k.words, Hash: hash, Group: k.grp}
	}
	rows := k.enc.Encode(cols, n)
	k.offs = kernels.Sized(k.offs, n+1)
	for i, o := range rows.Offs[:n+1] {
		k.offs[i] = uint32(o)
	}
	return state.Keys{Offsets: k.offs, Data: rows.Data, Hash: hash, Group: k.grp}
}

// keysOf reads the key columns of rows of a table in normal form: 0.0 for -0.0, as batch shows its groups.
func keysOf(t *state.Table, ts []types.Type, slots []uint32) []arrow.Array {
	if t.Packed() {
		return t.KeyColumns(slots)
	}
	return rowkey.Decode(ts, nil, len(slots), func(i int) []byte { return t.Key(slots[i]) })
}

func groupsOf(hash []uint64, out []uint8) []uint8 {
	out = kernels.Sized(out, len(hash))
	for i, h := range hash {
		out[i] = uint8(kernels.KeyGroup(h))
	}
	return out
}

// grown makes s at least n long, filling with v.
func grown[T any](s []T, n int, v T) []T {
	from := len(s)
	s = kernels.Grown(s, n)
	for i := from; i < len(s); i++ {
		s[i] = v
	}
	return s
}

// hashOf hashes rows of columns into memory of its own.
func hashOf(cols []arrow.Array, n int) []uint64 {
	out := kernels.Room[uint64](n)
	kernels.HashColumns(cols, n, out)
	return out
}

func columnTypes(cols []plan.Column) []types.Type {
	out := make([]types.Type, len(cols))
	for i, c := range cols {
		out[i] = c.Type
	}
	return out
}

func exprTypes(es []expr.Expr) []types.Type {
	out := make([]types.Type, len(es))
	for i, e := range es {
		out[i] = e.Type()
	}
	return out
}

func layoutOf(cols []plan.Column) map[expr.ColID]int {
	m := make(map[expr.ColID]int, len(cols))
	for i, c := range cols {
		m[c.ID] = i
	}
	return m
}

func schemaOf(cols []plan.Column) *arrow.Schema {
	fields := make([]types.Field, len(cols))
	for i, c := range cols {
		fields[i] = types.Field{Name: c.Name, Type: c.Type}
	}
	return types.ArrowSchema(fields)
}

// valueColumns makes a state column per type.
func valueColumns(ts []types.Type) []state.Values {
	out := make([]state.Values, len(ts))
	for i, t := range ts {
		out[i] = state.NewValues(t)
	}
	return out
}

// gather reads slots of value columns; state.NoSlot gives NULLs.
func gather(cols []state.Values, slots []uint32) ([]arrow.Array, error) {
	out := make([]arrow.Array, len(cols))
	for i, c := range cols {
		a, err := c.Save(slots)
		if err != nil {
			return nil, err
		}
		out[i] = a
	}
	return out, nil
}

// putFresh stores the columns of rows that made a slot.
func putFresh(vals []state.Values, cols []arrow.Array, fresh []int32, slots []uint32) {
	if len(fresh) == 0 {
		return
	}
	at := make([]uint32, len(fresh))
	for i, r := range fresh {
		at[i] = slots[r]
	}
	for i, v := range vals {
		v.Put(at, cols[i], fresh)
	}
}

func nulls(ts []types.Type, n int) []arrow.Array {
	out := make([]arrow.Array, len(ts))
	for i, t := range ts {
		out[i] = kernels.Nulls(t.Arrow(), n)
	}
	return out
}

// valueNames names the columns of a table after the plan's columns, for those who read a checkpoint.
func valueNames(cols []plan.Column, more ...string) []string {
	out := make([]string, 0, len(cols)+len(more))
	for _, c := range cols {
		out = append(out, c.Name)
	}
	return append(out, more...)
}
