package fn

import (
	"bytes"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/types"
)

// relation is one of the six comparisons, as less or equal with swapped arguments and inverted bits.
type relation struct {
	less, swap, invert bool
}

var (
	isEq = relation{}
	isNe = relation{invert: true}
	isLt = relation{less: true}
	isGt = relation{less: true, swap: true}
	isLe = relation{less: true, swap: true, invert: true}
	isGe = relation{less: true, invert: true}
)

var comparisons = []*Scalar{
	comparison("=", "Whether two values are equal. NaN equals NaN, and -0.0 equals 0.0.", isEq, "1 = 1.0", "true"),
	comparison("<>", "Whether two values differ.", isNe, "1 <> 2", "true"),
	comparison("<", "Whether the first value is less.", isLt, "'a' < 'b'", "true"),
	comparison("<=", "Whether the first value is less or equal.", isLe, "2 <= 2", "true"),
	comparison(">", "Whether the first value is greater. NaN is greater than all numbers.", isGt, "'nan'::DOUBLE > 1", "true"),
	comparison(">=", "Whether the first value is greater or equal.", isGe, "DATE '2024-01-01' >= '2023-12-31'", "true"),
	distinctness("is distinct from", "Whether two values differ, where NULL equals NULL.", true, "NULL IS DISTINCT FROM 1", "true"),
	distinctness("is not distinct from", "Whether two values are equal, where NULL equals NULL.", false, "NULL IS NOT DISTINCT FROM NULL", "true"),
	{Name: "greatest", Category: Logic, Nulls: NullAware, Summary: "The greatest of the arguments that are not NULL.",
		Overloads: []Overload{{Args: Types{types.AnyType, types.AnyType}, Variadic: true, Resolve: commonArgs(extreme(1))}},
		Examples:  []Example{{SQL: "greatest(1, 3, 2)", Want: "3"}, {SQL: "greatest(NULL, 3)", Want: "3"}}},
	{Name: "least", Category: Logic, Nulls: NullAware, Summary: "The least of the arguments that are not NULL.",
		Overloads: []Overload{{Args: Types{types.AnyType, types.AnyType}, Variadic: true, Resolve: commonArgs(extreme(-1))}},
		Examples:  []Example{{SQL: "least('b', 'a')", Want: "a"}}},
}

func comparison(name, summary string, r relation, sql, want string) *Scalar {
	return &Scalar{Name: name, Category: Logic, Operator: true, Summary: summary,
		Overloads: []Overload{{Args: Types{types.AnyType, types.AnyType}, Resolve: func(args []types.Type, consts []types.Value) (Resolved, error) {
			t, err := comparable2(args, consts)
			return Resolved{Args: Types{t, t}, Returns: types.Bool, Kernel: r.kernel(t)}, err
		}}},
		Examples: []Example{{SQL: sql, Want: want}}}
}

// comparable2 is the type in which two arguments are compared.
func comparable2(args []types.Type, consts []types.Value) (types.Type, error) {
	if consts == nil {
		consts = make([]types.Value, 2)
	}
	t, ok := types.Comparison(args[0], consts[0], args[1], consts[1])
	if !ok {
		return t, errs.New(errs.Schema, "bind", "cannot compare %s and %s", args[0], args[1]).WithHint("cast one of them")
	}
	return t, nil
}

func distinctness(name, summary string, negate bool, sql, want string) *Scalar {
	return &Scalar{Name: name, Category: Logic, Operator: true, Nulls: NullAware, Summary: summary,
		Overloads: []Overload{{Args: Types{types.AnyType, types.AnyType}, Resolve: func(args []types.Type, consts []types.Value) (Resolved, error) {
			t, err := comparable2(args, consts)
			return Resolved{Args: Types{t, t}, Returns: types.Bool, Kernel: notDistinct(isEq.kernel(t), negate)}, err
		}}},
		Examples: []Example{{SQL: sql, Want: want}}}
}

// notDistinct adds the cases of NULL to equality.
func notDistinct(equal Kernel, negate bool) Kernel {
	return func(c *Call) (arrow.Array, error) {
		eq, err := equal(c)
		if err != nil {
			return nil, err
		}
		out := make([]byte, kernels.BitBytes(c.N))
		copy(out, kernels.BoolBits(eq))
		a, b := validOf(c, 0), validOf(c, 1)
		for i := range out {
			out[i] = out[i]&a[i]&b[i] | ^(a[i] | b[i])
			if negate {
				out[i] = ^out[i]
			}
		}
		return kernels.NewBools(c.N, out, nil), nil
	}
}

