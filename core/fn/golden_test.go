package fn_test

import (
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/core/bind"
	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/sql"
	"github.com/riverbed/riverbed/core/types"
)

var testEnv = &fn.Env{Now: time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC), Rand: rand.New(rand.NewPCG(1, 2))}

// noCatalog has no names; an expression without columns asks it only for functions of the session.
type noCatalog struct{ bind.Catalog }

func (noCatalog) Function(string) *fn.Scalar { return nil }

// evaluate gives the type and the text of an expression without columns.
func evaluate(text string, env *fn.Env) (typ, value string, err error) {
	x, err := sql.ParseExpr(text)
	if err != nil {
		return "", "", err
	}
	e, err := bind.New(noCatalog{}, bind.Options{SQL: text}).Expr(x, nil, types.Type{})
	if err != nil {
		return "", "", err
	}
	p, err := expr.Compile(e, nil)
	if err != nil {
		return "", "", err
	}
	v, err := p.EvalArray(env, nil, 1)
	if err != nil {
		return "", "", err
	}
	return e.Type().String(), types.FormatIn(types.ValueAt(v, 0, e.Type()), e.Type(), env.TimeZone), nil
}

// TestDuckDB compares with DuckDB's answers, but for the differences that known.tsv lists with their reasons.
func TestDuckDB(t *testing.T) {
	known := map[string]string{}
	for _, l := range lines(t, "testdata/known.tsv") {
		known[l[0]] = l[1]
	}
	same := 0
	for _, l := range slices.Concat(lines(t, "testdata/duckdb.tsv"), lines(t, "testdata/duckdb_random.tsv"), lines(t, "testdata/duckdb_nested.tsv")) {
		typ, value, err := evaluate(l[0], testEnv)
		if err != nil {
			typ, value = "error", ""
		}
		equal := typ == l[1] && (value == l[2] || value == "nan" && l[2] == "-nan")
		if equal {
			same++
		}
		switch reason, differs := known[l[0]]; {
		case equal && differs:
			t.Errorf("%s: agrees with DuckDB, but known.tsv says: %s", l[0], reason)
		case !equal && !differs:
			t.Errorf("%s\n\tours   %s %s %v\n\tDuckDB %s %s", l[0], typ, value, err, l[1], l[2])
		}
	}
	t.Logf("%d agree, %d differ for a reason", same, len(known))
}

// lines reads the rows of a table, cut at tabs.
func lines(t *testing.T, path string) [][]string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var out [][]string
	for _, l := range strings.Split(string(text), "\n") {
		if l != "" && l[0] != '#' {
			out = append(out, strings.Split(l, "\t"))
		}
	}
	return out
}

// TestZone is TestDuckDB in a session whose clocks change.
func TestZone(t *testing.T) {
	env := *testEnv
	env.TimeZone, _ = types.LoadZone("America/New_York")
	const later = "date_trunc('hour', timestamptz '2024-11-03 05:45:00+00')" // DuckDB's start lies after the time itself
	for _, l := range lines(t, "testdata/duckdb_newyork.tsv") {
		if l[0] == later {
			continue
		}
		typ, value, err := evaluate(l[0], &env)
		if err != nil {
			typ, value = "error", ""
		}
		if typ != l[1] || value != l[2] {
			t.Errorf("%s\n\tours   %s %s %v\n\tDuckDB %s %s", l[0], typ, value, err, l[1], l[2])
		}
	}
}

// TestExamples runs the examples that the reference prints.
func TestExamples(t *testing.T) {
	for _, f := range fn.All {
		for _, e := range f.Examples {
			if _, got, err := evaluate(e.SQL, testEnv); err != nil || got != e.Want {
				t.Errorf("%s: %s is %s (%v), want %s", f.Name, e.SQL, got, err, e.Want)
			}
		}
	}
}

// TestColumns evaluates the same expressions with every constant turned into a column, sliced and with NULLs between: rows must
// give what constants give, and a failing row must fail alone.
func TestColumns(t *testing.T) {
	for _, l := range append(lines(t, "testdata/duckdb.tsv"), lines(t, "testdata/duckdb_nested.tsv")...) {
		x, err := sql.ParseExpr(l[0])
		if err != nil {
			continue
		}
		e, err := bind.New(noCatalog{}, bind.Options{SQL: l[0]}).Expr(x, nil, types.Type{})
		if err != nil || expr.Purity(e) == fn.Volatile {
			continue
		}
		_, want, constErr := evaluate(l[0], testEnv)
		layout := map[expr.ColID]int{}
		var cols []arrow.Array
		e = expr.Transform(e, func(x expr.Expr) expr.Expr {
			lit, ok := x.(*expr.Lit)
			if !ok || lit.V == nil {
				return x
			}
			id := expr.ColID(len(cols))
			layout[id] = len(cols)
			all := types.ArrayOf([]types.Value{nil, lit.V, nil, lit.V, lit.V}, lit.T)
			cols = append(cols, array.NewSlice(all, 1, 4))
			return &expr.Col{ID: id, T: lit.T}
		})
		if len(cols) == 0 {
			continue
		}
		p, err := expr.Compile(e, layout)
		if err != nil {
			t.Errorf("%s: %v", l[0], err)
			continue
		}
		out, bad, err := p.EvalDivert(testEnv, cols, 3)
		if err != nil {
			t.Errorf("%s: %v", l[0], err)
			continue
		}
		failed := map[int]bool{}
		for _, f := range bad {
			failed[f.Row] = true
		}
		for _, row := range []int{0, 2} {
			switch got := types.Format(types.ValueAt(out[0], row, e.Type()), e.Type()); {
			case failed[row] != (constErr != nil):
				t.Errorf("%s: row %d fails: %v; as a constant: %v", l[0], row, failed[row], constErr)
			case constErr == nil && got != want:
				t.Errorf("%s: row %d is %s; as a constant: %s", l[0], row, got, want)
			}
		}
	}
}
