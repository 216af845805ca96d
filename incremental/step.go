package incremental

import (
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/exec"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/fn"
)

// Input is everything that a step depends on. Replaying the inputs of a run gives the outputs of the run.
type Input struct {
	Now    time.Time
	Pushes []Push
	Ticks  []Tick
}

// Push is rows of one split, in their order, and what follows them there.
type Push struct {
	Source int    // position in Graph.Sources
	Split  string // "" for a source without splits
	Batch  arrow.RecordBatch
	Places *flow.Places // of the rows; nil: not known
	// Lent is memory that Batch lies in and that is taken away behind the step; only a graph that borrows may be given it.
	Lent flow.Lent
	Bad  []flow.BadRow
	// Watermark is set by hand behind the rows, for the whole source.
	Watermark *flow.Watermark
	// Idle: behind the rows the split is silent, until its next row, in this step or a later one. The runner says so after the
	// idle timeout.
	Idle bool
	// End: the split has ended.
	End bool
}

// TickKind is what happened besides rows.
type TickKind uint8

const (
	SplitOpened TickKind = iota + 1 // the split exists; until its first row it holds the watermark back
	SourceEnded                     // no more rows of any split
)

// Tick is an input of a step that is no row. Ticks count at the step's end, after its pushes.
type Tick struct {
	Source int
	Split  string
	Kind   TickKind
}

// Output is what a step shows, whole.
type Output struct {
	// Delta holds the step's changes. Its weight column is there exactly when the emit policy is IMMEDIATE or EVERY.
	Delta flow.Delta
	// Pieces are further changes of the step, of a graph that shows them as they come (ShowPieces).
	Pieces   []flow.Delta
	Late     []LateRows
	Bad      []flow.BadRow
	Backward []Backward
}

// LateRows are rows of __late.
type LateRows struct {
	Source, Split string
	Batch         arrow.RecordBatch // the columns that the source reads, with weights if it is updating
}

// Backward is a watermark set by hand that went back and was ignored.
type Backward struct {
	Source   string
	Had, Got flow.Watermark
}

// Step runs one step. After an error the graph is unusable: restore a snapshot into a new one.
func (g *Graph) Step(in Input) (Output, error) {
	if g.failed != nil {
		return Output{}, errs.New(errs.Usage, "step", "an earlier step of this run failed: %w", g.failed)
	}
	out, err := g.run(in)
	if err != nil {
		g.failed = err
	}
	return out, err
}

func (g *Graph) run(in Input) (Output, error) {
	var out Output
	env := &fn.Env{Now: in.Now, TimeZone: g.opts.TimeZone, Rand: g.opts.Rand, Ctx: g.ctx}
	g.step++
	g.lent = g.lent[:0]
	for _, p := range in.Pushes {
		if p.Lent != nil {
			g.lent = append(g.lent, p.Lent)
		}
	}
	if err := g.feed(env, in, &out); err != nil {
		return out, err
	}
	for _, n := range g.nodes {
		if err := g.runNode(env, n); err != nil {
			return out, exec.OnRow(err, n.of)
		}
		out.Bad = append(out.Bad, n.left...)
	}
	err := g.show(in.Now, &out)
	if err == nil {
		err = g.evict()
	}
	for _, n := range g.nodes {
		n.out, n.left = nil, nil
	}
	for _, s := range g.sources {
		s.out = nil
	}
	return out, err
}

// feed gives the pushes to their sources and then counts the ticks.
func (g *Graph) feed(env *fn.Env, in Input, out *Output) error {
	for _, p := range in.Pushes {
		if p.Source < 0 || p.Source >= len(g.sources) {
			return errs.Bug("step", "a push names source %d of %d", p.Source, len(g.sources))
		}
		if err := g.sources[p.Source].push(env, p, out); err != nil {
			return err
		}
	}
	for _, t := range in.Ticks {
		s := g.sources[t.Source]
		switch t.Kind {
		case SplitOpened:
			s.split(t.Split)
		case SourceEnded:
			s.ended = true
		}
	}
	for _, s := range g.sources {
		s.finish()
	}
	if len(out.Backward) > 0 && g.opts.StrictWatermarks {
		b := out.Backward[0]
		return errs.New(errs.Watermark, "step", "the watermark of %s was set back from %s to %s", b.Source, stamp(b.Had), stamp(b.Got))
	}
	return nil
}

func stamp(w flow.Watermark) string {
	switch w {
	case flow.NoWatermark:
		return "the beginning"
	case flow.EndWatermark:
		return "the end"
	}
	return time.UnixMicro(int64(w)).UTC().Format("2006-01-02 15:04:05.999999")
}

