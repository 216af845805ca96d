package incremental

import (
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/state"
)

// byPartition is an operator that holds the rows of each partition together: they leave memory and come back all at once.
type byPartition interface {
	// begin sets up partitions that are new in memory.
	begin(fresh []int32, numbers []uint32)
	// arrange puts stored rows into the order of their partitions.
	arrange(env *fn.Env, slots, parts []uint32) error
	// rowsOf appends the rows of a partition.
	rowsOf(part uint32, to []uint32) []uint32
	// Restored is that of the operator.
	Restored(env *fn.Env) error
	// leave forgets what is derived of partitions whose rows have left memory.
	leave(parts []uint32)
}

// lists are the rows of partitions, each in an order.
type lists []ordered

// rowsOf appends the rows of a partition.
func (l lists) rowsOf(part uint32, to []uint32) []uint32 {
	l[part].each(func(s uint32) bool { to = append(to, s); return true })
	return to
}

// evictableBy lets the partitions of an operator leave memory. The one partition of all rows is always needed.
func (p *partitions) evictableBy(of byPartition, rows *state.Table, keys int) []evicted {
	if keys == 0 {
		return nil
	}
	return []evicted{coldPartitions{rows, p, of}}
}

// coldPartitions lets partitions leave memory, each with its rows.
type coldPartitions struct {
	*state.Table // rows
	parts        *partitions
	of           byPartition
}

func (c coldPartitions) Limit(in *state.Cold, path string, bytes int64) {
	p := c.parts
	p.units, p.of = state.NewUnits(c.Table, p.table, in, path, bytes), c.of
	if p.closing != nil {
		p.later = state.NewDue(in)
	}
}

func (c coldPartitions) over() bool                { return c.parts.units.Over() }
func (c coldPartitions) arrange(env *fn.Env) error { return c.of.Restored(env) }
func (c coldPartitions) undo() error               { return c.parts.units.Undo() }

func (c coldPartitions) Stuck() bool { return c.parts.units.Stuck() }

func (c coldPartitions) Evict(limit int64) error {
	p := c.parts
	return p.units.Evict(limit, c.of.rowsOf, func(numbers []uint32) error {
		if p.closing != nil {
			if err := p.putOff(numbers); err != nil {
				return err
			}
		}
		c.of.leave(numbers)
		p.table.Delete(numbers)
		return nil
	})
}

// putOff notes when partitions that leave memory are settled. Those that were out before are noted already.
func (p *partitions) putOff(numbers []uint32) error {
	var first []uint32
	var times []int64
	for _, n := range numbers {
		if p.moves || !p.units.InStore(n) {
			first, times = append(first, n), append(times, p.closes[n])
		}
		p.closes[n] = never
	}
	p.timers.forget(len(numbers), func(n uint32, at int64) bool { return p.closes[n] == at })
	return p.later.Add(p.table, first, times)
}

// fetch brings the partitions of some rows into memory, those that have left it.
func (p *partitions) fetch(env *fn.Env, cols []arrow.Array, n int, hash []uint64) error {
	if !p.units.Open() {
		return nil
	}
	back, rows, err := p.units.Fetch(p.enc.encode(cols, n, hash))
	if err != nil {
		return err
	}
	return p.arrive(env, back, rows)
}

// arrive makes partitions of rows that came back.
func (p *partitions) arrive(env *fn.Env, back state.Keys, rows [][]uint32) error {
	if len(rows) == 0 {
		return nil
	}
	numbers := make([]uint32, back.Len())
	p.table.Upsert(back, numbers)
	if p.closing != nil {
		p.closes = grown(p.closes, p.table.Slots(), never)
	}
	p.of.begin(allRows(len(numbers)), numbers)
	var slots, parts []uint32
	for i, n := range numbers {
		for _, s := range rows[i] {
			slots, parts = append(slots, s), append(parts, n)
		}
	}
	p.units.Back(numbers)
	return p.of.arrange(env, slots, parts)
}

// settle gives the partitions that the watermark has settled to end, which drops them: the earliest first, and of those that have left memory some at a time.
func (p *partitions) settle(env *fn.Env, w flow.Watermark, end func(parts []uint32) error) error {
	if p.closing == nil || w == flow.NoWatermark {
		return nil
	}
	if err := end(p.timers.take(w, p.closes, p.table.Live)); err != nil {
		return err
	}
	for {
		k, err := p.later.Take(int64(w))
		if err != nil || k.Len() == 0 {
			return err
		}
		back, rows, err := p.units.Fetch(k)
		if err != nil {
			return err
		}
		if err := p.arrive(env, back, rows); err != nil {
			return err
		}
		due := found(p.table, k)
		if p.moves { // a partition that has left memory twice is due at two times
			slices.Sort(due)
			due = slices.Compact(due)
		}
		if err := end(due); err != nil {
			return err
		}
	}
}

// all gives all partitions to end, which drops them; those that have left memory some at a time.
func (p *partitions) all(env *fn.Env, end func(parts []uint32) error) error {
	for {
		if err := end(p.table.All()); err != nil {
			return err
		}
		back, rows, err := p.units.More()
		if err != nil || len(rows) == 0 {
			return err
		}
		if err := p.arrive(env, back, rows); err != nil {
			return err
		}
	}
}
