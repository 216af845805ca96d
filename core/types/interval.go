package types

import (
	"math"
	"strconv"
	"strings"
)

// intervalUnit is what one unit of an interval adds; exactly one part is set.
type intervalUnit struct {
	months, days, micros int64
}

var intervalUnits = func() map[string]intervalUnit {
	m := map[string]intervalUnit{}
	add := func(u intervalUnit, names ...string) {
		for _, n := range names {
			m[n] = u
		}
	}
	add(intervalUnit{months: 12000}, "millennium", "millennia", "millenniums", "mil", "mils")
	add(intervalUnit{months: 1200}, "century", "centuries", "cent", "c")
	add(intervalUnit{months: 120}, "decade", "decades", "dec", "decs")
	add(intervalUnit{months: 12}, "year", "years", "yr", "yrs", "y")
	add(intervalUnit{months: 3}, "quarter", "quarters")
	add(intervalUnit{months: 1}, "month", "months", "mon", "mons")
	add(intervalUnit{days: 7}, "week", "weeks", "w")
	add(intervalUnit{days: 1}, "day", "days", "d", "dayofmonth")
	add(intervalUnit{micros: 3_600_000_000}, "hour", "hours", "hr", "hrs", "h")
	add(intervalUnit{micros: 60_000_000}, "minute", "minutes", "min", "mins", "m")
	add(intervalUnit{micros: 1_000_000}, "second", "seconds", "sec", "secs", "s")
	add(intervalUnit{micros: 1000}, "millisecond", "milliseconds", "msec", "msecs", "ms")
	add(intervalUnit{micros: 1}, "microsecond", "microseconds", "usec", "usecs", "us")
	return m
}()

// IntervalOf is n of a unit: days, hours, …; ok is false for an unknown unit or an overflow.
func IntervalOf(n int64, unit string) (IntervalValue, bool) {
	u, known := intervalUnits[strings.ToLower(unit)]
	if !known {
		return IntervalValue{}, false
	}
	var sum intervalSum
	ok := sum.add(n, 0, u)
	return sum.value(), ok
}

// intervalSum adds up the parts of an interval, checked.
type intervalSum struct{ months, days, micros int64 }

const nano = 1_000_000_000

// add adds whole + frac/10⁹ units. A fraction of a month is days of a month of thirty, a fraction of a day is time.
func (s *intervalSum) add(whole, frac int64, u intervalUnit) bool {
	var ok [6]bool
	var months, days, micros int64
	switch {
	case u.months != 0:
		part := frac * u.months
		months, ok[0] = mulAdd(whole, u.months, part/nano)
		part = part % nano * 30
		days = part / nano
		micros = part % nano * 86_400 / 1000
		ok[1], ok[2] = true, true
	case u.days != 0:
		part := frac * u.days
		days, ok[1] = mulAdd(whole, u.days, part/nano)
		micros = part % nano * 86_400 / 1000
		ok[0], ok[2] = true, true
	default:
		micros, ok[2] = mulAdd(whole, u.micros, mulDiv(frac, u.micros))
		ok[0], ok[1] = true, true
	}
	s.months, ok[3] = addOK(s.months, months)
	s.days, ok[4] = addOK(s.days, days)
	s.micros, ok[5] = addOK(s.micros, micros)
	for _, o := range ok {
		if !o {
			return false
		}
	}
	return s.fits()
}

// mulDiv is frac * per / 10⁹, rounded half away from zero; |frac| < 10⁹ and per is at most an hour.
func mulDiv(frac, per int64) int64 {
	f := float64(frac) * float64(per) / nano // exact enough: the product is below 2⁶² and the result a whole number of µs
	return int64(math.Round(f))
}

func mulAdd(a, b, c int64) (int64, bool) {
	p := a * b
	if a != 0 && (p/a != b || a == -1 && b == math.MinInt64) {
		return 0, false
	}
	return addOK(p, c)
}

func addOK(a, b int64) (int64, bool) {
	s := a + b
	return s, (a^s)&(b^s) >= 0
}

func (s *intervalSum) fits() bool {
	return s.months == int64(int32(s.months)) && s.days == int64(int32(s.days)) && s.micros <= MaxIntervalMicros && s.micros >= -MaxIntervalMicros
}

func (s *intervalSum) value() IntervalValue {
	return IntervalValue{int32(s.months), int32(s.days), s.micros}
}

