package types

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"math"
	"math/bits"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/riverbed/riverbed/core/errs"
)

// ParseValue reads the text form of a value as CAST(text AS t) does. A TIMESTAMPTZ without offset is taken as UTC.
func ParseValue(text string, t Type) (Value, error) { return ParseValueIn(text, t, nil) }

// ParseValueIn is ParseValue with a zone for TIMESTAMPTZ texts that name none; nil is UTC.
func ParseValueIn(text string, t Type, loc *time.Location) (Value, error) {
	var v Value
	ok := false
	switch t.Kind {
	case Varchar:
		return text, nil
	case JSON:
		if err := CheckJSON(text); err != nil {
			return nil, err
		}
		return text, nil
	case Boolean:
		v, ok = ParseBool(text)
	case TinyInt, SmallInt, Integer, BigInt:
		var n int64
		if n, ok = ParseInt(text); ok {
			lo, hi := IntRange(t.Kind)
			v, ok = n, n >= lo && n <= hi
		}
	case UTinyInt, USmallInt, UInteger, UBigInt:
		var n decimal128.Num
		if n, ok = parseWhole(text); ok {
			v, ok = n.LowBits(), FitsInt(n, t.Kind)
		}
	case HugeInt:
		v, ok = parseWhole(text)
	case UHugeInt:
		v, ok = parseUWhole(text)
	case Decimal:
		v, ok = ParseDecimal(text, int(t.Width), int(t.Scale))
	case Real:
		var f float64
		f, ok = ParseFloat(text, 32)
		v = float32(f)
	case Double:
		v, ok = ParseFloat(text, 64)
	case Blob:
		return ParseBlob(text)
	case Date:
		return ParseDate(text)
	case Time:
		v, ok = ParseTime(text)
	case TimestampS, TimestampMS, Timestamp, TimestampNS, TimestampTZ:
		return ParseTimestamp(text, t.Kind, loc)
	case Interval:
		v, ok = ParseInterval(text)
	case UUID:
		v, ok = ParseUUID(text)
	case List, Struct, Map:
		return parseNested(text, t, loc)
	}
	if !ok {
		return nil, Unreadable(text, t)
	}
	return v, nil
}

// Unreadable is the error of a text that is no value of a type.
func Unreadable(text string, t Type) error {
	const most = 100
	if len(text) > most {
		text = text[:most] + "…"
	}
	return errs.New(errs.Data, "cast", "could not convert string '%s' to %s", text, t).WithHint("TRY_CAST gives NULL instead")
}

// ParseBool reads true, t, yes, y, 1 and their opposites, in any case.
func ParseBool(s string) (v, ok bool) {
	switch len(s) {
	case 1:
		switch s[0] | 0x20 {
		case 't', 'y', '1':
			return true, true
		case 'f', 'n', '0':
			return false, true
		}
	case 2, 3, 4, 5:
		switch strings.ToLower(s) {
		case "true", "yes":
			return true, true
		case "false", "no":
			return false, true
		}
	}
	return false, false
}

// ParseInt reads a whole number of 64 bits. A fraction rounds half away from zero; 1e3, 0x1F, 0b11 and 1_000 are read.
func ParseInt(s string) (int64, bool) {
	i, neg := 0, false
	if len(s) > 1 && (s[0] == '-' || s[0] == '+') {
		i, neg = 1, s[0] == '-'
	}
	if n := len(s) - i; n == 0 || n > 18 {
		return parseInt64(s)
	}
	v := int64(0)
	for ; i < len(s); i++ {
		d := s[i] - '0'
		if d > 9 {
			return parseInt64(s)
		}
		v = v*10 + int64(d)
	}
	if neg {
		v = -v
	}
	return v, true
}

func parseInt64(s string) (int64, bool) {
	n, ok := parseWhole(s)
	return int64(n.LowBits()), ok && fitsInt64(n)
}

func parseWhole(s string) (decimal128.Num, bool) {
	if n, ok := parseBased(s); ok {
		return n, n.HighBits() >= 0
	}
	neg, hi, lo, ok := parseScaled(s, 0)
	if !ok {
		return decimal128.Num{}, false
	}
	return signed(neg, hi, lo)
}

func parseUWhole(s string) (decimal128.Num, bool) {
	if n, ok := parseBased(s); ok {
		return n, true
	}
	neg, hi, lo, ok := parseScaled(s, 0)
	return decimal128.New(int64(hi), lo), ok && (!neg || hi|lo == 0)
}

