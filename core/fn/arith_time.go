package fn

import (
	"math"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/types"
)

type monthDayNano = arrow.MonthDayNanoInterval

// timePlus, timeMinus, timeTimes and timeDivide are the operators' overloads for dates, times and intervals. Months come first and
// clamp to the month's last day, then days, then time. In a TIMESTAMPTZ months and days follow the session's clocks.
var (
	timePlus = []Overload{
		fallible(Types{types.Date32, types.Int32}, types.Date32, dateDays(0, 1, 1)),
		fallible(Types{types.Int32, types.Date32}, types.Date32, dateDays(1, 0, 1)),
		fallible(Types{types.Date32, types.Span}, types.TsUS, dateInterval(0, 1, 1)),
		fallible(Types{types.Span, types.Date32}, types.TsUS, dateInterval(1, 0, 1)),
		fallible(Types{types.TsUS, types.Span}, types.TsUS, tsInterval(0, 1, 1)),
		fallible(Types{types.Span, types.TsUS}, types.TsUS, tsInterval(1, 0, 1)),
		fallible(Types{types.TsTZ, types.Span}, types.TsTZ, tsInterval(0, 1, 1)),
		fallible(Types{types.Span, types.TsTZ}, types.TsTZ, tsInterval(1, 0, 1)),
		strict(Types{types.TimeUS, types.Span}, types.TimeUS, timeInterval(0, 1, 1)),
		strict(Types{types.Span, types.TimeUS}, types.TimeUS, timeInterval(1, 0, 1)),
		fallible(Types{types.Span, types.Span}, types.Span, addIntervals(1)),
		fallible(Types{types.Date32, types.TimeUS}, types.TsUS, dateTime(0, 1)),
		fallible(Types{types.TimeUS, types.Date32}, types.TsUS, dateTime(1, 0)),
	}
	timeMinus = []Overload{
		strict(Types{types.Date32, types.Date32}, types.Int64, func(c *Call) (arrow.Array, error) {
			a, b := col[int32](c, 0), col[int32](c, 1)
			return fixed(c, func(i int) int64 { return int64(a.at(i)) - int64(b.at(i)) })
		}),
		fallible(Types{types.Date32, types.Int32}, types.Date32, dateDays(0, 1, -1)),
		fallible(Types{types.Date32, types.Span}, types.TsUS, dateInterval(0, 1, -1)),
		fallible(Types{types.TsUS, types.Span}, types.TsUS, tsInterval(0, 1, -1)),
		fallible(Types{types.TsTZ, types.Span}, types.TsTZ, tsInterval(0, 1, -1)),
		strict(Types{types.TimeUS, types.Span}, types.TimeUS, timeInterval(0, 1, -1)),
		fallible(Types{types.TsUS, types.TsUS}, types.Span, tsMinusTS),
		fallible(Types{types.TsTZ, types.TsTZ}, types.Span, tsMinusTS),
		fallible(Types{types.Span, types.Span}, types.Span, addIntervals(-1)),
	}
	timeTimes = []Overload{
		fallible(Types{types.Span, types.Float64}, types.Span, scaleInterval(0, 1, false)),
		fallible(Types{types.Float64, types.Span}, types.Span, scaleInterval(1, 0, false)),
		fallible(Types{types.Span, types.Int64}, types.Span, timesInterval(0, 1)),
		fallible(Types{types.Int64, types.Span}, types.Span, timesInterval(1, 0)),
	}
	timeDivide = []Overload{fallible(Types{types.Span, types.Float64}, types.Span, scaleInterval(0, 1, true))}
)

func infiniteDate(d int32) bool { return d == types.InfinityDate || d == -types.InfinityDate }
func infiniteTS(v int64) bool   { return v == types.InfinityTS || v == -types.InfinityTS }

func dateDays(date, days int, sign int64) Kernel {
	return func(c *Call) (arrow.Array, error) {
		a, b := col[int32](c, date), col[int32](c, days)
		return fixed(c, func(i int) int32 {
			if infiniteDate(a.at(i)) {
				return a.at(i)
			}
			v := int64(a.at(i)) + sign*int64(b.at(i))
			if v >= types.InfinityDate || v <= -types.InfinityDate {
				c.failf(i, "date out of range: %s %+d days", show(int64(a.at(i)), types.Date32), sign*int64(b.at(i)))
			}
			return int32(v)
		})
	}
}

// dateToMicros is the timestamp at the start of a day.
func dateToMicros(d int32) (int64, bool) {
	switch d {
	case types.InfinityDate:
		return types.InfinityTS, true
	case -types.InfinityDate:
		return -types.InfinityTS, true
	}
	const most = math.MaxInt64 / types.DayMicros
	return int64(d) * types.DayMicros, int64(d) >= -most && int64(d) <= most
}

