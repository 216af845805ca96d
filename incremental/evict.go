package incremental

import "github.com/riverbed/riverbed/state"

// evicting is an operator that has tables whose rows may leave memory between its steps: it holds no slot of theirs, and fetches
// the keys of a batch before it looks for them.
type evicting interface{ evictable() []*state.Table }

// limitState tells the tables that can that their rows have a place to go.
func (g *Graph) limitState() {
	if g.opts.OpenStore == nil {
		return
	}
	var paths []string
	for _, n := range g.nodes {
		g.tables = append(g.tables, n.tables()...)
		for _, k := range n.keyed {
			if e, ok := k.(evicting); ok {
				for _, t := range e.evictable() {
					g.evicts, paths = append(g.evicts, t), append(paths, n.path)
				}
			}
		}
	}
	g.cold = state.NewCold(g.opts.OpenStore)
	for i, t := range g.evicts {
		t.Limit(g.cold, paths[i], g.opts.StateLimit/int64(len(g.evicts)))
	}
}

// Close gives back what the graph has on disk, if it has something there.
func (g *Graph) Close() error {
	if g.cold == nil {
		return nil
	}
	return g.cold.Close()
}

// evict makes room at the end of a step. What cannot leave has its memory first; the rest is shared by those that can, by what they hold, and
// is never less than a sixteenth, or each step would read all it needs.
func (g *Graph) evict() error {
	if len(g.evicts) == 0 {
		return nil
	}
	var all, can int64
	for _, t := range g.tables {
		all += t.Bytes()
	}
	if all <= g.opts.StateLimit {
		return nil
	}
	for _, t := range g.evicts {
		can += t.Bytes()
	}
	room := max(g.opts.StateLimit-(all-can), g.opts.StateLimit/16)
	return parallel(g.opts.Parallelism, len(g.evicts), func(i int) error {
		t := g.evicts[i]
		return t.Evict(int64(float64(room) * float64(t.Bytes()) / float64(can)))
	})
}
