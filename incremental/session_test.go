package incremental_test

import (
	"testing"

	"github.com/riverbed/riverbed/incremental/optest"
)

func TestSessionMergesAndParts(t *testing.T) {
	each(t, "CREATE TABLE t (k TEXT, ts TIMESTAMP)", "SELECT k, window_start, window_end, count(*) FROM SESSION(t PARTITION BY k, ts, INTERVAL '10 seconds') GROUP BY ALL", func(op *optest.Run, restart func()) {
		op.Delta("+1 a 00:00", "+1 a 00:20", "+1 b 00:10").Emits("+1 a 00:00 00:10 1", "+1 a 00:20 00:30 1", "+1 b 00:10 00:20 1")
		restart()
		op.Delta("+1 a 00:10").Emits("-1 a 00:00 00:10 1", "-1 a 00:20 00:30 1", "+1 a 00:00 00:30 3")
		restart()
		op.Delta("+2 a 00:10").Emits("-1 a 00:00 00:30 3", "+1 a 00:00 00:30 5")
		restart()
		op.Delta("-3 a 00:10").Emits("-1 a 00:00 00:30 5", "+1 a 00:00 00:10 1", "+1 a 00:20 00:30 1")
		restart()
		op.Delta("-1 a 00:00", "+1 a 00:31").Emits("-1 a 00:00 00:10 1", "+1 a 00:31 00:41 1")
	})
}

// A session of many rows is walked over once, however many of them change.
func TestSessionOfManyRows(t *testing.T) {
	op := optest.New(t, "CREATE TABLE t (v BIGINT, ts TIMESTAMP)", "SELECT v, window_start, window_end FROM SESSION(t, ts, INTERVAL '1 second')")
	op.Delta("+1 1 00:01", "+1 2 00:02", "+1 3 00:03", "+1 9 00:09").Holds("1 00:01 00:04", "2 00:01 00:04", "3 00:01 00:04", "9 00:09 00:10")
	op.Delta("-1 2 00:02", "+1 4 00:04").Emits("-1 1 00:01 00:04", "-1 2 00:01 00:04", "-1 3 00:01 00:04",
		"+1 1 00:01 00:02", "+1 3 00:03 00:05", "+1 4 00:03 00:05")
}

func TestSessionLeavesStateBehindTheWatermark(t *testing.T) {
	for _, emit := range []string{"IMMEDIATE", "ON WATERMARK"} {
		op := optest.New(t, "CREATE STREAM t (k TEXT, ts TIMESTAMP, WATERMARK FOR ts AS ts)", "SELECT k, ts, window_start, window_end FROM SESSION(t PARTITION BY k, ts, INTERVAL '10 seconds') EMIT "+emit)
		op.Delta("+1 a 00:00", "+1 a 00:05", "+1 b 00:07")
		op.Watermark("t", "00:15").Step()
		if n := op.StateRows(); n != 3 {
			t.Errorf("%s: %d rows of state when a row may still join the session that ends at the watermark", emit, n)
		}
		op.Watermark("t", "00:16").Step()
		if n := op.StateRows(); n != 1 {
			t.Errorf("%s: %d rows of state behind a closed session", emit, n)
		}
		op.Watermark("t", "01:00").Step().Holds("a 00:00 00:00 00:15", "a 00:05 00:00 00:15", "b 00:07 00:07 00:17")
		if n := op.StateRows(); n != 0 {
			t.Errorf("%s: %d rows of state behind all sessions", emit, n)
		}
	}
}
