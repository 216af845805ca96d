package riverbed

import (
	"cmp"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/types"
)

// rangeRows bounds the tables whose ranges are looked for: planning a query must stay much cheaper than scanning.
const rangeRows = 4 << 20

// chunkStats counts rows and NULLs and finds the range of whole numbers, dates and timestamps, by which joins are ordered
// and keys are used as positions in an array.
func chunkStats(chunks []arrow.RecordBatch, fields []types.Field) flow.Stats {
	s := flow.Stats{Exact: true, Columns: map[int]flow.ColumnStats{}}
	for _, c := range chunks {
		s.Rows += c.NumRows()
	}
	if s.Rows > rangeRows {
		return s
	}
	for i, f := range fields {
		var col flow.ColumnStats
		for _, c := range chunks {
			a := c.Column(i)
			col.Nulls += int64(a.NullN())
			lo, hi := extremes(a)
			if lo < 0 {
				continue
			}
			if v := types.ValueAt(a, lo, f.Type); col.Min == nil || types.Compare(v, col.Min, f.Type) < 0 {
				col.Min = v
			}
			if v := types.ValueAt(a, hi, f.Type); col.Max == nil || types.Compare(v, col.Max, f.Type) > 0 {
				col.Max = v
			}
		}
		s.Columns[i] = col
	}
	return s
}

// extremes returns the rows of the least and the greatest value, or -1 where there are none.
func extremes(a arrow.Array) (lo, hi int) {
	switch a := a.(type) {
	case *array.Int8:
		return extremesOf(a, a.Int8Values())
	case *array.Int16:
		return extremesOf(a, a.Int16Values())
	case *array.Int32:
		return extremesOf(a, a.Int32Values())
	case *array.Int64:
		return extremesOf(a, a.Int64Values())
	case *array.Uint8:
		return extremesOf(a, a.Uint8Values())
	case *array.Uint16:
		return extremesOf(a, a.Uint16Values())
	case *array.Uint32:
		return extremesOf(a, a.Uint32Values())
	case *array.Uint64:
		return extremesOf(a, a.Uint64Values())
	case *array.Date32:
		return extremesOf(a, a.Date32Values())
	case *array.Timestamp:
		return extremesOf(a, a.TimestampValues())
	}
	return -1, -1
}

func extremesOf[T cmp.Ordered](a arrow.Array, v []T) (lo, hi int) {
	lo, hi = -1, -1
	nulls := a.NullN() > 0
	for i, x := range v {
		if nulls && a.IsNull(i) {
			continue
		}
		if lo < 0 || x < v[lo] {
			lo = i
		}
		if hi < 0 || x > v[hi] {
			hi = i
		}
	}
	return lo, hi
}
