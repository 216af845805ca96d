package fn

import (
	"math"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/types"
)

// dates is what makes and moves dates, times and intervals.
var dates = []*Scalar{
	stable("now", "The time at the start of the run, or of the step.", []string{"current_timestamp", "get_current_timestamp", "transaction_timestamp"}, types.TsTZ, "typeof(now())", "TIMESTAMP WITH TIME ZONE",
		func(c *Call) int64 { return c.Env.Now.UnixMicro() }),
	stable("localtimestamp", "now() as a TIMESTAMP on the session's clocks.", []string{"current_localtimestamp"}, types.TsUS, "typeof(localtimestamp)", "TIMESTAMP",
		func(c *Call) int64 { return types.ToLocal(c.Env.Now.UnixMicro(), c.Env.TimeZone) }),
	stable("localtime", "The time of day on the session's clocks.", []string{"current_time", "get_current_time", "current_localtime"}, types.TimeUS, "typeof(localtime)", "TIME",
		func(c *Call) int64 {
			_, us := types.SplitMicros(types.ToLocal(c.Env.Now.UnixMicro(), c.Env.TimeZone))
			return us
		}),
	stable("current_date", "The date on the session's clocks.", []string{"today"}, types.Date32, "typeof(current_date)", "DATE",
		func(c *Call) int32 {
			d, _ := types.SplitMicros(types.ToLocal(c.Env.Now.UnixMicro(), c.Env.TimeZone))
			return int32(d)
		}),
	{Name: "date_add", Category: DateTime, Purity: Stable, Summary: "Move a date or timestamp by an interval.", Overloads: timePlus, Examples: []Example{ex("date_add(DATE '2024-01-01', INTERVAL 1 DAY)", "2024-01-02 00:00:00")}},
	{Name: "age", Category: DateTime, Purity: Stable, Summary: "The time between two timestamps in years, months, days and time, or between a timestamp and today.", Overloads: []Overload{
		fallible(Types{types.TsUS, types.TsUS}, types.Span, age(types.TsUS)), fallible(Types{types.TsTZ, types.TsTZ}, types.Span, age(types.TsTZ)), fallible(Types{types.TsUS}, types.Span, age(types.TsUS))},
		Examples: []Example{ex("age(TIMESTAMP '2001-04-10', TIMESTAMP '1957-06-13')", "43 years 9 months 27 days")}},
	{Name: "timezone", Category: DateTime, Summary: "x AT TIME ZONE z: the instant of a TIMESTAMP read on the clocks of a zone, or what those clocks show at a TIMESTAMPTZ.", Overloads: []Overload{
		fallible(Types{str, types.TsUS}, types.TsTZ, atZone(types.FromLocal)), fallible(Types{str, types.TsTZ}, types.TsUS, atZone(types.ToLocal))},
		Examples: []Example{ex("TIMESTAMPTZ '2024-07-05 13:04:05+00' AT TIME ZONE 'Europe/London'", "2024-07-05 14:04:05")}},
	{Name: "time_bucket", Category: DateTime, Purity: Stable, Summary: "The start of the bucket that holds a date or timestamp. Buckets of days and less are counted from 2000-01-03, of months from 2000-01-01, or from an offset or origin.", Overloads: bucketOverloads(),
		Examples: []Example{ex("time_bucket(INTERVAL 1 HOUR, TIMESTAMP '2024-02-05 13:04:05')", "2024-02-05 13:00:00"), ex("time_bucket(INTERVAL 1 WEEK, DATE '2024-02-07')", "2024-02-05")}},
	{Name: "make_date", Category: DateTime, Summary: "A date of year, month and day, or of days since 1970.", Overloads: []Overload{
		fallible(Types{types.Int64, types.Int64, types.Int64}, types.Date32, func(c *Call) (arrow.Array, error) {
			y, m, d := col[int64](c, 0), col[int64](c, 1), col[int64](c, 2)
			return fixed(c, func(i int) int32 { return int32(dateOf(c, i, y.at(i), m.at(i), d.at(i))) })
		}),
		strict(Types{types.Int32}, types.Date32, relabel)},
		Examples: []Example{ex("make_date(2024, 2, 29)", "2024-02-29")}},
	{Name: "make_time", Category: DateTime, Summary: "A time of hour, minute and second.", Overloads: []Overload{
		fallible(Types{types.Int64, types.Int64, types.Float64}, types.TimeUS, func(c *Call) (arrow.Array, error) {
			h, m, s := col[int64](c, 0), col[int64](c, 1), col[float64](c, 2)
			return fixed(c, func(i int) int64 { return timeOf(c, i, h.at(i), m.at(i), s.at(i)) })
		})}, Examples: []Example{ex("make_time(12, 34, 56.789)", "12:34:56.789")}},
	{Name: "make_timestamp", Category: DateTime, Summary: "A timestamp of its parts, or of microseconds since 1970.", Overloads: []Overload{
		fallible(Types{types.Int64, types.Int64, types.Int64, types.Int64, types.Int64, types.Float64}, types.TsUS, func(c *Call) (arrow.Array, error) {
			y, mo, d, h, mi, s := col[int64](c, 0), col[int64](c, 1), col[int64](c, 2), col[int64](c, 3), col[int64](c, 4), col[float64](c, 5)
			return fixed(c, func(i int) int64 {
				us, ok := mulAdd64(dateOf(c, i, y.at(i), mo.at(i), d.at(i)), types.DayMicros, timeOf(c, i, h.at(i), mi.at(i), s.at(i)))
				if !ok {
					c.failf(i, "timestamp out of range")
				}
				return us
			})
		}),
		strict(Types{types.Int64}, types.TsUS, relabel)}, Examples: []Example{ex("make_timestamp(2024, 2, 29, 12, 34, 56.789)", "2024-02-29 12:34:56.789")}},
	{Name: "make_timestamp_ms", Category: DateTime, Summary: "A timestamp of milliseconds since 1970.", Overloads: []Overload{fallible(Types{types.Int64}, types.TsUS, fromUnits(1000))}, Examples: []Example{ex("make_timestamp_ms(1707999296789)", "2024-02-15 12:14:56.789")}},
	{Name: "make_timestamp_ns", Category: DateTime, Summary: "A timestamp of nanoseconds since 1970.", Overloads: []Overload{strict(Types{types.Int64}, types.TsNS, relabel)}, Examples: []Example{ex("make_timestamp_ns(1707999296789000000)", "2024-02-15 12:14:56.789")}},
	{Name: "to_timestamp", Category: DateTime, Summary: "The instant of seconds since 1970.", Overloads: []Overload{fallible(Types{types.Float64}, types.TsTZ, func(c *Call) (arrow.Array, error) {
		s := col[float64](c, 0)
		return fixed(c, func(i int) int64 {
			us := math.Round(s.at(i) * 1e6)
			if !(math.Abs(us) < 0x1p63) {
				c.failf(i, "timestamp out of range: %s seconds", show(s.at(i), types.Float64))
				return 0
			}
			return int64(us)
		})
	})}, Examples: []Example{ex("epoch_ms(to_timestamp(1707999296.789))", "1707999296789")}},
	{Name: "epoch_ms", Category: DateTime, Summary: "Milliseconds since 1970, or the timestamp of them.", Overloads: append(toUnits(1000), fallible(Types{types.Int64}, types.TsUS, fromUnits(1000))), Examples: []Example{ex("epoch_ms(TIMESTAMP '2024-02-15 12:34:56.5')", "1708000496500"), ex("epoch_ms(701222400000)", "1992-03-22 00:00:00")}},
	{Name: "epoch_us", Category: DateTime, Summary: "Microseconds since 1970.", Overloads: toUnits(1), Examples: []Example{ex("epoch_us(TIMESTAMP '2024-02-15 12:34:56.5')", "1708000496500000")}},
	{Name: "epoch_ns", Category: DateTime, Summary: "Nanoseconds since 1970.", Overloads: toNanos(), Examples: []Example{ex("epoch_ns(TIMESTAMP '2024-02-15 12:34:56.5')", "1708000496500000000")}},
	toInterval("to_millennia", 12000, 0, 0, "1000 years"), toInterval("to_centuries", 1200, 0, 0, "100 years"), toInterval("to_decades", 120, 0, 0, "10 years"),
	toInterval("to_years", 12, 0, 0, "1 year"), toInterval("to_quarters", 3, 0, 0, "3 months"), toInterval("to_months", 1, 0, 0, "1 month"),
	toInterval("to_weeks", 0, 7, 0, "7 days"), toInterval("to_days", 0, 1, 0, "1 day"),
	toInterval("to_hours", 0, 0, 3_600_000_000, "01:00:00"), toInterval("to_minutes", 0, 0, 60_000_000, "00:01:00"), toInterval("to_microseconds", 0, 0, 1, "00:00:00.000001"),
	toSeconds("to_seconds", 1e6, "00:00:01"), toSeconds("to_milliseconds", 1e3, "00:00:00.001"),
	strftimeFn, strptimeFn, tryStrptimeFn,
}

