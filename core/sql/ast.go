package sql

import (
	"strings"

	"github.com/riverbed/riverbed/core/errs"
)

// Node is any part of a statement that Inspect visits.
//
// Height: the parser bounds how deep a tree is, so a recursive walk is safe,
// except along three left spines that a long text makes long: Binary.Left,
// SetOp.Left and Join.Left. `a OR b OR c …` with 10,000 terms is a Binary
// whose Left is a Binary whose Left is …; walk these in a loop.
type Node interface {
	Position() errs.Pos
}

// At is embedded in every node: where it stands in the text. Operators point at
// their operator sign, everything else at its first character.
type At struct{ Pos errs.Pos }

// Position returns where the node stands.
func (a At) Position() errs.Pos { return a.Pos }

// Ident is one name as written, without quotes. The binder compares names
// without case, quoted or not, as DuckDB does.
type Ident struct {
	At
	Name string
}

// IsZero reports whether the name is absent.
func (i Ident) IsZero() bool { return i.Name == "" }

// Name is a possibly qualified name: catalog.schema.table, fewer parts, or table.column.field.
type Name []Ident

// String joins the parts with dots, unquoted, for messages.
func (n Name) String() string {
	parts := make([]string, len(n))
	for i, p := range n {
		parts[i] = p.Name
	}
	return strings.Join(parts, ".")
}

// Position is where the first part stands.
func (n Name) Position() errs.Pos {
	if len(n) == 0 {
		return errs.Pos{}
	}
	return n[0].Pos
}

// Last returns the last part: the name itself without its qualifier.
func (n Name) Last() Ident { return n[len(n)-1] }

// Expr is a scalar expression.
type Expr interface {
	Node
	expr()
}

// TableRef is an item of FROM.
type TableRef interface {
	Node
	tableRef()
}

// Body is what a Query orders and limits: Select, SetOp, Values, or a
// parenthesised Query that has its own WITH, ORDER BY, LIMIT or EMIT.
type Body interface {
	Node
	body()
}

// Statement is one SQL statement; a *Query is one too.
type Statement interface {
	Node
	statement()
}

// TypeName is a type as written; core/bind resolves it.
//
// Name is in capitals, and spellings of several words are folded:
// TIMESTAMP WITH TIME ZONE is TIMESTAMPTZ, DOUBLE PRECISION is DOUBLE,
// CHARACTER VARYING is VARCHAR, ROW is STRUCT.
type TypeName struct {
	At
	Name   string
	Mods   []int       // DECIMAL(18, 3), VARCHAR(10)
	Params []*TypeName // MAP(VARCHAR, INTEGER)
	Fields []TypeField // STRUCT(a INTEGER, b VARCHAR), UNION(…)
	Dims   []int       // suffixes from inside out: ListDim for [], n for [n]
}

// ListDim is the dimension of a list of any length.
const ListDim = -1

// TypeField is a field of STRUCT or UNION.
type TypeField struct {
	Name Ident
	Type *TypeName
}
