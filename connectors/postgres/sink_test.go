package postgres

import (
	"strings"
	"testing"

	"github.com/riverbed/riverbed/connectors"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
)

// TestSinkTypes writes values of every type into a table that the sink creates, and reads them with psql.
func TestSinkTypes(t *testing.T) {
	s, db := fresh(t)
	cases := []struct{ typ, column, values, want string }{
		{"BOOLEAN", "boolean", "true|false", "t|f"},
		{"TINYINT", "smallint", "-128|127", "-128|127"},
		{"SMALLINT", "smallint", "-32768|32767", "-32768|32767"},
		{"INTEGER", "integer", "-2147483648|7", "-2147483648|7"},
		{"BIGINT", "bigint", "-9223372036854775808|9223372036854775807", "-9223372036854775808|9223372036854775807"},
		{"UTINYINT", "smallint", "0|255", "0|255"},
		{"USMALLINT", "integer", "0|65535", "0|65535"},
		{"UINTEGER", "bigint", "0|4294967295", "0|4294967295"},
		{"UBIGINT", "numeric(20,0)", "0|18446744073709551615", "0|18446744073709551615"},
		{"HUGEINT", "numeric(39,0)", "-170141183460469231731687303715884105728|170141183460469231731687303715884105727", "-170141183460469231731687303715884105728|170141183460469231731687303715884105727"},
		{"DECIMAL(38,10)", "numeric(38,10)", "-0.0000000001|9999999999999999999999999999.0000000000", "-0.0000000001|9999999999999999999999999999.0000000000"},
		{"FLOAT", "real", "NaN|0.1", "NaN|0.1"},
		{"DOUBLE", "double precision", "-Infinity|1e300", "-Infinity|1e+300"},
		{"DOUBLE", "double precision", "-0.0|0.1", "-0|0.1"},
		{"VARCHAR", "text", `a\b	c\N|€ 'x' "y"`, `a\b	c\N|€ 'x' "y"`},
		{"JSON", "json", `{"b":1,  "a":null}|[1]`, `{"b":1,  "a":null}|[1]`},
		{"BLOB", "bytea", `\x00\xFFa|\x5C`, `\x00ff61|\x5c`},
		{"DATE", "date", "0044-03-15 (BC)|infinity", "0044-03-15 BC|infinity"},
		{"TIME", "time without time zone", "00:00:00|23:59:59.999999", "00:00:00|23:59:59.999999"},
		{"TIMESTAMP", "timestamp without time zone", "0001-01-01 00:00:00.000001|12026-02-03 04:05:06", "0001-01-01 00:00:00.000001|12026-02-03 04:05:06"},
		{"TIMESTAMP_S", "timestamp without time zone", "2026-02-03 04:05:06|-infinity", "2026-02-03 04:05:06|-infinity"},
		{"TIMESTAMP_NS", "timestamp without time zone", "2026-02-03 04:05:06.000007|2026-02-03 04:05:06", "2026-02-03 04:05:06.000007|2026-02-03 04:05:06"},
		{"TIMESTAMP WITH TIME ZONE", "timestamp with time zone", "2026-02-03 04:05:06+02|0044-03-15 (BC) 12:00:00+00", "2026-02-03 02:05:06+00|0044-03-15 12:00:00+00 BC"},
		{"INTERVAL", "interval", "1 year 2 months 3 days 04:05:06.7|-2 months -1 days -100:00:00.5", "1 year 2 mons 3 days 04:05:06.7|-2 mons -1 days -100:00:00.5"},
		{"UUID", "uuid", "00112233-4455-6677-8899-aabbccddeeff|00000000-0000-0000-0000-000000000000", "00112233-4455-6677-8899-aabbccddeeff|00000000-0000-0000-0000-000000000000"},
		{"INTEGER[]", "integer[]", "[1, NULL, -3]|[]", "{1,NULL,-3}|{}"},
		{"VARCHAR[]", "text[]", `['a"b\\c', 'NULL', '']|['{},']`, `{"a\"b\\c","NULL",""}|{"{},"}`},
		{"TIMESTAMP[]", "timestamp without time zone[]", `['2026-02-03 04:05:06']|[NULL]`, `{"2026-02-03 04:05:06"}|{NULL}`},
	}
	for i, c := range cases {
		table := "t" + string(rune('a'+i%26)) + string(rune('a'+i/26))
		fields := columns(t, "a "+c.typ, "b "+c.typ, "n "+c.typ)
		w := open(t, with(s, db, "table", table), connectors.SinkRequest{Fields: fields})
		write(t, w, batch(t, fields, c.values+"|"))
		expect(t, s, db, "SELECT a, b, n FROM "+table, c.want+"|∅")
		expect(t, s, db, "SELECT format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = '"+table+"'::regclass AND attname = 'a'", c.column)
	}
}

