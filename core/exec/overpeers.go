package exec

import (
	"bytes"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/rowkey"
	"github.com/riverbed/riverbed/core/types"
)

// markChanges sets marks[i] where row i of a column differs from the row before it. NULLs are equal, and so are the zeros.
func markChanges(marks []bool, a arrow.Array, t types.Type) {
	n := a.Len()
	if n < 2 {
		return
	}
	switch w := rowkey.Width(t); {
	case w > 0 && w <= 8:
		markWords(marks, rowkey.Words(a, t, false, make([]uint64, 0, n)), kernels.Valid(a))
	case w == 16:
		v, valid := rowkey.Wide(a, t, make([][2]uint64, 0, n)), kernels.Valid(a)
		for i := 1; i < n; i++ {
			switch {
			case valid == nil || kernels.Bit(valid, i) && kernels.Bit(valid, i-1):
				marks[i] = marks[i] || v[i] != v[i-1]
			case kernels.Bit(valid, i) != kernels.Bit(valid, i-1):
				marks[i] = true
			}
		}
	default:
		rows := rowkey.Encode([]arrow.Array{a}, []types.Type{t}, nil, n)
		for i := 1; i < n; i++ {
			marks[i] = marks[i] || !bytes.Equal(rows.Row(i), rows.Row(i-1))
		}
	}
}

func markWords(marks []bool, w []uint64, valid []byte) {
	marks = marks[:len(w)]
	if valid == nil {
		last := w[0]
		for i, x := range w {
			if x != last {
				marks[i] = true
			}
			last = x
		}
		return
	}
	for i := 1; i < len(w); i++ {
		switch here, before := kernels.Bit(valid, i), kernels.Bit(valid, i-1); {
		case here != before, here && w[i] != w[i-1]:
			marks[i] = true
		}
	}
}

// runsOf gives the first row of each run, and behind them the number of rows. The first row begins a run.
func runsOf(marks []bool) []int32 {
	out := make([]int32, 0, 16)
	for i, m := range marks {
		if m || i == 0 {
			out = append(out, int32(i))
		}
	}
	return append(out, int32(len(marks)))
}
