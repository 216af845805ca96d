package kernels

import "math"

// lgammaPair is ln Γ(x) for x >= ½, by Stirling's series far to the right: Γ(x) = Γ(x+n) / (x (x+1) … (x+n-1)).
func lgammaPair(x float64) pairF {
	at, below, scale := pairF{x, 0}, one, 0
	for at.hi < 40 {
		below = below.mul(at)
		if below.hi > 0x1p500 {
			below, scale = below.scale(0x1p-500), scale+500
		}
		at = at.add(one)
	}
	// (x - ½) ln x - x + ½ ln 2π + Σ B(2k) / (2k (2k-1) x^(2k-1))
	sum := at.sub(pairF{0.5, 0}).mul(logOf(at)).sub(at).add(halfLog2Pi)
	inverse := one.div(at)
	square := inverse.mul(inverse)
	for _, c := range stirling {
		sum = sum.add(pairF{c[0], 0}.div(pairF{c[1], 0}).mul(inverse))
		inverse = inverse.mul(square)
	}
	return sum.sub(logOf(below)).sub(prod(float64(scale), ln2[0])).sub(prod(float64(scale), ln2[1]))
}

// logOf is the logarithm of a pair: ln (hi + lo) = ln hi + lo/hi.
func logOf(x pairF) pairF { return logPair(x.hi).add(pairF{x.lo / x.hi, 0}) }

var (
	halfLog2Pi = splitPair("0.91893853320467274178032973640561763986139747363778341281715154048276569592726039769474329863595419762200")
	// B(2k) / (2k (2k-1)) as fractions
	stirling = [][2]float64{{1, 12}, {-1, 360}, {1, 1260}, {-1, 1680}, {1, 1188}, {-691, 360360}, {1, 156}, {-3617, 122400}, {43867, 244188}, {-174611, 125400}}
)

// Gamma is Γ(x).
func Gamma(x float64) float64 {
	switch {
	case x != x || math.IsInf(x, 1):
		return x
	case x == 0:
		return math.Inf(1)
	case x < 0 && x == math.Floor(x):
		return math.NaN()
	case x > 171.7:
		return math.Inf(1)
	case x < -184:
		return 0
	case x < 0.5: // Γ(x) Γ(1-x) = π / sin πx
		return math.Pi / float64(sinPi(x)*Gamma(1-x))
	}
	return finishExp(expPair(lgammaPair(x)))
}

// LogGamma is ln |Γ(x)|.
func LogGamma(x float64) float64 {
	switch {
	case x != x:
		return x
	case math.IsInf(x, 0) || x <= 0 && x == math.Floor(x):
		return math.Inf(1)
	case x > 1e17:
		return float64(x*Log(x)) - x
	case x < 0.5:
		return Log(math.Pi/math.Abs(sinPi(x))) - LogGamma(1-x)
	case x == 1 || x == 2:
		return 0
	}
	return lgammaPair(x).round()
}

// sinPi is sin πx, reduced before π comes in.
func sinPi(x float64) float64 {
	r := math.Mod(x, 2)
	return Sin(float64(math.Pi * r))
}