// TestSinkAppend adds rows: several times when their weight says so, as a changelog when asked for.
func TestSinkAppend(t *testing.T) {
	s, db := fresh(t)
	s.SQL(t, db, `CREATE SCHEMA "S s"; CREATE TABLE "S s"."T" (extra text DEFAULT 'd', "B" varchar(3), a numeric)`)
	fields := columns(t, "a INTEGER", "B VARCHAR")
	w := open(t, with(s, db, "table", `"S s"."T"`, "create", "false"), connectors.SinkRequest{Fields: fields})
	write(t, w, batch(t, fields, "+1: 1|x", "+2: 2|y"), batch(t, fields, "3|"))
	expect(t, s, db, `SELECT * FROM "S s"."T" ORDER BY a`, "d|x|1", "d|y|2", "d|y|2", "d|∅|3")
	if err := w.Write(t.Context(), flow.Delta{Batch: batch(t, fields, "-1: 1|x")}); !errs.Is(err, errs.Unsupported) {
		t.Fatalf("a row that goes: %v", err)
	}
	if err := w.Write(t.Context(), flow.Delta{Batch: batch(t, fields, "1|long")}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Stage(t.Context(), 1); !errs.Is(err, errs.Data) || !strings.Contains(err.Error(), "22001") || !strings.Contains(err.Error(), "column B") {
		t.Fatalf("a text that is too long: %v", err)
	}

	c := open(t, with(s, db, "table", "changes", "changelog", "true"), connectors.SinkRequest{Fields: fields, Updating: true})
	write(t, c, batch(t, fields, "+1: 1|x", "-1: 2|y"))
	expect(t, s, db, `SELECT * FROM changes ORDER BY a`, "1|x|1", "2|y|-1")
}

// TestSinkByKey keeps a table equal to the query by key.
func TestSinkByKey(t *testing.T) {
	s, db := fresh(t)
	fields := columns(t, "k INTEGER", "part VARCHAR", "v DOUBLE")
	w := open(t, with(s, db, "table", "t", "key", "part, k"), connectors.SinkRequest{Fields: fields, Updating: true})
	write(t, w, batch(t, fields, "+1: 1|a|1.5", "+1: 1|b|2", "+1: 2|a|"))
	write(t, w, batch(t, fields, "+1: 1|a|7", "-1: 1|a|1.5", "-1: 2|a|"), batch(t, fields, "+1: 3|c|3"), batch(t, fields, "-1: 3|c|3"), batch(t, fields, "+1: 2|a|8"))
	expect(t, s, db, "SELECT k, part, v FROM t ORDER BY k, part", "1|a|7", "1|b|2", "2|a|8")

	for _, c := range []struct{ rows, want string }{
		{"+1: 9|x|1 +1: 9|x|2", "two rows with the key (x, 9)"},
		{"+2: 9|x|1", "two rows with the key (x, 9)"},
		{"+1: |x|1", `NULL in the column "k"`},
	} {
		err := w.Write(t.Context(), flow.Delta{Batch: batch(t, fields, strings.Split(strings.ReplaceAll(c.rows, " +", "\n+"), "\n")...)})
		if !errs.Is(err, errs.Data) || !strings.Contains(err.Error(), c.want) {
			t.Fatalf("%s: %v", c.rows, err)
		}
	}

	// A table of the key alone.
	only := fields[:1]
	o := open(t, with(s, db, "table", "keys", "key", "k"), connectors.SinkRequest{Fields: only, Updating: true})
	write(t, o, batch(t, only, "+1: 1", "+1: 2"))
	write(t, o, batch(t, only, "-1: 1", "+1: 3"))
	expect(t, s, db, "SELECT k FROM keys ORDER BY k", "2", "3")
}

// TestSinkChangingKey is the case 049: the row of an aggregate whose key is its own value leaves no old one behind.
func TestSinkChangingKey(t *testing.T) {
	s, db := fresh(t)
	fields := columns(t, "key_ts INTEGER", "v INTEGER")
	w := open(t, with(s, db, "table", "sink", "key", "key_ts"), connectors.SinkRequest{Fields: fields, Updating: true})
	steps := []struct {
		delta []string
		want  string
	}{
		{[]string{"+1: 11|114514"}, "11|114514"},
		{[]string{"-1: 11|114514", "+1: 12|114514"}, "12|114514"},
		{[]string{"+1: 13|114514", "-1: 12|114514"}, "13|114514"},
		{[]string{"-1: 13|114514", "+1: 12|114514"}, "12|114514"},
	}
	for _, step := range steps {
		write(t, w, batch(t, fields, step.delta...))
		expect(t, s, db, "SELECT key_ts, v FROM sink", step.want)
	}
}

// TestSinkRefuses: what cannot work is said when the sink is opened.
func TestSinkRefuses(t *testing.T) {
	s, db := fresh(t)
	s.SQL(t, db, "CREATE TABLE here (a int, b text); CREATE UNIQUE INDEX ON here (a) WHERE a > 0; CREATE UNIQUE INDEX ON here (a, b); CREATE VIEW v AS SELECT 1 AS a")
	fields := columns(t, "a INTEGER", "b VARCHAR")
	for _, c := range []struct {
		options  []string
		updating bool
		kind     errs.Kind
		want     string
	}{
		{[]string{"table", "t"}, true, errs.Unsupported, "key = 'id'"},
		{[]string{"table", "missing", "create", "false"}, false, errs.Source, "there is no table missing"},
		{[]string{"table", "here", "key", "a"}, true, errs.Schema, "CREATE UNIQUE INDEX"},
		{[]string{"table", "here", "key", "c"}, true, errs.Schema, `no column "c"`},
		{[]string{"table", "here", "key", "a, A"}, true, errs.Usage, "twice"},
		{[]string{"table", "here", "key", "a", "changelog", "true"}, true, errs.Usage, "exclude each other"},
		{[]string{"table", "v", "create", "false"}, false, errs.Schema, `no column "b"`},
		{[]string{"table", `"a`}, false, errs.Usage, "no name of a table"},
		{[]string{"table", "nowhere.t"}, false, errs.Source, "nowhere"},
		{[]string{"table", "t", "host", "x"}, false, errs.Usage, "url and host exclude each other"},
		{[]string{"table", "t", "password", "sesame"}, false, errs.Source, "check user and password"},
	} {
		_, err := tryOpen(t, with(s, db, c.options...), connectors.SinkRequest{Fields: fields, Updating: c.updating})
		if !errs.Is(err, c.kind) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, and should be of kind %s and say %q", c.options, err, c.kind, c.want)
		}
		if err != nil && strings.Contains(err.Error(), "sesame") {
			t.Errorf("%v: the message shows the password: %v", c.options, err)
		}
	}
	for _, keys := range [][][]int{{}, {{1}}} {
		_, err := tryOpen(t, with(s, db, "table", "rows", "key", "a"), connectors.SinkRequest{Fields: fields, Updating: true, Keys: keys})
		if !errs.Is(err, errs.Unsupported) || !strings.Contains(err.Error(), "several rows of the query may have the same") {
			t.Errorf("a key that is not unique beside %v: %v", keys, err)
		}
	}
	if w := open(t, with(s, db, "table", "here", "key", "b, a"), connectors.SinkRequest{Fields: fields, Updating: true}); w == nil {
		t.Fatal("a unique index in another order")
	}
	for _, c := range []struct {
		field, want string
	}{{"INTEGER[][]", "INTEGER[][]"}} {
		_, err := tryOpen(t, with(s, db, "table", "t2"), connectors.SinkRequest{Fields: columns(t, "x "+c.field)})
		if !errs.Is(err, errs.Schema) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.field, err)
		}
	}
	nanos := columns(t, "x TIMESTAMP_NS")
	w := open(t, with(s, db, "table", "nanos"), connectors.SinkRequest{Fields: nanos})
	if err := w.Write(t.Context(), flow.Delta{Batch: batch(t, nanos, "2026-01-01 00:00:00.000000001")}); !errs.Is(err, errs.Data) {
		t.Errorf("nanoseconds: %v", err)
	}
	text := columns(t, "x VARCHAR")
	w = open(t, with(s, db, "table", "texts"), connectors.SinkRequest{Fields: text})
	if err := w.Write(t.Context(), flow.Delta{Batch: batch(t, text, "a\x00b")}); !errs.Is(err, errs.Data) {
		t.Errorf("U+0000: %v", err)
	}
}
