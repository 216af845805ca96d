package expr

import (
	"slices"

	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/kernels"
)

// A boolean over n rows is worked on as two bitmaps: where it is true and where it is false. NULL is neither.

func trueBits(v fn.Arg, n int) []byte {
	if v.Const {
		if !kernels.IsNull(v.Array, 0) && kernels.Bit(kernels.BoolBits(v.Array), 0) {
			return kernels.Ones(n)
		}
		return make([]byte, kernels.BitBytes(n))
	}
	return kernels.AndBits(kernels.Valid(v.Array), kernels.BoolBits(v.Array))
}

func falseBits(v fn.Arg, n int) []byte {
	if v.Const {
		if !kernels.IsNull(v.Array, 0) && !kernels.Bit(kernels.BoolBits(v.Array), 0) {
			return kernels.Ones(n)
		}
		return make([]byte, kernels.BitBytes(n))
	}
	out := slices.Clone(kernels.BoolBits(v.Array))
	valid := kernels.Valid(v.Array)
	for i := range out {
		out[i] = ^out[i]
		if valid != nil {
			out[i] &= valid[i]
		}
	}
	if len(out) > 0 {
		kernels.TrimBits(out, n)
	}
	return out
}

// logicOp is AND, or OR. In OR true decides a row, in AND false does; a row that is decided is shown to no further
// argument that may fail on it.
type logicOp struct {
	args []int
	or   bool
}

func (o *logicOp) eval(x *frame) (fn.Arg, error) {
	n := x.n
	decided := make([]byte, kernels.BitBytes(n))
	open := kernels.Ones(n) // rows where every argument so far was the other truth value
	for i, a := range o.args {
		f, rows := x, []int32(nil)
		if i > 0 && x.prog.slots[a].guarded() {
			if rows = undecided(decided, n); len(rows) == 0 {
				break
			}
			if len(rows) < n {
				f = x.sub(rows)
			}
		}
		v, err := f.get(a)
		if err != nil {
			return v, err
		}
		yes, no := falseBits(v, f.n), trueBits(v, f.n)
		if o.or {
			yes, no = no, yes
		}
		if f != x {
			x.done(f)
			for j, r := range rows {
				if kernels.Bit(yes, j) {
					kernels.SetBit(decided, int(r))
				}
				if !kernels.Bit(no, j) {
					kernels.ClearBit(open, int(r))
				}
			}
			continue
		}
		for j := range decided {
			decided[j] |= yes[j]
			open[j] &= no[j]
		}
	}
	valid := make([]byte, len(decided))
	values := open
	for j := range valid {
		open[j] &^= decided[j]
		valid[j] = decided[j] | open[j]
	}
	if o.or {
		values = decided
	}
	return fn.Arg{Array: boolArray(values, valid, n)}, nil
}

// boolArray drops a validity that has no NULL.
func boolArray(values, valid []byte, n int) *array.Boolean {
	if valid != nil && kernels.CountBits(valid, n) == n {
		valid = nil
	}
	return kernels.NewBools(n, values, valid)
}

func undecided(decided []byte, n int) []int32 {
	rest := make([]byte, len(decided))
	for i := range rest {
		rest[i] = ^decided[i]
	}
	if len(rest) > 0 {
		kernels.TrimBits(rest, n)
	}
	return kernels.Select(make([]int32, 0, kernels.CountBits(rest, n)), rest, n)
}

// notOp is NOT.
type notOp int

func (o notOp) eval(x *frame) (fn.Arg, error) {
	v, err := x.get(int(o))
	if err != nil {
		return v, err
	}
	n := v.Len()
	out := slices.Clone(kernels.BoolBits(v.Array))
	for i := range out {
		out[i] = ^out[i]
	}
	return fn.Arg{Array: boolArray(out, kernels.Valid(v.Array), n), Const: v.Const}, nil
}

// isNullOp is IS [NOT] NULL.
type isNullOp struct {
	arg    int
	negate bool
}

func (o isNullOp) eval(x *frame) (fn.Arg, error) {
	v, err := x.get(o.arg)
	if err != nil {
		return v, err
	}
	n := v.Len()
	valid := kernels.Valid(v.Array)
	switch {
	case valid == nil && o.negate:
		valid = kernels.Ones(n)
	case valid == nil:
		valid = make([]byte, kernels.BitBytes(n))
	case !o.negate:
		valid = slices.Clone(valid)
		for i := range valid {
			valid[i] = ^valid[i]
		}
	}
	return fn.Arg{Array: kernels.NewBools(n, valid, nil), Const: v.Const}, nil
}