// validOf is the validity of an argument over all rows.
func validOf(c *Call, i int) []byte {
	a := c.Args[i]
	if a.Const {
		if kernels.IsNull(a.Array, 0) {
			return make([]byte, kernels.BitBytes(c.N))
		}
		return kernels.Ones(c.N)
	}
	if v := kernels.Valid(a.Array); v != nil {
		return v
	}
	return kernels.Ones(c.N)
}

// kernel picks the loop for a type.
func (r relation) kernel(t types.Type) Kernel {
	switch t.Kind {
	case types.TinyInt:
		return compareWith(r, kernels.Eq[int8], kernels.Lt[int8])
	case types.SmallInt:
		return compareWith(r, kernels.Eq[int16], kernels.Lt[int16])
	case types.Integer, types.Date:
		return compareWith(r, kernels.Eq[int32], kernels.Lt[int32])
	case types.BigInt, types.Time, types.TimestampS, types.TimestampMS, types.Timestamp, types.TimestampNS, types.TimestampTZ:
		return compareWith(r, kernels.Eq[int64], kernels.Lt[int64])
	case types.UTinyInt:
		return compareWith(r, kernels.Eq[uint8], kernels.Lt[uint8])
	case types.USmallInt:
		return compareWith(r, kernels.Eq[uint16], kernels.Lt[uint16])
	case types.UInteger:
		return compareWith(r, kernels.Eq[uint32], kernels.Lt[uint32])
	case types.UBigInt:
		return compareWith(r, kernels.Eq[uint64], kernels.Lt[uint64])
	case types.Real:
		return compareWith(r, kernels.EqFloat[float32], kernels.LtFloat[float32])
	case types.Double:
		return compareWith(r, kernels.EqFloat[float64], kernels.LtFloat[float64])
	case types.HugeInt, types.Decimal:
		return compareWith(r, kernels.EqWide, kernels.LtWide)
	case types.UHugeInt:
		return compareWith(r, kernels.EqWide, kernels.LtUWide)
	case types.UUID:
		return compareWith(r, kernels.EqBytes, kernels.LtBytes)
	case types.Varchar, types.Blob, types.JSON:
		return r.text
	case types.Boolean:
		return r.boolean
	}
	return r.slow
}

func compareWith[T any](r relation, eq, lt func(out []byte, a, b []T, n int)) Kernel {
	f := eq
	if r.less {
		f = lt
	}
	return func(c *Call) (arrow.Array, error) {
		a, b := pair[T](c)
		if r.swap {
			a, b = b, a
		}
		out := make([]byte, kernels.BitBytes(c.N))
		f(out, a, b, c.N)
		return r.finish(out, c.N)
	}
}

func (r relation) finish(out []byte, n int) (arrow.Array, error) {
	if r.invert {
		kernels.Invert(out, n)
	}
	return kernels.NewBools(n, out, nil), nil
}

func (r relation) text(c *Call) (arrow.Array, error) {
	var t [2]kernels.Texts
	for i := range t {
		t[i].Offs, t[i].Data = kernels.Spans(c.Args[i].Array)
	}
	if r.swap {
		t[0], t[1] = t[1], t[0]
	}
	out := make([]byte, kernels.BitBytes(c.N))
	if r.less {
		kernels.LtText(out, t[0], t[1], c.N)
	} else {
		kernels.EqText(out, t[0], t[1], c.N)
	}
	return r.finish(out, c.N)
}

func (r relation) boolean(c *Call) (arrow.Array, error) {
	x, y := boolCol(c, 0), boolCol(c, 1)
	if r.swap {
		x, y = y, x
	}
	out := make([]byte, kernels.BitBytes(c.N))
	for i := range c.N {
		a, b := x.at(i), y.at(i)
		if r.less && !a && b || !r.less && a == b {
			kernels.SetBit(out, i)
		}
	}
	return r.finish(out, c.N)
}

