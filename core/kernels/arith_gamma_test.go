package kernels

import (
	"math"
	"testing"
)

// TestGamma compares with factorials, which are exact, and with the standard library, which is good to some digits.
func TestGamma(t *testing.T) {
	f := 1.0
	for n := 1; n < 23; n++ {
		if got := Gamma(float64(n)); got != f {
			t.Errorf("gamma(%d) = %v, want %v", n, got, f)
		}
		f *= float64(n)
	}
	for _, x := range []float64{1e-300, 1e-10, 0.1, 0.5, 0.9, 1.5, 2.5, 10.1, 39.9, 40.1, 100.5, 170.5, 171.6, -0.5, -1.5, -10.3, -170.5} {
		if got, want := Gamma(x), math.Gamma(x); math.Abs(got-want) > 1e-12*math.Abs(want) {
			t.Errorf("gamma(%v) = %v, want about %v", x, got, want)
		}
		want, _ := math.Lgamma(x)
		if got := LogGamma(x); math.Abs(got-want) > 1e-12*max(1, math.Abs(want)) {
			t.Errorf("lgamma(%v) = %v, want about %v", x, got, want)
		}
	}
	if got := Gamma(0.5); got != 1.7724538509055160 {
		t.Errorf("gamma(½) = %v", got)
	}
}
