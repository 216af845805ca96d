package riverbed

import (
	"context"
	"slices"
	"sync"

	"github.com/riverbed/riverbed/core/bind"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/sql"
	"github.com/riverbed/riverbed/core/types"
	"github.com/riverbed/riverbed/incremental"
)

// matView is a query that the session keeps up to date. Over tables and files its graph steps within the statement
// that changed them; over a stream a runner steps it, and a statement waits for the runner.
type matView struct {
	name   string
	s      *Session
	view   *bind.View
	fields []types.Field
	used   []*entry

	// Without a runner. Whoever has the session's turn owns the graph; it is nil after a step that was given up.
	query  *Query
	graph  *incremental.Graph
	infos  []incremental.SourceInfo
	tables []*memTable  // that it reads
	missed []tableDelta // while it is being made; the session's lock guards them

	run *runner // over a stream; nil otherwise

	mu   sync.Mutex
	rows *zset
	err  error // why it is no longer kept up to date
}

// newMatView makes the view and gives it what its sources hold. Until it is installed it misses what statements change;
// they leave it with the view.
func (s *Session) newMatView(ctx context.Context, cat *scopeCatalog, c claim, view *bind.View, st *sql.Query, text string) (*matView, error) {
	cat.reading = false // views over views are one graph over their sources, so all of a statement is one step
	bound, err := bind.New(cat, bind.Options{SQL: text, Params: cat.params}).Query(st)
	if err != nil {
		return nil, err
	}
	if bound.Emit == plan.EmitDefault {
		bound.Emit = plan.EmitImmediate
	}
	v := &matView{name: view.Name, s: s, view: view, used: cat.used}
	view.Macros = cat.macros
	if err := c.notOf(cat); err != nil {
		return nil, err
	}
	names := types.Distinct{} // v, v_1: two columns of one name differ as in a table that a query makes in DuckDB
	for i, c := range bound.Root.Columns() {
		f := types.Field{Name: bound.Names[i], Type: c.Type}
		if i < len(view.Columns) {
			f.Name = view.Columns[i]
		} else {
			f.Name = names.Name(f.Name)
		}
		v.fields = append(v.fields, f)
	}
	if err := distinctNames(v.fields); err != nil {
		return nil, err
	}
	v.rows = newZset(v.fields)
	v.query = &Query{s: s, text: text, params: cat.params, bound: bound, live: bound, columns: v.fields, divert: s.cfg.Load().onError == onErrorBad}
	if slices.ContainsFunc(plan.Sources(bound.Root), func(src *plan.Source) bool { return src.Stream != nil }) {
		return v, v.follow()
	}
	return v, v.load(ctx)
}

// follow starts the runner of a view over a stream.
func (v *matView) follow() error {
	ctx := v.s.mark(context.Background(), "a materialized view")
	var err error
	if v.run, err = v.query.newRunner(ctx, runOptions{name: v.name, deliver: v.take}); err != nil {
		return err
	}
	v.run.tables.wait = true
	if !v.s.runs.add(v) {
		v.run.cancel()
		_ = v.run.graph.Close()
		return v.s.usable()
	}
	v.run.start(func() {
		v.s.runs.remove(v)
		if v.run.err != nil {
			v.fail(v.run.err)
		}
	})
	return nil
}

// load takes what the sources hold as the first step. From the moment that the tables are looked at, the view is told
// what statements change.
func (v *matView) load(ctx context.Context) error {
	for _, src := range plan.Sources(v.query.bound.Root) {
		if t, ok := src.Relation.(*memTable); ok && !slices.Contains(v.tables, t) {
			v.tables = append(v.tables, t)
		}
	}
	v.s.mu.Lock()
	v.s.loading[v] = true
	held := v.s.committedLocked(v.tables)
	v.s.mu.Unlock()
	var err error
	var out incremental.Output
	if v.rows, out, err = v.build(ctx, held); err == nil {
		v.s.keep(v.name, v.query.kept(v.name, out))
		err = v.catchUp(ctx) // most of it here, where nobody waits
	}
	if err != nil {
		v.s.loaded(v)
	}
	return err
}

// loaded ends the making of a view.
func (s *Session) loaded(v *matView) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.loading, v)
}

// catchUp steps a view that is being made with what it has missed so far.
func (v *matView) catchUp(ctx context.Context) error {
	v.s.mu.Lock()
	missed := v.missed
	v.missed = nil
	v.s.mu.Unlock()
	if !v.concerned(missed) {
		return nil
	}
	out, err := v.step(ctx, v.input(missed))
	if err == nil {
		v.show(stepped{v: v, out: out})
	}
	return err
}

// buildRows is about how many rows a step of build takes: what a step makes of its rows is all in memory at once.
const buildRows = 1 << 20

