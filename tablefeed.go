package riverbed

import (
	"sync"

	"github.com/riverbed/riverbed/core/flow"
)

// tableFeed carries changes of in-memory tables to a run. It has no bound of its own: a DML statement waits for views,
// never for a subscriber (DESIGN, section 4).
type tableFeed struct {
	mu      sync.Mutex
	pending []tableDelta
	acks    []chan struct{} // one per push not yet taken
	closed  bool
	wake    chan struct{}
	leave   func()
	wait    bool // a view's: statements wait until it has taken their change
}

// push adds one statement's changes; the channel closes when they have been stepped.
func (f *tableFeed) push(d []tableDelta) <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	ack := make(chan struct{})
	if f.closed {
		close(ack)
		return ack
	}
	f.pending, f.acks = append(f.pending, d...), append(f.acks, ack)
	select {
	case f.wake <- struct{}{}:
	default:
	}
	return ack
}

// ready is nil, and so blocks for ever, when the run reads no table.
func (f *tableFeed) ready() <-chan struct{} { return f.wake }

// take returns what has come; stepped tells those who wait.
func (f *tableFeed) take() (d []tableDelta, stepped func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	d, acks := f.pending, f.acks
	f.pending, f.acks = nil, nil
	return d, func() {
		for _, a := range acks {
			close(a)
		}
	}
}

func (f *tableFeed) close() {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	_, stepped := f.take()
	stepped()
	if f.leave != nil {
		f.leave()
	}
}

// watchTable gives a run the table's present rows as its first change, and what statements do to it from then on. The
// session is locked, so no change is missed or seen twice.
func (r *runner) watchTable(source int, in *input) {
	t := in.info.Source.Relation.(*memTable)
	if r.tables.wake == nil {
		r.tables.wake = make(chan struct{}, 1)
	}
	var first []tableDelta
	for _, b := range t.snapshot() {
		first = append(first, tableDelta{t, b, 1})
	}
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
	r.tables.push(first)
	if r.tables.leave == nil {
		r.s.watchers[&r.tables] = true
		r.tables.leave = func() {
			r.s.mu.Lock()
			delete(r.s.watchers, &r.tables)
			r.s.mu.Unlock()
		}
	}
}
