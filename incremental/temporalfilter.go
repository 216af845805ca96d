package incremental

import (
	"bytes"
	"math"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/exec"
	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/types"
	"github.com/riverbed/riverbed/state"
)

// temporalFilter keeps rows whose time compares with the clock as asked: ts > now() - INTERVAL '1 hour'. Rows come and go as the time of the
// steps passes theirs; it is recorded with each step, so that a replay does the same.
//
//	in:    any weights        out: changes: of rows, and of those that time has passed
//	state: temporal_rows      row → weight, weight shown; of rows that time may still pass
//	time:  the watermark says nothing of its output: old rows go later
type temporalFilter struct {
	value  *expr.Program
	bound  *expr.Program
	typ    types.Type // of both
	op     string
	rowEnc *keyEncoder
	cols   int

	rows   *state.Table
	vals   []state.Values
	weight *state.Int64s
	shown  *state.Int64s

	timeOf  []int64 // by row
	list    ordered // by time
	last    int64   // the bound of the last step
	begun   bool
	changed []uint32
	slots   []uint32
}

// fallsUS is how far a bound may fall although time rises, on local clocks.
const fallsUS = 2 * 86_400_000_000

var temporalRows = state.Decl{Name: "temporal_rows", Version: 1, Key: state.RowKey, About: "row → weight, weight shown"}

func newTemporalFilter(n *plan.Filter) (Operator, error) {
	c, _ := plan.TemporalOf(n.Cond)
	cols := n.Input.Columns()
	ts := columnTypes(cols)
	f := &temporalFilter{typ: c.Value.Type(), op: c.Op, rowEnc: newRowEncoder(ts), cols: len(cols), vals: valueColumns(ts), weight: &state.Int64s{}, shown: &state.Int64s{}}
	var err error
	if f.value, err = expr.CompileAll([]expr.Expr{c.Value}, layoutOf(cols)); err != nil {
		return nil, err
	}
	if f.bound, err = expr.Compile(c.Bound, nil); err != nil {
		return nil, err
	}
	decl := temporalRows
	decl.Values = valueNames(cols, "_weight", "_shown")
	f.rows = state.NewTable(decl, append(stateColumns(f.vals), f.weight, f.shown)...)
	f.rows.CopyLate()
	return f, nil
}

// Prepare puts the time behind the row's columns.
func (f *temporalFilter) Prepare(env *fn.Env, _ int, d flow.Delta) (Batch, error) {
	b := batchOf(d)
	at, err := f.value.EvalArrays(env, b.Cols, b.N)
	if err != nil {
		return Batch{}, err
	}
	b.Hash = hashOf(b.Cols, b.N)
	b.Cols = append(append(make([]arrow.Array, 0, f.cols+1), b.Cols...), at...)
	return b, nil
}

// now is the bound of a step.
func (f *temporalFilter) now(env *fn.Env) (int64, error) {
	at, err := f.bound.EvalArray(env, nil, 1)
	if err != nil {
		return 0, err
	}
	us, err := exec.Micros(at, f.typ)
	if err != nil {
		return 0, err
	}
	return us[0], nil
}

// holds compares a row's time with the bound.
func (f *temporalFilter) holds(at, bound int64) bool {
	switch f.op {
	case "<":
		return at < bound
	case "<=":
		return at <= bound
	case ">":
		return at > bound
	}
	return at >= bound
}

// settled is the time before which rows are passed for good: they pass through, or are dropped, and are not kept.
func (f *temporalFilter) settled(bound int64) int64 {
	if bound < math.MinInt64+fallsUS {
		return math.MinInt64
	}
	return bound - fallsUS
}

