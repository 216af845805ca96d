package kernels

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestSelectWord(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 3000 {
		n := 1 + r.IntN(400)
		w := make([]uint64, n)
		span := []uint64{1, 2, 10, 1 << 40}[r.IntN(4)]
		for i := range w {
			w[i] = r.Uint64N(span)
		}
		switch r.IntN(4) {
		case 0:
			slices.Sort(w)
		case 1:
			slices.Sort(w)
			slices.Reverse(w)
		}
		want := slices.Clone(w)
		slices.Sort(want)
		for range 3 {
			k := r.IntN(n)
			if got := SelectWord(w, k); got != want[k] || w[k] != want[k] {
				t.Fatalf("rank %d of %d is %d, want %d", k, n, got, want[k])
			}
			if slices.Max(w[:k+1]) != want[k] || slices.Min(w[k:]) != want[k] {
				t.Fatalf("rank %d does not part the words", k)
			}
		}
		slices.Sort(w)
		if !slices.Equal(w, want) {
			t.Fatal("words were lost")
		}
	}
}

func BenchmarkSelectWord(b *testing.B) {
	r := rand.New(rand.NewPCG(3, 4))
	words := make([]uint64, 1000)
	for i := range words {
		words[i] = r.Uint64()
	}
	w := make([]uint64, len(words))
	for b.Loop() {
		copy(w, words)
		SelectWord(w, 500)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(words)), "ns/word")
}
