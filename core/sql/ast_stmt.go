package sql

// Relation is what CREATE TABLE, STREAM and SINK have in common.
type Relation struct {
	OrReplace   bool
	Temp        bool
	IfNotExists bool
	Name        Name
	Columns     []ColumnDef
	Constraints []Constraint
	Watermark   *Watermark // WATERMARK FOR column AS expr; nil when absent
	With        []Option
}

// ColumnDef defines a column.
type ColumnDef struct {
	At
	Name       Ident
	Type       *TypeName // nil when only the generated expression says it
	NotNull    bool
	PrimaryKey bool
	Unique     bool
	Default    Expr
	Checks     []Expr
	Generated  Expr // GENERATED ALWAYS AS (expr)
}

// ConstraintKind is the kind of a table constraint.
type ConstraintKind string

// The table constraints.
const (
	PrimaryKey ConstraintKind = "PRIMARY KEY"
	Unique     ConstraintKind = "UNIQUE"
	Check      ConstraintKind = "CHECK"
)

// Constraint is a constraint over several columns.
type Constraint struct {
	At
	Name    Ident // CONSTRAINT name; may be absent
	Kind    ConstraintKind
	Columns []Ident // keys
	Check   Expr
}

// Watermark is WATERMARK FOR column AS expr.
type Watermark struct {
	At
	Column Ident
	Expr   Expr
}

// Option is key = value in WITH (…), or KEY value in COPY. A bare word is a
// string, a list in parentheses a *List, an absent value the literal true.
type Option struct {
	At
	Key   string // as written
	Value Expr
}

// CreateTable is CREATE TABLE; Query is given for CREATE TABLE … AS.
type CreateTable struct {
	At
	Relation
	Query *Query
}

// CreateStream is CREATE STREAM; without columns the schema comes from the connector.
type CreateStream struct {
	At
	Relation
}

// CreateSink is CREATE SINK.
type CreateSink struct {
	At
	Relation
}

// CreateView is CREATE [MATERIALIZED] VIEW.
type CreateView struct {
	At
	OrReplace    bool
	Temp         bool
	Materialized bool
	IfNotExists  bool
	Name         Name
	Columns      []Ident
	Query        *Query
}

// DropKind is what DROP drops.
type DropKind string

// What DROP can drop.
const (
	DropTable            DropKind = "TABLE"
	DropView             DropKind = "VIEW"
	DropMaterializedView DropKind = "MATERIALIZED VIEW"
	DropStream           DropKind = "STREAM"
	DropSink             DropKind = "SINK"
	DropSchema           DropKind = "SCHEMA"
	DropSequence         DropKind = "SEQUENCE"
	DropIndex            DropKind = "INDEX"
	DropMacro            DropKind = "MACRO"
	DropMacroTable       DropKind = "MACRO TABLE"
)

// Drop is DROP kind [IF EXISTS] name.
type Drop struct {
	At
	Kind     DropKind
	IfExists bool
	Name     Name
	Cascade  bool
}

// Insert is INSERT INTO; Query is nil for DEFAULT VALUES. EMIT belongs to the Query.
type Insert struct {
	At
	With      *With
	Or        string // "", "REPLACE", "IGNORE"
	Table     Name
	Alias     Ident
	Columns   []Ident
	ByName    bool
	Query     *Query
	Conflict  *Conflict // nil when absent
	Returning []SelectItem
}

// Conflict is ON CONFLICT [(columns)] DO UPDATE SET … [WHERE …]; without Set it is DO NOTHING.
type Conflict struct {
	At
	Columns []Ident
	Set     []Assignment
	Where   Expr
}

// Update is UPDATE.
type Update struct {
	At
	With      *With
	Table     *Table
	Set       []Assignment
	From      []TableRef
	Where     Expr
	Returning []SelectItem
}

// Assignment is column = value.
type Assignment struct {
	Column Ident
	Value  Expr
}

// Delete is DELETE FROM.
type Delete struct {
	At
	With      *With
	Table     *Table
	Using     []TableRef
	Where     Expr
	Returning []SelectItem
}

