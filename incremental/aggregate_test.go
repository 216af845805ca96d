package incremental_test

import (
	"testing"
	"time"

	"github.com/riverbed/riverbed/incremental/optest"
)

const kv = "CREATE TABLE t (k TEXT, v BIGINT)"

func TestGroupsRetractAndGo(t *testing.T) {
	each(t, kv, "SELECT k, count(*) AS n, sum(v) AS s FROM t GROUP BY k", func(op *optest.Run, restart func()) {
		op.Delta("+1 a 1", "+1 a 2", "+1 NULL 7", "+1 b NULL").Emits("+1 a 2 3", "+1 NULL 1 7", "+1 b 1 NULL")
		restart()
		op.Delta("-1 a 1", "+2 NULL 1").Emits("-1 a 2 3", "+1 a 1 2", "-1 NULL 1 7", "+1 NULL 3 9")
		restart()
		op.Delta("-1 a 2", "+1 c 5").Emits("-1 a 1 2", "+1 c 1 5")
		restart()
		op.Delta("+1 c 5", "-1 c 5").Emits() // the group is what it was
		restart()
		op.Delta("+1 a 4", "-1 b NULL").Emits("+1 a 1 4", "-1 b 1 NULL")
	})
}

func TestGlobalAggregateHasARowFromTheStart(t *testing.T) {
	each(t, kv, "SELECT count(*) AS n, sum(v) AS s, max(v) AS m FROM t", func(op *optest.Run, restart func()) {
		op.Delta().Emits("+1 0 NULL NULL")
		restart()
		op.Delta("+1 a 3", "+1 b 4").Emits("-1 0 NULL NULL", "+1 2 7 4")
		restart()
		op.Delta("-1 b 4").Emits("-1 2 7 4", "+1 1 3 3")
		restart()
		op.Delta("-1 a 3").Emits("-1 1 3 3", "+1 0 NULL NULL")
		restart()
		op.Delta().Emits()
	})
}

func TestMinAndMaxFallBack(t *testing.T) {
	each(t, kv, "SELECT k, min(v), max(v) FROM t GROUP BY k", func(op *optest.Run, restart func()) {
		op.Delta("+1 a 1", "+2 a 5", "+1 a 9", "+1 a NULL").Emits("+1 a 1 9")
		restart()
		op.Delta("-1 a 9").Emits("-1 a 1 9", "+1 a 1 5")
		restart()
		op.Delta("-1 a 1", "-1 a 5").Emits("-1 a 1 5", "+1 a 5 5")
		restart()
		op.Delta("-1 a 5").Emits("-1 a 5 5", "+1 a NULL NULL")
	})
}

func TestCountDistinctWithFilter(t *testing.T) {
	each(t, kv, "SELECT k, count(DISTINCT v) FILTER (WHERE v > 1) AS d, count(DISTINCT v) AS e, count(*) AS n FROM t GROUP BY k",
		func(op *optest.Run, restart func()) {
			op.Delta("+1 a 1", "+1 a 2", "+1 a 2", "+1 b 1").Emits("+1 a 1 2 3", "+1 b 0 1 1")
			restart()
			op.Delta("-1 a 2", "+1 a NULL").Emits() // one 2 is left, and NULL is no value
			restart()
			op.Delta("-1 a 2").Emits("-1 a 1 2 3", "+1 a 0 1 2")
			restart()
			op.Delta("-1 a 1", "-1 a NULL", "+3 b 5").Emits("-1 a 0 1 2", "-1 b 0 1 1", "+1 b 1 2 4")
		})
}

func TestFloatSumsAreExact(t *testing.T) {
	op := optest.New(t, "CREATE TABLE t (x DOUBLE)", "SELECT sum(x) FROM t", optest.Parallel(2))
	op.Delta("+1 1e16", "+1 1.0", "+1 nan").Emits("+1 nan")
	op.Delta("-1 nan").Emits("-1 nan", "+1 1e+16").Restart() // 1e16 + 1 rounds so, and nothing is lost for it
	op.Delta("-1 1e16").Holds("1.0")
}

