package fn

import (
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/types"
)

// How kernels read arguments and make results. A column of one value stands for every row (mask 0).

// column is a fixed-width argument.
type column[T any] struct {
	v    []T
	mask int
}

func (c column[T]) at(i int) T { return c.v[i&c.mask] }

// col reads argument i; T has the width of its type.
func col[T any](c *Call, i int) column[T] {
	v := kernels.Values[T](c.Args[i].Array)
	return column[T]{v, maskOf(c.Args[i])}
}

func maskOf(a Arg) int {
	if a.Const {
		return 0
	}
	return -1
}

// textColumn is a VARCHAR, JSON or BLOB argument.
type textColumn struct {
	offs []int32
	data []byte
	mask int
}

func (t *textColumn) at(i int) []byte {
	i &= t.mask
	return t.data[t.offs[i]:t.offs[i+1]]
}

func (t *textColumn) str(i int) string { return string(t.at(i)) }

func textCol(c *Call, i int) textColumn {
	offs, data := kernels.Spans(c.Args[i].Array)
	return textColumn{offs, data, maskOf(c.Args[i])}
}

// boolColumn is a BOOLEAN argument.
type boolColumn struct {
	bits []byte
	mask int
}

func (b boolColumn) at(i int) bool { return kernels.Bit(b.bits, i&b.mask) }

func boolCol(c *Call, i int) boolColumn {
	return boolColumn{kernels.BoolBits(c.Args[i].Array), maskOf(c.Args[i])}
}

// live returns the rows where no argument is NULL; nil is all. Kernels that are dear or may fail skip the others.
func live(c *Call) []byte {
	var valid []byte
	for _, a := range c.Args {
		if !a.Const {
			valid = kernels.AndBits(valid, kernels.Valid(a.Array))
		}
	}
	return valid
}

// without is the call without some arguments, so that their NULLs do not count as the row's.
func (c *Call) without(drop ...int) *Call {
	out := *c
	out.Args = nil
	for i, a := range c.Args {
		if !slices.Contains(drop, i) {
			out.Args = append(out.Args, a)
		}
	}
	return &out
}

// fixed makes the result of f over the live rows.
func fixed[R any](c *Call, f func(i int) R) (arrow.Array, error) {
	out := make([]R, c.N)
	if valid := live(c); valid != nil {
		for i := range out {
			if kernels.Bit(valid, i) {
				out[i] = f(i)
			}
		}
	} else {
		for i := range out {
			out[i] = f(i)
		}
	}
	return kernels.NewFixed(c.Ret.Arrow(), out, nil), nil
}

// fixedOrNull is fixed for an f that may give NULL.
func fixedOrNull[R any](c *Call, f func(i int) (R, bool)) (arrow.Array, error) {
	out := make([]R, c.N)
	valid := kernels.Ones(c.N)
	alive := live(c)
	for i := range out {
		if alive != nil && !kernels.Bit(alive, i) {
			continue
		}
		v, ok := f(i)
		if !ok {
			kernels.ClearBit(valid, i)
		}
		out[i] = v
	}
	return kernels.NewFixed(c.Ret.Arrow(), out, valid), nil
}

// bools makes a BOOLEAN result.
func bools(c *Call, f func(i int) bool) (arrow.Array, error) {
	out := make([]byte, kernels.BitBytes(c.N))
	alive := live(c)
	for i := range c.N {
		if (alive == nil || kernels.Bit(alive, i)) && f(i) {
			kernels.SetBit(out, i)
		}
	}
	return kernels.NewBools(c.N, out, nil), nil
}

// texts makes a text result; f appends to dst.
func texts(c *Call, f func(dst []byte, i int) []byte) (arrow.Array, error) {
	return textsOrNull(c, func(dst []byte, i int) ([]byte, bool) { return f(dst, i), true })
}

