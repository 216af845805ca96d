package incremental_test

import (
	"testing"

	"github.com/riverbed/riverbed/incremental/optest"
)

const overTable = "CREATE TABLE t (k TEXT, v BIGINT)"

func TestOverShowsOnlyWhatAChangeIsSeenBy(t *testing.T) {
	each(t, overTable, "SELECT k, v, lag(v) OVER (PARTITION BY k ORDER BY v) AS p FROM t", func(op *optest.Run, restart func()) {
		op.Delta("+1 a 1", "+1 a 3", "+1 a 5", "+1 b 1").Emits("+1 a 1 NULL", "+1 a 3 1", "+1 a 5 3", "+1 b 1 NULL")
		restart()
		op.Delta("+1 a 4").Emits("+1 a 4 3", "-1 a 5 3", "+1 a 5 4")
		restart()
		op.Delta("-1 a 1", "+1 b 2").Emits("-1 a 1 NULL", "-1 a 3 1", "+1 a 3 NULL", "+1 b 2 1")
		restart()
		op.Delta("-1 b 1", "-1 b 2").Emits("-1 b 1 NULL", "-1 b 2 1")
	})
}

func TestOverNumbersOnFromTheChange(t *testing.T) {
	each(t, overTable, "SELECT k, v, row_number() OVER (ORDER BY v, k) AS n FROM t", func(op *optest.Run, restart func()) {
		op.Delta("+1 a 10", "+1 b 20", "+2 c 30").Emits("+1 a 10 1", "+1 b 20 2", "+1 c 30 3", "+1 c 30 4")
		restart()
		op.Delta("+1 d 40").Emits("+1 d 40 5")
		restart()
		op.Delta("+1 e 25").Emits("+1 e 25 3", "-1 c 30 3", "+1 c 30 5", "-1 d 40 5", "+1 d 40 6")
		restart()
		op.Delta("-1 c 30").Emits("-1 c 30 5", "-1 d 40 6", "+1 d 40 5")
	})
}

func TestOverPeersChangeTogether(t *testing.T) {
	each(t, overTable, "SELECT k, v, sum(v) OVER (ORDER BY v) AS s, rank() OVER (ORDER BY v) AS r FROM t", func(op *optest.Run, restart func()) {
		op.Delta("+1 a 1", "+1 b 2", "+1 c 3").Emits("+1 a 1 1 1", "+1 b 2 3 2", "+1 c 3 6 3")
		restart()
		op.Delta("+1 d 3").Emits("+1 d 3 9 3", "-1 c 3 6 3", "+1 c 3 9 3")
		restart()
		op.Delta("-1 c 3").Emits("-1 c 3 9 3", "-1 d 3 9 3", "+1 d 3 6 3")
	})
}

func TestOverFramesOfRowsReachAsFarAsTheyGo(t *testing.T) {
	each(t, overTable, "SELECT v, sum(v) OVER (ORDER BY v ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS s FROM t", func(op *optest.Run, restart func()) {
		op.Delta("+1 a 10", "+1 a 20", "+1 a 30", "+1 a 40", "+1 a 50").Emits("+1 10 30", "+1 20 60", "+1 30 90", "+1 40 120", "+1 50 90")
		restart()
		op.Delta("+1 a 35").Emits("+1 35 105", "-1 30 90", "+1 30 85", "-1 40 120", "+1 40 125")
		restart()
		op.Delta("-1 a 20").Emits("-1 20 60", "-1 10 30", "+1 10 40", "-1 30 85", "+1 30 75")
	})
}

func TestOverOfWindowsIsDroppedBehindTheWatermark(t *testing.T) {
	op := optest.New(t, "CREATE STREAM t (k TEXT, ts TIMESTAMP, WATERMARK FOR ts AS ts)",
		"SELECT k, window_end, row_number() OVER (PARTITION BY window_start, window_end ORDER BY k) AS n FROM TUMBLE(t, ts, INTERVAL '10 seconds') EMIT ON WATERMARK")
	op.Delta("+1 b 2024-01-01T00:00:01", "+1 a 2024-01-01T00:00:02").Emits()
	op.Delta("+1 c 2024-01-01T00:00:12")
	if n := op.StateRows(); n > 3 {
		t.Fatalf("%d rows of state", n)
	}
}