// parseBased reads 0x… and 0b….
func parseBased(s string) (decimal128.Num, bool) {
	s = strings.TrimSpace(s)
	if len(s) < 3 || s[0] != '0' {
		return decimal128.Num{}, false
	}
	base := map[byte]int{'x': 16, 'b': 2}[s[1]|0x20]
	if base == 0 {
		return decimal128.Num{}, false
	}
	v, err := strconv.ParseUint(strings.ReplaceAll(s[2:], "_", ""), base, 64)
	return decimal128.New(0, v), err == nil
}

// ParseDecimal reads a DECIMAL(width, scale), rounding half away from zero.
func ParseDecimal(s string, width, scale int) (decimal128.Num, bool) {
	neg, hi, lo, ok := parseScaled(s, scale)
	if !ok {
		return decimal128.Num{}, false
	}
	n, ok := signed(neg, hi, lo)
	return n, ok && FitsWidth(n, width)
}

// parseScaled reads a decimal number times 10^scale as a magnitude of 128 bits, rounding half away from zero.
func parseScaled(s string, scale int) (neg bool, hi, lo uint64, ok bool) {
	s = strings.TrimSpace(s)
	if s != "" && (s[0] == '-' || s[0] == '+') {
		neg, s = s[0] == '-', s[1:]
	}
	exp, points, digits := 0, 0, 0
	mantissa := s
	if e := strings.IndexAny(s, "eE"); e >= 0 {
		x, err := strconv.Atoi(s[e+1:])
		if err != nil || x > 1000 || x < -1000 {
			return false, 0, 0, false
		}
		exp, mantissa = x, s[:e]
	}
	for i := 0; i < len(mantissa); i++ {
		switch c := mantissa[i]; {
		case c >= '0' && c <= '9':
			digits++
			if points == 1 {
				exp--
			}
		case c == '.':
			if points++; points > 1 {
				return false, 0, 0, false
			}
		case c == '_' && i > 0 && i+1 < len(mantissa) && isDigit(mantissa[i-1]) && isDigit(mantissa[i+1]):
		default:
			return false, 0, 0, false
		}
	}
	if digits == 0 {
		return false, 0, 0, false
	}
	shift := exp + scale   // the digits stand for themselves times 10^shift
	keep := digits + shift // how many of them lie before the point
	round := false
	for i, seen := 0, 0; i < len(mantissa); i++ {
		if !isDigit(mantissa[i]) {
			continue
		}
		if seen >= keep {
			round = seen == keep && mantissa[i] >= '5'
			break
		}
		seen++
		if hi, lo, ok = mulUnsigned(hi, lo, 0, 10); !ok {
			return false, 0, 0, false
		}
		var c uint64
		lo, c = bits.Add64(lo, uint64(mantissa[i]-'0'), 0)
		if hi, c = bits.Add64(hi, 0, c); c != 0 {
			return false, 0, 0, false
		}
	}
	for ; shift > 0 && hi|lo != 0; shift-- {
		if hi, lo, ok = mulUnsigned(hi, lo, 0, 10); !ok {
			return false, 0, 0, false
		}
	}
	if round {
		var c uint64
		lo, c = bits.Add64(lo, 1, 0)
		if hi, c = bits.Add64(hi, 0, c); c != 0 {
			return false, 0, 0, false
		}
	}
	return neg, hi, lo, true
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// ParseFloat reads a float; what is too large is infinite.
func ParseFloat(s string, bitSize int) (float64, bool) {
	s = strings.TrimSpace(s)
	if strings.IndexByte(s, '_') >= 0 {
		s = strings.ReplaceAll(s, "_", "")
	}
	if strings.HasPrefix(strings.TrimLeft(s, "+-"), "0x") {
		return 0, false
	}
	f, err := strconv.ParseFloat(s, bitSize)
	if err != nil && !math.IsInf(f, 0) {
		return 0, false
	}
	return f, true
}

// ParseBlob reads ASCII with \xHH for other bytes.
func ParseBlob(s string) ([]byte, error) {
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\':
			if i+3 >= len(s) || s[i+1] != 'x' && s[i+1] != 'X' {
				return nil, badBlob(s)
			}
			b, err := hex.DecodeString(s[i+2 : i+4])
			if err != nil {
				return nil, badBlob(s)
			}
			out = append(out, b[0])
			i += 3
		case c >= 0x80:
			return nil, badBlob(s)
		default:
			out = append(out, c)
		}
	}
	return out, nil
}

func badBlob(s string) error {
	return errs.New(errs.Data, "cast", "could not convert string '%s' to BLOB", s).WithHint(`write bytes outside ASCII, and the backslash, as \xHH`)
}

