package fn

import (
	"encoding/binary"
	"math"
	"math/big"
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/types"
)

var sumAggregates = []*Aggregate{
	{
		Name: "sum", Category: Aggregated, Algebra: Linear,
		Summary: "Add the values; NULL when there are none. Sums of DOUBLE are exact, rounded once.",
		Overloads: append(perType(integerTypes, AggOverload{Returns: types.Int128, New: newSum, Shifts: true}),
			AggOverload{Args: []types.Type{{Kind: types.Decimal}}, Resolve: sumDecimal, New: newSum, Narrow: true},
			AggOverload{Args: []types.Type{types.Float64}, Returns: types.Float64, New: newFloatSum},
			AggOverload{Args: []types.Type{types.Span}, Returns: types.Span, New: newSpanSum},
		),
		Examples: []Example{{SQL: "x", Rows: "1, 2, NULL", Want: "3"}, {SQL: "x", Rows: "0.1, 0.2, 0.3", Want: "0.6"}},
		Differs:  "Sums of DOUBLE do not depend on the order of the rows. Overflow is judged on the sum, not on the way to it. Takes INTERVAL.",
	},
	{
		Name: "sum_no_overflow", Category: Aggregated, Algebra: Linear, Summary: "The same as sum.",
		Overloads: perType(integerTypes, AggOverload{Returns: types.Int128, New: newSum}),
		Examples:  []Example{{SQL: "x", Rows: "1, 2, NULL", Want: "3"}},
	},
	{
		Name: "avg", Aliases: []string{"mean"}, Category: Aggregated, Algebra: Linear,
		Summary: "The mean: the exact sum over the number of values, rounded once.",
		Overloads: append(perType(integerTypes[1:], AggOverload{Returns: types.Float64, New: newMean, Shifts: true}),
			AggOverload{Args: []types.Type{{Kind: types.Decimal}}, Returns: types.Float64, New: newMean, Narrow: true},
			AggOverload{Args: []types.Type{types.Float64}, Returns: types.Float64, New: newFloatMean},
			AggOverload{Args: []types.Type{types.TsUS}, Returns: types.TsUS, New: newMean},
			AggOverload{Args: []types.Type{types.TsNS}, Returns: types.TsNS, New: newMean},
			AggOverload{Args: []types.Type{types.TsTZ}, Returns: types.TsTZ, New: newMean},
			AggOverload{Args: []types.Type{types.TimeUS}, Returns: types.TimeUS, New: newMean},
			AggOverload{Args: []types.Type{types.Date32}, Resolve: meanTime, New: newMean},
			AggOverload{Args: []types.Type{types.TsS}, Resolve: meanTime, New: newMean},
			AggOverload{Args: []types.Type{types.TsMS}, Resolve: meanTime, New: newMean},
			AggOverload{Args: []types.Type{types.Span}, Returns: types.Span, New: newSpanMean},
		),
		Examples: []Example{{SQL: "x", Rows: "1, 2, NULL", Want: "1.5"}},
		Differs:  "Rounded once, whatever the order of the rows.",
	},
	{
		Name: "fsum", Aliases: []string{"kahan_sum", "sumkahan"}, Category: Aggregated, Algebra: Linear, Summary: "The same as sum of DOUBLE.",
		Overloads: []AggOverload{{Args: []types.Type{types.Float64}, Returns: types.Float64, New: newFloatSum}},
		Examples:  []Example{{SQL: "x", Rows: "0.1, 0.2, 0.3", Want: "0.6"}},
	},
	{
		Name: "favg", Category: Aggregated, Algebra: Linear, Summary: "The same as avg of DOUBLE.",
		Overloads: []AggOverload{{Args: []types.Type{types.Float64}, Returns: types.Float64, New: newFloatMean}},
		Examples:  []Example{{SQL: "x", Rows: "1, 2", Want: "1.5"}},
	},
}

// integerTypes are what integer sums take as they are; BOOLEAN counts as 0 and 1.
var integerTypes = []types.Type{types.Bool, types.Int8, types.Int16, types.Int32, types.Int64, types.Uint8, types.Uint16, types.Uint32, types.Uint64, types.Int128}

// perType makes an overload of one argument for each type.
func perType(ts []types.Type, o AggOverload) []AggOverload {
	out := make([]AggOverload, len(ts))
	for i, t := range ts {
		out[i] = o
		out[i].Args = []types.Type{t}
	}
	return out
}

