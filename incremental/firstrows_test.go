package incremental_test

import (
	"testing"

	"github.com/riverbed/riverbed/incremental/optest"
)

const insertsOf = "CREATE STREAM t (k TEXT, v BIGINT)"

func TestFirstRowsOfInserts(t *testing.T) {
	each(t, insertsOf, "SELECT k, v FROM (SELECT *, row_number() OVER (PARTITION BY k ORDER BY v) AS rn FROM t) WHERE rn <= 2", func(op *optest.Run, restart func()) {
		op.Delta("+1 a 5", "+1 a 7", "+1 b 1", "+1 a 6", "+1 a 9").Emits("+1 a 5", "+1 a 6", "+1 b 1")
		restart()
		op.Delta("+1 a 4", "+1 a 8", "+1 b 1", "+1 NULL 3").Emits("-1 a 6", "+1 a 4", "+1 b 1", "+1 NULL 3")
		restart()
		op.Delta("+1 a 5", "+1 b 2").Emits() // an equal row comes too late, a full partition takes none behind its last
		restart()
		op.Delta("+1 a 1", "+1 a 2", "+1 a 3").Emits("-1 a 4", "-1 a 5", "+1 a 1", "+1 a 2")
		restart()
		op.Delta("+1 b 0", "+1 NULL NULL", "+1 NULL 2").Emits("-1 b 1", "+1 b 0", "+1 NULL 2").Holds("a 1", "a 2", "b 0", "b 1", "NULL 2", "NULL 3")
		if n := op.StateRows(); n != 6 {
			t.Fatalf("%d rows of state, not two per key", n)
		}
	})
}

func TestFirstRowsOfInsertsNumbered(t *testing.T) {
	each(t, insertsOf, "SELECT k, v, rn FROM (SELECT *, row_number() OVER (PARTITION BY k ORDER BY v DESC) AS rn FROM t) WHERE rn <= 3", func(op *optest.Run, restart func()) {
		op.Delta("+1 a 5", "+1 a 5", "+1 a 7").Emits("+1 a 7 1", "+1 a 5 2", "+1 a 5 3")
		restart()
		op.Delta("+1 a 9").Emits("-1 a 7 1", "+1 a 9 1", "-1 a 5 2", "+1 a 7 2") // at the third place an equal row stands
		restart()
		op.Delta("+1 a 8", "+1 a 8", "+1 a 8").Emits("-1 a 7 2", "+1 a 8 2", "-1 a 5 3", "+1 a 8 3").Holds("a 9 1", "a 8 2", "a 8 3")
	})
}

func TestFirstRowsOfAllInserts(t *testing.T) {
	each(t, insertsOf, "SELECT v FROM t ORDER BY v NULLS FIRST LIMIT 2", func(op *optest.Run, restart func()) {
		op.Delta("+1 a 3").Emits("+1 3")
		restart()
		op.Delta("+1 a 3", "+1 a NULL").Emits("+1 NULL")
		restart()
		op.Delta("+2 a NULL").Emits("-1 3", "+1 NULL").Holds("NULL", "NULL")
	})
}

// Rows that compare as equal and are not the same need their identity.
func TestZerosOfBothSignsKeepTheirIdentity(t *testing.T) {
	op := optest.New(t, "CREATE STREAM t (k DOUBLE, v BIGINT)",
		"SELECT k, v FROM (SELECT *, row_number() OVER (PARTITION BY k ORDER BY v) AS rn FROM t) WHERE rn <= 2")
	op.Delta("+1 0.0 1", "+1 -0.0 1", "+1 0.0 2").Holds("0.0 1", "-0.0 1")
}
