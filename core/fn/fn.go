// Package fn is the function registry: one Go value per SQL function. The binder, both modes, EXPLAIN,
// the reference page and the example tests all read it.
//
// Invariant: All and Aggregates list every function once; nothing registers itself.
package fn

import (
	"context"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/clock"
	"github.com/riverbed/riverbed/core/types"
)

// NullPolicy says who looks at NULLs.
type NullPolicy uint8

const (
	// NullIfAnyNull: the result is NULL where an argument is. The evaluator merges the validity; the kernel
	// sees whatever bytes stand below a NULL and must not look at validity.
	NullIfAnyNull NullPolicy = iota
	// NullAware: the kernel reads the arguments' validity and decides itself.
	NullAware
)

// Purity says when two calls with equal arguments give equal results.
type Purity uint8

const (
	Immutable Purity = iota // always; may be folded while planning
	Stable                  // within one step or one batch run: now(), current_date
	Volatile                // never: random()
)

// Category groups the reference page.
type Category string

const (
	Math       Category = "Numbers"
	Text       Category = "Text"
	DateTime   Category = "Dates and times"
	Logic      Category = "Comparison and logic"
	Nested     Category = "Lists, structs and maps"
	JSONs      Category = "JSON"
	Conversion Category = "Conversion"
	Windowing  Category = "Windows over time"
	Utility    Category = "Utility"
	Aggregated Category = "Aggregates"
)

// Env is what a call may know of its surroundings. It is fixed for a step or a batch run.
type Env struct {
	Now      time.Time      // of the step or the start of the batch run
	TimeZone *time.Location // session time zone; nil is UTC
	Rand     clock.Rand
	// Ctx is the run's context, for functions of the host: what they ask of the engine belongs to the run. May be nil.
	Ctx context.Context
}

// Arg is one argument of a call: an array with one value per row, or one value for all rows.
type Arg struct {
	arrow.Array
	Const bool // the array has length 1 and stands for every row
}

// Call is one evaluation of a kernel over a batch.
type Call struct {
	Env   *Env
	N     int // rows; the result has this length
	Args  []Arg
	Types []types.Type // SQL types of the arguments, after coercion
	Ret   types.Type
	Data  any // what the overload's Bind prepared (a compiled pattern, a unit)
	// Lambda is the lambda of a function that takes one; it is none of Args.
	Lambda *Lambda

	failed []RowError
}

// RowError says that one row has no value. It is dropped when the row is NULL anyway.
type RowError struct {
	Row int
	Err error
}

// Fail reports that row has no value; the kernel goes on with the next row. The evaluator ignores it for rows that are NULL.
func (c *Call) Fail(row int, err error) { c.failed = append(c.failed, RowError{row, err}) }

// Failed returns what Fail gathered.
func (c *Call) Failed() []RowError { return c.failed }

// Kernel computes a result of c.N rows. Its own validity is merged with the arguments' by the null policy, so
// a kernel marks only the NULLs that it adds (1 // 0).
type Kernel func(c *Call) (arrow.Array, error)

// Overload is one signature.
type Overload struct {
	Args     []types.Type // types.AnyType takes any; the binder casts arguments to these
	Variadic bool         // the last of Args repeats, zero or more times
	Returns  types.Type
	Kernel   Kernel
	// Resolve, when set, decides for types with parameters (DECIMAL, LIST, STRUCT …): given the arguments' types
	// and, for constants, their values (nil otherwise) it returns what to cast the arguments to, the result type and Call.Data.
	Resolve func(args []types.Type, consts []types.Value) (Resolved, error)
	// Fallible: a row may fail. The evaluator then keeps the call away from rows that CASE, COALESCE, AND or OR shut out.
	Fallible bool
}

// Resolved is the outcome of Resolve. A nil Kernel keeps the overload's.
type Resolved struct {
	Args    []types.Type
	Returns types.Type
	Data    any
	Kernel  Kernel
	Safe    bool // for these types no row fails, although the overload is Fallible
	Narrow  Narrow
}

