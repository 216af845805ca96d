package sql

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/riverbed/riverbed/core/errs"
)

func mustParse(t testing.TB, text string) Statement {
	t.Helper()
	s, err := ParseOne(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// What is written in several ways prints in one; parentheses show how operators bind.
func TestPrintIsCanonical(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"a + b * c", "a + b * c"},
		{"(a + b) * c", "(a + b) * c"},
		{"a - (b - c) - d", "a - (b - c) - d"},
		{"((a))", "a"},
		{"not a = b and c or d", "NOT a = b AND c OR d"},
		{"not (a and b)", "NOT (a AND b)"},
		{"(not a) = b", "(NOT a) = b"},
		{"-2 ^ 2", "-2 ^ 2"},
		{"-(2 ^ 2)", "-(2 ^ 2)"},
		{"- -x", "-(-x)"},
		{"-x::int", "-CAST(x AS INT)"},
		{"a = b is null", "a = b IS NULL"},
		{"a = (b is null)", "a = (b IS NULL)"},
		{"(a = b) = c", "(a = b) = c"},
		{"a || b + c", "a || b + c"},
		{"(a || b) + c", "(a || b) + c"},
		{"a -> 'x' = 'y'", "a -> 'x' = 'y'"},
		{"(a -> 'x') = 'y'", "(a -> 'x') = 'y'"},
		{"a ->> 'x' = 'y'", "a ->> 'x' = 'y'"},
		{"a between 1 and 2 and b", "a BETWEEN 1 AND 2 AND b"},
		{"a like b || 'x'", "a LIKE b || 'x'"},
		{"a ~~ b || 'x'", "(a LIKE b) || 'x'"},
		{"a != b", "a <> b"},
		{"a == b", "a = b"},
		{"2 ** 3", "2 ^ 3"},
		{"x isnull", "x IS NULL"},
		{"1_000 + 0xff", "1000 + 255"},
		{"E'a\\'b'", "'a''b'"},
		{"(a, b)", "ROW(a, b)"},
		{"(s).a.b", "(s).a.b"},
		{"s.a.b", "s.a.b"},
		{"x[1:2]", "x[1 : 2]"},
		{"x[:]", "x[- : -]"},
		{"extract(year from ts)", "date_part('year', ts)"},
		{"position('a' in b)", "position(b, 'a')"},
		{"trim(leading 'x' from a)", "ltrim(a, 'x')"},
		{"substring(a from 2 for 3)", "substring(a, 2, 3)"},
		{"ts at time zone 'UTC'", "timezone('UTC', ts)"},
		{"current_date", "current_date()"},
		{`"current_date"`, `"current_date"`},
		{"[x + 1 for x in l if x > 2]", "list_transform(list_filter(l, LAMBDA x: x > 2), LAMBDA x: x + 1)"},
		{"f(x -> x + 1, (a, b) -> a)", "f(x -> x + 1, (a, b) -> a)"},
		{"interval 5 seconds", "INTERVAL (5) SECOND"},
		{"interval '1' day", "INTERVAL '1' DAY"},
		{"timestamp with time zone 'x'", "TIMESTAMPTZ 'x'"},
		{"x::decimal(10,2)[]", "CAST(x AS DECIMAL(10, 2)[])"},
		{"count(distinct x) filter (x > 1) over w", "count(DISTINCT x) FILTER (WHERE x > 1) OVER w"},
		{"sum(x) over (order by y rows 2 preceding)", "sum(x) OVER (ORDER BY y ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)"},
		{`"a b"."Left"`, `"a b"."Left"`},
	} {
		e, err := ParseExpr(c.text)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
		} else if got := Print(e); got != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.text, got, c.want)
		}
	}
}

