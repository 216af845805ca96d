package incremental_test

import (
	"testing"

	"github.com/riverbed/riverbed/incremental/optest"
)

const latestRows = "CREATE STREAM t (k TEXT, v BIGINT, PRIMARY KEY (k))"

func TestNormalizeKeepsTheLastRow(t *testing.T) {
	for _, p := range []int{1, 3} {
		op := optest.New(t, latestRows, "SELECT * FROM t", optest.Parallel(p), optest.Incremental())
		op.Delta("+1 a 1", "+1 b 2").Emits("+1 a 1", "+1 b 2")
		op.Delta("+1 a 1").Emits() // the same row again
		op.RestartWith(4 - p)
		op.Delta("-1 a NULL", "-1 zzz NULL").Emits("-1 a 1") // an unknown key is no loss
		op.Delta("+1 b NULL").Emits("-1 b 2", "+1 b NULL")
		op.RestartWith(p)
		op.Delta("+1 '' 10", "+1 a 5", "+1 b NULL").Emits("+1 '' 10", "+1 a 5").Holds("'' 10", "a 5", "b NULL")
	}
}

// A row may leave out what is as it was, which is known from the row before it, in the step or in state. 1 is the row, 4 keeps v, 8 keeps w.
func TestNormalizeKeepsValuesThatAreLeftOut(t *testing.T) {
	for _, p := range []int{1, 3} {
		op := optest.New(t, "CREATE STREAM t (k TEXT, v BIGINT, w TEXT, PRIMARY KEY (k))", "SELECT w, v, k FROM t", optest.Parallel(p), optest.Incremental())
		op.Delta("+1 a 1 x", "+1 b 2 NULL", "+1 c 3 z").Emits("+1 x 1 a", "+1 NULL 2 b", "+1 z 3 c")
		op.RestartWith(4 - p)
		op.Delta("+9 a 5 NULL", "+5 b NULL y", "+1 d 7 q", "+5 d NULL r", "+13 d NULL NULL").Emits("-1 x 1 a", "+1 x 5 a", "-1 NULL 2 b", "+1 y 2 b", "+1 r 7 d")
		op.Delta("+9 a 6 NULL", "+9 a 7 NULL", "+5 a NULL n", "+9 a 8 NULL").Emits("-1 x 5 a", "+1 n 8 a")
		op.Delta("-1 c NULL NULL", "+1 c 4 NULL", "+9 c 5 NULL").Emits("-1 z 3 c", "+1 NULL 5 c")
	}
	op := optest.New(t, latestRows, "SELECT k FROM t") // what the query does not read is not kept
	op.Delta("+1 a 1").Emits("+1 a")
	op.Delta("+5 a NULL").Emits()
}

func TestNormalizeShowsOneChangeOfAKeyAStep(t *testing.T) {
	op := optest.New(t, latestRows, "SELECT * FROM t")
	op.Delta("+1 a 1", "+1 a 2", "-1 a NULL", "+1 a 3").Emits("+1 a 3")
	op.Delta("+1 a 4", "-1 a NULL", "+1 a 3").Emits()
	op.Delta("+1 b 1", "-1 b NULL", "-1 a NULL").Emits("-1 a 3")
	if n := op.Graph().Stats().StateRows; n != 0 {
		t.Errorf("%d rows are kept of keys that are gone", n)
	}
}

