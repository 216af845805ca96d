package parquet

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
	pq "github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	ct "github.com/riverbed/riverbed/connectors/connectortest"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/types"
)

// write writes a batch with arrow-go, as other writers would.
func write(t testing.TB, path string, b arrow.RecordBatch, opts ...pq.WriterProperty) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w, err := pqarrow.NewFileWriter(b.Schema(), f, pq.NewWriterProperties(opts...), pqarrow.DefaultWriterProps())
	if err != nil {
		t.Fatal(err)
	}
	if err := w.WriteBuffered(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// allTypes are the types whose columns are written and read back. Each has a source of random values.
var allTypes = []struct {
	name string
	typ  arrow.DataType
	add  func(b array.Builder, r *rand.Rand, distinct int)
	want string // SQL type
}{
	{"b", arrow.FixedWidthTypes.Boolean, func(b array.Builder, r *rand.Rand, d int) { b.(*array.BooleanBuilder).Append(r.IntN(2) == 0) }, "BOOLEAN"},
	{"i8", arrow.PrimitiveTypes.Int8, func(b array.Builder, r *rand.Rand, d int) {
		b.(*array.Int8Builder).Append(int8(r.IntN(min(d, 256)) - 128))
	}, "TINYINT"},
	{"i16", arrow.PrimitiveTypes.Int16, func(b array.Builder, r *rand.Rand, d int) {
		b.(*array.Int16Builder).Append(int16(r.IntN(min(d, 65536)) - 32768))
	}, "SMALLINT"},
	{"i32", arrow.PrimitiveTypes.Int32, func(b array.Builder, r *rand.Rand, d int) { b.(*array.Int32Builder).Append(int32(r.IntN(d)) - 5) }, "INTEGER"},
	{"i64", arrow.PrimitiveTypes.Int64, func(b array.Builder, r *rand.Rand, d int) {
		b.(*array.Int64Builder).Append(int64(r.IntN(d))*0x1234567 - 9)
	}, "BIGINT"},
	{"u8", arrow.PrimitiveTypes.Uint8, func(b array.Builder, r *rand.Rand, d int) {
		b.(*array.Uint8Builder).Append(uint8(r.IntN(min(d, 256))))
	}, "UTINYINT"},
	{"u32", arrow.PrimitiveTypes.Uint32, func(b array.Builder, r *rand.Rand, d int) {
		b.(*array.Uint32Builder).Append(uint32(r.IntN(d)) + math.MaxInt32)
	}, "UINTEGER"},
	{"u64", arrow.PrimitiveTypes.Uint64, func(b array.Builder, r *rand.Rand, d int) {
		b.(*array.Uint64Builder).Append(uint64(r.IntN(d)) + math.MaxInt64)
	}, "UBIGINT"},
	{"f32", arrow.PrimitiveTypes.Float32, func(b array.Builder, r *rand.Rand, d int) {
		b.(*array.Float32Builder).Append(float32(r.IntN(d)) / 7)
	}, "FLOAT"},
	{"f64", arrow.PrimitiveTypes.Float64, func(b array.Builder, r *rand.Rand, d int) {
		b.(*array.Float64Builder).Append(float64(r.IntN(d)) / 7)
	}, "DOUBLE"},
	{"dec9", &arrow.Decimal128Type{Precision: 9, Scale: 2}, decimals, "DECIMAL(9,2)"},
	{"dec15", &arrow.Decimal128Type{Precision: 15, Scale: 2}, decimals, "DECIMAL(15,2)"},
	{"dec38", &arrow.Decimal128Type{Precision: 38, Scale: 5}, decimals, "DECIMAL(38,5)"},
	{"s", arrow.BinaryTypes.String, func(b array.Builder, r *rand.Rand, d int) { b.(*array.StringBuilder).Append(text(r, d)) }, "VARCHAR"},
	{"ls", arrow.BinaryTypes.LargeString, func(b array.Builder, r *rand.Rand, d int) { b.(*array.LargeStringBuilder).Append(text(r, d)) }, "VARCHAR"},
	{"blob", arrow.BinaryTypes.Binary, func(b array.Builder, r *rand.Rand, d int) {
		b.(*array.BinaryBuilder).Append([]byte(text(r, d) + "\xff"))
	}, "BLOB"},
	{"fsb", &arrow.FixedSizeBinaryType{ByteWidth: 3}, func(b array.Builder, r *rand.Rand, d int) {
		b.(*array.FixedSizeBinaryBuilder).Append([]byte(fmt.Sprintf("%03d", r.IntN(min(d, 999)))))
	}, "BLOB"},
	{"d", arrow.FixedWidthTypes.Date32, func(b array.Builder, r *rand.Rand, d int) {
		b.(*array.Date32Builder).Append(arrow.Date32(r.IntN(d) - 100))
	}, "DATE"},
	{"t32", arrow.FixedWidthTypes.Time32ms, func(b array.Builder, r *rand.Rand, d int) {
		b.(*array.Time32Builder).Append(arrow.Time32(r.IntN(d)))
	}, "TIME"},
	{"t64", arrow.FixedWidthTypes.Time64ns, func(b array.Builder, r *rand.Rand, d int) {
		b.(*array.Time64Builder).Append(arrow.Time64(r.IntN(d)) * 1000)
	}, "TIME"},
	{"ms", &arrow.TimestampType{Unit: arrow.Millisecond}, stamps, "TIMESTAMP"},
	{"us", &arrow.TimestampType{Unit: arrow.Microsecond}, stamps, "TIMESTAMP"},
	{"ns", &arrow.TimestampType{Unit: arrow.Nanosecond}, stamps, "TIMESTAMP_NS"},
	{"tz", &arrow.TimestampType{Unit: arrow.Millisecond, TimeZone: "Europe/Berlin"}, stamps, "TIMESTAMP WITH TIME ZONE"},
	{"dict", &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.BinaryTypes.String}, func(b array.Builder, r *rand.Rand, d int) {
		b.(*array.BinaryDictionaryBuilder).AppendString(text(r, d))
	}, "VARCHAR"},
	{"list", arrow.ListOf(arrow.PrimitiveTypes.Int32), func(b array.Builder, r *rand.Rand, d int) {
		lb := b.(*array.ListBuilder)
		lb.Append(true)
		for range r.IntN(3) {
			lb.ValueBuilder().(*array.Int32Builder).Append(int32(r.IntN(d)))
		}
	}, "INTEGER[]"},
	{"st", arrow.StructOf(arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int64, Nullable: true}), func(b array.Builder, r *rand.Rand, d int) {
		sb := b.(*array.StructBuilder)
		sb.Append(true)
		sb.FieldBuilder(0).(*array.Int64Builder).Append(int64(r.IntN(d)))
	}, "STRUCT(a BIGINT)"},
}

