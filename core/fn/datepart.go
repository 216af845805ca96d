package fn

import (
	"slices"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/types"
)

// datePart is one field of dates, times and intervals, and the unit of date_trunc and date_diff. A nil function means the field
// does not exist there.
type datePart struct {
	names []string
	about string
	day   func(days int64) int64                // of a date
	clock func(us int64) int64                  // of the microseconds of a day
	span  func(v types.IntervalValue) int64     // of an interval
	trunc func(days int64) int64                // the first day of the unit
	unit  int64                                 // clock units: their length in microseconds
	count func(days int64) int64                // date units: a number that grows by one per unit
	step  func(n int64) (months, days int64)    // date units: n of them as an interval
	zone  func(off int64) int64                 // of the offset from UTC
	exact func(days, us int64) (float64, int64) // DOUBLE-valued fields
	fnNot bool                                  // no function of this name
}

func year(d int64) int64  { y, _, _ := types.CivilOf(d); return y }
func month(d int64) int64 { _, m, _ := types.CivilOf(d); return m }
func civilDay(d int64) int64 {
	_, _, x := types.CivilOf(d)
	return x
}

// isodow is 1 for Monday to 7 for Sunday; day 0 was a Thursday.
func isodow(d int64) int64 { d += 3; return d - types.FloorDiv(d, 7)*7 + 1 }

// isoWeek is the week that holds the day's Thursday, and that Thursday's year.
func isoWeek(d int64) (y, w int64) {
	thursday := d - isodow(d) + 4
	y = year(thursday)
	return y, (thursday-types.DaysOf(y, 1, 1))/7 + 1
}

func isoYear(d int64) int64 { y, _ := isoWeek(d); return y }

func yearStart(d int64, years int64) int64 {
	return types.DaysOf(types.FloorDiv(year(d), years)*years, 1, 1)
}

func century(y, per int64) int64 {
	if y > 0 {
		return (y-1)/per + 1
	}
	return -(-y)/per - 1
}

func months(n int64) func(int64) (int64, int64) {
	return func(k int64) (int64, int64) { return n * k, 0 }
}

