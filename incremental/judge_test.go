package incremental

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/types"
)

// Rows that are judged together are judged as one by one.
func TestJudgingTogether(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		n, disorder, lag := 1+r.IntN(3*judgedRows), r.Int64N(40)+1, r.Int64N(40)
		s := &source{lag: &lag, latenessUS: r.Int64N(2) * 7}
		times, marks := make([]int64, n), make([]int64, n)
		for i := range times {
			times[i] = int64(i)/4 + r.Int64N(disorder)
			marks[i] = times[i] - lag
		}
		own, floor := flow.NoWatermark, flow.NoWatermark
		if r.IntN(2) == 0 {
			own = flow.Watermark(r.Int64N(int64(n)))
		}
		if r.IntN(2) == 0 {
			floor = flow.Watermark(r.Int64N(int64(n)))
		}
		at := kernels.NewFixed(types.TsUS.Arrow(), times, nil)
		mark := kernels.NewFixed(types.TsUS.Arrow(), marks, nil)
		got, late, ok := s.judgeTimes(at, own, floor)
		want, wantLate := s.judgeRows(at, mark, own, floor)
		if !ok || got != want || !slices.Equal(late, wantLate) {
			t.Fatalf("%d rows, lag %d, own %d, floor %d: watermark %d and %d late, not %d and %d", n, lag, own, floor, got, len(late), want, len(wantLate))
		}
	}
}

func TestTimesNearTheEndsAreJudgedOneByOne(t *testing.T) {
	lag := int64(5)
	s := &source{lag: &lag}
	for _, far := range []int64{math.MaxInt64, math.MinInt64, farTime, -farTime} {
		times := make([]int64, 2*judgedRows)
		times[judgedRows+3] = far
		if _, _, ok := s.judgeTimes(kernels.NewFixed(types.TsUS.Arrow(), times, nil), flow.NoWatermark, flow.NoWatermark); ok {
			t.Errorf("the time %d was judged with others", far)
		}
	}
	if _, _, ok := s.judgeTimes(kernels.NewFixed(types.TsUS.Arrow(), []int64{1, 2}, []byte{1}), flow.NoWatermark, flow.NoWatermark); ok {
		t.Error("a time that is NULL was judged with others")
	}
}
