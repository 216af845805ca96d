package incremental_test

import (
	"testing"

	"github.com/riverbed/riverbed/incremental/optest"
)

func TestBestRowsOfInserts(t *testing.T) {
	each(t, "CREATE STREAM t (k TEXT, v BIGINT)", "SELECT k, v, r FROM (SELECT *, rank() OVER (PARTITION BY k ORDER BY v DESC) AS r FROM t) WHERE r = 1", func(op *optest.Run, restart func()) {
		op.Delta("+1 a 5", "+1 a 7", "+2 a 7", "+1 b NULL", "+1 a 6", "+1 NULL 1").Emits("+3 a 7 1", "+1 b NULL 1", "+1 NULL 1 1")
		restart()
		op.Delta("+1 a 6", "+1 a 7", "+1 b NULL", "+1 NULL 1").Emits("+1 a 7 1", "+1 b NULL 1", "+1 NULL 1 1")
		restart()
		op.Delta("+1 b 3", "+1 NULL 0", "+1 a 8").Emits("-2 b NULL 1", "+1 b 3 1", "-4 a 7 1", "+1 a 8 1")
	})
}

func TestBestRowsOfInsertsAreTies(t *testing.T) {
	const query = "SELECT k, x FROM (SELECT *, dense_rank() OVER (PARTITION BY k ORDER BY x) AS r FROM t) WHERE r <= 1"
	each(t, "CREATE STREAM t (k TEXT, x DOUBLE)", query, func(op *optest.Run, restart func()) {
		op.Delta("+1 a 0.0", "+1 a 1", "+1 a -0.0", "+1 b nan", "+1 b NULL").Emits("+1 a 0.0", "+1 a -0.0", "+1 b nan")
		restart()
		op.Delta("+1 a -0.0", "+1 b 1e300", "+1 b nan", "+1 c NULL").Emits("+1 a -0.0", "-1 b nan", "+1 b 1e+300", "+1 c NULL")
		restart()
		op.Delta("+1 a 2", "+1 b 1e+300", "+1 c NULL").Emits("+1 b 1e+300", "+1 c NULL")
		restart()
		op.Delta("+1 a -1", "+1 a -2", "+1 a -1", "+1 a -2").Emits("-1 a 0.0", "-2 a -0.0", "+2 a -2.0").
			Holds("a -2.0", "a -2.0", "b 1e+300", "b 1e+300", "c NULL", "c NULL")
		if n := op.StateRows(); n != 3 {
			t.Fatalf("%d rows of state: beaten rows are kept", n)
		}
	})
}

// Long texts with a common beginning are told apart behind the first words of their keys.
func TestBestRowsOfLongTexts(t *testing.T) {
	each(t, "CREATE STREAM t (k BIGINT, s TEXT)", "SELECT s FROM (SELECT *, rank() OVER (ORDER BY s) AS r FROM t) WHERE r = 1", func(op *optest.Run, restart func()) {
		op.Delta("+1 1 beginning-c", "+1 2 beginning-b", "+1 3 beginning-c", "+1 4 beginning-bb").Emits("+1 beginning-b")
		restart()
		op.Delta("+1 1 beginning-c", "+1 2 beginning-b", "+1 3 beginning-a").Emits("-1 beginning-b", "+1 beginning-a")
	})
}

// The counts of groups only grow, so that no group but the greatest is kept.
func TestBestGroups(t *testing.T) {
	const query = "WITH n AS (SELECT k, v, count(*) AS num FROM t GROUP BY k, v) SELECT n.k, n.v, n.num, m.most FROM n JOIN (SELECT k, max(num) AS most FROM n GROUP BY k) m ON n.k = m.k AND n.num >= m.most"
	each(t, "CREATE STREAM t (k TEXT, v BIGINT)", query, func(op *optest.Run, restart func()) {
		op.Delta("+1 a 1", "+1 a 2", "+1 a 2", "+1 b 1", "+1 NULL 1").Emits("+1 a 2 2 2", "+1 b 1 1 1")
		restart()
		op.Delta("+1 a 1", "+1 a NULL", "+1 b 2").Emits("+1 a 1 2 2", "+1 b 2 1 1")
		restart()
		op.Delta("+1 a 1", "+3 a NULL", "+1 b 1").Emits("-1 a 2 2 2", "-1 a 1 2 2", "+1 a NULL 4 4", "-1 b 1 1 1", "-1 b 2 1 1", "+1 b 1 2 2")
		restart()
		op.Delta("+1 a 2", "+1 a 3").Emits()
	})
}
