package files

import (
	"bytes"
	"cmp"
	"math"

	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/types"
)

// canMatch reports whether a row of a unit with rows rows may satisfy p, given the column's statistics.
// It answers true when in doubt.
func canMatch(p flow.Predicate, t types.Type, s flow.ColumnStats, rows int64) bool {
	allNull := rows >= 0 && s.Nulls >= 0 && s.Nulls >= rows
	switch p.Op {
	case flow.CmpIsNull:
		return s.Nulls != 0
	case flow.CmpIsNotNull:
		return !allNull
	}
	if allNull && rows > 0 {
		return false // a comparison with NULL is never true
	}
	if s.Min == nil || s.Max == nil {
		return true
	}
	if p.Op == flow.CmpIn {
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
	lo, ok1 := compareValues(s.Min, v)
	hi, ok2 := compareValues(s.Max, v)
	if !ok1 || !ok2 {
		return true
	}
	switch p.Op {
	case flow.CmpEq:
		return inRange(t, s, v)
	case flow.CmpNe:
		return unbounded || lo != 0 || hi != 0
	case flow.CmpLt:
		return lo < 0
	case flow.CmpLe:
		return lo <= 0
	case flow.CmpGt:
		return unbounded || hi > 0
	case flow.CmpGe:
		return unbounded || hi >= 0
	}
	return true
}

func inRange(t types.Type, s flow.ColumnStats, v types.Value) bool {
	if t.IsFloat() && isNaN(v) {
		return true
	}
	lo, ok1 := compareValues(s.Min, v)
	hi, ok2 := compareValues(s.Max, v)
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

// compareValues orders two values of one type; ok is false when they cannot be ordered here.
func compareValues(a, b types.Value) (order int, ok bool) {
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
