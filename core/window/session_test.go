package window

import (
	"testing"

	"github.com/riverbed/riverbed/core/types"
)

func TestGap(t *testing.T) {
	for _, c := range []struct {
		v  types.IntervalValue
		ok bool
	}{
		{types.IntervalValue{Micros: 1}, true},
		{types.IntervalValue{Days: 1, Micros: 5}, true},
		{types.IntervalValue{}, false},
		{types.IntervalValue{Micros: -1}, false},
		{types.IntervalValue{Days: 1, Micros: -1}, false},
		{types.IntervalValue{Months: 1}, false},
		{types.IntervalValue{Days: 2_000_000_000}, false},
	} {
		if _, err := GapOf(c.v); (err == nil) != c.ok {
			t.Errorf("%v: %v", c.v, err)
		}
	}
	g, _ := GapOf(types.IntervalValue{Micros: 10})
	if !g.Joins(5, 15) || g.Joins(5, 16) || !g.Joins(-limit, -limit+10) || g.Joins(-limit, limit) {
		t.Error("rows a gap apart are in one session, those farther apart are not")
	}
	if g.Check([]int64{limit + 1}, nil) == nil || g.Check([]int64{limit + 1}, func(int) bool { return false }) != nil || g.Check([]int64{-limit}, nil) != nil {
		t.Error("times without sessions are refused, unless they are unknown")
	}
}
