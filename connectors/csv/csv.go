// Package csv reads and writes files of separated values.
//
// Invariant: a record gives one row, or an error that names the file, the line and the column.
package csv

import (
	"context"

	"github.com/riverbed/riverbed/connectors"
	dcsv "github.com/riverbed/riverbed/connectors/decode/csv"
	"github.com/riverbed/riverbed/connectors/files"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
)

// Source declares CSV files as a table or a growing stream.
var Source = connectors.Source{
	Name: "csv", Class: "Csv", Summary: "Read files of separated values; delimiter, header and types are found from a sample.",
	Extensions: []string{".csv", ".tsv"}, Functions: []string{"read_csv", "read_csv_auto"}, Replayable: true,
	Options: files.Options.WithExample("path", "data/*.csv").With(
		connectors.Option{Name: "delim", Type: connectors.String, Doc: "Character between values; found from a sample when absent.", Example: ";"},
		connectors.Option{Name: "sep", Type: connectors.String, Doc: "Another name of delim.", Example: ";"},
		connectors.Option{Name: "quote", Type: connectors.String, Default: `"`, Doc: "Character around values that hold the delimiter or a newline."},
		connectors.Option{Name: "escape", Type: connectors.String, Default: `"`, Doc: "Character before a quote within a quoted value."},
		connectors.Option{Name: "header", Type: connectors.Bool, Doc: "Whether the first record names the columns; found from a sample when absent.", Example: "true"},
		connectors.Option{Name: "skip", Type: connectors.Int, Default: "0", Doc: "Lines to leave out at the beginning of each file."},
		connectors.Option{Name: "nullstr", Type: connectors.String, Doc: "Text that means NULL, besides the empty one.", Example: "NA"},
		connectors.Option{Name: "all_varchar", Type: connectors.Bool, Default: "false", Doc: "Read every column as VARCHAR."},
		connectors.Option{Name: "sample_size", Type: connectors.Int, Default: "20480", Doc: "Records from which delimiter, header and types are found."},
		connectors.Option{Name: "ignore_errors", Type: connectors.Bool, Default: "false", Doc: "Leave records out that do not fit. A stream sends them to __bad whatever this says."},
	),
	Relation: func(ctx context.Context, req connectors.OpenRequest) (flow.Relation, error) {
		f, err := format(req)
		if err != nil {
			return nil, err
		}
		return files.NewRelation(ctx, f, req)
	},
	Stream: func(ctx context.Context, req connectors.OpenRequest) (flow.Stream, error) {
		f, err := format(req)
		if err != nil {
			return nil, err
		}
		return files.NewStream(ctx, f, req)
	},
}

func format(req connectors.OpenRequest) (Format, error) {
	s := req.Settings
	delim := s.String("delim")
	if delim == "" {
		delim = s.String("sep")
	}
	f := Format{sniff: delim == "", skip: int(s.Int("skip")), allText: s.Bool("all_varchar"), nullText: s.String("nullstr"),
		records: int(max(s.Int("sample_size"), 2)), ignore: s.Bool("ignore_errors")}
	if f.sniff {
		delim = ","
	}
	if s.Has("header") {
		h := s.Bool("header")
		f.header = &h
	}
	var err error
	if f.dialect, err = dcsv.ParseDialect(delim, s.String("quote"), s.String("escape")); err != nil {
		return f, errs.New(errs.Usage, "options", "connector 'csv': %w", err)
	}
	return f, nil
}
