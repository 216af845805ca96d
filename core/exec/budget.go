package exec

import (
	"sync"

	"github.com/riverbed/riverbed/core/errs"
)

// Budget bounds the memory of the breakers of one session. Each breaker has an account; one that gets no more spills.
type Budget struct {
	mu      sync.Mutex
	limit   int64
	used    int64
	waiting int // accounts that hold nothing yet
}

// NewBudget returns a budget of limit bytes; 0 is no limit.
func NewBudget(limit int64) *Budget { return &Budget{limit: limit} }

// SetLimit changes the limit; what is held already stays.
func (b *Budget) SetLimit(limit int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.limit = limit
}

// Limit is the limit in bytes; 0 is none.
func (b *Budget) Limit() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.limit
}

// Used is the bytes that are held.
func (b *Budget) Used() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

// account is what one breaker holds. An operator over a part of what another has spilled is one level deeper.
type account struct {
	budget  *Budget
	op      string
	level   int
	held    int64
	waiting bool
}

// maxSpillLevel is how often a part that is too large is parted again. Beyond that its rows are of one key.
const maxSpillLevel = 3

// leastHeld is what may be held whatever the limit, where less would come to nothing.
const leastHeld = 1 << 20

// account announces a breaker: until it holds something the others leave it its share. A nil budget has no limit.
func (b *Budget) account(op string, level int) *account {
	if b == nil {
		b = NewBudget(0)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting++
	return &account{budget: b, op: op, level: level, waiting: true}
}

// limited reports whether there is a limit at all.
func (a *account) limited() bool { return a.budget.Limit() > 0 }

// set tries to hold n bytes in all; false leaves it at what it held.
//
// A quarter of the limit is left to what nobody counts: batches on their way and pages being decoded. Of the rest an account
// may have all that the others do not hold, half of it while others wait, and a 32nd of the limit in any case, so that
// the last operator of a plan can work when those below it have filled their parts.
func (a *account) set(n int64) bool {
	b := a.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	a.begin()
	if b.limit > 0 && n > a.held {
		share := b.limit/4*3 - (b.used - a.held)
		if b.waiting > 0 {
			share /= 2
		}
		if n > max(share, a.least()) {
			return false
		}
	}
	b.used += n - a.held
	a.held = n
	return true
}

// least is what the account may hold in any case. It is nothing at the top, that a limit of a few bytes makes
// everything spill.
func (a *account) least() int64 {
	if a.level < maxSpillLevel-1 {
		return a.budget.limit / 32
	}
	return max(a.budget.limit/32, leastHeld)
}

// begin ends the waiting. The budget is locked.
func (a *account) begin() {
	if a.waiting {
		a.waiting = false
		a.budget.waiting--
	}
}

// must holds n bytes in all, or says that they are too many: for what cannot be spilled.
func (a *account) must(n int64) error {
	if a.set(n) {
		return nil
	}
	b := a.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	// What set let in whatever the limit may double while it is brought to an end.
	if n <= max(leastHeld, 2*a.least()) || b.used-a.held+n <= b.limit {
		b.used += n - a.held
		a.held = n
		return nil
	}
	return errs.New(errs.Usage, "run", "%s needs more memory than memory_limit allows: %d MB in use, %d MB more wanted, limit %d MB",
		a.op, b.used>>20, (n-a.held)>>20, b.limit>>20).
		WithHint("raise memory_limit, or reduce the rows that reach this operator")
}

// force holds n bytes in all, whatever the limit: for what stands already and was estimated lower.
func (a *account) force(n int64) {
	a.budget.mu.Lock()
	defer a.budget.mu.Unlock()
	a.begin()
	a.budget.used += n - a.held
	a.held = n
}

// close gives everything back. It may be called more than once.
func (a *account) close() {
	a.budget.mu.Lock()
	defer a.budget.mu.Unlock()
	a.begin()
	a.budget.used -= a.held
	a.held = 0
}
