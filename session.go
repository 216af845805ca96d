package riverbed

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/riverbed/riverbed/core/clock"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/exec"
	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/spill"
	"github.com/riverbed/riverbed/core/sql"
)

// Session holds a catalog and settings. Its methods may be called by several goroutines, and by functions of the host
// that a statement calls: a statement sees the catalog of one moment, and only statements that change rows take turns.
type Session struct {
	turn turn // of statements that change rows

	mu      sync.Mutex // for what is published and looked at in one go; never held while anything is read, run or waited for
	cat     atomic.Pointer[catalog]
	views   []*matView        // in the order of their creation; replaced, never changed
	loading map[*matView]bool // views that are being made
	txn     *transaction

	prepared  map[string]*prepared                 // by name in lower case; replaced, never changed
	variables atomic.Pointer[map[string]*expr.Lit] // of SET VARIABLE, by name in lower case; replaced, never changed

	opened *config // the settings that it began with
	cfg    atomic.Pointer[config]
	clock  clock.Clock
	rand   clock.Rand
	memory *exec.Budget

	openTxns atomic.Int64 // bytes that wait for the end of sources' transactions

	inserts map[string][]string // statements that insert into each sink, for the ids of their pipelines

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
	s := &Session{opened: cfg, clock: clock.Wall{}, turn: newTurn(), loading: map[*matView]bool{}, memory: exec.NewBudget(cfg.memoryLimit),
		late: newKeptRows(flow.LateRelation, lateFields), bad: newKeptRows(flow.BadRelation, badFields)}
	s.cat.Store(newCatalog())
	s.variables.Store(&map[string]*expr.Lit{})
	s.cfg.Store(cfg)
	s.rand = clock.Shared(clock.NewRand(uint64(s.clock.Now().UnixNano())))
	return s, nil
}

// Close stops what runs and drops everything. A closed session refuses further calls.
func (s *Session) Close() error {
	err := s.runs.close()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.cat.Load().entries {
		if e.source == nil {
			continue
		}
		if p, ok := e.source.Stream.(pushed); ok {
			p.Close()
		}
	}
	s.cat.Store(newCatalog())
	s.views, s.txn = nil, nil
	return err
}

func (s *Session) usable() error {
	if s.runs.ended() {
		return errs.New(errs.Usage, "session", "the session is closed").WithHint("open a new one")
	}
	return nil
}

// env is what the operators of one run share; now is fixed for the run.
func (s *Session) env(ctx context.Context) *exec.Env {
	cfg := s.cfg.Load()
	return &exec.Env{Fn: s.fnEnv(ctx), Workers: cfg.parallelism, Memory: s.memory, Spill: spill.NewDir(cfg.stateDir)}
}

func (s *Session) fnEnv(ctx context.Context) *fn.Env {
	return &fn.Env{Ctx: ctx, Now: s.clock.Now(), TimeZone: s.cfg.Load().zone, Rand: s.rand}
}

// Query runs every statement of the text and returns the last one's query. A SELECT is planned and runs when it is
// read; everything else runs at once. The result is nil when the last statement has no rows. locals are relations
// that only this text sees, behind the catalog's.
func (s *Session) Query(ctx context.Context, text string, locals map[string]flow.Relation) (*Query, error) {
	return s.QueryWith(ctx, text, nil, locals)
}

func (s *Session) statements(ctx context.Context, text string, in given) (*Query, error) {
	stmts, err := sql.Parse(text)
	if err != nil {
		return nil, err
	}
	if err := checkParams(stmts, in.params); err != nil {
		return nil, err
	}
	var last *Query
	for i, st := range stmts {
		if last != nil {
			if err := last.discard(ctx, stmts[i-1]); err != nil {
				return nil, err
			}
		}
		if last, err = s.statement(ctx, st, text, in); err != nil {
			return nil, err
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
	if e := s.cat.Load().get(name); e != nil && (e.source == nil || !e.temp) {
		return errs.New(errs.Schema, "register", "%s %q exists already", strings.ToLower(e.kind()), e.name)
	}
	s.cat.Store(s.cat.Load().with(&entry{name: name, temp: true, source: &plan.Source{Name: name, Relation: rel, Fields: rel.Fields(), Upsert: flow.KeyOf(rel)}}))
	return nil
}

// Drop removes what Register added; other names stay.
func (s *Session) Drop(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.cat.Load().get(name); e != nil && e.temp && e.source != nil {
		s.cat.Store(s.cat.Load().without(name))
	}
}
