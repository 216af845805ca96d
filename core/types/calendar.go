package types

import (
	"math"
	"strconv"
	"time"
)

// Civil time: days and microseconds since 1970-01-01, in the proleptic Gregorian calendar, for all years.

// Infinite dates and timestamps, as DuckDB has them.
const (
	InfinityDate = math.MaxInt32
	InfinityTS   = math.MaxInt64
)

// DaysOf returns the day number of a date. The month may be out of 1 … 12; the day is not checked.
func DaysOf(y, m, d int64) int64 {
	y += FloorDiv(m-1, 12)
	m = m - 12*FloorDiv(m-1, 12)
	if m <= 2 {
		y--
	}
	era := FloorDiv(y, 400)
	yoe := y - era*400
	mp := (m + 9) % 12
	doy := (153*mp+2)/5 + d - 1
	doe := yoe*365 + yoe/4 - yoe/100 + doy
	return era*146097 + doe - 719468
}

// CivilOf returns the date of a day number.
func CivilOf(days int64) (y, m, d int64) {
	z := days + 719468
	era := FloorDiv(z, 146097)
	doe := z - era*146097
	yoe := (doe - doe/1460 + doe/36524 - doe/146096) / 365
	y = yoe + era*400
	doy := doe - (365*yoe + yoe/4 - yoe/100)
	mp := (5*doy + 2) / 153
	d = doy - (153*mp+2)/5 + 1
	m = mp + 3
	if m > 12 {
		m -= 12
	}
	if m <= 2 {
		y++
	}
	return y, m, d
}

var monthDays = [13]int64{0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}

// Leap reports whether a year has 366 days.
func Leap(y int64) bool { return y%4 == 0 && (y%100 != 0 || y%400 == 0) }

// MonthDays is the number of days of a month.
func MonthDays(y, m int64) int64 {
	if m == 2 && Leap(y) {
		return 29
	}
	return monthDays[m]
}

// AddMonths moves a day by months; a day that the month lacks becomes its last.
func AddMonths(days, months int64) int64 {
	if months == 0 {
		return days
	}
	y, m, d := CivilOf(days)
	m0 := m - 1 + months
	y += FloorDiv(m0, 12)
	m = m0 - 12*FloorDiv(m0, 12) + 1
	return DaysOf(y, m, min(d, MonthDays(y, m)))
}

// SplitMicros cuts microseconds since 1970 into a day and the microseconds of the day.
func SplitMicros(us int64) (days, micros int64) {
	days = FloorDiv(us, DayMicros)
	return days, us - days*DayMicros
}

// UnitsPerSecond is the resolution of a timestamp type.
func UnitsPerSecond(k Kind) int64 {
	switch k {
	case TimestampS:
		return 1
	case TimestampMS:
		return 1000
	case TimestampNS:
		return 1_000_000_000
	}
	return 1_000_000
}

// ZoneOffset is the offset from UTC, in seconds, that a zone has at an instant.
func ZoneOffset(loc *time.Location, us int64) int64 {
	if loc == nil || loc == time.UTC {
		return 0
	}
	_, off := time.Unix(FloorDiv(us, 1_000_000), 0).In(loc).Zone()
	return int64(off)
}

// ToLocal is the local clock time of an instant, both in microseconds.
func ToLocal(us int64, loc *time.Location) int64 {
	if us == InfinityTS || us == -InfinityTS {
		return us
	}
	return us + ZoneOffset(loc, us)*1_000_000
}

// FromLocal is the instant of a local clock time. Of a time that the clocks show twice it is the later; a time that
// they skip is read with the offset from before.
func FromLocal(local int64, loc *time.Location) int64 {
	if loc == nil || loc == time.UTC || local == InfinityTS || local == -InfinityTS {
		return local
	}
	before := ZoneOffset(loc, local-DayMicros)
	for _, off := range []int64{ZoneOffset(loc, local+DayMicros), before} {
		at := local - off*1_000_000
		if ZoneOffset(loc, at) == off {
			return at
		}
	}
	return local - before*1_000_000
}

func append2(dst []byte, v int64) []byte { return append(dst, '0'+byte(v/10), '0'+byte(v%10)) }

// AppendDate writes a day as YYYY-MM-DD.
func AppendDate(dst []byte, days int64) []byte {
	switch days {
	case InfinityDate:
		return append(dst, "infinity"...)
	case -InfinityDate:
		return append(dst, "-infinity"...)
	}
	dst, bc := appendYMD(dst, days)
	if bc {
		dst = append(dst, " (BC)"...)
	}
	return dst
}

func appendYMD(dst []byte, days int64) ([]byte, bool) {
	y, m, d := CivilOf(days)
	bc := y <= 0
	if bc {
		y = 1 - y
	}
	for pad := int64(1000); pad > y && pad > 1; pad /= 10 {
		dst = append(dst, '0')
	}
	dst = strconv.AppendInt(dst, y, 10)
	dst = append(dst, '-')
	dst = append2(dst, m)
	dst = append(dst, '-')
	return append2(dst, d), bc
}

// AppendTime writes the microseconds of a day as HH:MM:SS with the digits of the fraction that count.
func AppendTime(dst []byte, us int64) []byte { return appendClock(dst, us, 1_000_000) }

// appendClock writes units of a day, of which a second has per.
func appendClock(dst []byte, v, per int64) []byte {
	s := v / per
	dst = append2(dst, s/3600)
	dst = append(dst, ':')
	dst = append2(dst, s/60%60)
	dst = append(dst, ':')
	dst = append2(dst, s%60)
	if frac := v % per; frac != 0 {
		dst = append(dst, '.')
		for per /= 10; frac != 0; per /= 10 {
			dst = append(dst, '0'+byte(frac/per))
			frac %= per
		}
	}
	return dst
}

// AppendTimestamp writes a timestamp of the given kind; TIMESTAMPTZ in the zone loc, with its offset.
func AppendTimestamp(dst []byte, v int64, k Kind, loc *time.Location) []byte {
	switch v {
	case InfinityTS:
		return append(dst, "infinity"...)
	case -InfinityTS:
		return append(dst, "-infinity"...)
	}
	off := int64(0)
	per := UnitsPerSecond(k)
	if k == TimestampTZ {
		off = ZoneOffset(loc, v)
	}
	day := 86400 * per
	days := FloorDiv(v, day)
	rest := v - days*day + off*per
	for ; rest < 0; rest += day {
		days--
	}
	for ; rest >= day; rest -= day {
		days++
	}
	dst, bc := appendYMD(dst, days)
	if bc {
		dst = append(dst, " (BC)"...)
	}
	dst = append(dst, ' ')
	dst = appendClock(dst, rest, per)
	if k == TimestampTZ {
		dst = AppendOffset(dst, off)
	}
	return dst
}

// AppendOffset writes an offset from UTC in seconds as +HH[:MM[:SS]].
func AppendOffset(dst []byte, off int64) []byte {
	sign := byte('+')
	if off < 0 {
		sign, off = '-', -off
	}
	dst = append2(append(dst, sign), off/3600)
	if off%3600 != 0 {
		dst = append2(append(dst, ':'), off/60%60)
		if off%60 != 0 {
			dst = append2(append(dst, ':'), off%60)
		}
	}
	return dst
}
