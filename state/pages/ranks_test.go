package pages

import (
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/riverbed/riverbed/core/clock"
)

// TestRanks: keys are found as by comparing them whole, wherever they part.
func TestRanks(t *testing.T) {
	r := clock.NewRand(1)
	key := func() string {
		k := strings.Repeat("a", r.IntN(3)*10)
		for range r.IntN(20) {
			k += string(rune("\x00\x01ab\x7f"[r.IntN(5)]))
		}
		return k
	}
	for range 3000 {
		begin := key()
		firsts := []string{""}
		for range r.IntN(8) {
			firsts = append(firsts, begin+key())
		}
		slices.Sort(firsts[1:])
		firsts = slices.Compact(firsts)
		first := func(i int) string { return firsts[i] }
		ranks := newRanks(len(firsts), first)
		asked := []string{"", begin, key(), begin + key(), begin + "\x00", begin + "\xff"}
		for _, k := range append(asked, firsts...) {
			want := sort.SearchStrings(firsts, k+"\x00") - 1
			if got := ranks.find([]byte(k), first); got != want {
				t.Fatalf("%q is found at %d of %q, not at %d", k, got, firsts, want)
			}
		}
	}
}
