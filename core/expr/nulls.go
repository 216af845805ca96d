package expr

import (
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/kernels"
)

func anyNullConst(args []fn.Arg) bool {
	return slices.ContainsFunc(args, func(a fn.Arg) bool { return a.Const && a.IsNull(0) })
}

func nullConst(dt arrow.DataType) fn.Arg { return fn.Arg{Array: kernels.Nulls(dt, 1), Const: true} }

// mergeNulls makes the result NULL where an argument is, and forgets what failed there.
func mergeNulls(out arrow.Array, args []fn.Arg, failed []fn.RowError) (arrow.Array, []fn.RowError) {
	var valid []byte
	for _, a := range args {
		if !a.Const {
			valid = kernels.AndBits(valid, kernels.Valid(a.Array))
		}
	}
	if valid == nil {
		return out, failed
	}
	failed = slices.DeleteFunc(failed, func(f fn.RowError) bool { return !kernels.Bit(valid, f.Row) })
	return withValid(out, kernels.AndBits(valid, kernels.Valid(out))), failed
}

// nullRows makes rows NULL.
func nullRows(out arrow.Array, rows []fn.RowError) arrow.Array {
	valid := kernels.Valid(out)
	if valid == nil {
		valid = kernels.Ones(out.Len())
	} else {
		valid = slices.Clone(valid)
	}
	for _, f := range rows {
		kernels.ClearBit(valid, f.Row)
	}
	return withValid(out, valid)
}

// withValid gives an array another validity; its values are shared.
func withValid(a arrow.Array, valid []byte) arrow.Array {
	d := a.Data()
	if d.DataType().ID() == arrow.NULL {
		return a
	}
	n := d.Len()
	if d.Offset() != 0 { // the new bitmap starts at bit 0 of the row, so it is moved to the array's offset
		shifted := make([]byte, kernels.BitBytes(d.Offset()+n))
		for i := range n {
			if kernels.Bit(valid, i) {
				kernels.SetBit(shifted, d.Offset()+i)
			}
		}
		return newData(d, shifted, n-kernels.CountBits(valid, n))
	}
	return newData(d, valid, n-kernels.CountBits(valid, n))
}

func newData(d arrow.ArrayData, valid []byte, nulls int) arrow.Array {
	buffers := slices.Clone(d.Buffers())
	buffers[0] = memory.NewBufferBytes(valid)
	return array.MakeFromData(array.NewData(d.DataType(), d.Len(), buffers, d.Children(), nulls, d.Offset()))
}
