package riverbed

import (
	"sync"

	"github.com/riverbed/riverbed/core/flow"
)

// tableFeed carries changes of in-memory tables to a run. It has no bound of its own: a DML statement waits for views,
// never for a subscriber.
type tableFeed struct {
	wait   bool              // a view's: statements wait until it has taken their change
	tables map[*memTable]int // what the run reads, and as which source
	wake   chan struct{}     // nil, and so never ready, when the run reads no table

	mu      sync.Mutex
	pending []tableDelta
	acks    []chan struct{} // one per push not yet taken
	closed  bool
}

// push adds what concerns the run of one statement's changes; the channel closes when it has been stepped. It is nil
// when nobody has to wait.
func (f *tableFeed) push(changes []tableDelta) <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	some := false
	for _, d := range changes {
		if _, ok := f.tables[d.table]; ok && !f.closed {
			f.pending, some = append(f.pending, d), true
		}
	}
	if !some {
		return nil
	}
	ack := make(chan struct{})
	f.acks = append(f.acks, ack)
	select {
	case f.wake <- struct{}{}:
	default:
	}
	if !f.wait {
		return nil
	}
	return ack
}

// take returns what has come; stepped tells those who wait. A statement's changes are taken whole, so they are one step.
func (f *tableFeed) take() (changes []tableDelta, stepped func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	changes, acks := f.pending, f.acks
	f.pending, f.acks = nil, nil
	return changes, func() {
		for _, a := range acks {
			close(a)
		}
	}
}

// close lets nobody wait any longer.
func (f *tableFeed) close() {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	_, stepped := f.take()
	stepped()
}

// feeds are the table feeds of a session's runs.
type feeds struct {
	mu   sync.Mutex
	open map[*tableFeed]bool
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

// watchTable gives a run the table's present rows as its first change, and what statements do to it from then on. The
// session is locked, so no change is missed or seen twice.
func (r *runner) watchTable(source int, in *input) {
	t := in.info.Source.Relation.(*memTable)
	first := deltasOf(t, r.s.committed(t), 1)
	if r.until == "latest" {
		in.all = true
		r.read(func() {
			for _, d := range first {
				if !r.put(fed{source: source, rows: flow.Rows{Batch: tablePush(in.info, d)}}) {
					return
				}
			}
			r.put(fed{source: source, ended: true, noMore: true})
		})
		return
	}
	if r.tables.tables == nil {
		r.tables.tables, r.tables.wake = map[*memTable]int{}, make(chan struct{}, 1)
		r.s.feeds.add(&r.tables)
	}
	r.tables.tables[t] = source
	r.tables.push(first)
}