func decimals(b array.Builder, r *rand.Rand, d int) {
	b.(*array.Decimal128Builder).Append(decimal128.FromI64(int64(r.IntN(d)) - int64(d)/2))
}

func stamps(b array.Builder, r *rand.Rand, d int) {
	b.(*array.TimestampBuilder).Append(arrow.Timestamp(r.IntN(d)-d/2) * 1000)
}

func text(r *rand.Rand, d int) string {
	n := r.IntN(d)
	return strings.Repeat("é-", n%20) + fmt.Sprint(n)
}

func randomBatch(rows, distinct, nullEvery int, required bool) arrow.RecordBatch {
	r := rand.New(rand.NewPCG(1, uint64(rows*distinct)))
	fields := make([]arrow.Field, len(allTypes))
	cols := make([]arrow.Array, len(allTypes))
	for i, at := range allTypes {
		fields[i] = arrow.Field{Name: at.name, Type: at.typ, Nullable: !required}
		b := array.NewBuilder(memory.DefaultAllocator, at.typ)
		for range rows {
			if !required && nullEvery > 0 && r.IntN(nullEvery) == 0 {
				b.AppendNull()
			} else {
				at.add(b, r, distinct)
			}
		}
		cols[i] = b.NewArray()
	}
	return array.NewRecordBatch(arrow.NewSchema(fields, nil), cols, int64(rows))
}

