package csv

import (
	"context"
	"io"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/connectors"
	dcsv "github.com/riverbed/riverbed/connectors/decode/csv"
	"github.com/riverbed/riverbed/connectors/files"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/types"
)

// Sink declares CSV files as a sink.
var Sink = connectors.Sink{
	Name: "csv", Class: "Csv", Summary: "Write rows as separated values.", ExactlyOnce: true,
	Options: files.SinkOptions.WithExample("path", "out/result.csv").With(
		connectors.Option{Name: "header", Type: connectors.Bool, Default: "true", Doc: "Begin each file with the names of the columns."},
		connectors.Option{Name: "delim", Type: connectors.String, Default: ",", Doc: "Character between values."},
		connectors.Option{Name: "quote", Type: connectors.String, Default: `"`, Doc: "Character around values that hold the delimiter, a quote or a newline."},
		connectors.Option{Name: "escape", Type: connectors.String, Default: `"`, Doc: "Character before a quote within a quoted value."},
	),
	Extensions: []string{".csv"},
	Open: func(ctx context.Context, req connectors.SinkRequest) (connectors.Writer, error) {
		s := req.Settings
		d, err := dcsv.ParseDialect(s.String("delim"), s.String("quote"), s.String("escape"))
		if err != nil {
			return nil, errs.New(errs.Usage, "options", "sink 'csv': %w", err)
		}
		return files.NewWriter(ctx, req, files.SinkFormat{Name: "the CSV sink", Extensions: []string{".csv", ".tsv"},
			New: func(w io.Writer, fields []types.Field) (files.Encoder, error) {
				e := &encoder{w: w, d: d, fields: fields}
				if s.Bool("header") {
					if _, err := w.Write(d.Header(fields)); err != nil {
						return nil, err
					}
				}
				return e, nil
			}})
	},
}

type encoder struct {
	w      io.Writer
	d      dcsv.Dialect
	fields []types.Field
	buf    []byte
}

func (e *encoder) Write(cols []arrow.Array, rows int) error {
	enc, err := dcsv.NewEncoder(e.d, e.fields, cols)
	if err != nil {
		return err
	}
	e.buf = e.buf[:0]
	for row := range rows {
		e.buf = enc.Append(e.buf, row)
	}
	_, err = e.w.Write(e.buf)
	return err
}

func (e *encoder) Close() error { return nil }
