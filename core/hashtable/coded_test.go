package hashtable

import (
	"math/rand/v2"
	"testing"

	"github.com/riverbed/riverbed/core/rowkey"
	"github.com/riverbed/riverbed/core/types"
)

// A table of coded columns numbers keys as a table of encoded rows does, and gives them back.
func TestCoded(t *testing.T) {
	for _, shape := range []struct {
		ts    []types.Type
		coded bool
	}{
		{[]types.Type{types.String, types.String}, true},
		{[]types.Type{types.Int64, types.String}, true},
		{[]types.Type{types.String, types.Int32, types.Binary, types.String}, true},
		{[]types.Type{types.Int32, types.Int32, types.Int32, types.Int32}, true},
		{[]types.Type{types.Int64, types.Float64, types.String, types.Int16}, true},
		{[]types.Type{types.String, types.Int64, types.Int64, types.Int64}, false},
		{[]types.Type{types.String, types.ListOf(types.Int8)}, false},
	} {
		if got := newCoded(shape.ts) != nil; got != shape.coded {
			t.Errorf("%v: coded is %t", shape.ts, got)
		}
		r := rand.New(rand.NewPCG(7, 8))
		g, model := NewTable(shape.ts), NewGroups(shape.ts)
		for range 40 {
			n := r.IntN(300)
			cols := columns(r, shape.ts, n)
			got, want := make([]uint32, n), make([]uint32, n)
			g.FindOrAdd(cols, n, got)
			model.FindOrAdd(cols, n, want)
			for i := range want {
				if got[i] != want[i] {
					t.Fatalf("%v: row %d is number %d, not %d", shape.ts, i, got[i], want[i])
				}
			}
			if g.Len() != model.Len() || g.Bytes() == 0 {
				t.Fatalf("%v: %d keys, not %d", shape.ts, g.Len(), model.Len())
			}
		}
		a := rowkey.Encode(g.Keys(0, g.Len()), shape.ts, nil, g.Len())
		b := rowkey.Encode(model.Keys(0, g.Len()), shape.ts, nil, g.Len())
		if string(a.Data) != string(b.Data) {
			t.Errorf("%v: the keys differ", shape.ts)
		}
	}
}
