package fn_test

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/types"
)

// A bucket never starts after its event, nor a width or more before it, also while clocks are set back; a day has 25 hours then.
func TestBucketsAcrossChangeOfClocks(t *testing.T) {
	zone, err := types.LoadZone("Europe/London")
	if err != nil {
		t.Fatal(err)
	}
	env := &fn.Env{TimeZone: zone}
	from, _ := types.ParseValue("2000-10-28 00:00:00+00", types.TsTZ)
	var at []types.Value
	for i := range int64(144) {
		at = append(at, from.(int64)+i*30*60_000_000)
	}
	events := []arrow.Array{types.ArrayOf(at, types.TsTZ)}
	run := func(name string, args ...expr.Expr) arrow.Array {
		e, err := expr.NewCall(name, errs.Pos{}, args...)
		if err != nil {
			t.Fatal(err)
		}
		p, err := expr.Compile(e, map[expr.ColID]int{0: 0})
		if err != nil {
			t.Fatal(err)
		}
		out, err := p.EvalArray(env, events, len(at))
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	ts := &expr.Col{T: types.TsTZ}
	width := &expr.Lit{V: types.IntervalValue{Micros: 10_000_000}, T: types.Span}
	buckets := run("time_bucket", width, ts, &expr.Lit{V: "Europe/London", T: types.String})
	days := run("date_trunc", &expr.Lit{V: "day", T: types.String}, ts)
	events25 := map[int64]int{}
	for i, e := range at {
		start := types.ValueAt(buckets, i, types.TsTZ).(int64)
		if d := e.(int64) - start; d < 0 || d >= 10_000_000 {
			t.Errorf("event %d lies %d µs after the start of its bucket", i, d)
		}
		events25[types.ValueAt(days, i, types.TsTZ).(int64)]++
	}
	longest := 0
	for _, n := range events25 {
		longest = max(longest, n)
	}
	if len(events25) != 3 || longest != 50 {
		t.Errorf("%d days, the longest with %d events", len(events25), longest)
	}
}
