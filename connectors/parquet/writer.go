package parquet

import (
	"context"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	pq "github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"github.com/riverbed/riverbed/connectors"
	"github.com/riverbed/riverbed/connectors/files"
	"github.com/riverbed/riverbed/core/types"
)

// Sink declares Parquet files as a sink.
var Sink = connectors.Sink{
	Name: "parquet", Class: "Parquet", Summary: "Write rows as Parquet files.", ExactlyOnce: true,
	Options: files.SinkOptions.With(
		connectors.Option{Name: "compression", Type: connectors.Enum, Values: []string{"snappy", "zstd", "gzip", "uncompressed"}, Default: "snappy", Doc: "How pages are compressed."},
		connectors.Option{Name: "row_group_size", Type: connectors.Int, Default: "122880", Doc: "Rows of a row group, at most."},
	),
	Extensions: []string{".parquet"},
	Open: func(ctx context.Context, req connectors.SinkRequest) (connectors.Writer, error) {
		codec := Codecs[req.Settings.String("compression")]
		group := max(req.Settings.Int("row_group_size"), 1)
		return files.NewWriter(ctx, req, files.SinkFormat{Name: "the Parquet sink", Extensions: []string{".parquet"},
			New: func(w io.Writer, fields []types.Field) (files.Encoder, error) {
				return newEncoder(w, fields, codec, group)
			}})
	},
}

type encoder struct {
	w      *pqarrow.FileWriter
	fields []types.Field
	schema *arrow.Schema
}

func newEncoder(w io.Writer, fields []types.Field, codec compress.Compression, group int64) (*encoder, error) {
	for _, f := range fields {
		if f.Type.Kind == types.Interval {
			return nil, fmt.Errorf("column %q is INTERVAL, which is not written to Parquet; cast it to VARCHAR or take its parts", f.Name)
		}
	}
	schema := types.ArrowSchema(fields)
	props := pq.NewWriterProperties(pq.WithCompression(codec), pq.WithMaxRowGroupLength(group), pq.WithStats(true), pq.WithCreatedBy("riverbed"))
	fw, err := pqarrow.NewFileWriter(schema, w, props, pqarrow.NewArrowWriterProperties(pqarrow.WithStoreSchema()))
	if err != nil {
		return nil, err
	}
	return &encoder{fw, fields, schema}, nil
}

func (e *encoder) Write(cols []arrow.Array, rows int) error {
	for i, f := range e.fields {
		if d, ok := cols[i].(*array.Decimal128); ok && f.Type.IsInteger() {
			for row := range rows {
				if d.IsValid(row) && !d.Value(row).FitsInPrecision(38) {
					return fmt.Errorf("column %q holds a %s of 39 digits, and Parquet's decimals have 38", f.Name, f.Type)
				}
			}
		}
	}
	return e.w.WriteBuffered(array.NewRecordBatch(e.schema, cols, int64(rows)))
}

func (e *encoder) Close() error { return e.w.Close() }