func TestPrintStatements(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"from t", "SELECT * FROM t"},
		{"table t", "SELECT * FROM t"},
		{"select a b from t u", "SELECT a AS b FROM t AS u"},
		{"(select 1)", "SELECT 1"},
		{"select 1 union select 2 intersect select 3", "SELECT 1 UNION SELECT 2 INTERSECT SELECT 3"},
		{"(select 1 union select 2) intersect select 3", "(SELECT 1 UNION SELECT 2) INTERSECT SELECT 3"},
		{"select * from tumble(t, ts, interval '1 minute')", "SELECT * FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1 minute'))"},
		{"select * from o join r as of system time o.ts on true", "SELECT * FROM o JOIN r FOR SYSTEM_TIME AS OF o.ts ON TRUE"},
		{"select a from t emit every interval '5 seconds'", "SELECT a FROM t EMIT EVERY INTERVAL '5 seconds'"},
		{"select a from t emit every '5 seconds'", "SELECT a FROM t EMIT EVERY INTERVAL '5 seconds'"},
		{"create stream s (ts timestamp, watermark for ts as ts) with (connector = kafka)",
			"CREATE STREAM s (ts TIMESTAMP, WATERMARK FOR ts AS ts) WITH (connector = 'kafka')"},
		{"copy t to 'x' (header)", "COPY (SELECT * FROM t) TO 'x' (HEADER TRUE)"},
		{"select * from read_csv('x', header = true)", "SELECT * FROM read_csv('x', header := TRUE)"},
		{"describe t", "DESCRIBE t"},
		{"set x = default", "RESET x"},
	} {
		if got := Print(mustParse(t, c.text)); !strings.EqualFold(got, c.want) || strings.ToUpper(got[:3]) != got[:3] {
			t.Errorf("%s\n got %s\nwant %s", c.text, got, c.want)
		}
	}
}

// errorCases are texts with what their error says, where, and a part of its hint.
var errorCases = []struct {
	text, msg string
	line, col int
	hint      string
}{
	{"SELECT a,, b FROM t", "expected an expression, found ','", 1, 10, "remove one comma"},
	{"SELECT f(a, ) FROM t", "expected an expression, found ')'", 1, 13, "remove one comma"},
	{"SELECT *\nFROM t\nWHERE", "expected an expression, found the end of the text", 3, 6, ""},
	{"SELECT 'größe', größe größe größe", "expected the end of the statement, found 'größe'", 1, 29, ""},
	{"SELEC 1", "expected a statement such as SELECT, found 'SELEC'", 1, 1, "SELECT"},
	{"SELECT 1; ; FOO", "expected a statement such as SELECT, found 'FOO'", 1, 13, ""},
	{"SELECT * FROM t GRUOP BY a", "expected the end of the statement, found 'BY'", 1, 23, "GROUP"},
	{"SELECT * FROM t LIMIT 1 ORDER BY a", "expected the end of the statement, found 'ORDER'", 1, 25, "the order is"},
	{"SELECT * FROM order", "expected a table, a query in parentheses, or a file name in quotes, found 'order'", 1, 15, `"order"`},
	{"SELECT 'abc", "a string is not closed", 1, 8, "write it twice"},
	{"SELECT /* a /* b */", "a comment is not closed", 1, 8, "nest"},
	{"SELECT $$abc$", "a string is not closed", 1, 8, "$$"},
	{"SELECT `a`", "unexpected character '`'", 1, 8, "double quotes"},
	{"SELECT ’a’", "unexpected character '’'", 1, 8, "straight quotes"},
	{"SELECT 1abc", "letters follow a number: 1abc", 1, 8, "space"},
	{"SELECT a = b = c", "comparisons do not chain: expected the end of the expression, found '='", 1, 14, "AND"},
	{"SELECT (1", "expected ')', found the end of the text", 1, 10, ""},
	{"SELECT x IS 5", "expected NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM, found the number 5", 1, 13, ""},
	{"SELECT CASE a END", "expected 'WHEN', found 'END'", 1, 15, ""},
	{"SELECT INTERVAL 5", "expected a unit such as SECOND, DAY or MONTH, found the end of the text", 1, 18, ""},
	{"SELECT lambda x: x", "expected an expression, found a lambda; it stands only in a function's arguments", 1, 8, "list_transform"},
	{"SELECT x'0'", "bad blob literal x'0'", 1, 8, "two hexadecimal digits"},
	{`SELECT E'\xff'`, "the escapes of a string give bytes that are not valid UTF-8", 1, 8, ""},
	{`SELECT E'ab\u12'`, `bad escape \u in a string`, 1, 13, ""},
	{"SELECT '\xff'", "the text is not valid UTF-8", 1, 9, ""},
	{"SELECT \"\"", "a quoted name is empty", 1, 8, ""},
	{"SELECT $0", "parameters are numbered from $1", 1, 8, ""},
	{"SELECT a::DECIMAL(99999999999)", "the number 99999999999 is too large here", 1, 19, ""},
	{"SELECT * FROM a JOIN b WHERE a.x = b.x", "expected ON or USING, found 'WHERE'", 1, 24, ""},
	{"SELECT * FROM a ASOF CROSS JOIN b", "NATURAL, ASOF and CROSS exclude one another", 1, 17, ""},
	{"SELECT * FROM a POSITIONAL JOIN b", "a positional join is not supported yet", 1, 17, ""},
	{"SELECT * FROM t PIVOT (x)", "PIVOT is not supported yet", 1, 17, ""},
	{"SELECT * FROM t USING SAMPLE 10", "sampling is not supported yet", 1, 17, ""},
	{"SELECT * FROM t EMIT SOMETIMES", "expected ON WATERMARK, IMMEDIATE or EVERY, found 'SOMETIMES'", 1, 22, ""},
	{"CREATE TABEL t (a INT)", "expected TABLE, STREAM, VIEW, MATERIALIZED VIEW or SINK, found 'TABEL'", 1, 8, "TABLE"},
	{"CREATE STREAM s (a INT, b)", `the column "b" has no type`, 1, 25, ""},
	{"CREATE STREAM s WITH (a = 1, A = 2)", "the option 'A' is given twice", 1, 30, ""},
	{"CREATE STREAM s (ts TIMESTAMP, WATERMARK FOR ts AS ts, WATERMARK FOR ts AS ts)", "there are two watermarks", 1, 56, ""},
	{"ATTACH 'x.db'", "ATTACH is not supported yet", 1, 1, ""},
	{"COPY FROM DATABASE a TO b", "COPY FROM DATABASE is not supported yet", 1, 1, ""},
	{"SELECT sum(x) EXPORT_STATE FROM t", "EXPORT_STATE is not supported yet", 1, 15, ""},
	{"SELECT a INTO b FROM t", "SELECT INTO is not supported", 1, 10, "CREATE TABLE"},
	{"SELECT " + strings.Repeat("a", 100) + " b c", "expected the end of the statement, found 'c'", 1, 111, ""},
}

