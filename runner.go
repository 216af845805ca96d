package riverbed

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/kernels"
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
	graph    *incremental.Graph
	infos    []incremental.SourceInfo
	fields   []types.Field
	updating bool
	every    time.Duration
	until    string
	deliver  func(ctx context.Context, d flow.Delta) error
	finish   func(err error) error // may be nil: after the last step

	ctx     context.Context
	cancel  context.CancelFunc
	feed    chan fed
	readers sync.WaitGroup
	inputs  []*input
	tables  tableFeed
	stepped []func() // tells statements that their change was stepped

	stopping chan bool // drain or not
	done     chan struct{}
	err      error

	mu    sync.Mutex // metrics
	stats Metrics
}

// input is one source of a run.
type input struct {
	info   incremental.SourceInfo
	stream flow.Stream // nil for a relation
	splits map[string]*splitFeed
	ended  bool
	open   int  // splits not ended
	all    bool // no further splits will come
	stats  SourceMetrics
}

// splitFeed is what the loop remembers of one split.
type splitFeed struct {
	last  time.Time // of the last row
	idle  bool
	ended bool
}

// feedDepth is how many reads may wait for the loop, all splits together; readRows is the most of one read.
const (
	feedDepth    = 16
	readRows     = 64 << 10
	splitPoll    = 3 * time.Second
	shortestTick = 10 * time.Millisecond
)

// newRunner compiles the query for incremental mode and opens its sources; start lets it run.
func (q *Query) newRunner(ctx context.Context, until string, deliver func(context.Context, flow.Delta) error) (*runner, error) {
	s := q.s
	if err := s.alive(); err != nil {
		return nil, err
	}
	opt, _, err := rules.Optimize(q.bound, rules.Incremental, q.options())
	if err != nil {
		return nil, errs.As(err).WithSQL(q.text)
	}
	g, err := incremental.Build(opt, s.graphOptions())
	if err != nil {
		return nil, errs.As(err).WithSQL(q.text)
	}
	r := &runner{s: s, q: q, graph: g, infos: g.Sources(), fields: q.columns, updating: plan.Updating(opt.Root, g.Emit()), until: until, deliver: deliver,
		feed: make(chan fed, feedDepth), stopping: make(chan bool, 1), done: make(chan struct{})}
	if g.Emit() == plan.EmitEvery {
		r.every = time.Duration(opt.EveryUS) * time.Microsecond
	}
	r.ctx, r.cancel = context.WithCancel(ctx)
	r.stats.State = "starting"
	for _, info := range r.infos {
		in := &input{info: info, splits: map[string]*splitFeed{}}
		if info.Source.Stream != nil {
			if in.stream, err = streamOf(r.ctx, info.Source, until); err != nil {
				r.cancel()
				return nil, err
			}
		} else if until != "" && until != "latest" {
			r.cancel()
			return nil, errs.New(errs.Usage, "subscribe", "until must be empty or 'latest', not %q", until)
		}
		in.stats.Positions = map[string]string{}
		r.inputs = append(r.inputs, in)
	}
	return r, nil
}

func (s *Session) graphOptions() incremental.Options {
	return incremental.Options{Parallelism: s.cfg.parallelism, IdleTimeoutMS: s.cfg.idleTimeout, MaxWatermarkLagMS: s.cfg.maxWatermarkLag,
		StrictRetractions: s.cfg.strictRetraction, TimeZone: s.zone, Rand: s.rand}
}

// start runs readers and loop; ended is called once, when all of it is over.
func (r *runner) start(ended func()) {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	r.startLocked(ended)
}

// startLocked is start with the session locked.
func (r *runner) startLocked(ended func()) {
	for i, in := range r.inputs {
		switch {
		case in.info.Source.Table:
			r.watchTable(i, in)
		case in.stream != nil:
			r.read(func() { r.readStream(i, in.stream) })
		default:
			r.read(func() { r.readRelation(i, in.info.Source.Relation) })
		}
	}
	go func() {
		err := guarded(r.loop)
		r.cancel()
		r.closeReaders()
		r.tables.close()
		if r.finish != nil {
			err = r.finish(err)
		}
		if err != nil && errs.Is(err, errs.Cancelled) {
			err = nil // the caller asked for it
		}
		if err != nil {
			err = errs.As(err).WithSQL(r.q.text)
		}
		r.mu.Lock()
		r.err = err
		r.stats.State = "stopped"
		if err != nil {
			r.stats.State, r.stats.Error = "failed", err.Error()
		}
		r.mu.Unlock()
		close(r.done)
		ended()
	}()
}

