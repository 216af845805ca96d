package incremental

import (
	"bytes"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/riverbed/riverbed/core/kernels"
)

// sameRows compares row i of a with row at[i] of b, bit for bit; a negative at[i] is no row and differs.
func sameRows(a, b []arrow.Array, at []int32) []bool {
	same := make([]bool, len(at))
	for i, j := range at {
		same[i] = j >= 0
	}
	for c := range b { // none when b has no rows: then every at is negative
		sameColumn(a[c], b[c], at, same)
	}
	return same
}

func sameColumn(a, b arrow.Array, at []int32, same []bool) {
	if a.NullN() > 0 || b.NullN() > 0 {
		for i, j := range at {
			same[i] = same[i] && a.IsNull(i) == b.IsNull(int(j))
		}
	}
	switch d := a.DataType().(type) {
	case *arrow.NullType:
		return
	case *arrow.StringType, *arrow.BinaryType:
		ao, ad := kernels.Spans(a)
		bo, bd := kernels.Spans(b)
		for i, j := range at {
			same[i] = same[i] && (a.IsNull(i) || bytes.Equal(ad[ao[i]:ao[i+1]], bd[bo[j]:bo[j+1]]))
		}
		return
	case arrow.FixedWidthDataType:
		switch d.BitWidth() {
		case 8:
			sameFixed[uint8](a, b, at, same)
			return
		case 16:
			sameFixed[uint16](a, b, at, same)
			return
		case 32:
			sameFixed[uint32](a, b, at, same)
			return
		case 64:
			sameFixed[uint64](a, b, at, same)
			return
		case 128:
			sameFixed[decimal128.Num](a, b, at, same)
			return
		}
	}
	for i, j := range at {
		same[i] = same[i] && array.SliceEqual(a, int64(i), int64(i)+1, b, int64(j), int64(j)+1)
	}
}

func sameFixed[T comparable](a, b arrow.Array, at []int32, same []bool) {
	if len(at) == 0 || b.Len() == 0 {
		return
	}
	x, y := kernels.Values[T](a), kernels.Values[T](b)
	for i, j := range at {
		if same[i] && x[i] != y[j] && !a.IsNull(i) {
			same[i] = false
		}
	}
}
