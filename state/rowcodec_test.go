package state

import (
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/core/rowkey/rowkeytest"
	"github.com/riverbed/riverbed/core/types"
)

// TestRowCodec: rows of every type come back as they were, in any order and from slices of arrays.
func TestRowCodec(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	all := rowkeytest.Types
	for range 200 {
		ts := make([]types.Type, r.IntN(20))
		for i := range ts {
			ts[i] = all[r.IntN(len(all))]
		}
		n := r.IntN(40)
		cols := make([]arrow.Array, len(ts))
		for i := range cols {
			cols[i] = rowkeytest.Column(r, ts[i], n)
		}
		c := newRowCodec(ts)
		for range 2 { // its memory is used again
			c.from(cols, n)
			rows := make([][]byte, n)
			for i := range rows {
				rows[i] = c.append(nil, i)
			}
			for i, got := range c.decode(n, func(i int) []byte { return rows[i] }) {
				if !array.ApproxEqual(got, cols[i], array.WithNaNsEqual(true), array.WithAbsTolerance(0)) {
					t.Fatalf("%s: %v, not %v", ts[i], got, cols[i])
				}
			}
		}
	}
}
