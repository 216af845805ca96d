package kernels

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// SelectTrue returns the rows where mask is true: not false, not NULL. When all are, sel is nil and all is true, so that
// a filter can hand on its input.
func SelectTrue(mask *array.Boolean) (sel []int32, all bool) {
	return selectBits(AndBits(BoolBits(mask), Valid(mask)), mask.Len())
}

// SelectValid returns the rows that are not NULL, as SelectTrue does.
func SelectValid(a arrow.Array) (sel []int32, all bool) {
	valid := Valid(a)
	if valid == nil {
		return nil, true
	}
	return selectBits(valid, a.Len())
}

func selectBits(b []byte, n int) ([]int32, bool) {
	c := CountBits(b, n)
	if c == n {
		return nil, true
	}
	return Select(make([]int32, 0, c), b, n), false
}