// slow compares value by value: intervals, lists, structs, maps.
func (r relation) slow(c *Call) (arrow.Array, error) {
	t := c.Types[0]
	out, err := bools(c, func(i int) bool {
		d := types.Compare(valueAt(c, 0, i), valueAt(c, 1, i), t)
		if r.swap {
			d = -d
		}
		if r.less {
			return (d < 0) != r.invert
		}
		return (d == 0) != r.invert
	})
	return out, err
}

// commonArgs casts all arguments to their common type, which is the result's too.
func commonArgs(k Kernel) func([]types.Type, []types.Value) (Resolved, error) {
	return func(args []types.Type, consts []types.Value) (Resolved, error) {
		t, err := commonOf(args, consts)
		if err != nil {
			return Resolved{}, err
		}
		return Resolved{Args: same(t, len(args)), Returns: t, Kernel: k}, nil
	}
}

// commonOf folds the arguments' types into one.
func commonOf(args []types.Type, consts []types.Value) (types.Type, error) {
	t, v := args[0], constAt(consts, 0)
	for i, a := range args[1:] {
		u, ok := types.CommonOf(t, v, a, constAt(consts, i+1))
		if !ok {
			return t, errs.New(errs.Schema, "bind", "%s and %s have no common type", t, a).WithHint("cast one of them")
		}
		if !u.Equal(t) || !u.Equal(a) || v == nil || constAt(consts, i+1) == nil {
			v = nil
		}
		t = u
	}
	return t, nil
}

func constAt(consts []types.Value, i int) types.Value {
	if i < len(consts) {
		return consts[i]
	}
	return nil
}

// valueOf is a constant's value, whatever its type is to what stands beside it.
func valueOf(consts []types.Value, i int) types.Value {
	v := constAt(consts, i)
	if m, ok := v.(types.Meant); ok {
		return m.V
	}
	return v
}

func same(t types.Type, n int) Types {
	out := make(Types, n)
	for i := range out {
		out[i] = t
	}
	return out
}

// extreme is greatest (sign 1) and least (-1).
func extreme(sign int) Kernel {
	return func(c *Call) (arrow.Array, error) {
		less := compareAt(c)
		parts := make([]arrow.Array, len(c.Args))
		for i, a := range c.Args {
			if parts[i] = a.Array; a.Const && c.N != 1 {
				parts[i] = kernels.Repeat(a.Array, 0, c.N)
			}
		}
		which := make([]int32, c.N)
		for i := range which {
			best := -1
			for a := range c.Args {
				if kernels.IsNull(parts[a], i) {
					continue
				}
				if best < 0 || less(parts[a], i, parts[best], i)*sign > 0 {
					best = a
				}
			}
			which[i] = int32(best)
		}
		return kernels.Pick(c.Ret.Arrow(), parts, which), nil
	}
}

// compareAt compares single rows of two arrays of the call's result type.
func compareAt(c *Call) func(a arrow.Array, i int, b arrow.Array, j int) int {
	t := c.Ret
	switch t.Kind {
	case types.Integer, types.Date:
		return compareRow[int32]
	case types.BigInt, types.Timestamp, types.TimestampTZ:
		return compareRow[int64]
	case types.Double:
		return func(a arrow.Array, i int, b arrow.Array, j int) int {
			return types.CompareFloat(kernels.Values[float64](a)[i], kernels.Values[float64](b)[j])
		}
	case types.Decimal, types.HugeInt:
		return func(a arrow.Array, i int, b arrow.Array, j int) int {
			return kernels.Values[decimal128.Num](a)[i].Cmp(kernels.Values[decimal128.Num](b)[j])
		}
	case types.Varchar:
		return func(a arrow.Array, i int, b arrow.Array, j int) int {
			ao, ad := kernels.Spans(a)
			bo, bd := kernels.Spans(b)
			return bytes.Compare(ad[ao[i]:ao[i+1]], bd[bo[j]:bo[j+1]])
		}
	}
	return func(a arrow.Array, i int, b arrow.Array, j int) int {
		return types.Compare(types.ValueAt(a, i, t), types.ValueAt(b, j, t), t)
	}
}

func compareRow[T kernels.Integer](a arrow.Array, i int, b arrow.Array, j int) int {
	x, y := kernels.Values[T](a)[i], kernels.Values[T](b)[j]
	switch {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}