// textsOrNull is texts for an f that may give NULL.
func textsOrNull(c *Call, f func(dst []byte, i int) ([]byte, bool)) (arrow.Array, error) {
	offs := make([]int32, c.N+1)
	data := make([]byte, 0, 8*c.N)
	var valid []byte
	alive := live(c)
	for i := range c.N {
		if alive == nil || kernels.Bit(alive, i) {
			next, ok := f(data, i)
			if ok {
				data = next
			} else {
				if valid == nil {
					valid = kernels.Ones(c.N)
				}
				kernels.ClearBit(valid, i)
				data = next[:offs[i]]
			}
		}
		if len(data) > maxText {
			return nil, errs.New(errs.Data, "evaluate", "a batch of text results exceeds 2 GiB")
		}
		offs[i+1] = int32(len(data))
	}
	return kernels.NewBytes(c.Ret.Arrow(), offs, data, valid), nil
}

const maxText = 1<<31 - 1

// values makes a result of any type row by row: for lists, structs and maps, where no kernel is worth its code.
func values(c *Call, f func(i int) types.Value) (arrow.Array, error) {
	out := make([]types.Value, c.N)
	alive := live(c)
	for i := range out {
		if alive == nil || kernels.Bit(alive, i) {
			out[i] = f(i)
		}
	}
	return types.ArrayOf(out, c.Ret), nil
}

// valueAt reads argument a in row i as a value.
func valueAt(c *Call, a, i int) types.Value {
	return types.ValueAt(c.Args[a].Array, i&maskOf(c.Args[a]), c.Types[a])
}

// failf reports that row i has no value.
func (c *Call) failf(i int, format string, args ...any) {
	c.Fail(i, errs.New(errs.Data, "evaluate", format, args...))
}

// show writes a value for a message.
func show[T any](v T, t types.Type) string {
	switch x := any(v).(type) {
	case int8:
		return types.Format(int64(x), t)
	case int16:
		return types.Format(int64(x), t)
	case int32:
		return types.Format(int64(x), t)
	case int64:
		return types.Format(x, t)
	case uint8:
		return types.Format(uint64(x), t)
	case uint16:
		return types.Format(uint64(x), t)
	case uint32:
		return types.Format(uint64(x), t)
	case uint64, float32, float64, bool, string, []byte, decimal128.Num:
		return types.Format(x, t)
	case arrow.MonthDayNanoInterval:
		return types.Format(intervalOf(x), t)
	}
	return "?"
}

func intervalOf(v arrow.MonthDayNanoInterval) types.IntervalValue {
	return types.IntervalValue{Months: v.Months, Days: v.Days, Micros: v.Nanoseconds / 1000}
}

// Short names for the tables of signatures.
type Types = []types.Type

var (
	decimalAny = types.Type{Kind: types.Decimal}
	anyList    = types.ListOf(types.AnyType)
	anyMap     = types.MapOf(types.AnyType, types.AnyType)
	anyStruct  = types.StructOf()
)

// smallInts are the integers of up to 64 bits; ints has the two of 128 too.
var (
	smallInts = Types{types.Int8, types.Int16, types.Int32, types.Int64, types.Uint8, types.Uint16, types.Uint32, types.Uint64}
	ints      = append(append(Types{}, smallInts...), types.Int128, types.Uint128)
)

// perInt picks the instance of a generic kernel for an integer type.
func perInt(t types.Type, i8, i16, i32, i64, u8, u16, u32, u64 Kernel) Kernel {
	switch t.Kind {
	case types.TinyInt:
		return i8
	case types.SmallInt:
		return i16
	case types.Integer:
		return i32
	case types.BigInt:
		return i64
	case types.UTinyInt:
		return u8
	case types.USmallInt:
		return u16
	case types.UInteger:
		return u32
	case types.UBigInt:
		return u64
	}
	return nil
}

func strict(args Types, returns types.Type, k Kernel) Overload {
	return Overload{Args: args, Returns: returns, Kernel: k}
}

func fallible(args Types, returns types.Type, k Kernel) Overload {
	return Overload{Args: args, Returns: returns, Kernel: k, Fallible: true}
}
