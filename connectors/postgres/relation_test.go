package postgres

import (
	"slices"
	"strings"
	"testing"

	"github.com/riverbed/riverbed/connectors/connectortest"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/types"
)

// samples are values of PostgreSQL's types: how a column is read, a literal, and what is read of it.
var samples = []struct{ column, as, literal, want string }{
	{"boolean", "BOOLEAN", "true", "true"},
	{"smallint", "SMALLINT", "-32768", "-32768"},
	{"integer", "INTEGER", "2147483647", "2147483647"},
	{"bigint", "BIGINT", "-9223372036854775808", "-9223372036854775808"},
	{"oid", "UINTEGER", "4294967295", "4294967295"},
	{"real", "FLOAT", "'NaN'", "NaN"},
	{"double precision", "DOUBLE", "'-Infinity'", "-Inf"},
	{"double precision", "DOUBLE", "0.1", "0.1"},
	{"numeric(10,2)", "DECIMAL(10,2)", "-12345678.9", "-12345678.9"},
	{"numeric(38,38)", "DECIMAL(38,38)", "0.00000000000000000000000000000000000001", "1e-38"},
	{"numeric", "DOUBLE", "1.5", "1.5"},
	{"numeric(40,0)", "DOUBLE", "'NaN'", "NaN"},
	{"numeric(4,-2)", "DOUBLE", "1234", "1200"},
	{"text", "VARCHAR", `E'a\tb\nc\\d\\N'`, "a\tb\nc\\d\\N"},
	{"text", "VARCHAR", `'\N'`, `\N`},
	{"varchar(3)", "VARCHAR", "''", ""},
	{"char(3)", "VARCHAR", "'a'", "a  "},
	{"bytea", "BLOB", `'\x00ff5c0a'`, "AP9cCg=="},
	{"date", "DATE", "'0044-03-15 BC'", "-0043-03-15"},
	{"time", "TIME", "'23:59:59.999999'", "23:59:59.999999"},
	{"timetz", "VARCHAR", "'12:00:00+02'", "12:00:00+02"},
	{"timestamp", "TIMESTAMP", "'2026-02-03 04:05:06.000007'", "2026-02-03T04:05:06.000007"},
	{"timestamp", "TIMESTAMP", "'0044-03-15 12:00:00 BC'", "-63517780800000000"},
	{"timestamptz", "TIMESTAMP WITH TIME ZONE", "'2026-02-03 04:05:06.5+02'", "2026-02-03T02:05:06.5Z"},
	{"interval", "INTERVAL", "'1 year -2 mons 3 days -04:05:06.7'", `{"months":10,"days":3,"nanoseconds":-14706700000000}`},
	{"interval", "INTERVAL", "'-1 days +02:03:04'", `{"months":0,"days":-1,"nanoseconds":7384000000000}`},
	{"uuid", "UUID", "'00112233-4455-6677-8899-aabbccddeeff'", "ABEiM0RVZneImaq7zN3u/w=="},
	{"json", "JSON", `'{"b":1,  "a":null}'`, `{"b":1,  "a":null}`},
	{"jsonb", "JSON", `'{"b":1,  "a":null}'`, `{"a": null, "b": 1}`},
	{"integer[]", "INTEGER[]", "'{1,NULL,3}'", "[1,null,3]"},
	{"integer[]", "INTEGER[]", "'[0:1]={1,2}'", "[1,2]"},
	{"text[]", "VARCHAR[]", `ARRAY['a"b\c', 'NULL', '', 'x,y', '{}']`, `["a\"b\\c","NULL","","x,y","{}"]`},
	{"numeric(5,1)[]", "DECIMAL(5,1)[]", "'{1.5}'", `["1.5"]`},
	{"text[]", "VARCHAR[]", "'{}'", "[]"},
	{"inet", "VARCHAR", "'10.0.0.1/8'", "10.0.0.1/8"},
	{"mood", "VARCHAR", "'good'", "good"},
	{"positive", "INTEGER", "7", "7"},
	{"point", "VARCHAR", "'(1,2)'", "(1,2)"},
}

func samplesTable(t *testing.T) (create, insert, typesOf, want string) {
	var columns, values, as, wants []string
	for i, s := range samples {
		name := "c" + string(rune('a'+i/26)) + string(rune('a'+i%26))
		columns, values = append(columns, name+" "+s.column), append(values, s.literal)
		as, wants = append(as, name+" "+s.as), append(wants, s.want)
	}
	create = "CREATE TYPE mood AS ENUM ('bad', 'good'); CREATE DOMAIN positive AS integer CHECK (VALUE > 0); CREATE TABLE samples (id serial PRIMARY KEY, " + strings.Join(columns, ", ") + ")"
	return create, "INSERT INTO samples VALUES (DEFAULT, " + strings.Join(values, ", ") + ")", "id INTEGER, " + strings.Join(as, ", "), strings.Join(wants, "|")
}

