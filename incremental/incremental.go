// Package incremental runs a plan on changes: a graph of delta operators that a step loop drives.
//
// A step takes rows and ticks, lets every operator, inputs first, apply all its input and then advance to the least of
// its inputs' watermarks, and shows the consolidated output whole. The graph has no clock, queue or goroutine of its own,
// except that one operator's instances may run side by side, each on its range of key groups.
//
// Invariant: the output accumulated up to a step is the batch answer over the rows taken up to that step, for any
// cutting of the input into steps and any parallelism; a step is a function of the graph's state and its Input.
package incremental

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/clock"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/state"
)

// Options are the settings that a graph depends on.
type Options struct {
	Parallelism       int   // instances of each keyed operator; 0 is 1
	AllowedLatenessMS int64 // for streams that declare none
	IdleTimeoutMS     int64 // for streams that declare none; the runner tells
	MaxWatermarkLagMS int64 // bound of every allowed lateness; 0 is no bound
	// StrictRetractions makes a retraction of a row that was never there an error, as in tests; otherwise it is counted.
	StrictRetractions bool
	// StrictWatermarks makes a watermark set backwards by hand an error; otherwise it is reported and ignored.
	StrictWatermarks bool
	// TrackChanges starts the dirty lists of all state tables.
	TrackChanges bool
	// OpenStore makes the store where rows go when the state tables hold more than StateLimit bytes, or more than StateRoom has, where there is
	// one; it is called when the first row goes. nil: all state stays in memory.
	OpenStore  func() (state.Store, error)
	StateLimit int64
	StateRoom  *state.Room // shared with other graphs
	TimeZone   *time.Location
	Rand       clock.Rand
}

// Graph is a plan compiled to delta operators, with their state.
type Graph struct {
	opts    Options
	query   *plan.Query
	emit    plan.EmitPolicy
	sources []*source
	// retracts names the streams that bring retractions, in quotes.
	retracts []string
	nodes    []*node // inputs first
	root     *node
	schema   *arrow.Schema // of what is shown
	once     bool          // the root's changes of a step are consolidated as they are
	borrows  bool
	pieces   bool

	step    flow.Step
	pending []flow.Delta // EMIT EVERY: changes not yet shown
	clocked bool         // rows come and go as time passes
	shownAt time.Time    // EMIT EVERY: the Now of the last emission, or of the first step
	failed  error
	cold    *state.Cold // where rows of these tables go
	evicts  []evicted
	pressed bool           // rows that should have left have changes that no checkpoint has
	room    *state.Share   // nil: all state stays in memory
	tables  []state.Stored // all, where there is a limit
	lent    []flow.Lent    // of the pushes of this step

	ctx context.Context // of the steps to come; may be nil
}

// RunIn sets the context of the steps to come. Functions of the host get it; its end interrupts a running step, and
// with it ends the graph.
func (g *Graph) RunIn(ctx context.Context) { g.ctx = ctx }

// ShowPieces makes the graph show changes in the batches in which they came out, where their rows need not be put together: for who
// sums them up anyway. Retractions need not come first then.
func (g *Graph) ShowPieces() { g.pieces = true }

// node is an operator in its place in the graph.
type node struct {
	path     string // stable in a stored plan: 0 is the root, 0/1 its second input
	name     string
	inputs   []*node
	source   *source // of a scan
	inst     []Operator
	keyed    []Keyed // the same instances, when the operator is keyed
	schema   *arrow.Schema
	updating bool

	out  []flow.Delta
	wm   flow.Watermark
	rows int64
	bad  int64
	left []flow.BadRow // of this step, by the guard of a scan
	of   plan.Node     // for messages
}

func (n *node) ctx(env *fn.Env, g *Graph) *Ctx {
	c := &Ctx{Env: env, Strict: g.opts.StrictRetractions, retracts: g.retracts, schema: n.schema, lent: g.lent, run: g.ctx}
	if n.source != nil {
		c.In = append(c.In, n.source.seen())
	}
	for _, in := range n.inputs {
		c.In = append(c.In, in.wm)
	}
	return c
}