// ParseUUID reads 32 hexadecimal digits, with or without hyphens and braces.
func ParseUUID(s string) (u [16]byte, ok bool) {
	if len(s) > 1 && s[0] == '{' && s[len(s)-1] == '}' {
		s = s[1 : len(s)-1]
	}
	n := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		var d byte
		switch {
		case c == '-' && i > 0:
			continue
		case isDigit(c):
			d = c - '0'
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			d = c | 0x20 - 'a' + 10
		default:
			return u, false
		}
		if n == 32 {
			return u, false
		}
		u[n/2] |= d << (4 * (1 - n%2))
		n++
	}
	return u, n == 32
}

// CheckJSON reports why a text is no JSON.
func CheckJSON(s string) error {
	if json.Valid([]byte(s)) {
		return nil
	}
	var at int
	d := json.NewDecoder(bytes.NewReader([]byte(s)))
	for {
		if _, err := d.Token(); err != nil {
			at = int(d.InputOffset())
			break
		}
	}
	if len(s) > 100 {
		s = s[:100] + "…"
	}
	return errs.New(errs.Data, "cast", "malformed JSON at byte %d of '%s'", at, s)
}

// scanner reads the parts of dates and times.
type scanner struct {
	s  string
	at int
}

// number reads up to most digits.
func (p *scanner) number(most int) (v int64, digits int) {
	for p.at < len(p.s) && digits < most && isDigit(p.s[p.at]) {
		v = v*10 + int64(p.s[p.at]-'0')
		p.at++
		digits++
	}
	return v, digits
}

func (p *scanner) accept(c byte) bool {
	if p.at < len(p.s) && p.s[p.at] == c {
		p.at++
		return true
	}
	return false
}

func (p *scanner) word(w string) bool {
	if strings.HasPrefix(p.s[p.at:], w) {
		p.at += len(w)
		return true
	}
	return false
}

func (p *scanner) spaces() {
	for p.at < len(p.s) && (p.s[p.at] == ' ' || p.s[p.at] == '\t' || p.s[p.at] == '\n') {
		p.at++
	}
}

// date reads [-]Y-M-D, also with / or a space between, and (BC). wrong: it looks like a date, but there is no such day.
func (p *scanner) date() (days int64, ok, wrong bool) {
	neg := p.accept('-')
	y, n := p.number(7)
	if n == 0 || p.at >= len(p.s) || strings.IndexByte("-/\\ ", p.s[p.at]) < 0 {
		return 0, false, false
	}
	sep := p.s[p.at]
	p.at++
	m, n1 := p.number(2)
	if n1 == 0 || !p.accept(sep) {
		return 0, false, false
	}
	d, n2 := p.number(2)
	if n2 == 0 {
		return 0, false, false
	}
	if neg {
		y = -y
	}
	if p.word(" (BC)") {
		if neg || y == 0 {
			return 0, false, false
		}
		y = 1 - y
	}
	if m < 1 || m > 12 || d < 1 || d > MonthDays(y, m) {
		return 0, false, true
	}
	days = DaysOf(y, m, d)
	return days, true, days <= -InfinityDate || days >= InfinityDate
}

// parseClock reads H:M[:S[.fraction]] and gives nanoseconds of the day and how far it read.
func parseClock(s string) (ns int64, n int, ok bool) {
	p := scanner{s: s}
	ns, ok = p.clock()
	return ns, p.at, ok
}

func (p *scanner) clock() (int64, bool) {
	h, n := p.number(2)
	if n == 0 || !p.accept(':') {
		return 0, false
	}
	m, n := p.number(2)
	if n == 0 || m > 59 {
		return 0, false
	}
	ns := (h*3600 + m*60) * nano
	if !p.accept(':') {
		return ns, true
	}
	s, n := p.number(2)
	if n == 0 || s > 59 {
		return 0, false
	}
	ns += s * nano
	if p.accept('.') {
		f, n := p.number(9)
		for ; n < 9; n++ {
			f *= 10
		}
		ns += f
		p.number(math.MaxInt)
	}
	return ns, true
}

// ParseDate reads a DATE; a time behind it is read and dropped.
func ParseDate(s string) (Value, error) {
	t := strings.TrimSpace(s)
	switch strings.ToLower(t) {
	case "epoch":
		return int64(0), nil
	case "infinity", "inf":
		return int64(InfinityDate), nil
	case "-infinity", "-inf":
		return int64(-InfinityDate), nil
	}
	p := scanner{s: t}
	days, ok, wrong := p.date()
	if ok && !wrong && p.at < len(t) {
		if _, err := ParseTimestamp(s, Timestamp, nil); err != nil {
			ok = false
		}
	}
	switch {
	case wrong:
		return nil, errs.New(errs.Data, "cast", "date out of range: '%s'", s)
	case !ok:
		return nil, errs.New(errs.Data, "cast", "could not convert string '%s' to DATE", s).WithHint("a date is written YYYY-MM-DD")
	}
	return days, nil
}

