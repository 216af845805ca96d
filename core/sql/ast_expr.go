package sql

// Forms that are only another spelling are folded while parsing, so that the
// binder sees one form (the printer writes the right-hand side):
//
//	x::T                          CAST(x AS T)
//	a == b, a != b, a ** b        a = b, a <> b, a ^ b
//	a ~~ b, ~~*, ~~~, !~~, !~~*   LIKE, ILIKE, GLOB, NOT LIKE, NOT ILIKE (but they bind as || does)
//	x ISNULL, x NOTNULL           IS NULL, IS NOT NULL
//	EXTRACT(f FROM x)             date_part('f', x)
//	x AT TIME ZONE z              timezone(z, x)
//	POSITION(a IN b)              position(b, a)        text first, as strpos
//	SUBSTRING(x FROM a FOR b)     substring(x, a, b)
//	TRIM(LEADING y FROM x)        ltrim(x, y); BOTH trim, TRAILING rtrim
//	OVERLAY(x PLACING y FROM a)   overlay(x, y, a)
//	[e FOR x IN l IF c]           list_transform(list_filter(l, lambda x: c), lambda x: e)
//	x.f(y) on a value             f(x, y)
//	current_date                  current_date()        and its siblings
//	ARRAY[a, b], (a, b), ?        [a, b], ROW(a, b), $n

// LitKind tells the kinds of literals apart.
type LitKind uint8

// The kinds of literals.
const (
	LitNull    LitKind = iota
	LitBool            // Text is "true" or "false"
	LitInt             // digits: 1_000 and 0x10 are written out
	LitDecimal         // digits with a point, no exponent: 1.50 keeps its scale
	LitDouble          // has an exponent
	LitString          // Text is the value, escapes resolved
	LitBlob            // Text holds the bytes
)

// Literal is a constant. Numbers are never negative: a sign is a Unary, so the
// smallest BIGINT is Unary("-", 9223372036854775808).
type Literal struct {
	At
	Kind LitKind
	Text string
}

// TypedLiteral is DATE '2024-01-01', UUID '…', and any other type before a string.
type TypedLiteral struct {
	At
	Type *TypeName
	Text string
}

// Interval is INTERVAL '5 seconds', INTERVAL '1' DAY, INTERVAL (n) DAY.
type Interval struct {
	At
	Value Expr
	Unit  string // YEAR … MICROSECOND, singular; empty when the string names its units
}

// ColumnRef is a name used as a value: column, table.column, column.field, …;
// which of these it is, the binder decides.
type ColumnRef struct {
	At
	Parts Name
}

// Star is *, t.*, with its modifiers.
type Star struct {
	At
	Qualifier Name
	Exclude   []Name
	Replace   []StarReplace
	Rename    []StarRename
}

// StarReplace is one item of * REPLACE (expr AS name).
type StarReplace struct {
	Expr Expr
	Name Ident
}

// StarRename is one item of * RENAME (from AS to).
type StarRename struct {
	From Name
	To   Ident
}

// Columns is COLUMNS('regex'), COLUMNS(*), COLUMNS([names]), COLUMNS(lambda).
type Columns struct {
	At
	Arg Expr
}

// Unary is a prefix operator: "-", "+", "~" (bits) or "@" (absolute value).
type Unary struct {
	At
	Op string
	X  Expr
}

// Op is a binary operator, spelled canonically.
type Op string

// The binary operators.
const (
	OpAnd         Op = "AND"
	OpOr          Op = "OR"
	OpEq          Op = "="
	OpNe          Op = "<>"
	OpLt          Op = "<"
	OpLe          Op = "<="
	OpGt          Op = ">"
	OpGe          Op = ">="
	OpDistinct    Op = "IS DISTINCT FROM"
	OpNotDistinct Op = "IS NOT DISTINCT FROM"
	OpAdd         Op = "+"
	OpSub         Op = "-"
	OpMul         Op = "*"
	OpDiv         Op = "/"  // floating point
	OpIntDiv      Op = "//" // whole numbers
	OpMod         Op = "%"
	OpPow         Op = "^"
	OpConcat      Op = "||"
	OpBitAnd      Op = "&"
	OpBitOr       Op = "|"
	OpShiftLeft   Op = "<<"
	OpShiftRight  Op = ">>"
	OpMatch       Op = "~"  // regular expression, whole string
	OpNotMatch    Op = "!~" //
	OpIMatch      Op = "~*" // the same without case
	OpNotIMatch   Op = "!~*"
	OpArrow       Op = "->" // JSON value
	OpArrowText   Op = "->>"
	OpContains    Op = "@>"
	OpContained   Op = "<@"
	OpOverlaps    Op = "&&"
	OpDistance    Op = "<->"
	OpCosine      Op = "<=>"
	OpStartsWith  Op = "^@"
)

