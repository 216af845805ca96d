// Package json reads and writes files of JSON objects: one a line, one after another, or in one array.
//
// Invariant: a record gives one row, or an error that names the file and the line.
package json

import (
	"context"

	"github.com/riverbed/riverbed/connectors"
	"github.com/riverbed/riverbed/connectors/files"
	"github.com/riverbed/riverbed/core/flow"
)

// Source declares JSON files as a table or a growing stream.
var Source = connectors.Source{
	Name: "json", Class: "Json", Summary: "Read files of JSON objects: one a line, or an array.",
	Extensions: []string{".json", ".jsonl", ".ndjson"}, Functions: []string{"read_json", "read_json_auto", "read_ndjson", "read_ndjson_auto"}, Replayable: true,
	Options: files.Options.WithExample("path", "data/*.jsonl").With(
		connectors.Option{Name: "format", Type: connectors.Enum, Values: []string{"auto", "newline_delimited", "array", "unstructured"}, Default: "auto", Doc: "How records follow one another."},
		connectors.Option{Name: "sample_size", Type: connectors.Int, Default: "20480", Doc: "Records from which the columns are inferred."},
		connectors.Option{Name: "ignore_errors", Type: connectors.Bool, Default: "false", Doc: "Leave records out that do not decode. A stream sends them to __bad whatever this says."},
	),
	Relation: func(ctx context.Context, req connectors.OpenRequest) (flow.Relation, error) {
		return files.NewRelation(ctx, format(req, false), req)
	},
	Stream: func(ctx context.Context, req connectors.OpenRequest) (flow.Stream, error) {
		return files.NewStream(ctx, format(req, true), req)
	},
}

func format(req connectors.OpenRequest, live bool) Format {
	f := Format{sample: int(max(req.Settings.Int("sample_size"), 1)), live: live, ignore: req.Settings.Bool("ignore_errors")}
	switch req.Settings.String("format") {
	case "newline_delimited":
		f.layout = lines
	case "array":
		f.layout = array
	case "unstructured":
		f.layout = stream
	}
	return f
}