// Where splits share a key the row of the last split stands, in whatever order they are read.
func TestNormalizeOfSplits(t *testing.T) {
	for _, p := range []int{1, 4} {
		op := optest.New(t, latestRows+"; CREATE TABLE u (k TEXT)", "SELECT k, v FROM t UNION ALL SELECT k, 0 FROM u", optest.Parallel(p), optest.Incremental())
		op.Delta("t/10 +1 a 10", "t/9 +1 a 9", "t/2 +1 a 2").Emits("+1 a 10")
		op.Delta("t/9 +1 a 99", "t/2 -1 a NULL").Emits()
		op.RestartWith(5 - p)
		op.Delta("t/10 -1 a NULL").Emits("-1 a 10", "+1 a 99")
		op.Delta("t/2 +1 a 2", "t/9 -1 a NULL").Emits("-1 a 99", "+1 a 2")
		op.RestartWith(p)
		op.Delta("t/10 +1 a 1", "t/10 -1 a NULL", "t/11 -1 a NULL", "t/9 +1 a 7").Emits("-1 a 2", "+1 a 7")
		op.Delta("t/9 -1 a NULL", "t/2 -1 a NULL").Emits("-1 a 7").Holds()
		if n := op.Graph().Stats().StateRows; n != 0 {
			t.Errorf("%d rows are kept of keys that are gone", n)
		}
	}
}

func TestNormalizeByTwoColumnsAndFloats(t *testing.T) {
	op := optest.New(t, "CREATE STREAM t (v TEXT, x DOUBLE, y BIGINT, PRIMARY KEY (y, x))", "SELECT * FROM t")
	op.Delta("+1 a 0.0 1", "+1 b nan 1", "+1 c 0.0 2").Emits("+1 a 0.0 1", "+1 b nan 1", "+1 c 0.0 2")
	op.Delta("+1 d -0.0 1", "+1 e nan 1").Emits("-1 a 0.0 1", "-1 b nan 1", "+1 d 0.0 1", "+1 e nan 1") // one key, shown as a group is
	op.Delta("-1 NULL 0.0 1").Emits("-1 d 0.0 1").Holds("e nan 1", "c 0.0 2")
}

func TestOperatorsAboveNormalize(t *testing.T) {
	op := optest.New(t, latestRows, "SELECT v IS NULL AS isnull, count(*) AS n FROM t GROUP BY 1")
	op.Delta("+1 a 1", "+1 b 2", "-1 a NULL", "-1 zzz NULL", "+1 b NULL").Emits("+1 true 1")
	op.Delta("+1 a 5", "+1 '' 10", "+1 b NULL").Emits("+1 false 2")

	op = optest.New(t, latestRows, "SELECT max(v) FROM t WHERE k <> 'b'")
	op.Delta("+1 a 1", "+1 b 9").Emits("+1 1")
	op.Delta("+1 a 0", "+1 c 3").Emits("-1 1", "+1 3")
	op.Delta("-1 c NULL").Emits("-1 3", "+1 0")

	op = optest.New(t, latestRows, "SELECT k FROM t WHERE v > 1")
	op.Delta("+1 a 1", "+1 b 9").Emits("+1 b")
	op.Delta("+1 a 2", "+1 b 0").Emits("+1 a", "-1 b")
	op.Delta("-1 a NULL", "+1 b NULL").Emits("-1 a")
}

// A watermark closes windows and takes no row away; what has been shown may still change.
func TestNormalizeUnderAWatermark(t *testing.T) {
	ddl := "CREATE STREAM t (k TEXT, ts TIMESTAMP, PRIMARY KEY (k), WATERMARK FOR ts AS ts - INTERVAL '1 second')"
	op := optest.New(t, ddl, "SELECT TUMBLE_START(ts, INTERVAL '10 seconds') AS s, count(*) FROM t GROUP BY TUMBLE(ts, INTERVAL '10 seconds') EMIT IMMEDIATE")
	op.Delta("+1 a 00:01", "+1 b 00:35").At("00:34").Emits("+1 00:00 1", "+1 00:30 1")
	op.Delta("+1 a 00:12", "-1 b NULL").At("00:34").Emits("-1 00:00 1", "+1 00:10 1", "-1 00:30 1").Late()
	_, err := optest.Build(t, ddl, "SELECT TUMBLE_START(ts, INTERVAL '10 seconds') AS s, count(*) FROM t GROUP BY TUMBLE(ts, INTERVAL '10 seconds') EMIT ON WATERMARK")
	if err == nil {
		t.Error("EMIT ON WATERMARK over rows that may change for ever is taken")
	}
}