func stable[T any](name, about string, aliases []string, ret types.Type, sql, want string, f func(c *Call) T) *Scalar {
	return &Scalar{Name: name, Category: DateTime, Purity: Stable, Summary: about, Aliases: aliases, Examples: []Example{ex(sql, want)},
		Overloads: []Overload{strict(nil, ret, func(c *Call) (arrow.Array, error) {
			v := f(c)
			return fixed(c, func(int) T { return v })
		})}}
}

func dateOf(c *Call, i int, y, m, d int64) int64 {
	if y < -300_000 || y > 300_000 || m < 1 || m > 12 || d < 1 || d > types.MonthDays(y, m) {
		c.failf(i, "date out of range: %d-%d-%d", y, m, d)
		return 0
	}
	return types.DaysOf(y, m, d)
}

func timeOf(c *Call, i int, h, m int64, s float64) int64 {
	us := math.Round(s * 1e6)
	if h >= 0 && h <= 24 && m >= 0 && m <= 59 && us >= 0 && us <= 60e6 {
		if t := (h*60+m)*60_000_000 + int64(us); t <= types.DayMicros {
			return t
		}
	}
	c.failf(i, "time out of range: %d:%d:%s", h, m, show(s, types.Float64))
	return 0
}

func fromUnits(per int64) Kernel {
	return func(c *Call) (arrow.Array, error) {
		v := col[int64](c, 0)
		return fixed(c, func(i int) int64 {
			us, ok := mul64(v.at(i), per)
			if !ok {
				c.failf(i, "timestamp out of range: %d", v.at(i))
			}
			return us
		})
	}
}

