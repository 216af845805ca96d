package window

import (
	"slices"
	"testing"
	"time"

	"github.com/riverbed/riverbed/core/types"
)

func at(s string) int64 {
	t, err := time.Parse("2006-01-02 15:04:05", s)
	if err != nil {
		panic(err)
	}
	return t.UnixMicro()
}

func span(t *testing.T, v types.IntervalValue) Span {
	s, err := SpanOf(v)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const minute = int64(60_000_000)

func show(starts, ends []int64) []string {
	out := make([]string, len(starts))
	for i := range starts {
		out[i] = time.UnixMicro(starts[i]).UTC().Format("2006-01-02 15:04") + " " + time.UnixMicro(ends[i]).UTC().Format("2006-01-02 15:04")
	}
	return out
}

func TestWindows(t *testing.T) {
	mins := func(n int64) Span { return Span{Micros: n * minute} }
	hop, _ := Hop(mins(2), mins(5))
	gap, _ := Hop(mins(10), mins(4))
	cum, _ := Cumulate(mins(2), mins(6))
	months, _ := Hop(Span{Months: 1}, Span{Months: 3})
	for _, c := range []struct {
		name string
		cut  Cut
		time string
		want []string
	}{
		{"tumble", Tumble(mins(5)), "2024-01-01 00:07:30", []string{"2024-01-01 00:05 2024-01-01 00:10"}},
		{"tumble at a start", Tumble(mins(5)), "2024-01-01 00:05:00", []string{"2024-01-01 00:05 2024-01-01 00:10"}},
		{"tumble before 1970", Tumble(mins(5)), "1969-12-31 23:58:00", []string{"1969-12-31 23:55 1970-01-01 00:00"}},
		{"tumble by months", Tumble(Span{Months: 3}), "1969-02-10 00:00:00", []string{"1969-01-01 00:00 1969-04-01 00:00"}},
		{"tumble by leap years", Tumble(Span{Months: 12}), "2024-02-29 12:00:00", []string{"2024-01-01 00:00 2025-01-01 00:00"}},
		{"hop, size no multiple of slide", hop, "2024-01-01 00:04:00", []string{"2024-01-01 00:00 2024-01-01 00:05", "2024-01-01 00:02 2024-01-01 00:07", "2024-01-01 00:04 2024-01-01 00:09"}},
		{"hop with gaps: in a window", gap, "2024-01-01 00:03:59", []string{"2024-01-01 00:00 2024-01-01 00:04"}},
		{"hop with gaps: between windows", gap, "2024-01-01 00:04:00", nil},
		{"hop by months", months, "2024-03-31 00:00:00", []string{"2024-01-01 00:00 2024-04-01 00:00", "2024-02-01 00:00 2024-05-01 00:00", "2024-03-01 00:00 2024-06-01 00:00"}},
		{"tumble from an offset", Tumble(mins(5)).From(2 * minute), "2024-01-01 00:06:59", []string{"2024-01-01 00:02 2024-01-01 00:07"}},
		{"tumble from an offset back", Tumble(mins(5)).From(-12 * minute), "2024-01-01 00:03:00", []string{"2024-01-01 00:03 2024-01-01 00:08"}},
		{"hop from an offset", hop.From(minute), "2024-01-01 00:04:00", []string{"2024-01-01 00:01 2024-01-01 00:06", "2024-01-01 00:03 2024-01-01 00:08"}},
		{"cumulate from an offset", cum.From(7 * minute), "2024-01-01 00:04:00", []string{"2024-01-01 00:01 2024-01-01 00:05", "2024-01-01 00:01 2024-01-01 00:07"}},
		{"months from an offset", Tumble(Span{Months: 1}).From(4 * dayMicros), "2024-01-04 00:00:00", []string{"2023-12-05 00:00 2024-01-05 00:00"}},
		{"cumulate", cum, "2024-01-01 00:02:00", []string{"2024-01-01 00:00 2024-01-01 00:04", "2024-01-01 00:00 2024-01-01 00:06"}},
	} {
		_, starts, ends, err := c.cut.Windows([]int64{at(c.time)}, nil, nil, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := show(starts, ends); !slices.Equal(got, c.want) {
			t.Errorf("%s: %s lies in %v, want %v", c.name, c.time, got, c.want)
		}
	}
}

// Every window that holds the time is found, and no other: checked against the definition over many times.
func TestHopAgainstDefinition(t *testing.T) {
	for _, d := range [][2]int64{{1, 1}, {2, 5}, {3, 9}, {7, 3}, {4, 6}} {
		c, err := Hop(Span{Micros: d[0]}, Span{Micros: d[1]})
		if err != nil {
			t.Fatal(err)
		}
		for x := int64(-40); x <= 40; x++ {
			_, starts, _, _ := c.Windows([]int64{x}, nil, nil, nil, nil)
			var want []int64
			for k := int64(-100); k <= 100; k++ {
				if s := k * d[0]; s <= x && x < s+d[1] {
					want = append(want, s)
				}
			}
			if !slices.Equal(starts, want) {
				t.Fatalf("hop(%d, %d) at %d: %v, want %v", d[0], d[1], x, starts, want)
			}
		}
	}
}

func TestSpansAreChecked(t *testing.T) {
	for _, v := range []types.IntervalValue{{}, {Micros: -1}, {Months: 1, Days: 1}} {
		if _, err := SpanOf(v); err == nil {
			t.Errorf("%+v was accepted as a window size", v)
		}
	}
	if _, err := Hop(Span{Months: 1}, span(t, types.IntervalValue{Days: 30})); err == nil {
		t.Error("HOP mixed months and days")
	}
	if _, err := Cumulate(Span{Micros: 4}, Span{Micros: 6}); err == nil {
		t.Error("CUMULATE took a size that is no multiple of its step")
	}
}

func TestNullAndFarTimes(t *testing.T) {
	c := Tumble(Span{Micros: minute})
	rows, starts, ends, err := c.Windows([]int64{0, 5}, func(i int) bool { return i == 1 }, nil, nil, nil)
	if err != nil || len(rows) != 2 || starts[0] != NullStart || ends[0] != NullEnd || starts[1] != 0 {
		t.Errorf("NULL time: rows %v starts %v ends %v err %v", rows, starts, ends, err)
	}
	if _, _, _, err := c.Windows([]int64{1<<63 - 1}, nil, nil, nil, nil); err == nil {
		t.Error("a time at the end of int64 was given a window")
	}
}

// TestWindowIsWindows gives rising, falling and far times to both.
func TestWindowIsWindows(t *testing.T) {
	for _, c := range []Cut{Tumble(Span{Micros: 7}), Tumble(Span{Micros: minute}), Tumble(Span{Months: 1})} {
		times := []int64{0, 3, 6, 7, -1, -7, -8, 5, at("2024-02-29 12:00:00"), at("2024-02-01 00:00:00"), at("2024-03-01 00:00:00"), 1 << 62, limit - 8, -limit + 8, 9}
		valid := func(i int) bool { return times[i] != 1<<62 }
		_, starts, ends, err := c.Windows(times, valid, nil, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		s, e := make([]int64, len(times)), make([]int64, len(times))
		if err := c.Window(times, valid, s, e); err != nil || !slices.Equal(s, starts) || !slices.Equal(e, ends) {
			t.Errorf("%v: starts %v ends %v err %v, not %v %v", c, s, e, err, starts, ends)
		}
		if c.Window(times, nil, s, e) == nil {
			t.Errorf("%v: a far time has a window", c)
		}
	}
}
