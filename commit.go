package riverbed

import (
	"context"
	"slices"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/incremental"
)

// A statement that changes rows builds its tables aside, steps the views over them aside too, and then publishes all of
// it at once. So it can be given up at any moment before: tables and views are as they were.

// stepped is what a change makes of one view: its next rows, or why there are none.
type stepped struct {
	v    *matView
	rows *zset // of a view that was built anew; nil: those that it has
	out  incremental.Output
	err  error
}

// commit steps the views with the changes of tables, publishes both, and waits for the views that runs keep up to date.
// The caller has the turn. publish puts the tables in their place, with the session locked; its error gives all of it up.
func (s *Session) commit(ctx context.Context, changes []tableDelta, publish func() error) error {
	results, err := s.stepViews(ctx, changes)
	if err != nil {
		return err
	}
	acks, err := s.publish(changes, results, publish)
	if err != nil {
		for _, r := range results {
			r.v.graph = nil // it is ahead of its tables
		}
		return err
	}
	for _, ack := range acks {
		select {
		case <-ack:
		case <-ctx.Done():
			return errs.New(errs.Cancelled, "run", "cancelled while waiting for a materialized view over a stream; the change stands, and the view takes it with its next step")
		}
	}
	for _, r := range results {
		if r.err != nil {
			return errs.New(errs.As(r.err).Kind, "step", "materialized view %q: %s", r.v.name, errs.As(r.err).Message()).
				WithHint("the change to the table stands; the view is broken until it is created again")
		}
	}
	return nil
}

// publish makes the change visible and tells the runs that follow its tables.
func (s *Session) publish(changes []tableDelta, results []stepped, tables func() error) ([]<-chan struct{}, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(); err != nil {
		return nil, err
	}
	if err := tables(); err != nil {
		return nil, err
	}
	for _, r := range results {
		r.v.show(r)
	}
	for v := range s.loading {
		if v.concerned(changes) {
			v.missed = append(v.missed, changes...)
		}
	}
	return s.feeds.push(changes), nil
}

// stepViews steps the graphs of all views that the changes concern. When it is cancelled, the graphs that went ahead are
// given up: their views keep the rows that they show, and are built anew when the next change comes.
func (s *Session) stepViews(ctx context.Context, changes []tableDelta) ([]stepped, error) {
	if len(changes) == 0 {
		return nil, nil
	}
	s.mu.Lock()
	views := slices.Clone(s.views)
	s.mu.Unlock()
	var out []stepped
	for _, v := range views {
		if v.run != nil || v.failed() != nil || !v.concerned(changes) { // one that has failed says so to whoever reads it
			continue
		}
		r := stepped{v: v}
		if v.graph == nil {
			r.rows, _, r.err = v.build(ctx, s.committedTables(v.tables)) // what it tells of late and bad rows was told when they came
		}
		if r.err == nil {
			r.out, r.err = v.step(ctx, v.input(changes))
		}
		out = append(out, r)
		if r.err != nil && ctx.Err() != nil {
			for _, r := range out {
				r.v.graph = nil
			}
			return nil, errs.New(errs.Cancelled, "run", "cancelled while the materialized view %q took the change; nothing was changed", v.name)
		}
	}
	return out, nil
}

// committedTables are the rows of tables without those of the open transaction, which reach who follows them at COMMIT.
func (s *Session) committedTables(tables []*memTable) []tableDelta {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.committedLocked(tables)
}

func (s *Session) committedLocked(tables []*memTable) []tableDelta {
	var out []tableDelta
	for _, t := range tables {
		out = append(out, deltasOf(t, s.committed(t), 1)...)
	}
	return out
}

// input is a step's input of changes.
func (v *matView) input(changes []tableDelta) incremental.Input {
	in := incremental.Input{Now: v.s.clock.Now()}
	for i, info := range v.infos {
		in.Pushes = append(in.Pushes, tablePushes(i, info, changesOf(changes, info))...)
	}
	return in
}

// changesOf are those of the table that a source reads.
func changesOf(changes []tableDelta, info incremental.SourceInfo) []tableDelta {
	var out []tableDelta
	for _, d := range changes {
		if info.Source.Relation == flow.Relation(d.table) {
			out = append(out, d)
		}
	}
	return out
}

// concerned reports whether the view reads one of the changed tables.
func (v *matView) concerned(changes []tableDelta) bool {
	return slices.ContainsFunc(changes, func(d tableDelta) bool { return slices.Contains(v.tables, d.table) })
}