// TestRelationTypes reads every type, and NULLs of it.
func TestRelationTypes(t *testing.T) {
	s, db := fresh(t)
	create, insert, typesOf, want := samplesTable(t)
	s.SQL(t, db, create+"; "+insert+"; INSERT INTO samples DEFAULT VALUES")
	r := connectortest.OpenRelation(t, Source, with(s, db, "table", "samples"))
	if got := connectortest.Columns(r.Fields()); got != typesOf {
		t.Fatalf("columns\n%s\nwant\n%s", got, typesOf)
	}
	got := connectortest.Scan(t, r, flow.ScanRequest{})
	if len(got) != 2 || got[0] != "1|"+want || strings.Count(got[1], "NULL") != len(samples) {
		t.Fatalf("read\n%s\nwant\n%s", strings.Join(got, "\n"), "1|"+want)
	}
}

// TestRelation reads columns, conditions and no columns at all, in batches, by two workers.
func TestRelation(t *testing.T) {
	s, db := fresh(t)
	s.SQL(t, db, `CREATE TABLE t (id int, "Name" text, n numeric); INSERT INTO t SELECT i, 'name ' || i, i FROM generate_series(1, 1000) i; INSERT INTO t VALUES (NULL, NULL, NULL); ANALYZE t`)
	r := connectortest.OpenRelation(t, Source, with(s, db, "table", "public.t"), columns(t, "NAME VARCHAR", "n HUGEINT", "id INTEGER")...)
	if n := r.Stats().Rows; n != 1001 {
		t.Errorf("%d rows are expected", n)
	}
	got := connectortest.Scan(t, r, flow.ScanRequest{BatchRows: 100})
	if len(got) != 1001 || !slices.Contains(got, "name 77|77|77") || !slices.Contains(got, "NULL|NULL|NULL") {
		t.Fatalf("%d rows", len(got))
	}
	if got := connectortest.Scan(t, r, flow.ScanRequest{Columns: []int{}, BatchRows: 64}); len(got) != 1001 {
		t.Fatalf("%d rows without columns", len(got))
	}
	for _, c := range []struct {
		p    flow.Predicate
		want int
	}{
		{flow.Predicate{Column: 2, Op: flow.CmpLe, Values: []types.Value{int64(10)}}, 10},
		{flow.Predicate{Column: 2, Op: flow.CmpNe, Values: []types.Value{int64(10)}}, 999},
		{flow.Predicate{Column: 2, Op: flow.CmpIn, Values: []types.Value{int64(10), int64(-1), int64(7)}}, 2},
		{flow.Predicate{Column: 2, Op: flow.CmpIsNull}, 1},
		{flow.Predicate{Column: 2, Op: flow.CmpIsNotNull}, 1000},
		{flow.Predicate{Column: 0, Op: flow.CmpEq, Values: []types.Value{"name 7"}}, 1},
		{flow.Predicate{Column: 0, Op: flow.CmpLt, Values: []types.Value{"name 7"}}, 1001}, // the database's order may be another
		{flow.Predicate{Column: 1, Op: flow.CmpLt, Values: []types.Value{int64(7)}}, 1001}, // read as another type
	} {
		if got := connectortest.Scan(t, r, flow.ScanRequest{Columns: []int{2}, Filters: []flow.Predicate{c.p}}); len(got) != c.want {
			t.Errorf("%+v: %d rows, want %d", c.p, len(got), c.want)
		}
	}
}

func TestRelationRefuses(t *testing.T) {
	s, db := fresh(t)
	s.SQL(t, db, "CREATE TABLE orders (id int, v text, n numeric, m int[]); INSERT INTO orders VALUES (1, 'x', 'NaN', '{{1},{2}}')")
	for _, c := range []struct {
		table, column string
		kind          errs.Kind
		want          string
	}{
		{"order", "", errs.Source, `did you mean "orders"?`},
		{"orders", "idd INTEGER", errs.Schema, `did you mean "id"?`},
		{"orders", "v INTEGER", errs.Schema, "declare it VARCHAR"},
		{"orders", "n DECIMAL(10,2)", errs.Data, `"NaN" is not a value of DECIMAL(10,2)`},
		{"orders", "m INTEGER[]", errs.Data, "more than one dimension"},
	} {
		var schema []types.Field
		if c.column != "" {
			schema = columns(t, c.column)
		}
		r, err := connectortest.TryRelation(Source, with(s, db, "table", c.table), schema...)
		if err == nil {
			_, err = connectortest.TryScan(r, flow.ScanRequest{})
		}
		if !errs.Is(err, c.kind) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: %v", c.table, c.column, err)
		}
	}
}
