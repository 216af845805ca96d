package exec

import (
	"math"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/types"
	"github.com/riverbed/riverbed/core/window"
)

// TimeWindow adds to each row the start and end of its windows, repeating it when there are several. It serves both modes.
type TimeWindow struct {
	cut  window.Cut
	time *expr.Program
	typ  types.Type
	edge arrow.DataType
}

// NewTimeWindow compiles the node.
func NewTimeWindow(n *plan.TimeWindow) (*TimeWindow, error) {
	cut, err := WindowCut(n)
	if err != nil {
		return nil, err
	}
	prog, err := expr.Compile(n.Time, layoutOf(n.Input.Columns()))
	return &TimeWindow{cut, prog, n.Time.Type(), n.Start.Type.Arrow()}, err
}

// WindowCut reads the sizes of the node.
func WindowCut(n *plan.TimeWindow) (window.Cut, error) {
	at := func(err error) error {
		e := errs.As(err)
		e.Pos = n.Pos
		return e
	}
	size, err := window.SpanOf(n.Size)
	if err != nil {
		return window.Cut{}, at(err)
	}
	if n.Kind == plan.Tumble {
		return window.Tumble(size).From(n.OffsetUS), nil
	}
	slide, err := window.SpanOf(n.Slide)
	if err != nil {
		return window.Cut{}, at(err)
	}
	make := window.Hop
	if n.Kind == plan.Cumulate {
		make = window.Cumulate
	}
	c, err := make(slide, size)
	if err != nil {
		return c, at(err)
	}
	return c.From(n.OffsetUS), nil
}

// Apply returns the columns with start and end behind them. The first `keep` columns are the input's; columns after
// them (a delta's weight) stay at the end.
func (w *TimeWindow) Apply(env *fn.Env, cols []arrow.Array, keep, n int) ([]arrow.Array, int, error) {
	at, err := w.time.EvalArray(env, cols, n)
	if err != nil {
		return nil, 0, err
	}
	times, err := Micros(at, w.typ)
	if err != nil {
		return nil, 0, err
	}
	var valid func(int) bool
	if at.NullN() > 0 {
		valid = at.IsValid
	}
	var rows []int32
	starts, ends := kernels.Room[int64](n), kernels.Room[int64](n)
	if w.cut.Tumbling() {
		err = w.cut.Window(times[:n], valid, starts, ends)
	} else if rows, starts, ends, err = w.cut.Windows(times, valid, make([]int32, 0, n), starts[:0], ends[:0]); err == nil && !isIdentity(rows, n) {
		cols = kernels.TakeBatch(cols, rows)
	}
	if err != nil {
		return nil, 0, err
	}
	var mask []byte
	if valid != nil {
		mask = kernels.Ones(len(starts))
		for i, s := range starts {
			if s == window.NullStart {
				kernels.ClearBit(mask, i)
			}
		}
	}
	out := append(make([]arrow.Array, 0, len(cols)+2), cols[:keep]...)
	out = append(out, kernels.NewFixed(w.edge, starts, mask), kernels.NewFixed(w.edge, ends, mask))
	return append(out, cols[keep:]...), len(starts), nil
}

// Micros reads a date or timestamp column as microseconds since 1970. What stands below a NULL is arbitrary.
func Micros(a arrow.Array, t types.Type) ([]int64, error) {
	switch t.Kind {
	case types.Date:
		return scaled(a, kernels.Values[int32](a), 86_400_000_000, t)
	case types.TimestampS:
		return scaled(a, kernels.Values[int64](a), 1_000_000, t)
	case types.TimestampMS:
		return scaled(a, kernels.Values[int64](a), 1000, t)
	case types.TimestampNS:
		out := make([]int64, a.Len())
		for i, v := range kernels.Values[int64](a)[:len(out)] {
			out[i] = types.FloorDiv(v, 1000)
		}
		return out, nil
	}
	return kernels.Values[int64](a), nil
}

// scaled multiplies times, and refuses those that are not NULL and overflow.
func scaled[T int32 | int64](a arrow.Array, v []T, by int64, t types.Type) ([]int64, error) {
	out, most := kernels.Room[int64](a.Len()), math.MaxInt64/by
	far := false
	for i, x := range v[:len(out)] {
		out[i] = int64(x) * by
		far = far || uint64(int64(x)+most) > uint64(2*most)
	}
	for i := 0; far && i < len(out); i++ {
		if x := int64(v[i]); (x > most || x < -most) && a.IsValid(i) {
			return nil, errs.New(errs.Data, "assign windows", "a %s lies outside what TIMESTAMP can hold", t)
		}
	}
	return out, nil
}

func newTimeWindow(n *plan.TimeWindow, env *Env, workers int) (Operator, error) {
	if n.Kind == plan.Session {
		return newSessions(n, env)
	}
	input, err := Build(n.Input, env, workers)
	if err != nil {
		return nil, err
	}
	w, err := NewTimeWindow(n)
	if err != nil {
		return nil, err
	}
	return &rowwise{input: input, schema: schemaOf(n.Columns()), fallible: true, apply: func(cols []arrow.Array, rows int) ([]arrow.Array, int, error) {
		return w.Apply(env.Fn, cols, len(cols), rows)
	}}, nil
}
