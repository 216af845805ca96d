package riverbed

import (
	"context"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/bind"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/rules"
	"github.com/riverbed/riverbed/core/sql"
	"github.com/riverbed/riverbed/core/types"
	"github.com/riverbed/riverbed/incremental"
)

// matView is a query that the session keeps up to date. Over tables and files its graph steps within the statement
// that changed them; over a live stream a runner steps it, and a statement waits for the runner.
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
	err  error
}

// createMatView runs with the session locked.
func (s *Session) createMatView(ctx context.Context, view *bind.View, st *sql.CreateView, text string) error {
	cat := &scopeCatalog{s: s, ctx: ctx}
	bound, err := bind.New(cat, bind.Options{SQL: text}).Query(st.Query)
	if err != nil {
		return err
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
		return err
	}
	v.rows = newZset(v.fields)
	q := &Query{s: s, text: text, bound: bound, used: cat.used, columns: v.fields}
	if len(liveSources(bound.Root)) > 0 {
		if v.run, err = q.newRunner(context.Background(), "", v.take); err != nil {
			return err
		}
		v.run.tables.wait = true
		v.run.startLocked(func() {
			v.mu.Lock()
			defer v.mu.Unlock()
			v.err = v.run.err
		})
	} else if err := v.load(ctx, q); err != nil {
		return err
	}
	s.views = append(s.views, v)
	s.cat.put(&entry{name: v.name, mat: v, sql: sql.Print(st)})
	return nil
}

// load builds the graph and takes what the sources hold as the first step.
func (v *matView) load(ctx context.Context, q *Query) error {
	opt, _, err := rules.Optimize(q.bound, rules.Incremental, q.options())
	if err != nil {
		return err
	}
	if v.graph, err = incremental.Build(opt, v.s.graphOptions()); err != nil {
		return err
	}
	v.infos = v.graph.Sources()
	in := incremental.Input{Now: v.s.clock.Now()}
	for i, info := range v.infos {
		if t, ok := info.Source.Relation.(*memTable); ok {
			for _, b := range t.snapshot() {
				in.Pushes = append(in.Pushes, incremental.Push{Source: i, Batch: tablePush(info, tableDelta{t, b, 1})})
			}
			continue
		}
		rel := info.Source.Relation
		if rel == nil { // a stream that ends by itself
			return errs.New(errs.Unsupported, "create view", "a materialized view over the bounded stream %q is not supported yet", info.Source.Name)
		}
		sc, err := rel.Scan(ctx, flow.ScanRequest{Columns: info.Columns, Workers: 1})
		if err != nil {
			return err
		}
		for {
			m, err := sc.Next(ctx, 0)
			if err != nil {
				_ = sc.Close()
				return err
			}
			if m == nil {
				break
			}
			in.Pushes = append(in.Pushes, incremental.Push{Source: i, Batch: m.Batch})
		}
		if err := sc.Close(); err != nil {
			return err
		}
		in.Ticks = append(in.Ticks, incremental.Tick{Source: i, Kind: incremental.SourceEnded})
	}
	return v.step(in)
}

func (v *matView) step(in incremental.Input) error {
	out, err := v.graph.Step(in)
	if err == nil {
		v.s.keep(v.name, out)
		return v.take(context.Background(), out.Delta)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.err = err
	return err
}

// take books a step's output.
func (v *matView) take(_ context.Context, d flow.Delta) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.rows.add(d)
	return nil
}

// reads reports whether the view depends on a catalog entry.
func (v *matView) reads(e *entry) bool {
	for _, u := range v.used {
		if u == e {
			return true
		}
	}
	return false
}

func (v *matView) close() {
	if v.run != nil {
		v.run.cancel()
	}
}

// stepViews hands the changes of tables to everything that follows them. Views take them before the statement returns.
func (s *Session) stepViews(ctx context.Context, deltas []tableDelta) error {
	if len(deltas) == 0 {
		return nil
	}
	var acks []<-chan struct{}
	for f := range s.watchers {
		if ack := f.push(deltas); f.wait {
			acks = append(acks, ack)
		}
	}
	var first error
	for _, v := range s.views {
		if v.graph == nil {
			continue
		}
		in := incremental.Input{Now: s.clock.Now()}
		for _, d := range deltas {
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
			e := errs.As(err)
			e.Msg = "materialized view \"" + v.name + "\": " + e.Msg
			first = e.WithHint("the change to the table stands; the view is broken until it is created again")
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

func (v *matView) present() ([]arrow.RecordBatch, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.err != nil {
		return nil, errs.New(errs.Usage, "scan", "the materialized view %q has failed: %w", v.name, v.err)
	}
	return v.rows.batches(), nil
}

// Fields implements flow.Relation.
func (v *matView) Fields() []types.Field { return v.fields }

// Stats implements flow.Relation.
func (v *matView) Stats() flow.Stats {
	b, err := v.present()
	if err != nil {
		return flow.Stats{Rows: -1}
	}
	return chunkStats(b, v.fields)
}

// Scan implements flow.Relation.
func (v *matView) Scan(_ context.Context, req flow.ScanRequest) (flow.Scan, error) {
	b, err := v.present()
	if err != nil {
		return nil, err
	}
	return newChunkScan(b, v.fields, req), nil
}
