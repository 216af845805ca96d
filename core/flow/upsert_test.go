package flow

import (
	"slices"
	"testing"
)

func TestSplitsAreInOrder(t *testing.T) {
	want := []string{"", "0", "00", "1", "9", "10", "99999999999999999999", "100000000000000000000", "1a", "a", "b"}
	for i, a := range want {
		for j, b := range want {
			if got := CompareSplits(a, b); (got < 0) != (i < j) || (got == 0) != (i == j) {
				t.Errorf("%q and %q: %d", a, b, got)
			}
		}
	}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, CompareSplits)
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}
