// Package window cuts event time into windows: pure functions from timestamps to window edges, shared by both modes.
//
// Invariant: windows are half open, [start, end), and aligned to 1970-01-01 00:00 UTC or to an offset from it, before and after it
// alike; months are calendar months counted from January 1970. Times are microseconds.
package window

import (
	"math"
	"slices"
	"time"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/types"
)

const (
	dayMicros = 86400 * int64(time.Second/time.Microsecond)
	// limit keeps edges within what a TIMESTAMP can hold, with room to add a size.
	limit = math.MaxInt64 / 2
)

// Span is a window size or slide: either months or microseconds, positive.
type Span struct {
	Months int64
	Micros int64
}

// SpanOf reads an interval. Months do not mix with days and time: their length in microseconds varies.
func SpanOf(v types.IntervalValue) (Span, error) {
	s := Span{int64(v.Months), int64(v.Days)*dayMicros + v.Micros}
	if s.Months < 0 || s.Micros < 0 || s == (Span{}) {
		return s, errs.New(errs.Schema, "plan", "a window size must be positive")
	}
	if s.Months > 0 && s.Micros > 0 {
		return s, errs.New(errs.Schema, "plan", "a window size mixes months with days or time")
	}
	return s, nil
}

// Floor is the latest multiple of s, counted from 1970, that is not after t, so that windows before 1970 are aligned like
// those after.
func (s Span) Floor(t int64) int64 {
	if s.Months == 0 {
		return types.FloorDiv(t, s.Micros) * s.Micros
	}
	return monthStart(types.FloorDiv(monthOf(t), s.Months) * s.Months)
}

// Add moves t, which is a multiple of a span, n spans on.
func (s Span) Add(t, n int64) int64 {
	if s.Months == 0 {
		return t + n*s.Micros
	}
	return monthStart(monthOf(t) + n*s.Months)
}

func monthOf(t int64) int64 {
	u := time.UnixMicro(t).UTC()
	return int64(u.Year()-1970)*12 + int64(u.Month()) - 1
}

func monthStart(m int64) int64 {
	return time.Date(1970+int(types.FloorDiv(m, 12)), time.Month(m-types.FloorDiv(m, 12)*12+1), 1, 0, 0, 0, 0, time.UTC).UnixMicro()
}

// Cut assigns rows to windows. The zero Cut is not valid; see Tumble, Hop and Cumulate.
type Cut struct {
	size, slide Span
	cumulate    bool
	offset      int64
}

// From moves all windows on by an offset, which may be negative.
func (c Cut) From(offset int64) Cut {
	every := c.slide
	if c.cumulate {
		every = c.size
	}
	if c.offset = offset; every.Months == 0 {
		c.offset %= every.Micros
	}
	return c
}

// Tumble cuts time into windows of one size that follow each other.
func Tumble(size Span) Cut { return Cut{size: size, slide: size} }

// Hop cuts time into windows of a size, one starting every slide; size need not be a multiple of slide.
func Hop(slide, size Span) (Cut, error) {
	if (slide.Months > 0) != (size.Months > 0) {
		return Cut{}, errs.New(errs.Schema, "plan", "the slide and the size of HOP must both be months, or both not")
	}
	return Cut{size: size, slide: slide}, nil
}

// Cumulate gives windows that start every size and end at each step within it.
func Cumulate(step, size Span) (Cut, error) {
	if (step.Months > 0) != (size.Months > 0) || step.Months == 0 && size.Micros%step.Micros != 0 || step.Months > 0 && size.Months%step.Months != 0 {
		return Cut{}, errs.New(errs.Schema, "plan", "the size of CUMULATE must be a multiple of its step")
	}
	return Cut{size: size, slide: step, cumulate: true}, nil
}

// Tumbling reports whether each row lies in exactly one window.
func (c Cut) Tumbling() bool { return !c.cumulate && c.size == c.slide }

