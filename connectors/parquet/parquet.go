// Package parquet reads and writes Parquet files. Flat columns in PLAIN and dictionary encoding, which is what
// writers produce by default, are decoded here, straight into Arrow buffers; everything else goes through arrow-go.
//
// Invariant: a decoded column has the engine's Arrow form of its SQL type, whatever the file's physical type.
package parquet

import (
	"context"

	"github.com/riverbed/riverbed/connectors"
	"github.com/riverbed/riverbed/connectors/files"
	"github.com/riverbed/riverbed/core/flow"
)

// Source declares Parquet files as a table or a growing stream.
var Source = connectors.Source{
	Name: "parquet", Class: "Parquet", Summary: "Read Parquet files: a path, a glob, Hive partitions.",
	Extensions: []string{".parquet", ".pq"}, Functions: []string{"read_parquet", "parquet_scan"}, Replayable: true,
	Options: files.Options,
	Relation: func(ctx context.Context, req connectors.OpenRequest) (flow.Relation, error) {
		return files.NewRelation(ctx, Format{}, req)
	},
	Stream: func(ctx context.Context, req connectors.OpenRequest) (flow.Stream, error) {
		return files.NewStream(ctx, Format{}, req)
	},
}