var partList = []*datePart{
	{names: []string{"year", "years", "yr", "yrs", "y"}, about: "The year.", day: year, span: func(v types.IntervalValue) int64 { return int64(v.Months / 12) },
		trunc: func(d int64) int64 { return yearStart(d, 1) }, count: year, step: months(12)},
	{names: []string{"month", "months", "mon", "mons"}, about: "The month, from 1.", day: month, span: func(v types.IntervalValue) int64 { return int64(v.Months % 12) },
		trunc: func(d int64) int64 { y, m, _ := types.CivilOf(d); return types.DaysOf(y, m, 1) },
		count: func(d int64) int64 { y, m, _ := types.CivilOf(d); return y*12 + m }, step: months(1)},
	{names: []string{"day", "days", "d", "dayofmonth"}, about: "The day of the month.", day: civilDay, span: func(v types.IntervalValue) int64 { return int64(v.Days) },
		trunc: func(d int64) int64 { return d }, count: func(d int64) int64 { return d }, step: func(n int64) (int64, int64) { return 0, n }},
	{names: []string{"decade", "decades", "dec", "decs"}, about: "The year divided by ten.", day: func(d int64) int64 { return types.FloorDiv(year(d), 10) }, span: func(v types.IntervalValue) int64 { return int64(v.Months / 120) },
		trunc: func(d int64) int64 { return yearStart(d, 10) }, count: func(d int64) int64 { return year(d) / 10 }, step: months(120)},
	{names: []string{"century", "centuries", "cent", "c"}, about: "The century; the 21st began with 2001.", day: func(d int64) int64 { return century(year(d), 100) }, span: func(v types.IntervalValue) int64 { return int64(v.Months / 1200) },
		trunc: func(d int64) int64 { return yearStart(d, 100) }, count: func(d int64) int64 { return year(d) / 100 }, step: months(1200)},
	{names: []string{"millennium", "millennia", "millenniums", "mil", "mils"}, about: "The millennium; the 3rd began with 2001.", day: func(d int64) int64 { return century(year(d), 1000) }, span: func(v types.IntervalValue) int64 { return int64(v.Months / 12000) },
		trunc: func(d int64) int64 { return yearStart(d, 1000) }, count: func(d int64) int64 { return year(d) / 1000 }, step: months(12000)},
	{names: []string{"quarter", "quarters"}, about: "The quarter, from 1.", day: func(d int64) int64 { return (month(d)-1)/3 + 1 }, span: func(v types.IntervalValue) int64 { return int64(v.Months%12/3 + 1) },
		trunc: func(d int64) int64 { y, m, _ := types.CivilOf(d); return types.DaysOf(y, (m-1)/3*3+1, 1) },
		count: func(d int64) int64 { y, m, _ := types.CivilOf(d); return y*4 + (m-1)/3 }, step: months(3)},
	{names: []string{"week", "weeks", "w", "weekofyear"}, about: "The ISO week.", day: func(d int64) int64 { _, w := isoWeek(d); return w },
		trunc: func(d int64) int64 { return d - isodow(d) + 1 }, step: func(n int64) (int64, int64) { return 0, 7 * n }},
	{names: []string{"yearweek"}, about: "The ISO year and week as YYYYWW.", day: func(d int64) int64 { y, w := isoWeek(d); return y*100 + w }, trunc: func(d int64) int64 { return d - isodow(d) + 1 }},
	{names: []string{"isoyear"}, about: "The year that the ISO week belongs to.", day: isoYear, trunc: func(d int64) int64 { return isoYearStart(isoYear(d)) }, count: isoYear, step: months(12)},
	{names: []string{"dow", "dayofweek", "weekday"}, about: "The day of the week, 0 for Sunday.", day: func(d int64) int64 { return isodow(d) % 7 }, trunc: func(d int64) int64 { return d }},
	{names: []string{"isodow"}, about: "The day of the week, 1 for Monday to 7 for Sunday.", day: isodow, trunc: func(d int64) int64 { return d }},
	{names: []string{"doy", "dayofyear"}, about: "The day of the year, from 1.", day: func(d int64) int64 { return d - yearStart(d, 1) + 1 }, trunc: func(d int64) int64 { return d }},
	{names: []string{"era"}, about: "1, or 0 before Christ.", day: func(d int64) int64 { return min(max(year(d), 0), 1) }},
	clockPart([]string{"hour", "hours", "hr", "hrs", "h"}, "The hour.", 3_600_000_000, func(us int64) int64 { return us / 3_600_000_000 }),
	clockPart([]string{"minute", "minutes", "min", "mins", "m"}, "The minute.", 60_000_000, func(us int64) int64 { return us / 60_000_000 % 60 }),
	clockPart([]string{"second", "seconds", "sec", "secs", "s"}, "The second.", 1_000_000, func(us int64) int64 { return us / 1_000_000 % 60 }),
	clockPart([]string{"millisecond", "milliseconds", "ms", "msec", "msecs"}, "The milliseconds of the minute.", 1000, func(us int64) int64 { return us / 1000 % 60_000 }),
	clockPart([]string{"microsecond", "microseconds", "us", "usec", "usecs"}, "The microseconds of the minute.", 1, func(us int64) int64 { return us % 60_000_000 }),
	{names: []string{"nanosecond", "nanoseconds", "ns"}, about: "The nanoseconds of the minute.", day: zero, clock: func(us int64) int64 { return us % 60_000_000 * 1000 }, span: func(v types.IntervalValue) int64 { return v.Micros % 60_000_000 * 1000 }},
	{names: []string{"epoch"}, about: "Seconds since 1970, or the length of an interval in seconds, as a DOUBLE.", exact: func(days, us int64) (float64, int64) { return 1e6, days*types.DayMicros + us }},
	{names: []string{"julian"}, about: "The Julian day as a DOUBLE.", exact: func(days, us int64) (float64, int64) { return 86400e6, (days+2_440_588)*types.DayMicros + us }},
	{names: []string{"timezone"}, about: "The offset from UTC in seconds.", zone: func(off int64) int64 { return off }, fnNot: true},
	{names: []string{"timezone_hour"}, about: "The hours of the offset from UTC.", zone: func(off int64) int64 { return off / 3600 }},
	{names: []string{"timezone_minute"}, about: "The minutes of the offset from UTC.", zone: func(off int64) int64 { return off / 60 % 60 }},
}

func isoYearStart(y int64) int64 { d := types.DaysOf(y, 1, 4); return d - isodow(d) + 1 }

func zero(int64) int64 { return 0 }