// loop waits for input, cuts it into steps and runs them until the input ends or somebody stops it.
func (r *runner) loop() error {
	defer func() { // an error leaves no statement waiting
		for _, f := range r.stepped {
			f()
		}
	}()
	r.mu.Lock()
	r.stats.State = "running"
	r.mu.Unlock()
	for {
		in := incremental.Input{}
		rows := 0
		if ended, err := r.gather(&in, &rows); err != nil || ended {
			return err
		}
		if len(in.Pushes) == 0 && len(in.Ticks) == 0 && r.every == 0 && r.graph.Stats().Step > 0 && !r.allEnded() {
			continue
		}
		if err := r.step(in, rows); err != nil {
			return err
		}
		if r.allEnded() {
			return nil
		}
	}
}

func (r *runner) allEnded() bool {
	for _, in := range r.inputs {
		if !in.ended {
			return false
		}
	}
	return true
}

// gather waits until there is something to step on and then takes what has come, up to the row budget of a step. It
// reports true when the run is to end without another step.
func (r *runner) gather(in *incremental.Input, rows *int) (bool, error) {
	timer := r.s.clock.After(r.nextTick())
	if r.allEnded() { // a query of constants alone: one step says it all
		return false, nil
	}
	select {
	case f := <-r.feed:
		if err := r.take(f, in, rows); err != nil {
			return false, err
		}
	case <-r.tables.ready():
	case <-timer:
	case drain := <-r.stopping:
		if !drain {
			return true, nil
		}
		for i, src := range r.inputs {
			if !src.ended {
				src.ended = true
				in.Ticks = append(in.Ticks, incremental.Tick{Source: i, Kind: incremental.SourceEnded})
			}
		}
		return false, nil
	case <-r.ctx.Done():
		return false, errs.New(errs.Cancelled, "run", "the run was cancelled")
	}
	for *rows < r.s.cfg.stepRows {
		select {
		case f := <-r.feed:
			if err := r.take(f, in, rows); err != nil {
				return false, err
			}
			continue
		default:
		}
		break
	}
	// A DML statement's changes belong to one step, so they are taken whole.
	deltas, stepped := r.tables.take()
	r.stepped = append(r.stepped, stepped)
	for _, d := range deltas {
		for i, src := range r.inputs {
			if src.info.Source.Relation == flow.Relation(d.table) {
				b := tablePush(src.info, d)
				in.Pushes = append(in.Pushes, incremental.Push{Source: i, Batch: b})
				*rows += int(b.NumRows())
			}
		}
	}
	r.idle(in)
	return false, nil
}

// tablePush is a table's change as a push: the columns that the graph reads, and the weight.
func tablePush(info incremental.SourceInfo, d tableDelta) arrow.RecordBatch {
	n := int(d.rows.NumRows())
	cols := make([]arrow.Array, 0, len(info.Columns)+1)
	fields := make([]arrow.Field, 0, len(info.Columns)+1)
	for _, c := range info.Columns {
		cols, fields = append(cols, d.rows.Column(c)), append(fields, d.rows.Schema().Field(c))
	}
	w := make([]int64, n)
	for i := range w {
		w[i] = d.sign
	}
	cols = append(cols, kernels.NewFixed(arrow.PrimitiveTypes.Int64, w, nil))
	return array.NewRecordBatch(arrow.NewSchema(append(fields, flow.WeightField), nil), cols, int64(n))
}

// take books one item into the step's input.
func (r *runner) take(f fed, in *incremental.Input, rows *int) error {
	if f.err != nil {
		return f.err
	}
	src := r.inputs[f.source]
	now := r.s.clock.Now()
	sp := src.splits[f.split]
	if sp == nil && !(f.noMore && src.stream != nil) {
		sp = &splitFeed{last: now}
		src.splits[f.split] = sp
		src.open++
		src.stats.Splits++
		if src.stream != nil {
			in.Ticks = append(in.Ticks, incremental.Tick{Source: f.source, Split: f.split, Kind: incremental.SplitOpened})
		}
	}
	if b := f.rows.Batch; b != nil || len(f.rows.Bad) > 0 || f.rows.Watermark != nil || f.ended {
		p := incremental.Push{Source: f.source, Split: f.split, Bad: f.rows.Bad, Watermark: f.rows.Watermark, End: f.ended}
		if b != nil && b.NumRows() > 0 {
			p.Batch = b
			*rows += int(b.NumRows())
			sp.last, sp.idle = now, false
		}
		in.Pushes = append(in.Pushes, p)
	}
	if f.rows.Idle {
		sp.idle = true
		in.Ticks = append(in.Ticks, incremental.Tick{Source: f.source, Split: f.split, Kind: incremental.SplitIdle})
	}
	if f.ended && !sp.ended {
		sp.ended = true
		src.open--
	}
	src.all = src.all || f.noMore
	if src.all && src.open == 0 && !src.ended {
		src.ended = true
		in.Ticks = append(in.Ticks, incremental.Tick{Source: f.source, Kind: incremental.SourceEnded})
	}
	r.mu.Lock()
	if f.rows.Batch != nil {
		src.stats.Rows += f.rows.Batch.NumRows()
		r.stats.RowsIn += f.rows.Batch.NumRows()
	}
	src.stats.Bytes += f.rows.Bytes
	src.stats.Bad += int64(len(f.rows.Bad))
	r.stats.BadRows += int64(len(f.rows.Bad))
	r.stats.UnknownFields += f.unknown
	if f.rows.Next != "" {
		src.stats.Positions[f.split] = string(f.rows.Next)
	}
	r.mu.Unlock()
	return nil
}

