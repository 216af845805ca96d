package expr

import (
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/types"
)

func col(id int, t types.Type) Expr { return &Col{ID: ColID(id), Name: string(rune('a' + id)), T: t} }

func lit(v types.Value, t types.Type) Expr { return &Lit{V: v, T: t} }

func num(v int64) Expr { return lit(v, types.Int32) }

func call(t testing.TB, name string, args ...Expr) Expr {
	t.Helper()
	e, err := NewCall(name, errs.Pos{Line: 1, Col: 7}, args...)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func ints(v ...any) arrow.Array {
	out := make([]types.Value, len(v))
	for i, x := range v {
		if n, ok := x.(int); ok {
			out[i] = int64(n)
		}
	}
	return types.ArrayOf(out, types.Int32)
}

var layout = map[ColID]int{0: 0, 1: 1}

// show writes the rows of a result, with ! for those that failed.
func show(t testing.TB, e Expr, cols ...arrow.Array) string {
	t.Helper()
	p, err := Compile(e, layout)
	if err != nil {
		t.Fatal(err)
	}
	out, bad, err := p.EvalDivert(nil, cols, cols[0].Len())
	if err != nil {
		t.Fatal(err)
	}
	rows := make([]string, out[0].Len())
	for i := range rows {
		rows[i] = types.Format(types.ValueAt(out[0], i, e.Type()), e.Type())
	}
	for _, f := range bad {
		rows[f.Row] = "!"
	}
	return strings.Join(rows, " ")
}

// An argument that may fail is kept from the rows that are decided.
func TestGuards(t *testing.T) {
	a, b := col(0, types.Int32), col(1, types.Int32)
	quotient := call(t, "//", b, a) // fails where a = 0
	nonzero := call(t, "<>", a, num(0))
	big := call(t, ">", quotient, num(3))
	as, bs := ints(0, 2, 5, nil, 0), ints(10, 10, 10, 10, nil)
	for _, c := range []struct {
		name string
		e    Expr
		want string
	}{
		{"alone", big, "! true false NULL NULL"},
		{"AND shuts out", &And{[]Expr{nonzero, big}}, "false true false NULL false"},
		{"AND in the other order does not", &And{[]Expr{big, nonzero}}, "! true false NULL false"},
		{"OR shuts out", &Or{[]Expr{&Not{nonzero}, big}}, "true true false NULL true"},
		{"CASE shuts out", &Case{Whens: []When{{nonzero, quotient}}, Else: num(-1), T: types.Int32}, "-1 5 2 -1 -1"},
		{"CASE by condition", &Case{Whens: []When{{&Not{nonzero}, num(0)}, {big, num(1)}}, T: types.Int32}, "0 1 NULL NULL 0"},
		{"COALESCE shuts out", &Coalesce{[]Expr{b, quotient}, types.Int32}, "10 10 10 10 NULL"},
		{"COALESCE asks for the rest", &Coalesce{[]Expr{a, call(t, "//", num(1), num(0))}, types.Int32}, "0 2 5 ! 0"},
		{"TRY", call(t, "try", quotient), "NULL 5 2 NULL NULL"},
		{"TRY beside the same without", &Coalesce{[]Expr{call(t, "try", quotient), quotient}, types.Int32}, "! 5 2 NULL NULL"},
		{"IN", &In{Arg: a, List: []Expr{num(2), lit(nil, types.NullType)}}, "NULL true NULL NULL NULL"},
		{"NOT IN", &In{Arg: a, List: []Expr{num(2), num(7)}, Negate: true}, "true false true NULL true"},
		{"IN computed", &In{Arg: a, List: []Expr{call(t, "-", b, num(5))}}, "false false true NULL NULL"},
		{"IS NULL", &IsNull{Arg: a}, "false false false true false"},
	} {
		if got := show(t, c.e, as, bs); got != c.want {
			t.Errorf("%s: %s\n got  %s\n want %s", c.name, String(c.e), got, c.want)
		}
	}
}

func TestThreeValuedLogic(t *testing.T) {
	vals := []types.Value{true, false, nil}
	var xs, ys []types.Value
	for _, x := range vals {
		for _, y := range vals {
			xs, ys = append(xs, x), append(ys, y)
		}
	}
	cols := []arrow.Array{types.ArrayOf(xs, types.Bool), types.ArrayOf(ys, types.Bool)}
	a, b := col(0, types.Bool), col(1, types.Bool)
	for _, c := range []struct {
		e    Expr
		want string
	}{
		{&And{[]Expr{a, b}}, "true false NULL false false false NULL false NULL"},
		{&Or{[]Expr{a, b}}, "true true true true false NULL true NULL NULL"},
		{&Not{a}, "false false false true true true NULL NULL NULL"},
	} {
		if got := show(t, c.e, cols...); got != c.want {
			t.Errorf("%s: %s, want %s", String(c.e), got, c.want)
		}
	}
}

func TestFilter(t *testing.T) {
	p, err := Compile(call(t, ">", col(0, types.Int32), num(1)), layout)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		in   arrow.Array
		want []int32
		all  bool
	}{{ints(1, 2, nil, 3), []int32{1, 3}, false}, {ints(2, 3), nil, true}, {ints(nil, 0), []int32{}, false}, {ints(), nil, true}} {
		sel, all, err := p.EvalFilter(nil, []arrow.Array{c.in}, c.in.Len())
		if err != nil || all != c.all || !slices.Equal(sel, c.want) {
			t.Errorf("%v: %v %v %v", c.in, sel, all, err)
		}
	}
}