func clockPart(names []string, about string, unit int64, f func(us int64) int64) *datePart {
	return &datePart{names: names, about: about, day: zero, clock: f, unit: unit, span: func(v types.IntervalValue) int64 { return f(v.Micros) }}
}

var partByName = func() map[string]*datePart {
	m := map[string]*datePart{}
	for _, p := range partList {
		for _, n := range p.names {
			m[n] = p
		}
	}
	return m
}()

func findPart(name string) (*datePart, error) {
	p := partByName[strings.ToLower(name)]
	if p == nil {
		known := make([]string, len(partList))
		for i, q := range partList {
			known[i] = q.names[0]
		}
		e := errs.New(errs.Data, "evaluate", "there is no date part '%s'", name)
		if near := errs.DidYouMean(name, known); near != "" {
			e = e.WithHint("%s", near)
		}
		return nil, e
	}
	return p, nil
}

// of reads the part from a date, timestamp, time or interval; argument arg of a call. The type must be one that partTypes lists.
func (p *datePart) kernel(arg int, t types.Type) Kernel {
	return func(c *Call) (arrow.Array, error) {
		if p.exact != nil {
			return fixedOrNull(c, func(i int) (float64, bool) { return p.exactAt(c, arg, i, t) })
		}
		if p.clock != nil && p.zone == nil && t.Kind == types.Timestamp {
			return p.clocks(c, arg)
		}
		return fixedOrNull(c, p.reader(c, arg, t))
	}
}

// clocks reads a part of the time of day of a timestamp without a zone.
func (p *datePart) clocks(c *Call, arg int) (arrow.Array, error) {
	v, out := col[int64](c, arg), make([]int64, c.N)
	var valid []byte
	for i := range out {
		us := v.at(i)
		if infiniteTS(us) {
			if valid == nil {
				valid = kernels.Ones(c.N)
			}
			kernels.ClearBit(valid, i)
			continue
		}
		rest := us % types.DayMicros
		if rest < 0 {
			rest += types.DayMicros
		}
		out[i] = p.clock(rest)
	}
	return kernels.NewFixed(c.Ret.Arrow(), out, valid), nil
}

// reader gives the part of each row; ok is false for infinity.
func (p *datePart) reader(c *Call, arg int, t types.Type) func(i int) (int64, bool) {
	switch t.Kind {
	case types.Date:
		v := col[int32](c, arg)
		return func(i int) (int64, bool) {
			if infiniteDate(v.at(i)) {
				return 0, false
			}
			if p.day == nil {
				return 0, true
			}
			return p.day(int64(v.at(i))), true
		}
	case types.Time:
		v := col[int64](c, arg)
		return func(i int) (int64, bool) { return p.clock(v.at(i)), true }
	case types.Interval:
		v := col[monthDayNano](c, arg)
		return func(i int) (int64, bool) { return p.span(intervalOf(v.at(i))), true }
	}
	v := col[int64](c, arg)
	zoned := t.Kind == types.TimestampTZ && c.Env.TimeZone != nil
	return func(i int) (int64, bool) {
		us := v.at(i)
		if infiniteTS(us) {
			return 0, false
		}
		if p.zone != nil {
			return p.zone(types.ZoneOffset(c.Env.TimeZone, us)), true
		}
		if zoned {
			us = types.ToLocal(us, c.Env.TimeZone)
		}
		days, rest := types.SplitMicros(us)
		if p.clock != nil {
			return p.clock(rest), true
		}
		return p.day(days), true
	}
}

func (p *datePart) exactAt(c *Call, arg, i int, t types.Type) (float64, bool) {
	switch t.Kind {
	case types.Date:
		v := col[int32](c, arg).at(i)
		if infiniteDate(v) {
			return 0, false
		}
		per, n := p.exact(int64(v), 0)
		return float64(n) / per, true
	case types.Time:
		per, n := p.exact(0, col[int64](c, arg).at(i))
		return float64(n) / per, true
	case types.Interval:
		v := intervalOf(col[monthDayNano](c, arg).at(i))
		// A year counts 365.25 days, a month that is left thirty.
		days := float64(float64(v.Months/12)*365.25) + float64(v.Months%12*30) + float64(v.Days)
		return float64(days*86400) + float64(v.Micros)/1e6, true
	}
	us := col[int64](c, arg).at(i)
	if infiniteTS(us) {
		return 0, false
	}
	if p.names[0] == "julian" && t.Kind == types.TimestampTZ {
		us = types.ToLocal(us, c.Env.TimeZone)
	}
	days, rest := types.SplitMicros(us)
	per, n := p.exact(days, rest)
	return float64(n) / per, true
}

