package checkpoint

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/riverbed/riverbed/core/objstore"
)

// valuesOf are two values of each Arrow type that a column of state may have.
var valuesOf = []struct {
	typ  arrow.DataType
	a, b string
}{
	{arrow.FixedWidthTypes.Boolean, "true", "false"},
	{arrow.PrimitiveTypes.Int8, "-8", "7"},
	{arrow.PrimitiveTypes.Int16, "-300", "7"},
	{arrow.PrimitiveTypes.Int32, "-70000", "7"},
	{arrow.PrimitiveTypes.Int64, "-9007199254740993", "7"},
	{arrow.PrimitiveTypes.Uint8, "200", "7"},
	{arrow.PrimitiveTypes.Uint16, "60000", "7"},
	{arrow.PrimitiveTypes.Uint32, "4000000000", "7"},
	{arrow.PrimitiveTypes.Uint64, "18446744073709551615", "7"},
	{arrow.PrimitiveTypes.Float32, "0.1", "-1.5"},
	{arrow.PrimitiveTypes.Float64, "0.1", "-1e300"},
	{arrow.BinaryTypes.String, `"it's"`, `""`},
	{arrow.BinaryTypes.Binary, `"AAEC"`, `""`},
	{arrow.PrimitiveTypes.Date32, `"2024-02-29"`, `"1969-12-31"`},
	{arrow.FixedWidthTypes.Timestamp_us, `"2024-02-29T12:00:00.000001Z"`, `"1969-12-31T23:59:59Z"`},
	{arrow.FixedWidthTypes.Time64us, `"12:00:00.000001"`, `"00:00:00"`},
	{arrow.FixedWidthTypes.MonthDayNanoInterval, `{"months": 1, "days": -2, "nanoseconds": 3}`, `{"months": 0, "days": 0, "nanoseconds": 0}`},
	{&arrow.Decimal128Type{Precision: 38, Scale: 3}, `"12345678901234567890.125"`, `"-0.001"`},
	{&arrow.FixedSizeBinaryType{ByteWidth: 16}, `"AAECAwQFBgcICQoLDA0ODw=="`, `"AAAAAAAAAAAAAAAAAAAAAA=="`},
	{arrow.ListOf(arrow.PrimitiveTypes.Int64), "[1, null, 3]", "[]"},
	{arrow.ListOf(arrow.ListOf(arrow.BinaryTypes.String)), `[["a"], null, []]`, "[]"},
	{arrow.StructOf(arrow.Field{Name: "x", Type: arrow.PrimitiveTypes.Int64, Nullable: true}, arrow.Field{Name: "y", Type: arrow.BinaryTypes.String, Nullable: true}),
		`{"x": 1, "y": null}`, `{"x": null, "y": "b"}`},
	{arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int64), `[{"key": "k", "value": 1}]`, "[]"},
	{arrow.Null, "null", "null"},
}

// TestEveryTypeIsKept writes columns of every type, merges them, and reads them.
func TestEveryTypeIsKept(t *testing.T) {
	fields := append([]arrow.Field{}, rowSchema.Fields()[:4]...)
	for i, v := range valuesOf {
		fields = append(fields, arrow.Field{Name: fmt.Sprintf("c%d", i), Type: v.typ, Nullable: true, Metadata: arrow.NewMetadata([]string{"k"}, []string{fmt.Sprint(i)})})
	}
	schema := arrow.NewSchema(fields, nil)
	// batch has three rows: the values, other ones, and NULLs, shifted.
	batch := func(shift int) arrow.RecordBatch {
		keys := rows(change{fmt.Sprintf("%d-0", shift), 1}, change{fmt.Sprintf("%d-1", shift%3), 1}, change{fmt.Sprintf("%d-2", shift), 1})
		cols := append([]arrow.Array{}, keys.Columns()[:4]...)
		for _, v := range valuesOf {
			values := []string{v.a, v.b, "null"}
			values = append(values[shift%3:], values[:shift%3]...)
			a, _, err := array.FromJSON(memory.DefaultAllocator, v.typ, strings.NewReader("["+strings.Join(values, ",")+"]"))
			if err != nil {
				t.Fatalf("%s: %v", v.typ, err)
			}
			cols = append(cols, a)
		}
		return array.NewRecordBatch(schema, cols, 3)
	}
	textOf := func(b arrow.RecordBatch, i int) string {
		var out []string
		for _, c := range b.Columns()[4:] {
			if c.IsNull(i) {
				out = append(out, "NULL")
			} else {
				out = append(out, c.ValueStr(i))
			}
		}
		return strings.Join(out, " ")
	}

	s := open(t, testOptions(objstore.NewDouble(), newHasty()))
	m := epoch(t, s, nil, nil)
	want := map[string]string{}
	for shift := range 20 {
		b := batch(shift)
		for i := range 3 {
			want[string(b.Column(keyColumn).(*array.Binary).Value(i))] = textOf(b, i)
		}
		m = epoch(t, s, m, nil, Section{Kind: State, Owner: "a", Table: "t", Version: 1, Rows: []arrow.RecordBatch{b}},
			Section{Kind: Log, Owner: "l", Rows: []arrow.RecordBatch{b}})
	}
	if len(m.Objects) > 10 {
		t.Fatalf("%d objects: nothing was merged", len(m.Objects))
	}
	got, logged := map[string]string{}, int64(0)
	err := s.Read(context.Background(), m, func(sec Section) error {
		for _, b := range sec.Rows {
			if !b.Schema().Equal(schema) {
				t.Fatalf("the schema is %v", b.Schema())
			}
			if sec.Kind == Log {
				for i := range int(b.NumRows()) {
					if text := textOf(b, i); text != textOf(batch(int(logged)/3), int(logged)%3) {
						t.Errorf("row %d of the log is %s", logged, text)
					}
					logged++
				}
				continue
			}
			for i := range int(b.NumRows()) {
				got[string(b.Column(keyColumn).(*array.Binary).Value(i))] = textOf(b, i)
			}
		}
		return nil
	})
	if err != nil || len(got) != len(want) || logged != 60 {
		t.Fatalf("%d rows of %d and %d logged: %v", len(got), len(want), logged, err)
	}
	for k, v := range want {
		if got[k] != v {
			t.Errorf("%s:\n got %s\nwant %s", k, got[k], v)
		}
	}
}
