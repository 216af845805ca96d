package incremental

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/fn"
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
	for _, n := range g.nodes {
		op := OperatorState{Path: n.path}
		for _, t := range n.tables() {
			p, err := rows(t)
			if err != nil {
				return nil, err
			}
			op.Parts = append(op.Parts, p)
		}
		if len(op.Parts) > 0 {
			s.Operators = append(s.Operators, op)
		}
	}
	for _, src := range g.sources {
		st := SourceState{src.src.Name, src.wm, src.explicit, src.ended, src.late, nil}
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

// Restore takes a snapshot of the same plan into a graph that has not stepped yet.
func (g *Graph) Restore(s *Snapshot) error {
	if g.step != 0 {
		return errs.New(errs.Usage, "restore", "the graph has already run")
	}
	if len(s.Sources) != len(g.sources) {
		return errs.New(errs.State, "restore", "the snapshot has %d sources and the plan %d", len(s.Sources), len(g.sources))
	}
	saved := map[string][]state.Part{}
	for _, op := range s.Operators {
		saved[op.Path] = op.Parts
	}
	for _, n := range g.nodes {
		for i, k := range n.keyed {
			mine := func(group uint8) bool { return owner(int(group), len(n.keyed)) == i }
			if err := restoreOne(k, saved[n.path], mine, g.env(s)); err != nil {
				return err
			}
		}
		for _, op := range n.inst {
			if v, ok := op.(*values); ok {
				v.done = s.Step > 0
			}
		}
		delete(saved, n.path)
	}
	for path := range saved {
		return errs.New(errs.State, "restore", "the snapshot has state of an operator %s that the plan has not", path).
			WithHint("restore with the query that wrote the snapshot")
	}
	for i, st := range s.Sources {
		src := g.sources[i]
		if st.Name != src.src.Name {
			return errs.New(errs.State, "restore", "the snapshot reads %s where the plan reads %s", st.Name, src.src.Name)
		}
		src.wm, src.explicit, src.ended, src.late = st.Watermark, st.Explicit, st.Ended, st.Late
		for _, sp := range st.Splits {
			*src.split(sp.ID) = sp
		}
	}
	for _, b := range s.Pending {
		g.pending = append(g.pending, flow.Delta{Batch: b})
	}
	g.step, g.shownAt = s.Step, s.ShownAt
	g.rewind()
	return nil
}

// Fingerprint names what an operator with state computes, of all that is below it too.
type Fingerprint struct{ Path, Print string }

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
		if len(n.tables()) > 0 || n == g.root {
			out = append(out, Fingerprint{n.path, prints[n]})
		}
	}
	return out
}

func (g *Graph) env(s *Snapshot) *fn.Env {
	return &fn.Env{Now: s.ShownAt, TimeZone: g.opts.TimeZone, Rand: g.opts.Rand}
}

// rewind computes the watermarks that the nodes had after the snapshot's step.
func (g *Graph) rewind() {
	if g.step == 0 {
		return
	}
	for _, n := range g.nodes {
		n.wm = flow.EndWatermark
		if n.source != nil {
			n.wm = n.source.seen()
		}
		for _, in := range n.inputs {
			n.wm = min(n.wm, in.wm)
		}
		for _, op := range n.inst {
			if a, ok := op.(*aggregate); ok && a.when == atEnd && n.wm == flow.EndWatermark {
				a.owner = false // the one group was shown before the snapshot
			}
		}
	}
}

func restoreOne(k Keyed, parts []state.Part, mine func(group uint8) bool, env *fn.Env) error {
	tables := map[string]state.Stored{}
	for _, t := range k.Tables() {
		tables[t.Name()] = t
	}
	for _, p := range parts {
		t := tables[p.Table]
		if t == nil {
			return errs.New(errs.State, "restore", "the snapshot has a state table %s that the operator has not", p.Table).
				WithHint("restore with the query and the version that wrote it, or read again from the start")
		}
		if err := t.Restore(p, mine); err != nil {
			return err
		}
	}
	return k.Restored(env)
}
