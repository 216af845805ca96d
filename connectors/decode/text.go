package decode

import (
	"encoding/binary"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/riverbed/riverbed/core/types"
)

// The parsers below read one value from text as DuckDB's casts do. They report failure by ok alone, so that a loop
// over a million rows allocates nothing; the builder that calls them makes the message.

// parseInt reads a whole number; "12.0" and "1e3" are whole, "1.5" is not.
func parseInt(s []byte) (n int64, ok bool) {
	i, neg := sign(s)
	if len(s)-i == 0 || len(s)-i > 18 {
		return parseIntSlow(s)
	}
	for _, c := range s[i:] {
		d := c - '0'
		if d > 9 {
			return parseIntSlow(s)
		}
		n = n*10 + int64(d)
	}
	if neg {
		return -n, true
	}
	return n, true
}

func sign(s []byte) (i int, neg bool) {
	if len(s) > 0 && (s[0] == '-' || s[0] == '+') {
		return 1, s[0] == '-'
	}
	return 0, false
}

func parseIntSlow(s []byte) (int64, bool) {
	if n, err := strconv.ParseInt(string(s), 10, 64); err == nil {
		return n, true
	}
	b, exact, ok := parseScaled(s, 0)
	if !ok || !exact || !b.IsInt64() {
		return 0, false
	}
	return b.Int64(), true
}

// parseUint reads a whole number that is not negative.
func parseUint(s []byte) (uint64, bool) {
	if n, ok := parseInt(s); ok {
		return uint64(n), n >= 0
	}
	n, err := strconv.ParseUint(string(s), 10, 64)
	return n, err == nil
}

// pow10 are the powers that a float64 holds exactly.
var pow10 = [...]float64{1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22}

// parseFloat reads a float64. Numbers of at most 15 digits and a small exponent are exact in one operation.
func parseFloat(s []byte) (float64, bool) {
	i, neg := sign(s)
	var mant uint64
	digits, frac, dot := 0, 0, false
	for ; i < len(s); i++ {
		c := s[i]
		if d := c - '0'; d <= 9 {
			mant = mant*10 + uint64(d)
			digits++
			if dot {
				frac++
			}
		} else if c == '.' && !dot {
			dot = true
		} else {
			return parseFloatSlow(s)
		}
	}
	if digits == 0 || digits > 15 {
		return parseFloatSlow(s)
	}
	f := float64(mant) / pow10[frac]
	if neg {
		f = -f
	}
	return f, true
}

func parseFloatSlow(s []byte) (float64, bool) {
	t := string(s)
	if strings.ContainsAny(t, "_xXpP") { // Go's own spellings
		return 0, false
	}
	f, err := strconv.ParseFloat(t, 64)
	if err != nil && math.IsInf(f, 0) {
		return 0, false // out of range
	}
	return f, err == nil
}

// parseDecimal reads an unscaled DECIMAL(width, scale), rounded half away from zero.
func parseDecimal(s []byte, width, scale int) (decimal128.Num, bool) {
	i, neg := sign(s)
	var n int64
	digits, frac, dot := 0, 0, false
	for ; i < len(s); i++ {
		c := s[i]
		if d := c - '0'; d <= 9 {
			n = n*10 + int64(d)
			digits++
			if dot {
				frac++
			}
		} else if c == '.' && !dot {
			dot = true
		} else {
			break
		}
		if digits > 17 {
			break
		}
	}
	if i == len(s) && digits > 0 && frac <= scale && digits+scale-frac <= 18 {
		for ; frac < scale; frac++ {
			n *= 10
		}
		if neg {
			n = -n
		}
		d := decimal128.FromI64(n)
		return d, d.FitsInPrecision(int32(width))
	}
	b, _, ok := parseScaled(s, scale)
	if !ok || b.BitLen() > 127 {
		return decimal128.Num{}, false
	}
	d := decimal128.FromBigInt(b)
	return d, width == 38 && scale == 0 || d.FitsInPrecision(int32(width))
}

// maxExponent keeps "1e999999999" from making a number of a billion digits.
const maxExponent = 400