func sumDecimal(args []types.Type, _ []types.Value) (Resolved, error) {
	return Resolved{Args: args, Returns: types.Dec(38, int(args[0].Scale))}, nil
}

// meanTime is DuckDB's: the mean of coarser times is a TIMESTAMP_NS.
func meanTime([]types.Type, []types.Value) (Resolved, error) {
	return Resolved{Args: []types.Type{types.TsNS}, Returns: types.TsNS}, nil
}

// sumAcc adds integers in 192 bits: no input overflows on the way, whatever comes and is taken back.
type sumAcc struct {
	cfg  AggConfig
	mean bool
	acc  []wideInt
}

// wideInt is the two's complement integer hi:mid:lo, and the rows that made it.
type wideInt struct {
	lo, mid uint64
	hi      int64
	rows    int64
}

func newSum(c AggConfig) Accumulator  { return &sumAcc{cfg: c} }
func newMean(c AggConfig) Accumulator { return &sumAcc{cfg: c, mean: true} }

func (w *wideInt) add(lo, mid uint64, hi int64) {
	var c uint64
	w.lo, c = bits.Add64(w.lo, lo, 0)
	w.mid, c = bits.Add64(w.mid, mid, c)
	w.hi += hi + int64(c)
}

// addSmall adds the two halves of a sum, and its rows.
func (w *wideInt) addSmall(s *kernels.SmallSum) {
	w.add(uint64(s.Low), uint64(s.Low>>63), s.Low>>63)
	w.add(uint64(s.High)<<32, uint64(s.High>>32), s.High>>63)
	w.rows += s.Rows
}

// addTimes adds n times the 128-bit integer hi:lo.
func (w *wideInt) addTimes(lo uint64, hi int64, n int64) {
	negative := (hi < 0) != (n < 0)
	if hi < 0 {
		var b uint64
		lo, b = bits.Sub64(0, lo, 0)
		hi = -hi - int64(b)
	}
	m := uint64(n)
	if n < 0 {
		m = -m
	}
	h1, l1 := bits.Mul64(lo, m)
	h2, l2 := bits.Mul64(uint64(hi), m) // of the least HUGEINT, hi is 2^63
	mid, c := bits.Add64(h1, l2, 0)
	top := h2 + c
	if negative {
		var b uint64
		l1, b = bits.Sub64(0, l1, 0)
		mid, b = bits.Sub64(0, mid, b)
		top = -top - b
	}
	w.add(l1, mid, int64(top))
	w.rows += n
}

func (s *sumAcc) Resize(n int) { s.acc = grow(s.acc, n) }

func (s *sumAcc) Add(groups []uint32, args []Arg, weights []int64) error {
	a := rowsOf(args[0], len(groups))
	mask := kernels.Valid(a)
	switch s.cfg.Args[0].Kind {
	case types.Boolean:
		v := kernels.BoolBits(a)
		for i, g := range groups {
			if mask == nil || kernels.Bit(mask, i) {
				w := weightOf(weights, i)
				s.acc[g].addTimes(uint64(v[i>>3]>>(i&7)&1), 0, w)
			}
		}
	case types.TinyInt:
		addIntegers(s.acc, groups, kernels.Values[int8](a), mask, weights)
	case types.SmallInt:
		addIntegers(s.acc, groups, kernels.Values[int16](a), mask, weights)
	case types.Integer:
		addIntegers(s.acc, groups, kernels.Values[int32](a), mask, weights)
	case types.UTinyInt:
		addIntegers(s.acc, groups, kernels.Values[uint8](a), mask, weights)
	case types.USmallInt:
		addIntegers(s.acc, groups, kernels.Values[uint16](a), mask, weights)
	case types.UInteger:
		addIntegers(s.acc, groups, kernels.Values[uint32](a), mask, weights)
	case types.UBigInt:
		addIntegers(s.acc, groups, kernels.Values[uint64](a), mask, weights)
	case types.HugeInt, types.Decimal:
		if a.DataType().ID() == arrow.DECIMAL64 {
			addIntegers(s.acc, groups, kernels.Values[int64](a), mask, weights)
			return nil
		}
		addWides(s.acc, groups, kernels.Values[[2]uint64](a), mask, weights)
	default: // BIGINT, times and timestamps
		addIntegers(s.acc, groups, kernels.Values[int64](a), mask, weights)
	}
	return nil
}

