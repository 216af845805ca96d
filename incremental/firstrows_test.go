package incremental_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/riverbed/riverbed/core/clock"
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

// orderDomains are values that order keys of words must keep apart: the ends of a type, which have the word of NULL, what prints
// differently and is equal, and texts that begin alike.
var orderDomains = map[string][]string{
	"BOOLEAN":          {"true", "false"},
	"TINYINT":          {"-128", "127", "0"},
	"BIGINT":           {"-9223372036854775808", "9223372036854775807", "0", "-1"},
	"UBIGINT":          {"0", "18446744073709551615", "7"},
	"HUGEINT":          {"-170141183460469231731687303715884105728", "170141183460469231731687303715884105727", "18446744073709551616", "0", "-1"},
	"UHUGEINT":         {"0", "340282366920938463463374607431768211455", "18446744073709551615"},
	"DECIMAL(38, 3)":   {"-99999999999999999999999999999999999.999", "99999999999999999999999999999999999.999", "0.000", "0.001"},
	"DOUBLE":           {"NaN", "-Infinity", "Infinity", "0.0", "-0.0", "1.5"},
	"REAL":             {"NaN", "-Infinity", "Infinity", "0.0", "-0.0"},
	"DATE":             {"1970-01-01", "2024-02-29", "0001-01-01"},
	"TIMESTAMP":        {"1970-01-01T00:00:00", "2024-02-29T12:00:00.000001", "0001-01-01T00:00:00"},
	"INTERVAL":         {"'30 days'", "'1 month'", "'-1 days'", "'00:00:01'"},
	"UUID":             {"00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff", "00000000-0000-0000-ffff-000000000000"},
	"TEXT":             {"''", "abcdefgh", "abcdefghi", "abcdefghj", "a", "b"},
	"BLOB":             {`\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF`, `\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x00`, `\x00`},
	"INTEGER[]":        {"[]", "[1]", "'[1, 2]'"},
	"STRUCT(a BIGINT)": {"'{a: 1}'", "'{a: NULL}'"},
}

// What comes first is what batch says comes first, whatever the order is made of, in steps of any size and behind any restart.
func TestFirstRowsOrderAsBatchDoes(t *testing.T) {
	types := make([]string, 0, len(orderDomains))
	for typ := range orderDomains {
		types = append(types, typ)
	}
	slices.Sort(types)
	orders := []string{"x", "x DESC", "x NULLS FIRST", "x DESC NULLS FIRST", "v, x", "v DESC NULLS FIRST, x DESC", "k, x", "v::BIGINT + 1, x", "d, x, v", "k"}
	for _, typ := range types {
		t.Run(typ, func(t *testing.T) {
			ddl := "CREATE STREAM t (k TEXT, v SMALLINT, d DECIMAL(20, 1), x " + typ + ")"
			for s := uint64(1); s <= uint64(*cases)*2; s++ {
				r := clock.NewRand(s)
				query := fmt.Sprintf("SELECT %s FROM (SELECT *, row_number() OVER (%s ORDER BY %s) AS rn FROM t) WHERE rn <= %d",
					[]string{"k, v, d, x", "k, v, d, x, rn", "k, x, rn"}[r.IntN(3)], []string{"PARTITION BY k", "PARTITION BY k, v", "PARTITION BY x", ""}[r.IntN(4)],
					orders[r.IntN(len(orders))], []int{1, 2, 5, 16}[r.IntN(4)])
				op, err := optest.Build(t, ddl, query, restartBy(s), optest.Parallel(1+r.IntN(4)))
				if err != nil {
					t.Fatal(query, err)
				}
				pick := func(from ...string) string {
					if r.IntN(4) == 0 {
						return "NULL"
					}
					return from[r.IntN(len(from))]
				}
				input := map[string][]string{}
				for range 5 {
					var rows []string
					for range r.IntN(12) {
						rows = append(rows, fmt.Sprintf("+1 %s %s %s %s", pick("p", "q"), pick("-32768", "32767", "0"), pick("0.0", "0.1"), pick(orderDomains[typ]...)))
					}
					input["t"] = append(input["t"], rows...)
					if err := op.Push(rows...).TryStep(); err != nil {
						t.Fatal(query, err)
					}
					want, err := oracle(op, input)
					if err != nil {
						t.Fatal(query, err)
					}
					if got := op.Rows(); !slices.Equal(got, want) {
						t.Fatalf("%s, seed %d\n%q\n  got  %q\n  want %q", query, s, input["t"], got, want)
					}
					if r.IntN(3) == 0 {
						op.RestartWith(1 + r.IntN(4))
					}
				}
			}
		})
	}
}

