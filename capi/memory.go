package main

import (
	"math"
	"runtime/debug"
	"sync"

	riverbed "github.com/riverbed/riverbed"
)

// limits tells the collector what the open sessions may hold together: it then collects more often near that, whatever
// its pace allows. The runtime is the library's own, so the host's memory is none of its business.
var limits = memoryLimits{of: map[*riverbed.Session]int64{}}

type memoryLimits struct {
	mu  sync.Mutex
	of  map[*riverbed.Session]int64
	now int64
}

// slack is what the collector may let the heap be above memory_limit: operators leave a quarter of the limit to batches on
// their way, and a heap without slack would be collected all the time.
func slack(limit int64) int64 { return limit/8 + 16<<20 }

// add takes the limit of a session that opens.
func (l *memoryLimits) add(s *riverbed.Session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.of[s] = s.MemoryLimit()
	l.apply()
}

// refresh takes a session's limit anew, which a statement may have changed; a session that was closed meanwhile stays out.
func (l *memoryLimits) refresh(s *riverbed.Session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, open := l.of[s]; open {
		l.of[s] = s.MemoryLimit()
		l.apply()
	}
}

// drop forgets a session that closes.
func (l *memoryLimits) drop(s *riverbed.Session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.of, s)
	l.apply()
}

func (l *memoryLimits) apply() {
	sum := int64(0)
	for _, n := range l.of {
		if n == 0 { // none
			sum = math.MaxInt64
			break
		}
		sum += n + slack(n)
	}
	if sum == 0 {
		sum = math.MaxInt64
	}
	if sum != l.now {
		l.now = sum
		debug.SetMemoryLimit(sum)
	}
}