// printed prints the values of a column as the engine's form prints them.
func printed(a arrow.Array, want string, row int) string {
	if a.IsNull(row) {
		return "NULL"
	}
	switch x := a.(type) {
	case *array.Timestamp:
		unit := x.DataType().(*arrow.TimestampType).Unit
		out := &arrow.TimestampType{Unit: arrow.Microsecond}
		if want == "TIMESTAMP_NS" {
			out.Unit = arrow.Nanosecond
		}
		if strings.HasSuffix(want, "ZONE") {
			out.TimeZone = "UTC"
		}
		b := array.NewTimestampBuilder(memory.DefaultAllocator, out)
		b.AppendTime(x.Value(row).ToTime(unit))
		return b.NewArray().ValueStr(0)
	case *array.Time32:
		b := array.NewTime64Builder(memory.DefaultAllocator, arrow.FixedWidthTypes.Time64us.(*arrow.Time64Type))
		b.Append(arrow.Time64(x.Value(row)) * 1000)
		return b.NewArray().ValueStr(0)
	case *array.Time64:
		b := array.NewTime64Builder(memory.DefaultAllocator, arrow.FixedWidthTypes.Time64us.(*arrow.Time64Type))
		b.Append(x.Value(row) / 1000)
		return b.NewArray().ValueStr(0)
	case *array.Dictionary:
		return x.Dictionary().ValueStr(x.GetValueIndex(row))
	}
	return a.ValueStr(row)
}

func TestRoundTrip(t *testing.T) {
	for _, c := range []struct {
		name      string
		rows      int
		distinct  int
		nullEvery int
		required  bool
		opts      []pq.WriterProperty
	}{
		{"dictionary", 5000, 300, 5, false, nil},
		{"plain", 3000, 1 << 20, 4, false, []pq.WriterProperty{pq.WithDictionaryDefault(false)}},
		{"dictionary falls back to plain", 20000, 1 << 20, 10, false, []pq.WriterProperty{pq.WithDictionaryPageSizeLimit(4096), pq.WithDataPageSize(2048)}},
		{"required", 4000, 50, 0, true, []pq.WriterProperty{pq.WithDataPageSize(1024)}},
		{"no nulls", 4000, 3, 0, false, []pq.WriterProperty{pq.WithDataPageSize(1024)}},
		{"mostly null", 4000, 30, 1, false, nil},
		{"one value", 4000, 1, 9, false, nil},
		{"pages of version 2", 5000, 300, 5, false, []pq.WriterProperty{pq.WithDataPageVersion(pq.DataPageV2), pq.WithCompression(compress.Codecs.Zstd)}},
		{"small row groups", 5000, 300, 5, false, []pq.WriterProperty{pq.WithMaxRowGroupLength(700), pq.WithCompression(compress.Codecs.Snappy)}},
		{"delta encodings", 2000, 300, 5, false, []pq.WriterProperty{pq.WithDictionaryDefault(false), pq.WithEncodingFor("i64", pq.Encodings.DeltaBinaryPacked), pq.WithEncodingFor("s", pq.Encodings.DeltaByteArray), pq.WithEncodingFor("us", pq.Encodings.DeltaBinaryPacked), pq.WithEncodingFor("f64", pq.Encodings.ByteStreamSplit)}},
		{"no rows", 0, 3, 0, false, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := randomBatch(c.rows, c.distinct, c.nullEvery, c.required)
			path := filepath.Join(t.TempDir(), "x.parquet")
			write(t, path, b, c.opts...)
			rel := ct.OpenRelation(t, Source, map[string]string{"path": path})
			for i, f := range rel.Fields() {
				if f.Name != allTypes[i].name || f.Type.String() != allTypes[i].want {
					t.Errorf("column %d is %s %s, want %s %s", i, f.Name, f.Type, allTypes[i].name, allTypes[i].want)
				}
			}
			for _, batch := range []int{0, 333} {
				for i := range allTypes {
					got := ct.Scan(t, rel, flow.ScanRequest{Columns: []int{i}, BatchRows: batch})
					if len(got) != c.rows {
						t.Fatalf("column %s: %d rows, want %d", allTypes[i].name, len(got), c.rows)
					}
					for row := range c.rows {
						if want := printed(b.Column(i), allTypes[i].want, row); got[row] != want {
							t.Fatalf("column %s, row %d, batches of %d: got %q, want %q", allTypes[i].name, row, batch, got[row], want)
						}
					}
				}
			}
			if s := rel.Stats(); s.Rows != int64(c.rows) || !s.Exact {
				t.Errorf("stats say %d rows, exact %v", s.Rows, s.Exact)
			}
			if got := ct.Scan(t, rel, flow.ScanRequest{Columns: []int{}}); len(got) != c.rows {
				t.Errorf("no columns: %d rows", len(got))
			}
		})
	}
}