// A failing row makes the whole fail, with its place; no row, no failure.
func TestErrors(t *testing.T) {
	p, err := Compile(call(t, "//", num(1), col(0, types.Int32)), layout)
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.EvalArray(nil, []arrow.Array{ints(1, 0)}, 2)
	if e := errs.As(err); e == nil || e.Kind != errs.Data || e.Pos.Col != 7 || !strings.Contains(e.Msg, "1 // 0") {
		t.Errorf("got %v", err)
	}
	p, err = Compile(call(t, "//", num(1), num(0)), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = p.EvalArray(nil, nil, 0); err != nil {
		t.Errorf("without rows: %v", err)
	}
}

// What two expressions have in common has one slot.
func TestCommonSubexpressions(t *testing.T) {
	x := call(t, "+", col(0, types.Int32), num(1))
	y := call(t, "+", col(0, types.Int32), num(1))
	p, err := CompileAll([]Expr{call(t, "*", x, num(2)), call(t, "*", y, num(3))}, layout)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.slots) != 7 { // a, 1, a+1, 2, (a+1)*2, 3, (a+1)*3
		t.Errorf("%d slots", len(p.slots))
	}
	random := call(t, "random")
	if p, err = CompileAll([]Expr{random, call(t, "random")}, layout); err != nil || len(p.slots) != 2 {
		t.Errorf("two calls of random() share a slot")
	}
}

