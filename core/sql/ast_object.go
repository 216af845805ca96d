package sql

// CreateSchema is CREATE SCHEMA name.
type CreateSchema struct {
	At
	OrReplace   bool
	IfNotExists bool
	Name        Name
}

// CreateSequence is CREATE SEQUENCE; absent numbers are nil.
type CreateSequence struct {
	At
	OrReplace   bool
	Temp        bool
	IfNotExists bool
	Name        Name
	Increment   Expr
	Min         Expr
	Max         Expr
	Start       Expr
	Cycle       bool
}

// CreateIndex is CREATE [UNIQUE] INDEX [name] ON table (keys).
type CreateIndex struct {
	At
	Unique      bool
	IfNotExists bool
	Name        Ident // may be absent
	Table       Name
	Method      Ident // USING art; may be absent
	Keys        []Expr
}

// AlterKind is what ALTER does.
type AlterKind string

// The changes of ALTER.
const (
	AlterRename       AlterKind = "RENAME TO"
	AlterRenameColumn AlterKind = "RENAME COLUMN"
	AlterAddColumn    AlterKind = "ADD COLUMN"
	AlterDropColumn   AlterKind = "DROP COLUMN"
	AlterType         AlterKind = "SET DATA TYPE"
	AlterSetDefault   AlterKind = "SET DEFAULT"
	AlterDropDefault  AlterKind = "DROP DEFAULT"
	AlterSetNotNull   AlterKind = "SET NOT NULL"
	AlterDropNotNull  AlterKind = "DROP NOT NULL"
	AlterAddKey       AlterKind = "ADD"
)

// Alter is ALTER TABLE or VIEW name change.
type Alter struct {
	At
	View       bool
	IfExists   bool
	Name       Name
	Kind       AlterKind
	Column     Ident      // which column
	ColumnIf   bool       // IF EXISTS, IF NOT EXISTS of the column
	To         Ident      // the new name
	Add        *ColumnDef // ADD COLUMN
	Type       *TypeName  // SET DATA TYPE
	Value      Expr       // SET DEFAULT, or USING of SET DATA TYPE
	Constraint *Constraint
}

// Comment is COMMENT ON kind name IS 'text'; Text is nil for NULL.
type Comment struct {
	At
	Kind string // TABLE, COLUMN, VIEW, …
	Name Name
	Text Expr
}

// Pragma is PRAGMA name, PRAGMA name = value, PRAGMA name (values).
type Pragma struct {
	At
	Name  string
	Value Expr  // of name = value
	Args  []Arg // of name (…)
}

// SetVariable is SET VARIABLE name = expr; Value is nil for RESET VARIABLE.
type SetVariable struct {
	At
	Name  Ident
	Value Expr
}

// Use is USE name.
type Use struct {
	At
	Name Name
}

// Maintain is a statement that other engines need and that has no effect here: ANALYZE, CHECKPOINT, VACUUM, LOAD, INSTALL.
type Maintain struct {
	At
	What   string
	Target Name // may be absent
}

// StatementTable is the rows of DESCRIBE, SHOW or SUMMARIZE in FROM: FROM (DESCRIBE t).
type StatementTable struct {
	At
	Statement Statement
	Alias     Alias
}

func (*StatementTable) tableRef() {}

func (*CreateSchema) statement()   {}
func (*CreateSequence) statement() {}
func (*CreateIndex) statement()    {}
func (*Alter) statement()          {}
func (*Comment) statement()        {}
func (*Pragma) statement()         {}
func (*SetVariable) statement()    {}
func (*Use) statement()            {}
func (*Maintain) statement()       {}
