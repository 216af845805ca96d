// Package all lists the connectors.
//
// Invariant: the lists are the only registration; a name stands in each at most once.
package all

import (
	"github.com/riverbed/riverbed/connectors"
	"github.com/riverbed/riverbed/connectors/arrowipc"
	"github.com/riverbed/riverbed/connectors/console"
	"github.com/riverbed/riverbed/connectors/csv"
	"github.com/riverbed/riverbed/connectors/delta"
	"github.com/riverbed/riverbed/connectors/flight"
	"github.com/riverbed/riverbed/connectors/generator"
	"github.com/riverbed/riverbed/connectors/hybrid"
	"github.com/riverbed/riverbed/connectors/iceberg"
	"github.com/riverbed/riverbed/connectors/json"
	"github.com/riverbed/riverbed/connectors/kafka"
	"github.com/riverbed/riverbed/connectors/lance"
	"github.com/riverbed/riverbed/connectors/memory"
	"github.com/riverbed/riverbed/connectors/parquet"
	"github.com/riverbed/riverbed/connectors/postgres"
)

// Sources are the sources, in the order of the documentation.
var Sources = []connectors.Source{
	parquet.Source,
	csv.Source,
	json.Source,
	arrowipc.Source,
	delta.Source,
	iceberg.Source,
	kafka.Source,
	hybrid.Source,
	postgres.Source,
	flight.Source,
	generator.Source,
	memory.Source,
}

// Sinks are the sinks, in the order of the documentation.
var Sinks = []connectors.Sink{
	parquet.Sink,
	csv.Sink,
	json.Sink,
	kafka.Sink,
	postgres.Sink,
	iceberg.Sink,
	flight.Sink,
	lance.Sink,
	console.Sink,
}

// Source returns the source of that name, or nil.
func Source(name string) *connectors.Source {
	for i := range Sources {
		if Sources[i].Name == name {
			return &Sources[i]
		}
	}
	return nil
}

// Sink returns the sink of that name, or nil.
func Sink(name string) *connectors.Sink {
	for i := range Sinks {
		if Sinks[i].Name == name {
			return &Sinks[i]
		}
	}
	return nil
}
