package incremental_test

import (
	"testing"
	"time"

	"github.com/riverbed/riverbed/incremental/optest"
)

const tolerant = "CREATE STREAM s (k TEXT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '0 seconds') WITH (lateness_ms = 5000)"

const (
	tolerantTumble  = "SELECT TUMBLE_START(ts, INTERVAL '10 seconds') AS s, count(*) FROM s GROUP BY TUMBLE(ts, INTERVAL '10 seconds') EMIT "
	tolerantSession = "SELECT k, SESSION_END(ts, INTERVAL '3 seconds') AS e, count(*) FROM s GROUP BY k, SESSION(ts, INTERVAL '3 seconds') EMIT "
)

// ON WATERMARK waits for the allowed lateness, and shows each window once.
func TestAllowedLatenessOnWatermarkWaits(t *testing.T) {
	op := optest.New(t, tolerant, tolerantTumble+"ON WATERMARK")
	op.Delta("+1 a 00:01", "+1 a 00:12").Emits()
	op.Delta("+1 b 00:08").Emits().Late()
	op.Restart()
	op.Delta("+1 a 00:14").Emits()
	op.Delta("+1 a 00:15").Emits("+1 00:00 2")
	op.Delta("+1 b 00:09").Emits().Late("+1 b 00:09")
}

// IMMEDIATE shows what there is, and corrects it by rows within the allowed lateness; rows behind that change nothing.
func TestAllowedLatenessImmediateCorrects(t *testing.T) {
	op := optest.New(t, tolerant, tolerantTumble+"IMMEDIATE")
	op.Delta("+1 a 00:01", "+1 a 00:12").Emits("+1 00:00 1", "+1 00:10 1")
	op.Delta("+1 b 00:08").Emits("-1 00:00 1", "+1 00:00 2")
	op.Restart()
	op.Delta("+1 a 00:15", "+1 b 00:09").Emits("-1 00:10 1", "+1 00:10 2").Late("+1 b 00:09")
}

// EVERY shows corrections with the next interval.
func TestAllowedLatenessEveryCorrects(t *testing.T) {
	op := optest.New(t, tolerant, tolerantTumble+"EVERY '10 seconds'")
	op.Delta("+1 a 00:01", "+1 a 00:12").Emits()
	op.After(10*time.Second).Step().Emits("+1 00:00 1", "+1 00:10 1")
	op.Delta("+1 b 00:08").Emits()
	op.Delta("+1 b 00:07").Emits()
	op.After(10*time.Second).Step().Emits("-1 00:00 1", "+1 00:00 3")
}

// A row within the allowed lateness puts two sessions together that the watermark alone would have closed.
func TestAllowedLatenessOfSessions(t *testing.T) {
	op := optest.New(t, tolerant, tolerantSession+"ON WATERMARK")
	op.Delta("+1 a 00:01", "+1 a 00:07", "+1 b 00:08").Emits()
	op.Delta("+1 a 00:04").Emits().Late()
	op.Restart()
	op.Delta("+1 b 00:15").Emits()
	op.Delta("+1 b 00:17").Emits("+1 a 00:10 3", "+1 b 00:11 1")
	now := optest.New(t, tolerant, tolerantSession+"IMMEDIATE")
	now.Delta("+1 a 00:01", "+1 a 00:07", "+1 b 00:08").Emits("+1 a 00:04 1", "+1 a 00:10 1", "+1 b 00:11 1")
	now.Delta("+1 a 00:04").Emits("-1 a 00:04 1", "-1 a 00:10 1", "+1 a 00:10 3")
	now.Delta("+1 b 00:30", "+1 a 00:24").Emits("+1 b 00:33 1").Late("+1 a 00:24")
}
