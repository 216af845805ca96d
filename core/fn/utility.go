package fn

import (
	"encoding/binary"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/types"
)

// utilities is what fits nowhere else. coalesce, if and CASE are no functions but nodes of their own.
var utilities = []*Scalar{
	Try,
	{Name: "nullif", Category: Logic, Nulls: NullAware, Summary: "NULL when both values are equal, else the first.", Overloads: []Overload{
		{Args: Types{types.AnyType, types.AnyType}, Resolve: func(args []types.Type, consts []types.Value) (Resolved, error) {
			t, err := comparable2(args, consts)
			if err != nil {
				return Resolved{}, err
			}
			if args[0].IsNumeric() && args[1].IsNumeric() {
				t, _ = types.CommonOf(args[0], constAt(consts, 0), args[1], constAt(consts, 1))
			}
			equal := isEq.kernel(t)
			return Resolved{Args: Types{t, t}, Returns: t, Kernel: func(c *Call) (arrow.Array, error) {
				eq, err := equal(c)
				if err != nil {
					return nil, err
				}
				hit := kernels.AndBits(kernels.BoolBits(eq), kernels.AndBits(validOf(c, 0), validOf(c, 1)))
				first := c.Args[0].Array
				if c.Args[0].Const && c.N != 1 {
					first = kernels.Repeat(first, 0, c.N)
				}
				keep := validOf(c, 0)
				out := make([]byte, len(keep))
				for i := range out {
					out[i] = keep[i] &^ hit[i]
				}
				return kernels.WithValid(first, out), nil
			}}, nil
		}}}, Examples: []Example{ex("nullif(1, 1)", "NULL"), ex("nullif(1, 2)", "1")}},
	{Name: "typeof", Category: Utility, Nulls: NullAware, Summary: "The name of an expression's type.", Overloads: []Overload{{Args: Types{types.AnyType}, Resolve: func(args []types.Type, _ []types.Value) (Resolved, error) {
		name := args[0].String()
		return Resolved{Args: args, Returns: str, Kernel: func(c *Call) (arrow.Array, error) {
			return kernels.Repeat(types.ArrayOf([]types.Value{name}, str), 0, c.N), nil
		}}, nil
	}}}, Examples: []Example{ex("typeof(1)", "INTEGER"), ex("typeof(1.5)", "DECIMAL(2,1)")}},
	{Name: "error", Category: Utility, Purity: Immutable, Summary: "Fail with a message, where it is evaluated.", Overloads: []Overload{fallible(Types{str}, types.NullType, func(c *Call) (arrow.Array, error) {
		s := textCol(c, 0)
		for i := range c.N {
			c.Fail(i, errs.New(errs.Data, "evaluate", "%s", s.at(i)))
		}
		return kernels.Nulls(c.Ret.Arrow(), c.N), nil
	})}, Examples: []Example{ex("try(error('no'))", "NULL")}},
	{Name: "uuid", Category: Utility, Purity: Volatile, Summary: "A random UUID of version 4.", Aliases: []string{"gen_random_uuid", "uuidv4"}, Overloads: []Overload{strict(nil, types.UUIDType, func(c *Call) (arrow.Array, error) {
		if c.Env.Rand == nil {
			return nil, errs.Bug("evaluate", "uuid() without a source of chance")
		}
		return fixed(c, func(int) (u [16]byte) {
			binary.BigEndian.PutUint64(u[:8], c.Env.Rand.Uint64())
			binary.BigEndian.PutUint64(u[8:], c.Env.Rand.Uint64())
			u[6], u[8] = u[6]&0x0f|0x40, u[8]&0x3f|0x80
			return u
		})
	})}, Examples: []Example{ex("typeof(uuid())", "UUID")}},
	{Name: "hash", Category: Utility, Nulls: NullAware, Summary: "A hash of the arguments, the same on every platform and in every version.", Overloads: []Overload{{Args: Types{types.AnyType}, Variadic: true, Returns: types.Uint64, Kernel: hashRows}},
		Examples: []Example{ex("hash('a') = hash('a')", "true")}, Differs: "The numbers are others than DuckDB's."},
}

// hashRows is FNV-1a over the text forms, finished by a mixing step.
func hashRows(c *Call) (arrow.Array, error) {
	out := make([]uint64, c.N)
	var buf []byte
	for i := range out {
		buf = buf[:0]
		for a := range c.Args {
			v := valueAt(c, a, i)
			if v == nil {
				buf = append(buf, 0xff)
				continue
			}
			if f, ok := v.(float64); ok && f == 0 {
				v = 0.0 // -0.0 equals 0.0
			}
			buf = types.AppendText(buf, v, c.Types[a], nil)
			buf = append(buf, 0xfe)
		}
		h := uint64(0xcbf29ce484222325)
		for _, b := range buf {
			h = (h ^ uint64(b)) * 0x100000001b3
		}
		h ^= h >> 32
		h *= 0xd6e8feb86659fd93
		out[i] = h ^ h>>32
	}
	return kernels.NewFixed(c.Ret.Arrow(), out, nil), nil
}
