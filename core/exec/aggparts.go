package exec

import (
	"sync"

	"github.com/riverbed/riverbed/core/hashtable"
)

// partTables hands the table of a part that is done, or of a worker's first rows, on to the next part, and tells how many groups to expect there: parts by
// hash are alike. A table that has its size from the start is not moved while it grows, and memory that was just in use is warm.
type partTables struct {
	mu           sync.Mutex
	free         []hashtable.Table
	rows, groups int // of the parts that are done
}

// take gives a grouper that is empty room for what so many rows will make.
func (t *partTables) take(g *grouper, rows int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.rows == 0 {
		return
	}
	room := min(rows, int(float64(rows)*1.1*float64(t.groups)/float64(t.rows))+64)
	if n := len(t.free); n > 0 {
		g.table, t.free = t.free[n-1], t.free[:n-1]
	}
	g.table.Reset(room)
	g.reserve(room)
}

// give takes the table of a part that was read to its end. No result refers to it.
func (t *partTables) give(g *grouper, rows int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rows, t.groups = t.rows+rows, t.groups+g.n
	t.free = append(t.free, g.table)
}
