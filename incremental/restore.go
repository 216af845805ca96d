package incremental

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/state"
)

// Restoration takes a snapshot of the same plan into a graph that has not stepped yet. State comes part by part, so that it need never be in memory
// beside the tables that take it.
type Restoration struct {
	g     *Graph
	nodes map[string]*node // by path, those with state
}

// Restoration begins to restore a graph.
func (g *Graph) Restoration() (*Restoration, error) {
	if g.step != 0 {
		return nil, errs.New(errs.Usage, "restore", "the graph has already run")
	}
	r := &Restoration{g, map[string]*node{}}
	for _, n := range g.nodes {
		if len(n.keyed) > 0 {
			r.nodes[n.path] = n
		}
	}
	return r, nil
}

// Take takes a part of an operator's state; those of one table come in order.
func (r *Restoration) Take(path string, p state.Part) error {
	n := r.nodes[path]
	if n == nil {
		return errs.New(errs.State, "restore", "the snapshot has state of an operator %s that the plan has not", path).
			WithHint("restore with the query that wrote the snapshot")
	}
	for _, c := range p.Rows.Columns() {
		countNulls(c.Data())
	}
	return parallel(r.g.opts.Parallelism, len(n.keyed), func(i int) error {
		for _, t := range n.keyed[i].Tables() {
			if t.Name() == p.Table {
				return r.g.restoreTable(n.keyed[i], t, p, func(group uint8) bool { return owner(int(group), len(n.keyed)) == i })
			}
		}
		return errs.New(errs.State, "restore", "the snapshot has a state table %s that the operator has not", p.Table).
			WithHint("restore with the query and the version that wrote it, or read again from the start")
	})
}

// countNulls has the NULLs of an array counted.
//
// AIDEV-NOTE: Arrow counts them when it is first asked, and notes that in the array: a write, where those who share the rows only read.
func countNulls(d arrow.ArrayData) {
	array.MakeFromData(d).NullN()
	for _, c := range d.Children() {
		countNulls(c)
	}
}

// End takes what s has beside the operators' state. The graph then stands where the snapshot was taken.
func (r *Restoration) End(s *Snapshot) error {
	g := r.g
	if len(s.Sources) != len(g.sources) {
		return errs.New(errs.State, "restore", "the snapshot has %d sources and the plan %d", len(s.Sources), len(g.sources))
	}
	for _, n := range g.nodes {
		if err := parallel(g.opts.Parallelism, len(n.keyed), func(i int) error {
			return n.keyed[i].Restored(&fn.Env{Now: s.ShownAt, TimeZone: g.opts.TimeZone, Rand: g.opts.Rand})
		}); err != nil {
			return err
		}
		for _, op := range n.inst {
			if v, ok := op.(*values); ok {
				v.done = s.Step > 0
			}
		}
	}
	for i, st := range s.Sources {
		src := g.sources[i]
		if st.Name != src.src.Name {
			return errs.New(errs.State, "restore", "the snapshot reads %s where the plan reads %s", st.Name, src.src.Name)
		}
		src.wm, src.explicit, src.ended, src.late = st.Watermark, st.Explicit, st.Ended, st.Late
		src.reached = st.Reached
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

// Restore takes a snapshot whole.
func (g *Graph) Restore(s *Snapshot) error {
	r, err := g.Restoration()
	if err != nil {
		return err
	}
	for _, op := range s.Operators {
		for _, p := range op.Parts {
			if err := r.Take(op.Path, p); err != nil {
				return err
			}
		}
	}
	return r.End(s)
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
