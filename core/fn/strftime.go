package fn

import (
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/types"
)

var strftimeFn = &Scalar{Name: "strftime", Category: DateTime, Purity: Stable, Summary: "Write a date or timestamp by a format: %Y-%m-%d %H:%M:%S.", Overloads: strftimeOverloads(),
	Examples: []Example{ex("strftime(DATE '2024-02-05', '%a, %-d %B %Y')", "Mon, 5 February 2024")}}

var strptimeFn = &Scalar{Name: "strptime", Category: DateTime, Summary: "Read a timestamp by a format, or by the first of several that fits; with %z it is a TIMESTAMPTZ.", Overloads: strptimeOverloads(false),
	Examples: []Example{ex("strptime('05/Feb/2024:13:04:05', '%d/%b/%Y:%H:%M:%S')", "2024-02-05 13:04:05")}}

var tryStrptimeFn = &Scalar{Name: "try_strptime", Category: DateTime, Summary: "strptime that gives NULL for a text that does not fit.", Overloads: strptimeOverloads(true),
	Examples: []Example{ex("try_strptime('x', '%Y')", "NULL")}}

// timeFormat is a parsed format: literal text and fields by turns.
type timeFormat []timeField

// timeField is a piece of literal text, or a field by its letter; bare leaves the padding out.
type timeField struct {
	text string
	code byte
	bare bool
}

const (
	writeCodes = "aAwdbBmyYHIpMSfgnjUWVGuzZcxX"
	bareCodes  = "dmyHIMSj"
)

func parseFormat(s string) (timeFormat, error) {
	var out timeFormat
	text := func(t string) {
		if n := len(out); n > 0 && out[n-1].code == 0 {
			out[n-1].text += t
			return
		}
		out = append(out, timeField{text: t})
	}
	for i := 0; i < len(s); i++ {
		if s[i] != '%' {
			text(s[i : i+1])
			continue
		}
		i++
		bare := i < len(s) && s[i] == '-'
		if bare {
			i++
		}
		switch {
		case i == len(s):
			return nil, errs.New(errs.Data, "evaluate", "the time format '%s' ends inside a field", s)
		case s[i] == '%' && !bare:
			text("%")
		case s[i] == 'T' && !bare:
			sub, _ := parseFormat("%H:%M:%S")
			out = append(out, sub...)
		case s[i] == 'D' && !bare:
			sub, _ := parseFormat("%m/%d/%y")
			out = append(out, sub...)
		case strings.IndexByte(writeCodes, s[i]) < 0, bare && strings.IndexByte(bareCodes, s[i]) < 0:
			return nil, errs.New(errs.Data, "evaluate", "the time format '%s' has an unknown field %%%c", s, s[i]).WithHint("the fields are those of strftime in C: %%Y %%m %%d %%H %%M %%S %%f %%j %%a %%b %%p %%z …")
		default:
			out = append(out, timeField{code: s[i], bare: bare})
		}
	}
	return out, nil
}

// clockTime is a timestamp taken apart for printing.
type clockTime struct {
	days, ns int64 // ns of the day
	off      int64 // seconds
	zoned    bool
	zone     *time.Location
}

