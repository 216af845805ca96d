package exec

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/fn"
)

// An aggregate of many groups is parted by the hash of its keys, and each part is aggregated by itself, by one worker, in a
// table that stays in cache. What is parted is one of two:
//
//   - the rows, when grouping them makes few fewer of them: nothing is grouped twice then, and nothing merged;
//   - the groups with the state of their accumulators, when a worker's groups have no more room. States add up exactly, so
//     the result is the same. The values that a DISTINCT has seen are parted beside them, as pairs of keys and arguments, or,
//     where the groups are few, instead of them (aggdistinct.go).

// sampleRows is after how many rows a worker judges how many groups they make; after earlyRows when nearly each makes one.
const (
	earlyRows  = 16 << 10
	sampleRows = 64 << 10
)

// aggSpill is the parts of one grouping set.
type aggSpill struct {
	prep   *Prepared
	set    []int
	keys   *expr.Program // of the set
	rows   *spread       // of the input
	states *spread       // keys, states
	pairs  []*spread     // of each DISTINCT aggregate: keys, arguments
	tables partTables
}

// partable reports whether a set's rows can be told apart by keys, and whether parting them again would help.
func (a *aggregate) partable(g *grouper) bool { return g.table != nil && a.acct.level < maxSpillLevel }

// spill is the parts of a set; it makes them.
func (a *aggregate) spill(set int, g *grouper) (*aggSpill, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if s := a.spills[set]; s != nil {
		return s, nil
	}
	s := &aggSpill{prep: a.prep, set: g.set, pairs: make([]*spread, len(g.accs))}
	var es []expr.Expr
	var keys []arrow.Field
	for _, k := range g.set {
		es = append(es, a.node.Keys[k].Expr)
		keys = append(keys, arrow.Field{Name: "key", Type: a.prep.Keys[k].Arrow(), Nullable: true})
	}
	var err error
	if s.keys, err = expr.CompileAll(es, layoutOf(a.node.Input.Columns())); err != nil {
		return nil, err
	}
	with := func(more ...arrow.Field) *arrow.Schema {
		return arrow.NewSchema(append(append([]arrow.Field{}, keys...), more...), nil)
	}
	n := a.env.Workers
	s.rows = newSpread(a.env, a.acct, schemaOf(a.node.Input.Columns()), n)
	var states []arrow.Field
	for i, acc := range g.accs {
		if !g.prep.items[i].Distinct {
			states = append(states, arrow.Field{Name: "state", Type: acc.State().Arrow(), Nullable: true})
			continue
		}
		var args []arrow.Field
		for _, t := range a.prep.calls[i].types {
			args = append(args, arrow.Field{Name: "argument", Type: t.Arrow(), Nullable: true})
		}
		s.pairs[i] = newSpread(a.env, a.acct, with(args...), n)
	}
	s.states = newSpread(a.env, a.acct, with(states...), n)
	a.spills[set] = s
	return s, nil
}

func (s *aggSpill) spreads() []*spread {
	out := []*spread{s.rows, s.states}
	for _, p := range s.pairs {
		if p != nil {
			out = append(out, p)
		}
	}
	return out
}

func (s *aggSpill) close() (err error) {
	if s == nil {
		return nil
	}
	for _, p := range s.spreads() {
		if e := p.close(); err == nil {
			err = e
		}
	}
	return err
}

func (s *aggSpill) addRows(worker int, m *flow.Morsel) error {
	return s.rows.addKeyed(worker, m, s.keys)
}

// decide judges a worker's first rows: where nearly each is a group of its own, they and all that follow are parted as rows.
func (a *aggregate) decide(w int, m *flow.Morsel) error {
	l := &a.workers[w]
	if len(l.groupers) > 1 || !a.partable(l.groupers[0]) || a.acct.level > 0 {
		l.decided = true
		return nil
	}
	l.kept = append(l.kept, m)
	early := l.rows >= earlyRows && 16*l.groupers[0].n >= 15*l.rows
	if l.rows < sampleRows && !early {
		return nil
	}
	l.decided = true
	if 4*l.groupers[0].n < l.groupers[0].manyOfFour()*l.rows {
		l.kept = nil
		return nil
	}
	return a.keepRows(w)
}

