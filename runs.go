package riverbed

import (
	"fmt"
	"sync"
)

// runs are what a session has running, so that closing it ends them. The lock is its own: a run that ends must never
// wait for a statement, which may be waiting for that run.
type runs struct {
	mu     sync.Mutex
	open   map[closer]bool
	closed bool
	made   map[string]int // runs so far, by kind
}

type closer interface{ Close() error }

// add reports false when the session is closed: then nobody would end the run.
func (r *runs) add(c closer) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	if r.open == nil {
		r.open = map[closer]bool{}
	}
	r.open[c] = true
	return true
}

func (r *runs) remove(c closer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.open, c)
}

func (r *runs) ended() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.closed
}

// name gives a run the name by which __late and __bad know it.
func (r *runs) name(kind string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.made == nil {
		r.made = map[string]int{}
	}
	r.made[kind]++
	return fmt.Sprintf("%s-%d", kind, r.made[kind])
}

// close ends all of them and returns the first error.
func (r *runs) close() error {
	r.mu.Lock()
	r.closed = true
	var open []closer
	for c := range r.open {
		open = append(open, c)
	}
	r.mu.Unlock()
	var first error
	for _, c := range open {
		if err := c.Close(); err != nil && first == nil {
			first = err
		}
	}
	return first
}