func addWides(acc []wideInt, groups []uint32, v [][2]uint64, mask []byte, weights []int64) {
	v = v[:len(groups)]
	if mask == nil && weights == nil {
		for i, g := range groups {
			x, w := &v[i], &acc[g]
			var c uint64
			w.lo, c = bits.Add64(w.lo, x[0], 0)
			w.mid, c = bits.Add64(w.mid, x[1], c)
			w.hi += int64(x[1])>>63 + int64(c)
			w.rows++
		}
		return
	}
	for i, g := range groups {
		if mask == nil || kernels.Bit(mask, i) {
			acc[g].addTimes(v[i][0], int64(v[i][1]), weightOf(weights, i))
		}
	}
}

func addIntegers[T int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64](acc []wideInt, groups []uint32, v []T, mask []byte, weights []int64) {
	v = v[:len(groups)]
	signed := T(0)-1 < 0
	switch {
	case mask == nil && weights == nil && len(acc) == 1:
		var lo, carry uint64
		negative := int64(0)
		for _, x := range v {
			var c uint64
			lo, c = bits.Add64(lo, uint64(x), 0)
			carry += c
			if signed {
				negative += int64(x) >> 63
			}
		}
		// The sum is lo + 2^64 (carries + signs).
		mid := int64(carry) + negative
		acc[0].add(lo, uint64(mid), mid>>63)
		acc[0].rows += int64(len(v))
	case mask == nil && weights == nil && len(acc) <= kernels.MaxSmall && len(v) >= 4*len(acc) && (signed || uint64(T(0)-1) < math.MaxUint64):
		var sums [2][kernels.MaxSmall]kernels.SmallSum
		kernels.SumFew(&sums, groups, v)
		for g := range acc {
			for k := range sums {
				acc[g].addSmall(&sums[k][g])
			}
		}
	case mask == nil && weights == nil:
		for i, g := range groups {
			x := v[i]
			sign := int64(0)
			if signed {
				sign = int64(x) >> 63
			}
			w := &acc[g]
			var c uint64
			w.lo, c = bits.Add64(w.lo, uint64(x), 0)
			w.mid, c = bits.Add64(w.mid, uint64(sign), c)
			w.hi += sign + int64(c)
			w.rows++
		}
	default:
		for i, g := range groups {
			if mask == nil || kernels.Bit(mask, i) {
				hi := int64(0)
				if signed {
					hi = int64(v[i]) >> 63
				}
				acc[g].addTimes(uint64(v[i]), hi, weightOf(weights, i))
			}
		}
	}
}

func (s *sumAcc) Merge(other Accumulator, into []uint32) error {
	for i, o := range other.(*sumAcc).acc[:len(into)] {
		w := &s.acc[into[i]]
		w.add(o.lo, o.mid, o.hi)
		w.rows += o.rows
	}
	return nil
}

// big is the value as a big integer.
func (w *wideInt) big() *big.Int {
	v := big.NewInt(w.hi)
	v.Lsh(v, 64).Or(v, new(big.Int).SetUint64(w.mid))
	return v.Lsh(v, 64).Or(v, new(big.Int).SetUint64(w.lo))
}

// decimalLimit is 10^38 as two words: the first integer beyond DECIMAL(38).
var decimalLimit = func() [2]uint64 {
	v := new(big.Int).Exp(big.NewInt(10), big.NewInt(38), nil)
	return [2]uint64{v.Uint64(), new(big.Int).Rsh(v, 64).Uint64()}
}()

// fits reports whether the value is a HUGEINT, or a DECIMAL(38).
func (w *wideInt) fits(t types.Type) bool {
	if w.hi != int64(w.mid)>>63 {
		return false
	}
	if t.Kind != types.Decimal {
		return true
	}
	lo, hi := w.lo, w.mid
	if w.hi < 0 {
		var b uint64
		lo, b = bits.Sub64(0, lo, 0)
		hi, _ = bits.Sub64(0, hi, b)
	}
	return hi < decimalLimit[1] || hi == decimalLimit[1] && lo < decimalLimit[0]
}

func (s *sumAcc) Result(groups []uint32) (arrow.Array, error) { return s.ResultOf(s, groups) }

func (s *sumAcc) ResultOf(of Accumulator, groups []uint32) (arrow.Array, error) {
	valid, acc := newValidBits(len(groups)), of.(*sumAcc).acc
	if s.mean {
		return s.means(acc, groups, valid)
	}
	out := make([][2]uint64, len(groups))
	for i, g := range groups {
		w := s.shifted(acc[g])
		if w.rows == 0 {
			valid.null(i)
			continue
		}
		if !w.fits(s.cfg.Ret) {
			return nil, errs.New(errs.Data, "sum", "the sum %s does not fit %s", w.big(), s.cfg.Ret).
				WithHint("cast the values to DOUBLE: sum(x::DOUBLE)")
		}
		out[i] = [2]uint64{w.lo, w.mid}
	}
	return kernels.NewFixed(s.cfg.Ret.Arrow(), out, valid.bits), nil
}

