package incremental

import (
	"context"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/state"
)

// Operator computes one node of the plan on deltas. In each step it gets all deltas of its inputs, port by port, and
// then one Advance. It runs on one goroutine, reads no clock and owns its tables.
type Operator interface {
	// Process takes one delta of an input.
	Process(ctx *Ctx, port int, in Batch) error
	// Advance ends the operator's step: w is the least of its inputs' watermarks. What depends on the whole step is emitted here.
	Advance(ctx *Ctx, w flow.Watermark) error
}

// Keyed is an operator with state: rows reach the instance that owns the key group of their hash.
type Keyed interface {
	Operator
	// Prepare computes what Process needs of a delta, keys and hashes included. It depends on the delta alone.
	Prepare(env *fn.Env, port int, d flow.Delta) (Batch, error)
	Tables() []state.Stored
	// Restored rebuilds what is derived from the tables, after all their rows were loaded.
	Restored(env *fn.Env) error
}

// Batch is a delta as Prepare left it: columns, weights and, for keyed operators, the hash of each row's key.
type Batch struct {
	Cols []arrow.Array
	N    int
	W    []int64 // nil: +1 each
	Hash []uint64
	// Places of a source's rows, for its scans.
	Places *flow.Places
	// late has the columns that are nil in Cols; nil: none is.
	late *lateBatch
}

func batchOf(d flow.Delta) Batch {
	return Batch{Cols: d.Columns(), N: d.Rows(), W: d.Weights(), Places: d.Places}
}

// weight of row i.
func (b *Batch) weight(i int) int64 {
	if b.W == nil {
		return 1
	}
	return b.W[i]
}

// take narrows the batch to some rows.
func (b *Batch) take(rows []int32) Batch {
	out := Batch{Cols: make([]arrow.Array, len(b.Cols)), N: len(rows), W: pickRows(b.W, rows), Hash: pickRows(b.Hash, rows)}
	for i, c := range b.Cols {
		if same := slices.Index(b.Cols[:i], c); same >= 0 { // a key that is a column of the row
			out.Cols[i] = out.Cols[same]
		} else if c != nil {
			out.Cols[i] = kernels.Take(c, rows)
		}
	}
	if b.late != nil {
		out.late = b.late.take(rows)
	}
	return out
}

// slice is the rows [from, to).
func (b *Batch) slice(from, to int) Batch {
	if from == 0 && to == b.N {
		return *b
	}
	out := Batch{Cols: make([]arrow.Array, len(b.Cols)), N: to - from}
	if b.Hash != nil {
		out.Hash = b.Hash[from:to]
	}
	for i, c := range b.Cols {
		if c != nil {
			out.Cols[i] = array.NewSlice(c, int64(from), int64(to))
		}
	}
	if b.late != nil {
		out.late = b.late.take(allRows(to)[from:])
	}
	if b.W != nil {
		out.W = b.W[from:to]
	}
	return out
}

func pickRows[T any](v []T, rows []int32) []T {
	if v == nil {
		return nil
	}
	out := make([]T, len(rows))
	for i, r := range rows {
		out[i] = v[r]
	}
	return out
}

// Ctx is what an instance of an operator sees of the step.
type Ctx struct {
	Env *fn.Env
	// Strict makes a retraction of a row that was never there an error; otherwise it is counted.
	Strict bool
	// retracts are the streams whose rows are retracted by who pushes them.
	retracts []string
	// In are the watermarks of the inputs, port by port.
	In []flow.Watermark
	// lent is memory that is taken away behind the step: what stays does not lie in it.
	lent []flow.Lent

	schema *arrow.Schema // of the output, with the weight on updating edges
	out    []flow.Delta
	rows   int64
	bad    int64
	left   []flow.BadRow // rows that a guard left out

	run context.Context // may be nil
}

// interrupted is the error of a step whose context has ended; run may be nil.
func interrupted(run context.Context) error {
	if run != nil && run.Err() != nil {
		return errs.New(errs.Cancelled, "step", "the step was cancelled")
	}
	return nil
}

// Emit gives rows to the output. w nil is +1 each.
func (c *Ctx) Emit(cols []arrow.Array, n int, w []int64) error {
	if n == 0 {
		return nil
	}
	if err := interrupted(c.run); err != nil {
		return err
	}
	c.rows += int64(n)
	if flow.HasWeights(c.schema) {
		cols = append(append(make([]arrow.Array, 0, len(cols)+1), cols...), weightArray(w, n))
	} else if !allOnes(w) { // without a weight column a row of weight n is n rows
		rows, err := repeated(w)
		if err != nil {
			return err
		}
		cols, n = kernels.TakeBatch(cols, rows), len(rows)
	}
	c.out = append(c.out, flow.Delta{Batch: array.NewRecordBatch(c.schema, cols, int64(n))})
	return nil
}

// emitLate gives rows without weights whose columns are gathered when they are asked for, in this step.
func (c *Ctx) emitLate(n int, g gatherer) error {
	if err := interrupted(c.run); err != nil {
		return err
	}
	c.rows += int64(n)
	c.out = append(c.out, flow.Delta{Batch: newLateBatch(c.schema, n, g)})
	return nil
}

// missing reports a retraction of rows that were not there. Where a stream brings retractions it is the stream's error: the engine's own
// are of rows that it has shown.
func (c *Ctx) missing(op string, n int64) error {
	if c.Strict && len(c.retracts) > 0 {
		return errs.New(errs.Data, "step", "a retraction from the stream %s has no row: %d were never there, or are gone already (%s)", strings.Join(c.retracts, " or "), n, op).
			WithHint("retract what was pushed before, with the same values; or set strict_retractions = false to count such rows instead")
	}
	if c.Strict {
		return errs.Bug("step", "%s: %d retractions of rows that were never there", op, n)
	}
	c.bad += n
	return nil
}

// repeated lists each row as often as its weight says.
func repeated(w []int64) ([]int32, error) {
	rows := make([]int32, 0, len(w))
	for i, x := range w {
		if x < 0 {
			return nil, errs.Bug("step", "an append-only operator emitted a retraction")
		}
		for range x {
			rows = append(rows, int32(i))
		}
	}
	return rows, nil
}

func int64Array(v []int64) arrow.Array { return kernels.NewFixed(arrow.PrimitiveTypes.Int64, v, nil) }

// manyOnes are the weights of inserts, which deltas share: nothing writes to what a batch holds.
var manyOnes = ones(64 << 10)

// weightArray is the weight column of n rows; w nil is +1 each.
func weightArray(w []int64, n int) arrow.Array {
	switch {
	case w != nil:
		return int64Array(w)
	case n <= len(manyOnes):
		return int64Array(manyOnes[:n:n])
	}
	return int64Array(ones(n))
}

func ones(n int) []int64 {
	w := make([]int64, n)
	for i := range w {
		w[i] = 1
	}
	return w
}

func allOnes(w []int64) bool {
	for _, x := range w {
		if x != 1 {
			return false
		}
	}
	return true
}