// Binary is a binary operator. Its left spine may be long: see Node.
type Binary struct {
	At
	Op          Op
	Left, Right Expr
}

// Not is NOT x.
type Not struct {
	At
	X Expr
}

// IsWhat is what IS asks for.
type IsWhat string

// The questions of IS.
const (
	IsNull    IsWhat = "NULL"
	IsTrue    IsWhat = "TRUE"
	IsFalse   IsWhat = "FALSE"
	IsUnknown IsWhat = "UNKNOWN"
)

// Is is x IS [NOT] NULL | TRUE | FALSE | UNKNOWN.
type Is struct {
	At
	X    Expr
	Not  bool
	What IsWhat
}

// LikeKind is the pattern language.
type LikeKind string

// The pattern languages.
const (
	Like    LikeKind = "LIKE"
	ILike   LikeKind = "ILIKE"
	Similar LikeKind = "SIMILAR TO"
	Glob    LikeKind = "GLOB"
)

// Match is x [NOT] LIKE pattern [ESCAPE c] and its relatives.
type Match struct {
	At
	Kind    LikeKind
	Not     bool
	X       Expr
	Pattern Expr
	Escape  Expr // nil when absent
}

// Between is x [NOT] BETWEEN [SYMMETRIC] lo AND hi.
type Between struct {
	At
	X, Lo, Hi      Expr
	Not, Symmetric bool
}

// In is x [NOT] IN (list), (query), or a list value; exactly one of List, Query and Set is given.
type In struct {
	At
	X     Expr
	Not   bool
	List  []Expr
	Query *Query
	Set   Expr
}

// Exists is EXISTS (query).
type Exists struct {
	At
	Query *Query
}

// Subquery is a scalar subquery, or ARRAY(query).
type Subquery struct {
	At
	Query *Query
	Array bool
}

// Quantified is x op ANY (…) or x op ALL (…) over a query or a list value; op compares or matches.
type Quantified struct {
	At
	X     Expr
	Op    Op
	All   bool
	Query *Query // or
	Set   Expr
}

// Case is CASE [operand] WHEN … THEN … [ELSE …] END.
type Case struct {
	At
	Operand Expr // nil for a searched CASE
	Whens   []When
	Else    Expr // nil when absent
}

// When is one branch of Case.
type When struct{ Cond, Then Expr }

// Cast is CAST(x AS type) or TRY_CAST.
type Cast struct {
	At
	X    Expr
	Type *TypeName
	Try  bool
}

// Collate is x COLLATE name.
type Collate struct {
	At
	X    Expr
	Name Name
}

// Function is a call: scalar, aggregate or window. count(*) has one argument, a *Star.
type Function struct {
	At
	Name        Name
	Distinct    bool
	Args        []Arg
	OrderBy     []OrderItem // inside the parentheses
	WithinGroup []OrderItem
	Filter      Expr // nil when absent
	Nulls       NullTreatment
	Over        *Window // nil when not a window call
}

// Arg is an argument, named when Name is given (a := 1, a => 1; in FROM also a = 1).
type Arg struct {
	Name  Ident
	Value Expr
}

// NullTreatment is IGNORE NULLS or RESPECT NULLS.
type NullTreatment uint8

// The null treatments.
const (
	NullsUnstated NullTreatment = iota
	IgnoreNulls
	RespectNulls
)

// Window is what follows OVER, or a definition in WINDOW. `OVER w` and `OVER (w)` are both Base = w.
type Window struct {
	At
	Base        Ident // a named window that this one starts from
	PartitionBy []Expr
	OrderBy     []OrderItem
	Frame       *Frame // nil when absent
}

// FrameMode is ROWS, RANGE or GROUPS.
type FrameMode string

// The frame modes.
const (
	Rows   FrameMode = "ROWS"
	Range  FrameMode = "RANGE"
	Groups FrameMode = "GROUPS"
)