// ints writes files of a BIGINT column v with the given values.
func ints(t testing.TB, path string, name string, typ arrow.DataType, values ...int64) {
	b := array.NewBuilder(memory.DefaultAllocator, typ)
	for _, v := range values {
		switch b := b.(type) {
		case *array.Int64Builder:
			b.Append(v)
		case *array.Int32Builder:
			b.Append(int32(v))
		case *array.StringBuilder:
			b.Append(fmt.Sprint(v))
		case *array.Float64Builder:
			if v == -999 {
				b.Append(math.NaN())
			} else {
				b.Append(float64(v))
			}
		}
	}
	a := b.NewArray()
	write(t, path, array.NewRecordBatch(arrow.NewSchema([]arrow.Field{{Name: name, Type: typ, Nullable: true}}, nil), []arrow.Array{a}, int64(a.Len())), pq.WithMaxRowGroupLength(2))
}

var int64Type, int32Type, doubleType = arrow.PrimitiveTypes.Int64, arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Float64

func TestHivePartitions(t *testing.T) {
	dir := t.TempDir()
	for _, y := range []string{"2020", "2021"} {
		for _, d := range []string{"2020-01-01", hiveDefault} {
			ints(t, filepath.Join(dir, "y="+y, "d="+d, "c=a%20b", "f.parquet"), "v", int64Type, 1)
		}
	}
	rel := ct.OpenRelation(t, Source, map[string]string{"path": dir})
	if got := ct.Columns(rel.Fields()); got != "v BIGINT, c VARCHAR, d DATE, y BIGINT" { // in the order of their names
		t.Fatalf("columns %s", got)
	}
	got := ct.Scan(t, rel, flow.ScanRequest{})
	want := "1|a b|2020-01-01|2020\n1|a b|NULL|2020\n1|a b|2020-01-01|2021\n1|a b|NULL|2021"
	if strings.Join(got, "\n") != want {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
	got = ct.Scan(t, rel, flow.ScanRequest{Columns: []int{2}, Filters: []flow.Predicate{{Column: 3, Op: flow.CmpGt, Values: []types.Value{int64(2020)}}, {Column: 2, Op: flow.CmpIsNotNull}}})
	if len(got) != 1 || got[0] != "2020-01-01" {
		t.Errorf("pruned: %v", got)
	}
	rel = ct.OpenRelation(t, Source, map[string]string{"path": dir, "hive_partitioning": "false"})
	if got := ct.Columns(rel.Fields()); got != "v BIGINT" {
		t.Errorf("without partitions: %s", got)
	}
}

const hiveDefault = "__HIVE_DEFAULT_PARTITION__"

func TestRowGroupPruning(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.parquet")
	ints(t, path, "v", int64Type, 1, 2, 3, 4, 5, 6) // three row groups of two
	rel := ct.OpenRelation(t, Source, map[string]string{"path": path})
	if s := rel.Stats().Columns[0]; s.Min != int64(1) || s.Max != int64(6) || s.Nulls != 0 {
		t.Errorf("stats %+v", s)
	}
	for _, c := range []struct {
		op   flow.CompareOp
		v    []types.Value
		want string
	}{
		{flow.CmpEq, []types.Value{int64(3)}, "3 4"}, {flow.CmpLt, []types.Value{int64(3)}, "1 2"}, {flow.CmpLe, []types.Value{int64(3)}, "1 2 3 4"},
		{flow.CmpGt, []types.Value{int64(4)}, "5 6"}, {flow.CmpGe, []types.Value{int64(4)}, "3 4 5 6"}, {flow.CmpIn, []types.Value{int64(1), int64(6), nil}, "1 2 5 6"},
		{flow.CmpEq, []types.Value{int64(9)}, ""}, {flow.CmpIsNull, nil, ""}, {flow.CmpIsNotNull, nil, "1 2 3 4 5 6"}, {flow.CmpNe, []types.Value{int64(3)}, "1 2 3 4 5 6"},
		{flow.CmpEq, []types.Value{nil}, "1 2 3 4 5 6"}, {flow.CmpEq, []types.Value{"text"}, "1 2 3 4 5 6"},
	} {
		got := ct.Scan(t, rel, flow.ScanRequest{Filters: []flow.Predicate{{Column: 0, Op: c.op, Values: c.v}}})
		if strings.Join(got, " ") != c.want {
			t.Errorf("op %d %v: read %v, want %s", c.op, c.v, got, c.want)
		}
	}
	if got := ct.Scan(t, rel, flow.ScanRequest{Limit: 3}); strings.Join(got, " ") != "1 2 3 4" {
		t.Errorf("limit: read %v", got)
	}
}

// NaN sorts above all numbers and is in no statistics: a row group of 1 and NaN holds a row > 5.
func TestPruningKeepsNaN(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.parquet")
	ints(t, path, "v", doubleType, 1, -999)
	rel := ct.OpenRelation(t, Source, map[string]string{"path": path})
	if got := ct.Scan(t, rel, flow.ScanRequest{Filters: []flow.Predicate{{Column: 0, Op: flow.CmpGt, Values: []types.Value{5.0}}}}); len(got) != 2 {
		t.Errorf("read %v", got)
	}
	if got := ct.Scan(t, rel, flow.ScanRequest{Filters: []flow.Predicate{{Column: 0, Op: flow.CmpLt, Values: []types.Value{0.0}}}}); len(got) != 0 {
		t.Errorf("read %v", got)
	}
}

func TestFilesOfDifferentSchemas(t *testing.T) {
	dir := t.TempDir()
	ints(t, filepath.Join(dir, "a.parquet"), "v", int64Type, 1)
	ints(t, filepath.Join(dir, "b.parquet"), "v", int32Type, 2)
	glob := map[string]string{"path": filepath.Join(dir, "*.parquet")}
	if got := ct.Scan(t, ct.OpenRelation(t, Source, glob), flow.ScanRequest{}); strings.Join(got, " ") != "1 2" {
		t.Errorf("a narrower type in a later file: %v", got)
	}
	ints(t, filepath.Join(dir, "c.parquet"), "w", int64Type, 3)
	wantError(t, glob, errs.Source, `c.parquet" has no column "v"`, "union_by_name")
	union := map[string]string{"path": glob["path"], "union_by_name": "true"}
	rel := ct.OpenRelation(t, Source, union)
	if got := ct.Columns(rel.Fields()) + ": " + strings.Join(ct.Scan(t, rel, flow.ScanRequest{}), " "); got != "v BIGINT, w BIGINT: 1|NULL 2|NULL NULL|3" {
		t.Errorf("union: %s", got)
	}
	ints(t, filepath.Join(dir, "d.parquet"), "v", arrow.BinaryTypes.String, 3)
	wantError(t, union, errs.Source, `column "v" is BIGINT in`, "")
	ints(t, filepath.Join(dir, "c.parquet"), "v", int64Type, 3)
	wantError(t, glob, errs.Source, `column "v" is VARCHAR in the file`, "cast")
}

func wantError(t *testing.T, options map[string]string, kind errs.Kind, parts ...string) {
	t.Helper()
	rel, err := ct.TryRelation(Source, options)
	if err == nil {
		_, err = ct.TryScan(rel, flow.ScanRequest{})
	}
	if !errs.Is(err, kind) {
		t.Fatalf("got %v, want an error of kind %s", err, kind)
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("the error lacks %q: %v", p, err)
		}
	}
}

