package riverbed

import (
	"cmp"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/types"
)

const (
	// sampleRows is how many rows of a column are looked at: planning a query must stay much cheaper than scanning it. Of a
	// table with more rows it is every so-manyth, and the last one of each chunk.
	sampleRows = 4 << 10
	// sampleTexts is the same for texts, of which those are counted that differ. When they are not much fewer than the rows
	// looked at, their number is left open.
	sampleTexts = 1 << 10
	fewTexts    = sampleTexts / 8
)

// chunkStats counts rows and NULLs, and estimates the range of numbers, dates and timestamps and the number of different
// texts, by which joins are ordered. The counts are exact, a range may be wider than what was looked at.
func chunkStats(chunks []*chunk, fields []types.Field) flow.Stats {
	s := flow.Stats{Exact: true, Columns: map[int]flow.ColumnStats{}}
	for _, c := range chunks {
		s.Rows += int64(c.count)
	}
	if s.Rows == 0 {
		return s
	}
	for i, f := range fields {
		var col flow.ColumnStats
		texts := map[string]bool{}
		step, many := max(1, s.Rows/sampleRows), false
		if _, ok := f.Type.Arrow().(*arrow.StringType); ok {
			step = max(1, s.Rows/sampleTexts)
		}
		from := int64(0) // the next row to look at, counted in the present chunk
		for _, c := range chunks {
			a := c.rows.Column(i)
			col.Nulls += int64(a.NullN())
			n := c.rows.NumRows()
			if n == 0 {
				continue
			}
			p := picked{from: int(from), step: int(step), rows: int(n)}
			from = ((from-n)%step + step) % step
			if t, ok := a.(*array.String); ok {
				p.each(func(row int) {
					if !many && t.IsValid(row) {
						texts[t.Value(row)] = true
						many = len(texts) > fewTexts
					}
				})
				continue
			}
			lo, hi := extremes(a, p)
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
		if !many {
			col.Distinct = int64(len(texts))
		}
		s.Columns[i] = col
	}
	return s
}

// picked is every step-th row of a chunk from from on, and its last one.
type picked struct{ from, step, rows int }

func (p picked) each(visit func(row int)) {
	for i := p.from; i < p.rows; i += p.step {
		visit(i)
	}
	visit(p.rows - 1)
}

// extremes returns the picked rows of the least and the greatest value, or -1 where there are none.
func extremes(a arrow.Array, p picked) (lo, hi int) {
	switch a := a.(type) {
	case *array.Int8:
		return extremesOf(a, a.Int8Values(), p)
	case *array.Int16:
		return extremesOf(a, a.Int16Values(), p)
	case *array.Int32:
		return extremesOf(a, a.Int32Values(), p)
	case *array.Int64:
		return extremesOf(a, a.Int64Values(), p)
	case *array.Uint8:
		return extremesOf(a, a.Uint8Values(), p)
	case *array.Uint16:
		return extremesOf(a, a.Uint16Values(), p)
	case *array.Uint32:
		return extremesOf(a, a.Uint32Values(), p)
	case *array.Uint64:
		return extremesOf(a, a.Uint64Values(), p)
	case *array.Float32:
		return extremesOf(a, a.Float32Values(), p)
	case *array.Float64:
		return extremesOf(a, a.Float64Values(), p)
	case *array.Date32:
		return extremesOf(a, a.Date32Values(), p)
	case *array.Timestamp:
		return extremesOf(a, a.TimestampValues(), p)
	case *array.Decimal128:
		return extremesBy(a, a.Values(), p, decimal128.Num.Cmp)
	}
	return -1, -1
}

// extremesOf leaves out NaN, which says nothing of where the others lie.
func extremesOf[T cmp.Ordered](a arrow.Array, v []T, p picked) (lo, hi int) {
	return extremesBy(a, v, p, cmp.Compare[T])
}

func extremesBy[T comparable](a arrow.Array, v []T, p picked, order func(x, y T) int) (lo, hi int) {
	lo, hi = -1, -1
	nulls := a.NullN() > 0
	p.each(func(i int) {
		switch x := v[i]; {
		case nulls && a.IsNull(i), x != x: // NaN
		case lo < 0:
			lo, hi = i, i
		case order(x, v[lo]) < 0:
			lo = i
		case order(x, v[hi]) > 0:
			hi = i
		}
	})
	return lo, hi
}