// Frame is the frame clause; an absent end is CURRENT ROW, written out.
type Frame struct {
	At
	Mode       FrameMode
	Start, End Bound
	Exclude    string // "", "CURRENT ROW", "GROUP", "TIES"
}

// BoundKind is one end of a frame.
type BoundKind string

// The ends of a frame.
const (
	UnboundedPreceding BoundKind = "UNBOUNDED PRECEDING"
	Preceding          BoundKind = "PRECEDING"
	CurrentRow         BoundKind = "CURRENT ROW"
	Following          BoundKind = "FOLLOWING"
	UnboundedFollowing BoundKind = "UNBOUNDED FOLLOWING"
)

// Bound is one end of a frame; Offset is given for Preceding and Following.
type Bound struct {
	Kind   BoundKind
	Offset Expr
}

// OrderItem is one item of ORDER BY; All stands for ORDER BY ALL and has no Expr.
type OrderItem struct {
	At
	All   bool
	Expr  Expr
	Asc   bool // written out
	Desc  bool
	Nulls NullOrder
}

// NullOrder is NULLS FIRST or NULLS LAST.
type NullOrder uint8

// The orders of nulls; unstated is LAST in DuckDB.
const (
	NullsDefault NullOrder = iota
	NullsFirst
	NullsLast
)

// List is [a, b].
type List struct {
	At
	Items []Expr
}

// Struct is {'a': 1, 'b': 2}.
type Struct struct {
	At
	Fields []StructField
}

// StructField is one field of Struct.
type StructField struct {
	Name  Ident
	Value Expr
}

// Map is MAP {k: v}.
type Map struct {
	At
	Entries []MapEntry
}

// MapEntry is one entry of Map.
type MapEntry struct{ Key, Value Expr }

// Row is (a, b) or ROW(a): a value of several columns.
type Row struct {
	At
	Items []Expr
}

// Subscript is x[i].
type Subscript struct {
	At
	X, Index Expr
}

// Slice is x[lo:hi:step]; absent parts are nil.
type Slice struct {
	At
	X, Lo, Hi, Step Expr
}

// Field is (x).name.
type Field struct {
	At
	X    Expr
	Name Ident
}

// Lambda is x -> body, (x, y) -> body, or lambda x, y: body, as a function's argument.
//
// An argument `j -> 'a'` looks the same as a lambda. The binder knows which
// functions take one; for the others JSONArrow gives the other reading.
type Lambda struct {
	At
	Params []Ident
	Body   Expr
	Arrow  bool // written with ->, so it may be JSONArrow
}

// JSONArrow reads `j -> body` as the JSON operator; nil when it cannot be one.
func (l *Lambda) JSONArrow() Expr {
	if !l.Arrow || len(l.Params) != 1 {
		return nil
	}
	p := l.Params[0]
	return &Binary{At: l.At, Op: OpArrow, Left: &ColumnRef{At: p.At, Parts: Name{p}}, Right: l.Body}
}

// Param is a parameter: $1 and ? have an Index from 1, $name a Name.
type Param struct {
	At
	Index int
	Name  string
}

// Default is DEFAULT in INSERT … VALUES and UPDATE … SET.
type Default struct{ At }

func (*Literal) expr()      {}
func (*TypedLiteral) expr() {}
func (*Interval) expr()     {}
func (*ColumnRef) expr()    {}
func (*Star) expr()         {}
func (*Columns) expr()      {}
func (*Unary) expr()        {}
func (*Binary) expr()       {}
func (*Not) expr()          {}
func (*Is) expr()           {}
func (*Match) expr()        {}
func (*Between) expr()      {}
func (*In) expr()           {}
func (*Exists) expr()       {}
func (*Subquery) expr()     {}
func (*Quantified) expr()   {}
func (*Case) expr()         {}
func (*Cast) expr()         {}
func (*Collate) expr()      {}
func (*Function) expr()     {}
func (*List) expr()         {}
func (*Struct) expr()       {}
func (*Map) expr()          {}
func (*Row) expr()          {}
func (*Subscript) expr()    {}
func (*Slice) expr()        {}
func (*Field) expr()        {}
func (*Lambda) expr()       {}
func (*Param) expr()        {}
func (*Default) expr()      {}
