package fn

import (
	"math"
	"math/big"
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/rowkey"
	"github.com/riverbed/riverbed/core/types"
)

// Frames are the rows that results are of: result i is of the rows [Lo[i], Hi[i]) less [HoleLo[i], HoleHi[i]), which lies
// within them, where there are holes.
type Frames struct {
	Lo, Hi         []int32
	HoleLo, HoleHi []int32 // nil: no holes
	// Self: row First+i stays in frame i although it lies in the hole.
	Self  bool
	First int
	// Rising: neither end of a frame ever goes back.
	Rising bool
}

// Spans gives the runs of rows that frame i consists of.
func (f *Frames) Spans(i int, out *[3][2]int32) int {
	lo, hi := f.Lo[i], f.Hi[i]
	if f.HoleLo == nil {
		out[0] = [2]int32{lo, hi}
		return 1
	}
	n := 0
	put := func(a, b int32) {
		if a < b {
			out[n] = [2]int32{a, b}
			n++
		}
	}
	self := int32(f.First + i)
	put(lo, f.HoleLo[i])
	if f.Self && lo <= self && self < hi {
		put(self, self+1)
	}
	put(f.HoleHi[i], hi)
	return n
}

// Framed is an accumulator that gives its results over frames itself, from the rows as they stand in order.
type Framed interface {
	// OverFrames gives a result for each frame over rows of which those in mask (nil: all) count. ok is false where these values
	// must be added frame by frame.
	OverFrames(args []Arg, rows int, mask []byte, f *Frames) (a arrow.Array, ok bool, err error)
}

// frameCounts counts the rows of each frame that are in mask.
func frameCounts(rows int, mask []byte, f *Frames) []int64 {
	out := make([]int64, len(f.Lo))
	if mask == nil {
		if f.HoleLo == nil {
			for i, lo := range f.Lo {
				out[i] = int64(f.Hi[i] - lo)
			}
			return out
		}
		eachSpan(f, func(i int, lo, hi int32) { out[i] += int64(hi - lo) })
		return out
	}
	before := kernels.PrefixCounts(mask, rows)
	eachSpan(f, func(i int, lo, hi int32) { out[i] += int64(before[hi] - before[lo]) })
	return out
}

func eachSpan(f *Frames, visit func(i int, lo, hi int32)) {
	if f.HoleLo == nil {
		for i, lo := range f.Lo {
			visit(i, lo, f.Hi[i])
		}
		return
	}
	var spans [3][2]int32
	for i := range f.Lo {
		for _, s := range spans[:f.Spans(i, &spans)] {
			visit(i, s[0], s[1])
		}
	}
}

// OverFrames counts.
func (c *countAcc) OverFrames(_ []Arg, rows int, mask []byte, f *Frames) (arrow.Array, bool, error) {
	return kernels.NewFixed(arrow.PrimitiveTypes.Int64, frameCounts(rows, mask, f), nil), true, nil
}

// OverFrames: its count is of another type.
func (*pairCount) OverFrames([]Arg, int, []byte, *Frames) (arrow.Array, bool, error) {
	return nil, false, nil
}

