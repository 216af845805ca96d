package sqltest

import (
	"math/rand/v2"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/types"
)

// Disguise makes a batch of the same rows that does not begin at its arrays' first value, and whose NULLs stand over rubbish: a kernel that
// reads what it must not gives another answer then.
func Disguise(fields []types.Field, rows [][]types.Value, r *rand.Rand) arrow.RecordBatch {
	before, after := r.IntN(10), r.IntN(10)
	padded := make([][]types.Value, 0, before+len(rows)+after)
	for range before {
		padded = append(padded, rows[r.IntN(len(rows))])
	}
	padded = append(padded, rows...)
	for range after {
		padded = append(padded, make([]types.Value, len(fields)))
	}
	b := Batch(fields, padded)
	for _, c := range b.Columns() {
		fixed, ok := c.DataType().(arrow.FixedWidthDataType)
		if !ok || fixed.BitWidth()%8 != 0 || c.NullN() == 0 {
			continue
		}
		width, values := fixed.BitWidth()/8, c.Data().Buffers()[1].Bytes()
		for i := range c.Len() {
			if c.IsNull(i) {
				for j := range width {
					values[i*width+j] = byte(r.IntN(256))
				}
			}
		}
	}
	return b.NewSlice(int64(before), int64(before+len(rows)))
}
