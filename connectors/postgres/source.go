package postgres

import (
	"github.com/riverbed/riverbed/connectors"
)

// Source declares tables as tables, and their changes as streams.
var Source = connectors.Source{
	Name: "postgres", Class: "Postgres", Summary: "Read a table of PostgreSQL as it stands, or follow its changes by logical replication.",
	Functions: []string{"read_postgres"}, Replayable: true,
	Options: connection.With(
		connectors.Option{Name: "table", Type: connectors.String, Required: true, Doc: tableOption, Example: "public.orders"},
		connectors.Option{Name: "slot", Type: connectors.String, Doc: "Stream: the replication slot by which the server keeps what we have not confirmed. It belongs to one pipeline, and is created, beside one named <slot>_new while the first checkpoint is to come. Left out, a temporary slot is used, which ends with the connection: then positions cannot be read again.", Example: "riverbed_orders"},
		connectors.Option{Name: "publication", Type: connectors.String, Default: "riverbed", Doc: "Stream: the publication that the table is in."},
		connectors.Option{Name: "create_publication", Type: connectors.Bool, Default: "false", Doc: "Stream: create the publication for this table, or add the table to it."},
		connectors.Option{Name: "drop_slot", Type: connectors.Bool, Default: "false", Doc: "Stream: when it begins at its beginning and the slot is there, drop the slot. A pipeline with checkpoints that had it cannot go on then."},
	),
	Relation: openRelation,
	Stream:   openStream,
}