// takes reports whether the part exists in a type.
func (p *datePart) takes(t types.Type) bool {
	switch {
	case p.zone != nil:
		return t.Kind == types.TimestampTZ
	case t.Kind == types.Time:
		return p.clock != nil || p.names[0] == "epoch"
	case t.Kind == types.Interval:
		return p.span != nil || p.names[0] == "epoch"
	case t.Kind == types.Date:
		return p.day != nil || p.exact != nil
	}
	return true
}

func (p *datePart) returns() types.Type {
	if p.exact != nil {
		return types.Float64
	}
	return types.Int64
}

var partTypes = Types{types.Date32, types.TsUS, types.TsTZ, types.TimeUS, types.Span}

// dateParts is date_part, date_trunc, date_diff, date_sub, last_day, dayname, monthname and one function per part.
var dateParts = append(partFunctions(),
	&Scalar{Name: "date_part", Category: DateTime, Purity: Stable, Summary: "A field of a date, time, timestamp or interval, or a struct of several; also EXTRACT(field FROM x).", Aliases: []string{"datepart"},
		Overloads: partOverloads(), Examples: []Example{ex("date_part('year', DATE '2024-02-15')", "2024"), ex("extract(hour FROM TIMESTAMP '2024-02-15 12:34:56')", "12"),
			ex("date_part(['year', 'month'], DATE '2024-02-15')", "{'year': 2024, 'month': 2}")}},
	&Scalar{Name: "date_trunc", Category: DateTime, Purity: Stable, Summary: "Cut a date, timestamp or interval to a unit. TIMESTAMPTZ is cut on the session's clocks.", Aliases: []string{"datetrunc"}, Overloads: []Overload{
		truncOverload(types.Date32, types.TsUS), truncOverload(types.TsUS, types.TsUS), truncOverload(types.TsTZ, types.TsTZ), truncOverload(types.Span, types.Span)},
		Examples: []Example{ex("date_trunc('month', TIMESTAMP '2024-02-15 12:34:56')", "2024-02-01 00:00:00")}},
	&Scalar{Name: "date_diff", Category: DateTime, Purity: Stable, Summary: "How many borders of a unit lie between two dates or timestamps.", Aliases: []string{"datediff"}, Overloads: diffOverloads(false),
		Examples: []Example{ex("date_diff('month', DATE '2024-01-31', DATE '2024-02-01')", "1")}},
	&Scalar{Name: "date_sub", Category: DateTime, Purity: Stable, Summary: "How many whole units lie between two dates or timestamps.", Aliases: []string{"datesub"}, Overloads: diffOverloads(true),
		Examples: []Example{ex("date_sub('month', DATE '2024-01-31', DATE '2024-02-29')", "1")}},
	&Scalar{Name: "last_day", Category: DateTime, Purity: Stable, Summary: "The last day of the month.", Overloads: eachDay(types.Date32, func(c *Call, day func(i int) (int64, bool)) (arrow.Array, error) {
		return fixedOrNull(c, func(i int) (int32, bool) {
			d, ok := day(i)
			y, m, _ := types.CivilOf(d)
			return int32(types.DaysOf(y, m, types.MonthDays(y, m))), ok
		})
	}), Examples: []Example{ex("last_day(DATE '2024-02-15')", "2024-02-29")}},
	&Scalar{Name: "dayname", Category: DateTime, Purity: Stable, Summary: "The English name of the day of the week.", Overloads: eachDay(str, func(c *Call, day func(i int) (int64, bool)) (arrow.Array, error) {
		return textsOrNull(c, func(dst []byte, i int) ([]byte, bool) {
			d, ok := day(i)
			return append(dst, dayNames[isodow(d)%7]...), ok
		})
	}), Examples: []Example{ex("dayname(DATE '2024-02-15')", "Thursday")}},
	&Scalar{Name: "monthname", Category: DateTime, Purity: Stable, Summary: "The English name of the month.", Overloads: eachDay(str, func(c *Call, day func(i int) (int64, bool)) (arrow.Array, error) {
		return textsOrNull(c, func(dst []byte, i int) ([]byte, bool) {
			d, ok := day(i)
			return append(dst, monthNames[month(d)-1]...), ok
		})
	}), Examples: []Example{ex("monthname(DATE '2024-02-15')", "February")}},
)

