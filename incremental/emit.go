package incremental

import (
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/types"
)

// show turns the root's deltas into what the emit policy shows of this step.
func (g *Graph) show(now time.Time, out *Output) error {
	deltas := g.root.out
	if g.emit == plan.EmitEvery {
		deltas = g.every(now, deltas)
	}
	var b Batch
	switch {
	case g.root.updating && g.once && g.emit != plan.EmitEvery && g.pieces:
		for _, d := range deltas {
			out.Pieces = append(out.Pieces, flow.Delta{Batch: g.shown(batchOf(d))})
		}
	case g.root.updating && g.once && g.emit != plan.EmitEvery:
		b = retractionsFirst(deltas)
	case g.root.updating:
		b = consolidate(g.rootTypes(), deltas)
	default:
		b = concat(deltas)
	}
	out.Delta = flow.Delta{Batch: g.shown(b), Step: g.step, Watermark: g.root.wm}
	return nil
}

// every keeps the changelog back until the recorded time enters another interval, or the input has ended.
func (g *Graph) every(now time.Time, deltas []flow.Delta) []flow.Delta {
	if g.shownAt.IsZero() {
		g.shownAt = now
	}
	g.pending = append(g.pending, deltas...)
	interval := func(t time.Time) int64 { return types.FloorDiv(t.UnixMicro(), max(g.query.EveryUS, 1)) }
	if interval(now) == interval(g.shownAt) && g.root.wm != flow.EndWatermark {
		g.compact()
		return nil
	}
	g.shownAt = now
	deltas, g.pending = g.pending, nil
	return deltas
}

// Holds reports whether changes wait to be shown, of EMIT EVERY.
func (g *Graph) Holds() bool { return len(g.pending) > 0 }

// compactRows bounds how often pending changes are consolidated, compactParts how many batches wait.
const (
	compactRows  = 1 << 16
	compactParts = 64
)

// Clocked reports whether rows come and go as time passes.
func (g *Graph) Clocked() bool { return g.clocked }

// compact keeps the pending changelog from growing by changes that cancel.
func (g *Graph) compact() {
	if !g.root.updating || len(g.pending) < compactParts && rowsOf([][]flow.Delta{g.pending}) < compactRows || len(g.pending) < 2 {
		return
	}
	b := consolidate(g.rootTypes(), g.pending)
	cols := append(b.Cols, int64Array(b.W))
	g.pending = []flow.Delta{{Batch: array.NewRecordBatch(g.root.schema, cols, int64(b.N))}}
}

func (g *Graph) rootTypes() []types.Type { return columnTypes(g.query.Root.Columns()) }

// shown makes the batch that the user gets.
func (g *Graph) shown(b Batch) arrow.RecordBatch {
	cols := b.Cols
	if b.N == 0 {
		cols = make([]arrow.Array, g.schema.NumFields())
		for i, f := range g.schema.Fields() {
			cols[i] = kernels.Nulls(f.Type, 0)
		}
		return array.NewRecordBatch(g.schema, cols, 0)
	}
	if flow.HasWeights(g.schema) {
		cols = append(append(make([]arrow.Array, 0, len(cols)+1), cols...), weightArray(b.W, b.N))
	}
	return array.NewRecordBatch(g.schema, cols, int64(b.N))
}
