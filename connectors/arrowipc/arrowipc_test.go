package arrowipc

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	ct "github.com/riverbed/riverbed/connectors/connectortest"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
)

// batch has layouts that are not the engine's: dictionaries, large strings, another unit, a sliced list.
func batch(t testing.TB) arrow.RecordBatch {
	t.Helper()
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "v", Type: arrow.PrimitiveTypes.Int64},
		{Name: "k", Type: &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}, Nullable: true},
		{Name: "s", Type: arrow.BinaryTypes.LargeString, Nullable: true},
		{Name: "t", Type: &arrow.TimestampType{Unit: arrow.Millisecond, TimeZone: "Asia/Tokyo"}},
		{Name: "l", Type: arrow.ListOf(arrow.BinaryTypes.LargeString), Nullable: true},
	}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	for i := range 12 {
		b.Field(0).(*array.Int64Builder).Append(int64(i))
		l := b.Field(4).(*array.ListBuilder)
		if i%3 == 2 {
			b.Field(1).AppendNull()
			b.Field(2).AppendNull()
			l.AppendNull()
		} else {
			b.Field(1).(*array.BinaryDictionaryBuilder).AppendString(string(rune('a' + i%2)))
			b.Field(2).(*array.LargeStringBuilder).Append(strings.Repeat("x", i%4))
			l.Append(true)
			for j := range i % 3 {
				l.ValueBuilder().(*array.LargeStringBuilder).Append(string(rune('p' + j)))
			}
		}
		b.Field(3).(*array.TimestampBuilder).Append(arrow.Timestamp(i))
	}
	return b.NewRecordBatch().NewSlice(1, 11)
}

type recordWriter interface {
	Write(arrow.RecordBatch) error
	Close() error
}

func write(t testing.TB, name string, stream bool, n int) string {
	t.Helper()
	b := batch(t)
	path := filepath.Join(t.TempDir(), name)
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var w recordWriter
	if stream {
		w = ipc.NewWriter(f, ipc.WithSchema(b.Schema()))
	} else if w, err = ipc.NewFileWriter(f, ipc.WithSchema(b.Schema())); err != nil {
		t.Fatal(err)
	}
	for range n {
		if err := w.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestRead(t *testing.T) {
	for name, stream := range map[string]bool{"f.arrow": false, "s.arrows": true} {
		path := write(t, name, stream, 20)
		rel := ct.OpenRelation(t, Source, map[string]string{"path": path})
		if got := ct.Columns(rel.Fields()); got != "v BIGINT, k VARCHAR, s VARCHAR, t TIMESTAMP WITH TIME ZONE, l VARCHAR[]" {
			t.Errorf("%s: columns %s", name, got)
		}
		for _, size := range []int{0, 3} {
			rows := ct.Scan(t, rel, flow.ScanRequest{BatchRows: size})
			if len(rows) != 200 || rows[0] != `1|b|x|1970-01-01T00:00:00.001Z|["p"]` || rows[1] != "2|NULL|NULL|1970-01-01T00:00:00.002Z|NULL" || rows[199] != `10|a|xx|1970-01-01T00:00:00.01Z|["p"]` {
				t.Errorf("%s: %d rows: %q %q %q", name, len(rows), rows[0], rows[1], rows[len(rows)-1])
			}
		}
		ct.Stream(t, ct.StreamConfig{Limit: 7, Open: func(t testing.TB) flow.Stream { return ct.OpenStream(t, Source, map[string]string{"path": path}) }})
	}
}

func TestBadFiles(t *testing.T) {
	path := write(t, "x.arrow", false, 3)
	whole, _ := os.ReadFile(path)
	for name, b := range map[string][]byte{"empty": nil, "half": whole[:len(whole)/2], "other": []byte("a,b\n1,2\n"), "cut": whole[:len(whole)-3]} {
		if err := os.WriteFile(path, b, 0o666); err != nil {
			t.Fatal(err)
		}
		rel, err := ct.TryRelation(Source, map[string]string{"path": path})
		if err == nil {
			_, err = ct.TryScan(rel, flow.ScanRequest{})
		}
		if !errs.Is(err, errs.Source) || !strings.Contains(err.Error(), "x.arrow") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
