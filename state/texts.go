package state

import (
	"encoding/binary"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/rowkey"
	"github.com/riverbed/riverbed/core/types"
)

// texts numbers values of no fixed width: VARCHAR, BLOB, nested ones. Equal values have one number, and one copy. A number lives as
// long as rows use it.
type texts struct {
	table *Table
	uses  *Int64s
	exact []rowkey.Key
	slots []uint32
	given []uint32 // or released, since the last sweep
}

func newTexts(exact bool) *texts {
	t := &texts{uses: &Int64s{}, exact: []rowkey.Key{{Exact: exact}}}
	t.table = NewTable(Decl{Name: "texts", Version: 1, Key: RowKey, Values: []string{"uses"}}, t.uses)
	return t
}

// add gives the numbers of the values of a column, NULL among them.
func (t *texts) add(typ types.Type, a arrow.Array, n int, out []uint64) []uint64 {
	t.slots = kernels.Sized(t.slots, n)
	t.table.Upsert(t.keys(typ, a, n), t.slots)
	out = kernels.Sized(out, n)
	for i, s := range t.slots {
		out[i] = uint64(s)
	}
	t.given = append(t.given, t.slots...)
	return out
}

func (t *texts) keys(typ types.Type, a arrow.Array, n int) Keys {
	rows := rowkey.Encode([]arrow.Array{a}, []types.Type{typ}, t.exact, n)
	k := Keys{Offsets: make([]uint32, n+1), Data: rows.Data, Hash: make([]uint64, n), Group: make([]uint8, n)}
	for i, o := range rows.Offs[:n+1] {
		k.Offsets[i] = uint32(o)
	}
	for i := range n {
		k.Hash[i] = hashBytes(rows.Row(i))
	}
	return k
}

// live is the memory of the values that rows use, roughly.
func (t *texts) live() int64 {
	return int64(float64(t.table.Bytes()) * float64(t.table.Len()) / float64(max(1, t.table.Slots())))
}

// array is the values of numbers.
func (t *texts) array(typ types.Type, numbers []uint64) arrow.Array {
	return rowkey.Decode([]types.Type{typ}, t.exact, len(numbers), func(i int) []byte { return t.table.Key(uint32(numbers[i])) })[0]
}

// sweep drops the numbers that no row uses, of those that were given or released since the last time.
func (t *texts) sweep() {
	var gone []uint32
	for _, s := range t.given {
		if t.uses.V[s] == 0 && t.table.Live(s) {
			t.uses.V[s] = 1 // each once
			gone = append(gone, s)
		}
	}
	t.given = t.given[:0]
	t.table.Delete(gone)
}

// hashBytes stirs eight bytes at a time.
func hashBytes(b []byte) uint64 {
	h := uint64(len(b)) * hashMix
	for len(b) >= 8 {
		h = stir(h ^ binary.LittleEndian.Uint64(b))
		b = b[8:]
	}
	for _, c := range b {
		h = (h ^ uint64(c)) * hashMix
	}
	return stir(h)
}

func stir(h uint64) uint64 {
	h *= hashMix
	return h ^ h>>32
}