var (
	dayNames   = []string{"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"}
	monthNames = []string{"January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"}
)

// eachDay makes overloads over the days of dates and timestamps.
func eachDay(ret types.Type, k func(c *Call, day func(i int) (int64, bool)) (arrow.Array, error)) []Overload {
	p := &datePart{day: func(d int64) int64 { return d }}
	var out []Overload
	for _, t := range partTypes[:3] {
		out = append(out, strict(Types{t}, ret, func(c *Call) (arrow.Array, error) { return k(c, p.reader(c, 0, t)) }))
	}
	return out
}

// partFunctions makes year(x), month(x), … of the parts.
func partFunctions() []*Scalar {
	sample := map[string]string{"timezone_hour": "TIMESTAMPTZ '2024-02-15 12:34:56+00'", "timezone_minute": "TIMESTAMPTZ '2024-02-15 12:34:56+00'"}
	want := map[string]string{"year": "2024", "month": "2", "day": "15", "decade": "202", "century": "21", "millennium": "3", "quarter": "1", "week": "7", "yearweek": "202407", "isoyear": "2024",
		"dow": "4", "isodow": "4", "doy": "46", "era": "1", "hour": "12", "minute": "34", "second": "56", "millisecond": "56789", "microsecond": "56789000", "nanosecond": "56789000000",
		"epoch": "1708000496.789", "julian": "2460356.524268391", "timezone_hour": "0", "timezone_minute": "0"}
	named := []string{"weekofyear", "dayofmonth", "dayofweek", "weekday", "dayofyear"} // the other names are short for units
	var out []*Scalar
	for _, p := range partList {
		if p.fnNot {
			continue
		}
		arg := "TIMESTAMP '2024-02-15 12:34:56.789'"
		if s := sample[p.names[0]]; s != "" {
			arg = s
		}
		f := &Scalar{Name: p.names[0], Category: DateTime, Purity: Stable, Summary: p.about, Examples: []Example{ex(p.names[0]+"("+arg+")", want[p.names[0]])}}
		for _, n := range p.names[1:] {
			if slices.Contains(named, n) {
				f.Aliases = append(f.Aliases, n)
			}
		}
		for _, t := range partTypes {
			if p.takes(t) {
				f.Overloads = append(f.Overloads, strict(Types{t}, p.returns(), p.kernel(0, t)))
			}
		}
		out = append(out, f)
	}
	return out
}

// partOverloads is date_part(name, x). A constant name decides at once; otherwise each row looks its part up.
func partOverloads() []Overload {
	var out []Overload
	for _, t := range partTypes {
		out = append(out, Overload{Args: Types{str, t}, Returns: types.Int64, Fallible: true, Resolve: func(args []types.Type, consts []types.Value) (Resolved, error) {
			r := Resolved{Args: Types{str, t}, Returns: types.Int64}
			name, ok := constAt(consts, 0).(string)
			if !ok {
				r.Kernel = func(c *Call) (arrow.Array, error) { return partByRow(c, t) }
				return r, nil
			}
			p, err := findPart(name)
			if err != nil {
				return r, schemaError(err)
			}
			if !p.takes(t) {
				return r, errs.New(errs.Schema, "bind", "%s has no part '%s'", t, name)
			}
			r.Returns, r.Kernel = p.returns(), p.kernel(1, t)
			return r, nil
		}}, Overload{Args: Types{types.ListOf(str), t}, Resolve: func(_ []types.Type, consts []types.Value) (Resolved, error) { return partsOf(t, constAt(consts, 0)) }})
	}
	return out
}

