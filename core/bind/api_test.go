package bind

import (
	"strings"
	"testing"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/sql"
	"github.com/riverbed/riverbed/core/types"
)

// TestExpr: columns of a bare expression are their positions, as a watermark wants them.
func TestExpr(t *testing.T) {
	x, err := sql.ParseExpr("ts - INTERVAL '5 seconds'")
	if err != nil {
		t.Fatal(err)
	}
	fields := []types.Field{{Name: "k", Type: types.String}, {Name: "ts", Type: types.TsUS}}
	e, err := New(small(t), Options{}).Expr(x, fields, types.TsUS)
	if err != nil {
		t.Fatal(err)
	}
	set := map[expr.ColID]bool{}
	expr.Columns(e, set)
	if len(set) != 1 || !set[1] || !e.Type().Equal(types.TsUS) {
		t.Errorf("columns %v, type %s", set, e.Type())
	}
}

func TestExprRefusals(t *testing.T) {
	fields := []types.Field{{Name: "v", Type: types.Int32}}
	for text, want := range map[string]string{
		"w + 1":                    `no column "w"`,
		"sum(v)":                   "cannot contain the aggregate sum",
		"row_number() OVER ()":     "cannot contain the window function",
		"TUMBLE(v, INTERVAL '1s')": "cannot stand in an expression",
	} {
		x, err := sql.ParseExpr(text)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = New(small(t), Options{SQL: text}).Expr(x, fields, types.Type{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestErrorInViewShowsItsText: the caret of an error in a view stands in the view's text, not in the query's.
func TestErrorInViewShowsItsText(t *testing.T) {
	_, err := bindText(t, small(t), "SELECT * FROM broken")
	e := errs.As(err)
	if e == nil || e.SQL != "SELECT nope FROM t" || !strings.HasPrefix(e.Msg, "in view broken: ") {
		t.Fatalf("%v", err)
	}
}

func TestType(t *testing.T) {
	for text, want := range map[string]string{
		"INTEGER[]": "INTEGER[]",
		"STRUCT(a INTEGER, b MAP(VARCHAR, DOUBLE))": "STRUCT(a INTEGER, b MAP(VARCHAR, DOUBLE))",
		"DECIMAL(10, 2)":           "DECIMAL(10,2)",
		"TIMESTAMP WITH TIME ZONE": "TIMESTAMP WITH TIME ZONE",
		"VARCHAR(10)":              "VARCHAR",
		"TIMESTAMP(3)":             "TIMESTAMP_MS",
	} {
		st, err := sql.ParseOne("CREATE TABLE x (c " + text + ")")
		if err != nil {
			t.Fatal(err)
		}
		got, err := Type(st.(*sql.CreateTable).Columns[0].Type)
		if err != nil || got.String() != want {
			t.Errorf("%s: %s, %v", text, got, err)
		}
	}
}
