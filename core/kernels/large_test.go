package kernels

import "testing"

func TestLarge(t *testing.T) {
	for _, n := range []int{0, 1, 1000, 1 << 18, 1<<20 + 3} {
		s := Large(make([]uint64, n))
		if len(s) != n {
			t.Fatalf("%d of %d", len(s), n)
		}
		for i := range s {
			s[i] = uint64(i)
		}
		for i, v := range s {
			if v != uint64(i) {
				t.Fatal("memory was lost")
			}
		}
	}
}

func BenchmarkLargeLooks(b *testing.B) {
	for _, large := range []bool{false, true} {
		b.Run(map[bool]string{false: "small pages", true: "large pages"}[large], func(b *testing.B) {
			s := make([]uint64, 32<<20)
			if large {
				s = Large(s)
			}
			for i := range s {
				s[i] = uint64(i)
			}
			sum, at := uint64(0), uint64(1)
			for b.Loop() {
				at = at*0x9e3779b97f4a7c15 + 1
				sum += s[at>>39]
			}
			if sum == 1 {
				b.Log(sum)
			}
		})
	}
}
