package riverbed

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/riverbed/riverbed/connectors"
	"github.com/riverbed/riverbed/connectors/all"
	"github.com/riverbed/riverbed/core/bind"
	"github.com/riverbed/riverbed/core/clock"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/exec"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/plan"
	"github.com/riverbed/riverbed/core/sql"
	"github.com/riverbed/riverbed/core/types"
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

// CreateStream declares a stream over a connector.
func (s *Session) CreateStream(ctx context.Context, name string, spec StreamSpec) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(); err != nil {
		return err
	}
	return s.createSource(ctx, name, spec, true, false)
}

// CreateTable declares a table over a connector's bounded form.
func (s *Session) CreateTable(ctx context.Context, name string, spec StreamSpec) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(); err != nil {
		return err
	}
	return s.createSource(ctx, name, spec, false, false)
}

// AddStream puts a stream of this process (MemoryStream) under a name.
func (s *Session) AddStream(name string, st flow.Stream, watermark, eventTime string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(); err != nil {
		return err
	}
	return s.addStream(name, st, watermark, eventTime, 0, false)
}

func (s *Session) createSource(ctx context.Context, name string, spec StreamSpec, live, replace bool) error {
	if err := s.free(name, replace); err != nil {
		return err
	}
	src := all.Source(spec.Connector)
	if src == nil {
		return unknownConnector(spec.Connector, sourceNames())
	}
	options := map[string]string{}
	for k, v := range spec.Options {
		options[strings.ToLower(k)] = v
	}
	watermark, eventTime := take(options, "watermark", spec.Watermark), take(options, "event_time", spec.EventTime)
	lateness, err := durationMS(take(options, "allowed_lateness", ""))
	if err != nil {
		return err
	}
	if src.Name == "kafka" && options["brokers"] == "" && s.cfg.kafkaBrokers != "" {
		options["brokers"] = s.cfg.kafkaBrokers
	}
	set, err := src.Options.Parse("connector '"+src.Name+"'", options)
	if err != nil {
		return err
	}
	fields, err := s.declared(spec.Columns)
	if err != nil {
		return err
	}
	req := connectors.OpenRequest{Name: name, Settings: set, Schema: fields, Clock: s.clock}
	if live {
		if src.Stream == nil {
			return errs.New(errs.Usage, "create stream", "the connector %q cannot be read as a stream", src.Name)
		}
		st, err := src.Stream(ctx, req)
		if err != nil {
			return err
		}
		return s.addStream(name, st, watermark, eventTime, lateness, replace)
	}
	if src.Relation == nil {
		return errs.New(errs.Usage, "create table", "the connector %q never ends, so it cannot be a table", src.Name).WithHint("use CREATE STREAM")
	}
	rel, err := src.Relation(ctx, req)
	if err != nil {
		return err
	}
	s.cat.put(&entry{name: name, source: &plan.Source{Name: name, Relation: rel, Fields: rel.Fields()}})
	return nil
}

// take removes an option of the session's own from a connector's options.
func take(options map[string]string, key, given string) string {
	if v, ok := options[key]; ok {
		delete(options, key)
		if given == "" {
			return v
		}
	}
	return given
}

func durationMS(s string) (int64, error) {
	if s == "" {
		return 0, nil
	}
	v, err := types.ParseValue(s, types.Span)
	if err != nil {
		return 0, errs.New(errs.Usage, "create stream", "allowed_lateness: %q is not an interval", s)
	}
	iv := v.(types.IntervalValue)
	return iv.Micros/1000 + int64(iv.Days)*86400000, nil
}

func (s *Session) declared(cols []ColumnSpec) ([]types.Field, error) {
	if len(cols) == 0 {
		return nil, nil
	}
	fields := make([]types.Field, len(cols))
	for i, c := range cols {
		x, err := sql.ParseExpr("CAST(NULL AS " + c.Type + ")")
		if err != nil {
			return nil, errs.New(errs.Schema, "create stream", "column %q: %q is not a type", c.Name, c.Type)
		}
		e, err := bind.New(&scopeCatalog{s: s}, bind.Options{}).Expr(x, nil, types.Type{})
		if err != nil {
			return nil, err
		}
		fields[i] = types.Field{Name: c.Name, Type: e.Type()}
	}
	return fields, nil
}

func (s *Session) addStream(name string, st flow.Stream, watermark, eventTime string, latenessMS int64, replace bool) error {
	if err := s.free(name, replace); err != nil {
		return err
	}
	src := &plan.Source{Name: name, Stream: st, Fields: st.Fields()}
	for _, f := range src.Fields {
		if flow.Reserved(f.Name) {
			return errs.New(errs.Schema, "create stream", "a column may not be named %q", f.Name)
		}
	}
	if watermark != "" {
		spec, err := s.watermark(src.Fields, watermark, eventTime)
		if err != nil {
			return err
		}
		spec.LatenessUS = min(latenessMS, s.cfg.maxWatermarkLag) * 1000
		spec.IdleTimeout = s.cfg.idleTimeout
		src.Watermark = spec
	}
	s.cat.put(&entry{name: name, source: src})
	return nil
}

// watermark binds a watermark expression. The event-time column is the one that the expression names.
func (s *Session) watermark(fields []types.Field, text, eventTime string) (*plan.WatermarkSpec, error) {
	x, err := sql.ParseExpr(text)
	if err != nil {
		return nil, errs.As(err).WithSQL(text)
	}
	e, err := bind.New(&scopeCatalog{s: s}, bind.Options{SQL: text}).Expr(x, fields, types.Type{})
	if err != nil {
		return nil, err
	}
	if !e.Type().IsTemporal() || e.Type().Kind == types.Time {
		return nil, errs.New(errs.Schema, "create stream", "the watermark %q is of type %s, not a timestamp", text, e.Type())
	}
	cols := map[int]bool{}
	exprColumns(e, cols)
	at := -1
	for i, f := range fields {
		if strings.EqualFold(f.Name, eventTime) || (eventTime == "" && cols[i]) {
			if at >= 0 {
				return nil, errs.New(errs.Schema, "create stream", "the watermark %q names several columns", text).WithHint("say which one is the event time: event_time = '…'")
			}
			at = i
		}
	}
	if at < 0 {
		return nil, errs.New(errs.Schema, "create stream", "the watermark %q names no column of the stream", text)
	}
	if !fields[at].Type.IsTimestamp() && fields[at].Type.Kind != types.Date {
		return nil, errs.New(errs.Schema, "create stream", "the event-time column %q is of type %s, not a timestamp", fields[at].Name, fields[at].Type)
	}
	return &plan.WatermarkSpec{Column: at, Expr: e, SQL: text}, nil
}

// free reports an error when a name is taken and may not be replaced.
func (s *Session) free(name string, replace bool) error {
	e := s.cat.get(name)
	if e == nil {
		return nil
	}
	if !replace {
		return errs.New(errs.Schema, "create", "%s %q exists already", strings.ToLower(e.kind()), e.name).WithHint("use CREATE OR REPLACE, or drop it first")
	}
	return s.dropEntry(e)
}

func sourceNames() []string {
	var out []string
	for _, s := range all.Sources {
		out = append(out, s.Name)
	}
	return out
}

func sinkNames() []string {
	var out []string
	for _, s := range all.Sinks {
		out = append(out, s.Name)
	}
	return out
}

func unknownConnector(name string, known []string) error {
	hint := errs.DidYouMean(name, known)
	if hint == "" {
		hint = "known connectors: " + strings.Join(known, ", ")
	}
	return errs.New(errs.Usage, "create", "unknown connector %q", name).WithHint("%s", hint)
}
