package bind

import (
	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/sql"
	"github.com/riverbed/riverbed/core/types"
)

// Catalog is what the binder asks for names. A session implements it. Names come as written; the catalog
// compares them without case.
type Catalog interface {
	// Resolve finds a table, stream or view by its possibly qualified name; nil when there is none.
	Resolve(name []string) (*Relation, error)
	// Names lists what Resolve finds, for suggestions.
	Names() []string
	// ResolveFile opens a path or glob as FROM 'path' does.
	ResolveFile(path string) (*plan.Source, error)
	// TableFunction calls read_parquet, range and the like; nil when there is no such function.
	TableFunction(name string, args []types.Value, argTypes []types.Type, named map[string]types.Value) (*plan.Source, error)
	// TableFunctions lists the names that TableFunction knows.
	TableFunctions() []string
	// Function finds a scalar function that the session registered; nil when there is none.
	Function(name string) *fn.Scalar
	// Functions lists the names that Function knows.
	Functions() []string
}

// Relation is a name's meaning: exactly one of Source and View is set.
type Relation struct {
	Source *plan.Source
	View   *View
}

// View is a query by name; it is bound anew wherever it is used.
type View struct {
	Name    string
	Columns []string // names given in CREATE VIEW v (…); may be empty
	Query   *sql.Query
	SQL     string // the text that positions in Query refer to
	Params  Params // the values that its parameters had when it was made
	// Macros are those that it was made with, by name in lower case; the others are the session's.
	Macros map[string]*Macro
}

// RowIDColumn is the last field of an in-memory table. It is hidden: * leaves it out, its name finds it.
const RowIDColumn = "rowid"
