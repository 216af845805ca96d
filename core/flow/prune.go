package flow

import (
	"bytes"
	"cmp"
	"math"

	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/riverbed/riverbed/core/types"
)

// CanMatch reports whether one of so many rows (-1: unknown) may satisfy p, given the type and the statistics of its column.
// It answers true when in doubt.
func (p Predicate) CanMatch(t types.Type, s ColumnStats, rows int64) bool {
	allNull := rows >= 0 && s.Nulls >= 0 && s.Nulls >= rows
	switch p.Op {
	case CmpIsNull:
		return s.Nulls != 0
	case CmpIsNotNull:
		return !allNull
	}
	if allNull && rows > 0 {
		return false // a comparison with NULL is never true
	}
	if r := p.Rising; r != nil && s.Min != nil && s.Max != nil {
		s.Min, s.Max, t = r.Of(s.Min), r.Of(s.Max), r.Type
	}
	if s.Min == nil || s.Max == nil {
		return true
	}
	if p.Op == CmpIn {
		for _, v := range p.Values {
			if v != nil && inRange(t, s, v) {
				return true
			}
		}
		return len(p.Values) == 0
	}
	if len(p.Values) != 1 || p.Values[0] == nil {
		return true
	}
	v := p.Values[0]
	// NaN sorts above all numbers and statistics leave it out, so a column of floats has no upper bound.
	unbounded := t.IsFloat()
	lo, ok1 := CompareBounds(s.Min, v)
	hi, ok2 := CompareBounds(s.Max, v)
	if !ok1 || !ok2 {
		return true
	}
	switch p.Op {
	case CmpEq:
		return inRange(t, s, v)
	case CmpNe:
		return unbounded || lo != 0 || hi != 0
	case CmpLt:
		return lo < 0
	case CmpLe:
		return lo <= 0
	case CmpGt:
		return unbounded || hi > 0
	case CmpGe:
		return unbounded || hi >= 0
	}
	return true
}

func inRange(t types.Type, s ColumnStats, v types.Value) bool {
	if t.IsFloat() && isNaN(v) {
		return true
	}
	lo, ok1 := CompareBounds(s.Min, v)
	hi, ok2 := CompareBounds(s.Max, v)
	return !ok1 || !ok2 || lo <= 0 && hi >= 0
}

func isNaN(v types.Value) bool {
	switch f := v.(type) {
	case float64:
		return math.IsNaN(f)
	case float32:
		return f != f
	}
	return false
}

// CompareBounds orders two values of one type; ok is false when they cannot be ordered as bounds.
func CompareBounds(a, b types.Value) (order int, ok bool) {
	if isNaN(a) || isNaN(b) {
		return 0, false
	}
	switch x := a.(type) {
	case int64:
		if y, ok := b.(int64); ok {
			return cmp.Compare(x, y), true
		}
	case uint64:
		if y, ok := b.(uint64); ok {
			return cmp.Compare(x, y), true
		}
	case float64:
		if y, ok := b.(float64); ok {
			return cmp.Compare(x, y), true
		}
	case float32:
		if y, ok := b.(float32); ok {
			return cmp.Compare(x, y), true
		}
	case string:
		if y, ok := b.(string); ok {
			return cmp.Compare(x, y), true
		}
	case []byte:
		if y, ok := b.([]byte); ok {
			return bytes.Compare(x, y), true
		}
	case bool:
		if y, ok := b.(bool); ok {
			return boolOrder(x) - boolOrder(y), true
		}
	case decimal128.Num:
		if y, ok := b.(decimal128.Num); ok {
			return x.Cmp(y), true
		}
	}
	return 0, false
}

func boolOrder(b bool) int {
	if b {
		return 1
	}
	return 0
}
