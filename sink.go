package riverbed

import (
	"context"
	"time"

	"github.com/riverbed/riverbed/connectors"
	"github.com/riverbed/riverbed/connectors/all"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/sql"
)

func parseSink(spec ConnectorSpec) (*connectors.Sink, connectors.Settings, error) {
	k := all.Sink(spec.Connector)
	if k == nil {
		return nil, connectors.Settings{}, unknownConnector(spec.Connector, sinkNames())
	}
	set, err := k.Options.Parse("sink '"+k.Name+"'", spec.Options)
	return k, set, err
}

// flushEvery is how often a sink without checkpoints makes what it took visible.
const flushEvery = time.Second

// sinkDepth is how many deltas may wait for the sink, which encodes behind the running steps.
const sinkDepth = 16

// open opens the sink; write takes deltas, shut flushes and closes it.
func (p *Pipeline) open(ctx context.Context, r *runner) (write func(flow.Delta) error, shut func(ok bool) error, err error) {
	if p.spec.Func != nil {
		return func(d flow.Delta) error {
			if d.Batch == nil || d.Rows() == 0 {
				return nil
			}
			return p.spec.Func(ctx, d)
		}, func(bool) error { return nil }, nil
	}
	k, set, err := parseSink(p.spec.ConnectorSpec)
	if err != nil {
		return nil, nil, err
	}
	updating := r.updating
	w, err := k.Open(ctx, connectors.SinkRequest{Name: k.Name, Settings: set, Fields: r.fields, Updating: updating, Pipeline: "pipeline", Clock: p.q.s.clock})
	if err != nil {
		return nil, nil, err
	}
	last := p.q.s.clock.Now()
	epoch := flow.Epoch(0)
	stage := func() error {
		epoch++
		_, err := w.Stage(ctx, epoch)
		return err
	}
	write = func(d flow.Delta) error {
		if d.Batch != nil && d.Rows() > 0 {
			if err := w.Write(ctx, d); err != nil {
				return err
			}
		}
		if now := p.q.s.clock.Now(); now.Sub(last) >= flushEvery {
			last = now
			return stage()
		}
		return nil
	}
	shut = func(ok bool) error {
		var err error
		if ok {
			err = stage()
		}
		if e := w.Close(); err == nil {
			err = e
		}
		return err
	}
	return write, shut, nil
}

// insertIntoSink runs INSERT INTO sink SELECT: at once over bounded input, otherwise as a pipeline that the caller starts.
func (s *Session) insertIntoSink(ctx context.Context, cat *scopeCatalog, e *entry, st *sql.Insert, text string) (*Query, error) {
	if st.Query == nil {
		return nil, errs.E(errs.Schema, "bind", st.Position(), "INSERT INTO a sink needs a query")
	}
	q, err := s.planQuery(ctx, cat, st.Query, text)
	if err != nil {
		return nil, err
	}
	if want := e.sink.columns; len(want) > 0 {
		if len(want) != len(q.columns) {
			return nil, errs.E(errs.Schema, "bind", st.Position(), "sink %q has %d columns, but the query has %d", e.name, len(want), len(q.columns))
		}
		for i := range want {
			if !want[i].Type.Equal(q.columns[i].Type) {
				return nil, errs.E(errs.Schema, "bind", st.Position(), "column %q of sink %q is %s, but the query gives %s", want[i].Name, e.name, want[i].Type, q.columns[i].Type).
					WithHint("cast it in the query")
			}
		}
		q.columns = want
	}
	q.sink = &SinkSpec{ConnectorSpec: e.sink.spec}
	if q.Live() {
		return q, nil
	}
	n, err := q.writeBatch(ctx, e.sink.spec)
	if err != nil {
		return nil, err
	}
	return countResult(n), nil
}

// writeBatch runs the query as batch into a sink and makes the rows visible.
func (q *Query) writeBatch(ctx context.Context, spec ConnectorSpec) (int64, error) {
	k, set, err := parseSink(spec)
	if err != nil {
		return 0, err
	}
	res, err := q.Run(ctx)
	if err != nil {
		return 0, err
	}
	defer res.Release()
	w, err := k.Open(ctx, connectors.SinkRequest{Name: k.Name, Settings: set, Fields: q.columns, Pipeline: "batch", Clock: q.s.clock})
	if err != nil {
		return 0, err
	}
	rows := int64(0)
	for res.Next() {
		b := res.RecordBatch()
		rows += b.NumRows()
		if err := w.Write(ctx, flow.Delta{Batch: b, Step: 1, Watermark: flow.NoWatermark}); err != nil {
			_ = w.Close()
			return rows, err
		}
	}
	if err := res.Err(); err != nil {
		_ = w.Close()
		return rows, err
	}
	if _, err := w.Stage(ctx, 1); err != nil {
		_ = w.Close()
		return rows, err
	}
	return rows, w.Close()
}
