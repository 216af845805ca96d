// Package plan holds the logical plan: what a query asks, in relational nodes, for both modes.
//
// Invariant: every output column has a ColID that is unique in the plan; a node that passes a column
// through keeps its ID. So a rule may move a node wherever the columns it reads are visible. A plan is a tree until the
// last rule lets several nodes read one (share subplans).
package plan

import (
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/types"
)

// Node is a logical operator.
type Node interface {
	IsPlanNode()
	Children() []Node
	// With returns a copy over other children.
	With(children []Node) Node
	// Columns are the output, in order.
	Columns() []Column
	// Exprs are the node's own expressions, for walking; WithExprs returns a copy with others in the same order.
	Exprs() []expr.Expr
	WithExprs(es []expr.Expr) Node
}

// Column is one output column.
type Column struct {
	ID   expr.ColID
	Name string
	Type types.Type
}

// Ref returns an expression that reads the column.
func (c Column) Ref() *expr.Col { return &expr.Col{ID: c.ID, Name: c.Name, T: c.Type} }

// Source is a named relation as the catalog knows it. Exactly one of Relation and Stream is set.
type Source struct {
	Name     string
	Relation flow.Relation
	Stream   flow.Stream
	Fields   []types.Field
	Keys     [][]int // unique keys, as positions in Fields
	// Upsert is the key of a source without old images (flow.Upserts): what is read is not rows but what becomes of a key. A
	// Normalize stands over every scan of it.
	Upsert    []int
	Watermark *WatermarkSpec // streams only
	// Table marks an in-memory table, whose DML makes deltas; View names a materialized view.
	Table bool
}

// Live reports whether the source is read as a stream of deltas that may not end.
func (s *Source) Live() bool { return s.Stream != nil && !s.Stream.Bounded() }

// WatermarkSpec is WATERMARK FOR column AS expr. The expression reads columns by ColID = position in Fields.
type WatermarkSpec struct {
	Column      int
	Expr        expr.Expr
	SQL         string
	LatenessUS  int64 // allowed lateness
	IdleTimeout int64 // ms
}

// Scan reads a source.
type Scan struct {
	Source *Source
	Alias  string
	Cols   []Column // what is read
	At     []int    // for each column its position in Source.Fields
	// Filters were pushed here: the scan may skip rows by them, and the operator applies them exactly.
	Filters []expr.Expr
	Limit   int64 // rows needed, in scan order; 0 is all
	Pos     errs.Pos
	Guard   *Guard // with on_error = 'bad', where a row may fail
}

// Normalize makes rows of a source without old images: of each key the last row of a split, and of splits that have the same
// key that of the last one (flow.CompareSplits). Its input is a Scan.
type Normalize struct {
	Input Node
	Key   []expr.ColID
}

// Values is rows of constants; no row and no column is allowed ("SELECT 1" reads one row of no columns).
type Values struct {
	Cols []Column
	Rows [][]expr.Expr
	Of   flow.Checker // whose statistics the rows are, asked again when they are shown; nil for rows of the query's own
}

// Filter keeps rows whose condition is true.
type Filter struct {
	Input Node
	Cond  expr.Expr
}

// Project computes columns. A plain column reference with the same ID passes through.
type Project struct {
	Input Node
	Items []Item
}

// Item is an expression and the column it becomes.
type Item struct {
	Expr expr.Expr
	Col  Column
}

// Aggregate groups. Without keys it gives one row, also for no input. Keys are plain columns of the input after
// the binder's projection, except that Sets may list grouping sets as positions in Keys.
type Aggregate struct {
	Input Node
	Keys  []Item
	Aggs  []AggItem
	Sets  [][]int // nil: one set of all keys
	// GroupingID, when set, receives the bit mask of GROUPING() over all keys: a bit is set where the set leaves the key out,
	// the first key highest.
	GroupingID *Column
}

// AggItem is one aggregate call.
type AggItem struct {
	Fn       *fn.Aggregate
	Overload *fn.AggOverload
	Sig      fn.Resolved // Args types, Returns, Data
	Args     []expr.Expr
	Distinct bool
	Filter   expr.Expr // may be nil
	Order    []SortItem
	Tie      []expr.ColID // for Ordering aggregates: completes Order to a total order
	Col      Column
	Pos      errs.Pos
}

// SortItem is one ORDER BY key.
type SortItem struct {
	Expr expr.Expr
	Key  fn.SortKey
}

// WindowKind is how time is cut.
type WindowKind uint8

const (
	Tumble WindowKind = iota + 1
	Hop
	Session
	Cumulate
)

func (k WindowKind) String() string {
	return [...]string{"", "TUMBLE", "HOP", "SESSION", "CUMULATE"}[k]
}

// TimeWindow assigns each row to its windows and adds Start and End; HOP and CUMULATE repeat a row per window.
// GROUP BY TUMBLE(ts, …) is bound to this node below the Aggregate, with Start (and End) among its keys.
type TimeWindow struct {
	Input      Node
	Kind       WindowKind
	Time       expr.Expr // of a timestamp or date type
	Size       types.IntervalValue
	Slide      types.IntervalValue // HOP: slide, CUMULATE: step, SESSION: gap
	OffsetUS   int64               // windows start this far from 1970-01-01 and its multiples
	Keys       []expr.Expr         // SESSION: the other group keys
	Start, End Column
	Pos        errs.Pos
}

