package decode

import "github.com/riverbed/riverbed/core/types"

// Shapes remembers which types every text seen so far could be, so that a column's type can be inferred from a sample.
// The zero value has seen nothing.
type Shapes struct {
	seen, no uint16 // bit sets over candidates
}

// candidates in the order in which they are preferred; VARCHAR takes the rest.
var candidates = []struct {
	t    types.Type
	fits func([]byte) bool
}{
	{types.Bool, func(s []byte) bool { _, ok := parseBool(s); return ok && len(s) >= 4 }},
	{types.Int64, func(s []byte) bool { _, ok := parseInt(s); return ok && plainNumber(s) && !Padded(s) }},
	{types.Int128, func(s []byte) bool { _, ok := parseDecimal(s, 38, 0); return ok && plainNumber(s) && !Padded(s) }},
	{types.Float64, func(s []byte) bool { _, ok := parseFloat(s); return ok && !Padded(s) }},
	{types.TimeUS, func(s []byte) bool { _, ok := parseTime(s); return ok }},
	{types.Date32, func(s []byte) bool { _, ok := parseDate(s); return ok }},
	{types.TsUS, func(s []byte) bool { _, _, _, ok := parseTimestamp(s); return ok && !hasOffset(s) }},
	{types.TsTZ, func(s []byte) bool { _, _, _, ok := parseTimestamp(s); return ok }},
	{types.UUIDType, func(s []byte) bool { _, _, ok := parseUUID(s); return ok }},
}

// zonedCandidate is the place of TIMESTAMPTZ among the candidates.
const zonedCandidate = 7

// Padded reports whether a text would lose what it begins with if it became a number: a zero before a digit, or a plus, as
// postal codes and telephone numbers have. Such a column is VARCHAR when a type is guessed, as in DuckDB.
func Padded(s []byte) bool {
	return len(s) > 1 && (s[0] == '+' || s[0] == '0' && '0' <= s[1] && s[1] <= '9')
}

// plainNumber: only digits and a sign; 1e3 and 1.0 are DOUBLE when a type is guessed.
func plainNumber(s []byte) bool {
	for i, c := range s {
		if c-'0' > 9 && !(i == 0 && (c == '-' || c == '+')) {
			return false
		}
	}
	return true
}

// hasOffset reports whether a timestamp names an offset from UTC, be it Z.
func hasOffset(s []byte) bool {
	for i := len(s) - 1; i > 10; i-- {
		switch c := s[i]; {
		case c == 'Z' || c == 'z' || c == '+' || c == '-' || c == 'C':
			return true
		}
	}
	return false
}

// hasUTCOffsetOnly: no offset, or one that says UTC.
func hasUTCOffsetOnly(s []byte) bool {
	_, _, offset, ok := parseTimestamp(s)
	return ok && offset == 0
}

const (
	sawText     = 1 << 15 // some text
	sawDistance = 1 << 14 // a timestamp with an offset other than UTC
)

// See takes one text into account.
func (h *Shapes) See(s []byte) {
	h.seen |= sawText
	for i, c := range candidates {
		if bit := uint16(1) << i; h.no&bit == 0 && !c.fits(s) {
			h.no |= bit
		}
	}
	if h.no&(1<<zonedCandidate) == 0 && !hasUTCOffsetOnly(s) {
		h.seen |= sawDistance
	}
}

// Any reports whether any text was seen.
func (h *Shapes) Any() bool { return h.seen&sawText != 0 }

// Type is the first type that fits all texts; only the types that keep allows are tried.
func (h *Shapes) Type(keep func(types.Kind) bool) types.Type {
	if !h.Any() {
		return types.String
	}
	for i, c := range candidates {
		if h.no&(1<<i) == 0 && (keep == nil || keep(c.t.Kind)) {
			return c.t
		}
	}
	return types.String
}

// OnlyUTC reports whether every timestamp seen was in UTC or without offset, so that TIMESTAMP loses nothing.
func (h *Shapes) OnlyUTC() bool { return h.seen&sawDistance == 0 }
