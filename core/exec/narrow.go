package exec

import (
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/hashtable"
	"github.com/riverbed/riverbed/core/plan"
)

// What a scan and the joins above it ask of the rows before all of their columns are decoded.

// filterStages turns a scan's filters into stages: conditions on the same columns together, those on numbers before those
// on texts. A condition that may fail for a row must be shown just the rows that the whole filter shows it, so then there
// is one stage.
func (s *scan) filterStages() ([]flow.Stage, error) {
	var conds []expr.Expr
	for _, f := range s.node.Filters {
		conds = append(conds, expr.Conjuncts(f)...)
	}
	if slices.ContainsFunc(conds, func(e expr.Expr) bool { return expr.Fallible(e) || expr.Purity(e) == fn.Volatile }) {
		st, err := s.filterStage(s.positions(s.node.Filters), s.node.Filters)
		return []flow.Stage{st}, err
	}
	type group struct {
		cols  []int
		conds []expr.Expr
	}
	var groups []*group
	for _, c := range conds {
		cols := s.positions([]expr.Expr{c})
		i := slices.IndexFunc(groups, func(g *group) bool { return slices.Equal(g.cols, cols) })
		if i < 0 {
			i = len(groups)
			groups = append(groups, &group{cols: cols})
		}
		groups[i].conds = append(groups[i].conds, c)
	}
	slices.SortStableFunc(groups, func(a, b *group) int { return s.cost(a.cols) - s.cost(b.cols) })
	out := make([]flow.Stage, len(groups))
	for i, g := range groups {
		var err error
		if out[i], err = s.filterStage(g.cols, g.conds); err != nil {
			return nil, err
		}
		out[i].Pure = true
	}
	return out, nil
}

// cost orders stages: columns of fixed width are cheap.
func (s *scan) cost(cols []int) int {
	n := 0
	for _, c := range cols {
		n++
		if _, ok := s.node.Cols[c].Type.Arrow().(arrow.FixedWidthDataType); !ok {
			n += 100
		}
	}
	return n
}

// positions are the columns that expressions read, rising.
func (s *scan) positions(es []expr.Expr) []int {
	set := map[expr.ColID]bool{}
	for _, e := range es {
		expr.Columns(e, set)
	}
	var out []int
	for id := range set {
		out = append(out, s.layout[id])
	}
	slices.Sort(out)
	return out
}

// layoutAt is the layout of some of the scan's columns.
func (s *scan) layoutAt(cols []int) map[expr.ColID]int {
	m := make(map[expr.ColID]int, len(cols))
	for i, c := range cols {
		m[s.node.Cols[c].ID] = i
	}
	return m
}

func (s *scan) filterStage(cols []int, conds []expr.Expr) (flow.Stage, error) {
	prog, err := expr.Compile(expr.Conjunction(conds), s.layoutAt(cols))
	return flow.Stage{Columns: cols, Select: func(_ int, in []arrow.Array, n int) ([]int32, bool, error) {
		return prog.EvalFilter(s.env.Fn, in, n)
	}}, err
}

type selector = func(worker int, cols []arrow.Array, n int) ([]int32, bool, error)

// guarded keeps a panic of ours from being taken for a fault of the file that is being read.
func guarded(sel selector) selector {
	return func(worker int, cols []arrow.Array, n int) (rows []int32, all bool, err error) {
		err = guard(func() (err error) {
			rows, all, err = sel(worker, cols, n)
			return err
		})
		return rows, all, err
	}
}

// membership is a set of keys that a join above has built: rows whose keys are not in it will be dropped.
type membership struct {
	keys []expr.Expr // of the probe side
	set  *hashtable.Members
}

// narrowed is an operator that may drop rows of its input early.
type narrowed interface {
	// narrow offers a set before the first pull. Whether it is used makes no difference to the result.
	narrow(m *membership)
}

