package exec

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/core/kernels"
)

// selectBits keeps the rows of sel (nil: all n) whose bit is set; nil bits are all set. A nil result means all rows.
func selectBits(bits []byte, n int, sel []int32) []int32 {
	if bits == nil {
		return sel
	}
	if sel == nil {
		return kernels.Select(make([]int32, 0, n), bits, n)
	}
	out := make([]int32, 0, len(sel))
	for _, i := range sel {
		if kernels.Bit(bits, int(i)) {
			out = append(out, i)
		}
	}
	return out
}

// selectValid keeps the rows where a is not NULL.
func selectValid(a arrow.Array, sel []int32) []int32 {
	return selectBits(kernels.Valid(a), a.Len(), sel)
}

// selectTrue keeps the rows where mask is true.
func selectTrue(mask *array.Boolean, sel []int32) []int32 {
	return selectBits(kernels.AndBits(kernels.BoolBits(mask), kernels.Valid(mask)), mask.Len(), sel)
}