// JoinKind is the kind of a join.
type JoinKind uint8

const (
	Inner JoinKind = iota + 1
	Left
	Right
	Full
	Semi   // left rows with a match
	Anti   // left rows without a match
	Mark   // left rows, plus Mark: true, false or NULL as IN would give
	Single // left rows, plus the right side's one match or NULLs; more than one match is an error
)

func (k JoinKind) String() string {
	return [...]string{"", "INNER", "LEFT", "RIGHT", "FULL", "SEMI", "ANTI", "MARK", "SINGLE"}[k]
}

// Join combines two inputs. Without Keys and On it is a cross join.
//
// The right input is the build side: the rules put the smaller input there. Where a kind fixes the sides and the
// left is much smaller, BuildLeft says so; it changes speed, never the result.
//
// A Mark join's mark is the three-valued OR, over the right rows, of Keys AND On: false without right rows, NULL where
// nothing is true and something is unknown. Keys from IN are plain; keys from a correlation are NullSafe and an On
// from one is never NULL, so that only the IN comparison can make a mark NULL.
type Join struct {
	Kind        JoinKind
	Left, Right Node
	Keys        []EquiKey
	On          expr.Expr // what Keys do not say; may be nil
	Mark        Column    // Kind Mark
	BuildLeft   bool      // Semi, Anti
}

// EquiKey is left = right; NullSafe is IS NOT DISTINCT FROM.
type EquiKey struct {
	Left, Right expr.Expr
	NullSafe    bool
}

// Apply is a dependent join: Right may read columns of Left. The rules turn every Apply into joins.
type Apply struct {
	Kind        JoinKind // Inner and Left (LATERAL), Semi, Anti, Mark, Single
	Left, Right Node
	Outer       []expr.ColID // columns of Left that Right reads
	On          expr.Expr
	Args        []EquiKey // Mark, Semi, Anti from IN: Left expressions against Right's columns
	Mark        Column
	Pos         errs.Pos
}

// Sort orders. Tie completes the order: it lists the input's columns that the query uses, in schema order,
// fixed before any rule ran (total order, DESIGN section 3).
type Sort struct {
	Input Node
	Keys  []SortItem
	Tie   []expr.ColID
}

// Limit takes rows. Over a Sort the rules make a TopN of the two.
type Limit struct {
	Input         Node
	Limit, Offset int64 // Limit -1: all
}

// TopN is Sort and Limit in one.
type TopN struct {
	Input         Node
	Keys          []SortItem
	Tie           []expr.ColID
	Limit, Offset int64
}

// GroupTopN keeps the first Limit rows of each group: ROW_NUMBER() OVER (PARTITION BY … ORDER BY …) <= Limit,
// QUALIFY, DISTINCT ON. RowNumber, when set, receives the number.
type GroupTopN struct {
	Input     Node
	Part      []expr.Expr
	Keys      []SortItem
	Tie       []expr.ColID
	Limit     int64
	Rank      string // row_number, rank or dense_rank
	RowNumber *Column
}

// Distinct removes equal rows.
type Distinct struct{ Input Node }

// SetKind is a set operation.
type SetKind uint8

const (
	Union SetKind = iota + 1
	Intersect
	Except
)

func (k SetKind) String() string { return [...]string{"", "UNION", "INTERSECT", "EXCEPT"}[k] }

// SetOp combines two inputs by position. Without All equal rows are one.
type SetOp struct {
	Kind        SetKind
	All         bool
	Left, Right Node
	Cols        []Column
}

// Window computes window functions (OVER). No engine runs it yet: what the rules can turn into GroupTopN runs as that,
// the rest is refused while planning.
type Window struct {
	Input Node
	Funcs []WindowItem
}

// WindowItem is one window function call.
type WindowItem struct {
	Name  string
	Agg   *AggItem // aggregates used as window functions
	Args  []expr.Expr
	Part  []expr.Expr
	Order []SortItem
	Tie   []expr.ColID
	Frame *Frame // nil is the default
	// IgnoreNulls: value functions pass over rows whose argument is NULL.
	IgnoreNulls bool
	Col         Column
	Pos         errs.Pos
}

// EmitPolicy says when results of an incremental run are shown.
type EmitPolicy uint8

const (
	EmitDefault EmitPolicy = iota
	EmitOnWatermark
	EmitImmediate
	EmitEvery
)

func (p EmitPolicy) String() string {
	return [...]string{"DEFAULT", "ON WATERMARK", "IMMEDIATE", "EVERY"}[p]
}

// Query is a bound SELECT: the root of a plan.
type Query struct {
	Root    Node
	Names   []string // output column names, as the user sees them; Root.Columns gives IDs and types
	Emit    EmitPolicy
	EveryUS int64
	Params  int
	// SQL is the statement's text.
	SQL string
}
