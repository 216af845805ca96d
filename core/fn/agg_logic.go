package fn

import (
	"encoding/binary"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/types"
)

var logicAggregates = []*Aggregate{
	{
		Name: "bool_and", Aliases: []string{"every"}, Category: Aggregated, Algebra: Linear, Summary: "Whether all values are true.",
		Overloads: []AggOverload{{Args: []types.Type{types.Bool}, Returns: types.Bool, New: func(AggConfig) Accumulator { return &boolAcc{} }}},
		Examples:  []Example{{SQL: "x > 1", Rows: "1, 2, NULL", Want: "false"}},
	},
	{
		Name: "bool_or", Category: Aggregated, Algebra: Linear, Summary: "Whether any value is true.",
		Overloads: []AggOverload{{Args: []types.Type{types.Bool}, Returns: types.Bool, New: func(AggConfig) Accumulator { return &boolAcc{or: true} }}},
		Examples:  []Example{{SQL: "x > 1", Rows: "1, 2, NULL", Want: "true"}},
	},
	bitAggregate("bit_and", "The bits that are set in all values.", Ordered, "6"),
	bitAggregate("bit_or", "The bits that are set in any value.", Ordered, "15"),
	bitAggregate("bit_xor", "The bits that are set in an odd number of values.", Linear, "9"),
}

// returnsBits is returnsArg, with a bare NULL as BIGINT: bits have a width.
func returnsBits(args []types.Type, consts []types.Value) (Resolved, error) {
	if args[0].Kind == types.Null {
		args = []types.Type{types.Int64}
	}
	return returnsArg(args, consts)
}

func bitAggregate(name, summary string, algebra Algebra, want string) *Aggregate {
	op := name[4:]
	o := AggOverload{Resolve: returnsBits, New: func(c AggConfig) Accumulator { return &bitAcc{t: c.Args[0], op: op} }}
	if algebra == Ordered {
		o.NewRetract = newBag(ordered{form: byValue(false), pick: pickAll, build: foldBits(op)})
	}
	return &Aggregate{
		Name: name, Category: Aggregated, Algebra: algebra, Summary: summary,
		Overloads: perType(append(integerTypes[1:len(integerTypes):len(integerTypes)], types.Uint128), o),
		Examples:  []Example{{SQL: "x", Rows: "14, 7, NULL", Want: want}},
	}
}

// boolAcc counts the true and the false rows.
type boolAcc struct {
	or     bool
	counts [][2]int64 // false, true
}

func (b *boolAcc) Resize(n int) { b.counts = grow(b.counts, n) }

func (b *boolAcc) Add(groups []uint32, args []Arg, weights []int64) error {
	a := rowsOf(args[0], len(groups))
	vals, mask := kernels.BoolBits(a), kernels.Valid(a)
	for i, g := range groups {
		if mask == nil || kernels.Bit(mask, i) {
			b.counts[g][vals[i>>3]>>(i&7)&1] += weightOf(weights, i)
		}
	}
	return nil
}

func (b *boolAcc) Merge(other Accumulator, into []uint32) error {
	for i, c := range other.(*boolAcc).counts[:len(into)] {
		b.counts[into[i]][0] += c[0]
		b.counts[into[i]][1] += c[1]
	}
	return nil
}

func (b *boolAcc) Result(groups []uint32) (arrow.Array, error) {
	vals, valid := make([]byte, kernels.BitBytes(len(groups))), newValidBits(len(groups))
	for i, g := range groups {
		c := b.counts[g]
		switch {
		case c == [2]int64{}:
			valid.null(i)
		case b.or && c[1] != 0 || !b.or && c[0] == 0:
			kernels.SetBit(vals, i)
		}
	}
	return kernels.NewBools(len(groups), vals, valid.bits), nil
}

func (b *boolAcc) Reset(groups []uint32) {
	for _, g := range groups {
		b.counts[g] = [2]int64{}
	}
}

func (b *boolAcc) State() types.Type { return types.Binary }
func (b *boolAcc) Bytes() int64      { return int64(16 * cap(b.counts)) }

func (b *boolAcc) Save(groups []uint32) (arrow.Array, error) {
	return saveBytes(groups, func(dst []byte, g uint32) []byte {
		return binary.AppendVarint(binary.AppendVarint(dst, b.counts[g][0]), b.counts[g][1])
	}), nil
}

func (b *boolAcc) Load(groups []uint32, saved arrow.Array) error {
	loadBytes(groups, saved, func(g uint32, s []byte) {
		f, n := binary.Varint(s)
		t, _ := binary.Varint(s[n:])
		b.counts[g][0] += f
		b.counts[g][1] += t
	})
	return nil
}

// bitAcc folds bits: 128 of them, of which the type's low ones count.
type bitAcc struct {
	t    types.Type
	op   string
	bits [][2]uint64
	rows []int64
}

func (b *bitAcc) Resize(n int) {
	b.bits, b.rows = grow(b.bits, n), grow(b.rows, n)
}

