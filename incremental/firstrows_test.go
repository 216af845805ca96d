package incremental_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/incremental"
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

// Each form has a table of its own, which EXPLAIN names.
func TestFirstRowsHaveTheirOwnTables(t *testing.T) {
	const few = "SELECT k, v FROM (SELECT *, row_number() OVER (PARTITION BY k ORDER BY v) AS rn FROM t) WHERE rn <= 2"
	for _, c := range []struct{ ddl, query, want string }{
		{insertsOf, "SELECT v FROM t ORDER BY v LIMIT 2", "first_rows"},
		{insertsOf, "SELECT v FROM t ORDER BY v LIMIT 2 OFFSET 1", "topn_rows"},
		{insertsOf, "SELECT v FROM t ORDER BY v LIMIT 17", "topn_rows"},
		{insertsOf, "SELECT k, sum(v) AS s FROM t GROUP BY k ORDER BY s LIMIT 2", "topn_rows"},
		{"CREATE TABLE t (k TEXT, v BIGINT)", "SELECT v FROM t ORDER BY v LIMIT 2", "topn_rows"},
		{"CREATE STREAM t (k TEXT, v DOUBLE)", "SELECT v FROM t ORDER BY v LIMIT 2", "first_rows"}, // the sign of zero decides
		{insertsOf, few, "group_first_rows"},
		{insertsOf, strings.Replace(few, "2", "16", 1), "group_first_rows"},
		{insertsOf, strings.Replace(few, "2", "17", 1), "group_topn_rows"},
		{insertsOf, strings.Replace(few, "row_number", "rank", 1), "group_topn_rows"},
		{"CREATE STREAM t (k DOUBLE, v BIGINT)", few, "group_first_rows"},
		{"CREATE TABLE t (k TEXT, v BIGINT)", few, "group_topn_rows"},
	} {
		op := optest.New(t, c.ddl, c.query)
		emit := op.Graph().Emit()
		var said []string
		plan.Walk(op.Plan().Root, func(n plan.Node) bool {
			for _, use := range plan.StateOf(n, emit) {
				said = append(said, use.Table)
			}
			return true
		})
		kept := tablesOf(t, op.Graph())
		if slices.Sort(said); !slices.Contains(said, c.want) || !slices.Equal(said, kept) {
			t.Errorf("%s: EXPLAIN says %v, a snapshot has %v, of which one should be %s", c.query, said, kept, c.want)
		}
	}
}

// tablesOf lists the tables in a snapshot of a graph.
func tablesOf(t *testing.T, g *incremental.Graph) (names []string) {
	t.Helper()
	s, err := g.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range s.Operators {
		for _, p := range o.Parts {
			names = append(names, p.Table)
		}
	}
	slices.Sort(names)
	return names
}

// Two plans of the same shape whose top-N keep their rows in different forms: neither takes the other's snapshot.
func TestSnapshotsOfFirstRowsAreNoOtherTopN(t *testing.T) {
	few := [2]string{"SELECT v FROM t ORDER BY v LIMIT 16", "SELECT k, v FROM t QUALIFY row_number() OVER (PARTITION BY k ORDER BY v) <= 16"}
	many := [2]string{"SELECT v FROM t ORDER BY v LIMIT 17", "SELECT k, v FROM t QUALIFY row_number() OVER (PARTITION BY k ORDER BY v) <= 17"}
	for i := range few {
		for _, c := range [][2]string{{few[i], many[i]}, {many[i], few[i]}} {
			from, to := optest.New(t, insertsOf, c[0]), optest.New(t, insertsOf, c[1])
			from.Delta("+1 a 5", "+1 a 7", "+1 b 1")
			s, err := from.Graph().Snapshot()
			if err != nil {
				t.Fatal(err)
			}
			if err := to.Graph().Restore(s); !errs.Is(err, errs.State) || errs.As(err).Hint == "" {
				t.Errorf("%s took a snapshot of %s: %v", c[1], c[0], err)
			}
			again := optest.New(t, insertsOf, c[0])
			if err := again.Graph().Restore(s); err != nil {
				t.Errorf("%s does not take its own snapshot: %v", c[0], err)
			}
		}
	}
}
