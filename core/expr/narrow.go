package expr

import (
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/types"
)

// A DECIMAL of up to 18 digits is a 64-bit integer that Arrow keeps in 128 bits. Where whoever reads a result asks for it, sums and
// products of such DECIMALs are computed in 64 bits: half the memory and a fraction of the instructions. Every narrow value
// carries a bound of its magnitudes, from which follows for the whole batch that nothing overflows and every result keeps its
// digits. Where that does not follow, the wide kernels take the batch, and report the rows that fail.

// narrowed is a slot in 64 bits.
type narrowed struct {
	v     []int64 // one for all rows, or one a row
	valid []byte
	most  uint64 // no magnitude is greater, those below NULLs included
	known bool   // has been tried
	ok    bool
}

// Narrow lets a root come as an array of arrow.Decimal64Type: for readers that take both.
func (p *Program) Narrow(root int) {
	if !isNarrow(p.slots[p.roots[root]].typ) {
		return
	}
	if p.narrow == nil {
		p.narrow = make([]bool, len(p.roots))
	}
	p.narrow[root] = true
}

// NarrowDigits is up to how many digits a DECIMAL fits 64 bits.
const NarrowDigits = 18

func isNarrow(t arrow.DataType) bool {
	d, ok := t.(*arrow.Decimal128Type)
	return ok && d.Precision <= NarrowDigits
}

// root evaluates a root in the form that its reader takes.
func (x *frame) root(i int) (fn.Arg, error) {
	s := x.prog.roots[i]
	if x.prog.narrow == nil || !x.prog.narrow[i] {
		return x.get(s)
	}
	n, err := x.narrowOf(s)
	if err != nil {
		return fn.Arg{}, err
	}
	if !n.ok || len(n.v) != x.n {
		return x.get(s)
	}
	d := x.prog.slots[s].typ.(*arrow.Decimal128Type)
	return fn.Arg{Array: kernels.NewFixed(&arrow.Decimal64Type{Precision: d.Precision, Scale: d.Scale}, n.v, n.valid)}, nil
}

// narrowOf computes a slot in 64 bits, on first use.
func (x *frame) narrowOf(s int) (*narrowed, error) {
	if x.small == nil {
		x.small = make([]narrowed, len(x.prog.slots))
	}
	n := &x.small[s]
	if n.known {
		return n, nil
	}
	n.known = true
	if !isNarrow(x.prog.slots[s].typ) {
		return n, nil
	}
	var err error
	if x.memo[s].Array == nil {
		switch o := x.prog.slots[s].op.(type) {
		case *callOp:
			err = o.narrow(x, n)
		case *castOp:
			err = o.narrow(x, n)
		}
		if err != nil || n.ok {
			return n, err
		}
	}
	v, err := x.get(s)
	if err != nil {
		return n, err
	}
	if v.Const && kernels.IsNull(v.Array, 0) {
		return n, nil
	}
	wide := kernels.Values[decimal128.Num](v.Array)
	n.v = kernels.Room[int64](len(wide))
	n.most, n.ok = kernels.PackDecimals(n.v, wide)
	n.valid = kernels.Valid(v.Array)
	return n, nil
}

// narrow adds, subtracts or multiplies in 64 bits.
func (o *callOp) narrow(x *frame, n *narrowed) error {
	if o.op == fn.NotNarrow || o.fn.Nulls != fn.NullIfAnyNull {
		return nil
	}
	a, err := x.narrowOf(o.args[0])
	if err != nil {
		return err
	}
	b, err := x.narrowOf(o.args[1])
	if err != nil || !a.ok || !b.ok || len(a.v) != x.n && len(b.v) != x.n {
		return err
	}
	hi, most := bits.Mul64(a.most, b.most)
	if o.op != fn.NarrowMul {
		most, hi = bits.Add64(a.most, b.most, 0)
	}
	limit := uint64(1) << 63
	if !o.safe {
		limit = types.Pow10(int(o.ret.Width)).LowBits()
	}
	if hi != 0 || most >= limit {
		return nil
	}
	n.v = kernels.Room[int64](x.n)
	switch o.op {
	case fn.NarrowAdd:
		kernels.Add(n.v, a.v, b.v)
	case fn.NarrowSub:
		kernels.Sub(n.v, a.v, b.v)
	case fn.NarrowMul:
		kernels.MulFitting(n.v, a.v, b.v)
	}
	n.valid, n.most, n.ok = kernels.AndBits(a.valid, b.valid), most, true
	return nil
}

// narrow casts a DECIMAL to one that has at least its digits on both sides of the point.
func (o *castOp) narrow(x *frame, n *narrowed) error {
	if o.from.Kind != types.Decimal || o.to.Scale < o.from.Scale || o.to.Width-o.to.Scale < o.from.Width-o.from.Scale {
		return nil
	}
	a, err := x.narrowOf(o.arg)
	if err != nil || !a.ok {
		return err
	}
	factor := types.Pow10(int(o.to.Scale - o.from.Scale)).LowBits()
	hi, most := bits.Mul64(a.most, factor)
	if hi != 0 || most >= 1<<63 {
		return nil
	}
	n.v, n.valid, n.most, n.ok = a.v, a.valid, most, true
	if factor != 1 {
		n.v = kernels.Room[int64](len(a.v))
		kernels.MulFitting(n.v, a.v, []int64{int64(factor)})
	}
	return nil
}
