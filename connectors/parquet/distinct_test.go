package parquet

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	pq "github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"

	ct "github.com/riverbed/riverbed/connectors/connectortest"
)

// A small dictionary says about how many texts there are; without one, and where almost every text is another, nobody knows.
func TestDistinctTexts(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		name    string
		texts   int
		opts    []pq.WriterProperty
		low, hi int64
	}{
		{"three", 3, nil, 3, 3},
		{"compressed", 25, []pq.WriterProperty{pq.WithCompression(compress.Codecs.Snappy)}, 10, 40},
		{"plain", 3, []pq.WriterProperty{pq.WithDictionaryDefault(false)}, 0, 0},
		{"groups", 5, []pq.WriterProperty{pq.WithMaxRowGroupLength(500)}, 5, 5},
		{"unique", 2000, nil, 0, 0},
	} {
		b := array.NewStringBuilder(memory.DefaultAllocator)
		for i := range 2000 {
			b.Append(fmt.Sprintf("Text#%d", 1000+i%c.texts))
		}
		a := b.NewArray()
		path := filepath.Join(dir, c.name+".parquet")
		write(t, path, array.NewRecordBatch(arrow.NewSchema([]arrow.Field{{Name: "s", Type: arrow.BinaryTypes.String}}, nil), []arrow.Array{a}, int64(a.Len())), c.opts...)
		got := ct.OpenRelation(t, Source, map[string]string{"path": path}).Stats().Columns[0].Distinct
		if got < c.low || got > c.hi {
			t.Errorf("%s: about %d texts, want %d to %d", c.name, got, c.low, c.hi)
		}
	}
}
