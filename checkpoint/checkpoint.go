// Package checkpoint makes what a pipeline remembers durable: data objects of changed rows, one an epoch, and manifests that say
// which objects, positions and staged output belong together.
//
// Invariant: the newest manifest that can be read decides. What it names is whole and stays until a newer one names it no more; what no
// manifest names never was.
package checkpoint

import (
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/state"
)

// Kind says how long a section counts.
type Kind string

const (
	// State is rows of a state table, by key: a newer section's rows replace and delete those of older ones.
	State Kind = "state"
	// Log is rows that are only added: __late and __bad, splits that have ended, changes of tables in memory.
	Log Kind = "log"
	// Once is of its epoch alone: changes not yet shown, rows held for a sink.
	Once Kind = "once"
	// Whole replaces older sections of its owner and table, those of a Log too: changes that were not shown, the rows of a table in memory.
	Whole Kind = "whole"
)

// Section is a part of a data object: rows of one table of one owner.
type Section struct {
	Kind    Kind
	Owner   string // path of the operator, name of the sink, of the relation, of the table
	Table   string // of its owner; may be empty
	Version int    // of the state table's declaration
	Rows    []arrow.RecordBatch
	// Fresh, of state that is read: no row has a key that was visited before, and none is a deletion.
	Fresh bool
	// Ahead, of state that is read, is how many rows the table's largest section has: about as many as there are to come in all.
	Ahead int64
}

// Of is a part of an operator's state as a section.
func Of(path string, p state.Part) Section {
	return Section{Kind: State, Owner: path, Table: p.Table, Version: p.Version, Rows: []arrow.RecordBatch{p.Rows}}
}

// Part is a section of state as its table restores it.
func (s Section) Part(i int) state.Part {
	return state.Part{Table: s.Table, Version: s.Version, Rows: s.Rows[i], Fresh: s.Fresh, Ahead: s.Ahead}
}