// parseScaled reads a number of any length times 10^scale; exact is false when it was rounded.
func parseScaled(s []byte, scale int) (n *big.Int, exact, ok bool) {
	i, neg := sign(s)
	digits := make([]byte, 0, len(s))
	exp, dot := 0, false
	for ; i < len(s); i++ {
		c := s[i]
		if c >= '0' && c <= '9' {
			digits = append(digits, c)
			if dot {
				exp--
			}
		} else if c == '.' && !dot {
			dot = true
		} else if c == 'e' || c == 'E' {
			e, err := strconv.Atoi(string(s[i+1:]))
			if err != nil || e > maxExponent || e < -maxExponent {
				return nil, false, false
			}
			exp += e
			break
		} else {
			return nil, false, false
		}
	}
	n, ok = new(big.Int).SetString(string(digits), 10)
	if !ok {
		return nil, false, false
	}
	exact = true
	if exp += scale; exp >= 0 {
		n.Mul(n, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(exp)), nil))
	} else {
		unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(-exp)), nil)
		rest := new(big.Int)
		n.QuoRem(n, unit, rest)
		exact = rest.Sign() == 0
		if rest.Lsh(rest, 1).Cmp(unit) >= 0 {
			n.Add(n, big.NewInt(1))
		}
	}
	if neg {
		n.Neg(n)
	}
	return n, exact, true
}

// parseBool reads true and false in DuckDB's spellings.
func parseBool(s []byte) (value, ok bool) {
	switch len(s) {
	case 1:
		switch s[0] {
		case 't', 'T', '1':
			return true, true
		case 'f', 'F', '0':
			return false, true
		}
	case 4:
		return true, strings.EqualFold(string(s), "true")
	case 5:
		return false, strings.EqualFold(string(s), "false")
	}
	return false, false
}

// twoDigits reads two digits, or one when no second follows.
func twoDigits(s []byte) (n, used int) {
	if len(s) == 0 || s[0] < '0' || s[0] > '9' {
		return 0, 0
	}
	if len(s) > 1 && s[1] >= '0' && s[1] <= '9' {
		return int(s[0]-'0')*10 + int(s[1]-'0'), 2
	}
	return int(s[0] - '0'), 1
}

// daysFromCivil counts days from 1970-01-01 in the proleptic Gregorian calendar.
func daysFromCivil(y, m, d int) int64 {
	if m <= 2 {
		y--
	}
	era := y / 400
	if y < 0 {
		era = (y - 399) / 400
	}
	yoe := y - era*400
	mp := (m + 9) % 12
	doy := (153*mp+2)/5 + d - 1
	doe := yoe*365 + yoe/4 - yoe/100 + doy
	return int64(era)*146097 + int64(doe) - 719468
}

var monthDays = [13]int{0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}

// date reads a leading YYYY-MM-DD and says how many bytes it took, 0 for none.
func date(s []byte) (days int64, used int) {
	y, i := 0, 0
	for i < len(s) && i < 6 && s[i] >= '0' && s[i] <= '9' {
		y = y*10 + int(s[i]-'0')
		i++
	}
	if i < 4 || i >= len(s) || s[i] != '-' && s[i] != '/' {
		return 0, 0
	}
	sep := s[i]
	i++
	m, n := twoDigits(s[i:])
	i += n
	if n == 0 || i >= len(s) || s[i] != sep || m < 1 || m > 12 {
		return 0, 0
	}
	i++
	d, n := twoDigits(s[i:])
	i += n
	if n == 0 || d < 1 || d > monthDays[m] || m == 2 && d == 29 && (y%4 != 0 || y%100 == 0 && y%400 != 0) {
		return 0, 0
	}
	return daysFromCivil(y, m, d), i
}

// clockTime reads a leading HH:MM[:SS[.fraction]] in nanoseconds.
func clockTime(s []byte) (nanos int64, used int) {
	h, n := twoDigits(s)
	i := n
	if n == 0 || i >= len(s) || s[i] != ':' || h > 24 {
		return 0, 0
	}
	i++
	m, n := twoDigits(s[i:])
	if n == 0 || m > 59 {
		return 0, 0
	}
	i += n
	nanos = int64(h)*3600e9 + int64(m)*60e9
	if i >= len(s) || s[i] != ':' {
		return nanos, i
	}
	i++
	sec, n := twoDigits(s[i:])
	if n == 0 || sec > 59 {
		return 0, 0
	}
	i += n
	nanos += int64(sec) * 1e9
	if i < len(s) && s[i] == '.' {
		i++
		unit := int64(1e8)
		for i < len(s) && s[i] >= '0' && s[i] <= '9' {
			nanos += int64(s[i]-'0') * unit
			unit /= 10
			i++
		}
	}
	if nanos > 24*3600e9 {
		return 0, 0
	}
	return nanos, i
}

