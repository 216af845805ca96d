package fn

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/rowkey"
	"github.com/riverbed/riverbed/core/types"
)

// sketch estimates the number of different hashes: it keeps them all while they are few, and HyperLogLog registers of
// the same hashes after that. Either way it is a function of the set of hashes.
type sketch struct {
	few       []uint64 // sorted
	registers []uint8  // 2^sketchBits; nil while few holds all
}

const (
	sketchBits = 12
	sketchFew  = 256
)

func (s *sketch) add(h uint64) {
	if s.registers == nil {
		i, found := slices.BinarySearch(s.few, h)
		if found {
			return
		}
		if len(s.few) < sketchFew {
			s.few = slices.Insert(s.few, i, h)
			return
		}
		s.widen()
	}
	s.register(h)
}

func (s *sketch) widen() {
	s.registers = make([]uint8, 1<<sketchBits)
	for _, h := range s.few {
		s.register(h)
	}
	s.few = nil
}

// register notes where the first bit of the rest of the hash is.
func (s *sketch) register(h uint64) {
	r := &s.registers[h>>(64-sketchBits)]
	*r = max(*r, uint8(bits.LeadingZeros64(h<<sketchBits|1<<(sketchBits-1))+1))
}

func (s *sketch) merge(o *sketch) {
	if o.registers == nil {
		for _, h := range o.few {
			s.add(h)
		}
		return
	}
	if s.registers == nil {
		s.widen()
	}
	for i, r := range o.registers {
		s.registers[i] = max(s.registers[i], r)
	}
}

// estimate is HyperLogLog's, with its correction for empty registers.
func (s *sketch) estimate() int64 {
	if s.registers == nil {
		return int64(len(s.few))
	}
	const m = 1 << sketchBits
	var counts [65]int
	for _, r := range s.registers {
		counts[r]++
	}
	sum := 0.0
	for r, n := range counts { // powers of two times counts: exact, in any order
		sum += math.Ldexp(float64(n), -r)
	}
	e := 0.7213 / (1 + 1.079/m) * m * m / sum
	if zeros := counts[0]; zeros > 0 && e <= 2.5*m {
		e = m * math.Log(m/float64(zeros))
	}
	return int64(math.Round(e))
}

// sketchAcc is approx_count_distinct, for inserts only.
type sketchAcc struct {
	enc      *rowkey.Encoder
	sketches []sketch
}

func newSketch(c AggConfig) Accumulator {
	return &sketchAcc{enc: rowkey.NewEncoder(c.Args[:1], nil)}
}

// byEquality orders by the first argument, equal values being one.
func byEquality(c AggConfig) (f rowForm) {
	f.column(c, 0, rowkey.Key{})
	return f
}

func (a *sketchAcc) Resize(n int) { a.sketches = grow(a.sketches, n) }

func (a *sketchAcc) Add(groups []uint32, args []Arg, weights []int64) error {
	col := rowsOf(args[0], len(groups))
	rows, mask := a.enc.Encode([]arrow.Array{col}, len(groups)), kernels.Valid(col)
	for i, g := range groups {
		if weightOf(weights, i) > 0 && (mask == nil || kernels.Bit(mask, i)) {
			a.sketches[g].add(kernels.HashBytes(rows.Row(i)))
		}
	}
	return nil
}

func (a *sketchAcc) Merge(other Accumulator, into []uint32) error {
	o := other.(*sketchAcc)
	for i, g := range into {
		a.sketches[g].merge(&o.sketches[i])
	}
	return nil
}

func (a *sketchAcc) Result(groups []uint32) (arrow.Array, error) {
	out := make([]int64, len(groups))
	for i, g := range groups {
		out[i] = a.sketches[g].estimate()
	}
	return kernels.NewFixed(arrow.PrimitiveTypes.Int64, out, nil), nil
}

// buildSketch gives the same from the values themselves.
func buildSketch(c AggConfig, values arrow.Array, offs []int32, _ []int64) (arrow.Array, error) {
	a := newSketch(c).(*sketchAcc)
	a.Resize(len(offs) - 1)
	groups, all := make([]uint32, values.Len()), make([]uint32, len(offs)-1)
	for g := range all {
		all[g] = uint32(g)
		for k := offs[g]; k < offs[g+1]; k++ {
			groups[k] = uint32(g)
		}
	}
	if err := a.Add(groups, []Arg{{Array: values}}, nil); err != nil {
		return nil, err
	}
	return a.Result(all)
}

func (a *sketchAcc) Reset(groups []uint32) {
	for _, g := range groups {
		a.sketches[g] = sketch{}
	}
}

func (a *sketchAcc) State() types.Type { return types.Binary }

func (a *sketchAcc) Bytes() int64 {
	n := int64(48 * cap(a.sketches))
	for i := range a.sketches {
		n += int64(8*cap(a.sketches[i].few) + len(a.sketches[i].registers))
	}
	return n
}

// Save writes the hashes, or all registers, which are more bytes than any number of hashes kept.
func (a *sketchAcc) Save(groups []uint32) (arrow.Array, error) {
	return saveBytes(groups, func(dst []byte, g uint32) []byte {
		s := &a.sketches[g]
		for _, h := range s.few {
			dst = binary.LittleEndian.AppendUint64(dst, h)
		}
		return append(dst, s.registers...)
	}), nil
}

func (a *sketchAcc) Load(groups []uint32, saved arrow.Array) error {
	loadBytes(groups, saved, func(g uint32, b []byte) {
		var o sketch
		if len(b) == 1<<sketchBits {
			o.registers = b
		} else {
			for ; len(b) > 0; b = b[8:] {
				o.few = append(o.few, binary.LittleEndian.Uint64(b))
			}
		}
		a.sketches[g].merge(&o)
	})
	return nil
}
