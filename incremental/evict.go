package incremental

import (
	"slices"

	"github.com/riverbed/riverbed/state"
)

// evicting is an operator that has tables whose rows may leave memory between its steps: it holds nothing of theirs by its place, and fetches
// the keys of a batch before it looks for them.
type evicting interface{ evictable() []evicted }

// evicted is a table whose rows may leave memory.
type evicted interface {
	// Bytes is the memory held, roughly.
	Bytes() int64
	// Limit is called before the first row comes.
	Limit(in *state.Cold, path string, bytes int64)
	// Evict lets rows leave until about so many bytes are held, but for those with changes that no checkpoint has.
	Evict(bytes int64) error
	// Stuck reports whether such rows kept it from doing so.
	Stuck() bool
}

// together are tables of one instance that leave memory in turn, as the rows of one hang on those of another.
type together []evicted

func (ts together) Bytes() (n int64) {
	for _, t := range ts {
		n += t.Bytes()
	}
	return n
}

func (ts together) Limit(in *state.Cold, path string, bytes int64) {
	for _, t := range ts {
		t.Limit(in, path, bytes/int64(len(ts)))
	}
}

func (ts together) Evict(limit int64) error {
	part := float64(limit) / float64(max(1, ts.Bytes()))
	for _, t := range ts {
		if err := t.Evict(int64(part * float64(t.Bytes()))); err != nil {
			return err
		}
	}
	return nil
}

func (ts together) Stuck() bool { return slices.ContainsFunc(ts, evicted.Stuck) }

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
	room := g.opts.StateRoom
	if room == nil {
		room = state.NewRoom(g.opts.StateLimit)
	}
	g.room = room.Join()
	g.cold = state.NewCold(g.opts.OpenStore)
	for i, t := range g.evicts {
		t.Limit(g.cold, paths[i], room.Limit()/int64(len(g.evicts)))
	}
}

// Close gives back what the graph has on disk, if it has something there, and its share of the memory.
func (g *Graph) Close() error {
	if g.cold == nil {
		return nil
	}
	g.room.Leave()
	return g.cold.Close()
}

// Pressed reports whether state holds more memory than it may because of changes that no checkpoint has: an epoch should end now. It needs
// Options.TrackChanges.
func (g *Graph) Pressed() bool { return g.pressed }

// evict makes room at the end of a step. What cannot leave has its memory first; the rest is shared by those that can, by what they hold, and
// is never less than a sixteenth, or each step would read all it needs.
func (g *Graph) evict() error {
	if g.room == nil {
		return nil
	}
	g.pressed = false
	var all, can int64
	for _, t := range g.tables {
		all += t.Bytes()
	}
	limit := g.room.Hold(all)
	if all <= limit || len(g.evicts) == 0 {
		return nil
	}
	for _, t := range g.evicts {
		can += t.Bytes()
	}
	room := max(limit-(all-can), limit/16)
	err := parallel(g.opts.Parallelism, len(g.evicts), func(i int) error {
		t := g.evicts[i]
		return t.Evict(int64(float64(room) * float64(t.Bytes()) / float64(can)))
	})
	g.pressed = slices.ContainsFunc(g.evicts, evicted.Stuck)
	return err
}