func TestErrors(t *testing.T) {
	for _, c := range errorCases {
		_, err := Parse(c.text)
		if err == nil {
			t.Errorf("%s: no error", c.text)
			continue
		}
		e := errs.As(err)
		if e.Kind != errs.Schema || e.Msg != c.msg || e.Pos.Line != c.line || e.Pos.Col != c.col || !strings.Contains(e.Hint, c.hint) {
			t.Errorf("%s\n got %d:%d %s (%s)\nwant %d:%d %s (%s)", c.text, e.Pos.Line, e.Pos.Col, e.Msg, e.Hint, c.line, c.col, c.msg, c.hint)
		}
		if e.SQL != c.text {
			t.Errorf("%s: the error does not carry its text", c.text)
		}
	}
}

func TestParseOneWantsOne(t *testing.T) {
	if _, err := ParseOne(" ; -- nothing"); err == nil {
		t.Error("no statement is accepted")
	}
	if _, err := ParseOne("SELECT 1; SELECT 2"); err == nil {
		t.Error("two statements are accepted")
	}
	if _, err := ParseOne("SELECT 1;"); err != nil {
		t.Error(err)
	}
	if _, err := ParseExpr("ts - INTERVAL '5 seconds' ts"); err == nil {
		t.Error("an expression with a rest is accepted")
	}
}

func TestPositionsCountCharacters(t *testing.T) {
	text := "SELECT 'größe',\n  größe + b"
	q := mustParse(t, text).(*Query)
	b := q.Body.(*Select).Items[1].Expr.(*Binary)
	for _, c := range []struct {
		node Node
		want errs.Pos
	}{
		{q, errs.Pos{Offset: 0, Line: 1, Col: 1}},
		{b.Left, errs.Pos{Offset: strings.Index(text, "\n") + 3, Line: 2, Col: 3}},
		{b, errs.Pos{Offset: strings.Index(text, "+"), Line: 2, Col: 9}},
		{b.Right, errs.Pos{Offset: strings.Index(text, "b"), Line: 2, Col: 11}},
	} {
		if got := c.node.Position(); got != c.want {
			t.Errorf("%s stands at %+v, want %+v", Print(c.node), got, c.want)
		}
	}
}