// runNode applies all inputs of a node and then advances it.
func (g *Graph) runNode(env *fn.Env, n *node) error {
	n.wm = flow.EndWatermark
	inputs := make([][]flow.Delta, 0, len(n.inputs)+1)
	if n.source != nil {
		inputs, n.wm = append(inputs, n.source.out), n.source.seen()
	}
	for _, in := range n.inputs {
		inputs, n.wm = append(inputs, in.out), min(n.wm, in.wm)
	}
	if len(n.inst) == 1 || n.keyed == nil {
		return g.runPlain(env, n, inputs)
	}
	return g.runKeyed(env, n, inputs)
}

// smallStep is the number of rows below which a node is not worth a second goroutine.
const smallStep = 4096

// runPlain runs a node of one instance; a stateless one may take several deltas at once.
func (g *Graph) runPlain(env *fn.Env, n *node, inputs [][]flow.Delta) error {
	if n.keyed == nil && g.opts.Parallelism > 1 && len(inputs) == 1 && len(inputs[0]) > 1 && rowsOf(inputs) > smallStep {
		return g.runSpread(env, n, inputs[0])
	}
	ctx := n.ctx(env, g)
	for port, deltas := range inputs {
		for _, d := range deltas {
			if err := interrupted(g.ctx); err != nil {
				return err
			}
			if n.keyed == nil {
				if err := processPlain(n.inst[0], ctx, port, d); err != nil {
					return err
				}
				continue
			}
			in, err := n.keyed[0].Prepare(env, port, d)
			if err != nil {
				return err
			}
			if err := n.inst[0].Process(ctx, port, in); err != nil {
				return err
			}
		}
	}
	if err := n.inst[0].Advance(ctx, n.wm); err != nil {
		return err
	}
	n.collect(ctx)
	return nil
}

// processPlain gives a delta to an operator without keys.
func processPlain(op Operator, ctx *Ctx, port int, d flow.Delta) error {
	if p, ok := op.(*project); ok && p.at != nil {
		if b := late(d); b != nil {
			return p.passLate(ctx, b)
		}
	}
	return op.Process(ctx, port, batchOf(d))
}

// runSpread runs a stateless node over its deltas side by side; the output keeps their order.
func (g *Graph) runSpread(env *fn.Env, n *node, deltas []flow.Delta) error {
	ctxs := make([]*Ctx, len(deltas))
	err := parallel(g.opts.Parallelism, len(deltas), func(i int) error {
		ctxs[i] = n.ctx(env, g)
		return processPlain(n.inst[0], ctxs[i], 0, deltas[i])
	})
	if err != nil {
		return err
	}
	last := n.ctx(env, g)
	if err := n.inst[0].Advance(last, n.wm); err != nil {
		return err
	}
	for _, c := range ctxs {
		n.collect(c)
	}
	n.collect(last)
	return nil
}

// runKeyed hands each row to the instance that owns its key group and runs the instances.
func (g *Graph) runKeyed(env *fn.Env, n *node, inputs [][]flow.Delta) error {
	type piece struct {
		port int
		d    flow.Delta
	}
	var pieces []piece
	for port, deltas := range inputs {
		for _, d := range deltas {
			pieces = append(pieces, piece{port, d})
		}
	}
	workers := 1
	if rowsOf(inputs) > smallStep {
		workers = g.opts.Parallelism
	}
	shares := make([][]Batch, len(pieces))
	// Programs and encoders are not shared: piece i is prepared by worker w with instance w.
	err := parallelBy(workers, len(pieces), func(w, i int) error {
		in, err := n.keyed[w].Prepare(env, pieces[i].port, pieces[i].d)
		if err == nil {
			shares[i] = exchange(in, len(n.inst))
		}
		return err
	})
	if err != nil {
		return err
	}
	ctxs := make([]*Ctx, len(n.inst))
	err = parallel(workers, len(n.inst), func(w int) error {
		ctxs[w] = n.ctx(env, g)
		for i, p := range pieces {
			if err := interrupted(g.ctx); err != nil {
				return err
			}
			if shares[i][w].N > 0 {
				if err := n.inst[w].Process(ctxs[w], p.port, shares[i][w]); err != nil {
					return err
				}
			}
		}
		return n.inst[w].Advance(ctxs[w], n.wm)
	})
	if err != nil {
		return err
	}
	for _, c := range ctxs {
		n.collect(c)
	}
	return nil
}

func rowsOf(inputs [][]flow.Delta) int {
	rows := 0
	for _, deltas := range inputs {
		for _, d := range deltas {
			rows += d.Rows()
		}
	}
	return rows
}
