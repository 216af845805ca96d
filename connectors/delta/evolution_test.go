package delta_test

import (
	"strings"
	"testing"

	ct "github.com/riverbed/riverbed/connectors/connectortest"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/types"
)

const person = `{"type":"struct","fields":[%a,%b]}`

// structs are a column of STRUCT(a, b) as a file names its fields.
func structs(name, a, b string, values ...types.Value) col {
	return col{name: name, t: types.StructOf(types.Field{Name: a, Type: types.Int64}, types.Field{Name: b, Type: types.String}), values: values}
}

// Columns that came later are NULL, those that left are not read, a nested one as well.
func TestMissingColumns(t *testing.T) {
	m := newMaker(t)
	nested := func(b string) string {
		return strings.NewReplacer("%a", field("a", "long"), "%b", field(b, "string")).Replace(person)
	}
	m.commit("protocol", protocol(1), "metaData", table(field("id", "long")+","+field("s", nested("old"))),
		"add", m.file("a.parquet", nil, longs("id", 1, 2), structs("s", "a", "old", []types.Value{int64(1), "x"}, nil)))
	list := `{"type":"array","elementType":` + nested("b") + `,"containsNull":true}`
	dict := `{"type":"map","keyType":"string","valueType":` + nested("b") + `,"valueContainsNull":true}`
	m.commit("metaData", table(strings.Join([]string{field("new", "string"), field("s", nested("b")), field("id", "long"), field("l", list), field("m", dict)}, ",")))
	want(t, m.scan(), `NULL|{"a":1,"b":null}|1|NULL|NULL`, "NULL|NULL|2|NULL|NULL")
	if st := m.open().Stats(); !st.Exact || st.Rows != 2 {
		t.Errorf("%+v", st)
	}
	want(t, ct.Scan(t, m.open(), flow.ScanRequest{Filters: []flow.Predicate{{Column: 0, Op: flow.CmpEq, Values: []types.Value{"x"}}}}))

	// A file whose structs are in another order, in lists and maps.
	turned := types.StructOf(types.Field{Name: "b", Type: types.String}, types.Field{Name: "a", Type: types.Int64})
	m.commit("add", m.file("b.parquet", nil, longs("id", 3, 4, 5),
		col{name: "l", t: types.ListOf(turned), values: []types.Value{[]types.Value{[]types.Value{"p", int64(1)}, nil}, nil, []types.Value{[]types.Value{nil, int64(2)}}}},
		col{name: "m", t: types.MapOf(types.String, turned), values: []types.Value{nil, []types.MapEntry{{Key: "k", Value: []types.Value{"q", int64(3)}}}, []types.MapEntry{}}}))
	want(t, ct.Scan(t, m.open(), flow.ScanRequest{Columns: []int{2, 3, 4}}), "1|NULL|NULL", "2|NULL|NULL",
		`3|[{"a":1,"b":"p"},null]|NULL`, `4|NULL|[{"key":"k","value":{"a":3,"b":"q"}}]`, `5|[{"a":2,"b":null}]|[]`)
	want(t, ct.Scan(t, m.open(), flow.ScanRequest{Columns: []int{3}, BatchRows: 2})[2:], `[{"a":1,"b":"p"},null]`, "NULL", `[{"a":2,"b":null}]`)
}

func TestWidening(t *testing.T) {
	m := newMaker(t)
	m.commit("protocol", protocol(3, "typeWidening"), "metaData", table(field("n", "integer")+","+field("f", "float")),
		"add", m.file("a.parquet", map[string]any{"stats": `{"numRecords":2,"minValues":{"n":1},"maxValues":{"n":2},"nullCount":{"n":0}}`},
			col{name: "n", t: types.Int32, values: []types.Value{int64(1), int64(2)}}, col{name: "f", t: types.Float32, values: []types.Value{float32(0.5), nil}}))
	m.commit("metaData", table(field("n", "long")+","+field("f", "double")))
	want(t, m.scan(), "1|0.5", "2|NULL")
	want(t, ct.Scan(t, m.open(), flow.ScanRequest{Filters: []flow.Predicate{{Column: 0, Op: flow.CmpEq, Values: []types.Value{int64(7)}}}}))
	m.commit("metaData", table(field("n", "string")+","+field("f", "double")))
	m.fails(nil, "a.parquet", `column "n" is INTEGER in the file and VARCHAR in the table`)
}