// addInterval moves a timestamp in microseconds; ok is false outside the range of timestamps.
func addInterval(us int64, v monthDayNano, sign int64) (int64, bool) {
	if infiniteTS(us) {
		return us, true
	}
	days, rest := types.SplitMicros(us)
	days = types.AddMonths(days, sign*int64(v.Months)) + sign*int64(v.Days)
	us, ok := mulAdd64(days, types.DayMicros, rest)
	if !ok {
		return 0, false
	}
	us, ok = add64(us, sign*(v.Nanoseconds/1000))
	return us, ok && !infiniteTS(us) && us != math.MinInt64
}

func add64(a, b int64) (int64, bool) {
	s := a + b
	return s, (a^s)&(b^s) >= 0
}

// mulAdd64 is a*b + c for b > 0, when it fits.
func mulAdd64(a, b, c int64) (int64, bool) {
	if a > math.MaxInt64/b || a < math.MinInt64/b-1 {
		return 0, false
	}
	if a == math.MinInt64/b-1 { // only the sum may fit
		p, ok := add64((a+1)*b, c-b)
		return p, ok
	}
	return add64(a*b, c)
}

func tsInterval(ts, span int, sign int64) Kernel {
	return func(c *Call) (arrow.Array, error) {
		a, b := col[int64](c, ts), col[monthDayNano](c, span)
		zoned := c.Ret.Kind == types.TimestampTZ && c.Env.TimeZone != nil
		return fixed(c, func(i int) int64 {
			us, v := a.at(i), b.at(i)
			var ok bool
			if zoned && (v.Months != 0 || v.Days != 0) {
				local := types.ToLocal(us, c.Env.TimeZone)
				if local, ok = addInterval(local, monthDayNano{Months: v.Months, Days: v.Days}, sign); ok {
					us = keepOffset(us, local, c.Env.TimeZone)
					us, ok = addInterval(us, monthDayNano{Nanoseconds: v.Nanoseconds}, sign)
				}
			} else {
				us, ok = addInterval(us, v, sign)
			}
			if !ok {
				c.failf(i, "timestamp out of range: %s %s %s", show(a.at(i), c.Ret), plusMinus(sign), show(v, types.Span))
			}
			return us
		})
	}
}

// keepOffset is the instant of a local time that was moved from us: of a time that the clocks show twice, the one with us's offset.
func keepOffset(us, local int64, zone *time.Location) int64 {
	off := types.ZoneOffset(zone, us)
	if at := local - off*1_000_000; types.ZoneOffset(zone, at) == off {
		return at
	}
	return types.FromLocal(local, zone)
}

func plusMinus(sign int64) string {
	if sign < 0 {
		return "-"
	}
	return "+"
}

func dateInterval(date, span int, sign int64) Kernel {
	return func(c *Call) (arrow.Array, error) {
		a, b := col[int32](c, date), col[monthDayNano](c, span)
		return fixed(c, func(i int) int64 {
			us, ok := dateToMicros(a.at(i))
			if ok {
				us, ok = addInterval(us, b.at(i), sign)
			}
			if !ok {
				c.failf(i, "timestamp out of range: %s %s %s", show(int64(a.at(i)), types.Date32), plusMinus(sign), show(b.at(i), types.Span))
			}
			return us
		})
	}
}

func timeInterval(clock, span int, sign int64) Kernel {
	return func(c *Call) (arrow.Array, error) {
		a, b := col[int64](c, clock), col[monthDayNano](c, span)
		return fixed(c, func(i int) int64 {
			us := a.at(i) + sign*(b.at(i).Nanoseconds/1000%types.DayMicros)
			_, us = types.SplitMicros(us)
			return us
		})
	}
}

func dateTime(date, clock int) Kernel {
	return func(c *Call) (arrow.Array, error) {
		a, b := col[int32](c, date), col[int64](c, clock)
		return fixed(c, func(i int) int64 {
			us, ok := dateToMicros(a.at(i))
			if !ok {
				c.failf(i, "timestamp out of range: %s", show(int64(a.at(i)), types.Date32))
			}
			if infiniteTS(us) {
				return us
			}
			return us + b.at(i)
		})
	}
}

// tsMinusTS is the exact difference in days and time.
func tsMinusTS(c *Call) (arrow.Array, error) {
	a, b := col[int64](c, 0), col[int64](c, 1)
	zone := c.Env.TimeZone
	if c.Types[0].Kind != types.TimestampTZ {
		zone = nil
	}
	return fixed(c, func(i int) monthDayNano {
		x, y := a.at(i), b.at(i)
		d := x - y
		if (x^y)&(x^d) < 0 || infiniteTS(x) || infiniteTS(y) {
			c.failf(i, "timestamp difference out of range: %s - %s", show(x, c.Types[0]), show(y, c.Types[1]))
			return monthDayNano{}
		}
		if zone != nil {
			return zonedDifference(x, y, zone)
		}
		return monthDayNano{Days: int32(d / types.DayMicros), Nanoseconds: d % types.DayMicros * 1000}
	})
}

