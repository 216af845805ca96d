// Package exec runs a logical plan over bounded input: pull, morsels, P workers.
//
// Every operator is pulled by a fixed number of workers at once. Streaming operators (filter, project, probe)
// work on the morsel that they pulled; breakers (aggregate, join build, sort) drain their input with P
// goroutines at the first pull and then hand out what they hold.
//
// Invariant: the morsels that one worker pulls come in rising Seq, so that a merge by Seq restores scan order.
package exec

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/core/clock"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/spill"
	"github.com/riverbed/riverbed/core/types"
)

// ChunkRows is the size of the batches that breakers hand out.
const ChunkRows = 16 << 10

// Env is what operators share during one run.
type Env struct {
	Fn      *fn.Env
	Workers int // at least 1
	Memory  *Budget
	// Spill is where breakers put what the budget has no room for; nil: they fail instead.
	Spill *spill.Dir
	// Profile receives rows and time per node when set (EXPLAIN ANALYZE).
	Profile *Profile
	// Bad takes the rows that guards left out; any worker calls it. May be nil.
	Bad func([]flow.BadRow)

	shared map[plan.Node]*kept // nodes with several parents
}

// Operator is a physical operator. Next is called by worker 0 … workers-1, each from one goroutine at a time.
type Operator interface {
	// Schema is the Arrow schema of every batch.
	Schema() *arrow.Schema
	// Next returns the worker's next morsel, possibly without rows, or nil at its end.
	Next(ctx context.Context, worker int) (*flow.Morsel, error)
	Close() error
}

// Profile gathers what each node did.
type Profile struct {
	mu    sync.Mutex
	nodes map[plan.Node]*NodeProfile
}

// NodeProfile is the work of one node, inputs included in Time.
type NodeProfile struct {
	Rows, Batches atomic.Int64
	Nanos         atomic.Int64
}

// Of returns the entry of a node.
func (p *Profile) Of(n plan.Node) *NodeProfile {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.nodes == nil {
		p.nodes = map[plan.Node]*NodeProfile{}
	}
	e := p.nodes[n]
	if e == nil {
		e = &NodeProfile{}
		p.nodes[n] = e
	}
	return e
}

var wall clock.Wall

// OnRow says on whose rows an operator failed; the innermost operator knows.
func OnRow(err error, n plan.Node) error {
	e := errs.As(err)
	if e.Row == nil || e.Row.Of != "" {
		return err
	}
	named := *e
	named.Row = &errs.Row{Of: plan.InputRows(n), Values: e.Row.Values}
	return &named
}

// observed is the one wrapper around all operators: cancellation, the name of what failed, and the profile when asked for.
type observed struct {
	Operator
	node plan.Node
	prof *NodeProfile
}

func (o *observed) Next(ctx context.Context, worker int) (*flow.Morsel, error) {
	if err := ctx.Err(); err != nil {
		return nil, errs.New(errs.Cancelled, "run", "the query was cancelled")
	}
	if o.prof == nil {
		m, err := o.Operator.Next(ctx, worker)
		if err != nil {
			err = OnRow(err, o.node)
		}
		return m, err
	}
	start := wall.Now() // measures, never decides
	m, err := o.Operator.Next(ctx, worker)
	if err != nil {
		err = OnRow(err, o.node)
	}
	o.prof.Nanos.Add(int64(wall.Now().Sub(start)))
	if m != nil {
		o.prof.Rows.Add(m.Batch.NumRows())
		o.prof.Batches.Add(1)
	}
	return m, err
}

func (o *observed) narrow(m *membership) {
	if n, ok := o.Operator.(narrowed); ok {
		n.narrow(m)
	}
}

// Build makes the operators of a plan whose top is pulled by `workers` goroutines.
func Build(n plan.Node, env *Env, workers int) (Operator, error) {
	if s := env.shared[n]; s != nil {
		return s.sharedBy(n, env)
	}
	return buildObserved(n, env, workers)
}

func buildObserved(n plan.Node, env *Env, workers int) (Operator, error) {
	op, err := build(n, env, workers)
	if err != nil {
		return nil, err
	}
	o := &observed{Operator: op, node: n}
	if env.Profile != nil {
		o.prof = env.Profile.Of(n)
	}
	return o, nil
}

