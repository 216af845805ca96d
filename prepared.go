package riverbed

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/riverbed/riverbed/core/bind"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/sql"
)

// prepared is a statement that EXECUTE runs with values. Its names are resolved when it runs.
type prepared struct {
	name string
	st   sql.Statement
	text string
}

func (s *Session) prepare(st *sql.Prepare, text string) error {
	if err := oneStyle(st.Statement); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	next := maps.Clone(s.prepared)
	if next == nil {
		next = map[string]*prepared{}
	}
	next[strings.ToLower(st.Name.Name)] = &prepared{st.Name.Name, st.Statement, text}
	s.prepared = next
	return nil
}

func (s *Session) preparedNamed(name sql.Ident) (*prepared, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.prepared[strings.ToLower(name.Name)]; p != nil {
		return p, nil
	}
	return nil, errs.E(errs.Schema, "execute", name.Pos, "there is no prepared statement %q", name.Name).
		WithHint("%s", errs.DidYouMean(name.Name, slices.Sorted(maps.Keys(s.prepared))))
}

func (s *Session) deallocate(st *sql.Deallocate) error {
	if st.All {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.prepared = nil
		return nil
	}
	if _, err := s.preparedNamed(st.Name); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	next := maps.Clone(s.prepared)
	delete(next, strings.ToLower(st.Name.Name))
	s.prepared = next
	return nil
}

// execute runs a prepared statement. The values are computed now, each once.
func (s *Session) execute(ctx context.Context, st *sql.Execute, in given) (*Query, error) {
	p, err := s.preparedNamed(st.Name)
	if err != nil {
		return nil, err
	}
	values := bind.Params{}
	for i, a := range st.Args {
		key := strconv.Itoa(i + 1)
		if !a.Name.IsZero() {
			key = strings.ToLower(a.Name.Name)
		}
		x := a.Value
		if param, ok := x.(*sql.Param); ok && in.params[param.Key()] != nil {
			values[key] = in.params[param.Key()]
			continue
		}
		if values[key], err = s.value(x); err != nil {
			return nil, err
		}
	}
	used := map[string]bool{}
	for _, param := range sql.Params(p.st) {
		used[param.Key()] = true
		if values[param.Key()] == nil {
			return nil, errs.E(errs.Schema, "execute", st.Pos, "the prepared statement %q has the parameter %s, and EXECUTE gives no value for it", p.name, sql.Print(param))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if !used[key] {
			return nil, errs.E(errs.Schema, "execute", st.Pos, "the prepared statement %q has no parameter %s", p.name, paramName(key))
		}
	}
	q, err := s.statement(ctx, p.st, p.text, given{in.locals, values})
	if err != nil {
		return nil, errs.As(err).WithSQL(p.text)
	}
	if q != nil {
		q.said = sql.Print(p.st)
	}
	return q, nil
}