// shifted is the sum with the call's shift added to each row.
func (s *sumAcc) shifted(w wideInt) wideInt {
	if rows := w.rows; s.cfg.Shift != 0 {
		w.addTimes(uint64(s.cfg.Shift), s.cfg.Shift>>63, rows)
		w.rows = rows
	}
	return w
}

func (s *sumAcc) Reset(groups []uint32) {
	for _, g := range groups {
		s.acc[g] = wideInt{}
	}
}

// meanOf is the bits of the sum over rows times scale, as a DOUBLE.
func meanOf(w *wideInt, scale *big.Int) uint64 {
	const exact = 1 << 53
	if v := int64(w.lo); w.mid == uint64(v>>63) && w.hi == v>>63 && -exact < v && v < exact && scale.IsInt64() {
		if hi, den := bits.Mul64(uint64(w.rows), scale.Uint64()); hi == 0 && den < exact {
			return math.Float64bits(float64(v) / float64(den)) // both exact: the division rounds once
		}
	}
	return math.Float64bits(kernels.RoundFraction(w.big(), new(big.Int).Mul(big.NewInt(w.rows), scale)))
}

// means divides each sum by its rows: to the nearest DOUBLE, or towards zero for times.
func (s *sumAcc) means(acc []wideInt, groups []uint32, valid *validBits) (arrow.Array, error) {
	scale := big.NewInt(1)
	if t := s.cfg.Args[0]; t.Kind == types.Decimal {
		scale.Exp(big.NewInt(10), big.NewInt(int64(t.Scale)), nil)
	}
	out := make([]uint64, len(groups))
	for i, g := range groups {
		w := s.shifted(acc[g])
		if w.rows <= 0 {
			valid.null(i)
			continue
		}
		if s.cfg.Ret.Kind == types.Double {
			out[i] = meanOf(&w, scale)
		} else {
			out[i] = uint64(new(big.Int).Quo(w.big(), big.NewInt(w.rows)).Int64())
		}
	}
	return kernels.NewFixed(s.cfg.Ret.Arrow(), out, valid.bits), nil
}

func (s *sumAcc) State() types.Type { return types.Binary }
func (s *sumAcc) Bytes() int64      { return int64(32 * cap(s.acc)) }

func (s *sumAcc) Save(groups []uint32) (arrow.Array, error) {
	sums := make([]wideInt, len(groups))
	for i, g := range groups { // groups lie here and there: so these reads do not wait for each other
		sums[i] = s.acc[g]
	}
	return saveBytes(sums, func(dst []byte, w wideInt) []byte { return w.save(dst) }), nil
}

func (s *sumAcc) Load(groups []uint32, saved arrow.Array) error {
	loadBytes(groups, saved, func(g uint32, b []byte) { s.acc[g].load(b) })
	return nil
}

// save appends the value, in as few bytes as it has, and its rows: state is mostly sums, and mostly small ones.
func (w *wideInt) save(dst []byte) []byte {
	n := 24
	if sign := int64(w.lo) >> 63; w.mid == uint64(sign) && w.hi == sign {
		n = bits.Len64(w.lo^uint64(sign))/8 + 1
	}
	dst = binary.LittleEndian.AppendUint64(append(dst, byte(n)), w.lo)
	if n > 8 {
		dst = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(dst, w.mid), uint64(w.hi))
	} else {
		dst = dst[:len(dst)-8+n]
	}
	return binary.AppendVarint(dst, w.rows)
}

// load adds what save wrote, and returns what is behind it.
func (w *wideInt) load(b []byte) []byte {
	n := int(b[0])
	value, le := b[1:1+n], binary.LittleEndian
	if n > 8 {
		w.add(le.Uint64(value), le.Uint64(value[8:]), int64(le.Uint64(value[16:])))
	} else {
		var x [8]byte
		copy(x[:], value)
		unused := 64 - 8*n
		lo := int64(le.Uint64(x[:])<<unused) >> unused
		w.add(uint64(lo), uint64(lo>>63), lo>>63)
	}
	rows, size := binary.Varint(b[1+n:])
	w.rows += rows
	return b[1+n+size:]
}