func (f timeFormat) append(dst []byte, t clockTime) []byte {
	y, m, d := types.CivilOf(t.days)
	s := t.ns / 1_000_000_000
	h := s / 3600
	num := func(v int64, width int, bare bool) {
		if !bare {
			for p := int64(10); width > 1; width, p = width-1, p*10 {
				if v < p {
					dst = append(dst, "00000000"[:width-1]...)
					break
				}
			}
		}
		dst = strconv.AppendInt(dst, v, 10)
	}
	for _, x := range f {
		switch x.code {
		case 0:
			dst = append(dst, x.text...)
		case 'a':
			dst = append(dst, dayNames[isodow(t.days)%7][:3]...)
		case 'A':
			dst = append(dst, dayNames[isodow(t.days)%7]...)
		case 'w':
			num(isodow(t.days)%7, 1, true)
		case 'u':
			num(isodow(t.days), 1, true)
		case 'd':
			num(d, 2, x.bare)
		case 'b':
			dst = append(dst, monthNames[m-1][:3]...)
		case 'B':
			dst = append(dst, monthNames[m-1]...)
		case 'm':
			num(m, 2, x.bare)
		case 'y':
			num(y-types.FloorDiv(y, 100)*100, 2, x.bare)
		case 'Y':
			num(y, 4, false)
		case 'H':
			num(h, 2, x.bare)
		case 'I':
			num((h+11)%12+1, 2, x.bare)
		case 'p':
			if h < 12 {
				dst = append(dst, "AM"...)
			} else {
				dst = append(dst, "PM"...)
			}
		case 'M':
			num(s/60%60, 2, x.bare)
		case 'S':
			num(s%60, 2, x.bare)
		case 'f':
			num(t.ns%1_000_000_000/1000, 6, false)
		case 'g':
			num(t.ns%1_000_000_000/1_000_000, 3, false)
		case 'n':
			num(t.ns%1_000_000_000, 9, false)
		case 'j':
			num(t.days-types.DaysOf(y, 1, 1)+1, 3, x.bare)
		case 'U':
			num((t.days-types.DaysOf(y, 1, 1)+7-isodow(t.days)%7)/7, 2, false)
		case 'W':
			num((t.days-types.DaysOf(y, 1, 1)+7-(isodow(t.days)-1))/7, 2, false)
		case 'V':
			_, w := isoWeek(t.days)
			num(w, 2, false)
		case 'G':
			num(isoYear(t.days), 4, false)
		case 'z':
			dst = types.AppendOffset(dst, t.off)
		case 'Z':
			if t.zoned && t.zone != nil {
				dst = append(dst, t.zone.String()...)
			} else if t.zoned {
				dst = append(dst, "UTC"...)
			}
		case 'c':
			dst = isoDateTime.append(dst, t)
		case 'x':
			dst = isoDate.append(dst, t)
		case 'X':
			dst = isoTime.append(dst, t)
		}
	}
	return dst
}

var isoDateTime, isoDate, isoTime timeFormat

func init() {
	isoDateTime, _ = parseFormat("%Y-%m-%d %H:%M:%S")
	isoDate, _ = parseFormat("%Y-%m-%d")
	isoTime, _ = parseFormat("%H:%M:%S")
}

// strftimeOverloads takes (x, format) and, as DuckDB does, (format, x).
func strftimeOverloads() []Overload {
	var out []Overload
	for _, t := range (Types{types.Date32, types.TsUS, types.TsTZ, types.TsNS}) {
		out = append(out, fallible(Types{t, str}, str, strftime(t, 0, 1)), fallible(Types{str, t}, str, strftime(t, 1, 0)))
	}
	return out
}

func strftime(t types.Type, arg, format int) Kernel {
	return func(c *Call) (arrow.Array, error) {
		formats := formatFinder(c, textCol(c, format))
		read := clockOf(c, arg, t)
		// Neighbouring rows are often of one day: a format without a time of day is written once for them.
		var text []byte
		var of timeFormat
		day, known := int64(0), false
		return textsOrNull(c, func(dst []byte, i int) ([]byte, bool) {
			v, finite := read(i)
			if finite != 0 {
				if finite < 0 {
					dst = append(dst, '-')
				}
				return append(dst, "infinity"...), true
			}
			f := formats(i)
			if !f.daily() {
				return f.append(dst, v), true
			}
			if !known || v.days != day || len(f) == 0 || &f[0] != &of[0] {
				text, day, of, known = f.append(text[:0], v), v.days, f, len(f) > 0
			}
			return append(dst, text...), true
		})
	}
}

// daily reports whether all times of a day are written alike.
func (f timeFormat) daily() bool {
	for _, x := range f {
		if x.code != 0 && strings.IndexByte("aAwudbBmyYjUWVGx", x.code) < 0 {
			return false
		}
	}
	return true
}