func TestLiteralKinds(t *testing.T) {
	for text, want := range map[string]Literal{
		"1":             {Kind: LitInt, Text: "1"},
		"1_0":           {Kind: LitInt, Text: "10"},
		"0X1f":          {Kind: LitInt, Text: "31"},
		"1.50":          {Kind: LitDecimal, Text: "1.50"},
		".5":            {Kind: LitDecimal, Text: ".5"},
		"1e5":           {Kind: LitDouble, Text: "1e5"},
		"1.5E-3":        {Kind: LitDouble, Text: "1.5E-3"},
		"NULL":          {Kind: LitNull, Text: "null"},
		"True":          {Kind: LitBool, Text: "true"},
		`E'\t\x41\101'`: {Kind: LitString, Text: "\tAA"},
		"$a$x$$y$a$":    {Kind: LitString, Text: "x$$y"},
		"x'00fF'":       {Kind: LitBlob, Text: "\x00\xff"},
		"''''":          {Kind: LitString, Text: "'"},
	} {
		e, err := ParseExpr(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		got := *e.(*Literal)
		got.At = At{}
		if got != want {
			t.Errorf("%s is %+v, want %+v", text, got, want)
		}
	}
}

// AS lets every word be an alias; without it the words of clauses are not.
func TestWordsAsNames(t *testing.T) {
	for _, w := range []string{"emit", "qualify", "asof", "semi", "anti", "window", "left", "select"} {
		s := mustParse(t, "SELECT a AS "+w).(*Query).Body.(*Select)
		if s.Items[0].Alias.Name != w {
			t.Errorf("AS %s is %q", w, s.Items[0].Alias.Name)
		}
		if q, err := ParseOne("SELECT a " + w); err == nil {
			t.Errorf("%s is an alias without AS: %s", w, Print(q))
		}
	}
	for _, w := range []string{"stream", "watermark", "emit", "year", "date", "value", "tumble", "sink", "rows", "first", "immediate", "user"} {
		s := mustParse(t, "SELECT "+w+" FROM "+w).(*Query).Body.(*Select)
		if _, ok := s.Items[0].Expr.(*ColumnRef); !ok {
			t.Errorf("%s is no column name", w)
		}
	}
	join := mustParse(t, "FROM a ASOF JOIN b ON a.t >= b.t").(*Query).Body.(*Select).From[0].(*Join)
	if !join.AsOf || !join.Left.(*Table).Alias.Name.IsZero() {
		t.Error("ASOF was taken as an alias")
	}
}

func TestLambdaOrJSONArrow(t *testing.T) {
	e, err := ParseExpr("f(j -> 'a')")
	if err != nil {
		t.Fatal(err)
	}
	l := e.(*Function).Args[0].Value.(*Lambda)
	if got := Print(l.JSONArrow()); got != "j -> 'a'" {
		t.Errorf("the JSON reading is %s", got)
	}
	e, _ = ParseExpr("f(lambda j: 'a')")
	if e.(*Function).Args[0].Value.(*Lambda).JSONArrow() != nil {
		t.Error("a lambda with its own word has a JSON reading")
	}
}

func TestTableNames(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string
	}{
		{"SELECT 1", nil},
		{"SELECT * FROM b, a JOIN B ON true", []string{"b", "a"}},
		{"SELECT * FROM s.t, 'file.csv', range(3)", []string{"s.t"}},
		{"WITH a AS (SELECT * FROM b), c AS (SELECT * FROM a) SELECT * FROM c, d", []string{"b", "d"}},
		{"WITH a AS (SELECT * FROM a) SELECT * FROM a", []string{"a"}},
		{"WITH RECURSIVE a AS (SELECT 1 UNION ALL SELECT * FROM a) SELECT * FROM A", nil},
		{"SELECT * FROM (WITH a AS (SELECT 1) FROM a), a", []string{"a"}},
		{"SELECT (SELECT max(x) FROM u) FROM t WHERE EXISTS (FROM v) AND y IN (FROM w)", []string{"u", "t", "v", "w"}},
		{"SELECT * FROM TUMBLE(t, ts, INTERVAL '1 minute')", []string{"t"}},
		{"INSERT INTO s SELECT * FROM t", []string{"t"}},
		{"WITH a AS (FROM b) INSERT INTO s FROM a", []string{"b"}},
		{"UPDATE t SET a = 1 FROM u", []string{"t", "u"}},
		{"CREATE VIEW v AS FROM t", []string{"t"}},
		{"EXPLAIN FROM t UNION FROM u", []string{"t", "u"}},
	} {
		if got := TableNames(mustParse(t, c.text)); !slices.Equal(got, c.want) {
			t.Errorf("%s reads %v, want %v", c.text, got, c.want)
		}
	}
}