// toUnits is the time since 1970 in units of per microseconds.
func toUnits(per int64) []Overload {
	var out []Overload
	for _, t := range (Types{types.Date32, types.TsUS, types.TsTZ, types.TimeUS, types.Span}) {
		out = append(out, fallible(Types{t}, types.Int64, func(c *Call) (arrow.Array, error) {
			at := instantOf(c, 0, t)
			return fixedOrNull(c, func(i int) (int64, bool) { return at(i) / per, finite(t, at(i)) })
		}))
	}
	return out
}

func toNanos() []Overload {
	out := []Overload{strict(Types{types.TsNS}, types.Int64, relabel)}
	for _, t := range (Types{types.Date32, types.TsUS, types.TsTZ, types.TimeUS, types.Span}) {
		out = append(out, fallible(Types{t}, types.Int64, func(c *Call) (arrow.Array, error) {
			at := instantOf(c, 0, t)
			return fixedOrNull(c, func(i int) (int64, bool) {
				ns, ok := mul64(at(i), 1000)
				if !ok && finite(t, at(i)) {
					c.failf(i, "the nanoseconds since 1970 are out of range")
				}
				return ns, finite(t, at(i))
			})
		}))
	}
	return out
}

// finite reports whether microseconds of a type are no infinity, which has no number.
func finite(t types.Type, us int64) bool {
	return t.Kind == types.Interval || t.Kind == types.Time || us != math.MaxInt64 && us != -math.MaxInt64
}

// instantOf reads microseconds since 1970; of an interval its length.
func instantOf(c *Call, arg int, t types.Type) func(i int) int64 {
	switch t.Kind {
	case types.Date:
		v := col[int32](c, arg)
		return func(i int) int64 { us, _ := dateToMicros(v.at(i)); return us }
	case types.Interval:
		v := col[monthDayNano](c, arg)
		return func(i int) int64 {
			x := intervalOf(v.at(i))
			return (int64(x.Months)*30+int64(x.Days))*types.DayMicros + x.Micros
		}
	}
	return col[int64](c, arg).at
}

