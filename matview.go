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

	graph *incremental.Graph // nil when run is set
	infos []incremental.SourceInfo
	run   *runner

	mu   sync.Mutex
	rows *zset
	err  error // why it is no longer kept up to date
}

// newMatView makes the view and gives it what its sources hold. The session is locked.
func (s *Session) newMatView(ctx context.Context, cat *scopeCatalog, view *bind.View, st *sql.Query, text string) (*matView, error) {
	cat.reading = false // views over views are one graph over their sources, so all of a statement is one step
	bound, err := bind.New(cat, bind.Options{SQL: text}).Query(st)
	if err != nil {
		return nil, err
	}
	if bound.Emit == plan.EmitDefault {
		bound.Emit = plan.EmitImmediate
	}
	v := &matView{name: view.Name, s: s, view: view, used: cat.used}
	for i, c := range bound.Root.Columns() {
		f := types.Field{Name: bound.Names[i], Type: c.Type}
		if i < len(view.Columns) {
			f.Name = view.Columns[i]
		}
		v.fields = append(v.fields, f)
	}
	if err := distinctNames(v.fields); err != nil {
		return nil, err
	}
	v.rows = newZset(v.fields)
	q := &Query{s: s, text: text, bound: bound, live: bound, columns: v.fields}
	if slices.ContainsFunc(sources(bound.Root), func(src *plan.Source) bool { return src.Stream != nil }) {
		if v.run, err = q.newRunner(context.Background(), v.name, "", v.take); err != nil {
			return nil, err
		}
		v.run.tables.wait = true
		if !s.runs.add(v) {
			return nil, s.usable()
		}
		v.run.startLocked(func() {
			s.runs.remove(v)
			if v.run.err != nil {
				v.fail(v.run.err)
			}
		})
		return v, nil
	}
	return v, v.load(ctx, q)
}

// load builds the graph and takes what the sources hold as the first step.
func (v *matView) load(ctx context.Context, q *Query) error {
	var err error
	if v.graph, _, err = q.buildGraph(); err != nil {
		return err
	}
	// Until it holds its first rows, the view can be given up. Later steps cannot: they belong to statements that stand.
	v.graph.InterruptBy(interruptedBy(ctx))
	defer v.graph.InterruptBy(nil)
	v.infos = v.graph.Sources()
	in := incremental.Input{Now: v.s.clock.Now()}
	for i, info := range v.infos {
		if t, ok := info.Source.Relation.(*memTable); ok {
			for _, d := range deltasOf(t, t.snapshot(), 1) {
				in.Pushes = append(in.Pushes, incremental.Push{Source: i, Batch: tablePush(info, d)})
			}
			continue
		}
		err := scanAll(ctx, info, func(b flow.Rows) bool {
			in.Pushes = append(in.Pushes, incremental.Push{Source: i, Batch: b.Batch})
			return true
		})
		if err != nil {
			return err
		}
		in.Ticks = append(in.Ticks, incremental.Tick{Source: i, Kind: incremental.SourceEnded})
	}
	return v.step(in)
}

func (v *matView) step(in incremental.Input) error {
	out, err := v.graph.Step(in)
	if err != nil {
		v.fail(err)
		return err
	}
	v.s.keep(v.name, out)
	return v.take(context.Background(), out.Delta)
}

// take books a step's output.
func (v *matView) take(_ context.Context, d flow.Delta) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.rows.add(d)
	return nil
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

// stepViews hands the changes of tables to everything that follows them. Views take them before the statement returns.
func (s *Session) stepViews(ctx context.Context, changes []tableDelta) error {
	if len(changes) == 0 {
		return nil
	}
	acks := s.feeds.push(changes)
	var first error
	for _, v := range s.views {
		if v.graph == nil || v.failed() != nil { // one that has failed says so to whoever reads it
			continue
		}
		in := incremental.Input{Now: s.clock.Now()}
		for _, d := range changes {
			for i, info := range v.infos {
				if info.Source.Relation == flow.Relation(d.table) {
					in.Pushes = append(in.Pushes, incremental.Push{Source: i, Batch: tablePush(info, d)})
				}
			}
		}
		if len(in.Pushes) == 0 {
			continue
		}
		if err := v.step(in); err != nil && first == nil {
			first = errs.New(errs.As(err).Kind, "step", "materialized view %q: %s", v.name, errs.As(err).Msg).
				WithHint("the change to the table stands; the view is broken until it is created again")
		}
	}
	for _, ack := range acks {
		select {
		case <-ack:
		case <-ctx.Done():
			return errs.New(errs.Cancelled, "run", "cancelled while waiting for a materialized view; the change to the table stands")
		}
	}
	return first
}

// source is the view as a relation: its rows as of its last step.
func (v *matView) source() *plan.Source {
	return &plan.Source{Name: v.name, Relation: v, Fields: v.fields}
}

func (v *matView) present() (*ArrowTable, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.err != nil {
		return nil, errs.New(errs.As(v.err).Kind, "scan", "the materialized view %q has failed: %s", v.name, errs.As(v.err).Msg).
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

// Scan implements flow.Relation.
func (v *matView) Scan(ctx context.Context, req flow.ScanRequest) (flow.Scan, error) {
	t, err := v.present()
	if err != nil {
		return nil, err
	}
	return t.Scan(ctx, req)
}