// ParseTime reads a TIME in microseconds; an offset is dropped.
func ParseTime(s string) (int64, bool) {
	p := scanner{s: strings.TrimSpace(s)}
	ns, ok := p.clock()
	if !ok {
		ts, err := ParseTimestamp(s, Timestamp, nil)
		if err != nil {
			return 0, false
		}
		_, us := SplitMicros(ts.(int64))
		return us, true
	}
	if _, _, zoned := p.zone(); ns > 86400*nano || p.at < len(p.s) && !zoned {
		return 0, false
	}
	return ns / 1000, true
}

// zone reads what may follow a time: Z, UTC, an offset, the name of a zone. off is the offset from UTC in seconds, or
// with a zone the one it has at that local time.
func (p *scanner) zone() (off int64, loc *time.Location, ok bool) {
	p.spaces()
	rest := p.s[p.at:]
	switch {
	case rest == "":
		return 0, nil, false
	case rest == "Z" || rest == "z":
		p.at++
		return 0, time.UTC, true
	case rest[0] == '+' || rest[0] == '-':
		neg := rest[0] == '-'
		p.at++
		h, n := p.number(2)
		if n != 2 {
			return 0, nil, false
		}
		off = h * 3600
		for unit := int64(60); unit >= 1 && p.at < len(p.s); unit /= 60 {
			p.accept(':')
			v, n := p.number(2)
			if n != 2 || v > 59 {
				break
			}
			off += v * unit
		}
		if neg {
			off = -off
		}
		p.spaces()
		return off, nil, p.at == len(p.s)
	}
	loc, err := LoadZone(strings.TrimSpace(rest))
	if err != nil {
		return 0, nil, false
	}
	p.at = len(p.s)
	return 0, loc, true
}

// ParseTimestamp reads a timestamp in the unit of its kind, rounding half away from zero except to microseconds, which truncate.
// TIMESTAMPTZ uses the offset or zone that the text names, or else loc; the others drop it.
func ParseTimestamp(s string, k Kind, loc *time.Location) (Value, error) {
	t := strings.TrimSpace(s)
	switch strings.ToLower(t) {
	case "epoch":
		return int64(0), nil
	case "infinity", "inf":
		return int64(InfinityTS), nil
	case "-infinity", "-inf":
		return int64(-InfinityTS), nil
	}
	bad := func() (Value, error) {
		return nil, errs.New(errs.Data, "cast", "could not convert string '%s' to %s", s, names[k]).
			WithHint("a timestamp is written YYYY-MM-DD HH:MM[:SS[.ffffff]][+HH:MM]")
	}
	outside := func() (Value, error) {
		return nil, errs.New(errs.Data, "cast", "%s out of range: '%s'", names[k], s)
	}
	p := scanner{s: t}
	days, ok, wrong := p.date()
	switch {
	case wrong:
		return outside()
	case !ok:
		return bad()
	}
	ns, zoned, off := int64(0), false, int64(0)
	var zone *time.Location
	if p.at < len(t) {
		if !p.accept(' ') && !p.accept('T') && !p.accept('t') {
			return bad()
		}
		p.spaces()
		if ns, ok = p.clock(); !ok {
			return bad()
		}
		if ns > 86400*nano {
			return outside()
		}
		if off, zone, zoned = p.zone(); !zoned && p.at < len(t) {
			return bad()
		}
	}
	if k == TimestampNS {
		v, ok := mulAdd(days, 86400*nano, ns)
		if !ok {
			return outside()
		}
		return v, nil
	}
	us, ok := mulAdd(days, DayMicros, ns/1000)
	if !ok || us == InfinityTS || us <= -InfinityTS {
		return outside()
	}
	if k == TimestampTZ {
		switch {
		case zone != nil:
			us = FromLocal(us, zone)
		case zoned:
			us -= off * 1_000_000
		default:
			us = FromLocal(us, loc)
		}
	}
	per := 1_000_000 / UnitsPerSecond(k)
	return RoundUnits(us, per), nil
}

// RoundUnits divides by per, rounding half away from zero.
func RoundUnits(v, per int64) int64 {
	q, r := v/per, v%per
	if r < 0 {
		r = -r
	}
	if per > 1 && r >= per-r {
		if v < 0 {
			return q - 1
		}
		return q + 1
	}
	return q
}
