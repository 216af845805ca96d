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

// epochOf puts a graph's changes into a manifest and sections. held: the epoch before had changes that were not shown.
func epochOf(m *checkpoint.Manifest, s *incremental.Snapshot, held bool) ([]checkpoint.Section, error) {
	m.Step, m.ShownAt, m.Sources = s.Step, s.ShownAt, nil
	for _, src := range s.Sources {
		state, err := json.Marshal(src)
		if err != nil {
			return nil, err
		}
		m.Sources = append(m.Sources, checkpoint.Source{Name: src.Name, State: state, Splits: map[string]checkpoint.SplitPosition{}})
	}
	var out []checkpoint.Section
	for _, op := range s.Operators {
		for _, p := range op.Parts {
			if p.Rows.NumRows() > 0 {
				out = append(out, checkpoint.Of(op.Path, p))
			}
		}
	}
	if len(s.Pending) > 0 || held {
		out = append(out, checkpoint.Section{Kind: checkpoint.Whole, Owner: pendingOwner, Rows: s.Pending})
	}
	return out, nil
}

// snapshotOf reads what a graph remembered at a manifest's step. Sections that are not the graph's go to other.
func snapshotOf(ctx context.Context, store *checkpoint.Store, m *checkpoint.Manifest, other func(checkpoint.Section)) (*incremental.Snapshot, error) {
	snap := &incremental.Snapshot{Step: m.Step, ShownAt: m.ShownAt}
	at := map[string]int{}
	err := store.Read(ctx, m, func(s checkpoint.Section) error {
		switch {
		case s.Kind == checkpoint.State:
			i, ok := at[s.Owner]
			if !ok {
				i = len(snap.Operators)
				at[s.Owner] = i
				snap.Operators = append(snap.Operators, incremental.OperatorState{Path: s.Owner})
			}
			for k := range s.Rows {
				snap.Operators[i].Parts = append(snap.Operators[i].Parts, s.Part(k))
			}
		case s.Owner == pendingOwner:
			snap.Pending = s.Rows
		default:
			other(s)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, src := range m.Sources {
		var st incremental.SourceState
		if err := json.Unmarshal(src.State, &st); err != nil {
			return nil, errs.New(errs.State, "restore", "the state of the source %q in the manifest of epoch %d: %w", src.Name, m.Epoch, err)
		}
		snap.Sources = append(snap.Sources, st)
	}
	return snap, nil
}
