package riverbed

import (
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/types"
)

// columnRange is between which values a column of one chunk lies. It is looked for once, when somebody first asks: chunks
// never change and outlive the edits of their table, so a statement pays only for the chunks that it made.
type columnRange struct {
	once   sync.Once
	lo, hi int64 // in the order of kernels.Bounds
	known  bool
}

// bounds of a column in a chunk; those of texts and nested types are not known.
func (c *chunk) bounds(column int) *columnRange {
	r := &c.ranges[column]
	r.once.Do(func() { r.lo, r.hi, r.known = kernels.Bounds(c.rows.Column(column)) })
	return r
}

// columnStats is what scans skip a chunk by.
func (c *chunk) columnStats(column int, t types.Type) flow.ColumnStats {
	s := flow.ColumnStats{Nulls: int64(c.rows.Column(column).NullN())}
	if r := c.bounds(column); r.known {
		s.Min, s.Max = boundValue(r.lo, t), boundValue(r.hi, t)
	}
	return s
}

// canMatch reports whether a row of the chunk may satisfy all conditions.
func (c *chunk) canMatch(filters []flow.Predicate, fields []types.Field) bool {
	for _, p := range filters {
		if t := fields[p.Column].Type; !p.CanMatch(t, c.columnStats(p.Column, t), c.rows.NumRows()) {
			return false
		}
	}
	return true
}

// boundValue is a bound of kernels.Bounds as a value of the column's type.
func boundValue(v int64, t types.Type) types.Value {
	switch t.Arrow().ID() {
	case arrow.UINT8, arrow.UINT16, arrow.UINT32, arrow.UINT64:
		return kernels.FromUnsignedOrder(v)
	case arrow.FLOAT32:
		return float32(kernels.FromFloatOrder(v))
	case arrow.FLOAT64:
		return kernels.FromFloatOrder(v)
	case arrow.DECIMAL128:
		if t.Kind == types.UHugeInt { // whose upper half would be read as negative
			return nil
		}
		return decimal128.FromI64(v)
	}
	return v
}
