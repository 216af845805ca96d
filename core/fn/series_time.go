package fn

import (
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/types"
)

// timeSeries are the overloads of range and generate_series over times: from a start by an interval up to an end. Each time
// follows from the one before it, so that months from a 31st stay on the 29th once a February has passed, as in DuckDB.
func timeSeries(name string, closed bool) []Overload {
	kernel := func(c *Call) (arrow.Array, error) {
		from, to, by := col[int64](c, 0), col[int64](c, 1), col[monthDayNano](c, 2)
		next := func(us int64, step monthDayNano) (int64, bool) { return addInterval(us, step, 1) }
		if zone := c.Env.TimeZone; c.Types[0].Kind == types.TimestampTZ && zone != nil {
			next = func(us int64, step monthDayNano) (int64, bool) { return zonedAdd(us, step, zone) }
		}
		return values(c, func(i int) types.Value {
			out := []types.Value{}
			lo, hi, step := from.at(i), to.at(i), by.at(i)
			switch {
			case infiniteTS(lo) || infiniteTS(hi):
				c.failf(i, "%s() between times of which one is infinite", name)
				return nil
			case (step.Months > 0 || step.Days > 0 || step.Nanoseconds > 0) && (step.Months < 0 || step.Days < 0 || step.Nanoseconds < 0):
				c.failf(i, "%s() by an interval whose parts differ in sign", name)
				return nil
			}
			up := step.Months > 0 || step.Days > 0 || step.Nanoseconds > 0
			if step == (monthDayNano{}) {
				return out
			}
			for v := lo; up && v < hi || !up && v > hi || closed && v == hi; {
				if len(out) == maxSeries {
					c.failf(i, "%s() of more than %d elements", name, maxSeries)
					return nil
				}
				out = append(out, v)
				w, ok := next(v, step)
				if !ok || w == v {
					break
				}
				v = w
			}
			return out
		})
	}
	over := func(t types.Type) Overload { return fallible(Types{t, t, types.Span}, types.ListOf(t), kernel) }
	dates := Overload{Args: Types{types.Date32, types.Date32, types.Span}, Fallible: true, Resolve: func([]types.Type, []types.Value) (Resolved, error) {
		return Resolved{Args: Types{types.TsUS, types.TsUS, types.Span}, Returns: types.ListOf(types.TsUS), Kernel: kernel}, nil
	}}
	return []Overload{over(types.TsUS), over(types.TsTZ), dates}
}

// zonedAdd adds months and days by the clocks of a zone, and the rest by time.
func zonedAdd(us int64, v monthDayNano, zone *time.Location) (int64, bool) {
	if v.Months != 0 || v.Days != 0 {
		local, ok := addInterval(types.ToLocal(us, zone), monthDayNano{Months: v.Months, Days: v.Days}, 1)
		if !ok {
			return 0, false
		}
		us = keepOffset(us, local, zone)
	}
	return addInterval(us, monthDayNano{Nanoseconds: v.Nanoseconds}, 1)
}