// offerKeys tells an operator that only rows with a key in the table matter. The table is built, of these columns. Of several
// keys each is offered by itself too: a scan may drop most rows by one of them before it decodes the others.
func offerKeys(to Operator, t *hashtable.Join, built []arrow.Array, keys []plan.EquiKey, side func(plan.EquiKey) expr.Expr) {
	op, ok := to.(narrowed)
	if !ok || len(keys) == 0 {
		return
	}
	all := &membership{set: t.Members()}
	for i, k := range keys {
		e := side(k)
		if _, ok := e.Type().Arrow().(arrow.FixedWidthDataType); !ok {
			continue // texts are dear to look up twice
		}
		all.keys = append(all.keys, e)
		if len(keys) > 1 {
			if set := t.MembersOf(i, built[i]); set != nil {
				op.narrow(&membership{keys: []expr.Expr{e}, set: set})
			}
		}
	}
	if len(all.keys) == len(keys) {
		op.narrow(all)
	}
}

// narrowInput passes a set through a join to its left input, unless the join may fail for a row that would be missing.
func narrowInput(left Operator, n *plan.Join, m *membership) {
	fallible := n.On != nil && expr.Fallible(n.On) ||
		slices.ContainsFunc(n.Keys, func(k plan.EquiKey) bool { return expr.Fallible(k.Left) })
	if op, ok := left.(narrowed); ok && !fallible {
		op.narrow(m)
	}
}

// through restates the keys in terms of an input whose columns were given new names; false when a key reads another column.
func (m *membership) through(items []plan.Item) (*membership, bool) {
	from := make(map[expr.ColID]expr.Expr, len(items))
	for _, it := range items {
		from[it.Col.ID] = it.Expr
	}
	out := &membership{set: m.set}
	for _, k := range m.keys {
		set := map[expr.ColID]bool{}
		expr.Columns(k, set)
		for id := range set {
			if from[id] == nil {
				return nil, false
			}
		}
		out.keys = append(out.keys, expr.Substitute(k, from))
	}
	return out, true
}

// narrow takes the set when all of its keys are computed from the scan's columns.
func (s *scan) narrow(m *membership) {
	if s.guard != nil {
		return
	}
	set := map[expr.ColID]bool{}
	for _, k := range m.keys {
		if expr.Fallible(k) || expr.Purity(k) == fn.Volatile {
			return
		}
		expr.Columns(k, set)
	}
	for id := range set {
		if _, ok := s.layout[id]; !ok {
			return
		}
	}
	cols := s.positions(m.keys)
	prog, err := expr.CompileAll(m.keys, s.layoutAt(cols))
	if err != nil || len(cols) == 0 {
		return
	}
	tests := make([]*memberTest, s.workers)
	s.stages = append(s.stages, flow.Stage{Columns: cols, Pure: true, Select: func(w int, in []arrow.Array, n int) ([]int32, bool, error) {
		t := tests[w]
		if t == nil {
			t = &memberTest{find: m.set.Selector()}
			tests[w] = t
		}
		if t.idle > 0 {
			t.idle--
			return nil, true, nil
		}
		keys, err := prog.EvalArrays(s.env.Fn, in, n)
		if err != nil {
			return nil, false, err
		}
		rows, all := t.rows(keys, n)
		return rows, all, nil
	}})
}

// memberTest is one worker's use of a membership. A set that keeps most rows is not worth its price: the join looks them up
// again. It is then left alone for a while.
type memberTest struct {
	find func(keys []arrow.Array, n int, rows []int32) int
	kept []int32
	idle int
}

const idleBatches = 32

func (t *memberTest) rows(keys []arrow.Array, n int) ([]int32, bool) {
	if cap(t.kept) < n {
		t.kept = make([]int32, n)
	}
	rows := t.kept[:n]
	k := t.find(keys, n, rows)
	if 4*k > 3*n {
		t.idle = idleBatches
	}
	return rows[:k], k == n
}