func toInterval(name string, months, days, us int64, want string) *Scalar {
	return &Scalar{Name: name, Category: DateTime, Summary: "An interval of so many " + name[3:] + ".", Examples: []Example{ex(name+"(1)", want)},
		Overloads: []Overload{fallible(Types{types.Int64}, types.Span, func(c *Call) (arrow.Array, error) {
			n := col[int64](c, 0)
			return fixed(c, func(i int) monthDayNano {
				k := n.at(i)
				m, ok1 := mul64(k, months)
				d, ok2 := mul64(k, days)
				u, ok3 := mul64(k, us)
				v, ok4 := makeInterval(m, d, u)
				if !(ok1 && ok2 && ok3 && ok4) {
					c.failf(i, "interval out of range: %d %s", k, name[3:])
				}
				return v
			})
		})}}
}

func toSeconds(name string, per float64, want string) *Scalar {
	return &Scalar{Name: name, Category: DateTime, Summary: "An interval of so many " + name[3:] + ".", Examples: []Example{ex(name+"(1)", want)},
		Overloads: []Overload{fallible(Types{types.Float64}, types.Span, func(c *Call) (arrow.Array, error) {
			n := col[float64](c, 0)
			return fixed(c, func(i int) monthDayNano {
				us := math.Round(n.at(i) * per)
				if !(math.Abs(us) <= types.MaxIntervalMicros) {
					c.failf(i, "interval out of range: %s %s", show(n.at(i), types.Float64), name[3:])
					return monthDayNano{}
				}
				return monthDayNano{Nanoseconds: int64(us) * 1000}
			})
		})}}
}

// age counts calendar months first, then days, then time.
func age(t types.Type) Kernel {
	return func(c *Call) (arrow.Array, error) {
		a := microsOf(c, 0, t)
		b := func(i int) int64 { return a(i) }
		if len(c.Args) == 2 {
			b = microsOf(c, 1, t)
		} else {
			today, _ := types.SplitMicros(types.ToLocal(c.Env.Now.UnixMicro(), c.Env.TimeZone))
			x := a
			a, b = func(int) int64 { return today * types.DayMicros }, x
		}
		return fixedOrNull(c, func(i int) (monthDayNano, bool) {
			x, y := a(i), b(i)
			if infiniteTS(x) || infiniteTS(y) {
				return monthDayNano{}, false
			}
			return ageOf(x, y), true
		})
	}
}

func ageOf(x, y int64) monthDayNano {
	sign := int32(1)
	if x < y {
		x, y, sign = y, x, -1
	}
	xd, xr := types.SplitMicros(x)
	yd, yr := types.SplitMicros(y)
	us := xr - yr
	xy, xm, xday := types.CivilOf(xd)
	yy, ym, yday := types.CivilOf(yd)
	days := xday - yday
	if us < 0 {
		us += types.DayMicros
		days--
	}
	months := (xy*12 + xm) - (yy*12 + ym)
	if days < 0 {
		months--
		days += types.MonthDays(yy, ym) // the days that were left in the first month
	}
	return monthDayNano{Months: sign * int32(months), Days: sign * int32(days), Nanoseconds: int64(sign) * us * 1000}
}

func atZone(move func(int64, *time.Location) int64) Kernel {
	return func(c *Call) (arrow.Array, error) {
		z, v := textCol(c, 0), col[int64](c, 1)
		zone := zoneFinder(c, z)
		return fixed(c, func(i int) int64 {
			loc := zone(i)
			if loc == nil {
				return 0
			}
			return move(v.at(i), loc)
		})
	}
}

// zoneFinder finds the zone named in each row, once while it stays the same; nil after a failure.
func zoneFinder(c *Call, names textColumn) func(i int) *time.Location {
	var loc *time.Location
	var err error
	last, known := "", false
	return func(i int) *time.Location {
		if name := names.at(i); !known || string(name) != last {
			last, known = string(name), true
			loc, err = types.LoadZone(last)
		}
		if err != nil {
			c.Fail(i, err)
			return nil
		}
		return loc
	}
}

// The origins of time_bucket.
var (
	bucketOrigin = types.DaysOf(2000, 1, 3) * types.DayMicros // a Monday
	monthOrigin  = types.DaysOf(2000, 1, 1) * types.DayMicros
)

