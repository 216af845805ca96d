package incremental_test

import (
	"testing"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/incremental/optest"
)

func TestFilterAndProject(t *testing.T) {
	op := optest.New(t, "CREATE TABLE t (k TEXT, v BIGINT)", "SELECT v + 1 AS w, k FROM t WHERE v > 1")
	op.Delta("+1 a 1", "+1 b 2", "+3 c 3", "+1 d NULL").Emits("+1 3 b", "+3 4 c")
	op.Delta("-2 c 3", "-1 a 1").Emits("-2 4 c")
	op.Restart()
	op.Delta("-1 c 3", "-1 b 2").Emits("-1 4 c", "-1 3 b").Holds()
}

func TestChangesOfOneStepCancel(t *testing.T) {
	op := optest.New(t, "CREATE TABLE t (k TEXT)", "SELECT k FROM t")
	op.Delta("+1 a", "-1 a", "+1 b").Emits("+1 b")
	op.Delta("+1 a", "+2 a").Emits("+3 a")
}

func TestUnionAll(t *testing.T) {
	op := optest.New(t, "CREATE TABLE a (k TEXT); CREATE TABLE b (k TEXT)", "SELECT k FROM a UNION ALL SELECT k FROM b")
	op.Delta("a +1 x", "b +1 x", "b +1 y").Emits("+2 x", "+1 y")
	op.Delta("a -1 x", "b -1 y").Emits("-1 x", "-1 y").Holds("x")
}

func TestValuesComeOnce(t *testing.T) {
	op := optest.New(t, "CREATE TABLE t (k TEXT)", "SELECT k FROM t UNION ALL VALUES ('a'), ('b')")
	op.Delta("+1 x").Emits("+1 x", "+1 a", "+1 b")
	op.Restart()
	op.Delta("+1 y").Emits("+1 y")
}

func TestDistinctRetractsLastCopy(t *testing.T) {
	for _, p := range []int{1, 3} {
		op := optest.New(t, "CREATE TABLE t (k TEXT)", "SELECT DISTINCT k FROM t", optest.Parallel(p))
		op.Delta("+2 a", "+1 b", "+1 NULL").Emits("+1 a", "+1 b", "+1 NULL")
		op.Delta("-1 a", "+1 NULL").Emits() // one copy is left
		op.RestartWith(4 - p)
		op.Delta("-1 a", "-2 NULL").Emits("-1 a", "-1 NULL")
		op.Delta("+1 a", "-1 b").Emits("+1 a", "-1 b")
	}
}

func TestDistinctOnFloats(t *testing.T) {
	op := optest.New(t, "CREATE TABLE t (x DOUBLE)", "SELECT DISTINCT x FROM t")
	op.Delta("+1 nan", "+1 nan", "+1 0.0", "+1 inf").Emits("+1 nan", "+1 0.0", "+1 inf")
	op.Delta("+1 -0.0", "-1 nan").Emits()
	op.Delta("-1 nan").Emits("-1 nan")
}

func TestRetractionOfNothing(t *testing.T) {
	op := optest.New(t, "CREATE TABLE t (k TEXT)", "SELECT DISTINCT k FROM t")
	if err := op.Push("-1 a").TryStep(); err == nil {
		t.Fatal("a retraction of a row that was never there passed in strict mode")
	}
	op = optest.New(t, "CREATE TABLE t (k TEXT)", "SELECT DISTINCT k FROM t", optest.Lenient())
	op.Delta("-1 a").Emits()
	if n := op.Graph().Stats().BadRetractions; n != 1 {
		t.Fatalf("%d bad retractions are counted, not 1", n)
	}
}

func TestAppendOnlyStreamRefusesRetractions(t *testing.T) {
	op := optest.New(t, "CREATE STREAM t (k TEXT)", "SELECT k FROM t")
	op.Delta("+2 a").Emits("+1 a", "+1 a")
	if err := op.Push("-1 a").TryStep(); err == nil {
		t.Fatal("an append-only stream took a retraction")
	}
}

func TestDistinctShowsKeysInNormalForm(t *testing.T) {
	op := optest.New(t, "CREATE TABLE t (x DOUBLE)", "SELECT DISTINCT x FROM t")
	op.Delta("+1 -0.0").Emits("+1 0.0")
	op.Delta("+1 0.0", "-1 -0.0").Emits()
	op.Delta("-1 0.0").Emits("-1 0.0").Holds()
}

func TestWhatCannotBeTakenBackIsRefused(t *testing.T) {
	for _, q := range []string{"SELECT k, random() FROM t", "SELECT k, now() FROM t", "SELECT k FROM t WHERE random() < 0.5"} {
		if _, err := optest.Build(t, "CREATE TABLE t (k TEXT)", q); !errs.Is(err, errs.Unsupported) {
			t.Errorf("%s: got %v, want a refusal", q, err)
		}
	}
	if _, err := optest.Build(t, "CREATE STREAM t (k TEXT)", "SELECT k, random() FROM t"); err != nil {
		t.Errorf("random() over append-only input is outside the promise, but runs: %v", err)
	}
}