// OverFrames takes differences of running sums.
func (s *sumAcc) OverFrames(args []Arg, rows int, mask []byte, f *Frames) (arrow.Array, bool, error) {
	if s.cfg.Shift != 0 || rows == 0 {
		return nil, false, nil
	}
	a := rowsOf(args[0], rows)
	var sums []int64
	switch s.cfg.Args[0].Kind {
	case types.Boolean:
		bits := kernels.BoolBits(a)
		if mask != nil {
			bits = kernels.AndBits(bits, mask)
		}
		sums = make([]int64, rows+1)
		for i, n := range kernels.PrefixCounts(bits, rows) {
			sums[i] = int64(n)
		}
	case types.TinyInt:
		sums = kernels.PrefixSums(kernels.Values[int8](a), mask)
	case types.SmallInt:
		sums = kernels.PrefixSums(kernels.Values[int16](a), mask)
	case types.Integer:
		sums = kernels.PrefixSums(kernels.Values[int32](a), mask)
	case types.UTinyInt:
		sums = kernels.PrefixSums(kernels.Values[uint8](a), mask)
	case types.USmallInt:
		sums = kernels.PrefixSums(kernels.Values[uint16](a), mask)
	case types.UInteger:
		sums = kernels.PrefixSums(kernels.Values[uint32](a), mask)
	case types.HugeInt, types.Decimal:
		if a.DataType().ID() == arrow.DECIMAL64 {
			return nil, false, nil
		}
		v := narrowed(kernels.Values[[2]uint64](a), mask)
		if v == nil || tooLarge(v, rows) {
			return nil, false, nil
		}
		sums = kernels.PrefixSums(v, mask)
	case types.BigInt:
		v := kernels.Values[int64](a)
		if tooLarge(v, rows) {
			return nil, false, nil
		}
		sums = kernels.PrefixSums(v, mask)
	default:
		return nil, false, nil
	}
	counts := frameCounts(rows, mask, f)
	totals := make([]int64, len(f.Lo))
	if f.HoleLo == nil {
		for i, lo := range f.Lo {
			totals[i] = sums[f.Hi[i]] - sums[lo]
		}
	} else {
		eachSpan(f, func(i int, lo, hi int32) { totals[i] += sums[hi] - sums[lo] })
	}
	valid := newValidBits(len(totals))
	if !s.mean {
		out := make([][2]uint64, len(totals))
		for i, v := range totals {
			if counts[i] == 0 {
				valid.null(i)
				continue
			}
			out[i] = [2]uint64{uint64(v), uint64(v >> 63)}
			if s.cfg.Ret.Kind == types.Decimal {
				if w := (wideInt{lo: uint64(v), mid: uint64(v >> 63), hi: v >> 63}); !w.fits(s.cfg.Ret) {
					return nil, false, errs.New(errs.Data, "sum", "the sum %s does not fit %s", w.big(), s.cfg.Ret)
				}
			}
		}
		return kernels.NewFixed(s.cfg.Ret.Arrow(), out, valid.bits), true, nil
	}
	if s.cfg.Ret.Kind != types.Double {
		return nil, false, nil
	}
	return s.frameMeans(totals, counts, valid), true, nil
}

func (s *sumAcc) frameMeans(totals, counts []int64, valid *validBits) arrow.Array {
	scale := big.NewInt(1)
	if t := s.cfg.Args[0]; t.Kind == types.Decimal {
		scale.Exp(big.NewInt(10), big.NewInt(int64(t.Scale)), nil)
	}
	const exact = 1 << 53
	out := make([]float64, len(totals))
	one := scale.IsInt64() && scale.Int64() == 1
	for i, v := range totals {
		n := counts[i]
		switch {
		case n == 0:
			valid.null(i)
		case one && -exact < v && v < exact:
			out[i] = float64(v) / float64(n) // both exact: the division rounds once
		default:
			w := wideInt{lo: uint64(v), mid: uint64(v >> 63), hi: v >> 63, rows: n}
			out[i] = math.Float64frombits(meanOf(&w, scale))
		}
	}
	return kernels.NewFixed(s.cfg.Ret.Arrow(), out, valid.bits)
}

// narrowed are integers of 128 bits that fit into 64; nil: one does not.
func narrowed(v [][2]uint64, mask []byte) []int64 {
	out := make([]int64, len(v))
	for i, x := range v {
		if mask != nil && !kernels.Bit(mask, i) {
			continue
		}
		if x[1] != uint64(int64(x[0])>>63) {
			return nil
		}
		out[i] = int64(x[0])
	}
	return out
}

// tooLarge says that the sums of so many values may go beyond 62 bits.
func tooLarge(v []int64, rows int) bool {
	lo, hi := kernels.Range(v)
	room := int64(1) << (62 - bits.Len(uint(rows)))
	return lo < -room || hi > room
}

