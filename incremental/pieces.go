package incremental

import (
	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/state"
)

// arranged is a table whose rows leave memory in the order of something that is derived from them. A restart takes its rows in pieces: when they are more than
// there is room for, those that have come are arranged, and all of them leave.
type arranged interface {
	evicted
	Name() string
	// over reports whether more is held than there is room for.
	over() bool
	// arrange derives what is derived from rows that were restored.
	arrange(env *fn.Env) error
	// undo brings all rows back that have left, as if they had just been restored.
	undo() error
}

// arrangedOf is the table of an operator, if it is such a one; nil when nothing leaves memory.
func (g *Graph) arrangedOf(k Keyed, table string) arranged {
	if e, ok := k.(evicting); ok && g.cold != nil {
		for _, t := range e.evictable() {
			if a, ok := t.(arranged); ok && a.Name() == table {
				return a
			}
		}
	}
	return nil
}

// restoreTable takes a part of a table. Where a part is not the first that has its keys, it may name rows that have left, whose places nobody knows: they come back
// before, and all stay in memory until the graph has stepped.
func (g *Graph) restoreTable(k Keyed, t state.Stored, p state.Part, mine func(group uint8) bool) error {
	a := g.arrangedOf(k, p.Table)
	if a != nil && !p.Fresh {
		if err := a.undo(); err != nil {
			return err
		}
	}
	if err := t.Restore(p, mine); err != nil {
		return err
	}
	if a == nil || !p.Fresh || !a.over() {
		return nil
	}
	if err := a.arrange(&fn.Env{TimeZone: g.opts.TimeZone, Rand: g.opts.Rand}); err != nil {
		return err
	}
	return a.Evict(0)
}
