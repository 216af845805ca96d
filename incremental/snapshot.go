package incremental

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
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
	c, err := g.BeginChanges()
	if err != nil {
		return nil, err
	}
	return c.Rest()
}

// Copying is a snapshot of changes whose rows are copied bit by bit, while the graph steps on. It has them as they were when it began.
type Copying struct {
	g    *Graph
	snap *Snapshot
	left []lateTable
}

// lateTable is a table with rows that are not copied yet.
type lateTable struct {
	state.Late
	operator int // whose it is
	parts    []state.Part
	more     bool
}

// BeginChanges begins what Changes does, and copies what cannot wait. The one before must have ended.
func (g *Graph) BeginChanges() (*Copying, error) {
	if !g.opts.TrackChanges {
		return nil, errs.New(errs.Usage, "snapshot", "this run does not track changes")
	}
	snap, err := g.save(func(t state.Stored) (p state.Part, err error) {
		late := false
		if l, ok := t.(state.Late); ok {
			late, err = l.Begin(0)
		}
		if err == nil && !late {
			p, err = t.Dirty(0)
		}
		t.Forget(t.Cut())
		return p, err
	})
	if err != nil {
		return nil, err
	}
	c := &Copying{g: g, snap: snap}
	at := 0
	for _, n := range g.nodes {
		tables := n.tables()
		if len(tables) == 0 {
			continue
		}
		op := &snap.Operators[at]
		parts := op.Parts
		op.Parts = nil
		for i, p := range parts {
			if p.Rows == nil {
				c.left = append(c.left, lateTable{Late: tables[i].(state.Late), operator: at})
			} else {
				op.Parts = append(op.Parts, p)
			}
		}
		at++
	}
	return c, nil
}

// Begun is the snapshot without the rows that are still to be copied.
func (c *Copying) Begun() *Snapshot { return c.snap }

// More copies about so many rows more, and returns the snapshot when it is whole, nil before. Nothing else may use the graph meanwhile.
func (c *Copying) More(rows int) (*Snapshot, error) {
	if n := len(c.left); n > 0 {
		rows = max(1, rows/n)
		if err := parallel(c.g.opts.Parallelism, n, func(i int) (err error) {
			t := &c.left[i]
			t.parts, t.more, err = t.Copy(rows)
			return err
		}); err != nil {
			return nil, err
		}
	}
	var left []lateTable
	for _, t := range c.left {
		op := &c.snap.Operators[t.operator]
		op.Parts = append(op.Parts, t.parts...)
		if t.more {
			left = append(left, t)
		}
	}
	if c.left = left; len(left) > 0 {
		return nil, nil
	}
	return c.snap, nil
}

// Rest copies all that is left.
func (c *Copying) Rest() (*Snapshot, error) {
	for {
		if s, err := c.More(math.MaxInt32); s != nil || err != nil {
			return s, err
		}
	}
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