// Windows appends, for the time of each row, its windows in rising order: the row's number, start and end. valid nil means
// that all times are known; a row whose time is NULL gets one window with NULL edges, marked by start > end.
func (c Cut) Windows(times []int64, valid func(i int) bool, rows []int32, starts, ends []int64) ([]int32, []int64, []int64, error) {
	for i, t := range times {
		if valid != nil && !valid(i) {
			rows, starts, ends = append(rows, int32(i)), append(starts, NullStart), append(ends, NullEnd)
			continue
		}
		if t > limit || t < -limit {
			return nil, nil, nil, tooFar(t)
		}
		first := len(rows)
		t -= c.offset
		switch {
		case c.Tumbling():
			s := c.size.Floor(t)
			rows, starts, ends = append(rows, int32(i)), append(starts, s), append(ends, c.size.Add(s, 1))
		case c.cumulate:
			s := c.size.Floor(t)
			end := c.size.Add(s, 1)
			for e := c.slide.Add(c.slide.Floor(t), 1); e <= end; e = c.slide.Add(e, 1) {
				rows, starts, ends = append(rows, int32(i)), append(starts, s), append(ends, e)
			}
		default:
			from := len(rows)
			for s := c.slide.Floor(t); ; s = c.slide.Add(s, -1) {
				e := c.endOf(s)
				if e <= t {
					break
				}
				rows, starts, ends = append(rows, int32(i)), append(starts, s), append(ends, e)
			}
			reverse(starts[from:])
			reverse(ends[from:])
			if i == 0 { // the others have as many, or one less
				more := (len(rows) - from) * len(times)
				rows, starts, ends = slices.Grow(rows, more), slices.Grow(starts, more), slices.Grow(ends, more)
			}
		}
		for k := first; c.offset != 0 && k < len(rows); k++ {
			starts[k] += c.offset
			ends[k] += c.offset
		}
	}
	return rows, starts, ends, nil
}

// Window writes the start and end of each row's window, of a tumbling cut; see Windows. Rows of one window come together, mostly.
func (c Cut) Window(times []int64, valid func(i int) bool, starts, ends []int64) error {
	from, to := int64(0), int64(0)
	for i, t := range times {
		switch {
		case valid != nil && !valid(i):
			starts[i], ends[i] = NullStart, NullEnd
			continue
		case t >= from && t < to:
		case t > limit || t < -limit:
			return tooFar(t)
		default:
			start := c.size.Floor(t - c.offset)
			from, to = start+c.offset, c.size.Add(start, 1)+c.offset
		}
		starts[i], ends[i] = from, to
	}
	return nil
}

func tooFar(t int64) error {
	return errs.New(errs.Data, "assign windows", "the time %s lies outside what windows can hold", time.UnixMicro(t).UTC())
}

// NullStart and NullEnd mark the window of a row without a time.
const (
	NullStart = int64(math.MaxInt64)
	NullEnd   = int64(math.MinInt64)
)

// endOf is the end of the window that starts at s.
func (c Cut) endOf(s int64) int64 {
	if c.size.Months > 0 {
		return monthStart(monthOf(s) + c.size.Months)
	}
	return s + c.size.Micros
}

func reverse(v []int64) {
	for i, j := 0, len(v)-1; i < j; i, j = i+1, j-1 {
		v[i], v[j] = v[j], v[i]
	}
}

// SliceOf is the start of the piece of a width that holds a time; see Slice.
func (c Cut) SliceOf(t, width int64) int64 {
	return types.FloorDiv(t-c.offset, width)*width + c.offset
}

// OffsetOf reads an interval by which windows are moved on: days and time, either way.
func OffsetOf(v types.IntervalValue) (int64, error) {
	if v.Months != 0 {
		return 0, errs.New(errs.Schema, "plan", "the offset of a window cannot be months").WithHint("use days")
	}
	if d := int64(v.Days); d > maxGapDays || d < -maxGapDays || v.Micros > limit/2 || v.Micros < -limit/2 {
		return 0, errs.New(errs.Schema, "plan", "the offset of a window is too long")
	}
	return int64(v.Days)*dayMicros + v.Micros, nil
}

// Slice is the width of the pieces from which a HOP's windows can be put together: every window edge is a piece's edge.
// It is the greatest common divisor of size and slide.
func (c Cut) Slice() Span {
	if c.size.Months > 0 {
		return Span{Months: gcd(c.size.Months, c.slide.Months)}
	}
	return Span{Micros: gcd(c.size.Micros, c.slide.Micros)}
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
