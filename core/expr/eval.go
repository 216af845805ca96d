package expr

import (
	"cmp"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/types"
)

// Program is one or more expressions compiled for a layout of columns. Equal subexpressions are computed once. A program
// has no state of its own: workers may share it.
type Program struct {
	slots []slot
	roots []int
	reads []read // the columns that it reads
	// narrow says which roots may come in 64 bits; nil: none.
	narrow []bool
}

// read is a column of the batches to come, as messages show it.
type read struct {
	at    int
	field types.Field
}

// slot is one distinct subexpression.
type slot struct {
	op  op
	typ arrow.DataType
	// fallible: a row may fail, here or below; volatile: each evaluation gives another value. Such slots are kept away from
	// rows that CASE, COALESCE, AND or OR shut out.
	fallible, volatile bool
}

func (s *slot) guarded() bool { return s.fallible || s.volatile }

// op computes one slot over the rows of a frame.
type op interface {
	eval(x *frame) (fn.Arg, error)
}

// frame is one evaluation of a program over a batch, or over the rows of a batch that a branch still concerns.
type frame struct {
	prog  *Program
	env   *fn.Env
	cols  []arrow.Array
	n     int
	memo  []fn.Arg
	small []narrowed // of each slot; nil: none yet

	parent *frame
	rows   []int32 // rows of the parent that this frame concerns

	failed []fn.RowError // numbered by the frame's own rows
}

func (p *Program) frame(env *fn.Env, cols []arrow.Array, n int) *frame {
	if env == nil {
		env = &fn.Env{}
	}
	return &frame{prog: p, env: env, cols: cols, n: n, memo: make([]fn.Arg, len(p.slots))}
}

// get returns the value of a slot, computing it on first use.
func (x *frame) get(s int) (fn.Arg, error) {
	if x.memo[s].Array != nil {
		return x.memo[s], nil
	}
	if x.parent != nil && x.parent.memo[s].Array != nil {
		x.memo[s] = gather(x.parent.memo[s], x.rows)
		return x.memo[s], nil
	}
	v, err := x.prog.slots[s].op.eval(x)
	if err != nil {
		return v, err
	}
	x.memo[s] = v
	return v, nil
}

// sub makes the frame of some of x's rows; done takes its failures over.
func (x *frame) sub(rows []int32) *frame {
	return &frame{prog: x.prog, env: x.env, n: len(rows), memo: make([]fn.Arg, len(x.prog.slots)), parent: x, rows: rows}
}

func (x *frame) done(sub *frame) {
	for _, f := range sub.failed {
		x.failed = append(x.failed, fn.RowError{Row: int(sub.rows[f.Row]), Err: f.Err})
	}
}

// column reads a column of the batch; a subframe gathers it on first use (get keeps it).
func (x *frame) column(i int) arrow.Array {
	if x.parent == nil {
		return x.cols[i]
	}
	return kernels.Take(x.parent.column(i), x.rows)
}

func gather(a fn.Arg, rows []int32) fn.Arg {
	if a.Const {
		return a
	}
	return fn.Arg{Array: kernels.Take(a.Array, rows)}
}

// fail records failing rows; those of a constant concern every row.
func (x *frame) fail(failed []fn.RowError, constant bool, pos errs.Pos) {
	for _, f := range failed {
		e := located(f.Err, pos)
		if !constant {
			x.failed = append(x.failed, fn.RowError{Row: f.Row, Err: e})
			continue
		}
		for i := range x.n {
			x.failed = append(x.failed, fn.RowError{Row: i, Err: e})
		}
	}
}

// located gives an error of a kernel the place of its expression.
func located(err error, pos errs.Pos) error {
	if e, ok := err.(*errs.Error); ok {
		if !e.Pos.Valid() {
			c := *e
			c.Pos = pos
			return &c
		}
		return e
	}
	return errs.E(errs.Data, "evaluate", pos, "%w", err)
}

// run evaluates all roots.
func (x *frame) run() ([]fn.Arg, error) {
	out := make([]fn.Arg, len(x.prog.roots))
	for i := range x.prog.roots {
		v, err := x.root(i)
		if err != nil {
			return nil, err
		}
		out[i] = v
	}
	return out, nil
}

// firstFailure is the error of the first row that failed, with what the expressions read of the row.
func (x *frame) firstFailure() error {
	if len(x.failed) == 0 {
		return nil
	}
	first := slices.MinFunc(x.failed, func(a, b fn.RowError) int { return a.Row - b.Row })
	if e, ok := first.Err.(*errs.Error); ok && len(x.prog.reads) > 0 {
		named := *e
		named.Row = &errs.Row{Values: x.prog.RowText(x.cols, first.Row)}
		return &named
	}
	return first.Err
}

// RowText prints what the program reads of a row.
func (p *Program) RowText(cols []arrow.Array, row int) string {
	fields, values := make([]types.Field, len(p.reads)), make([]arrow.Array, len(p.reads))
	for i, r := range p.reads {
		fields[i], values[i] = r.field, cols[r.at]
	}
	return RowText(fields, values, row)
}