func (f *temporalFilter) Process(ctx *Ctx, _ int, in Batch) error {
	bound, err := f.now(ctx.Env)
	if err != nil {
		return err
	}
	at := in.Cols[f.cols]
	times, err := exec.Micros(at, f.typ)
	if err != nil {
		return err
	}
	var kept, passed []int32
	for i, t := range times[:in.N] {
		switch {
		case at.IsNull(i):
		case t >= f.settled(bound):
			kept = append(kept, int32(i))
		case f.holds(t, bound):
			passed = append(passed, int32(i))
		}
	}
	if len(passed) > 0 {
		if err := ctx.Emit(kernels.TakeBatch(in.Cols[:f.cols], passed), len(passed), pickRows(in.W, passed)); err != nil {
			return err
		}
	}
	if len(kept) == 0 {
		return nil
	}
	times = pickRows(times, kept)
	in = in.take(kept)
	f.slots = kernels.Sized(f.slots, in.N)
	k := f.rowEnc.encode(in.Cols[:f.cols], in.N, in.Hash)
	fresh := f.rows.Upsert(k, f.slots)
	f.rows.Before(f.slots)
	putFresh(f.vals, in.Cols, fresh, f.slots)
	f.index(times, fresh, f.slots)
	for i, s := range f.slots {
		f.weight.V[s] += in.weight(i)
	}
	f.changed = append(f.changed, f.slots...)
	return nil
}

func (f *temporalFilter) index(times []int64, fresh []int32, slots []uint32) {
	f.timeOf = grown(f.timeOf, f.rows.Slots(), 0)
	for _, r := range fresh {
		s := slots[r]
		f.timeOf[s] = times[r]
		f.list.insert(s, f.precedes(s))
	}
}

func (f *temporalFilter) precedes(s uint32) func(x uint32) bool {
	t := f.timeOf[s]
	return func(x uint32) bool {
		return f.timeOf[x] < t || f.timeOf[x] == t && bytes.Compare(f.rows.Key(x), f.rows.Key(s)) < 0
	}
}

func (f *temporalFilter) Advance(ctx *Ctx, _ flow.Watermark) error {
	bound, err := f.now(ctx.Env)
	if err != nil {
		return err
	}
	low, high := min(f.last, bound), max(f.last, bound)
	if !f.begun { // nobody knows how far the rows have come
		low, high, f.begun = math.MinInt64, math.MaxInt64, true
	}
	due := f.changed
	if low < high {
		f.list.from(func(x uint32) bool { return f.timeOf[x] < low }, func(x uint32) bool {
			if f.timeOf[x] > high {
				return false
			}
			due = append(due, x)
			return true
		})
	}
	f.last = bound
	negative, err := f.show(ctx, due, bound)
	f.changed = f.changed[:0]
	if err == nil && negative > 0 {
		err = ctx.missing("temporal filter", negative)
	}
	return err
}

// show emits what differs from what was shown of some rows, and drops rows that are gone or passed for good.
func (f *temporalFilter) show(ctx *Ctx, due []uint32, bound int64) (negative int64, err error) {
	f.rows.Before(due)
	var slots []uint32
	var weights []int64
	for _, s := range due {
		w := int64(0)
		if f.holds(f.timeOf[s], bound) {
			w = max(f.weight.V[s], 0)
		}
		if d := w - f.shown.V[s]; d != 0 {
			slots, weights = append(slots, s), append(weights, d)
			f.shown.V[s] = w
		}
	}
	if len(slots) > 0 {
		cols, err := gather(f.vals, slots)
		if err != nil {
			return 0, err
		}
		if err := ctx.Emit(cols, len(slots), weights); err != nil {
			return 0, err
		}
	}
	f.rows.Touch(due)
	for _, s := range f.changed {
		switch {
		case !f.rows.Live(s):
		case f.weight.V[s] < 0:
			negative++
		case f.weight.V[s] == 0:
			f.list.remove(s, f.precedes(s))
			f.rows.Delete([]uint32{s})
		}
	}
	var passed []uint32
	end := f.settled(bound)
	f.list.from(func(uint32) bool { return false }, func(x uint32) bool {
		if f.timeOf[x] >= end {
			return false
		}
		passed = append(passed, x)
		return true
	})
	f.list.behead(len(passed))
	f.rows.Delete(passed)
	return negative, nil
}

func (f *temporalFilter) Tables() []state.Stored { return []state.Stored{f.rows} }

func (f *temporalFilter) Restored(env *fn.Env) error {
	slots := f.rows.All()
	at, err := orderOfStored(f.value, f.vals, env, slots)
	if err != nil || len(slots) == 0 {
		return err
	}
	times, err := exec.Micros(at[0], f.typ)
	if err != nil {
		return err
	}
	f.index(times, allRows(len(slots)), slots)
	return nil
}