// Bucket is the start of the bucket of a width that holds us, when buckets are counted from origin. A width is months, or days and
// time, and positive. Months begin on their first day, whatever day the origin is.
func Bucket(us int64, width types.IntervalValue, origin int64) int64 {
	if width.Months == 0 {
		w := int64(width.Days)*types.DayMicros + width.Micros
		d := us - origin
		return us - (d - types.FloorDiv(d, w)*w)
	}
	od, _ := types.SplitMicros(origin)
	oy, om, _ := types.CivilOf(od)
	d, _ := types.SplitMicros(us)
	y, m, _ := types.CivilOf(d)
	w := int64(width.Months)
	return types.DaysOf(oy, om+types.FloorDiv((y*12+m)-(oy*12+om), w)*w, 1) * types.DayMicros
}

// checkWidth reports what is wrong with the width of a bucket.
func checkWidth(v types.IntervalValue) error {
	switch {
	case v.Months != 0 && (v.Days != 0 || v.Micros != 0):
		return errs.New(errs.Data, "evaluate", "a bucket is as wide as months, or as days and time, not both")
	case v.Months < 0 || v.Months == 0 && int64(v.Days)*types.DayMicros+v.Micros <= 0:
		return errs.New(errs.Data, "evaluate", "the width of a bucket must be positive, not %s", types.Format(v, types.Span))
	}
	return nil
}

// bucketOverloads is time_bucket(width, ts [, offset | origin | zone]).
func bucketOverloads() []Overload {
	var out []Overload
	for _, t := range (Types{types.Date32, types.TsUS, types.TsTZ}) {
		out = append(out,
			fallible(Types{types.Span, t}, t, bucket(t, types.NullType)),
			fallible(Types{types.Span, t, types.Span}, t, bucket(t, types.Span)),
			fallible(Types{types.Span, t, t}, t, bucket(t, t)))
	}
	return append(out, fallible(Types{types.Span, types.TsTZ, str}, types.TsTZ, bucket(types.TsTZ, str)))
}

func bucket(t, third types.Type) Kernel {
	return func(c *Call) (arrow.Array, error) {
		width := col[monthDayNano](c, 0)
		at := instantOf(c, 1, t)
		origin := func(int, types.IntervalValue) int64 { return 0 }
		var zone func(i int) *time.Location
		var offset column[monthDayNano]
		shifted := third.Kind == types.Interval
		switch {
		case shifted:
			offset = col[monthDayNano](c, 2)
		case third.Kind == types.Varchar:
			zone = zoneFinder(c, textCol(c, 2))
		case third.Kind != types.Null:
			o := instantOf(c, 2, t)
			origin = func(i int, _ types.IntervalValue) int64 { return o(i) }
		}
		if shifted || zone != nil || third.Kind == types.Null {
			origin = func(_ int, w types.IntervalValue) int64 {
				if w.Months != 0 {
					return monthOrigin
				}
				return bucketOrigin
			}
		}
		start := func(i int) int64 {
			us, w := at(i), intervalOf(width.at(i))
			if infiniteTS(us) {
				return us
			}
			if err := checkWidth(w); err != nil {
				c.Fail(i, err)
				return 0
			}
			switch {
			case zone != nil:
				loc := zone(i)
				if loc == nil {
					return 0
				}
				local := types.ToLocal(us, loc)
				return localStart(us, local, Bucket(local, w, origin(i, w)), w.Months == 0 && w.Days == 0, loc)
			case shifted:
				back, ok1 := addInterval(us, offset.at(i), -1)
				v, ok2 := addInterval(Bucket(back, w, origin(i, w)), offset.at(i), 1)
				if !ok1 || !ok2 {
					c.failf(i, "timestamp out of range")
				}
				return v
			}
			return Bucket(us, w, origin(i, w))
		}
		if t.Kind == types.Date {
			return fixed(c, func(i int) int32 {
				us := start(i)
				switch us {
				case types.InfinityTS:
					return types.InfinityDate
				case -types.InfinityTS:
					return -types.InfinityDate
				}
				return int32(types.FloorDiv(us, types.DayMicros))
			})
		}
		return fixed(c, start)
	}
}
