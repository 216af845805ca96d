package riverbed

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/riverbed/riverbed/core/clock"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/rules"
	"github.com/riverbed/riverbed/core/types"
	"github.com/riverbed/riverbed/incremental"
)

// runner drives a graph: readers run ahead of it into one bounded queue, the loop cuts steps from the queue, and
// each step's output goes to deliver. Only the loop touches the graph.
type runner struct {
	s        *Session
	q        *Query
	cfg      *config // as of the start
	name     string  // by which __late and __bad know it
	graph    *incremental.Graph
	fields   []types.Field
	updating bool
	every    time.Duration
	stepRows int // at which a step is full
	until    string
	deliver  func(ctx context.Context, d flow.Delta) error
	abandon  func(cause error)     // ends what a sink waits for
	borrows  bool                  // rows that lie in lent memory are stepped as they are, and deliver releases what a delta lies in
	finish   func(err error) error // may be nil: after the last step
	plan     *plan.Query           // that the graph was built of
	durable  *durable              // nil: the run does not survive its process
	patience *clock.Patience       // of a pipeline with its sink and its checkpoints; nil: what fails five times ends the run
	sources  *clock.Patience       // and with what it reads, for which a run that is to end does not wait

	caller      context.Context // its end is an error; stop and close are not
	ctx         context.Context // of the loop
	cancel      context.CancelFunc
	reading     context.Context // of readers of streams: ends before ctx when the run is drained
	stopReading context.CancelFunc
	feed        chan fed
	held        *fed         // taken from feed, for the next step
	queued      atomic.Int64 // rows in feed
	readers     sync.WaitGroup
	inputs      []*input
	tables      tableFeed

	stopping chan bool     // drain or not
	drained  chan struct{} // closed when the readers have left and feed gets no more
	done     chan struct{}
	err      error // once done is closed

	mu    sync.Mutex // metrics
	stats Metrics
}

// input is one source of a run.
type input struct {
	info   incremental.SourceInfo
	stream flow.Stream // nil for a relation
	leave  func()      // of a stream that was attended
	splits map[string]*splitFeed
	past   map[string]flow.Position // splits that had ended when the run began, until its first barrier
	done   int                      // splits that have ended and are not among splits
	ended  bool
	listed bool // the source has said which splits it has
	open   int  // splits not ended
	all    bool // no further splits will come
	once   bool // a table that ends behind its first change
	stats  SourceMetrics

	unsettled map[string]bool // splits that have not told yet where they began; a checkpoint waits for them
}

// splitFeed is what the loop remembers of one split.
type splitFeed struct {
	last  time.Time // of the last row, or of the end of holding it back
	idle  bool
	ended bool
	gate  *gate
	txn   []incremental.Push // of a source transaction that has not ended

	at      flow.Position // behind the last row that was given to a step
	read    flow.Position // behind the last row taken, that of an open transaction included
	resumed bool          // known from a checkpoint; its reader has not come yet

	txnBytes int64 // of txn
}

// statelessRows are enough for a step without state: its fixed cost no longer counts.
const statelessRows = 4096

// shortestTick keeps a clock that stands just before an interval's end from being asked again and again.
const shortestTick = time.Millisecond

// idleTick is how often it is asked whether a source that was silent has answered.
const idleTick = 100 * time.Millisecond

// buildGraph compiles the query for incremental mode.
func (q *Query) buildGraph(opts incremental.Options) (*incremental.Graph, *plan.Query, error) {
	if err := q.refuseSystem(); err != nil {
		return nil, nil, errs.As(err).WithSQL(q.text)
	}
	opt, _, err := rules.Optimize(q.live, rules.Incremental, q.ruleOptions())
	if err != nil {
		return nil, nil, errs.As(err).WithSQL(q.text)
	}
	g, err := incremental.Build(opt, opts)
	if err != nil {
		return nil, nil, errs.As(err).WithSQL(q.text)
	}
	return g, opt, nil
}