func TestBadFiles(t *testing.T) {
	dir := t.TempDir()
	good := filepath.Join(dir, "good.parquet")
	write(t, good, randomBatch(300, 100, 5, false))
	whole, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	bad := filepath.Join(dir, "bad.parquet")
	put := func(b []byte) map[string]string {
		if err := os.WriteFile(bad, b, 0o666); err != nil {
			t.Fatal(err)
		}
		return map[string]string{"path": bad}
	}
	wantError(t, map[string]string{"path": filepath.Join(dir, "goud.parquet")}, errs.Source, "no files match", "good.parquet")
	wantError(t, map[string]string{"path": filepath.Join(dir, "*.pq")}, errs.Source, "no files match")
	wantError(t, map[string]string{"path": "gs://bucket/x.parquet"}, errs.Unsupported, "gs://")
	wantError(t, put(nil), errs.Source, "bad.parquet", "is empty")
	wantError(t, put([]byte("a,b\n1,2\n")), errs.Source, "bad.parquet", "not a Parquet file")
	wantError(t, put(whole[:len(whole)/2]), errs.Source, "bad.parquet", "truncated")
	wantError(t, put(whole[:len(whole)-1]), errs.Source, "bad.parquet")
	// Every single flipped byte gives rows or an error that names the file, never a crash.
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		b := bytes.Clone(whole)
		at := r.IntN(len(b))
		b[at] ^= byte(1 + r.IntN(255))
		rel, err := ct.TryRelation(Source, put(b))
		if err == nil {
			_, err = ct.TryScan(rel, flow.ScanRequest{})
		}
		if err != nil && (!errs.Is(err, errs.Source) && !errs.Is(err, errs.Schema)) {
			t.Errorf("byte %d: %v", at, err)
		}
	}
}