// ParseInterval reads '1 year 2 months -3 days 04:05:06.7', '5 minutes ago', '90s'. A number without a unit counts seconds.
func ParseInterval(text string) (IntervalValue, bool) {
	s := strings.ToLower(strings.TrimSpace(text))
	s = strings.TrimPrefix(s, "@")
	var sum intervalSum
	parts := 0
	for s = strings.TrimLeft(s, " \t\n,"); s != ""; s = strings.TrimLeft(s, " \t\n,") {
		if s == "ago" && parts > 0 {
			sum = intervalSum{-sum.months, -sum.days, -sum.micros}
			break
		}
		end := 0
		for end < len(s) && (s[end] >= '0' && s[end] <= '9' || strings.IndexByte("+-.:", s[end]) >= 0) {
			end++
		}
		number := s[:end]
		if end == 0 {
			return IntervalValue{}, false
		}
		if strings.Contains(number, ":") {
			us, ok := parseClockSigned(number)
			if !ok || !sum.add(us, 0, intervalUnit{micros: 1}) {
				return IntervalValue{}, false
			}
			parts, s = parts+1, s[end:]
			continue
		}
		s = strings.TrimLeft(s[end:], " \t\n")
		end = 0
		for end < len(s) && s[end] >= 'a' && s[end] <= 'z' {
			end++
		}
		unit, known := intervalUnits[s[:end]]
		if end == 0 && s == "" {
			unit, known = intervalUnits["second"], true
		}
		whole, frac, ok := parseFraction(number)
		if !known || !ok || !sum.add(whole, frac, unit) {
			return IntervalValue{}, false
		}
		parts, s = parts+1, s[end:]
	}
	return sum.value(), parts > 0
}

// parseFraction reads a number as a whole part and billionths, both with its sign.
func parseFraction(s string) (whole, frac int64, ok bool) {
	neg := strings.HasPrefix(s, "-")
	w, f, _ := strings.Cut(strings.TrimLeft(s, "+-"), ".")
	if w == "" && f == "" || len(s)-len(strings.TrimLeft(s, "+-")) > 1 {
		return 0, 0, false
	}
	if w != "" {
		u, err := strconv.ParseUint(w, 10, 63)
		if err != nil {
			return 0, 0, false
		}
		whole = int64(u)
	}
	if f != "" {
		if len(f) > 9 {
			f = f[:9]
		}
		u, err := strconv.ParseUint(f+strings.Repeat("0", 9-len(f)), 10, 63)
		if err != nil {
			return 0, 0, false
		}
		frac = int64(u)
	}
	if neg {
		return -whole, -frac, true
	}
	return whole, frac, true
}

// parseClockSigned reads [-]H…:MM[:SS[.f]], with any number of hours.
func parseClockSigned(s string) (int64, bool) {
	neg := strings.HasPrefix(s, "-")
	s = strings.TrimLeft(s, "+-")
	h, rest, _ := strings.Cut(s, ":")
	hours, err := strconv.ParseUint(h, 10, 32)
	if err != nil {
		return 0, false
	}
	us, n, ok := parseClock("00:" + rest)
	if !ok || n != len(rest)+3 {
		return 0, false
	}
	us = int64(hours)*3_600_000_000 + (us+500)/1000
	if neg {
		us = -us
	}
	return us, true
}

// AppendInterval writes an interval as DuckDB does: 1 year 2 months 3 days 04:05:06.7.
func AppendInterval(dst []byte, v IntervalValue) []byte {
	start := len(dst)
	part := func(n int64, unit string) {
		if n == 0 {
			return
		}
		if len(dst) > start {
			dst = append(dst, ' ')
		}
		dst = strconv.AppendInt(dst, n, 10)
		dst = append(append(dst, ' '), unit...)
		if n != 1 && n != -1 {
			dst = append(dst, 's')
		}
	}
	part(int64(v.Months/12), "year")
	part(int64(v.Months%12), "month")
	part(int64(v.Days), "day")
	if v.Micros == 0 && len(dst) > start {
		return dst
	}
	if len(dst) > start {
		dst = append(dst, ' ')
	}
	us := v.Micros
	if us < 0 {
		dst = append(dst, '-')
		us = -us
	}
	hours := us / 3_600_000_000
	if hours < 100 {
		return appendClock(dst, us, 1_000_000)
	}
	dst = strconv.AppendInt(dst, hours, 10)
	rest := appendClock(nil, us%3_600_000_000, 1_000_000)
	return append(dst, rest[2:]...)
}
