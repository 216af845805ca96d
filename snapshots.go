package riverbed

import (
	"context"
	"encoding/json"

	"github.com/riverbed/riverbed/checkpoint"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/incremental"
)

// What a graph remembers, in the form of checkpoints.

// pendingOwner has the changes of EMIT EVERY that were not shown yet.
const pendingOwner = "pending"

// besideState puts where a graph stands into a manifest, and what it has not shown into a section. held: the epoch before had changes that were not shown.
func besideState(m *checkpoint.Manifest, s *incremental.Snapshot, held bool) ([]checkpoint.Section, error) {
	m.Step, m.ShownAt, m.Sources = s.Step, s.ShownAt, nil
	for _, src := range s.Sources {
		state, err := json.Marshal(src)
		if err != nil {
			return nil, err
		}
		m.Sources = append(m.Sources, checkpoint.Source{Name: src.Name, State: state, Splits: map[string]checkpoint.SplitPosition{}})
	}
	if len(s.Pending) > 0 || held {
		return []checkpoint.Section{{Kind: checkpoint.Whole, Owner: pendingOwner, Rows: s.Pending}}, nil
	}
	return nil, nil
}

// stateOf are the sections of a graph's state.
func stateOf(m *checkpoint.Manifest, s *incremental.Snapshot) (out []checkpoint.Section) {
	for _, op := range s.Operators {
		for _, p := range op.Parts {
			if p.Rows.NumRows() > 0 {
				out = append(out, checkpoint.Of(m.Owner(op.Path), p))
			}
		}
	}
	return out
}

// restoreGraph brings a graph that has not stepped to where a manifest stands, whose objects are verified. Sections that are not the graph's go to other, before
// the graph takes what stands beside its state; what that was is returned.
//
// State goes from the objects into its tables batch by batch: the tables fill while the next batches are read and decoded.
func restoreGraph(ctx context.Context, store *checkpoint.Store, m *checkpoint.Manifest, g *incremental.Graph, other func(checkpoint.Section) error) (*incremental.Snapshot, error) {
	snap := &incremental.Snapshot{Step: m.Step, ShownAt: m.ShownAt}
	for _, src := range m.Sources {
		var st incremental.SourceState
		if err := json.Unmarshal(src.State, &st); err != nil {
			return nil, errs.New(errs.State, "restore", "the state of the source %q in the manifest of epoch %d: %w", src.Name, m.Epoch, err)
		}
		snap.Sources = append(snap.Sources, st)
	}
	into, err := g.Restoration()
	if err != nil {
		return nil, err
	}
	const ahead = 4 // batches that are decoded and not taken yet
	reading, stop := context.WithCancel(ctx)
	sections, read := make(chan checkpoint.Section, ahead), make(chan error, 1)
	go func() {
		defer close(sections)
		read <- guarded(func() error {
			return store.ReadVerified(reading, m, func(s checkpoint.Section) error {
				select {
				case sections <- s:
					return nil
				case <-reading.Done():
					return reading.Err()
				}
			})
		})
	}()
	err = guarded(func() error {
		for s := range sections {
			switch {
			case s.Kind == checkpoint.State:
				for k := range s.Rows {
					if err := into.Take(m.Path(s.Owner), s.Part(k)); err != nil {
						return err
					}
				}
			case s.Owner == pendingOwner:
				snap.Pending = s.Rows
			default:
				if err := other(s); err != nil {
					return err
				}
			}
		}
		return nil
	})
	stop()
	for range sections { // until the reader has noticed
	}
	if failed := <-read; err == nil {
		err = failed
	}
	if err != nil {
		return nil, err
	}
	return snap, into.End(snap)
}
