package incremental

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/state"
)

// Snapshot is all that a graph remembers after a step. It names state by operator path and key group, so a graph of
// the same plan takes it at any parallelism.
type Snapshot struct {
	Step      flow.Step
	Operators []OperatorState
	Sources   []SourceState
	Pending   []arrow.RecordBatch // EMIT EVERY: changes not yet shown
	ShownAt   time.Time
}

// OperatorState is the state of one operator. Parts of one table are applied in order.
type OperatorState struct {
	Path  string
	Parts []state.Part
}

// SourceState is where a source stands.
type SourceState struct {
	Name      string         `json:"name"`
	Watermark flow.Watermark `json:"watermark"`
	Explicit  flow.Watermark `json:"explicit"`
	Ended     bool           `json:"ended,omitempty"`
	Late      int64          `json:"late"`
	Splits    []splitState   `json:"splits"`
	Reached   flow.Watermark `json:"reached"` // the highest of splits that have ended and are not among Splits
}

// Snapshot copies the graph's state. The graph may go on at once.
func (g *Graph) Snapshot() (*Snapshot, error) { return g.save(state.Stored.Snapshot) }

// Changes is a snapshot of what changed since the last call, or since the start: of the state tables it holds the rows that
// changed and the keys that went. It needs Options.TrackChanges.
func (g *Graph) Changes() (*Snapshot, error) {
	if !g.opts.TrackChanges {
		return nil, errs.New(errs.Usage, "snapshot", "this run does not track changes")
	}
	return g.save(func(t state.Stored) (state.Part, error) {
		p, err := t.Dirty(0)
		t.Forget(t.Cut())
		return p, err
	})
}

// Add makes s the state after the changes.
func (s *Snapshot) Add(changes *Snapshot) {
	at := map[string]int{}
	for i, op := range s.Operators {
		at[op.Path] = i
	}
	operators := s.Operators
	for _, op := range changes.Operators {
		if i, ok := at[op.Path]; ok {
			operators[i].Parts = append(operators[i].Parts, op.Parts...)
		} else {
			operators = append(operators, op)
		}
	}
	*s = *changes
	s.Operators = operators
}

func (g *Graph) save(rows func(state.Stored) (state.Part, error)) (*Snapshot, error) {
	if g.failed != nil {
		return nil, errs.New(errs.Usage, "snapshot", "an earlier step of this run failed: %w", g.failed)
	}
	s := &Snapshot{Step: g.step, ShownAt: g.shownAt}
	var of []state.Stored
	for _, n := range g.nodes {
		if t := n.tables(); len(t) > 0 {
			s.Operators = append(s.Operators, OperatorState{Path: n.path, Parts: make([]state.Part, len(t))})
			of = append(of, t...)
		}
	}
	parts := make([]state.Part, len(of))
	if err := parallel(g.opts.Parallelism, len(of), func(i int) (err error) {
		parts[i], err = rows(of[i])
		return err
	}); err != nil {
		return nil, err
	}
	for i := range s.Operators {
		parts = parts[copy(s.Operators[i].Parts, parts):]
	}
	for _, src := range g.sources {
		st := SourceState{src.src.Name, src.wm, src.explicit, src.ended, src.late, nil, src.reached}
		for _, sp := range src.splits {
			st.Splits = append(st.Splits, *sp)
		}
		s.Sources = append(s.Sources, st)
	}
	for _, d := range g.pending {
		s.Pending = append(s.Pending, d.Batch)
	}
	return s, nil
}

// Fingerprint names what an operator computes, of all that is below it too.
type Fingerprint struct {
	Path, Print string
	Stateful    bool // it has state tables
}

// Fingerprints are those of the operators that have state tables, and of the root: a snapshot fits a graph in which they are the same.
func (g *Graph) Fingerprints() []Fingerprint {
	var out []Fingerprint
	prints := map[*node]string{}
	for _, n := range g.nodes { // inputs first
		h := sha256.New()
		h.Write([]byte(plan.Describe(n.of) + "\n" + n.schema.String()))
		for _, in := range n.inputs {
			h.Write([]byte("\n" + prints[in]))
		}
		prints[n] = hex.EncodeToString(h.Sum(nil)[:8])
		if stateful := len(n.tables()) > 0; stateful || n == g.root {
			out = append(out, Fingerprint{n.path, prints[n], stateful})
		}
	}
	return out
}