// manyOfFour is how many groups four rows must make that grouping them here is not worth it. Long texts are worth it less: each
// row of a known group reads the bytes that were kept of it, which are not in cache.
func (g *grouper) manyOfFour() int {
	if 2*g.table.LongTexts() > g.n {
		return 2
	}
	return 3
}

// keepRows forgets the groups of the first rows and parts these instead.
func (a *aggregate) keepRows(w int) error {
	l := &a.workers[w]
	s, err := a.spill(0, l.groupers[0])
	if err != nil {
		return err
	}
	for _, m := range l.kept {
		if err := s.addRows(w, m); err != nil {
			return err
		}
	}
	if !a.acct.limited() {
		s.tables.give(l.groupers[0], l.rows)
	}
	l.kept, l.byRow = nil, true
	a.fresh(l)
	return a.account(l, 0)
}

// account sets what a worker holds.
func (a *aggregate) account(l *aggWorker, size int64) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.held += size - l.size
	l.size = size
	return a.acct.must(a.held)
}

// grown accounts for a worker's groups, and spills them when they have no room.
func (a *aggregate) grown(w int) error {
	l := &a.workers[w]
	size, spills := l.memory(), false
	for _, g := range l.groupers {
		spills = spills || a.partable(g) || g.seesDistinct()
	}
	if !spills || a.env.Spill == nil {
		return a.account(l, size)
	}
	if a.acct.limited() {
		size *= 2 // a table that grows stands beside the larger one
	}
	a.mu.Lock()
	ok := a.acct.set(a.held + size - l.size)
	if ok {
		a.held += size - l.size
		l.size = size
	}
	a.mu.Unlock()
	if ok {
		return nil
	}
	few := 4*l.groupers[0].n < 3*l.rows
	stay := make([]bool, len(l.groupers))
	for i, g := range l.groupers {
		stay[i] = a.byValue(i, g) || !a.partable(g)
	}
	if err := a.flush(w, stay); err != nil {
		return err
	}
	l.kept, l.decided = nil, true
	l.byRow = !few && len(stay) == 1 && !stay[0]
	return nil
}

// flush parts a worker's groups and begins anew. Those that stay only lose what their DISTINCTs have seen.
func (a *aggregate) flush(w int, stay []bool) error {
	l := &a.workers[w]
	sets := l.groupers
	l.groupers = nil
	rest := int64(0)
	for i, g := range sets {
		if stay[i] {
			if err := a.flushDistinct(w, i, g); err != nil {
				return err
			}
			if g.table != nil {
				rest += g.memory()
			}
			continue
		}
		s, err := a.spill(i, g)
		if err != nil {
			return err
		}
		if err := s.addGroups(w, g); err != nil {
			return err
		}
	}
	a.fresh(l)
	for i, g := range sets {
		if stay[i] {
			l.groupers[i] = g
		}
	}
	return a.account(l, rest)
}