func (s *Session) graphOptions() incremental.Options {
	c := s.cfg.Load()
	return incremental.Options{Parallelism: c.parallelism, IdleTimeoutMS: c.idleTimeout, MaxWatermarkLagMS: c.maxWatermarkLag,
		StrictRetractions: c.strictRetraction, TimeZone: c.zone, Rand: s.rand}
}

// runOptions say how a query runs.
type runOptions struct {
	name    string // by which __late and __bad know the run
	until   string // "" or "latest"
	deliver func(ctx context.Context, d flow.Delta) error
	durable bool // what changes is noted, for checkpoints
	patient bool // services that are away are waited for
}

// newRunner compiles the query and opens its sources; start lets it run.
func (q *Query) newRunner(ctx context.Context, o runOptions) (*runner, error) {
	if o.until != "" && o.until != "latest" {
		return nil, errs.New(errs.Usage, "run", "until must be empty or 'latest', not %q", o.until)
	}
	opts := q.s.graphOptions()
	opts.TrackChanges = o.durable
	q.s.cfg.Load().limitState(&opts)
	g, opt, err := q.buildGraph(opts)
	if err != nil {
		return nil, err
	}
	r := &runner{s: q.s, q: q, cfg: q.s.cfg.Load(), name: o.name, graph: g, plan: opt, fields: q.columns, updating: plan.Updating(opt.Root, g.Emit()), until: o.until, deliver: o.deliver,
		caller: ctx, feed: make(chan fed, feedDepth), stopping: make(chan bool, 1), drained: make(chan struct{}), done: make(chan struct{})}
	r.stepRows = r.cfg.stepRows
	if g.Emit() == plan.EmitEvery {
		r.every = time.Duration(opt.EveryUS) * time.Microsecond
	}
	r.ctx, r.cancel = context.WithCancel(ctx)
	g.RunIn(r.ctx)
	reading := r.ctx
	if o.patient {
		limit := time.Duration(r.cfg.maxOutage) * time.Millisecond
		r.patience, r.sources = clock.NewPatience(q.s.clock, limit), clock.NewPatience(q.s.clock, limit)
		reading = r.sources.In(reading)
	}
	r.reading, r.stopReading = context.WithCancel(reading)
	r.stats.State, r.stats.Pipeline = "starting", o.name
	if q.follows {
		q.s.late.skip(o.name)
		q.s.bad.skip(o.name)
	}
	for _, info := range g.Sources() {
		in := &input{info: info, splits: map[string]*splitFeed{}, stats: SourceMetrics{Positions: map[string]string{}}}
		if info.Source.Stream != nil {
			if in.stream, err = streamOf(r.ctx, info.Source, o.until); err != nil {
				r.cancel()
				_ = g.Close()
				return nil, ofSource(info.Source.Name, err)
			}
		}
		r.inputs = append(r.inputs, in)
	}
	return r, nil
}

// start runs readers and loop; ended is called once, when all of it is over.
func (r *runner) start(ended func()) {
	r.s.mu.Lock() // so that of all its tables the run sees one moment
	var first []tableDelta
	for i, in := range r.inputs {
		if in.info.Source.Table && !in.ended {
			first = append(first, r.watchTable(i, in)...)
		}
	}
	r.tables.push(first)
	r.s.mu.Unlock()
	for i, in := range r.inputs {
		if p, ok := in.stream.(pushed); ok {
			in.stream, in.leave = p.Attend()
		}
		from := in.resumed()
		switch {
		case in.info.Source.Table || in.ended:
		case in.stream != nil:
			r.read(func() { r.readStream(i, in.stream, from) })
		default:
			r.read(func() { r.readRelation(i, from[""].Position) })
		}
	}
	go func() {
		err := guarded(r.loop)
		r.s.feeds.remove(&r.tables) // first of all: a statement may wait
		if r.held != nil {
			giveBack(r.held.rows)
		}
		for _, in := range r.inputs {
			for _, sp := range in.splits {
				r.releaseTxn(sp)
				_ = keepLent(sp.txn, nil)
			}
		}
		r.cancel()
		r.closeReaders()
		for _, in := range r.inputs {
			if in.leave != nil {
				in.leave()
			}
		}
		if r.finish != nil {
			err = r.finish(err)
		}
		if closing := r.graph.Close(); err == nil {
			err = closing
		}
		r.end(err)
		ended()
	}()
}