// makeLate tells a join, below projections of columns, that its reader drops most rows.
func (n *node) makeLate() {
	for _, op := range n.inst {
		switch op := op.(type) {
		case *project:
			if op.at != nil {
				n.inputs[0].makeLate()
			}
		case *join:
			op.late = true
		}
	}
}

// collect takes what an instance emitted.
func (n *node) collect(c *Ctx) {
	n.out = append(n.out, c.out...)
	n.rows += c.rows
	n.bad += c.bad
	n.left = append(n.left, c.left...)
}

// Sources tells what to push, in the order of Push.Source. Scans of one source share an entry.
func (g *Graph) Sources() []SourceInfo {
	out := make([]SourceInfo, len(g.sources))
	for i, s := range g.sources {
		out[i] = s.info()
	}
	return out
}

// Schema is the schema of Output.Delta, with the weight column where there is one.
func (g *Graph) Schema() *arrow.Schema { return g.schema }

// Stateless reports whether no operator remembers anything of rows to come: then a step costs the same for every row, and a large one only
// copies its rows together. A join becomes so when a bounded input has ended.
func (g *Graph) Stateless() bool {
	for _, n := range g.nodes {
		for _, k := range n.keyed {
			if p, ok := k.(interface{ passes() bool }); !ok || !p.passes() {
				return false
			}
		}
	}
	return g.emit != plan.EmitEvery
}

// Emit is the policy that the graph follows.
func (g *Graph) Emit() plan.EmitPolicy { return g.emit }

// Watermark is the watermark of the output after the last step.
func (g *Graph) Watermark() flow.Watermark {
	if g.step == 0 {
		return flow.NoWatermark
	}
	return g.root.wm
}

// SplitWatermarks tells, for the source at a position in Sources, how far each of its splits has come. Idle and ended splits are
// among them; a split without a row is at NoWatermark.
func (g *Graph) SplitWatermarks(source int) map[string]flow.Watermark {
	out := map[string]flow.Watermark{}
	for _, sp := range g.sources[source].splits {
		out[sp.ID] = sp.Watermark
	}
	return out
}

// Stats tells what the graph holds and did.
type Stats struct {
	Step           flow.Step
	StateRows      int64
	StateBytes     int64
	StateTouched   int64            // rows looked up, made or dropped in all steps
	BadRetractions int64            // of rows that were never there
	Late           map[string]int64 // by source, of those that have any
}

// OperatorStats is the part of one operator.
type OperatorStats struct {
	Path, Name     string
	RowsOut        int64
	StateRows      int64
	StateBytes     int64
	BadRetractions int64
}

// Steps is the number of steps so far.
func (g *Graph) Steps() flow.Step { return g.step }

// SplitState is where a split of a source stands.
type SplitState struct {
	ID          string
	Watermark   flow.Watermark // NoWatermark: it never had a row
	Idle, Ended bool
}

// Splits tells where the splits of a source stand, so that the runner can hold back those that are far ahead.
func (g *Graph) Splits(source int) []SplitState {
	s := g.sources[source]
	out := make([]SplitState, len(s.splits))
	for i, sp := range s.splits {
		out[i] = SplitState{sp.ID, sp.Watermark, sp.Idle, sp.Ended}
	}
	return out
}

// Stats counts.
func (g *Graph) Stats() Stats {
	s := Stats{Step: g.step}
	for _, n := range g.nodes {
		o := n.stats()
		s.StateRows += o.StateRows
		s.StateBytes += o.StateBytes
		s.BadRetractions += o.BadRetractions
		for _, t := range n.tables() {
			s.StateTouched += t.Touched()
		}
	}
	for _, src := range g.sources {
		if src.late > 0 {
			if s.Late == nil { // made when it is needed: the runner asks after each step
				s.Late = map[string]int64{}
			}
			s.Late[src.src.Name] += src.late
		}
	}
	return s
}