// Narrow says which operation on 64-bit integers a call is, when its arguments, DECIMALs, and its result fit them.
type Narrow uint8

// The operations. Arguments are on the scales that the operation needs.
const (
	NotNarrow Narrow = iota
	NarrowAdd
	NarrowSub
	NarrowMul
)

// Example is run as a test, in both modes, and printed in the reference.
type Example struct {
	SQL  string // an expression, or for aggregates the argument list
	Rows string // aggregates: the values, comma separated
	Want string // as the printer shows the value
}

// Scalar is one scalar function.
type Scalar struct {
	Name      string
	Aliases   []string
	Category  Category
	Summary   string
	Nulls     NullPolicy
	Purity    Purity
	Overloads []Overload
	Examples  []Example
	Operator  bool // spelled as an operator: +, ||, LIKE
	// Lambda, when set, makes the second argument a lambda, and resolves the call instead of Overloads.
	Lambda *LambdaForm
	// Differs says how it differs from DuckDB's, and why; empty when it does not.
	Differs string
}

// Algebra decides how an aggregate is maintained incrementally.
type Algebra uint8

const (
	Linear    Algebra = iota // a retraction is an add with negative weight: count, sum, avg, variance
	Ordered                  // keeps values: min, max, arg_min, string_agg, array_agg, median
	BatchOnly                // refused on live input; Why says why
)

// Aggregate is one aggregate function.
type Aggregate struct {
	Name      string
	Aliases   []string
	Category  Category
	Summary   string
	Algebra   Algebra
	Why       string // BatchOnly: the reason
	Ordering  bool   // takes ORDER BY; without one it uses the total order of rows
	KeepNulls bool   // rows whose argument is NULL count too (array_agg, count(*))
	Overloads []AggOverload
	Examples  []Example
	Differs   string
}

// AggOverload is one signature of an aggregate.
type AggOverload struct {
	Args    []types.Type
	Returns types.Type
	Resolve func(args []types.Type, consts []types.Value) (Resolved, error)
	// New makes an accumulator for inserts only.
	New func(c AggConfig) Accumulator
	// NewRetract makes one that takes negative weights; nil when New's does (Linear).
	NewRetract func(c AggConfig) Accumulator
	// Shifts: New's takes AggConfig.Shift.
	Shifts bool
	// Narrow: New's takes DECIMALs as arrow.Decimal64Type too.
	Narrow bool
}

// AggConfig is what an accumulator is made for.
type AggConfig struct {
	Args []types.Type
	Ret  types.Type
	Data any
	// Ordering aggregates: Args holds Plain arguments, then the order keys (directions in Order), then the tie-break columns.
	Plain int
	Order []SortKey
	// Shift is a whole number that counts as added to the argument in every row.
	Shift int64
}

// SortKey is one ORDER BY key. The default is DuckDB's: ascending, NULLS LAST.
type SortKey struct {
	Desc       bool
	NullsFirst bool
}

// Finisher is an accumulator with work to do before several goroutines may ask it for results of different groups at once.
type Finisher interface{ Finish() }

// Accumulator holds the accumulators of all groups of one aggregate call, in columns or rows as it likes.
// Groups are dense numbers from 0. It never sees rows that FILTER shut out, nor NULL arguments unless KeepNulls.
type Accumulator interface {
	// Resize makes room for n groups; new ones are empty.
	Resize(n int)
	// Add takes rows: groups[i] is the group of row i. weights nil means +1 each.
	Add(groups []uint32, args []Arg, weights []int64) error
	// Merge adds other's group i to this one's group into[i].
	Merge(other Accumulator, into []uint32) error
	// Result returns one value for each of the groups.
	Result(groups []uint32) (arrow.Array, error)
	// Reset empties groups, so that their numbers can be used again.
	Reset(groups []uint32)
	// State is the type under which Save writes a group, for state tables and spilling.
	State() types.Type
	Save(groups []uint32) (arrow.Array, error)
	Load(groups []uint32, saved arrow.Array) error
	// Bytes is the memory held, roughly.
	Bytes() int64
}