// INT96 and timestamps of old writers are in UTC, as Delta says, though the files do not.
func TestTimestamps(t *testing.T) {
	m := newMaker(t)
	m.commit("protocol", protocol(3, "timestampNtz"), "metaData", table(field("z", "timestamp")+","+field("l", "timestamp_ntz")),
		"add", m.file("a.parquet", nil, col{name: "z", t: types.TsUS, values: []types.Value{int64(1), nil}}, col{name: "l", t: types.TsUS, values: []types.Value{nil, int64(2)}}))
	if got := ct.Columns(m.open().Fields()); got != "z TIMESTAMP WITH TIME ZONE, l TIMESTAMP" {
		t.Fatal(got)
	}
	want(t, m.scan(), "1970-01-01T00:00:00.000001Z|NULL", "NULL|1970-01-01T00:00:00.000002")
}

func TestColumnMapping(t *testing.T) {
	for _, mode := range []string{"name", "id"} {
		t.Run(mode, func(t *testing.T) {
			m := newMaker(t)
			inner := strings.NewReplacer("%a", mapped("first", "long", "col-a", 4), "%b", mapped("second", "string", "col-b", 5)).Replace(person)
			fields := strings.Join([]string{mapped("an id", "long", "col-1", 1), mapped("who", inner, "col-2", 2), mapped("part", "string", "col-3", 3)}, ",")
			properties := map[string]any{"delta.columnMapping.mode": mode}
			one, two := longs("col-1", 1, 2), structs("col-2", "col-a", "col-b", []types.Value{int64(7), "x"}, nil)
			if mode == "id" { // names in the file are of another engine
				one.name, two.name = "x", "y"
			}
			one.id, two.id = 1, 2
			m.commit("protocol", protocol(3, "columnMapping"), "metaData", table(fields, "configuration", properties, "partitionColumns", []string{"part"}),
				"add", m.file("a.parquet", map[string]any{"partitionValues": map[string]any{"col-3": "p"}, "stats": `{"numRecords":2,"minValues":{"col-1":1},"maxValues":{"col-1":2},"nullCount":{"col-1":0}}`}, one, two))
			r := m.open()
			if got := ct.Columns(r.Fields()); got != `an id BIGINT, who STRUCT("first" BIGINT, "second" VARCHAR), part VARCHAR` && got != `an id BIGINT, who STRUCT(first BIGINT, second VARCHAR), part VARCHAR` {
				t.Fatal(got)
			}
			want(t, m.scan(), `1|{"first":7,"second":"x"}|p`, "2|NULL|p")
			// A writer that does not map columns, against the protocol, would give rows of NULLs.
			m.commit("add", m.file("b.parquet", map[string]any{"partitionValues": map[string]any{"col-3": "q"}}, longs("an id", 1), texts("more", "x")))
			m.fails(nil, "b.parquet", `column "an id" by that name`, "does not map columns")
			m.commit("remove", map[string]any{"path": "b.parquet"})
			// Renamed, and one dropped and made anew: the old values are another column's.
			fields = strings.Join([]string{mapped("key", "long", "col-1", 1), mapped("who", "string", "col-9", 9), mapped("part", "string", "col-3", 3)}, ",")
			m.commit("metaData", table(fields, "configuration", properties, "partitionColumns", []string{"part"}))
			want(t, m.scan(), "1|NULL|p", "2|NULL|p")
		})
	}
}

