package exec

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/hashtable"
)

// The values that a DISTINCT of the one group without keys has seen may have no room. They are parted by their own hash then, the
// accumulator is emptied, and in the end it takes the distinct values of one part after the other.

// seesDistinct reports whether a table has such values.
func (g *grouper) seesDistinct() bool {
	for i := range g.prep.items {
		if g.prep.items[i].Distinct && g.table == nil {
			return true
		}
	}
	return false
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

// flushDistinct parts what the DISTINCTs of a worker's group have seen.
func (a *aggregate) flushDistinct(w, set int, g *grouper) error {
	for i := range g.prep.items {
		if !g.prep.items[i].Distinct {
			continue
		}
		s := a.distinctSpread(set, i)
		err := g.eachPair(i, func(groups []uint32, args []arrow.Array) error { return s.add(w, args, args, len(groups)) })
		if err != nil {
			return err
		}
		g.freshDistinct(i)
		g.accs[i].Reset([]uint32{0})
	}
	return nil
}

func (a *aggregate) distinctSpread(set, i int) *spread {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.seen == nil {
		a.seen = map[[2]int]*spread{}
	}
	at := [2]int{set, i}
	if a.seen[at] == nil {
		var fields []arrow.Field
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

// foldDistinct adds the parted values of a set to the group that all workers' were merged into.
func (a *aggregate) foldDistinct(ctx context.Context, set int, g *grouper) error {
	for i := range g.distinct {
		s := a.seen[[2]int{set, i}]
		if s == nil {
			continue
		}
		if err := s.finish(); err != nil {
			return err
		}
		for p := range s.parts {
			if err := a.foldPart(ctx, g, i, s.reader(p)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *aggregate) foldPart(ctx context.Context, g *grouper, i int, part Operator) error {
	g.freshDistinct(i)
	for {
		m, err := part.Next(ctx, 0)
		if err != nil {
			return err
		}
		if m == nil {
			return a.addPairs(ctx, g)
		}
		args := make([]fn.Arg, m.Batch.NumCols())
		for k, c := range m.Batch.Columns() {
			args[k] = fn.Arg{Array: c}
		}
		if err := g.addDistinct(i, make([]uint32, m.Batch.NumRows()), args); err != nil {
			return err
		}
		a.mu.Lock()
		err = a.acct.must(a.held + g.memory())
		a.mu.Unlock()
		if err != nil {
			return err
		}
	}
}
