package incremental_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/types"
	"github.com/riverbed/riverbed/incremental"
	"github.com/riverbed/riverbed/incremental/optest"
)

const twoTables = "CREATE TABLE l (k BIGINT, a TEXT); CREATE TABLE r (k BIGINT, b TEXT)"

// each runs a test at several parallelisms and with a restart before every step.
func each(t *testing.T, ddl, query string, run func(op *optest.Run, restart func())) {
	t.Helper()
	for _, p := range []int{1, 4} {
		for _, again := range []bool{false, true} {
			t.Run(fmt.Sprintf("parallel=%d restart=%v", p, again), func(t *testing.T) {
				op := optest.New(t, ddl, query, optest.Parallel(p))
				n := 0
				run(op, func() {
					if again {
						n++
						op.RestartWith(1 + n%5)
					}
				})
			})
		}
	}
}

func TestInnerJoin(t *testing.T) {
	each(t, twoTables, "SELECT a, b FROM l JOIN r ON l.k = r.k", func(op *optest.Run, restart func()) {
		op.Delta("l +1 1 x", "r +1 1 p", "r +1 2 q", "l +1 NULL n", "r +1 NULL n").Emits("+1 x p")
		restart()
		op.Delta("l +2 2 y", "l +1 1 z").Emits("+2 y q", "+1 z p")
		restart()
		op.Delta("r -1 1 p", "l -1 2 y").Emits("-1 x p", "-1 z p", "-1 y q")
		restart()
		op.Delta("r +3 2 q", "l +1 2 w").Emits("+3 y q", "+4 w q")
		restart()
		op.Delta("l -1 1 x", "l -1 1 z", "l -1 2 y", "l -1 2 w", "r -4 2 q").Emits("-4 y q", "-4 w q").Holds()
	})
}

func TestJoinOfOneStepSeesEachPairOnce(t *testing.T) {
	op := optest.New(t, twoTables, "SELECT a, b FROM l JOIN r ON l.k = r.k")
	op.Delta("r +1 1 p", "l +1 1 x", "r +1 1 q", "l +1 1 y").Emits("+1 x p", "+1 x q", "+1 y p", "+1 y q")
	op.Delta("l -1 1 x", "r -1 1 p").Emits("-1 x p", "-1 x q", "-1 y p")
	op.Delta("l -1 1 y", "l +1 1 y").Emits()
}

func TestLeftJoin(t *testing.T) {
	each(t, twoTables, "SELECT a, b FROM l LEFT JOIN r ON l.k = r.k", func(op *optest.Run, restart func()) {
		op.Delta("l +1 1 x", "l +2 NULL n").Emits("+1 x NULL", "+2 n NULL")
		restart()
		op.Delta("r +1 1 p", "r +1 NULL n").Emits("-1 x NULL", "+1 x p")
		restart()
		op.Delta("r +1 1 q").Emits("+1 x q")
		restart()
		op.Delta("r -1 1 p").Emits("-1 x p")
		restart()
		op.Delta("r -1 1 q", "l -1 NULL n", "l +1 1 y").Emits("-1 x q", "+1 x NULL", "+1 y NULL", "-1 n NULL")
		restart()
		op.Delta("l -1 1 x", "r +1 1 p").Emits("-1 x NULL", "-1 y NULL", "+1 y p")
		restart()
		op.Delta("r -1 1 p", "r +1 1 p").Emits()
	})
}

func TestRightAndFullJoin(t *testing.T) {
	op := optest.New(t, twoTables, "SELECT a, b FROM l RIGHT JOIN r ON l.k = r.k")
	op.Delta("r +1 1 p", "r +1 NULL n").Emits("+1 NULL p", "+1 NULL n")
	op.Delta("l +1 1 x").Emits("-1 NULL p", "+1 x p")
	op.Delta("l -1 1 x").Emits("+1 NULL p", "-1 x p")
}

func TestOuterJoinWithCondition(t *testing.T) {
	each(t, "CREATE TABLE l (k BIGINT, v BIGINT); CREATE TABLE r (k BIGINT, w BIGINT)",
		"SELECT v, w FROM l LEFT JOIN r ON l.k = r.k AND v < w", func(op *optest.Run, restart func()) {
			op.Delta("l +1 1 10", "r +1 1 5").Emits("+1 10 NULL")
			restart()
			op.Delta("r +1 1 20").Emits("-1 10 NULL", "+1 10 20")
			restart()
			op.Delta("r +1 1 NULL", "l +1 1 30").Emits("+1 30 NULL")
			restart()
			op.Delta("r -1 1 20", "r -1 1 5").Emits("-1 10 20", "+1 10 NULL")
			restart()
			op.Delta("l -1 1 10", "r +1 1 11").Emits("-1 10 NULL")
		})
}

