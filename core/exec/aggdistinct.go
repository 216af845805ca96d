package exec

import (
	"context"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/hashtable"
	"github.com/riverbed/riverbed/core/plan"
)

// What a DISTINCT has seen may have no room where parting the groups by their keys would not help: there is one group, or a few
// with many values each. The values are parted by their own hash then, their groups beside them, and the accumulators are
// emptied; the groups stay. In the end the accumulators take the distinct values of one part after the other.

// seesDistinct reports whether there is a DISTINCT.
func (g *grouper) seesDistinct() bool {
	return slices.ContainsFunc(g.prep.items, func(a plan.AggItem) bool { return a.Distinct })
}

// seenBytes is the memory of what the DISTINCTs have seen.
func (g *grouper) seenBytes() (n int64) {
	for i := range g.prep.items {
		if d := g.distinct[i]; d != nil {
			n += d.Bytes()
		}
		for _, s := range g.pairs[i] {
			n += s.set.Bytes()
		}
	}
	return n
}

// byValue reports whether to part what the DISTINCTs of a set have seen rather than its groups. Groups of which some were parted
// already all are.
func (a *aggregate) byValue(set int, g *grouper) bool {
	if g.table == nil {
		return true
	}
	a.mu.Lock()
	parted := a.spills[set] != nil
	a.mu.Unlock()
	return !parted && (g.n <= fan || !a.partable(g)) && 2*g.seenBytes() > g.memory()
}

// freshDistinct makes what aggregate i's DISTINCT has seen empty.
func (g *grouper) freshDistinct(i int) {
	if _, ok := g.prep.pairedType(i); ok {
		g.pairs[i] = []pairSource{{set: hashtable.NewPairSet(g.pairBits)}}
		return
	}
	g.distinct[i] = g.distinctTable(i)
}

// distinctTable makes the table of aggregate i's DISTINCT.
func (g *grouper) distinctTable(i int) hashtable.Table {
	return hashtable.NewTable(append(g.groupType(), g.prep.calls[i].types...))
}

// flushDistinct parts what the DISTINCTs of a worker's groups have seen.
func (a *aggregate) flushDistinct(w, set int, g *grouper) error {
	for i := range g.prep.items {
		if !g.prep.items[i].Distinct {
			continue
		}
		s := a.distinctSpread(set, i, g)
		err := g.eachPair(i, func(groups []uint32, args []arrow.Array) error {
			cols := args
			if g.table != nil {
				cols = append(g.table.KeysOf(groups), args...)
			}
			return s.add(w, cols, args, len(groups))
		})
		if err != nil {
			return err
		}
		g.freshDistinct(i)
		g.accs[i].Reset(numbers(0, g.n))
	}
	return nil
}

func (a *aggregate) distinctSpread(set, i int, g *grouper) *spread {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.seen == nil {
		a.seen = map[[2]int]*spread{}
	}
	at := [2]int{set, i}
	if a.seen[at] == nil {
		var fields []arrow.Field
		for _, t := range g.keyTypes {
			fields = append(fields, arrow.Field{Name: "key", Type: t.Arrow(), Nullable: true})
		}
		for _, t := range a.prep.calls[i].types {
			fields = append(fields, arrow.Field{Name: "value", Type: t.Arrow(), Nullable: true})
		}
		a.seen[at] = newSpread(a.env, a.acct, arrow.NewSchema(fields, nil), a.env.Workers)
	}
	return a.seen[at]
}

// spilledDistinct reports whether some worker has parted the values of a set.
func (a *aggregate) spilledDistinct(set int) bool {
	for at := range a.seen {
		if at[0] == set {
			return true
		}
	}
	return false
}

// foldDistinct adds the parted values of a set to the groups that all workers' were merged into.
func (a *aggregate) foldDistinct(ctx context.Context, set int, g *grouper) error {
	others := -g.memory() // what else the account holds; what the workers had seen is parted and gone
	for w := range a.workers {
		others += a.workers[w].memory()
	}
	for i := range g.distinct {
		s := a.seen[[2]int{set, i}]
		if s == nil {
			continue
		}
		if err := s.finish(); err != nil {
			return err
		}
		for p := range s.parts {
			if err := a.foldPart(ctx, g, i, s.reader(p), others); err != nil {
				return err
			}
		}
	}
	return nil
}

// foldPart adds the values of a part. The account holds others beside the groups.
func (a *aggregate) foldPart(ctx context.Context, g *grouper, i int, part Operator, others int64) error {
	g.freshDistinct(i)
	for {
		m, err := part.Next(ctx, 0)
		if err != nil {
			return err
		}
		if m == nil {
			return a.addPairs(ctx, g, others+g.memory())
		}
		if err := g.loadPairs(m.Batch.Columns(), int(m.Batch.NumRows()), i); err != nil {
			return err
		}
		if err := a.acct.must(others + g.memory()); err != nil {
			return err
		}
	}
}

// regroup parts by keys what was parted by values before there were too many groups.
func (a *aggregate) regroup(ctx context.Context) error {
	for at, from := range a.seen {
		s := a.spills[at[0]]
		if s == nil {
			continue
		}
		if err := from.finish(); err != nil {
			return err
		}
		for p := range from.parts {
			for part := from.reader(p); ; {
				m, err := part.Next(ctx, 0)
				if err != nil {
					return err
				}
				if m == nil {
					break
				}
				cols := m.Batch.Columns()
				if err := s.pairs[at[1]].add(0, cols, cols[:len(s.set)], int(m.Batch.NumRows())); err != nil {
					return err
				}
			}
		}
		delete(a.seen, at)
		if err := from.close(); err != nil {
			return err
		}
	}
	return nil
}