// parseDate reads a DATE in days since 1970.
func parseDate(s []byte) (int32, bool) {
	days, used := date(s)
	return int32(days), used > 0 && used == len(s)
}

// parseTime reads a TIME in microseconds.
func parseTime(s []byte) (int64, bool) {
	nanos, used := clockTime(s)
	return nanos / 1000, used > 0 && used == len(s)
}

// parseTimestamp reads ISO 8601 with T or a space, in seconds and nanoseconds since 1970. The offset from UTC that may
// follow is returned apart: as in DuckDB, TIMESTAMP leaves it aside and TIMESTAMPTZ takes it off.
func parseTimestamp(s []byte) (sec, nanos, offset int64, ok bool) {
	days, used := date(s)
	if used == 0 {
		return 0, 0, 0, false
	}
	sec = days * 86400
	s = s[used:]
	if len(s) == 0 {
		return sec, 0, 0, true
	}
	if s[0] != 'T' && s[0] != ' ' && s[0] != 't' {
		return 0, 0, 0, false
	}
	t, used := clockTime(s[1:])
	if used == 0 {
		return 0, 0, 0, false
	}
	offset, ok = parseOffset(s[1+used:])
	return sec + t/1e9, t % 1e9, offset, ok
}

// parseOffset reads what follows the time: nothing, Z, UTC, or ±HH[[:]MM].
func parseOffset(s []byte) (seconds int64, ok bool) {
	if len(s) > 0 && s[0] == ' ' {
		s = s[1:]
		if len(s) == 0 {
			return 0, false
		}
	}
	switch {
	case len(s) == 0 || len(s) == 1 && (s[0] == 'Z' || s[0] == 'z') || string(s) == "UTC":
		return 0, true
	case s[0] != '+' && s[0] != '-':
		return 0, false
	}
	h, n := twoDigits(s[1:])
	rest := s[1+n:]
	if n != 2 || h > 15 {
		return 0, false
	}
	m := 0
	if len(rest) > 0 {
		if rest[0] == ':' {
			rest = rest[1:]
		}
		if m, n = twoDigits(rest); n != 2 || len(rest) != 2 || m > 59 {
			return 0, false
		}
	}
	seconds = int64(h)*3600 + int64(m)*60
	if s[0] == '-' {
		seconds = -seconds
	}
	return seconds, true
}

// parseUUID reads the 36-character form.
func parseUUID(s []byte) (hi, lo uint64, ok bool) {
	if len(s) != 36 {
		return 0, 0, false
	}
	var out [16]byte
	k := 0
	for i := 0; i < len(s); i++ {
		if i == 8 || i == 13 || i == 18 || i == 23 {
			if s[i] != '-' {
				return 0, 0, false
			}
			continue
		}
		d := hexDigit(s[i])
		if d > 15 {
			return 0, 0, false
		}
		out[k/2] = out[k/2]<<4 | d
		k++
	}
	return binary.LittleEndian.Uint64(out[:]), binary.LittleEndian.Uint64(out[8:]), true
}

func hexDigit(c byte) byte {
	switch {
	case c >= '0' && c <= '9':
		return c - '0'
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10
	}
	return 255
}

// ParseTimestamp reads a point in time, for options such as start positions.
func ParseTimestamp(s string) (time.Time, bool) {
	sec, nanos, offset, ok := parseTimestamp([]byte(s))
	return time.Unix(sec-offset, nanos).UTC(), ok
}

// parseInterval reads DuckDB's text of an interval, and what a literal may say.
func parseInterval(s []byte) (arrow.MonthDayNanoInterval, bool) {
	v, err := types.ParseValue(string(s), types.Span)
	if err != nil {
		return arrow.MonthDayNanoInterval{}, false
	}
	iv := v.(types.IntervalValue)
	if iv.Micros > math.MaxInt64/1000 || iv.Micros < math.MinInt64/1000 {
		return arrow.MonthDayNanoInterval{}, false
	}
	return arrow.MonthDayNanoInterval{Months: iv.Months, Days: iv.Days, Nanoseconds: iv.Micros * 1000}, true
}