// A column that was renamed keeps its values, one that was dropped and made anew under the same name begins empty, one that was widened is wide,
// and one that came is NULL, wherever a file has them. A version of the past has the columns of its time.
func TestLifeOfColumns(t *testing.T) {
	m := newMaker(t)
	by := []any{"configuration", map[string]any{"delta.columnMapping.mode": "id"}}
	id := func(t types.Type, values ...types.Value) col { return col{name: "n1", id: 1, t: t, values: values} }
	name := func(values ...string) col { c := texts("n2", values...); c.id = 2; return c }
	value := func(id int, values ...string) col { c := texts("n3", values...); c.id = id; return c } // both columns under one name in the files
	m.commit("protocol", protocol(3, "columnMapping", "typeWidening"), "metaData", table(strings.Join([]string{mapped("id", "integer", "p1", 1), mapped("old", "string", "p2", 2), mapped("value", "string", "p3", 3)}, ","), by...),
		"add", m.file("1", nil, id(types.Int32, int64(1), int64(2)), name("before", "b2"), value(3, "old", "old2")))
	m.commit("metaData", table(strings.Join([]string{mapped("id", "long", "p1", 1), mapped("new", "string", "p2", 2), mapped("value", "string", "p4", 4), mapped("extra", "double", "p5", 5)}, ","), by...),
		"add", m.file("2", nil, id(types.Int64, int64(3)), name("after"), value(4, "fresh")),
		"add", m.file("3", nil, col{name: "n5", id: 5, t: types.Float64, values: []types.Value{1.5}}, value(4, "reordered"), id(types.Int64, int64(4))))
	want(t, m.scan(), "1|before|NULL|NULL", "2|b2|NULL|NULL", "3|after|fresh|NULL", "4|NULL|reordered|1.5")
	want(t, ct.Scan(t, m.open(), flow.ScanRequest{Filters: []flow.Predicate{{Column: 2, Op: flow.CmpEq, Values: []types.Value{"fresh"}}}})[:1], "3|after|fresh|NULL")
	want(t, m.scan("version", "0"), "1|before|old", "2|b2|old2")
	if got := ct.Columns(m.open("version", "0").Fields()); got != "id INTEGER, old VARCHAR, value VARCHAR" {
		t.Error(got)
	}
	got, err := transactions(t, m.bounded(), "c0.0.0", 100)
	if err != nil {
		t.Fatal(err)
	}
	wantTransactions(t, got, "1|before|NULL|NULL|1 2|b2|NULL|NULL|1", "3|after|fresh|NULL|1 4|NULL|reordered|1.5|1")
}

// The property alone maps nothing: some writers set it under a protocol that does not have it.
func TestColumnMappingWithoutItsFeature(t *testing.T) {
	for _, p := range []map[string]any{protocol(1), protocol(3, "timestampNtz")} {
		m := newMaker(t)
		m.commit("protocol", p, "metaData", table(mapped("id", "long", "col-1", 1), "configuration", map[string]any{"delta.columnMapping.mode": "name"}),
			"add", m.file("a.parquet", nil, longs("id", 1)))
		want(t, m.scan(), "1")
		wantTransactions(t, m.follow(), "1|1")
	}
}

func TestSchemaErrors(t *testing.T) {
	for _, c := range []struct {
		fields string
		more   []any
		words  []string
	}{
		{field("a", "variant"), nil, []string{`column "a"`, `"variant"`, "not read"}},
		{field("a", `{"type":"array","elementType":"geometry"}`), nil, []string{`column "a"`, `"geometry"`}},
		{field("a", "decimal(39,0)"), nil, []string{"decimal(39,0)"}},
		{field("a", "long"), []any{"configuration", map[string]any{"delta.columnMapping.mode": "hash"}}, []string{`"hash"`}},
		{field("a", "long"), []any{"configuration", map[string]any{"delta.columnMapping.mode": "name"}}, []string{`column "a" has no physical name`}},
		{field("a", "long"), []any{"partitionColumns", []string{"b"}}, []string{`partitioned by "b"`}},
		{field("a", "long") + ",", nil, []string{"not JSON"}},
	} {
		m := newMaker(t)
		m.commit("protocol", protocol(2), "metaData", table(c.fields, c.more...))
		_, err := ct.TryRelation(source, m.options())
		if err == nil {
			t.Errorf("%s: no error", c.fields)
			continue
		}
		for _, w := range c.words {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("the error lacks %q: %v", w, err)
			}
		}
	}
}
