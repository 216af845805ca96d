package riverbed

import (
	"context"
	"maps"
	"strings"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/sql"
	"github.com/riverbed/riverbed/core/types"
)

// setVariable computes a variable's value, once; RESET VARIABLE forgets it.
func (s *Session) setVariable(ctx context.Context, cat *scopeCatalog, st *sql.SetVariable, text string) error {
	var v *expr.Lit
	if st.Value != nil {
		q, err := s.planQuery(ctx, cat, &sql.Query{At: st.At, Body: &sql.Select{At: st.At, Items: []sql.SelectItem{{Expr: st.Value}}}}, text)
		if err != nil {
			return err
		}
		rows, err := q.all(ctx)
		if err != nil {
			return err
		}
		v = &expr.Lit{T: q.columns[0].Type, V: types.ValueAt(rows[0].Column(0), 0, q.columns[0].Type)}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	next := maps.Clone(*s.variables.Load())
	if next == nil {
		next = map[string]*expr.Lit{}
	}
	name := strings.ToLower(st.Name.Name)
	delete(next, name)
	if v != nil {
		next[name] = v
	}
	s.variables.Store(&next)
	return nil
}

// Known implements bind.SessionCatalog: what the session knows while a statement is planned. A view keeps the value.
func (c *scopeCatalog) Known(name string, args []types.Value) (*expr.Lit, bool, error) {
	text := func(v string) (*expr.Lit, bool, error) {
		return &expr.Lit{V: v, T: types.String, Meant: true}, true, nil
	}
	switch name {
	case "current_schema":
		return text(c.cat.schema)
	case "current_database", "current_catalog":
		return text("memory")
	case "current_user", "session_user", "user":
		return text("riverbed")
	case "current_setting", "getvariable":
	default:
		return nil, false, nil
	}
	asked, ok := "", len(args) == 1
	if ok {
		asked, ok = args[0].(string)
	}
	if !ok {
		return nil, true, errs.New(errs.Schema, "bind", "%s takes one constant text", name)
	}
	if name == "getvariable" {
		if v := (*c.s.variables.Load())[strings.ToLower(asked)]; v != nil {
			return &expr.Lit{V: v.V, T: v.T, Meant: true}, true, nil
		}
		return &expr.Lit{T: types.NullType}, true, nil
	}
	if v, ok := c.s.cfg.Load().settingValue(asked); ok {
		return text(v)
	}
	return nil, true, unknownSetting(asked)
}