func TestInspectStopsAndGoesInOrder(t *testing.T) {
	var got []string
	Inspect(mustParse(t, "SELECT a, (SELECT b FROM t) FROM u WHERE c"), func(n Node) bool {
		switch n := n.(type) {
		case *ColumnRef:
			got = append(got, n.Parts.String())
		case *Table:
			got = append(got, n.Name.String())
		case *Subquery:
			return false
		}
		return true
	})
	if want := []string{"a", "u", "c"}; !slices.Equal(got, want) {
		t.Errorf("visited %v, want %v", got, want)
	}
}

// Every node that a field of a node leads to is among its Children, so nothing hides from Inspect.
func TestChildrenAreComplete(t *testing.T) {
	for _, f := range fixtures(t) {
		list, err := Parse(f.text)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range list {
			Inspect(s, func(n Node) bool {
				fields := map[Node]bool{}
				nodesBelow(reflect.ValueOf(n).Elem(), fields)
				for _, c := range Children(n) {
					delete(fields, c)
				}
				for missing := range fields {
					t.Errorf("%s: %T hides its %T", f.name, n, missing)
				}
				return true
			})
		}
	}
}

// nodesBelow collects the nearest expressions, tables, bodies and statements below v.
func nodesBelow(v reflect.Value, into map[Node]bool) {
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer:
		if v.IsNil() {
			return
		}
		switch n := v.Interface().(type) {
		case Expr, TableRef, Body, Statement:
			into[n.(Node)] = true
			return
		}
		nodesBelow(v.Elem(), into)
	case reflect.Struct:
		for i := range v.NumField() {
			nodesBelow(v.Field(i), into)
		}
	case reflect.Slice:
		for i := range v.Len() {
			nodesBelow(v.Index(i), into)
		}
	}
}

