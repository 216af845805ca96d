package parquet

import (
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	pq "github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
)

// Codecs are the names of the option compression.
var Codecs = map[string]compress.Compression{"snappy": compress.Codecs.Snappy, "zstd": compress.Codecs.Zstd, "gzip": compress.Codecs.Gzip, "uncompressed": compress.Codecs.Uncompressed}

// TableWriter writes the data files of table formats: in the Arrow form that it is given, whose fields have numbers (FieldIDKey) and say what may
// be NULL, and without a schema of ours in the footer, since the table's metadata hold it.
type TableWriter struct {
	w      *pqarrow.FileWriter
	schema *arrow.Schema
}

// FieldIDKey is the key of a field's number in its Arrow metadata.
const FieldIDKey = "PARQUET:field_id"

// NewTableWriter begins a file; rows of a row group are at most group.
func NewTableWriter(w io.Writer, schema *arrow.Schema, codec string, group int64) (*TableWriter, error) {
	props := pq.NewWriterProperties(pq.WithCompression(Codecs[codec]), pq.WithMaxRowGroupLength(max(group, 1)), pq.WithStats(true), pq.WithCreatedBy("riverbed"), pq.WithStoreDecimalAsInteger(true))
	fw, err := pqarrow.NewFileWriter(schema, w, props, pqarrow.DefaultWriterProps())
	if err != nil {
		return nil, err
	}
	return &TableWriter{fw, schema}, nil
}

// Write adds rows, of the form of the schema.
func (t *TableWriter) Write(cols []arrow.Array, rows int) error {
	return t.w.WriteBuffered(array.NewRecordBatch(t.schema, cols, int64(rows)))
}

// Close ends the file; the underlying writer stays open.
func (t *TableWriter) Close() error { return t.w.Close() }