func TestFold(t *testing.T) {
	a := col(0, types.Int32)
	fails := call(t, "//", num(1), num(0))
	yes, no := lit(true, types.Bool), lit(false, types.Bool)
	for _, c := range []struct {
		e    Expr
		want string
	}{
		{call(t, "+", num(1), call(t, "*", num(2), num(3))), "7"},
		{call(t, "+", a, call(t, "*", num(2), num(3))), "a + 6"},
		{fails, "1 // 0"},
		{&And{[]Expr{yes, call(t, ">", a, num(1))}}, "a > 1"},
		{&And{[]Expr{call(t, ">", a, num(1)), no}}, "false"},
		{&And{[]Expr{call(t, ">", fails, num(1)), no}}, "1 // 0 > 1 AND false"},
		{&Case{Whens: []When{{no, num(1)}, {yes, a}}, Else: num(2), T: types.Int32}, "a"},
		{&Coalesce{[]Expr{lit(nil, types.Int32), a, num(1), num(2)}, types.Int32}, "coalesce(a, 1)"},
		{call(t, "random"), "random()"},
		{&Cast{Arg: lit("2024-01-31", types.String), T: types.Date32}, "DATE '2024-01-31'"},
		{&Cast{Arg: lit("2024-01-31", types.String), T: types.TsTZ}, "CAST('2024-01-31' AS TIMESTAMP WITH TIME ZONE)"},
	} {
		if got := String(Fold(c.e)); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}

func TestString(t *testing.T) {
	a, b := col(0, types.Int32), col(1, types.Int32)
	sum := call(t, "+", a, b)
	for _, c := range []struct {
		e    Expr
		want string
	}{
		{call(t, "*", sum, num(2)), "(a + b) * 2"},
		{call(t, "-", a, call(t, "-", b, num(2))), "a - (b - 2)"},
		{&And{[]Expr{&Or{[]Expr{&IsNull{Arg: a}, call(t, "=", a, b)}}, &Not{call(t, "<", a, b)}}}, "(a IS NULL OR a = b) AND NOT a < b"},
		{call(t, "-", a), "-a"},
		{&Cast{Arg: a, T: types.Dec(9, 2), Try: true}, "TRY_CAST(a AS DECIMAL(9,2))"},
	} {
		if got := String(c.e); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
	if !Equal(sum, call(t, "+", a, b)) || Equal(sum, call(t, "+", b, a)) || Equal(col(0, types.Int32), &Col{ID: 9, Name: "a", T: types.Int32}) {
		t.Error("equality goes by columns and calls, not by names")
	}
}

// A long chain neither overflows the stack nor takes quadratic time.
func TestDeep(t *testing.T) {
	e := col(0, types.Int64)
	for range 20_000 {
		e = call(t, "+", e, lit(int64(1)<<40, types.Int64))
	}
	if got := show(t, e, types.ArrayOf([]types.Value{int64(1)}, types.Int64)); got != "21990232555520001" {
		t.Errorf("got %s", got)
	}
}

const benchRows = 8192

func benchProgram(b *testing.B, cols []arrow.Array, e Expr) {
	p, err := Compile(e, layout)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(0)
	b.ResetTimer()
	for range b.N {
		if _, err := p.Eval(nil, cols, benchRows); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchRows, "ns/row")
}

func column(t types.Type, f func(i int) types.Value) arrow.Array {
	v := make([]types.Value, benchRows)
	for i := range v {
		v[i] = f(i)
	}
	return types.ArrayOf(v, t)
}

func BenchmarkExpr(b *testing.B) {
	i64 := column(types.Int64, func(i int) types.Value { return int64(i * 7919 % 10007) })
	f64 := column(types.Float64, func(i int) types.Value { return float64(i) * 0.5 })
	dec := column(types.Dec(15, 2), func(i int) types.Value { return types.Wide(int64(i * 31)) })
	str := column(types.String, func(i int) types.Value { return "green metallic part number " + string(rune('a'+i%26)) + "xyz" })
	day := column(types.Date32, func(i int) types.Value { return int64(8000 + i%2500) })
	x := func(t types.Type) Expr { return col(0, t) }
	y := func(t types.Type) Expr { return col(1, t) }
	text := func(s string) Expr { return lit(s, types.String) }
	for _, c := range []struct {
		name string
		col  arrow.Array
		e    Expr
	}{
		{"add_i64", i64, call(b, "+", x(types.Int64), y(types.Int64))},
		{"add_i64_const", i64, call(b, "+", x(types.Int64), lit(int64(1)<<40, types.Int64))},
		{"mul_i64", i64, call(b, "*", x(types.Int64), y(types.Int64))},
		{"mul_f64", f64, call(b, "*", x(types.Float64), y(types.Float64))},
		{"mul_decimal", dec, call(b, "*", x(types.Dec(15, 2)), call(b, "-", num(1), y(types.Dec(15, 2))))},
		{"less_i64_const", i64, call(b, "<", x(types.Int64), num(5000))},
		{"less_f64_const", f64, call(b, "<", x(types.Float64), lit(1000.0, types.Float64))},
		{"less_date", day, call(b, "<", x(types.Date32), text("1995-01-01"))},
		{"and", i64, &And{[]Expr{call(b, "<", x(types.Int64), num(5000)), call(b, ">", y(types.Int64), num(100))}}},
		{"eq_text_const", str, call(b, "=", x(types.String), text("green metallic part number axyz"))},
		{"like_contains", str, call(b, "like", x(types.String), text("%metal%"))},
		{"like_prefix", str, call(b, "like", x(types.String), text("green%"))},
		{"like_general", str, call(b, "like", x(types.String), text("gr_en%part%"))},
		{"substring", str, call(b, "substring", x(types.String), num(3), num(4))},
		{"upper", str, call(b, "upper", x(types.String))},
		{"year", day, call(b, "year", x(types.Date32))},
		{"cast_i64_f64", i64, &Cast{Arg: x(types.Int64), T: types.Float64}},
		{"cast_i64_text", i64, &Cast{Arg: x(types.Int64), T: types.String}},
		{"cast_i64_i32", i64, &Cast{Arg: x(types.Int64), T: types.Int32}},
		{"cast_decimal_f64", dec, &Cast{Arg: x(types.Dec(15, 2)), T: types.Float64}},
		{"case", i64, &Case{Whens: []When{{call(b, "<", x(types.Int64), num(5000)), x(types.Int64)}}, Else: lit(int64(0), types.Int64), T: types.Int64}},
		{"in_few", i64, &In{Arg: x(types.Int64), List: []Expr{lit(int64(5), types.Int64), lit(int64(9), types.Int64)}}},
	} {
		b.Run(c.name, func(b *testing.B) { benchProgram(b, []arrow.Array{c.col, c.col}, c.e) })
	}
	b.Run("filter_half", func(b *testing.B) {
		p, err := Compile(call(b, "<", x(types.Int64), num(5000)), layout)
		if err != nil {
			b.Fatal(err)
		}
		for range b.N {
			if _, _, err := p.EvalFilter(nil, []arrow.Array{i64}, benchRows); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchRows, "ns/row")
	})
}

// TestRowOfFailure: a message names the value that failed, and what the expressions read of its row.
func TestRowOfFailure(t *testing.T) {
	text := types.ArrayOf([]types.Value{"1", "x", "y"}, types.String)
	number := types.ArrayOf([]types.Value{int64(7), int64(8), int64(9)}, types.Int64)
	cast := &Cast{Arg: &Col{ID: 1, Name: "s", T: types.String}, T: types.Int64}
	sum, err := NewCall("+", errs.Pos{Line: 1, Col: 3}, cast, &Col{ID: 2, Name: "n", T: types.Int64})
	if err != nil {
		t.Fatal(err)
	}
	p, err := Compile(sum, map[ColID]int{1: 0, 2: 1})
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.Eval(nil, []arrow.Array{text, number}, 3)
	const want = "could not convert string 'x' to BIGINT, in a row with {'s': x, 'n': 8}\nHint: TRY_CAST"
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Fatalf("have %v\nwant %s…", err, want)
	}
	e := errs.As(err)
	e.Row.Of = "row 17 of a.csv"
	if have := e.Message(); have != "could not convert string 'x' to BIGINT, in row 17 of a.csv: {'s': x, 'n': 8}" {
		t.Fatal(have)
	}
	long := types.ArrayOf([]types.Value{strings.Repeat("é", 1000)}, types.String)
	if text := RowText([]types.Field{{Name: "s", Type: types.String}}, []arrow.Array{long}, 0); len([]rune(text)) != maxRowText+1 {
		t.Fatalf("%d characters of a long row are shown", len([]rune(text)))
	}
}