// OverFrames takes differences of exact running sums.
func (s *floatSumAcc) OverFrames(args []Arg, rows int, mask []byte, f *Frames) (arrow.Array, bool, error) {
	sums, ok := kernels.NewFixedSums(kernels.Values[float64](rowsOf(args[0], rows)), mask)
	if !ok {
		return nil, false, nil
	}
	counts, valid := frameCounts(rows, mask, f), newValidBits(len(f.Lo))
	out := make([]float64, len(f.Lo))
	var spans [3][2]int32
	for i := range out {
		if counts[i] == 0 {
			valid.null(i)
			continue
		}
		var sum kernels.Wide
		if f.HoleLo == nil {
			sum = sums.Over(sum, f.Lo[i], f.Hi[i])
		} else {
			for _, sp := range spans[:f.Spans(i, &spans)] {
				sum = sums.Over(sum, sp[0], sp[1])
			}
		}
		n := uint64(1)
		if s.mean {
			n = uint64(counts[i])
		}
		out[i] = sums.Quotient(sum, n)
	}
	return kernels.NewFixed(arrow.PrimitiveTypes.Float64, out, valid.bits), true, nil
}

// OverFrames finds the least word of each frame: with a queue of candidates where frames only move on, otherwise in a tree.
func (e *extremeAcc) OverFrames(args []Arg, rows int, mask []byte, f *Frames) (arrow.Array, bool, error) {
	words := rowkey.Words(rowsOf(args[0], rows), e.t, true, make([]uint64, 0, rows))
	for i := range words {
		words[i] ^= e.flip
	}
	if mask != nil { // what does not count is no less than anything; counts tell whether anything counts
		for i := range words {
			if !kernels.Bit(mask, i) {
				words[i] = ^uint64(0)
			}
		}
	}
	var out []uint64
	if f.Rising && f.HoleLo == nil {
		out = slidingLeast(words, f)
	} else {
		out = treeLeast(words, f)
	}
	valid := newValidBits(len(out))
	for i, n := range frameCounts(rows, mask, f) {
		if out[i] ^= e.flip; n == 0 {
			out[i] = 0
			valid.null(i)
		}
	}
	return rowkey.FromWords(e.t, out, valid.bits), true, nil
}

// slidingLeast keeps the rows that may still become the least of a frame, their words rising.
func slidingLeast(words []uint64, f *Frames) []uint64 {
	out := make([]uint64, len(f.Lo))
	queue := make([]int32, len(words))
	head, tail, next := 0, 0, int32(0)
	for i, lo := range f.Lo {
		hi := f.Hi[i]
		if next < lo { // rows that no frame has
			next, head, tail = lo, 0, 0
		}
		for ; next < hi; next++ {
			w := words[next]
			for tail > head && words[queue[tail-1]] >= w {
				tail--
			}
			queue[tail] = next
			tail++
		}
		for head < tail && queue[head] < lo {
			head++
		}
		if out[i] = ^uint64(0); head < tail && lo < hi {
			out[i] = words[queue[head]]
		}
	}
	return out
}

// treeLeast asks a tree in which each node is the lesser of its two children; the rows are its leaves.
func treeLeast(words []uint64, f *Frames) []uint64 {
	n := len(words)
	tree := make([]uint64, 2*n)
	copy(tree[n:], words)
	for i := n - 1; i > 0; i-- {
		tree[i] = min(tree[2*i], tree[2*i+1])
	}
	out := make([]uint64, len(f.Lo))
	var spans [3][2]int32
	for i := range out {
		least := ^uint64(0)
		for _, s := range spans[:f.Spans(i, &spans)] {
			for a, b := int(s[0])+n, int(s[1])+n; a < b; a, b = a>>1, b>>1 {
				if a&1 != 0 {
					least = min(least, tree[a])
					a++
				}
				if b&1 != 0 {
					b--
					least = min(least, tree[b])
				}
			}
		}
		out[i] = least
	}
	return out
}
