package exec

import (
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/types"
	"github.com/riverbed/riverbed/core/window"
)

// An aggregate by hopping windows takes over the window's work: a row is added once, to its slice of time, and what a worker's slices
// have gathered is merged into each of their windows. The slices are pieces whose edges are those of all windows, and as many
// make a window wherever it lies. They are merged when they have become many, so they need no room to speak of. A worker whose
// first rows nearly all make slices of their own gives each row to its windows, as without slices.

// slicing is how an aggregate finds slices and their windows.
type slicing struct {
	rows   *TimeWindow // of whole windows
	of     *TimeWindow // of slices
	window *plan.TimeWindow
	prep   *Prepared // over rows with their slice: the other keys, the slice, the arguments
	keyAt  []int     // plan.Slices.At
	size   int64
	slide  int64
	each   int64 // windows of a slice
	schema *arrow.Schema
}

// maxSlices is how many slices a worker gathers.
const maxSlices = 8 << 10

// slicesOf is nil when the aggregate is to see each row in each of its windows.
func slicesOf(n *plan.Aggregate) (*slicing, error) {
	p := plan.SlicesOf(n)
	if p == nil {
		return nil, nil
	}
	w := p.Window
	s := &slicing{window: w, keyAt: p.At, schema: schemaOf(w.Columns())}
	var err error
	if s.rows, err = NewTimeWindow(w); err != nil {
		return nil, err
	}
	size, err := window.SpanOf(w.Size)
	if err != nil {
		return nil, err
	}
	slide, err := window.SpanOf(w.Slide)
	if err != nil {
		return nil, err
	}
	s.size, s.slide, s.each = size.Micros, slide.Micros, size.Micros/slide.Micros
	if s.each < 2 || s.size%s.slide != 0 {
		return nil, nil
	}
	narrow := *w
	narrow.Kind, narrow.Size, narrow.Slide = plan.Tumble, types.IntervalValue{Micros: s.slide}, types.IntervalValue{}
	inner := &plan.Aggregate{Input: &narrow, Keys: append(slices.Clip(p.Keys), plan.Item{Expr: w.Start.Ref(), Col: w.Start}), Aggs: n.Aggs}
	if s.of, err = NewTimeWindow(&narrow); err != nil {
		return nil, err
	}
	s.prep, err = shared(inner)
	return s, err
}

// consumeSlices adds rows to the slices of a worker.
func (a *aggregate) consumeSlices(w int, m *flow.Morsel) error {
	l := &a.workers[w]
	cols, rows := m.Batch.Columns(), int(m.Batch.NumRows())
	if l.whole {
		return a.inWindows(w, m.Seq, cols, rows)
	}
	cols, rows, err := a.slices.of.Apply(a.env.Fn, cols, len(cols), rows)
	if err != nil {
		return OnRow(err, a.slices.window)
	}
	if at := cols[len(cols)-2]; at.NullN() > 0 { // of NULL there is but one window
		timed := selectValid(at, nil)
		if err := a.inWindows(w, m.Seq, kernels.TakeBatch(cols[:len(cols)-2], nullRows(at)), at.NullN()); err != nil || len(timed) == 0 {
			return err
		}
		cols, rows = kernels.TakeBatch(cols, timed), len(timed)
		m = morsel(a.input.Schema(), m.Seq, cols[:len(cols)-2], rows)
	}
	if l.slices == nil {
		l.slices, l.sliced = a.slices.prep.newGrouper(nil, true, 0), 0
	}
	evaluated, err := a.slices.prep.Eval(a.env.Fn, cols, rows)
	if err != nil {
		return err
	}
	if err := l.slices.add(evaluated, rows); err != nil {
		return err
	}
	l.sliced += rows
	if !l.judged {
		l.first = append(l.first, m)
		if l.sliced >= earlyRows {
			return a.judgeSlices(w)
		}
	} else if l.slices.n >= maxSlices {
		if err := a.mergeSlices(w); err != nil {
			return err
		}
	}
	return a.grown(w)
}

// judgeSlices gives a worker's first rows, and all that follow, to each of their windows where slices make too few of them.
func (a *aggregate) judgeSlices(w int) error {
	l := &a.workers[w]
	first := l.first
	l.judged, l.first = true, nil
	if each := int(a.slices.each); 5*each*l.slices.n < 4*(each-1)*l.sliced {
		return a.grown(w)
	}
	l.whole, l.slices = true, nil
	for _, m := range first {
		if err := a.inWindows(w, m.Seq, m.Batch.Columns(), int(m.Batch.NumRows())); err != nil {
			return err
		}
	}
	return nil
}

// nullRows lists the rows that are NULL.
func nullRows(a arrow.Array) []int32 {
	out := make([]int32, 0, a.NullN())
	for i := range a.Len() {
		if a.IsNull(i) {
			out = append(out, int32(i))
		}
	}
	return out
}

// inWindows gives rows to each of their windows.
func (a *aggregate) inWindows(w int, seq int64, cols []arrow.Array, rows int) error {
	cols, rows, err := a.slices.rows.Apply(a.env.Fn, cols, len(cols), rows)
	if err != nil {
		return OnRow(err, a.slices.window)
	}
	return a.consume(w, morsel(a.slices.schema, seq, cols, rows))
}

// mergeSlices merges what a worker's slices have gathered into their windows, and begins anew.
func (a *aggregate) mergeSlices(w int) error {
	l := &a.workers[w]
	s, g := l.slices, l.groupers[0]
	if l.slices = nil; s == nil || s.n == 0 {
		return nil
	}
	l.kept, l.decided = nil, true // of rows that are in slices none is parted
	keys := s.table.Keys(0, s.n)
	first := kernels.Values[int64](keys[len(keys)-1])
	size, slide := a.slices.size, a.slices.slide
	starts, into := make([]int64, s.n), make([]uint32, s.n)
	for i, t := range first[:s.n] {
		starts[i] = t - (size - slide) // of the first window that the slice lies in
	}
	for range a.slices.each {
		cols := make([]arrow.Array, len(g.set))
		for i, k := range g.set {
			switch at := a.slices.keyAt[k]; at {
			case plan.StartKey:
				cols[i] = kernels.NewFixed(a.slices.rows.edge, starts, nil)
			case plan.EndKey:
				ends := make([]int64, s.n)
				for i, t := range starts {
					ends[i] = t + size
				}
				cols[i] = kernels.NewFixed(a.slices.rows.edge, ends, nil)
			default:
				cols[i] = keys[at]
			}
		}
		g.table.FindOrAdd(cols, s.n, into)
		if n := g.table.Len(); n > g.n {
			g.resize(n)
		}
		for i, acc := range g.accs {
			if a.prep.calls[i].of >= 0 {
				continue
			}
			if err := acc.Merge(s.accs[i], into); err != nil {
				return err
			}
		}
		next := make([]int64, s.n)
		for i, t := range starts {
			next[i] = t + slide
		}
		starts = next
	}
	l.rows += l.sliced * int(a.slices.each)
	l.sliced = 0
	return nil
}