// partsOf is date_part(['year', 'month'], x): a struct of the parts.
func partsOf(t types.Type, list types.Value) (Resolved, error) {
	names, ok := list.([]types.Value)
	if !ok || len(names) == 0 || slices.Contains(names, nil) {
		return Resolved{}, errs.New(errs.Schema, "bind", "the list of date parts must be a constant that is neither empty nor holds NULL")
	}
	var fields []types.Field
	var parts []Kernel
	for _, n := range names {
		name := n.(string)
		p, err := findPart(name)
		if err != nil {
			return Resolved{}, schemaError(err)
		}
		if !p.takes(t) {
			return Resolved{}, errs.New(errs.Schema, "bind", "%s has no part '%s'", t, name)
		}
		if slices.ContainsFunc(fields, func(f types.Field) bool { return strings.EqualFold(f.Name, name) }) {
			return Resolved{}, errs.New(errs.Schema, "bind", "the part '%s' is asked for twice", name)
		}
		fields, parts = append(fields, types.Field{Name: name, Type: p.returns()}), append(parts, p.kernel(1, t))
	}
	return Resolved{Args: Types{types.ListOf(str), t}, Returns: types.StructOf(fields...), Kernel: func(c *Call) (arrow.Array, error) {
		children := make([]arrow.ArrayData, len(parts))
		for i, k := range parts {
			part := *c
			part.Ret = fields[i].Type
			v, err := k(&part)
			if err != nil {
				return nil, err
			}
			children[i] = v.Data()
		}
		return array.MakeFromData(array.NewData(c.Ret.Arrow(), c.N, []*memory.Buffer{nil}, children, 0, 0)), nil
	}}, nil
}

// schemaError turns an error of a constant into one of binding.
func schemaError(err error) error {
	e := *errs.As(err)
	e.Kind, e.Op = errs.Schema, "bind"
	return &e
}

func partByRow(c *Call, t types.Type) (arrow.Array, error) {
	names := textCol(c, 0)
	readers := map[string]func(int) (int64, bool){}
	return fixedOrNull(c, func(i int) (int64, bool) {
		name := names.str(i)
		read := readers[name]
		if read == nil {
			p, err := findPart(name)
			if err != nil {
				c.Fail(i, err)
				return 0, true
			}
			if !p.takes(t) {
				c.failf(i, "%s has no part '%s'", t, name)
				return 0, true
			}
			read = p.reader(c, 1, t)
			if p.exact != nil {
				read = func(i int) (int64, bool) {
					f, ok := p.exactAt(c, 1, i, t)
					return int64(f), ok
				}
			}
			readers[name] = read
		}
		return read(i)
	})
}

// truncate cuts a local timestamp.
func (p *datePart) truncate(us int64) int64 {
	if p.unit > 0 {
		return types.FloorDiv(us, p.unit) * p.unit
	}
	days, _ := types.SplitMicros(us)
	return p.trunc(days) * types.DayMicros
}

func (p *datePart) truncates() bool { return p.unit > 0 || p.trunc != nil }

func truncOverload(t, ret types.Type) Overload {
	k := func(c *Call) (arrow.Array, error) {
		names := textCol(c, 0)
		at := partFinder(c, names, (*datePart).truncates)
		switch t.Kind {
		case types.Date:
			v := col[int32](c, 1)
			return fixed(c, func(i int) int64 {
				us, ok := dateToMicros(v.at(i))
				p := at(i)
				if p == nil || !ok || infiniteTS(us) {
					return us
				}
				return p.truncate(us)
			})
		case types.Interval:
			v := col[monthDayNano](c, 1)
			return fixed(c, func(i int) monthDayNano {
				p := at(i)
				if p == nil {
					return monthDayNano{}
				}
				return truncInterval(p, v.at(i))
			})
		}
		v := col[int64](c, 1)
		zone := c.Env.TimeZone
		if t.Kind != types.TimestampTZ {
			zone = nil
		}
		return fixed(c, func(i int) int64 {
			us := v.at(i)
			p := at(i)
			if p == nil || infiniteTS(us) {
				return us
			}
			if zone == nil {
				return p.truncate(us)
			}
			local := types.ToLocal(us, zone)
			return localStart(us, local, p.truncate(local), p.unit > 0, zone)
		})
	}
	return fallible(Types{str, t}, ret, k)
}

// partFinder looks the part named in each row up, once while it stays the same; nil after a failure.
func partFinder(c *Call, names textColumn, fits func(*datePart) bool) func(i int) *datePart {
	var last *datePart
	var lastErr error
	lastName, known := "", false
	return func(i int) *datePart {
		if name := names.at(i); !known || string(name) != lastName {
			lastName, known = string(name), true
			last, lastErr = findPart(lastName)
			if lastErr == nil && !fits(last) {
				lastErr = errs.New(errs.Data, "evaluate", "'%s' is no unit of time", lastName)
			}
		}
		if lastErr != nil {
			c.Fail(i, lastErr)
			return nil
		}
		return last
	}
}