// Long chains parse; deep nesting is refused; neither ends the process.
func TestLongAndDeep(t *testing.T) {
	const n = 10000
	list := func(sep string, item func(int) string) string {
		items := make([]string, n)
		for i := range items {
			items[i] = item(i)
		}
		return strings.Join(items, sep)
	}
	eq := func(i int) string { return fmt.Sprintf("i = %d", i) }
	num := func(i int) string { return fmt.Sprint(i) }
	long := map[string]string{
		"or":        "SELECT * FROM t WHERE " + list(" OR ", eq),
		"and or":    "SELECT * FROM t WHERE " + list(" OR ", func(i int) string { return eq(i) + " AND " + eq(i+1) }),
		"plus":      "SELECT " + list(" + ", num),
		"in":        "SELECT * FROM t WHERE i IN (" + list(", ", num) + ")",
		"union":     list(" UNION ALL ", func(int) string { return "SELECT 1" }),
		"join":      "SELECT * FROM a " + list(" ", func(int) string { return "JOIN b USING (k)" }),
		"values":    "INSERT INTO t VALUES " + list(", ", func(i int) string { return "(" + num(i) + ")" }),
		"case":      "SELECT CASE " + list(" ", func(i int) string { return "WHEN a THEN " + num(i) }) + " END",
		"subquery":  "SELECT count(*) FROM " + strings.Repeat("(SELECT * FROM ", 300) + "t" + strings.Repeat(") q", 300),
		"nested or": "SELECT " + strings.Repeat("(", 400) + "a" + strings.Repeat(" OR b) AND c", 400),
	}
	for name, text := range long {
		s, err := ParseOne(text)
		if err != nil {
			t.Errorf("%s: %v", name, errs.As(err).Msg)
			continue
		}
		printed := Print(s)
		again, err := ParseOne(printed)
		if err != nil || Print(again) != printed {
			t.Errorf("%s does not survive printing: %v", name, err)
		}
		if got := TableNames(s); len(got) > 2 {
			t.Errorf("%s reads %v", name, got)
		}
	}
	repeat := strings.Repeat
	deep := map[string]string{
		"parens":     "SELECT " + repeat("(", n) + "1" + repeat(")", n),
		"not":        "SELECT " + repeat("NOT ", n) + "true",
		"minus":      "SELECT " + repeat("- ", n) + "1",
		"case":       "SELECT " + repeat("CASE WHEN true THEN ", n) + "1" + repeat(" END", n),
		"subquery":   "SELECT " + repeat("(SELECT ", n) + "1" + repeat(")", n),
		"from":       repeat("FROM (", n) + "t" + repeat(")", n),
		"joins":      "FROM " + repeat("a JOIN ", n) + "a" + repeat(" USING (k)", n),
		"calls":      "SELECT " + repeat("f(", n) + repeat(")", n),
		"trim":       "SELECT " + repeat("trim(", n) + "a" + repeat(")", n),
		"lists":      "SELECT " + repeat("[", n) + repeat("]", n),
		"structs":    "SELECT " + repeat("{'a': ", n) + "1" + repeat("}", n),
		"subscripts": "SELECT a" + repeat("[1]", n),
		"casts":      "SELECT a" + repeat("::INT", n),
		"is":         "SELECT a" + repeat(" IS NULL", n),
		"collate":    "SELECT a" + repeat(" COLLATE c", n),
		"zones":      "SELECT a" + repeat(" AT TIME ZONE 'UTC'", n),
		"between":    "SELECT a" + repeat(" BETWEEN 1 AND 2", n),
		"mixed":      "SELECT a" + repeat(" + 1 IS NULL", n),
		"types":      "SELECT a::" + repeat("STRUCT(a ", n) + "INT" + repeat(")", n),
		"groups":     "SELECT 1 GROUP BY " + repeat("ROLLUP (", n) + "a" + repeat(")", n),
		"explain":    repeat("EXPLAIN ", n) + "SELECT 1",
		"options":    "SET a = " + repeat("(", n) + "1" + repeat(")", n),
		"patterns":   "FROM t MATCH_RECOGNIZE (PATTERN (" + repeat("(", n) + "A" + repeat(")", n) + ") DEFINE A AS true)",
		"measures":   "FROM t" + repeat(" MATCH_RECOGNIZE (PATTERN (A) DEFINE A AS true)", n),
		"comments":   "SELECT 1 " + repeat("/*", n),
		"withs":      repeat("WITH a AS (", n) + "SELECT 1" + repeat(") SELECT 1", n),
		"unions":     repeat("SELECT 1 UNION (", n) + "SELECT 1" + repeat(")", n),
		"in sets":    "SELECT a" + repeat(" IN (a", n) + repeat(")", n),
		"lambdas":    "SELECT " + repeat("f(lambda x: ", n) + "x" + repeat(")", n),
	}
	for name, text := range deep {
		_, err := ParseOne(text)
		if err == nil {
			t.Errorf("%s: nesting of %d is accepted", name, n)
			continue
		}
		e := errs.As(err)
		if name != "comments" && !strings.HasPrefix(e.Msg, "nesting too deep") {
			t.Errorf("%s: %s", name, e.Msg)
		}
	}
}

func BenchmarkParseTPCH(b *testing.B) {
	var texts []string
	for _, f := range fixtures(b) {
		if strings.HasPrefix(f.name, "tpch/") {
			texts = append(texts, f.text)
		}
	}
	for b.Loop() {
		for _, text := range texts {
			if _, err := Parse(text); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*len(texts)), "µs/query")
}