func TestGroupsByFloatKeys(t *testing.T) {
	op := optest.New(t, "CREATE TABLE t (x DOUBLE)", "SELECT x, count(*) FROM t GROUP BY x")
	op.Delta("+1 nan", "+1 nan", "+1 -0.0", "+1 0.0").Emits("+1 nan 2", "+1 0.0 2")
	op.Delta("-1 -0.0").Emits("-1 0.0 2", "+1 0.0 1")
}

const events = "CREATE STREAM s (ts TIMESTAMP, k TEXT, v BIGINT, WATERMARK FOR ts AS ts - INTERVAL '5 seconds')"

func TestTumblingWindowsCloseOnTheWatermark(t *testing.T) {
	each(t, events, "SELECT k, TUMBLE_START(ts, INTERVAL '10 seconds') AS ws, sum(v) AS s FROM s GROUP BY k, TUMBLE(ts, INTERVAL '10 seconds') EMIT ON WATERMARK",
		func(op *optest.Run, restart func()) {
			op.Delta("+1 00:01 a 1", "+1 00:09.999999 a 2", "+1 00:12 b 4").Emits()
			restart()
			op.Delta("+1 00:14.999999 a 8").Emits() // the watermark is at :09.999999
			restart()
			op.Delta("+1 00:15 a 16").Emits("+1 a 00:00 3")
			restart()
			op.Delta("+1 00:08 a 100", "+1 00:10 b 32").Emits().Late("+1 00:08 a 100")
			if n := op.StateRows(); n != 2 {
				t.Fatalf("%d groups are kept, not 2", n)
			}
			op.End("").Step().Emits("+1 a 00:10 24", "+1 b 00:10 36")
			if n := op.StateRows(); n != 0 {
				t.Fatalf("%d groups are kept after the end", n)
			}
		})
}

func TestWindowsOfAChangelogForgetWhatIsSettled(t *testing.T) {
	op := optest.New(t, events, "SELECT TUMBLE_END(ts, INTERVAL '10 seconds') AS we, count(*) AS n FROM s GROUP BY TUMBLE(ts, INTERVAL '10 seconds') EMIT IMMEDIATE")
	op.Delta("+1 00:01 a 1", "+1 00:12 a 1").Emits("+1 00:10 1", "+1 00:20 1")
	op.Delta("+1 00:11 a 1", "+1 00:16 a 1").Emits("-1 00:20 1", "+1 00:20 3").Holds("00:10 1", "00:20 3")
	if n := op.StateRows(); n != 1 {
		t.Fatalf("%d groups are kept, not 1", n)
	}
}

func TestHoppingWindows(t *testing.T) {
	each(t, events, "SELECT HOP_START(ts, INTERVAL '2 seconds', INTERVAL '5 seconds') AS ws, sum(v) AS s FROM s GROUP BY HOP(ts, INTERVAL '2 seconds', INTERVAL '5 seconds') EMIT ON WATERMARK",
		func(op *optest.Run, restart func()) {
			op.Delta("+1 00:04 a 1", "+1 00:05 a 2").Emits()
			restart()
			op.Delta("+1 00:12 a 4").Emits("+1 00:00 1", "+1 00:02 3")
			restart()
			op.End("").Step().Holds("00:00 1", "00:02 3", "00:04 3", "00:08 4", "00:10 4", "00:12 4")
		})
}

func TestTwoStepAggregationClosesInOneStep(t *testing.T) {
	op := optest.New(t, events, `SELECT ws, max(n) AS m FROM (SELECT k, TUMBLE_START(ts, INTERVAL '10 seconds') AS ws, count(*) AS n
		FROM s GROUP BY k, TUMBLE(ts, INTERVAL '10 seconds')) GROUP BY ws EMIT ON WATERMARK`)
	op.Delta("+1 00:01 a 1", "+1 00:02 a 2", "+1 00:03 b 3").Emits()
	op.Delta("+1 00:15 a 16").Emits("+1 00:00 2")
	op.End("").Step().Emits("+1 00:10 1")
}