// clockOf reads a date or timestamp; finite is 0, or the sign of the infinity.
func clockOf(c *Call, arg int, t types.Type) func(i int) (v clockTime, infinite int) {
	switch t.Kind {
	case types.Date:
		d := col[int32](c, arg)
		return func(i int) (clockTime, int) {
			switch d.at(i) {
			case types.InfinityDate:
				return clockTime{}, 1
			case -types.InfinityDate:
				return clockTime{}, -1
			}
			return clockTime{days: int64(d.at(i))}, 0
		}
	case types.TimestampNS:
		v := col[int64](c, arg)
		const day = 86400 * 1_000_000_000
		return func(i int) (clockTime, int) {
			n := types.FloorDiv(v.at(i), day)
			return clockTime{days: n, ns: v.at(i) - n*day}, 0
		}
	}
	v := col[int64](c, arg)
	zoned := t.Kind == types.TimestampTZ
	return func(i int) (clockTime, int) {
		us := v.at(i)
		switch us {
		case types.InfinityTS:
			return clockTime{}, 1
		case -types.InfinityTS:
			return clockTime{}, -1
		}
		out := clockTime{zoned: zoned}
		if zoned {
			out.zone, out.off = c.Env.TimeZone, types.ZoneOffset(c.Env.TimeZone, us)
			us = types.ToLocal(us, c.Env.TimeZone)
		}
		out.days, us = types.SplitMicros(us)
		out.ns = us * 1000
		return out, 0
	}
}

// formatFinder parses the format of each row, once while it stays the same.
func formatFinder(c *Call, names textColumn) func(i int) timeFormat {
	var f timeFormat
	var err error
	last, known := "", false
	return func(i int) timeFormat {
		if name := names.at(i); !known || string(name) != last {
			last, known = string(name), true
			f, err = parseFormat(last)
		}
		if err != nil {
			c.Fail(i, err)
		}
		return f
	}
}

func strptimeOverloads(try bool) []Overload {
	one := func(args []types.Type, consts []types.Value) (Resolved, error) {
		ret := types.TsUS
		if s, ok := constAt(consts, 1).(string); ok {
			f, err := parseFormat(s)
			if err != nil {
				return Resolved{}, schemaError(err)
			}
			if f.zoned() {
				ret = types.TsTZ
			}
		}
		return Resolved{Args: Types{str, str}, Returns: ret, Kernel: strptime(try, false)}, nil
	}
	return []Overload{
		{Args: Types{str, str}, Fallible: !try, Resolve: one},
		{Args: Types{str, types.ListOf(str)}, Returns: types.TsUS, Fallible: !try, Kernel: strptime(try, true)},
	}
}

func (f timeFormat) zoned() bool {
	for _, x := range f {
		if x.code == 'z' || x.code == 'Z' {
			return true
		}
	}
	return false
}

func strptime(try, list bool) Kernel {
	return func(c *Call) (arrow.Array, error) {
		s := textCol(c, 0)
		formats := func(i int) []string { return nil }
		if list {
			formats = func(i int) []string {
				var out []string
				for _, v := range valueAt(c, 1, i).([]types.Value) {
					if v != nil {
						out = append(out, v.(string))
					}
				}
				return out
			}
		} else {
			f := textCol(c, 1)
			formats = func(i int) []string { return []string{f.str(i)} }
		}
		parsed := map[string]timeFormat{}
		return fixedOrNull(c, func(i int) (int64, bool) {
			text := s.str(i)
			fs := formats(i)
			for _, name := range fs {
				f, ok := parsed[name]
				if !ok {
					var err error
					if f, err = parseFormat(name); err != nil {
						c.Fail(i, err)
						return 0, true
					}
					parsed[name] = f
				}
				if us, ok := f.parse(text); ok {
					return us, true
				}
			}
			if !try {
				c.failf(i, "could not read '%s' by the format '%s'", text, strings.Join(fs, "', '"))
			}
			return 0, !try
		})
	}
}

