package riverbed

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"

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
	mu    sync.Mutex // catalog, tables and views
	cat   *catalog
	views []*matView // in the order of their creation
	txn   *transaction

	opened *config // the settings that it began with
	cfg    atomic.Pointer[config]
	clock  clock.Clock
	rand   clock.Rand
	memory *exec.Budget

	feeds     feeds     // runs that follow in-memory tables
	runs      runs      // subscriptions, pipelines and views that run
	late, bad *keptRows // __late and __bad
}

// Open makes a session. Keys that config leaves out come from the environment.
func Open(given map[string]string) (*Session, error) {
	cfg, err := newConfig(given)
	if err != nil {
		return nil, err
	}
	s := &Session{opened: cfg, clock: clock.Wall{}, cat: newCatalog(), memory: exec.NewBudget(cfg.memoryLimit),
		late: newKeptRows(lateFields), bad: newKeptRows(badFields)}
	s.cfg.Store(cfg)
	s.rand = clock.Shared(clock.NewRand(uint64(s.clock.Now().UnixNano())))
	return s, nil
}

// Close stops what runs and drops everything. A closed session refuses further calls.
func (s *Session) Close() error {
	err := s.runs.close() // without the session's lock: a statement may hold it until a run has taken its change
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cat, s.views, s.txn = newCatalog(), nil, nil
	return err
}

func (s *Session) usable() error {
	if s.runs.ended() {
		return errs.New(errs.Usage, "session", "the session is closed").WithHint("open a new one")
	}
	return nil
}

// env is what the operators of one run share; now is fixed for the run.
func (s *Session) env() *exec.Env {
	return &exec.Env{Fn: s.fnEnv(), Workers: s.cfg.Load().parallelism, Memory: s.memory}
}

func (s *Session) fnEnv() *fn.Env {
	return &fn.Env{Now: s.clock.Now(), TimeZone: s.cfg.Load().zone, Rand: s.rand}
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
			if err := last.discard(ctx, stmts[i-1]); err != nil {
				return nil, errs.As(err).WithSQL(text)
			}
		}
		if last, err = s.statement(ctx, st, text, locals); err != nil {
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

// Drop removes what Register added; other names stay.
func (s *Session) Drop(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.cat.get(name); e != nil && e.temp && e.source != nil {
		s.cat.drop(name)
	}
}
