package riverbed

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/sql"
)

// SET and RESET replace the session's configuration whole: what runs keeps the one that it began with.

func (s *Session) set(st *sql.Set) error {
	v, err := s.optionValue(sql.Option{At: st.At, Key: st.Name, Value: st.Value})
	if err != nil {
		return err
	}
	if strings.EqualFold(st.Name, "schema") || strings.EqualFold(st.Name, "search_path") {
		return s.setSchema(v, st.Position())
	}
	return s.setting(st.Name, v, st.Position())
}

// reset returns to what the session was opened with.
func (s *Session) reset(st *sql.Reset) error {
	if g := findIgnored(st.Name); g != nil {
		return s.ignore(g, "", st.Position())
	}
	if strings.EqualFold(st.Name, "schema") || strings.EqualFold(st.Name, "search_path") {
		return s.setSchema(mainSchema, st.Position())
	}
	set := findSetting(st.Name)
	if set == nil {
		return unknownSettingAt(st.Name, st.Position())
	}
	return s.setting(st.Name, set.get(s.opened), st.Position())
}

func (s *Session) setting(name, v string, pos errs.Pos) error {
	if g := findIgnored(name); g != nil {
		if err := g.accept(v); err != nil {
			return placed(err, pos)
		}
		return s.ignore(g, v, pos)
	}
	set := findSetting(name)
	if set == nil {
		return unknownSettingAt(name, pos)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c := *s.cfg.Load()
	if err := set.apply(&c, name, v); err != nil {
		e := errs.As(err)
		e.Pos = pos
		return e
	}
	s.memory.SetLimit(c.memoryLimit)
	s.cfg.Store(&c)
	return nil
}

// ignore keeps the value of a setting without effect, for current_setting; an empty one is forgotten.
func (s *Session) ignore(g *ignored, v string, _ errs.Pos) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := *s.cfg.Load()
	c.ignored = maps.Clone(c.ignored)
	if c.ignored == nil {
		c.ignored = map[string]string{}
	}
	if v == "" {
		delete(c.ignored, g.name)
	} else {
		c.ignored[g.name] = v
	}
	s.cfg.Store(&c)
	return nil
}

// settingValue is what current_setting gives.
func (c *config) settingValue(name string) (string, bool) {
	if g := findIgnored(name); g != nil {
		return c.ignored[g.name], true
	}
	if set := findSetting(name); set != nil {
		return set.get(c), true
	}
	return "", false
}

func unknownSettingAt(name string, pos errs.Pos) error {
	e := unknownSetting(name)
	e.Pos = pos
	return e
}

// pragma runs PRAGMA: a setting, a switch without effect, or a table function of the name pragma_….
func (s *Session) pragma(ctx context.Context, cat *scopeCatalog, st *sql.Pragma, text string) (*Query, error) {
	function := "pragma_" + strings.ToLower(st.Name)
	switch {
	case st.Value == nil && slices.Contains(cat.TableFunctions(), function):
		call := &sql.Function{At: st.At, Name: sql.Name{{At: st.At, Name: function}}, Args: st.Args}
		q := &sql.Query{At: st.At, Body: &sql.Select{At: st.At, Items: []sql.SelectItem{{Expr: &sql.Star{At: st.At}}}, From: []sql.TableRef{&sql.TableFunction{At: st.At, Call: call}}}}
		return s.planQuery(ctx, cat, q, text)
	case strings.EqualFold(st.Name, "show") && len(st.Args) == 1:
		return s.describe(ctx, cat, &sql.Describe{At: st.At, Table: true, Query: tableNamed(st.At, st.Args[0].Value)}, text)
	}
	return nil, s.pragmaSetting(st)
}

// tableNamed is the query of a table that an argument names.
func tableNamed(at sql.At, x sql.Expr) *sql.Query {
	name := sql.Name{{At: at, Name: ""}}
	switch x := x.(type) {
	case *sql.Literal:
		name[0].Name = x.Text
	case *sql.ColumnRef:
		name = x.Parts
	}
	return &sql.Query{At: at, Body: &sql.Select{At: at, Items: []sql.SelectItem{{Expr: &sql.Star{At: at}}}, From: []sql.TableRef{&sql.Table{At: at, Name: name}}}}
}

func (s *Session) pragmaSetting(st *sql.Pragma) error {
	switch {
	case st.Value != nil:
		return s.set(&sql.Set{At: st.At, Name: st.Name, Value: st.Value})
	case len(st.Args) > 0 && (findSetting(st.Name) != nil || findIgnored(st.Name) != nil):
		return s.set(&sql.Set{At: st.At, Name: st.Name, Value: st.Args[0].Value})
	}
	if _, ok := switches[strings.ToLower(st.Name)]; ok {
		return nil
	}
	if g := findIgnored(st.Name); g != nil {
		return nil
	}
	e := unknownSetting(st.Name)
	e.Pos, e.Msg = st.Pos, strings.Replace(e.Msg, "setting", "PRAGMA", 1)
	return e
}

// maintain accepts what other engines need and nothing here does.
func (s *Session) maintain(st *sql.Maintain) error {
	switch st.What {
	case "LOAD", "INSTALL":
		name := strings.ToLower(st.Target.String())
		for _, known := range []string{"json", "parquet", "icu", "core_functions", "httpfs", "aws", "iceberg", "delta", "autocomplete", "sqlsmith", "tpch", "tpcds"} {
			if name == known {
				return nil
			}
		}
		return errs.E(errs.Unsupported, "load", st.Pos, "there are no extensions, and none is called %q", name).
			WithHint("what Riverbed reads and writes is built in; docs/connectors lists it")
	case "CHECKPOINT":
		return nil
	}
	if st.Target != nil {
		_, err := s.cat.Load().target(st.Target)
		return err
	}
	return nil
}