// fold takes n copies of x into a group.
func (b *bitAcc) fold(g uint32, x [2]uint64, n int64) {
	v := &b.bits[g]
	switch {
	case b.op == "xor":
		if n&1 != 0 {
			v[0], v[1] = v[0]^x[0], v[1]^x[1]
		}
	case n == 0:
	case b.rows[g] == 0:
		*v = x
	case b.op == "and":
		v[0], v[1] = v[0]&x[0], v[1]&x[1]
	default:
		v[0], v[1] = v[0]|x[0], v[1]|x[1]
	}
	b.rows[g] += n
}

// bitsAt reads row i of an integer array.
func bitsAt(a arrow.Array, t types.Type) func(i int) [2]uint64 {
	raw := a.Data().Buffers()[1].Bytes()
	w := a.DataType().(arrow.FixedWidthDataType).BitWidth() / 8
	off := a.Data().Offset()
	return func(i int) (x [2]uint64) {
		var buf [16]byte
		copy(buf[:], raw[(off+i)*w:(off+i+1)*w])
		return [2]uint64{binary.LittleEndian.Uint64(buf[:]), binary.LittleEndian.Uint64(buf[8:])}
	}
}

func (b *bitAcc) Add(groups []uint32, args []Arg, weights []int64) error {
	a := rowsOf(args[0], len(groups))
	if a.NullN() == a.Len() {
		return nil
	}
	at, mask := bitsAt(a, b.t), kernels.Valid(a)
	for i, g := range groups {
		if mask == nil || kernels.Bit(mask, i) {
			b.fold(g, at(i), weightOf(weights, i))
		}
	}
	return nil
}

func (b *bitAcc) Merge(other Accumulator, into []uint32) error {
	o := other.(*bitAcc)
	for i, g := range into {
		b.mergeOne(g, o.bits[i], o.rows[i])
	}
	return nil
}

func (b *bitAcc) mergeOne(g uint32, x [2]uint64, rows int64) {
	if b.op == "xor" {
		b.fold(g, x, 1)
		rows--
	} else if rows != 0 {
		b.fold(g, x, rows)
		return
	}
	b.rows[g] += rows
}

func (b *bitAcc) Result(groups []uint32) (arrow.Array, error) {
	valid := newValidBits(len(groups))
	w := b.t.Arrow().(arrow.FixedWidthDataType).BitWidth() / 8
	out := make([]byte, 0, w*len(groups)+16)
	for i, g := range groups {
		if b.rows[g] == 0 {
			valid.null(i)
		}
		v := b.bits[g]
		out = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(out, v[0]), v[1])
		out = out[:(i+1)*w]
	}
	bufs := []*memory.Buffer{nil, memory.NewBufferBytes(out)}
	nulls := 0
	if valid.bits != nil {
		bufs[0] = memory.NewBufferBytes(valid.bits)
		nulls = len(groups) - kernels.CountBits(valid.bits, len(groups))
	}
	return array.MakeFromData(array.NewData(b.t.Arrow(), len(groups), bufs, nil, nulls, 0)), nil
}

func (b *bitAcc) Reset(groups []uint32) {
	for _, g := range groups {
		b.bits[g], b.rows[g] = [2]uint64{}, 0
	}
}

func (b *bitAcc) State() types.Type { return types.Binary }
func (b *bitAcc) Bytes() int64      { return int64(24 * cap(b.bits)) }

func (b *bitAcc) Save(groups []uint32) (arrow.Array, error) {
	return saveBytes(groups, func(dst []byte, g uint32) []byte {
		dst = binary.LittleEndian.AppendUint64(dst, b.bits[g][0])
		dst = binary.LittleEndian.AppendUint64(dst, b.bits[g][1])
		return binary.LittleEndian.AppendUint64(dst, uint64(b.rows[g]))
	}), nil
}

func (b *bitAcc) Load(groups []uint32, saved arrow.Array) error {
	le := binary.LittleEndian
	loadBytes(groups, saved, func(g uint32, s []byte) {
		b.mergeOne(g, [2]uint64{le.Uint64(s), le.Uint64(s[8:])}, int64(le.Uint64(s[16:])))
	})
	return nil
}

// foldBits is the same over a group's sorted rows.
func foldBits(op string) func(c AggConfig, values arrow.Array, offs []int32, weights []int64) (arrow.Array, error) {
	return func(c AggConfig, values arrow.Array, offs []int32, weights []int64) (arrow.Array, error) {
		b := &bitAcc{t: c.Args[0], op: op}
		b.Resize(len(offs) - 1)
		groups := make([]uint32, values.Len())
		all := make([]uint32, len(offs)-1)
		for i := range all {
			all[i] = uint32(i)
			for k := offs[i]; k < offs[i+1]; k++ {
				groups[k] = uint32(i)
			}
		}
		if err := b.Add(groups, []Arg{{Array: values}}, weights); err != nil {
			return nil, err
		}
		return b.Result(all)
	}
}