// Batches of more rows than a row's place has room for, batches of one row in numbers, and slices: what is stored is the same.
func TestFirstRowsOfLargeSteps(t *testing.T) {
	const rows, keys = 70_000, 50
	k, v := array.NewInt64Builder(memory.DefaultAllocator), array.NewInt64Builder(memory.DefaultAllocator)
	best := map[int64][]int64{}
	r := clock.NewRand(1)
	for i := range rows {
		key, value := int64(i%keys), int64(r.Uint64()>>40)
		if i < 100 {
			key, value = 1, -1 // not pushed
		} else {
			best[key] = append(best[key], value)
		}
		k.Append(key)
		v.Append(value)
	}
	var want []string
	for key := range int64(keys) {
		slices.Sort(best[key])
		for place, value := range best[key][:3] {
			want = append(want, fmt.Sprintf("%d %d %d", key, value, place+1))
		}
	}
	slices.Sort(want)
	schema := arrow.NewSchema([]arrow.Field{{Name: "k", Type: arrow.PrimitiveTypes.Int64, Nullable: true}, {Name: "v", Type: arrow.PrimitiveTypes.Int64, Nullable: true}}, nil)
	all := array.NewRecordBatch(schema, []arrow.Array{k.NewArray(), v.NewArray()}, rows)
	for _, size := range []int64{rows, 1, 777} {
		op := optest.New(t, "CREATE STREAM t (k BIGINT, v BIGINT)", "SELECT k, v, rn FROM (SELECT *, row_number() OVER (PARTITION BY k ORDER BY v) AS rn FROM t) WHERE rn <= 3")
		var in incremental.Input
		for from := int64(100); from < rows; from += size {
			in.Pushes = append(in.Pushes, incremental.Push{Split: "p", Batch: all.NewSlice(from, min(from+size, rows))})
		}
		out, err := op.Graph().Step(in)
		if err != nil {
			t.Fatal(err)
		}
		got := op.Render(out.Delta)
		for i := range got {
			got[i] = strings.TrimPrefix(got[i], "+1 ")
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("batches of %d rows:\n  got  %q\n  want %q", size, got, want)
		}
	}
}

// A step's retractions stand before its inserts, whichever instance they come from.
func TestRetractionsStandFirst(t *testing.T) {
	for _, p := range []int{1, 2, 4} {
		op := optest.New(t, insertsOf, "SELECT k, v, rn FROM (SELECT *, row_number() OVER (PARTITION BY k ORDER BY v) AS rn FROM t) WHERE rn <= 2", optest.Parallel(p))
		var in incremental.Input
		for round := range int64(3) {
			k, v := array.NewStringBuilder(memory.DefaultAllocator), array.NewInt64Builder(memory.DefaultAllocator)
			for i := range int64(100) {
				k.Append(fmt.Sprint(i))
				v.Append(-round)
			}
			schema := arrow.NewSchema([]arrow.Field{{Name: "k", Type: arrow.BinaryTypes.String, Nullable: true}, {Name: "v", Type: arrow.PrimitiveTypes.Int64, Nullable: true}}, nil)
			in.Pushes = []incremental.Push{{Split: "p", Batch: array.NewRecordBatch(schema, []arrow.Array{k.NewArray(), v.NewArray()}, 100)}}
			out, err := op.Graph().Step(in)
			if err != nil {
				t.Fatal(err)
			}
			w := out.Delta.Weights()
			if want := []int{100, 300, 400}[round]; len(w) != want || !slices.IsSorted(w) {
				t.Errorf("%d instances, step %d: %d changes, not %d, of weights %v", p, round, len(w), want, w)
			}
		}
	}
}

// Partitions that the watermark has settled leave room to later ones, few rows or many.
func TestClosedPartitionsGiveTheirRoomBack(t *testing.T) {
	r := clock.NewRand(1)
	op := optest.New(t, "CREATE STREAM t (ts TIMESTAMP, k BIGINT, v BIGINT, WATERMARK FOR ts AS ts - INTERVAL '1 second')",
		"SELECT ts, k, v, rn FROM (SELECT *, row_number() OVER (PARTITION BY ts, k ORDER BY v) AS rn FROM t) WHERE rn <= 8 EMIT IMMEDIATE")
	input := map[string][]string{}
	for step := range 12 {
		var rows []string
		for range 80 {
			k := r.IntN(12)
			rows = append(rows, fmt.Sprintf("+1 00:%02d %d %d", step+r.IntN(2), k*r.IntN(2), r.IntN(100)))
		}
		input["t"] = append(input["t"], rows...)
		op.Delta(rows...)
		for _, late := range op.LateOf("t") {
			t.Fatalf("%s is late", late)
		}
		want, err := oracle(op, input)
		if err != nil {
			t.Fatal(err)
		}
		if got := op.Rows(); !slices.Equal(got, want) {
			t.Fatalf("step %d:\n  got  %q\n  want %q", step, got, want)
		}
	}
	if op.End("").Step(); op.StateRows() != 0 {
		t.Errorf("%d rows of state are left after the end", op.StateRows())
	}
}