// idle ticks the splits that have been silent for their timeout. The ticks are inputs of the step, so a replay sees the same ones.
func (r *runner) idle(in *incremental.Input) {
	now := r.s.clock.Now()
	for i, src := range r.inputs {
		if src.info.IdleTimeout <= 0 || src.stream == nil || src.info.Source.Watermark == nil || src.ended {
			continue
		}
		for _, id := range slices.Sorted(maps.Keys(src.splits)) {
			sp := src.splits[id]
			if !sp.idle && !sp.ended && now.Sub(sp.last) >= src.info.IdleTimeout {
				sp.idle = true
				in.Ticks = append(in.Ticks, incremental.Tick{Source: i, Split: id, Kind: incremental.SplitIdle})
			}
		}
	}
}

// nextTick is how long the loop may wait for input: until the next emission or the next split that turns idle.
func (r *runner) nextTick() time.Duration {
	wait := time.Hour
	now := r.s.clock.Now()
	if r.every > 0 {
		wait = min(wait, r.every-time.Duration(now.UnixNano())%r.every)
	}
	for _, src := range r.inputs {
		if src.info.IdleTimeout <= 0 || src.stream == nil || src.info.Source.Watermark == nil {
			continue
		}
		for _, sp := range src.splits {
			if !sp.idle && !sp.ended {
				wait = min(wait, src.info.IdleTimeout-now.Sub(sp.last))
			}
		}
	}
	return max(wait, shortestTick)
}

// step runs one step and shows it.
func (r *runner) step(in incremental.Input, rows int) error {
	in.Now = r.s.clock.Now()
	out, err := r.graph.Step(in)
	if err != nil {
		return err
	}
	r.s.keep("query", out)
	took := r.s.clock.Now().Sub(in.Now)
	st := r.graph.Stats()
	r.mu.Lock()
	r.stats.Steps = int64(st.Step)
	r.stats.StepMicros = took.Microseconds()
	r.stats.RowsOut += int64(out.Delta.Rows())
	r.stats.StateRows, r.stats.StateBytes, r.stats.BadRetractions = st.StateRows, st.StateBytes, st.BadRetractions
	r.stats.WatermarkUS = int64(out.Delta.Watermark)
	if w := out.Delta.Watermark; w != flow.NoWatermark && w != flow.EndWatermark {
		r.stats.LagMS = in.Now.UnixMilli() - int64(w)/1000
	}
	r.stats.LateRows = 0
	for _, n := range st.Late {
		r.stats.LateRows += n
	}
	for _, src := range r.inputs {
		src.stats.Late = st.Late[src.info.Source.Name]
	}
	r.stats.QueueRows = int64(len(r.feed))
	r.mu.Unlock()
	err = r.deliver(r.ctx, out.Delta)
	for _, f := range r.stepped {
		f()
	}
	r.stepped = r.stepped[:0]
	return err
}

// stop ends the run after its present step; with drain the input ends first.
func (r *runner) stop(drain bool) {
	select {
	case r.stopping <- drain:
	default:
	}
}

// wait waits for the end of the run and returns its error.
func (r *runner) wait(ctx context.Context) error {
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (r *runner) metrics() Metrics {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.stats
	m.Sources = map[string]SourceMetrics{}
	for _, in := range r.inputs {
		st := in.stats
		st.Positions = map[string]string{}
		for k, v := range in.stats.Positions {
			st.Positions[k] = v
		}
		m.Sources[in.info.Source.Name] = st
	}
	return m
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
