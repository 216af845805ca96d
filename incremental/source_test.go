package incremental_test

import (
	"maps"
	"testing"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/incremental"
	"github.com/riverbed/riverbed/incremental/optest"
)

const stream = "CREATE STREAM s (ts TIMESTAMP, v BIGINT, WATERMARK FOR ts AS ts - INTERVAL '5 seconds')"

// The rules of DESIGN "Watermark" and "Late", one a case. A step is a list of rows; do comes before them.
func TestWatermarksAndLateRows(t *testing.T) {
	type step struct {
		rows []string
		do   func(op *optest.Run)
		at   string
		late []string // all so far
	}
	idle := func(split string) func(op *optest.Run) { return func(op *optest.Run) { op.Idle("", split) } }
	open := func(split string) func(op *optest.Run) { return func(op *optest.Run) { op.Open("", split) } }
	for _, c := range []struct {
		name  string
		ddl   string
		steps []step
	}{
		{"before the first row nothing is known", stream, []step{{at: "none"}}},
		{"the watermark is the running maximum of its expression", stream, []step{
			{rows: []string{"s/a +1 00:10 1", "s/a +1 00:08 1"}, at: "00:05"},
			{rows: []string{"s/a +1 00:07 1"}, at: "00:05"},
		}},
		{"a row is judged by the rows before it, not by its batch or step", stream, []step{
			{rows: []string{"s/a +1 00:04 1", "s/a +1 00:10 2", "s/a +1 00:04 3", "s/a +1 00:05 4"}, at: "00:05", late: []string{"+1 00:04 3"}},
		}},
		{"a row at the watermark is not late", stream, []step{
			{rows: []string{"s/a +1 00:10 1"}, at: "00:05"},
			{rows: []string{"s/a +1 00:05 2", "s/a +1 00:04.999999 3"}, at: "00:05", late: []string{"+1 00:04.999999 3"}},
		}},
		{"an expression that is no event time less an interval is evaluated",
			"CREATE STREAM s (ts TIMESTAMP, v BIGINT, WATERMARK FOR ts AS least(ts, ts + INTERVAL '-5 seconds'))", []step{
				{rows: []string{"s/a +1 00:10 1"}, at: "00:05"},
				{rows: []string{"s/a +1 00:05 2", "s/a +1 00:04.999999 3"}, at: "00:05", late: []string{"+1 00:04.999999 3"}},
			}},
		{"an interval has days and hours",
			"CREATE STREAM s (ts TIMESTAMP, v BIGINT, WATERMARK FOR ts AS ts - INTERVAL '1 day -24 hours 5 seconds')", []step{
				{rows: []string{"s/a +1 00:10 1"}, at: "00:05"},
				{rows: []string{"s/a +1 00:05 2", "s/a +1 00:04.999999 3"}, at: "00:05", late: []string{"+1 00:04.999999 3"}},
			}},
		{"allowed lateness is taken off, and operators see the watermark less it",
			"CREATE STREAM s (ts TIMESTAMP, v BIGINT, WATERMARK FOR ts AS ts - INTERVAL '5 seconds') WITH (lateness_ms = 2000)", []step{
				{rows: []string{"s/a +1 00:10 1", "s/a +1 00:03 2", "s/a +1 00:02 3"}, at: "00:03", late: []string{"+1 00:02 3"}},
			}},
		{"a row is judged by its own split, so another cut gives the same rows", stream, []step{
			{rows: []string{"s/a +1 00:20 1", "s/b +1 00:01 2", "s/b +1 00:09 3", "s/b +1 00:01 4"}, at: "00:04", late: []string{"+1 00:01 4"}},
		}},
		{"a stream waits for its slowest split", stream, []step{
			{rows: []string{"s/a +1 00:20 1", "s/b +1 00:10 2"}, at: "00:05"},
			{rows: []string{"s/b +1 00:30 3"}, at: "00:15"},
		}},
		{"a split that never had a row counts", stream, []step{
			{do: open("b"), rows: []string{"s/a +1 00:20 1"}, at: "none"},
			{rows: []string{"s/b +1 00:10 2"}, at: "00:05"},
		}},
		{"an idle split does not count, until its next row", stream, []step{
			{rows: []string{"s/a +1 00:20 1", "s/b +1 00:10 2"}, at: "00:05"},
			{do: idle("b"), at: "00:15"},
			{rows: []string{"s/b +1 00:16 3"}, at: "00:15"},
			{rows: []string{"s/a +1 00:40 4"}, at: "00:15"},
		}},
		{"behind idleness a row is judged by the stream's watermark at the step's start", stream, []step{
			{rows: []string{"s/a +1 00:20 1", "s/b +1 00:10 2"}, at: "00:05"},
			{do: func(op *optest.Run) { op.Push("s/b +1 00:06 3").Idle("", "b") }, at: "00:15"},
			{rows: []string{"s/b +1 00:14 4", "s/b +1 00:15 5"}, at: "00:15", late: []string{"+1 00:14 4"}},
		}},
		{"idleness counts behind the rows before it and ends with the next row of the split, within a step too", stream, []step{
			{rows: []string{"s/a +1 00:20 1", "s/b +1 00:10 2"}, at: "00:05"},
			{do: func(op *optest.Run) { op.Push("s/b +1 00:11 3").Idle("", "b").Push("s/b +1 00:12 4") }, at: "00:07"},
			{do: func(op *optest.Run) { op.Push("s/b +1 00:13 5").Idle("", "b") }, at: "00:15"},
		}},
		{"when all splits are idle it rises to the furthest, never beyond data", stream, []step{
			{rows: []string{"s/a +1 00:20 1", "s/b +1 00:10 2"}, at: "00:05"},
			{do: func(op *optest.Run) { op.Idle("", "a").Idle("", "b") }, at: "00:15"},
			{do: func(op *optest.Run) { op.Idle("", "a") }, at: "00:15"},
		}},
		{"it never goes back, also when a new split is behind", stream, []step{
			{rows: []string{"s/a +1 00:20 1"}, at: "00:15"},
			{do: open("b"), at: "00:15"},
			{rows: []string{"s/b +1 00:16 2", "s/b +1 00:14 3"}, at: "00:15", late: []string{"+1 00:14 3"}},
		}},
		{"a row without a time is never late and moves nothing", stream, []step{
			{rows: []string{"s/a +1 00:20 1", "s/a +1 NULL 2"}, at: "00:15"},
		}},
		{"the end is the end", stream, []step{
			{rows: []string{"s/a +1 00:20 1"}, do: func(op *optest.Run) { op.End("") }, at: "end"},
		}},
		{"a watermark set by hand judges the rows behind it, within a step too",
			"CREATE STREAM s (ts TIMESTAMP, v BIGINT, WATERMARK FOR ts AS ts)", []step{
				{do: func(op *optest.Run) { op.Push("s/p +1 00:01 1").Watermark("", "00:10").Push("s/p +1 00:03 2") }, at: "00:10", late: []string{"+1 00:03 2"}},
			}},
		{"an updating stream drops no row", "CREATE STREAM s (ts TIMESTAMP, v BIGINT, WATERMARK FOR ts AS ts - INTERVAL '5 seconds') WITH (kind = 'updating')", []step{
			{rows: []string{"s/a +1 00:20 1", "s/a +1 00:01 2", "s/a -1 00:01 2"}, at: "00:15"},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			op := optest.New(t, c.ddl, "SELECT ts, v FROM s")
			for i, s := range c.steps {
				if i%2 == 1 {
					op.Restart()
				}
				if s.do != nil {
					s.do(op)
				}
				op.Delta(s.rows...).At(s.at)
				if s.late != nil || i == len(c.steps)-1 {
					op.Late(s.late...)
				}
			}
		})
	}
}