// Truncate is TRUNCATE [TABLE] name.
type Truncate struct {
	At
	Table Name
}

// Merge is MERGE INTO.
type Merge struct {
	At
	With   *With
	Target *Table
	Source TableRef
	On     Expr    // or
	Using  []Ident //
	Whens  []MergeWhen

	Returning []SelectItem
}

// MergeMatch is the condition of a MergeWhen.
type MergeMatch string

// The conditions.
const (
	Matched            MergeMatch = "MATCHED"
	NotMatched         MergeMatch = "NOT MATCHED"
	NotMatchedBySource MergeMatch = "NOT MATCHED BY SOURCE"
)

// MergeAction is what a MergeWhen does.
type MergeAction string

// The actions.
const (
	MergeUpdate  MergeAction = "UPDATE"
	MergeInsert  MergeAction = "INSERT"
	MergeDelete  MergeAction = "DELETE"
	MergeNothing MergeAction = "DO NOTHING"
	MergeError   MergeAction = "ERROR"
)

// MergeWhen is WHEN [NOT] MATCHED [AND cond] THEN action.
type MergeWhen struct {
	At
	Match   MergeMatch
	Cond    Expr // nil when absent
	Action  MergeAction
	Set     []Assignment // UPDATE SET …; empty: all columns by name
	Columns []Ident      // INSERT (…)
	Values  []Expr       // VALUES (…); empty: all columns
	ByName  bool         // the columns of the source go to those of their names
	Message Expr         // of ERROR; may be absent
}

// Copy is COPY (query) TO 'path', COPY table TO 'path', COPY table FROM 'path'.
// COPY table TO is a Query over the table.
type Copy struct {
	At
	Query   *Query // what is written; nil for FROM
	Table   Name   // what is read into; nil for TO
	Columns []Ident
	Path    string
	Options []Option
}

// Explain is EXPLAIN [ANALYZE] [(options)] statement.
type Explain struct {
	At
	Analyze   bool
	Options   []Option
	Statement Statement
}

// Set is SET [SESSION | GLOBAL | LOCAL] name = value.
type Set struct {
	At
	Scope string // "", "SESSION", "GLOBAL", "LOCAL"
	Name  string // as written, parts joined by dots
	Value Expr   // a bare word is a string, several values a *List
}

// Reset is RESET [scope] name, and SET name = DEFAULT.
type Reset struct {
	At
	Scope string
	Name  string
}

// Describe is DESCRIBE, or SUMMARIZE, of a query or table; Query is nil for a bare DESCRIBE.
type Describe struct {
	At
	Query     *Query
	Table     bool // Query is all of the table that stands alone
	Summarize bool
}

// Show is SHOW TABLES, STREAMS, VIEWS, MATERIALIZED VIEWS, SINKS, FUNCTIONS, ALL,
// ALL TABLES in lower case, or a setting as written.
type Show struct {
	At
	What string
	In   Name // SHOW TABLES FROM schema; may be absent
}

// TransactionKind is a transaction command.
type TransactionKind string

// The transaction commands.
const (
	Begin    TransactionKind = "BEGIN"
	Commit   TransactionKind = "COMMIT"
	Rollback TransactionKind = "ROLLBACK"
)

// Transaction is BEGIN, COMMIT or ROLLBACK.
type Transaction struct {
	At
	Kind TransactionKind
}

func (*CreateTable) statement()  {}
func (*CreateStream) statement() {}
func (*CreateSink) statement()   {}
func (*CreateView) statement()   {}
func (*Drop) statement()         {}
func (*Insert) statement()       {}
func (*Update) statement()       {}
func (*Delete) statement()       {}
func (*Truncate) statement()     {}
func (*Merge) statement()        {}
func (*Copy) statement()         {}
func (*Explain) statement()      {}
func (*Set) statement()          {}
func (*Reset) statement()        {}
func (*Describe) statement()     {}
func (*Show) statement()         {}
func (*Transaction) statement()  {}
