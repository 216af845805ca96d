package riverbed

import (
	"sync"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/spill"
)

// tableFeed carries changes of in-memory tables to a run. A DML statement waits for views, never for a subscriber: what
// comes while a subscriber is behind by feedBytes goes to a temporary file, and the run takes it from there.
type tableFeed struct {
	wait   bool              // a view's: statements wait until it has taken their change
	tables map[*memTable]int // what the run reads, and as which source
	wake   chan struct{}     // nil, and so never ready, when the run reads no table
	dir    *spill.Dir

	mu      sync.Mutex
	pending []fedChange
	held    int64       // bytes of pending in memory
	file    *spill.File // of pending on disk; nil when there is none
	err     error       // why something is missing; it ends the run
	closed  bool
}

// fedChange is what one statement did to the tables of a run.
type fedChange struct {
	deltas []fedDelta
	rows   int
	ack    chan struct{}
}

// fedDelta is a delta in memory, or, without rows, in the file.
type fedDelta struct {
	tableDelta
	bytes int64 // in memory
	span  spill.Span
}

// feedBytes is how much a subscriber may be behind in memory. One statement's change is held whole in any case.
const feedBytes = 16 << 20

// push adds what concerns the run of one statement's changes; the channel closes when it has been stepped. It is nil
// when nobody has to wait.
func (f *tableFeed) push(changes []tableDelta) <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil
	}
	c := fedChange{ack: make(chan struct{})}
	for _, d := range changes {
		if _, ok := f.tables[d.table]; ok {
			c.rows += int(d.rows.NumRows())
			c.deltas = append(c.deltas, f.hold(d))
		}
	}
	if len(c.deltas) == 0 {
		return nil
	}
	f.pending = append(f.pending, c)
	f.awake()
	if !f.wait {
		return nil
	}
	return c.ack
}

// hold keeps a delta in memory, or in the file when the run is behind.
func (f *tableFeed) hold(d tableDelta) fedDelta {
	out := fedDelta{tableDelta: d, bytes: batchBytes(d.rows)}
	if f.wait || len(f.pending) == 0 || f.held+out.bytes <= feedBytes || f.err != nil {
		f.held += out.bytes
		return out
	}
	if f.file == nil {
		if f.file, f.err = f.dir.Create(); f.err != nil {
			return out
		}
	}
	out.bytes, out.rows = 0, nil
	out.span, f.err = f.file.Write(d.rows)
	return out
}

// waits reports whether there are changes that no step has taken.
func (f *tableFeed) waits() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.pending) > 0
}

func (f *tableFeed) awake() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// take returns changes for a step, whole statements up to so many rows; stepped tells those who wait.
func (f *tableFeed) take(rows int) (changes []tableDelta, stepped func(), err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var acks []chan struct{}
	stepped = func() {
		for _, a := range acks {
			close(a)
		}
	}
	for taken := 0; len(f.pending) > 0 && (taken == 0 || taken+f.pending[0].rows <= rows); {
		c := f.pending[0]
		f.pending = f.pending[1:]
		taken += c.rows
		acks = append(acks, c.ack)
		for _, d := range c.deltas {
			if d.rows == nil && f.err == nil {
				d.rows, f.err = f.file.Read(d.span)
			}
			if f.err != nil {
				return nil, stepped, f.err
			}
			f.held -= d.bytes
			changes = append(changes, d.tableDelta)
		}
	}
	if len(f.pending) > 0 {
		f.awake()
	} else {
		f.freeFile()
	}
	return changes, stepped, nil
}

func (f *tableFeed) freeFile() {
	if f.file != nil {
		_ = f.file.Close() // nothing in it is needed any more
		f.file = nil
	}
}

// close lets nobody wait any longer.
func (f *tableFeed) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.pending {
		close(c.ack)
	}
	f.closed, f.pending = true, nil
	f.freeFile()
}

// batchBytes is the memory of a batch's columns.
func batchBytes(b arrow.RecordBatch) int64 {
	var n uint64
	for _, c := range b.Columns() {
		n += c.Data().SizeInBytes()
	}
	return int64(n)
}

// feeds are the table feeds of a session's runs.
type feeds struct {
	mu   sync.Mutex
	open map[*tableFeed]bool
}

// follows reports whether a run reads the table.
func (fs *feeds) follows(t *memTable) bool {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	for f := range fs.open {
		if _, ok := f.tables[t]; ok {
			return true
		}
	}
	return false
}

func (fs *feeds) add(f *tableFeed) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if fs.open == nil {
		fs.open = map[*tableFeed]bool{}
	}
	fs.open[f] = true
}

func (fs *feeds) remove(f *tableFeed) {
	fs.mu.Lock()
	delete(fs.open, f)
	fs.mu.Unlock()
	f.close()
}

// push hands changes to every run and returns what a statement has to wait for.
func (fs *feeds) push(changes []tableDelta) []<-chan struct{} {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	var acks []<-chan struct{}
	for f := range fs.open {
		if ack := f.push(changes); ack != nil {
			acks = append(acks, ack)
		}
	}
	return acks
}

// watchTable gives a run the table's present rows and lets it follow what statements do to it from then on. What is
// returned is the run's first change. The session is locked, so no change is missed or seen twice.
func (r *runner) watchTable(source int, in *input) []tableDelta {
	t := in.info.Source.Relation.(*memTable)
	first := deltasOf(t, r.s.committed(t), 1)
	if r.durable != nil {
		first = r.durable.differs(t, first)
	} else if r.until == "latest" {
		in.all = true
		r.read(func() {
			for _, p := range tablePushes(source, in.info, first) {
				if !r.put(fed{source: source, rows: flow.Rows{Batch: p.Batch, Places: p.Places}}) {
					return
				}
			}
			r.put(fed{source: source, ended: true, noMore: true})
		})
		return nil
	}
	if r.tables.tables == nil {
		r.tables.tables, r.tables.wake = map[*memTable]int{}, make(chan struct{}, 1)
		r.tables.dir = spill.NewDir(r.cfg.stateDir)
		if r.until == "" {
			r.s.feeds.add(&r.tables)
		}
	}
	if in.once = r.until == "latest"; in.once {
		r.tables.awake()
	}
	r.tables.tables[t] = source
	return first
}