func TestLateRowsAreLateForEveryScan(t *testing.T) {
	op := optest.New(t, stream, "SELECT v FROM s UNION ALL SELECT v + 100 FROM s")
	op.Delta("+1 00:10 1", "+1 00:01 2").Emits("+1 1", "+1 101").Late("+1 00:01 2")
	if n := len(op.Graph().Sources()); n != 1 {
		t.Fatalf("two scans of one stream make %d sources", n)
	}
	if n := op.Graph().Stats().Late["s"]; n != 1 {
		t.Fatalf("%d late rows counted", n)
	}
}

func TestLatenessIsBounded(t *testing.T) {
	op := optest.New(t, "CREATE STREAM s (ts TIMESTAMP, v BIGINT, WATERMARK FOR ts AS ts - INTERVAL '0 seconds') WITH (lateness_ms = 60000)",
		"SELECT v FROM s", optest.With(func(o *incremental.Options) { o.MaxWatermarkLagMS = 1000 }))
	op.Delta("+1 00:10 1", "+1 00:09 2", "+1 00:08 3").Emits("+1 1", "+1 2").Late("+1 00:08 3").At("00:09")
}

func TestWatermarkSetBackwards(t *testing.T) {
	ddl := "CREATE STREAM s (ts TIMESTAMP, v BIGINT, WATERMARK FOR ts AS ts)"
	op := optest.New(t, ddl, "SELECT v FROM s")
	op.Watermark("", "00:10").Watermark("", "00:05").Step().At("00:10")
	op = optest.New(t, ddl, "SELECT v FROM s", optest.With(func(o *incremental.Options) { o.StrictWatermarks = true }))
	err := op.Watermark("", "00:10").Watermark("", "00:05").TryStep()
	if !errs.Is(err, errs.Watermark) {
		t.Fatalf("got %v, want a watermark error", err)
	}
}

func TestAWatermarkByHandMakesNoSplit(t *testing.T) {
	op := optest.New(t, stream, "SELECT v FROM s")
	op.Watermark("", "00:01").Delta("s/a +1 00:20 1").At("00:15") // a split "p" would hold it at :01
}

func TestNoLatenessDropsRowsOfAnUpdatingStream(t *testing.T) {
	op := optest.New(t, "CREATE STREAM s (ts TIMESTAMP, v BIGINT, WATERMARK FOR ts AS ts - INTERVAL '0 seconds') WITH (kind = 'updating', lateness_ms = 5000)", "SELECT v FROM s")
	op.Delta("+1 00:20 1", "+1 00:14 3", "-1 00:14 3", "+1 00:13 4").Emits("+1 1", "+1 4").Late()
}

func TestSplitWatermarks(t *testing.T) {
	op := optest.New(t, stream, "SELECT v FROM s")
	op.Open("", "c").Push("s/a +1 00:20 1", "s/b +1 00:10 2").Step()
	at := func(text string) flow.Watermark {
		w, err := optest.Time(text)
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	want := map[string]flow.Watermark{"a": at("00:15"), "b": at("00:05"), "c": flow.NoWatermark}
	if got := op.Graph().SplitWatermarks(0); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