// Operators tells the same of each operator.
func (g *Graph) Operators() []OperatorStats {
	out := make([]OperatorStats, len(g.nodes))
	for i, n := range g.nodes {
		out[i] = n.stats()
	}
	return out
}

func (n *node) stats() OperatorStats {
	o := OperatorStats{Path: n.path, Name: n.name, RowsOut: n.rows, BadRetractions: n.bad}
	for _, t := range n.tables() {
		o.StateRows += int64(t.Len())
		o.StateBytes += t.Bytes()
	}
	return o
}

func (n *node) tables() []state.Stored {
	var out []state.Stored
	for _, k := range n.keyed {
		out = append(out, k.Tables()...)
	}
	return out
}

// Build compiles a bound and optimized query.
func Build(q *plan.Query, opts Options) (*Graph, error) {
	if opts.Parallelism < 1 {
		opts.Parallelism = 1
	}
	opts.Parallelism = min(opts.Parallelism, state.Groups)
	if opts.MaxWatermarkLagMS == 0 {
		opts.MaxWatermarkLagMS = 1 << 40
	}
	emit, _, err := plan.EmitFor(q)
	if err != nil {
		return nil, err
	}
	b := &builder{g: &Graph{opts: opts, query: q, emit: emit}, sources: map[*plan.Source]*source{}}
	root := unordered(q.Root)
	if err := plan.Check(root, plan.Incremental); err != nil {
		return nil, err
	}
	if err := checkPurity(root, emit); err != nil {
		return nil, err
	}
	if err := b.addSources(root); err != nil {
		return nil, err
	}
	if b.g.root, err = b.node(root, "0"); err != nil {
		return nil, err
	}
	b.g.once, b.g.borrows = settledOnce(root), borrows(root, emit)
	b.g.schema, err = shownSchema(q, root, emit)
	if err != nil {
		return nil, err
	}
	b.g.limitState()
	if opts.TrackChanges {
		for _, n := range b.g.nodes {
			for _, t := range n.tables() {
				t.Track()
			}
		}
	}
	return b.g, nil
}

// shownSchema is the schema that the user sees. The weight is there by policy, never by inference.
func shownSchema(q *plan.Query, root plan.Node, emit plan.EmitPolicy) (*arrow.Schema, error) {
	cols := root.Columns()
	if len(q.Names) != 0 && len(q.Names) != len(cols) {
		return nil, errs.Bug("plan", "the query names %d columns and its plan has %d", len(q.Names), len(cols))
	}
	fields := make([]arrow.Field, len(cols))
	for i, c := range cols {
		name := c.Name
		if len(q.Names) > 0 {
			name = q.Names[i]
		}
		fields[i] = c.Type.ArrowField(name)
	}
	s := arrow.NewSchema(fields, nil)
	if emit != plan.EmitOnWatermark {
		s = flow.WithWeights(s)
	}
	return s, nil
}

// unordered drops an ORDER BY at the top: a changelog has no order.
func unordered(n plan.Node) plan.Node {
	switch m := n.(type) {
	case *plan.Sort:
		return unordered(m.Input)
	case *plan.Project:
		if in := unordered(m.Input); in != m.Input {
			return m.With([]plan.Node{in})
		}
	}
	return n
}

type builder struct {
	g       *Graph
	sources map[*plan.Source]*source
}

// addSources makes one source stage per source, reading the columns that any scan needs.
func (b *builder) addSources(root plan.Node) error {
	need := map[*plan.Source]map[int]bool{}
	var order []*plan.Source
	plan.Walk(root, func(n plan.Node) bool {
		if s, ok := n.(*plan.Scan); ok {
			if need[s.Source] == nil {
				need[s.Source] = map[int]bool{}
				order = append(order, s.Source)
			}
			for _, at := range s.At {
				need[s.Source][at] = true
			}
		}
		return true
	})
	for _, s := range order {
		if len(need[s]) == 0 && len(s.Fields) > 0 {
			need[s][0] = true // a batch without columns cannot carry weights apart from its rows
		}
		src, err := newSource(s, need[s], b.g.opts)
		if err != nil {
			return err
		}
		b.sources[s] = src
		b.g.sources = append(b.g.sources, src)
		if s.Stream != nil && s.Stream.Updating() && s.Upsert == nil {
			b.g.retracts = append(b.g.retracts, strconv.Quote(s.Name))
		}
	}
	return nil
}