func TestRowsWithoutATimeCloseAtTheEnd(t *testing.T) {
	op := optest.New(t, events, "SELECT TUMBLE_START(ts, INTERVAL '10 seconds') AS ws, count(*) AS n FROM s GROUP BY TUMBLE(ts, INTERVAL '10 seconds') EMIT ON WATERMARK")
	op.Delta("+1 NULL a 1", "+1 10:00 a 1").Emits()
	op.End("").Step()
	t.Log(op.Rows())
}

func TestEmitEveryCompactsAnInterval(t *testing.T) {
	op := optest.New(t, kv, "SELECT k, count(*) AS n FROM t GROUP BY k EMIT EVERY '5 seconds'")
	op.Delta("+1 a 1").Emits()
	op.After(2*time.Second).Delta("+1 a 1", "+1 b 1").Emits()
	op.Restart()
	op.After(3 * time.Second).Delta("-1 b 1").Emits("+1 a 2")
	op.After(1 * time.Second).Delta("+1 a 1").Emits()
	op.After(30*time.Second).Step().Emits("-1 a 2", "+1 a 3")
	op.Delta("+1 a 1").Emits()
	op.End("").Step().Emits("-1 a 3", "+1 a 4") // the end shows what is left
}

func TestWeightColumnFollowsThePolicy(t *testing.T) {
	for query, want := range map[string]bool{
		"SELECT v FROM s EMIT IMMEDIATE":         true,
		"SELECT v FROM s EMIT EVERY '5 seconds'": true,
		"SELECT k, TUMBLE_END(ts, INTERVAL '1 second'), count(*) FROM s GROUP BY k, TUMBLE(ts, INTERVAL '1 second')": false,
	} {
		op := optest.New(t, events, query)
		s := op.Graph().Schema()
		if got := s.Field(s.NumFields()-1).Name == "__weight"; got != want {
			t.Errorf("%s: weight column %v, want %v", query, got, want)
		}
	}
}

func TestBoundedInputIsAggregatedAtItsEnd(t *testing.T) {
	op := optest.New(t, "CREATE STREAM s (k TEXT); CREATE STREAM b (k TEXT, v BIGINT) WITH (kind = 'bounded')",
		"SELECT s.k, n FROM s JOIN (SELECT k, count(*) AS n FROM b GROUP BY k) AS g ON s.k = g.k")
	op.Delta("s +1 x", "b +1 x 1").Emits()
	op.Restart()
	op.End("b").Delta("b +1 x 2").Emits("+1 x 2")
	op.Delta("s +1 x", "s +1 y").Emits("+1 x 2")
}

// Over inserts an argument that was seen of late is not looked up; its group may go and come again.
func TestDistinctArgumentsThatComeAgain(t *testing.T) {
	op := optest.New(t, "CREATE STREAM t (ts TIMESTAMP, k BIGINT, v BIGINT, WATERMARK FOR ts AS ts - INTERVAL '1 second')",
		"SELECT k, count(DISTINCT v) AS n, sum(DISTINCT v) FILTER (WHERE v > 1) AS s FROM t GROUP BY k, TUMBLE(ts, INTERVAL '10 seconds') EMIT ON WATERMARK")
	op.Delta("+1 00:01 1 1", "+1 00:01 1 1", "+1 00:02 1 2", "+1 00:02 2 2").Emits()
	op.Delta("+1 00:03 1 2", "+1 00:03 2 2", "+1 00:03 2 NULL", "+1 00:03 2 3").Emits()
	op.Restart()
	op.Delta("+1 00:03 2 3", "+1 00:04 1 1").Emits()
	op.Delta("+1 00:20 9 2").Emits("+1 1 2 2", "+1 2 2 5")
	op.Delta("+1 00:21 1 1", "+1 00:21 1 2", "+1 00:22 2 2", "+1 00:22 9 2").Emits()
	op.Delta("+1 00:40 7 7").Emits("+1 1 2 2", "+1 2 1 2", "+1 9 1 2")
}
