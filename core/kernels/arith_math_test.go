package kernels

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"testing"
)

// Each function lies within a few ulps of Go's, which is a check of the constants and series, not of the last bit.
func TestMathNearGo(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, f := range []struct {
		name   string
		ours   func(float64) float64
		theirs func(float64) float64
		lo, hi float64
	}{
		{"exp", Exp, math.Exp, -700, 700}, {"log", Log, math.Log, 0, 1e6}, {"log near 1", Log, math.Log, 0.9, 1.1}, {"log2", Log2, math.Log2, 0, 1e6}, {"log10", Log10, math.Log10, 0, 1e6},
		{"cbrt", Cbrt, math.Cbrt, -1e9, 1e9}, {"sin", Sin, math.Sin, -100, 100}, {"cos", Cos, math.Cos, -100, 100}, {"tan", Tan, math.Tan, -1.5, 1.5},
		{"sin far", Sin, math.Sin, -1e8, 1e8},
		{"asin", Asin, math.Asin, -1, 1}, {"acos", Acos, math.Acos, -0.9, 0.9}, {"atan", Atan, math.Atan, -20, 20},
		{"sinh", Sinh, math.Sinh, -50, 50}, {"cosh", Cosh, math.Cosh, -50, 50}, {"tanh", Tanh, math.Tanh, -3, 3},
	} {
		for range 2000 {
			x := f.lo + (f.hi-f.lo)*r.Float64()
			got, want := f.ours(x), f.theirs(x)
			if math.Abs(got-want) > 16*math.Abs(math.Nextafter(want, math.Inf(1))-want)+1e-300 {
				t.Errorf("%s(%v) = %v, Go has %v", f.name, x, got, want)
				break
			}
		}
	}
	for range 5000 {
		x, y := r.Float64()*100, r.Float64()*40-20
		if got, want := Pow(x, y), math.Pow(x, y); math.Abs(got-want) > 1e-12*math.Abs(want) {
			t.Fatalf("pow(%v, %v) = %v, Go has %v", x, y, got, want)
		}
		x -= 50
		if got, want := Atan2(y, x), math.Atan2(y, x); math.Abs(got-want) > 1e-15 {
			t.Fatalf("atan2(%v, %v) = %v, Go has %v", y, x, got, want)
		}
	}
}

func TestMathSpecials(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	vals := []float64{0, math.Copysign(0, -1), 1, -1, 0.5, -0.5, 2, -2, 3, 27, -27, 1024, inf, -inf, nan, math.MaxFloat64, 1e-300}
	same := func(a, b float64) bool {
		return a == b && math.Signbit(a) == math.Signbit(b) || a != a && b != b || math.Abs(a-b) < 1e-14*math.Abs(b)
	}
	for _, x := range vals {
		for _, f := range []struct {
			name         string
			ours, theirs func(float64) float64
		}{{"exp", Exp, math.Exp}, {"log", Log, math.Log}, {"cbrt", Cbrt, math.Cbrt}, {"sin", Sin, math.Sin}, {"cos", Cos, math.Cos}, {"tan", Tan, math.Tan},
			{"asin", Asin, math.Asin}, {"acos", Acos, math.Acos}, {"atan", Atan, math.Atan}, {"sinh", Sinh, math.Sinh}, {"cosh", Cosh, math.Cosh}, {"tanh", Tanh, math.Tanh}, {"log10", Log10, math.Log10}, {"log2", Log2, math.Log2}} {
			if got, want := f.ours(x), f.theirs(x); !same(got, want) {
				t.Errorf("%s(%v) = %v, Go has %v", f.name, x, got, want)
			}
		}
		for _, y := range vals {
			if got, want := Pow(x, y), math.Pow(x, y); !same(got, want) {
				t.Errorf("pow(%v, %v) = %v, Go has %v", x, y, got, want)
			}
			if got, want := Atan2(x, y), math.Atan2(x, y); !same(got, want) {
				t.Errorf("atan2(%v, %v) = %v, Go has %v", x, y, got, want)
			}
		}
	}
	for _, c := range []struct{ got, want float64 }{{Cbrt(27), 3}, {Log10(1000), 3}, {Log2(8), 3}, {Pow(2, 10), 1024}, {Exp(1), math.E}, {Pow(10, -3), 1e-3}, {Log(10), math.Ln10},
		{Log(5e-324), -744.4400719213812}, {Log10(1e-310), -310}, {Cos(9.67890406521585e+299), 0.06093283898613879}, {Sin(3.6318800164315125e+13), 0.04591873526500567}, {Acos(0.9986045349155241), 0.05283540023705039}} {
		if c.got != c.want {
			t.Errorf("%v, want %v", c.got, c.want)
		}
	}
}

// One hash of many results holds on every platform and build.
func TestMathBits(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	h := fnv.New64a()
	for range 3000 {
		x := math.Ldexp(r.Float64()*2-1, r.IntN(40)-20)
		for _, f := range []func(float64) float64{Exp, Log, Log2, Log10, Cbrt, Sin, Cos, Tan, Asin, Acos, Atan, Sinh, Cosh, Tanh} {
			v := f(x)
			if v != v {
				v = 0
			}
			fmt.Fprintf(h, "%x", math.Float64bits(v))
		}
		fmt.Fprintf(h, "%x%x", math.Float64bits(Pow(math.Abs(x), 0.7)), math.Float64bits(Atan2(x, 0.3)))
	}
	const want uint64 = 0x5458d2b4a15b05aa
	if got := h.Sum64(); got != want {
		t.Errorf("hash of results is %#x, want %#x", got, want)
	}
}

func BenchmarkExp(b *testing.B) {
	for i := range b.N {
		Exp(float64(i%1000) * 0.01)
	}
}

func BenchmarkLog(b *testing.B) {
	for i := range b.N {
		Log(float64(i%1000) + 0.01)
	}
}

func BenchmarkSin(b *testing.B) {
	for i := range b.N {
		Sin(float64(i%1000) * 0.01)
	}
}