// zonedDifference counts days on the clocks of a zone, and what is left as time that passed.
func zonedDifference(x, y int64, zone *time.Location) monthDayNano {
	sign := int64(1)
	if x < y {
		x, y, sign = y, x, -1
	}
	local := types.ToLocal(y, zone)
	days := (types.ToLocal(x, zone) - local) / types.DayMicros
	at := keepOffset(y, local+days*types.DayMicros, zone)
	if at > x {
		days--
		at = keepOffset(y, local+days*types.DayMicros, zone)
	}
	return monthDayNano{Days: int32(sign * days), Nanoseconds: sign * (x - at) * 1000}
}

// makeInterval checks the parts of an interval.
func makeInterval(months, days, us int64) (monthDayNano, bool) {
	v := monthDayNano{Months: int32(months), Days: int32(days), Nanoseconds: us * 1000}
	return v, int64(v.Months) == months && int64(v.Days) == days && us <= types.MaxIntervalMicros && us >= -types.MaxIntervalMicros
}

func addIntervals(sign int64) Kernel {
	return func(c *Call) (arrow.Array, error) {
		a, b := col[monthDayNano](c, 0), col[monthDayNano](c, 1)
		return fixed(c, func(i int) monthDayNano {
			x, y := a.at(i), b.at(i)
			v, ok := makeInterval(int64(x.Months)+sign*int64(y.Months), int64(x.Days)+sign*int64(y.Days), x.Nanoseconds/1000+sign*(y.Nanoseconds/1000))
			if !ok {
				c.failf(i, "interval out of range: %s %s %s", show(x, types.Span), plusMinus(sign), show(y, types.Span))
			}
			return v
		})
	}
}

func negateInterval(c *Call) (arrow.Array, error) {
	a := col[monthDayNano](c, 0)
	return fixed(c, func(i int) monthDayNano {
		x := a.at(i)
		return monthDayNano{Months: -x.Months, Days: -x.Days, Nanoseconds: -x.Nanoseconds}
	})
}

func timesInterval(span, n int) Kernel {
	return func(c *Call) (arrow.Array, error) {
		a, b := col[monthDayNano](c, span), col[int64](c, n)
		return fixed(c, func(i int) monthDayNano {
			x, k := a.at(i), b.at(i)
			m, ok1 := mul64(int64(x.Months), k)
			d, ok2 := mul64(int64(x.Days), k)
			us, ok3 := mul64(x.Nanoseconds/1000, k)
			v, ok4 := makeInterval(m, d, us)
			if !(ok1 && ok2 && ok3 && ok4) {
				c.failf(i, "interval out of range: %s * %d", show(x, types.Span), k)
			}
			return v
		})
	}
}

func mul64(a, b int64) (int64, bool) {
	p := a * b
	return p, a == 0 || p/a == b && !(a == -1 && b == math.MinInt64)
}

// scaleInterval multiplies or divides by a DOUBLE. What is left of a month becomes days of a month of thirty, what is left of a day time.
func scaleInterval(span, factor int, divide bool) Kernel {
	return func(c *Call) (arrow.Array, error) {
		a, b := col[monthDayNano](c, span), col[float64](c, factor)
		return fixed(c, func(i int) monthDayNano {
			x, f := a.at(i), b.at(i)
			if divide && f == 0 {
				c.failf(i, "division by zero in INTERVAL '%s' / 0", show(x, types.Span))
				return monthDayNano{}
			}
			v, ok := scaledInterval(x, f, divide)
			if !ok {
				c.failf(i, "interval out of range: %s scaled by %s", show(x, types.Span), show(f, types.Float64))
			}
			return v
		})
	}
}

func scaledInterval(x monthDayNano, f float64, divide bool) (monthDayNano, bool) {
	apply := func(v float64) float64 {
		if divide {
			return v / f
		}
		return v * f
	}
	// As in PostgreSQL, what is left is rounded to millionths before it is passed down.
	millionths := func(v float64) float64 { return math.RoundToEven(v*1e6) / 1e6 }
	months, days := apply(float64(x.Months)), apply(float64(x.Days))
	wm, wd := math.Trunc(months), math.Trunc(days)
	more := millionths(float64((months - wm) * 30))
	seconds := millionths(float64((days - wd + (more - math.Trunc(more))) * 86400))
	if math.Abs(seconds) >= 86400 {
		over := math.Trunc(seconds / 86400)
		wd += over
		seconds -= float64(over * 86400)
	}
	wd += math.Trunc(more)
	us := math.RoundToEven(apply(float64(x.Nanoseconds/1000)) + float64(seconds*1e6))
	if !(math.Abs(wm) < math.MaxInt32 && math.Abs(wd) < math.MaxInt32 && math.Abs(us) <= types.MaxIntervalMicros) {
		return monthDayNano{}, false
	}
	return makeInterval(int64(wm), int64(wd), int64(us))
}
