package riverbed

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/riverbed/riverbed/connectors"
	"github.com/riverbed/riverbed/connectors/all"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/sql"
	"github.com/riverbed/riverbed/core/types"
)

func parseSink(spec ConnectorSpec) (*connectors.Sink, connectors.Settings, error) {
	k := all.Sink(spec.Connector)
	if k == nil {
		return nil, connectors.Settings{}, unknownConnector(spec.Connector, sinkNames())
	}
	set, err := k.Options.Parse("sink '"+k.Name+"'", spec.Options)
	return k, set, err
}

// open opens the pipeline's sink. That of a durable pipeline is exactly once when it can be.
func (p *Pipeline) open(ctx context.Context, r *runner, id string) (sink, error) {
	if p.spec.Func != nil {
		return funcSink(p.spec.Func), nil
	}
	req := connectors.SinkRequest{Fields: r.fields, Keys: uniqueKeys(r.plan.Root), Updating: r.updating, Pipeline: id, Clock: p.q.s.clock, ExactlyOnce: r.durable != nil}
	c, err := openSink(ctx, p.spec.ConnectorSpec, req)
	if err != nil {
		return nil, err // and not a sink that is a nil pointer
	}
	return c, nil
}

func openSink(ctx context.Context, spec ConnectorSpec, req connectors.SinkRequest) (*connectorSink, error) {
	k, set, err := parseSink(spec)
	if err != nil {
		return nil, err
	}
	req.ExactlyOnce = req.ExactlyOnce && k.ExactlyOnce
	req.Name, req.Settings, req.Fields = k.Name, set, types.DistinctNames(req.Fields)
	w, err := k.Open(ctx, req)
	if err != nil {
		return nil, err
	}
	return &connectorSink{w: w, name: k.Name, fields: req.Fields, exactly: req.ExactlyOnce, held: req.ExactlyOnce && k.Held, updates: req.Updating}, nil
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
		for i, from := range q.assigned() {
			if from.Type.Kind != types.Null && !want[i].Type.Equal(from.Type) {
				return nil, errs.E(errs.Schema, "bind", st.Position(), "column %q of sink %q is %s, but the query gives %s", want[i].Name, e.name, want[i].Type, from.Type).
					WithHint("cast it in the query")
			}
		}
		q.columns = want
	}
	q.sink = &SinkSpec{ConnectorSpec: e.sink.spec}
	if q.Followed() || q.follows {
		if q.sink.ID, err = s.sinkID(e.name, text+paramText(text, cat.params)); err != nil {
			return nil, placed(err, st.Table.Position())
		}
		return q, nil
	}
	n, err := q.writeBatch(ctx, e.sink.spec)
	if err != nil {
		return nil, err
	}
	return countResult(n), nil
}

// sinkID names the pipeline of an INSERT INTO a sink: as the sink, and from the second statement on with its number. The same statement is the same
// pipeline, so a script gives the same names each time. A name that another sink's pipeline has is refused: they would share their checkpoints.
func (s *Session) sinkID(sink, text string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text = strings.TrimSpace(text)
	at := slices.Index(s.inserts[sink], text)
	if at >= 0 {
		return numbered(sink, at), nil
	}
	at = len(s.inserts[sink])
	id := numbered(sink, at)
	for other, statements := range s.inserts {
		for i := range statements {
			if other != sink && numbered(other, i) == id {
				return "", sharedID(id, other, sink)
			}
		}
	}
	if e := s.cat.Load().get(id); at > 0 && e != nil && e.sink != nil {
		return "", sharedID(id, e.name, sink)
	}
	if s.inserts == nil {
		s.inserts = map[string][]string{}
	}
	s.inserts[sink] = append(s.inserts[sink], text)
	return id, nil
}

func numbered(sink string, at int) string {
	if at == 0 {
		return sink
	}
	return fmt.Sprintf("%s-%d", sink, at+1)
}

func sharedID(id, one, other string) error {
	return errs.New(errs.Usage, "run", "%q would name two pipelines: one into the sink %q, one into %q", id, one, other).
		WithHint("an id is the sink's name, and from the second statement into it on with -2, -3, …: give one of the sinks another name")
}

// writeBatch runs the query as batch into a sink and makes the rows visible.
func (q *Query) writeBatch(ctx context.Context, spec ConnectorSpec) (rows int64, err error) {
	res, err := q.Run(ctx)
	if err != nil {
		return 0, err
	}
	defer res.Release()
	w, err := openSink(ctx, spec, connectors.SinkRequest{Fields: q.columns, Keys: uniqueKeys(q.bound.Root), Pipeline: "batch", Clock: q.s.clock})
	if err != nil {
		return 0, err
	}
	defer func() {
		if e := w.close(); err == nil {
			err = e
		}
	}()
	for res.Next() {
		b := res.RecordBatch()
		rows += b.NumRows()
		if err := w.write(ctx, flow.Delta{Batch: b, Step: 1, Watermark: flow.NoWatermark}); err != nil {
			return rows, err
		}
	}
	if err := res.Err(); err != nil {
		return rows, err
	}
	return rows, w.flush(ctx)
}