// build makes the graph and steps it with what tables and files hold; the rows are what it shows then.
func (v *matView) build(ctx context.Context, held []tableDelta) (*zset, incremental.Output, error) {
	var err error
	if v.graph, _, err = v.query.buildGraph(v.s.graphOptions()); err != nil {
		return nil, incremental.Output{}, err
	}
	v.graph.ShowPieces()
	v.infos = v.graph.Sources()
	in := v.input(held)
	for i, info := range v.infos {
		if _, ok := info.Source.Relation.(*memTable); ok {
			continue
		}
		err := scanAll(ctx, info, func(b flow.Rows) bool {
			in.Pushes = append(in.Pushes, incremental.Push{Source: i, Batch: b.Batch, Places: b.Places})
			return true
		})
		if err != nil {
			return nil, incremental.Output{}, err
		}
		in.Ticks = append(in.Ticks, incremental.Tick{Source: i, Kind: incremental.SourceEnded})
	}
	rows := newZset(v.fields)
	var told incremental.Output
	for part, rest := firstPushes(in); ; part, rest = firstPushes(rest) {
		out, err := v.step(ctx, part)
		if err != nil {
			return nil, incremental.Output{}, err
		}
		rows.addAll(out)
		told.Late, told.Bad = append(told.Late, out.Late...), append(told.Bad, out.Bad...)
		if len(rest.Pushes) == 0 && len(rest.Ticks) == 0 {
			return rows, told, nil
		}
	}
}

// firstPushes cuts about buildRows rows off an input. Ticks go with the last part.
func firstPushes(in incremental.Input) (part, rest incremental.Input) {
	rows := int64(0)
	for i, p := range in.Pushes {
		if rows >= buildRows {
			return incremental.Input{Now: in.Now, Pushes: in.Pushes[:i]}, incremental.Input{Now: in.Now, Pushes: in.Pushes[i:], Ticks: in.Ticks}
		}
		if p.Batch != nil {
			rows += p.Batch.NumRows()
		}
	}
	return in, incremental.Input{}
}

// step runs a step and shows nothing of it yet.
func (v *matView) step(ctx context.Context, in incremental.Input) (incremental.Output, error) {
	v.graph.RunIn(v.s.mark(ctx, "a materialized view"))
	defer v.graph.RunIn(context.Background())
	out, err := v.graph.Step(in)
	if err != nil {
		err = v.query.failedStep(v.graph, in, err)
	}
	return out, err
}

// show books what a change made of the view.
func (v *matView) show(r stepped) {
	v.s.keep(v.name, v.query.kept(v.name, r.out))
	v.mu.Lock()
	defer v.mu.Unlock()
	if r.err != nil {
		v.err = r.err
		return
	}
	if r.rows != nil {
		v.rows = r.rows
	}
	v.rows.addAll(r.out)
}

// take books a step's output.
func (v *matView) take(_ context.Context, d flow.Delta) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.rows.add(d)
	return nil
}

// stats tells of the steps and the state; the caller has the turn. A graph that was given up says nothing until it is built anew.
func (v *matView) stats() Metrics {
	switch {
	case v.run != nil:
		return v.run.metrics()
	case v.graph == nil:
		return Metrics{}
	}
	st := v.graph.Stats()
	return Metrics{Steps: int64(st.Step), StateRows: st.StateRows, StateBytes: st.StateBytes, StateTouched: st.StateTouched}
}

func (v *matView) fail(err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.err = err
}

func (v *matView) failed() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.err
}

// reads reports whether the view depends on a catalog entry.
func (v *matView) reads(e *entry) bool { return slices.Contains(v.used, e) }

// close ends what keeps the view up to date. It does not wait: a statement that drops the view holds the session.
func (v *matView) close() {
	if v.run != nil {
		v.run.cancel()
	}
}

// Close is close for the end of the session; it waits.
func (v *matView) Close() error {
	v.close()
	<-v.run.done
	return nil
}

// source is the view as a relation: its rows as of its last step.
func (v *matView) source() *plan.Source {
	return &plan.Source{Name: v.name, Relation: v, Fields: v.fields}
}

func (v *matView) present() (*ArrowTable, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.err != nil {
		return nil, errs.New(errs.As(v.err).Kind, "scan", "the materialized view %q has failed: %s", v.name, errs.As(v.err).Message()).
			WithHint("create it again: CREATE OR REPLACE MATERIALIZED VIEW %s AS …", v.name)
	}
	return v.rows.table(), nil
}

// Fields implements flow.Relation.
func (v *matView) Fields() []types.Field { return v.fields }

// Stats implements flow.Relation.
func (v *matView) Stats() flow.Stats {
	t, err := v.present()
	if err != nil {
		return flow.Stats{Rows: -1}
	}
	return t.Stats()
}

// hold implements held.
func (v *matView) hold() (flow.Relation, error) { return v.present() }

// Scan implements flow.Relation.
func (v *matView) Scan(ctx context.Context, req flow.ScanRequest) (flow.Scan, error) {
	t, err := v.present()
	if err != nil {
		return nil, err
	}
	return t.Scan(ctx, req)
}
