package riverbed

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/types"
)

func TestScansSkipChunksByRange(t *testing.T) {
	const rows = 3*chunkRows + 10
	ids, vals := make([]int64, rows), make([]float64, rows)
	for i := range ids {
		ids[i], vals[i] = int64(i), float64(i)
	}
	vals[chunkRows] = math.NaN()
	schema := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}, {Name: "v", Type: arrow.PrimitiveTypes.Float64}}, nil)
	b := array.NewRecordBatch(schema, []arrow.Array{kernels.NewFixed(arrow.PrimitiveTypes.Int64, ids, nil), kernels.NewFixed(arrow.PrimitiveTypes.Float64, vals, nil)}, rows)
	table, err := NewArrowTable(schema, []arrow.RecordBatch{b})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		filter []flow.Predicate
		want   string // the first number of each chunk and its first row's place
	}{
		{"all", nil, "0@1 65536@65537 131072@131073 196608@196609 "},
		{"a point", []flow.Predicate{{Column: 0, Op: flow.CmpEq, Values: []types.Value{int64(chunkRows)}}}, "65536@65537 "},
		{"a range", []flow.Predicate{{Column: 0, Op: flow.CmpGe, Values: []types.Value{int64(chunkRows - 1)}}, {Column: 0, Op: flow.CmpLt, Values: []types.Value{int64(chunkRows + 1)}}}, "0@1 65536@65537 "},
		{"none", []flow.Predicate{{Column: 0, Op: flow.CmpLt, Values: []types.Value{int64(0)}}}, ""},
		{"no NULLs", []flow.Predicate{{Column: 1, Op: flow.CmpIsNull}}, ""},
		{"NaN is above all", []flow.Predicate{{Column: 1, Op: flow.CmpGt, Values: []types.Value{1e9}}}, "0@1 65536@65537 131072@131073 196608@196609 "},
	} {
		scan, err := table.Scan(context.Background(), flow.ScanRequest{Columns: []int{0}, Filters: c.filter, Workers: 1, Places: true})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for {
			m, err := scan.Next(context.Background(), 0)
			if err != nil {
				t.Fatal(err)
			}
			if m == nil {
				break
			}
			at, _ := m.Places.Of(0)
			got += fmt.Sprintf("%d@%d ", m.Batch.Column(0).(*array.Int64).Value(0), at)
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestRangesOfChunks(t *testing.T) {
	d := openDB(t)
	d.run("CREATE TABLE t (i INTEGER, u UBIGINT, d DECIMAL(9,2), x DOUBLE, s VARCHAR, h UHUGEINT, w HUGEINT)")
	d.run("INSERT INTO t VALUES (5, 18446744073709551615, -1.50, 'nan', 'x', 340282366920938463463374607431768211455, 1), (NULL, NULL, NULL, NULL, NULL, NULL, NULL)")
	d.run("INSERT INTO t SELECT 7 - range % 2, 3, 2.25, -1.5, 'y', 1, 170141183460469231731687303715884105727 FROM range(20000)")
	table := d.cat.Load().get("t").table
	for c, want := range []string{
		"5 5 1; 6 7 0; ", "18446744073709551615 18446744073709551615 1; 3 3 0; ",
		"{18446744073709551466 -1} {18446744073709551466 -1} 1; {225 0} {225 0} 0; ", "<nil> <nil> 1; -1.5 -1.5 0; ",
		"<nil> <nil> 1; <nil> <nil> 0; ", "<nil> <nil> 1; <nil> <nil> 0; ", "{1 0} {1 0} 1; <nil> <nil> 0; ",
	} {
		got := ""
		for _, part := range table.snapshot() {
			s := part.columnStats(c, table.fields[c].Type)
			got += fmt.Sprint(s.Min, " ", s.Max, " ", s.Nulls, "; ")
		}
		if got != want {
			t.Errorf("column %d: %q, want %q", c, got, want)
		}
	}
	d.is("SELECT count(*) FROM t WHERE i = 5", "1")
	d.is("SELECT count(*) FROM t WHERE u > 18446744073709551614", "1")
	d.is("SELECT count(*) FROM t WHERE d < -1.4", "1")
	d.is("SELECT count(*) FROM t WHERE x > 1", "1")
	d.is("SELECT count(*) FROM t WHERE h > 340282366920938463463374607431768211454", "1")
	d.is("SELECT count(*) FROM t WHERE w > 2", "20000")
	d.is("SELECT count(*) FROM t WHERE i IN (4, 8)", "0")
}
