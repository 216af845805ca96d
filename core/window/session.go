package window

import (
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/types"
)

// Gap parts the rows of a key into sessions: rows that are at most a gap apart are in one, and a session ends a gap after its last
// row. So a row whose time is the end of a session still belongs to it, and it is settled once the watermark has passed its end.
type Gap int64

// maxGapDays keeps a gap in microseconds.
const maxGapDays = limit / dayMicros / 2

// GapOf reads an interval. Months are refused: how far apart two rows may be would depend on the calendar.
func GapOf(v types.IntervalValue) (Gap, error) {
	switch g := int64(v.Days)*dayMicros + v.Micros; {
	case v.Months != 0:
		return 0, errs.New(errs.Schema, "plan", "the gap of a session cannot be months").WithHint("use days")
	case v.Days < 0 || v.Micros < 0 || v.Days == 0 && v.Micros == 0:
		return 0, errs.New(errs.Schema, "plan", "the gap of a session must be positive")
	case int64(v.Days) > maxGapDays || v.Micros > maxGapDays*dayMicros:
		return 0, errs.New(errs.Schema, "plan", "the gap of a session is too long")
	default:
		return Gap(g), nil
	}
}

// Joins reports whether rows at two times, the earlier first, are in one session.
func (g Gap) Joins(a, b int64) bool { return b-a <= int64(g) }

// End is where a session ends whose last row is at t.
func (g Gap) End(t int64) int64 { return t + int64(g) }

// Check refuses times for which a session could not be told.
func (g Gap) Check(times []int64, valid func(i int) bool) error {
	for i, t := range times {
		if (t > limit || t < -limit) && (valid == nil || valid(i)) {
			return tooFar(t)
		}
	}
	return nil
}