func TestSemiAndAntiJoin(t *testing.T) {
	each(t, twoTables, "SELECT a FROM l WHERE EXISTS (SELECT 1 FROM r WHERE l.k = r.k)", func(op *optest.Run, restart func()) {
		op.Delta("l +2 1 x", "l +1 NULL n", "r +1 1 p").Emits("+2 x")
		restart()
		op.Delta("r +1 1 q", "r +1 NULL n").Emits()
		restart()
		op.Delta("r -1 1 p", "l -1 1 x").Emits("-1 x")
		restart()
		op.Delta("r -1 1 q").Emits("-1 x").Holds()
	})
	each(t, twoTables, "SELECT a FROM l WHERE NOT EXISTS (SELECT 1 FROM r WHERE l.k = r.k)", func(op *optest.Run, restart func()) {
		op.Delta("l +2 1 x", "l +1 NULL n", "r +1 1 p").Emits("+1 n")
		restart()
		op.Delta("r -1 1 p").Emits("+2 x")
		restart()
		op.Delta("r +1 1 p", "r -1 1 p", "l -1 NULL n").Emits("-1 n")
		restart()
		op.Delta("r +1 1 q", "l +1 1 y").Emits("-2 x").Holds()
	})
}

func TestCrossAndNonEquiJoin(t *testing.T) {
	op := optest.New(t, "CREATE TABLE l (v BIGINT); CREATE TABLE r (w BIGINT)", "SELECT v, w FROM l JOIN r ON v < w", optest.Parallel(3))
	op.Delta("l +1 1", "l +1 5", "r +1 3").Emits("+1 1 3")
	op.Delta("r +1 9", "l -1 1").Emits("-1 1 3", "+1 5 9").Restart()
	op.Delta("r -1 9").Emits("-1 5 9").Holds()
	op = optest.New(t, "CREATE TABLE l (v BIGINT); CREATE TABLE r (w BIGINT)", "SELECT v, w FROM l, r")
	op.Delta("l +2 1", "r +3 2", "r +1 NULL").Emits("+6 1 2", "+2 1 NULL")
}

func TestSelfJoin(t *testing.T) {
	op := optest.New(t, "CREATE TABLE t (k BIGINT, v TEXT)", "SELECT a.v, b.v FROM t a JOIN t b ON a.k = b.k")
	op.Delta("+1 1 x", "+1 1 y").Emits("+1 x x", "+1 x y", "+1 y x", "+1 y y")
	op.Delta("-1 1 x").Emits("-1 x x", "-1 x y", "-1 y x").Holds("y y")
}

func TestLeftJoinToBoundedRelationIsAppendOnly(t *testing.T) {
	op := optest.New(t, "CREATE STREAM l (k BIGINT, a TEXT); CREATE STREAM r (k BIGINT, b TEXT) WITH (kind = 'bounded')",
		"SELECT a, b FROM l LEFT JOIN r ON l.k = r.k")
	op.Delta("l +1 1 x", "l +1 2 y", "r +1 1 p").Emits("+1 x p")
	op.Restart()
	op.End("r").Delta("r +1 1 q").Emits("+1 x q", "+1 y NULL") // only now is it known that y has no partner
	op.Delta("l +1 3 z", "l +1 1 w").Emits("+1 z NULL", "+1 w p", "+1 w q")
}

func TestIntervalJoinDropsStateBehindTheWatermark(t *testing.T) {
	ddl := `CREATE STREAM l (k BIGINT, ts TIMESTAMP, WATERMARK FOR ts AS ts);
		CREATE STREAM r (k BIGINT, ts TIMESTAMP, WATERMARK FOR ts AS ts)`
	op := optest.New(t, ddl, `SELECT l.ts, r.ts FROM l JOIN r ON l.k = r.k AND r.ts BETWEEN l.ts AND l.ts + INTERVAL '10 seconds'`)
	op.Watermark("l", "00:00").Watermark("r", "00:00")
	op.Delta("l +1 1 00:01", "l +1 1 00:20", "r +1 1 00:05").Emits("+1 00:01 00:05")
	if n := op.StateRows(); n != 3 {
		t.Fatalf("%d rows of state, not 3", n)
	}
	op.Watermark("l", "00:15").Watermark("r", "00:15").Restart()
	op.Delta().Emits()
	if n := op.StateRows(); n != 1 { // l at :01 met its last r at :11, r at :05 its last l at :05
		t.Fatalf("%d rows of state, not 1", n)
	}
	op.Delta("r +1 1 00:30", "r +1 1 00:31").Emits("+1 00:20 00:30")
}

// A side that waits in a log is indexed when it was searched too often; what it finds and when its rows go stay the same.
func TestAJoinIndexesALogThatIsSearchedOften(t *testing.T) {
	op := optest.New(t, `CREATE STREAM a (ts TIMESTAMP, k BIGINT, WATERMARK FOR ts AS ts - INTERVAL '1 second'); CREATE STREAM b (ts TIMESTAMP, k BIGINT, WATERMARK FOR ts AS ts - INTERVAL '1 second')`,
		"SELECT a.k, b.ts FROM a JOIN b ON a.k = b.k AND b.ts BETWEEN a.ts AND a.ts + INTERVAL '10 seconds'")
	rows := make([]string, 0, 2000)
	for i := range 2000 {
		rows = append(rows, fmt.Sprintf("b +1 00:05 %d", i))
	}
	op.Delta(rows...).Emits()
	for i := range 700 {
		op.Delta(fmt.Sprintf("a +1 00:05 %d", i)).Emits(fmt.Sprintf("+1 %d 00:05", i))
	}
	op.Delta("a +1 00:14 1999", "b +1 00:13 7").Emits("+1 7 00:13")
	op.Delta("a +1 00:40 7", "b +1 00:40 8").Emits()
	op.At("00:39")
	if n := op.StateRows(); n != 2 {
		t.Errorf("%d rows of state, not the two that may still meet", n)
	}
}

