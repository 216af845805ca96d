package incremental_test

import (
	"testing"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/incremental/optest"
)

func TestTopN(t *testing.T) {
	each(t, "CREATE TABLE t (k TEXT, v BIGINT)", "SELECT k, v FROM t ORDER BY v DESC LIMIT 2", func(op *optest.Run, restart func()) {
		op.Delta("+1 a 5", "+1 b 4").Emits("+1 a 5", "+1 b 4")
		restart()
		op.Delta("+1 c 9", "+1 d 8").Emits("-1 a 5", "-1 b 4", "+1 c 9", "+1 d 8")
		restart()
		op.Delta("-1 a 5").Emits() // it had fallen out, and must not come back
		restart()
		op.Delta("-1 c 9").Emits("-1 c 9", "+1 b 4")
		restart()
		op.Delta("+3 e 8").Emits("-1 b 4", "+1 e 8").Holds("d 8", "e 8") // equal keys are ordered by the row
		restart()
		op.Delta("-1 d 8").Emits("-1 d 8", "+1 e 8")
	})
}

func TestTopNWithOffsetAndNulls(t *testing.T) {
	op := optest.New(t, "CREATE TABLE t (v BIGINT)", "SELECT v FROM t ORDER BY v NULLS FIRST LIMIT 2 OFFSET 1")
	op.Delta("+1 1", "+1 2", "+1 NULL", "+1 3").Emits("+1 1", "+1 2")
	op.Delta("-1 NULL").Emits("-1 1", "+1 3")
	op.Delta("-2 2", "+1 2").Emits("-1 2").Holds("3")
}

func TestGroupTopNNumbersRows(t *testing.T) {
	each(t, "CREATE TABLE t (k TEXT, v BIGINT)",
		"SELECT k, v, rn FROM (SELECT *, row_number() OVER (PARTITION BY k ORDER BY v) AS rn FROM t) WHERE rn <= 2", func(op *optest.Run, restart func()) {
			op.Delta("+2 a 1", "+1 a 2", "+1 b 7", "+1 NULL 1").Emits("+1 a 1 1", "+1 a 1 2", "+1 b 7 1", "+1 NULL 1 1")
			restart()
			op.Delta("+1 a 0").Emits("-1 a 1 1", "+1 a 0 1")
			restart()
			op.Delta("-2 a 1", "+1 b 3").Emits("-1 a 1 2", "+1 a 2 2", "-1 b 7 1", "+1 b 3 1", "+1 b 7 2")
			restart()
			op.Delta("-1 a 0", "-1 a 2", "-1 NULL 1").Holds("b 3 1", "b 7 2")
		})
}

func TestRankKeepsTies(t *testing.T) {
	op := optest.New(t, "CREATE TABLE t (k TEXT, v BIGINT)",
		"SELECT k, v, r FROM (SELECT *, rank() OVER (ORDER BY v) AS r FROM t) WHERE r <= 2")
	op.Delta("+1 a 1", "+1 b 2", "+1 c 2", "+1 d 3").Emits("+1 a 1 1", "+1 b 2 2", "+1 c 2 2")
	op.Delta("+1 e 1").Emits("+1 e 1 1", "-1 b 2 2", "-1 c 2 2")
}

func TestAppendOnlyTopNForgetsWhatCannotBeShown(t *testing.T) {
	op := optest.New(t, "CREATE STREAM t (k TEXT, v BIGINT)",
		"SELECT k, v FROM (SELECT *, row_number() OVER (PARTITION BY k ORDER BY v DESC) AS rn FROM t) WHERE rn = 1")
	op.Delta("+1 a 1", "+1 a 2", "+1 b 1").Emits("+1 a 2", "+1 b 1")
	op.Delta("+1 a 9", "+1 a 3").Emits("-1 a 2", "+1 a 9")
	if n := op.StateRows(); n != 2 {
		t.Fatalf("%d rows of state, not one per key", n)
	}
}

// At the top a LIMIT without ORDER BY takes the first rows of the total order; below it what it takes would show, and it is refused.
func TestLimitWithoutOrder(t *testing.T) {
	if _, err := optest.Build(t, "CREATE TABLE t (v BIGINT)", "SELECT v FROM t LIMIT 2"); err != nil {
		t.Error(err)
	}
	if _, err := optest.Build(t, "CREATE TABLE t (v BIGINT)", "SELECT sum(v) FROM (SELECT v FROM t LIMIT 2)"); !errs.Is(err, errs.Unsupported) {
		t.Errorf("LIMIT without ORDER BY was planned below the top: %v", err)
	}
}
