package kernels

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
)

const benchRows = 8192

func perRow(b *testing.B, f func()) {
	b.Helper()
	for range b.N {
		f()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchRows, "ns/row")
}

// BenchmarkArith compares the kernels with plain loops, which check nothing.
func BenchmarkArith(b *testing.B) {
	x, y, out := make([]int64, benchRows), make([]int64, benchRows), make([]int64, benchRows)
	f, g, h := make([]float64, benchRows), make([]float64, benchRows), make([]float64, benchRows)
	bitsOut := make([]byte, BitBytes(benchRows))
	for i := range x {
		x[i], y[i], f[i], g[i] = int64(i), int64(i*7%1000), float64(i), float64(i%10)
	}
	five := []int64{500}
	b.Run("plain_add", func(b *testing.B) {
		perRow(b, func() {
			for i := range out {
				out[i] = x[i] + y[i]
			}
		})
	})
	b.Run("add", func(b *testing.B) { perRow(b, func() { Add(out, x, y) }) })
	b.Run("add_const", func(b *testing.B) { perRow(b, func() { Add(out, x, five) }) })
	b.Run("sub", func(b *testing.B) { perRow(b, func() { Sub(out, x, y) }) })
	b.Run("plain_mul", func(b *testing.B) {
		perRow(b, func() {
			for i := range out {
				out[i] = x[i] * y[i]
			}
		})
	})
	b.Run("mul", func(b *testing.B) { perRow(b, func() { Mul(out, x, y) }) })
	b.Run("mul_float", func(b *testing.B) { perRow(b, func() { MulFloat(h, f, g) }) })
	b.Run("less", func(b *testing.B) { perRow(b, func() { Lt(bitsOut, x, y, benchRows) }) })
	b.Run("less_const", func(b *testing.B) { perRow(b, func() { Lt(bitsOut, x, five, benchRows) }) })
	b.Run("less_float_const", func(b *testing.B) { perRow(b, func() { LtFloat(bitsOut, f, []float64{500}, benchRows) }) })
	wide := make([]decimal128.Num, benchRows)
	for i := range wide {
		wide[i] = decimal128.FromI64(int64(i * 7 % 1000))
	}
	b.Run("less_wide_const", func(b *testing.B) {
		perRow(b, func() { LtWide(bitsOut, wide, []decimal128.Num{decimal128.FromI64(500)}, benchRows) })
	})
	b.Run("less_float", func(b *testing.B) { perRow(b, func() { LtFloat(bitsOut, f, g, benchRows) }) })
}