// addGroups parts the groups of a table.
func (s *aggSpill) addGroups(worker int, g *grouper) error {
	for from := 0; from < g.n; from += ChunkRows {
		ids := numbers(from, min(from+ChunkRows, g.n))
		keys := g.table.KeysOf(ids)
		cols := append([]arrow.Array{}, keys...)
		for i, acc := range g.accs {
			if g.prep.items[i].Distinct {
				continue
			}
			state, err := acc.Save(ids)
			if err != nil {
				return err
			}
			cols = append(cols, state)
		}
		if err := s.states.add(worker, cols, keys, len(ids)); err != nil {
			return err
		}
	}
	for i := range g.prep.items {
		err := g.eachPair(i, func(groups []uint32, args []arrow.Array) error {
			keys := g.table.KeysOf(groups)
			return s.pairs[i].add(worker, append(append([]arrow.Array{}, keys...), args...), keys, len(groups))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func numbers(from, to int) []uint32 {
	ids := make([]uint32, to-from)
	for i := range ids {
		ids[i] = uint32(from + i)
	}
	return ids
}

// partRest parts what is left when some was parted already, and makes the aggregates over the parts.
func (a *aggregate) partRest(ctx context.Context) error {
	some := false
	for _, s := range a.spills {
		some = some || s != nil
	}
	if !some {
		return nil
	}
	for w := range a.workers {
		l := &a.workers[w]
		var err error
		if len(l.kept) > 0 && !l.byRow {
			err = a.keepRows(w)
		} else {
			stay := make([]bool, len(l.groupers))
			for i, g := range l.groupers {
				stay[i] = g.table == nil
			}
			err = a.flush(w, stay)
		}
		if err != nil {
			return err
		}
	}
	if err := a.regroup(ctx); err != nil {
		return err
	}
	for _, s := range a.spills {
		if s == nil {
			continue
		}
		for _, p := range s.spreads() {
			if err := p.finish(); err != nil {
				return err
			}
		}
	}
	a.parted = newParted(a.env.Workers, fan*len(a.spills), func(p int) (Operator, error) {
		set, p := p/fan, p%fan
		s := a.spills[set]
		if s == nil {
			return nil, nil
		}
		rows := 0
		for _, p1 := range s.spreads() {
			rows += p1.parts[p].rows
		}
		if rows == 0 {
			return nil, nil
		}
		sets := a.sets
		if sets != nil {
			sets = a.sets[set : set+1]
		}
		child := newAggregateOver(a.node, deeper(a.env), s.rows.reader(p), a.prep, sets, a.keys, a.acct.level+1)
		if child.room = rows; !a.acct.limited() {
			child.tables = &s.tables
		}
		child.loads = append(child.loads, stored{s.states.reader(p), -1})
		for i, d := range s.pairs {
			if d != nil {
				child.loads = append(child.loads, stored{d.reader(p), i})
			}
		}
		return child, nil
	})
	return nil
}

// stored is groups that were parted: with their states, or the pairs of one DISTINCT aggregate.
type stored struct {
	from  Operator
	pairs int // the aggregate; -1: states
}

// load adds groups to those of the first worker.
func (a *aggregate) load(ctx context.Context, from stored) error {
	for {
		m, err := from.from.Next(ctx, 0)
		if err != nil || m == nil {
			return err
		}
		g := a.workers[0].groupers[0]
		if err := g.load(m.Batch.Columns(), int(m.Batch.NumRows()), from.pairs); err != nil {
			return err
		}
		a.workers[0].rows += int(m.Batch.NumRows())
		if err := a.grown(0); err != nil {
			return err
		}
		a.workers[0].byRow = false // what is loaded are groups
	}
}

// load adds what addGroups has parted.
func (g *grouper) load(cols []arrow.Array, n, pairs int) error {
	if pairs >= 0 {
		return g.loadPairs(cols, n, pairs)
	}
	ids, at := g.groupsOf(cols, n), len(g.set)
	for i, acc := range g.accs {
		if g.prep.items[i].Distinct {
			continue
		}
		if err := acc.Load(ids, cols[at]); err != nil {
			return err
		}
		at++
	}
	return nil
}

// loadPairs adds what the DISTINCT of aggregate i has seen: keys and arguments.
func (g *grouper) loadPairs(cols []arrow.Array, n, i int) error {
	ids, keys := g.groupsOf(cols, n), len(g.set)
	args := make([]fn.Arg, len(cols)-keys)
	for k, c := range cols[keys:] {
		args[k] = fn.Arg{Array: c}
	}
	return g.addDistinct(i, ids, args)
}

// groupsOf finds or adds the groups of rows whose first columns are their keys.
func (g *grouper) groupsOf(cols []arrow.Array, n int) []uint32 {
	ids := make([]uint32, n)
	if g.table == nil {
		return ids
	}
	g.table.FindOrAdd(cols[:len(g.set)], n, ids)
	if k := g.table.Len(); k > g.n {
		g.resize(k)
	}
	return ids
}
