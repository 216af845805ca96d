package riverbed

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/riverbed/riverbed/core/clock"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/exec"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/sql"
)

// Session holds a catalog and settings. Its methods may be called by several goroutines; statements that
// change the catalog or a table take turns.
type Session struct {
	mu        sync.Mutex // catalog, settings and tables
	cfg       *config
	zone      *time.Location
	clock     clock.Clock
	rand      clock.Rand
	cat       *catalog
	memory    *exec.Budget
	views     []*matView // in the order of their creation
	txn       *transaction
	watchers  map[*tableFeed]bool // runs that read in-memory tables
	late, bad *keptRows           // __late and __bad
	closed    bool
	open      map[closer]bool // running subscriptions and pipelines
}

type closer interface{ Close() error }

// Open makes a session. Keys that config leaves out come from the environment.
func Open(given map[string]string) (*Session, error) {
	cfg, err := newConfig(given)
	if err != nil {
		return nil, err
	}
	s := &Session{cfg: cfg, clock: clock.Wall{}, cat: newCatalog(), memory: exec.NewBudget(cfg.memoryLimit), open: map[closer]bool{},
		watchers: map[*tableFeed]bool{}, late: newKeptRows(lateFields), bad: newKeptRows(badFields)}
	s.rand = clock.NewRand(uint64(s.clock.Now().UnixNano()))
	s.zone, err = loadZone(cfg.timeZone)
	return s, err
}

func loadZone(name string) (*time.Location, error) {
	loc, err := time.LoadLocation(name)
	if err != nil {
		return nil, errs.New(errs.Usage, "configure", "unknown time zone %q", name).WithHint("use a name such as 'UTC' or 'Europe/London'")
	}
	return loc, nil
}

// Close stops what runs and drops everything. A closed session refuses further calls.
func (s *Session) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	var running []closer
	for c := range s.open {
		running = append(running, c)
	}
	views := s.views
	s.mu.Unlock()
	var first error
	for _, c := range running {
		if err := c.Close(); err != nil && first == nil {
			first = err
		}
	}
	for _, v := range views {
		v.close()
	}
	s.mu.Lock()
	s.cat, s.views = newCatalog(), nil
	s.mu.Unlock()
	return first
}

func (s *Session) usable() error {
	if s.closed {
		return errs.New(errs.Usage, "session", "the session is closed").WithHint("open a new one")
	}
	return nil
}

// alive is usable for callers that do not hold the lock.
func (s *Session) alive() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.usable()
}

func (s *Session) track(c closer) {
	s.mu.Lock()
	s.open[c] = true
	s.mu.Unlock()
}

func (s *Session) untrack(c closer) {
	s.mu.Lock()
	delete(s.open, c)
	s.mu.Unlock()
}

// env is what the operators of one run share; now is fixed for the run.
func (s *Session) env() *exec.Env {
	return &exec.Env{Fn: s.fnEnv(s.clock.Now()), Workers: s.cfg.parallelism, Memory: s.memory}
}

func (s *Session) fnEnv(now time.Time) *fn.Env {
	return &fn.Env{Now: now, TimeZone: s.zone, Rand: s.rand}
}

// UnknownNames lists the relations that the text names and the session does not have, so that a host
// language can look for variables of these names. Text that does not parse names nothing.
func (s *Session) UnknownNames(text string) []string {
	stmts, err := sql.Parse(text)
	if err != nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	seen := map[string]bool{}
	for _, st := range stmts {
		for _, name := range sql.TableNames(st) {
			if low := strings.ToLower(name); !seen[low] && !strings.Contains(name, ".") && s.cat.get(low) == nil {
				seen[low] = true
				out = append(out, name)
			}
		}
	}
	return out
}

func identStrings(n sql.Name) []string {
	out := make([]string, len(n))
	for i, p := range n {
		out[i] = p.Name
	}
	return out
}

// Query runs every statement of the text and returns the last one's query. A SELECT is planned and runs when it is
// read; everything else runs at once. The result is nil when the last statement has no rows. locals are relations
// that only this text sees, behind the catalog's.
func (s *Session) Query(ctx context.Context, text string, locals map[string]flow.Relation) (*Query, error) {
	stmts, err := sql.Parse(text)
	if err != nil {
		return nil, errs.As(err).WithSQL(text)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(); err != nil {
		return nil, err
	}
	var last *Query
	for i, st := range stmts {
		if last != nil {
			if err := last.discard(ctx); err != nil {
				return nil, errs.As(err).WithSQL(text)
			}
		}
		if last, err = s.statement(ctx, st, text, locals, i == len(stmts)-1); err != nil {
			return nil, errs.As(err).WithSQL(text)
		}
	}
	return last, nil
}

// Register adds an in-memory relation under a name, as CREATE OR REPLACE TEMP VIEW over it would.
func (s *Session) Register(name string, rel flow.Relation) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(); err != nil {
		return err
	}
	if e := s.cat.get(name); e != nil && (e.source == nil || !e.temp) {
		return errs.New(errs.Schema, "register", "%s %q exists already", strings.ToLower(e.kind()), e.name)
	}
	s.cat.put(&entry{name: name, temp: true, source: &plan.Source{Name: name, Relation: rel, Fields: rel.Fields()}})
	return nil
}

// Drop removes what Register added.
func (s *Session) Drop(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.cat.get(name); e != nil && e.temp && e.source != nil {
		s.cat.drop(name)
	}
}