// parse reads the whole of s.
func (f timeFormat) parse(s string) (int64, bool) {
	y, m, d, h, mi, sec, ns, off := int64(1900), int64(1), int64(1), int64(0), int64(0), int64(0), int64(0), int64(0)
	yday, pm, twelve := int64(0), false, false
	s = strings.TrimSpace(s)
	number := func(most int, into *int64) bool {
		n := 0
		v := int64(0)
		for n < most && n < len(s) && s[n] >= '0' && s[n] <= '9' {
			v = v*10 + int64(s[n]-'0')
			n++
		}
		*into = v
		s = s[n:]
		return n > 0
	}
	fraction := func(most int, into *int64) bool {
		n := 0
		v := int64(0)
		for n < len(s) && s[n] >= '0' && s[n] <= '9' {
			if n < 9 {
				v = v*10 + int64(s[n]-'0')
			}
			n++
		}
		if n == 0 || n > most {
			return false
		}
		for k := n; k < 9; k++ {
			v *= 10
		}
		*into, s = v, s[n:]
		return true
	}
	name := func(list []string, short bool, into *int64) bool {
		for i, w := range list {
			if short {
				w = w[:3]
			}
			if len(s) >= len(w) && strings.EqualFold(s[:len(w)], w) {
				*into, s = int64(i)+1, s[len(w):]
				return true
			}
		}
		return false
	}
	var ignored int64
	for _, x := range f {
		ok := true
		switch x.code {
		case 0:
			for _, c := range []byte(x.text) {
				if c == ' ' {
					s = strings.TrimLeft(s, " \t\n")
				} else if s != "" && s[0] == c {
					s = s[1:]
				} else {
					return 0, false
				}
			}
		case 'a':
			ok = name(dayNames, true, &ignored)
		case 'A':
			ok = name(dayNames, false, &ignored)
		case 'w', 'u':
			ok = number(1, &ignored)
		case 'U', 'W', 'V':
			ok = number(2, &ignored)
		case 'G':
			ok = number(4, &ignored)
		case 'b':
			ok = name(monthNames, true, &m)
		case 'B':
			ok = name(monthNames, false, &m)
		case 'd':
			ok = number(2, &d) && d >= 1
		case 'm':
			ok = number(2, &m) && m >= 1 && m <= 12
		case 'y':
			if ok = number(2, &y); y < 69 {
				y += 2000
			} else {
				y += 1900
			}
		case 'Y':
			neg := strings.HasPrefix(s, "-")
			s = strings.TrimPrefix(s, "-")
			if ok = number(4, &y); neg {
				y = -y
			}
		case 'H':
			ok = number(2, &h) && h < 24
		case 'I':
			ok = number(2, &h) && h >= 1 && h <= 12
			twelve = true
		case 'p':
			ok = len(s) >= 2 && (strings.EqualFold(s[:2], "am") || strings.EqualFold(s[:2], "pm"))
			if ok {
				pm, s = s[0]|0x20 == 'p', s[2:]
			}
		case 'M':
			ok = number(2, &mi) && mi < 60
		case 'S':
			ok = number(2, &sec) && sec < 60
		case 'f', 'n':
			ok = fraction(9, &ns)
		case 'g':
			ok = fraction(3, &ns)
		case 'j':
			ok = number(3, &yday) && yday >= 1 && yday <= 366
		case 'z', 'Z':
			end := strings.IndexAny(s, " ")
			if end < 0 {
				end = len(s)
			}
			var loc *time.Location
			if z, err := types.LoadZone(s[:end]); err == nil {
				loc = z
			} else {
				return 0, false
			}
			s = s[end:]
			local := types.DaysOf(y, m, d)*types.DayMicros + ((h*60+mi)*60+sec)*1_000_000
			off = local - types.FromLocal(local, loc)
		case 'c', 'x', 'X':
			return 0, false
		}
		if !ok {
			return 0, false
		}
	}
	if twelve {
		if h %= 12; pm {
			h += 12
		}
	}
	if strings.TrimSpace(s) != "" || d > types.MonthDays(y, m) {
		return 0, false
	}
	days := types.DaysOf(y, m, d)
	if yday > 0 {
		days = types.DaysOf(y, 1, 1) + yday - 1
	}
	return days*types.DayMicros + ((h*60+mi)*60+sec)*1_000_000 + ns/1000 - off, true
}