func truncInterval(p *datePart, v monthDayNano) monthDayNano {
	switch {
	case p.unit > 0:
		us := v.Nanoseconds / 1000
		v.Nanoseconds = (us - us%p.unit) * 1000
		return v
	case p.step == nil:
		return v
	}
	m, d := p.step(1)
	if m > 0 {
		return monthDayNano{Months: v.Months - v.Months%int32(m)}
	}
	return monthDayNano{Months: v.Months, Days: v.Days - v.Days%int32(d)}
}

// diffOverloads is date_diff and, for whole units, date_sub. Weeks have no borders: both count seven days.
func diffOverloads(whole bool) []Overload {
	var out []Overload
	for _, t := range partTypes[:4] {
		out = append(out, fallible(Types{str, t, t}, types.Int64, func(c *Call) (arrow.Array, error) {
			at := partFinder(c, textCol(c, 0), func(p *datePart) bool { return p.unit > 0 || p.step != nil && t.Kind != types.Time })
			a, b := microsOf(c, 1, t), microsOf(c, 2, t)
			zoned := t.Kind == types.TimestampTZ && c.Env.TimeZone != nil
			var from, to column[int64]
			if zoned {
				from, to = col[int64](c, 1), col[int64](c, 2)
			}
			return fixedOrNull(c, func(i int) (int64, bool) {
				x, y := a(i), b(i)
				if infiniteTS(x) || infiniteTS(y) {
					return 0, false
				}
				p := at(i)
				switch {
				case p == nil:
					return 0, true
				case p.unit > 0 && zoned: // borders stand where the clocks show them, but time passes as it does
					u, v := from.at(i), to.at(i)
					if !whole {
						u, v = u-(x-p.truncate(x)), v-(y-p.truncate(y))
					}
					return (v - u) / p.unit, true
				case p.unit > 0 && whole:
					return (y - x) / p.unit, true
				case p.unit > 0:
					return types.FloorDiv(y, p.unit) - types.FloorDiv(x, p.unit), true
				case whole:
					return wholeUnits(p, x, y), true
				case p.count == nil:
					return (types.FloorDiv(y, types.DayMicros) - types.FloorDiv(x, types.DayMicros)) / 7, true
				}
				return p.count(types.FloorDiv(y, types.DayMicros)) - p.count(types.FloorDiv(x, types.DayMicros)), true
			})
		}))
	}
	return out
}

// microsOf reads a date, time or timestamp as local microseconds.
func microsOf(c *Call, arg int, t types.Type) func(i int) int64 {
	if t.Kind == types.Date {
		v := col[int32](c, arg)
		return func(i int) int64 { us, _ := dateToMicros(v.at(i)); return us }
	}
	v := col[int64](c, arg)
	if t.Kind == types.TimestampTZ && c.Env.TimeZone != nil {
		return func(i int) int64 { return types.ToLocal(v.at(i), c.Env.TimeZone) }
	}
	return v.at
}

// wholeUnits counts how many units can be added to x without passing y.
func wholeUnits(p *datePart, x, y int64) int64 {
	m, d := p.step(1)
	if d > 0 {
		return (y - x) / (d * types.DayMicros)
	}
	sign := int64(1)
	if x > y {
		x, y, sign = y, x, -1
	}
	xd, xr := types.SplitMicros(x)
	yd, _ := types.SplitMicros(y)
	xy, xm, xday := types.CivilOf(xd)
	yy, ym, yday := types.CivilOf(yd)
	n := (yy*12 + ym) - (xy*12 + xm)
	_, yr := types.SplitMicros(y)
	lastDay := yday == types.MonthDays(yy, ym)
	if (yday < xday || yday == xday && yr < xr) && !(lastDay && xday >= yday && yr >= xr) {
		n--
	}
	return sign * (n / m)
}

// localStart brings the start of a bucket back from local time to an instant that is not after us. A unit of the clock is cut off the instant
// itself, as the hour that the clocks show twice has one start each time.
func localStart(us, local, start int64, clock bool, zone *time.Location) int64 {
	if clock {
		return us - (local - start)
	}
	at := types.FromLocal(start, zone)
	if at > us {
		at = start - types.ZoneOffset(zone, us)*1_000_000
	}
	return at
}
