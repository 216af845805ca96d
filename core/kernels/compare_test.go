package kernels

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
)

// Columns against columns, constants on either side, all lengths: each bit is what one comparison says.
func TestComparisons(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 2))
	floats := []float64{0, math.Copysign(0, -1), 1, -1, math.NaN(), math.Inf(1), math.Inf(-1), 2.5, math.MaxFloat64}
	words := []uint64{0, 1, math.MaxUint64, 1 << 63, 1<<63 - 1, 500}
	number := func() decimal128.Num {
		return decimal128.New(int64(words[r.IntN(len(words))]), words[r.IntN(len(words))])
	}
	for range 4000 {
		n := r.IntN(40)
		f, w := [2][]float64{}, [2][]decimal128.Num{}
		for side := range f {
			length := n
			if r.IntN(3) == 0 {
				length = 1
			}
			for range length {
				f[side], w[side] = append(f[side], floats[r.IntN(len(floats))]), append(w[side], number())
			}
		}
		if n != 1 && len(f[0]) == 1 && len(f[1]) == 1 {
			continue // two constants are evaluated as one row
		}
		var bits [4][]byte
		for k := range bits {
			bits[k] = make([]byte, BitBytes(n))
		}
		LtFloat(bits[0], f[0], f[1], n)
		EqFloat(bits[1], f[0], f[1], n)
		LtWide(bits[2], w[0], w[1], n)
		EqWide(bits[3], w[0], w[1], n)
		for i := range n {
			x, y := f[0][i&Mask(f[0])], f[1][i&Mask(f[1])]
			a, b := w[0][i&Mask(w[0])], w[1][i&Mask(w[1])]
			for k, want := range []bool{x < y || x == x && y != y, x == y || x != x && y != y, a.Cmp(b) < 0, a == b} {
				if Bit(bits[k], i) != want {
					t.Fatalf("comparison %d of %v, %v and %v, %v in row %d of %d is not %t", k, x, y, a, b, i, n, want)
				}
			}
		}
	}
}
