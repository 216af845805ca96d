package sqltest

import (
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/types"
)

// model is what the definitions say of the sources: the rows A(s) that were taken and the watermarks W(s).
//
// A split's watermark is the running maximum over the rows before the one judged. A stream's is the minimum over its
// splits without the idle ones; with all idle, the most that any reached. It never goes back. A row is late when its time
// lies before the greater of its split's and, as of the step's start, its stream's watermark.
type model struct{ rels []*modelRel }

type modelRel struct {
	*Relation
	rows   taken // nothing of upsert streams
	keyed  keyed // of upsert streams
	splits map[string]*modelSplit
	byHand flow.Watermark
	wm     flow.Watermark
	ended  bool
	late   []string // of this step
}

type modelSplit struct {
	wm   flow.Watermark
	idle bool
}

// mark is the event time and the watermark expression of a row; absent is NULL.
type mark struct {
	at, wm       flow.Watermark
	hasAt, hasWM bool
}

func newModel(rels []*Relation) *model {
	m := &model{}
	for _, r := range rels {
		m.rels = append(m.rels, &modelRel{Relation: r, splits: map[string]*modelSplit{}, byHand: flow.NoWatermark, wm: flow.NoWatermark, rows: taken{at: map[string]int{}}, keyed: keyed{Relation: r}})
	}
	return m
}

func (r *modelRel) split(id string) *modelSplit {
	if r.splits[id] == nil {
		r.splits[id] = &modelSplit{wm: flow.NoWatermark}
	}
	return r.splits[id]
}

// apply takes the events of one step. marks are those of the rows, by position in events.
func (m *model) apply(events []Event, marks []mark) {
	for _, r := range m.rels {
		r.late = nil
	}
	for i, e := range events {
		r := m.rels[e.Rel]
		switch e.Kind {
		case Row:
			r.take(e, marks[i])
		case Watermark:
			r.byHand = max(r.byHand, e.At)
		case Idle:
			r.split(e.Split).idle = true
		}
	}
	for _, e := range events {
		r := m.rels[e.Rel]
		switch e.Kind {
		case Open:
			r.split(e.Split)
		case End:
			r.ended = true
		}
	}
	for _, r := range m.rels {
		r.wm = max(r.wm, r.byHand, r.present())
	}
}

func (r *modelRel) take(e Event, k mark) {
	if r.Watermark != "" {
		s := r.split(e.Split)
		s.idle = false
		limit := max(s.wm, r.wm, r.byHand)
		if k.hasWM {
			s.wm = max(s.wm, k.wm)
		}
		if k.hasAt && k.at < limit && !r.Updating {
			for range e.Weight {
				r.late = append(r.late, RowText(e.Values, r.Fields))
			}
			return
		}
	}
	if r.Key != nil {
		r.keyed.add(e)
		return
	}
	r.rows.add(e.Values, RowText(e.Values, r.Fields), e.Weight)
}

func (r *modelRel) present() flow.Watermark {
	if r.ended {
		return flow.EndWatermark
	}
	least, most, counted := flow.EndWatermark, flow.NoWatermark, 0
	for _, s := range r.splits {
		most = max(most, s.wm)
		if !s.idle {
			least = min(least, s.wm)
			counted++
		}
	}
	if counted == 0 {
		return most
	}
	return least
}

// list is the rows of the relation, each as often as it stands there.
func (r *modelRel) list() [][]types.Value {
	if r.Key != nil {
		return r.keyed.list()
	}
	return r.rows.list()
}

// stored is what a Growing is filled with.
func (r *modelRel) stored() [][]types.Value {
	if r.Key != nil {
		return r.keyed.log()
	}
	return r.rows.list()
}

// taken is the rows of a relation, in the order of their arrival, each with how often it stands there.
type taken struct {
	rows  [][]types.Value
	count []int64
	at    map[string]int
}

func (t *taken) add(vals []types.Value, text string, n int64) {
	i, ok := t.at[text]
	if !ok {
		i = len(t.rows)
		t.at[text] = i
		t.rows, t.count = append(t.rows, vals), append(t.count, 0)
	}
	t.count[i] += n
}

// list is the rows, each as often as it stands there.
func (t *taken) list() [][]types.Value {
	var out [][]types.Value
	for i, n := range t.count {
		for ; n > 0; n-- {
			out = append(out, t.rows[i])
		}
	}
	return out
}

func (t *taken) negative() bool {
	for _, n := range t.count {
		if n < 0 {
			return true
		}
	}
	return false
}