func TestStream(t *testing.T) {
	dir := t.TempDir()
	ints(t, filepath.Join(dir, "a.parquet"), "v", int64Type, 1, 2, 3, 4, 5)
	ints(t, filepath.Join(dir, "b.parquet"), "v", int64Type, 6, 7)
	open := func(t testing.TB) flow.Stream { return ct.OpenStream(t, Source, map[string]string{"path": dir}) }
	ct.Stream(t, ct.StreamConfig{Open: open, Limit: 2})
	s := open(t)
	before, _ := s.Splits(t.Context())
	ints(t, filepath.Join(dir, "c.parquet"), "v", int64Type, 8)
	after, _ := s.Splits(t.Context())
	if len(before) != 2 || len(after) != 3 || filepath.Base(after[2].ID) != "c.parquet" {
		t.Errorf("splits %v, then %v", before, after)
	}
}

func TestOptions(t *testing.T) {
	if _, err := ct.TryRelation(Source, map[string]string{"path": "x", "unoin_by_name": "true"}); !errs.Is(err, errs.Usage) || !strings.Contains(err.Error(), `did you mean "union_by_name"?`) {
		t.Errorf("got %v", err)
	}
	if _, err := ct.TryRelation(Source, nil); err == nil || !strings.Contains(err.Error(), `needs the option "path"`) {
		t.Errorf("got %v", err)
	}
}
