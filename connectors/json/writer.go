package json

import (
	"context"
	"io"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/connectors"
	djson "github.com/riverbed/riverbed/connectors/decode/json"
	"github.com/riverbed/riverbed/connectors/files"
	"github.com/riverbed/riverbed/core/types"
)

// Sink declares files of JSON lines as a sink.
var Sink = connectors.Sink{
	Name: "json", Class: "Json", Summary: "Write rows as JSON objects, one a line.", ExactlyOnce: true,
	Options: files.SinkOptions, Extensions: []string{".json", ".jsonl", ".ndjson"},
	Open: func(ctx context.Context, req connectors.SinkRequest) (connectors.Writer, error) {
		return files.NewWriter(ctx, req, files.SinkFormat{Name: "the JSON sink", Extensions: []string{".jsonl", ".json", ".ndjson"},
			New: func(w io.Writer, fields []types.Field) (files.Encoder, error) {
				return &encoder{w: w, fields: fields}, nil
			}})
	},
}

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