// end publishes how the run ended. That it was closed is what its owner wanted; that the caller's context ended means
// that the output is not whole.
func (r *runner) end(err error) {
	if err != nil && errs.Is(err, errs.Cancelled) && r.caller.Err() == nil {
		err = nil
	}
	r.mu.Lock()
	r.stats.State = "stopped"
	if err != nil {
		err = errs.As(err).WithSQL(r.q.text)
		r.stats.State, r.stats.Error = "failed", err.Error()
	}
	r.err = err
	r.mu.Unlock()
	close(r.done)
}

// loop waits for input, cuts it into steps and runs them until the input ends or somebody stops it.
func (r *runner) loop() error {
	r.setState("running")
	for {
		c, err := r.gather()
		if err != nil {
			return err
		}
		if c == nil { // stopped
			return r.durable.finish()
		}
		if err := r.takeCut(c); err != nil {
			return err
		}
		if c.failed != nil {
			return c.failed
		}
		if r.allEnded() {
			return r.durable.finish()
		}
		if err := r.durable.afterStep(); err != nil {
			return err
		}
	}
}

// takeCut runs the step, if there is anything to run it for. Statements that wait for it go on in any case.
func (r *runner) takeCut(c *cut) error {
	defer c.done()
	if len(c.in.Pushes) == 0 && len(c.in.Ticks) == 0 && !c.tick && r.graph.Steps() > 0 {
		return nil
	}
	return r.step(c.in)
}

func (r *runner) setState(s string) {
	r.mu.Lock()
	r.stats.State = s
	r.mu.Unlock()
}

func (r *runner) allEnded() bool {
	for _, in := range r.inputs {
		if !in.ended {
			return false
		}
	}
	return true
}

// step runs one step and shows it.
func (r *runner) step(in incremental.Input) error {
	in.Now = r.s.clock.Now()
	out, err := r.graph.Step(in)
	if err != nil {
		err = r.q.failedStep(r.graph, in, err)
		_ = keepLent(in.Pushes, nil)
		return err
	}
	kept := r.q.kept(r.name, out)
	r.s.keep(r.name, kept)
	r.durable.keep(kept)
	r.holdBack()
	r.count(in, out)
	d := r.q.shown(out.Delta)
	d.Lent = keepLent(in.Pushes, d.Batch)
	return r.deliver(r.ctx, d)
}

// stop ends the run after its present step; with drain the input ends first. What does not answer by then is not waited for much longer.
func (r *runner) stop(drain bool) {
	select {
	case r.stopping <- drain:
	default:
	}
	if r.patience != nil {
		r.patience.Within(stopGrace)
		go r.giveUp()
	}
}

// giveUp ends what the sink waits for when a service has not answered for the whole grace. It looks again until the run has ended: what
// is slow may go on, fail later, and work again.
func (r *runner) giveUp() {
	for wait := stopGrace; ; wait = time.Second {
		select {
		case <-r.done:
			return
		case <-r.s.clock.After(wait):
		}
		if failure := r.patience.Overdue(); failure != nil {
			r.abandon(failure)
			return
		}
	}
}

// wait waits for the end of the run and returns its error.
func (r *runner) wait(ctx context.Context) error {
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
		return cancelled(ctx)
	}
}

// cancelled is the error of a wait whose context has ended.
func cancelled(ctx context.Context) error {
	return errs.New(errs.Cancelled, "run", "the run was cancelled: %w", ctx.Err())
}

// guarded turns a panic into an error.
// AIDEV-NOTE: every goroutine of the library must recover; an unrecovered panic ends the user's process.
func guarded(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = errs.Recovered("run", v)
		}
	}()
	return f()
}
