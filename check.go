package riverbed

import (
	"context"

	"github.com/riverbed/riverbed/checkpoint"
	"github.com/riverbed/riverbed/connectors"
	"github.com/riverbed/riverbed/core/plan"
)

// Check refuses what Start would refuse of the checkpoints from which the pipeline goes on, or of the savepoint from which it begins. It takes and
// changes nothing, so that of several pipelines all can be asked before one starts. What the sources and the sink hold it does not look at, nor
// whether the objects of a checkpoint are whole.
func (p *Pipeline) Check(ctx context.Context) error {
	cfg := p.q.s.cfg.Load()
	if cfg.checkpointURL == "" {
		return nil
	}
	id, err := p.id()
	if err != nil {
		return err
	}
	r, done, err := p.q.unopened(cfg, id)
	if err != nil {
		return err
	}
	defer done()
	updates, err := p.updates()
	if err != nil {
		return err
	}
	d := &durable{r: r, updates: updates}
	var m *checkpoint.Manifest
	if err := r.newRetry().within(ctx, func(ctx context.Context) error {
		own, err := checkpoint.Open(ctx, checkpoint.Options{URL: cfg.checkpointURL, Pipeline: id, Version: Version, Clock: r.s.clock, ReadOnly: true})
		if err != nil {
			return err
		}
		if m, err = own.Newest(ctx); err != nil || m != nil || cfg.fromSavepoint == "" {
			return err
		}
		_, m, err = d.savepoint(ctx, id)
		return err
	}); err != nil || m == nil {
		return err
	}
	prints, text, err := r.fingerprints()
	if err != nil {
		return err
	}
	_, err = d.fits(m, m.Pipeline, prints, text)
	return err
}

// unopened makes a run of which nothing is opened, for what its plan says. done frees it.
func (q *Query) unopened(cfg *config, name string) (r *runner, done func(), err error) {
	opts := q.s.graphOptions()
	opts.TrackChanges = true
	g, opt, err := q.buildGraph(opts)
	if err != nil {
		return nil, nil, err
	}
	r = &runner{s: q.s, q: q, cfg: cfg, name: name, graph: g, plan: opt, fields: q.columns, updating: plan.Updating(opt.Root, g.Emit())}
	for _, info := range g.Sources() {
		r.inputs = append(r.inputs, &input{info: info})
	}
	return r, func() { _ = g.Close() }, nil
}

// updates is what the sink makes of changes.
func (p *Pipeline) updates() (connectors.Updates, error) {
	if p.spec.Func != nil {
		return connectors.Changelog, nil
	}
	k, _, err := parseSink(p.spec.ConnectorSpec)
	if err != nil {
		return 0, err
	}
	return k.Updates, nil
}

// fits refuses a manifest from which the query cannot go on. changed: it is of another query, from which it may.
func (d *durable) fits(m *checkpoint.Manifest, id string, prints map[string]string, text string) (changed bool, err error) {
	differ, err := differences(m, prints, id, d.r.q.statement())
	if err != nil || len(differ) == 0 {
		return false, err
	}
	if d.r.cfg.changedQuery == changedRefuse {
		return true, otherQuery(m, id, differ)
	}
	_, err = d.adapt(m, d.r.q, prints, text)
	return true, err
}
