package sql

// Query is a Body with what surrounds it. `TABLE t` and `FROM t` are SELECT * FROM t.
type Query struct {
	At
	With         *With // nil when absent
	Body         Body
	OrderBy      []OrderItem
	Limit        Expr // nil when absent
	LimitPercent bool // LIMIT 10%
	Offset       Expr // nil when absent
	Emit         *Emit
}

// With holds the common table expressions.
type With struct {
	At
	Recursive bool
	CTEs      []CTE
}

// CTE is one common table expression.
type CTE struct {
	Name         Ident
	Columns      []Ident
	Materialized Materialized
	Query        *Query
}

// Materialized is the hint of a CTE.
type Materialized uint8

// The hints.
const (
	MaterializedUnstated Materialized = iota
	MaterializedYes
	MaterializedNo
)

// EmitKind says when a continuous query shows its results.
type EmitKind uint8

// The emit policies.
const (
	EmitOnWatermark EmitKind = iota
	EmitImmediate
	EmitEvery
)

// Emit is EMIT ON WATERMARK | IMMEDIATE | EVERY interval.
type Emit struct {
	At
	Kind  EmitKind
	Every *Interval // for EmitEvery; EVERY '5 seconds' is an Interval too
}

// Select is SELECT … FROM … WHERE … .
type Select struct {
	At
	Distinct   bool
	DistinctOn []Expr
	Items      []SelectItem
	From       []TableRef // separated by commas; empty when there is no FROM
	Where      Expr
	GroupBy    *GroupBy
	Having     Expr
	Windows    []NamedWindow
	Qualify    Expr
}

// SelectItem is an item of a select list; Alias may be absent.
type SelectItem struct {
	Expr  Expr
	Alias Ident
}

// GroupBy is the GROUP BY clause.
type GroupBy struct {
	At
	All   bool // GROUP BY ALL; Items is empty
	Items []GroupItem
}

// GroupKind tells the kinds of GroupItem apart.
type GroupKind uint8

// The kinds of grouping.
const (
	GroupSet     GroupKind = iota // Exprs, together: a, (a, b), or ()
	Rollup                        // Sets, each a GroupSet
	Cube                          // Sets, each a GroupSet
	GroupingSets                  // Sets, of any kind
)

// GroupItem is one item of GROUP BY; the items multiply.
type GroupItem struct {
	At
	Kind  GroupKind
	Exprs []Expr
	Sets  []GroupItem
}

// NamedWindow is an item of WINDOW.
type NamedWindow struct {
	Name   Ident
	Window *Window
}

// SetKind is the kind of a set operation.
type SetKind string

// The set operations.
const (
	Union     SetKind = "UNION"
	Intersect SetKind = "INTERSECT"
	Except    SetKind = "EXCEPT"
)

// SetOp combines two bodies. Its left spine may be long: see Node.
type SetOp struct {
	At
	Kind        SetKind
	All         bool
	ByName      bool
	Left, Right Body
}

// Values is VALUES (…), (…).
type Values struct {
	At
	Rows [][]Expr
}

func (*Select) body() {}
func (*SetOp) body()  {}
func (*Values) body() {}
func (*Query) body()  {}

func (*Query) statement() {}

// Alias is AS name (columns); Name is absent when there is none.
type Alias struct {
	Name    Ident
	Columns []Ident
}

// Table is a relation by name: table, stream, view, CTE, or a variable of the host language.
type Table struct {
	At
	Name  Name
	AsOf  *AsOf // nil when absent
	Alias Alias
}

// AsOf asks for an earlier state of a table. In a join the expression may use
// the other side's columns.
type AsOf struct {
	At
	Version bool // FOR VERSION AS OF, AT (VERSION => …); else a time
	Value   Expr
}

// FileTable is a path or glob as a table: FROM 'trades/*.parquet'.
type FileTable struct {
	At
	Path  string
	Alias Alias
}

// TableFunction is a function in FROM: read_parquet(…), range(5), unnest(…).
type TableFunction struct {
	At
	Call       *Function
	Lateral    bool
	Ordinality bool
	Alias      Alias
}

// WindowTable is TUMBLE, HOP, SESSION or CUMULATE over a table, as written by
// TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), size)) or TUMBLE(t, ts, size).
type WindowTable struct {
	At
	Kind        string // "tumble", "hop", "session", "cumulate"
	Input       TableRef
	PartitionBy []Expr
	Time        Expr  // the event time column
	Args        []Arg // the sizes that follow
	Alias       Alias
}

// SubqueryTable is a query in FROM.
type SubqueryTable struct {
	At
	Query   *Query
	Lateral bool
	Alias   Alias
}

// JoinKind is the kind of a join.
type JoinKind string

// The joins.
const (
	InnerJoin JoinKind = "INNER"
	LeftJoin  JoinKind = "LEFT"
	RightJoin JoinKind = "RIGHT"
	FullJoin  JoinKind = "FULL"
	CrossJoin JoinKind = "CROSS"
	SemiJoin  JoinKind = "SEMI"
	AntiJoin  JoinKind = "ANTI"
)

// Join joins two tables. Its left spine may be long: see Node.
type Join struct {
	At
	Kind        JoinKind
	AsOf        bool // ASOF JOIN, of any kind but CROSS
	Natural     bool
	Left, Right TableRef
	On          Expr    // or
	Using       []Ident // or neither: CROSS and NATURAL
}

// MatchRecognize finds row patterns in a table.
type MatchRecognize struct {
	At
	Input       TableRef
	PartitionBy []Expr
	OrderBy     []OrderItem
	Measures    []SelectItem
	AllRows     bool      // ALL ROWS PER MATCH; else one
	Skip        SkipKind  // AFTER MATCH SKIP …
	SkipTo      Ident     // for SkipToFirst, SkipToLast
	Pattern     *Pattern  //
	Within      *Interval // nil when absent
	Define      []Definition
	Alias       Alias
}

// SkipKind is where matching goes on after a match.
type SkipKind string

// Where matching goes on.
const (
	SkipPastLastRow SkipKind = "PAST LAST ROW"
	SkipToNextRow   SkipKind = "TO NEXT ROW"
	SkipToFirst     SkipKind = "TO FIRST"
	SkipToLast      SkipKind = "TO LAST"
)

// Definition is one item of DEFINE.
type Definition struct {
	Name Ident
	Cond Expr
}

// PatternKind tells the kinds of Pattern apart.
type PatternKind uint8

// The kinds of patterns.
const (
	PatternVar    PatternKind = iota // Var
	PatternSeq                       // Items one after another
	PatternAlt                       // any of Items
	PatternRepeat                    // Items[0], Min to Max times
)

// Pattern is a regular expression over row variables.
type Pattern struct {
	At
	Kind      PatternKind
	Var       Ident
	Items     []*Pattern
	Min, Max  int // Max is Unlimited for * and +
	Reluctant bool
}

// Unlimited is the Max of a repetition without an upper bound.
const Unlimited = -1

func (*Table) tableRef()          {}
func (*FileTable) tableRef()      {}
func (*TableFunction) tableRef()  {}
func (*WindowTable) tableRef()    {}
func (*SubqueryTable) tableRef()  {}
func (*Join) tableRef()           {}
func (*MatchRecognize) tableRef() {}
