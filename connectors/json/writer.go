package json

import (
	"bytes"
	"context"
	"io"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/connectors"
	djson "github.com/riverbed/riverbed/connectors/decode/json"
	"github.com/riverbed/riverbed/connectors/files"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/types"
)

// Sink declares files of JSON lines as a sink.
var Sink = connectors.Sink{
	Name: "json", Class: "Json", Summary: "Write rows as JSON objects, one a line.", ExactlyOnce: true,
	Options: files.SinkOptions.WithExample("path", "out/result.jsonl").With(
		connectors.Option{Name: "format", Type: connectors.Enum, Values: []string{"object", "raw"}, Default: "object", Doc: "What a line is. object: the row; raw: the one column, VARCHAR or BLOB, as it is, so that a row of __bad is what it was."},
		connectors.Option{Name: "extension", Type: connectors.Enum, Values: []string{".jsonl", ".json", ".ndjson"}, Default: ".jsonl", Doc: "The ending of files in a directory."},
	), Extensions: []string{".json", ".jsonl", ".ndjson"},
	Open: func(ctx context.Context, req connectors.SinkRequest) (connectors.Writer, error) {
		f := files.SinkFormat{Name: "the JSON sink", Extensions: []string{req.Settings.String("extension"), ".jsonl", ".json", ".ndjson"},
			New: func(w io.Writer, fields []types.Field) (files.Encoder, error) {
				return &encoder{w: w, fields: fields}, nil
			}}
		if req.Settings.String("format") == "raw" {
			f.New = newLines
		}
		return files.NewWriter(ctx, req, f)
	},
}

// lineWriter writes the one column as it is, one row a line.
type lineWriter struct{ w io.Writer }

func newLines(w io.Writer, fields []types.Field) (files.Encoder, error) {
	if len(fields) != 1 || fields[0].Type.Kind != types.Varchar && fields[0].Type.Kind != types.Blob {
		return nil, errs.New(errs.Schema, "open sink", "with format = 'raw' the JSON sink writes one column, VARCHAR or BLOB, and the query has %d", len(fields))
	}
	return lineWriter{w}, nil
}

func (l lineWriter) Write(cols []arrow.Array, rows int) error {
	var buf []byte
	for row := range rows {
		if cols[0].IsNull(row) {
			return errs.New(errs.Data, "write", "a row for the JSON sink has no bytes: its column is NULL")
		}
		var line []byte
		switch c := cols[0].(type) {
		case interface{ Value(i int) []byte }:
			line = c.Value(row)
		case interface{ Value(i int) string }:
			line = []byte(c.Value(row))
		}
		if bytes.ContainsRune(line, '\n') {
			// A record over several lines is one in JSON: only a line break within a text is not allowed, and that does not decode anyway.
			line = bytes.ReplaceAll(bytes.ReplaceAll(line, []byte("\r\n"), []byte(" ")), []byte("\n"), []byte(" "))
		}
		buf = append(append(buf, line...), '\n')
	}
	_, err := l.w.Write(buf)
	return err
}

func (l lineWriter) Close() error { return nil }

type encoder struct {
	w      io.Writer
	fields []types.Field
	buf    []byte
}

func (e *encoder) Write(cols []arrow.Array, rows int) error {
	enc, err := djson.Form{BareSpecials: true}.NewEncoder(e.fields, cols)
	if err != nil {
		return err
	}
	e.buf = e.buf[:0]
	for row := range rows {
		e.buf = append(enc.Append(e.buf, row), '\n')
	}
	_, err = e.w.Write(e.buf)
	return err
}

func (e *encoder) Close() error { return nil }