// maxRowText bounds what a message shows of a row, in characters.
const maxRowText = 300

// RowText prints a row as a struct, cut where it is long.
func RowText(fields []types.Field, cols []arrow.Array, row int) string {
	values := make([]types.Value, len(cols))
	for i, c := range cols {
		values[i] = types.ValueAt(c, row, fields[i].Type)
	}
	text := types.Format(values, types.StructOf(fields...))
	if r := []rune(text); len(r) > maxRowText {
		return string(r[:maxRowText]) + "…"
	}
	return text
}

// EvalAll evaluates every expression of the program over n rows of cols; what is the same for all rows stays one value.
// A row that has no value is an error.
func (p *Program) EvalAll(env *fn.Env, cols []arrow.Array, n int) ([]fn.Arg, error) {
	x := p.frame(env, cols, n)
	out, err := x.run()
	if err == nil {
		err = x.firstFailure()
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Eval is EvalAll for a program of one expression.
func (p *Program) Eval(env *fn.Env, cols []arrow.Array, n int) (fn.Arg, error) {
	out, err := p.EvalAll(env, cols, n)
	if err != nil {
		return fn.Arg{}, err
	}
	return out[0], nil
}

// EvalArrays is EvalAll with constants repeated to n rows.
func (p *Program) EvalArrays(env *fn.Env, cols []arrow.Array, n int) ([]arrow.Array, error) {
	args, err := p.EvalAll(env, cols, n)
	if err != nil {
		return nil, err
	}
	return expandAll(args, n), nil
}

// EvalArray is EvalArrays for a program of one expression.
func (p *Program) EvalArray(env *fn.Env, cols []arrow.Array, n int) (arrow.Array, error) {
	out, err := p.EvalArrays(env, cols, n)
	if err != nil {
		return nil, err
	}
	return out[0], nil
}

// EvalDivert is EvalArrays for on_error='bad': rows that have no value are returned, once each and in order, with their error.
// What the arrays hold in those rows is NULL or arbitrary.
func (p *Program) EvalDivert(env *fn.Env, cols []arrow.Array, n int) ([]arrow.Array, []fn.RowError, error) {
	x := p.frame(env, cols, n)
	args, err := x.run()
	if err != nil {
		return nil, nil, err
	}
	slices.SortStableFunc(x.failed, func(a, b fn.RowError) int {
		return cmp.Or(a.Row-b.Row, place(a.Err)-place(b.Err)) // the order of evaluation decides nothing that is shown
	})
	bad := slices.CompactFunc(x.failed, func(a, b fn.RowError) bool { return a.Row == b.Row })
	return expandAll(args, n), bad, nil
}

// place is where in the text the expression of an error stands.
func place(err error) int { return errs.As(err).Pos.Offset }

// EvalFilter evaluates a condition and returns the rows where it is true. When all rows are, sel is nil and all is true.
func (p *Program) EvalFilter(env *fn.Env, cols []arrow.Array, n int) (sel []int32, all bool, err error) {
	v, err := p.Eval(env, cols, n)
	if err != nil {
		return nil, false, err
	}
	sel, all = selected(v, n)
	return sel, all, nil
}

// EvalFilterDivert is EvalFilter for on_error='bad': failing rows are not selected but returned.
func (p *Program) EvalFilterDivert(env *fn.Env, cols []arrow.Array, n int) (sel []int32, all bool, bad []fn.RowError, err error) {
	out, bad, err := p.EvalDivert(env, cols, n)
	if err != nil {
		return nil, false, nil, err
	}
	t := trueBits(fn.Arg{Array: out[0]}, n)
	if len(bad) > 0 {
		t = slices.Clone(t)
		for _, f := range bad {
			kernels.ClearBit(t, f.Row)
		}
	}
	sel, all = selectBits(t, n)
	return sel, all, bad, nil
}

func selected(v fn.Arg, n int) (sel []int32, all bool) {
	if v.Const {
		if n == 0 || !kernels.IsNull(v.Array, 0) && kernels.Bit(kernels.BoolBits(v.Array), 0) {
			return nil, true
		}
		return []int32{}, false
	}
	return selectBits(trueBits(v, n), n)
}

func selectBits(t []byte, n int) ([]int32, bool) {
	count := kernels.CountBits(t, n)
	if count == n {
		return nil, true
	}
	return kernels.Select(make([]int32, 0, count), t, n), false
}

// Expand repeats a constant to n rows.
func Expand(a fn.Arg, n int) arrow.Array {
	if !a.Const {
		return a.Array
	}
	return kernels.Repeat(a.Array, 0, n)
}

func expandAll(args []fn.Arg, n int) []arrow.Array {
	out := make([]arrow.Array, len(args))
	for i, a := range args {
		out[i] = Expand(a, n)
	}
	return out
}