// Rows of several batches of one step that meet appended rows are emitted together; those of a large batch by themselves.
func TestPairsOfTheBatchesOfAStepAreAllEmitted(t *testing.T) {
	op, err := optest.Build(t, "CREATE STREAM l (k BIGINT, a TEXT); CREATE STREAM r (k BIGINT, b TEXT)", "SELECT a, b FROM l JOIN r ON l.k = r.k")
	if err != nil {
		t.Fatal(err)
	}
	g := op.Graph()
	var pushed [2][]int64 // keys of the rows so far
	push := func(source, n int) incremental.Push {
		keys, texts := make([]types.Value, n), make([]types.Value, n)
		for i := range n {
			key := int64(len(pushed[source]) % 1000 * (1 + source))
			keys[i], texts[i] = key, fmt.Sprintf("%d of %d", len(pushed[source]), source)
			if i%7 == 3 {
				texts[i] = nil
			}
			pushed[source] = append(pushed[source], key)
		}
		cols := []arrow.Array{types.ArrayOf(keys, types.Int64), types.ArrayOf(texts, types.String)}
		return incremental.Push{Source: source, Batch: array.NewRecordBatch(types.ArrowSchema(g.Sources()[source].Source.Fields), cols, int64(n))}
	}
	for _, sizes := range [][]int{{0, 100, 1, 300}, {0, 30, 0, 20, 1, 10, 0, 1, 0, 5}, {0, 70_000, 0, 2, 0, 3}, {1, 40, 1, 30, 0, 1}} {
		before := pairsOf(pushed)
		var in incremental.Input
		for i := 0; i < len(sizes); i += 2 {
			in.Pushes = append(in.Pushes, push(sizes[i], sizes[i+1]))
		}
		out, err := g.Step(in)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := out.Delta.Rows(), pairsOf(pushed)-before; got != want {
			t.Errorf("%d pairs of %v are shown, not %d", got, sizes, want)
		}
		seen := map[string]bool{}
		for _, row := range op.Render(out.Delta) {
			if strings.Contains(row, "NULL") {
				continue
			}
			if seen[row] {
				t.Fatalf("%s comes twice", row)
			}
			seen[row] = true
			var weight, a, b int64
			if _, err := fmt.Sscanf(strings.NewReplacer("'", "", " of 0", "", " of 1", "").Replace(row), "%d %d %d", &weight, &a, &b); err != nil {
				t.Fatalf("%s: %v", row, err)
			}
			if pushed[0][a] != pushed[1][b] {
				t.Fatalf("%s are no partners", row)
			}
		}
	}
}

// pairsOf counts equal keys of two sides.
func pairsOf(keys [2][]int64) (n int) {
	left := map[int64]int{}
	for _, k := range keys[0] {
		left[k]++
	}
	for _, k := range keys[1] {
		n += left[k]
	}
	return n
}

// A side of a join keeps its rows as they came where they are only added, and row by row where they change: EXPLAIN names the table, and
// neither form takes the other's snapshot.
func TestJoinsOfInsertsHaveTablesOfTheirOwn(t *testing.T) {
	const query = "SELECT a, b FROM l JOIN r ON l.k = r.k"
	changed, added := [2]string{twoTables, "join_left"}, [2]string{strings.ReplaceAll(twoTables, "TABLE", "STREAM"), "join_left_rows"}
	for _, c := range [][2][2]string{{changed, added}, {added, changed}} {
		from, to := optest.New(t, c[0][0], query), optest.New(t, c[1][0], query)
		var use []plan.StateUse
		plan.Walk(from.Plan().Root, func(n plan.Node) bool {
			use = append(use, plan.StateOf(n, from.Graph().Emit())...)
			return true
		})
		if !slices.ContainsFunc(use, func(u plan.StateUse) bool { return u.Table == c[0][1] }) || !slices.Contains(tablesOf(t, from.Graph()), c[0][1]) {
			t.Errorf("EXPLAIN says %v, a snapshot has %v, and not %s", use, tablesOf(t, from.Graph()), c[0][1])
		}
		from.Delta("l +1 1 x", "l +1 2 y", "r +1 1 p")
		s, err := from.Graph().Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		if err := to.Graph().Restore(s); !errs.Is(err, errs.State) || errs.As(err).Hint == "" {
			t.Errorf("a join with %s took a snapshot of one with %s: %v", c[1][1], c[0][1], err)
		}
		again := optest.New(t, c[0][0], query)
		if err := again.Graph().Restore(s); err != nil {
			t.Errorf("a join with %s does not take its own snapshot: %v", c[0][1], err)
		}
	}
}
