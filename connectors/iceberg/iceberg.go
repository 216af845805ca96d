// Package iceberg reads Iceberg tables, a snapshot or one commit after another, and writes to them. Data files and files of deleted rows are
// read and written here; what the catalog and the metadata say comes from a library of its own, by the words of connectors/iceberg/meta.
//
// Invariant: a column is found by its field id and by nothing else; a row is in the table or not as the snapshot's metadata says; and a file that
// we wrote is in the table when a commit that holds the epoch's marker says so, once.
package iceberg

import (
	"github.com/riverbed/riverbed/connectors"
)

// connection are the options of sources and sinks by which a table is found.
var connection = connectors.Options{
	{Name: "catalog", Type: connectors.String, Required: true, Secret: true, Doc: "Where tables are looked up: `sqlite:///lake/catalog.db` or `postgresql://…` (SQL), `https://…` (REST), `glue` or `glue:account`, or a folder, here or on S3, that holds the tables themselves (Hadoop).", Example: "sqlite:///lake/catalog.db"},
	{Name: "table", Type: connectors.String, Required: true, Doc: "The table, behind its namespace.", Example: "analytics.trades_1m"},
	{Name: "branch", Type: connectors.String, Default: "main", Doc: "The branch that is read or written. A sink makes one that is missing from the table's main branch.", Example: "audit"},
	{Name: "catalog_type", Type: connectors.Enum, Values: []string{"sql", "rest", "glue", "hadoop"}, Doc: "What kind of catalog it is, where its address does not say."},
	{Name: "catalog_name", Type: connectors.String, Default: "default", Doc: "The name under which a SQL catalog keeps its tables; others that use its database must have the same."},
	{Name: "warehouse", Type: connectors.String, Doc: "Where a catalog puts new tables: a folder, s3://bucket/key, or a REST catalog's name for it. Left out, the folder of a catalog in SQLite.", Example: "s3://lake/warehouse"},
	{Name: "token", Type: connectors.String, Secret: true, Doc: "Token by which a REST catalog knows us; write a reference to an environment variable.", Example: "${LAKE_TOKEN}"},
	{Name: "credential", Type: connectors.String, Secret: true, Doc: "Client id and secret (id:secret) that a REST catalog gives a token for.", Example: "${LAKE_CREDENTIAL}"},
	{Name: "catalog_properties", Type: connectors.List, Secret: true, Doc: "Further properties of the catalog's client, as key=value.", Example: "scope=PRINCIPAL_ROLE:ALL"},
}

// Source declares Iceberg tables.
var Source = connectors.Source{
	Name: "iceberg", Class: "Iceberg", Summary: "Read Iceberg tables: a snapshot, or every change as it is committed.",
	Functions: []string{"iceberg_scan"}, Replayable: true,
	Options: connection.With(
		connectors.Option{Name: "snapshot", Type: connectors.Int, Doc: "Read the snapshot of this id instead of the branch's newest. A stream begins with it.", Example: "5781947118336215154"},
		connectors.Option{Name: "tag", Type: connectors.String, Doc: "Read the snapshot that this tag names. A stream begins with it.", Example: "end-of-2025"},
		connectors.Option{Name: "as_of", Type: connectors.String, Doc: "Read the snapshot that was the branch's newest at this time, which is UTC unless it names an offset.", Example: "2026-11-30 12:00:00"},
		connectors.Option{Name: "start", Type: connectors.Enum, Values: []string{"snapshot", "latest", "earliest"}, Default: "snapshot", Doc: "Where a stream begins: with the rows of the snapshot, with what is committed after it, or with the first snapshot that the branch still has."},
		connectors.Option{Name: "append_only", Type: connectors.Bool, Default: "false", Doc: "Rows of the table are never changed or deleted; then the stream only adds rows, and a commit that takes some away is an error."},
		connectors.Option{Name: "poll_interval", Type: connectors.Duration, Default: "1s", Doc: "How often a stream looks for a new snapshot."},
	),
	Relation: newRelation,
	Stream:   newStream,
}