// node compiles n and its inputs.
func (b *builder) node(n plan.Node, path string) (*node, error) {
	out := &node{path: path, name: plan.OpOf(n).Name, of: n, schema: schemaOf(n.Columns()), updating: plan.Updating(n, b.g.emit), wm: flow.NoWatermark}
	if out.updating {
		out.schema = flow.WithWeights(out.schema)
	}
	if s, ok := n.(*plan.Scan); ok {
		out.source = b.sources[s.Source]
		if s.Source.Upsert != nil {
			out.schema = scanSchema(s)
		}
	}
	for i, c := range n.Children() {
		at := fmt.Sprintf("%s/%d", path, i)
		if _, s := hopOf(n, b.g.emit); s != nil {
			c, at = s.Window.Input, at+"/0" // the aggregate does the window's work
		}
		in, err := b.node(c, at)
		if err != nil {
			return nil, err
		}
		out.inputs = append(out.inputs, in)
	}
	instances := 1
	for len(out.inst) < instances {
		op, err := b.operator(n)
		if err != nil {
			return nil, err
		}
		out.inst = append(out.inst, op)
		if k, ok := op.(Keyed); ok {
			out.keyed = append(out.keyed, k)
			instances = b.g.opts.Parallelism
			if o, ok := op.(interface{ own(instance, of int) }); ok {
				o.own(len(out.inst)-1, instances)
			}
		}
	}
	if _, ok := out.inst[0].(*firstRows); ok {
		out.inputs[0].makeLate()
	}
	b.g.nodes = append(b.g.nodes, out)
	return out, nil
}

// operator makes one instance of a node's operator.
func (b *builder) operator(n plan.Node) (Operator, error) {
	switch n := n.(type) {
	case *plan.Scan:
		return newScan(n, b.sources[n.Source])
	case *plan.Normalize:
		return newNormalize(n, b.sources[n.Input.(*plan.Scan).Source])
	case *plan.Values:
		return &values{node: n}, nil
	case *plan.Filter:
		if plan.TemporalFilter(n) {
			b.g.clocked = true
			return newTemporalFilter(n)
		}
		return newFilter(n)
	case *plan.Project:
		return newProject(n)
	case *plan.Unnest:
		return newUnnest(n)
	case *plan.TimeWindow:
		if n.Kind == plan.Session {
			return newSession(n, b.g.emit)
		}
		return newTimeWindow(n)
	case *plan.Aggregate:
		if a, s := hopOf(n, b.g.emit); s != nil {
			return newHopAggregate(a, s, b.g.emit)
		}
		return newAggregate(n, b.g.emit)
	case *plan.Distinct:
		return newDistinct(n)
	case *plan.Join:
		return newJoin(n, b.g.emit)
	case *plan.TopN:
		return newTopN(n, b.g.emit)
	case *plan.GroupTopN:
		return newGroupTopN(n, b.g.emit)
	case *plan.Window:
		return newOver(n, b.g.emit)
	case *plan.SetOp:
		if n.Kind == plan.Union && n.All {
			return unionAll{}, nil
		}
		return newSetOp(n, b.g.emit)
	}
	return nil, errs.New(errs.Unsupported, "plan", "%s is not supported in incremental mode", plan.OpOf(n).Name)
}

// settled reports whether what the watermark has passed stays as it is below n: no source changes rows behind it.
func settled(n plan.Node) bool {
	ok := true
	plan.Walk(n, func(m plan.Node) bool {
		if s, is := m.(*plan.Scan); is && (s.Source.Table || s.Source.Stream != nil && s.Source.Stream.Updating()) {
			ok = false
		}
		return ok
	})
	return ok
}