func build(n plan.Node, env *Env, workers int) (Operator, error) {
	switch n := n.(type) {
	case *plan.Scan:
		return newScan(n, env, workers)
	case *plan.Normalize:
		return newNormalize(n, env)
	case *plan.Values:
		return newValues(n, env)
	case *plan.Filter:
		return newFilter(n, env, workers)
	case *plan.Project:
		return newProject(n, env, workers)
	case *plan.TimeWindow:
		return newTimeWindow(n, env, workers)
	case *plan.Recursive:
		return newRecursive(n, env)
	case *plan.Unnest:
		return newUnnest(n, env, workers)
	case *plan.Aggregate:
		return newAggregate(n, env, workers)
	case *plan.Distinct:
		return newDistinct(n, env, workers)
	case *plan.Join:
		return newJoin(n, env, workers)
	case *plan.Sort:
		return newSort(n.Input, n.Keys, n.Tie, 0, -1, env)
	case *plan.TopN:
		return newSort(n.Input, n.Keys, n.Tie, n.Offset, n.Limit, env)
	case *plan.GroupTopN:
		return newGroupTopN(n, env)
	case *plan.Window:
		return newOver(n, env)
	case *plan.Limit:
		return newLimit(n, env)
	case *plan.SetOp:
		return newSetOp(n, env, workers)
	}
	return nil, errs.New(errs.Unsupported, "plan", "%T is not supported in batch mode", n)
}

// layoutOf maps column IDs to positions.
func layoutOf(cols []plan.Column) map[expr.ColID]int {
	m := make(map[expr.ColID]int, len(cols))
	for i, c := range cols {
		m[c.ID] = i
	}
	return m
}

func schemaOf(cols []plan.Column) *arrow.Schema {
	fields := make([]types.Field, len(cols))
	for i, c := range cols {
		fields[i] = types.Field{Name: c.Name, Type: c.Type}
	}
	return types.ArrowSchema(fields)
}

func typesOf(cols []plan.Column) []types.Type {
	out := make([]types.Type, len(cols))
	for i, c := range cols {
		out[i] = c.Type
	}
	return out
}

// morsel makes a morsel of columns.
func morsel(s *arrow.Schema, seq int64, cols []arrow.Array, n int) *flow.Morsel {
	return &flow.Morsel{Seq: seq, Batch: array.NewRecordBatch(s, cols, int64(n))}
}

// once runs a breaker's work at the first pull; every worker waits for it and sees its error.
type once struct {
	sync.Once
	err error
}

func (o *once) do(f func() error) error {
	o.Once.Do(func() { o.err = f() })
	return o.err
}

// drain pulls an operator to its end with `workers` goroutines; consume is called by each with its own morsels.
func drain(ctx context.Context, op Operator, workers int, consume func(worker int, m *flow.Morsel) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	work := func(w int) error {
		for {
			m, err := op.Next(ctx, w)
			if err != nil || m == nil {
				return err
			}
			if m.Batch.NumRows() == 0 {
				continue
			}
			if err := consume(w, m); err != nil {
				return err
			}
		}
	}
	return parallel(cancel, workers, work)
}

// parallel runs work on each worker and returns the first error; a panic of a worker becomes an error.
func parallel(cancel func(), workers int, work func(w int) error) error {
	if workers == 1 {
		return guard(func() error { return work(0) })
	}
	var first error
	var mu sync.Mutex
	var wg sync.WaitGroup
	for w := 0; w < workers; w++ {
		wg.Add(1)
		go func() {
			defer wg.Done()
			if err := guard(func() error { return work(w) }); err != nil {
				mu.Lock()
				// A cancellation that follows from another worker's failure must not hide it.
				if first == nil || errs.Is(first, errs.Cancelled) {
					first = err
				}
				mu.Unlock()
				cancel()
			}
		}()
	}
	wg.Wait()
	return first
}

// guard turns a panic of the goroutine into an error.
// AIDEV-NOTE: every goroutine of the library must recover; an unrecovered panic ends the user's process.
func guard(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = errs.Recovered("run", r)
		}
	}()
	return f()
}
